//! Clients for other languages: built, and put where they can be used.

use crate::run::{Run, root};

/// Where they are put unless it is said.
const OUT: &str = "target/clients";

/// `cargo xtask client c [PREFIX]`: libraries, header and a file for pkg-config.
pub fn c(rest: &[&str]) -> Result<(), String> {
    let prefix = rest.first().map_or_else(|| below(OUT), |prefix| (*prefix).to_owned());
    let built = build()?;
    Run::new("sh", &[&below("crates/gestalt-c/install.sh"), &built, &prefix]).show()?;
    println!("PKG_CONFIG_PATH={prefix}/lib/pkgconfig");
    Ok(())
}

/// `cargo xtask client python [PYTHON [GLIBC]]`: a wheel for every Python 3 on systems with the glibc of this one, or that one.
pub fn python(rest: &[&str]) -> Result<(), String> {
    let python = rest.first().copied().unwrap_or("python3");
    let library = match rest.get(1) {
        Some(glibc) => library_for(python, glibc)?,
        None => library()?,
    };
    let out = below(OUT);
    Run::new("sh", &[&below("bindings/python/build.sh"), python, &library, &out]).show()?;
    println!("{python} -m pip install {out}/gestalt_kv-*.whl");
    Ok(())
}

/// The shared library, built.
pub fn library() -> Result<String, String> {
    Ok(build()? + "/libgestalt_c.so")
}

/// The same for an older glibc.
fn library_for(python: &str, glibc: &str) -> Result<String, String> {
    Run::new("sh", &[&below("bindings/python/library.sh"), python, glibc]).builds()?;
    Ok(of_cargo(&format!("{}-unknown-linux-gnu/library/libgestalt_c.so", std::env::consts::ARCH)))
}

/// With panics that unwind: they end where C called.
fn build() -> Result<String, String> {
    Run::cargo(&["build", "--profile", "library", "--quiet", "-p", "gestalt-c"]).builds()?;
    Ok(of_cargo("library"))
}

/// Where Cargo puts what it builds.
fn of_cargo(path: &str) -> String {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |set| root().join(set));
    target.join(path).display().to_string()
}

fn below(path: &str) -> String {
    root().join(path).display().to_string()
}
