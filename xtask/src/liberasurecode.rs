//! The library that liberasurecode loads as ISA-L, over our codec: how it is built, and that its fragments are ISA-L's.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian::{self, Needed};
use crate::run::{Run, root};

const SOURCES: &str = "plugins/liberasurecode";
const OUT: &str = "target/plugins/liberasurecode";

const NEEDED: &[Needed] = &[
    Needed { file: "cc", package: "gcc" },
    Needed { file: "/usr/include/liberasurecode/erasurecode.h", package: "liberasurecode-dev" },
    Needed { file: "/usr/lib/x86_64-linux-gnu/libisal.so.2", package: "libisal2" },
];

/// `cargo xtask plugin liberasurecode`.
pub fn plugin() -> Result<(), String> {
    Run::cargo(&["build", "--release", "--quiet", "-p", "codec-c"]).builds()?;
    let built = build(&root().join("target/release/libgestalt_codec.a"))?;
    println!("built {}", built.display());
    Ok(())
}

/// Each backend gives the same fragments with Debian's ISA-L as with `library`, and repairs them.
pub fn test(library: &Path) -> Result<(), String> {
    debian::ensure(NEEDED)?;
    let ours = build(library)?;
    let check = ours.with_file_name("check");
    let include = ["-I/usr/include/liberasurecode", "-o", text(&check)?];
    compile(&[&include[..], &["plugins/liberasurecode/check.c", "-lerasurecode"]].concat())?;
    for (matrix, k, m) in
        [("vand", "4", "2"), ("vand", "10", "4"), ("cauchy", "4", "2"), ("cauchy", "10", "4")]
    {
        let run = || Run::new(check.to_str().unwrap_or_default(), &[matrix, k, m]);
        let theirs = run().read()?;
        let dir = ours.parent().map_or(Ok(""), text)?;
        let mine = run().env("LD_LIBRARY_PATH", dir).read()?;
        if theirs != mine {
            return Err(format!("liberasurecode, {matrix} ({k},{m}): other fragments\n{theirs}\n{mine}"));
        }
    }
    println!("liberasurecode's isa_l_rs_vand and isa_l_rs_cauchy have ISA-L's fragments on our codec");
    Ok(())
}

fn build(library: &Path) -> Result<PathBuf, String> {
    let out = root().join(OUT);
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let built = out.join("libisal.so.2");
    let source = format!("{SOURCES}/isal.c");
    let shared = ["-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-soname,libisal.so.2", "-o", text(&built)?];
    let linked = [text(library)?, "-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-lpthread", "-ldl", "-lm"];
    compile(&[&shared[..], &["-Icrates/codec-c/include", &source], &linked].concat())?;
    Ok(built)
}

fn compile(args: &[&str]) -> Result<(), String> {
    Run::new("cc", &[&["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror"], args].concat()).builds()
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not text", path.display()))
}
