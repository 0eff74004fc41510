//! Ceph's plugin: how it is built, tested and measured. `docs/ceph.md` is for those who use it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::built::Built;
use crate::cuda;
use crate::debian::{self, Needed};
use crate::liberasurecode;
use crate::run::{Run, root};
use crate::steps::TESTED;

/// Where its sources are, from the workspace's root.
const SOURCES: &str = "plugins/ceph";
/// Where it is built.
const OUT: &str = "target/plugins/ceph";
/// The release whose plugin interface `abi/erasure_code.h` has.
const RELEASE: &str = "16.2.";
/// The plugin's own sources.
const PLUGIN: &[&str] = &["coder.cc", "plugin.cc", "profile.cc", "rule.cc"];
/// Programs over the registry.
const TOOLS: &[&str] = &["check", "non_regression", "benchmark"];
/// Where Debian's plugins are, and the library that theirs and the tools need.
const CEPH_LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu/ceph";

/// What building needs.
const NEEDED: &[Needed] = &[
    Needed { file: "g++", package: "g++" },
    Needed { file: "/usr/include/rados/buffer.h", package: "libradospp-dev" },
    Needed { file: "/usr/include/rados/librados.h", package: "librados-dev" },
    Needed { file: "ceph", package: "ceph-common" },
    Needed { file: "ceph-osd", package: "ceph-osd" },
];

/// What a cluster needs beyond that.
const DAEMONS: &[Needed] = &[
    Needed { file: "ceph-mon", package: "ceph-mon" },
    Needed { file: "ceph-mgr", package: "ceph-mgr" },
    Needed { file: "monmaptool", package: "ceph-base" },
    Needed { file: "readelf", package: "binutils" },
];

/// `cargo xtask plugin ceph`: the plugin that is to be installed, and the tools, with the codec as it is released.
pub fn plugin() -> Result<(), String> {
    debian::ensure(NEEDED)?;
    Run::cargo(&["build", "--release", "--quiet", "-p", "codec-c"]).builds()?;
    let out = build(&root().join("target/release/libgestalt_codec.a"))?;
    println!("built {}", out.join("libec_gestalt.so").display());
    Ok(())
}

/// The step `ceph`. The codec is the one of the other tests: nothing is compiled for this step alone but the C++.
pub fn test() -> Result<(), String> {
    debian::ensure(NEEDED)?;
    debian::ensure(DAEMONS)?;
    let built =
        Built::by(&["--workspace", "--features", TESTED, "--lib", "--test", "ceph", "--test", "c_abi"])?;
    let story = built.test("ceph")?;
    let library = Path::new(story).with_file_name("libgestalt_codec.a");
    let out = build(&library)?;
    let plugins = gather(&out)?;
    same_order(&out)?;
    let tool = |name: &str| out.join(format!("gestalt_ec_{name}"));
    Run::new(text(&tool("check"))?, &[text(&plugins)?]).show()?;
    let card = cuda::emulated()?;
    let on_card = Run::new(text(&tool("check"))?, &[text(&plugins)?, "--place", "card"]);
    cuda::on_emulated(on_card, &card).show()?;
    cuda::on_emulated(Run::new(built.test("c_abi")?, &["--quiet", "everything"]), &card).show()?;
    let corpus = root().join(SOURCES).join("corpus.txt");
    Run::new(text(&tool("non_regression"))?, &[text(&plugins)?, text(&corpus)?]).show()?;
    liberasurecode::test(&library)?;
    Run::new(story, &["--nocapture"]).env("GESTALT_CEPH_PLUGINS", text(&plugins)?).show()
}

/// `cargo xtask bench ceph`: figures into `docs/benchmarks`, with `args` for the program (such as `--quick`).
pub fn bench(args: &[&str]) -> Result<(), String> {
    plugin()?;
    let out = root().join(OUT);
    let plugins = gather(&out)?;
    let json = root().join("docs/benchmarks/ceph.json");
    let sweep = [text(&plugins)?, "--sweep", text(&json)?];
    Run::new(text(&out.join("gestalt_ec_benchmark"))?, &[&sweep[..], args].concat()).show()?;
    crate::ceph_page::write(&json, &root().join("docs/benchmarks/ceph.md"))
}

/// Compiles the plugin against `library`, and the tools.
fn build(library: &Path) -> Result<PathBuf, String> {
    let version = installed_version()?;
    let out = root().join(OUT);
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let version = format!("-DGESTALT_CEPH_VERSION=\"{version}\"");
    let sources = |dir: &str, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{SOURCES}/{dir}/{name}")).collect()
    };
    let plugin = out.join("libec_gestalt.so");
    let mut args = vec!["-fPIC", "-shared", "-fvisibility=hidden", "-o", text(&plugin)?];
    let files = sources("src", PLUGIN);
    args.extend(files.iter().map(String::as_str));
    args.extend([text(library)?, "-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-Wl,-z,nodelete"]);
    compile(&version, &[&args[..], &["-lpthread", "-ldl", "-lm"]].concat())?;
    for tool in TOOLS {
        let program = out.join(format!("gestalt_ec_{tool}"));
        let files = sources("tools", &[&format!("{tool}.cc"), "registry.cc"]);
        let mut args = vec!["-DGESTALT_CEPH_REGISTRY", "-rdynamic", "-o", text(&program)?];
        args.extend(files.iter().map(String::as_str));
        let (library, path) =
            (format!("{CEPH_LIBRARIES}/libceph-common.so.2"), format!("-Wl,-rpath,{CEPH_LIBRARIES}"));
        compile(&version, &[&args[..], &["-lrados", "-ldl", &library, &path]].concat())?;
    }
    Ok(out)
}

fn compile(version: &str, args: &[&str]) -> Result<(), String> {
    let (abi, src) = (format!("-I{SOURCES}/abi"), format!("-I{SOURCES}/src"));
    let usual =
        ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", &abi, &src, "-Icrates/codec-c/include", version];
    Run::new("g++", &[&usual[..], args].concat()).builds()
}

/// The version of the Ceph that is here, which has to be one whose interface is known.
fn installed_version() -> Result<String, String> {
    let said = Run::new("ceph-osd", &["--version"]).read()?;
    let version = said.split_whitespace().nth(2).unwrap_or_default();
    if version.starts_with(RELEASE) {
        return Ok(version.to_owned());
    }
    Err(format!(
        "plugins/ceph/abi/erasure_code.h has the interface of Ceph {RELEASE}x, and this is `{}`",
        said.trim()
    ))
}

/// A folder with Debian's plugins and ours.
fn gather(out: &Path) -> Result<PathBuf, String> {
    let plugins = out.join("plugins");
    let failed = |error: std::io::Error| format!("{}: {error}", plugins.display());
    let _ = fs::remove_dir_all(&plugins);
    fs::create_dir_all(&plugins).map_err(failed)?;
    let theirs = fs::read_dir(format!("{CEPH_LIBRARIES}/erasure-code")).map_err(failed)?;
    let theirs = theirs.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    for plugin in
        theirs.filter(|path| !path.ends_with("libec_gestalt.so")).chain([out.join("libec_gestalt.so")])
    {
        let name = plugin.file_name().unwrap_or_default();
        symlink(&plugin, plugins.join(name)).map_err(failed)?;
    }
    Ok(plugins)
}

/// That our interface has the virtual functions of Debian's plugins, in their order.
fn same_order(out: &Path) -> Result<(), String> {
    let theirs = PathBuf::from(format!("{CEPH_LIBRARIES}/erasure-code/libec_isa.so"));
    let theirs = virtual_functions(&theirs, "_ZTV21ErasureCodeIsaDefault")?;
    let ours = virtual_functions(&out.join("libec_gestalt.so"), "_ZTVN7gestalt5CoderE")?;
    let is_same = !ours.is_empty() && ours.iter().zip(&theirs).all(|(ours, theirs)| ours == theirs);
    // Theirs go on with functions of their own classes.
    if is_same && theirs.len() >= ours.len() {
        println!("{} virtual functions stand in the order of Debian's plugins", ours.len());
        return Ok(());
    }
    Err(format!("the virtual functions are not those of this Ceph:\nours   {ours:?}\ntheirs {theirs:?}"))
}

/// Names and arguments of the functions in a table of virtual functions, as the relocations of `library` say.
fn virtual_functions(library: &Path, table: &str) -> Result<Vec<String>, String> {
    let symbols = Run::new("readelf", &["-sW", text(library)?]).read()?;
    let relocations = Run::new("readelf", &["-rW", text(library)?]).read()?;
    let rows = symbols.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: Vec<Vec<&str>> = rows.filter(|row| row.len() >= 8 && row[0].ends_with(':')).collect();
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let found = rows.iter().find(|row| row[7] == table && row[6] != "UND");
    let (start, len) = found
        .and_then(|row| Some((number(row[1])?, row[2].parse::<u64>().ok()?)))
        .ok_or_else(|| format!("{} has no {table}", library.display()))?;
    let name_at = |address: u64| {
        rows.iter().find(|row| row[3] == "FUNC" && number(row[1]) == Some(address)).map(|row| row[7])
    };
    let mut entries = Vec::new();
    for line in relocations.lines() {
        let row: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = row.first().and_then(|at| number(at)) else { continue };
        if !(start..start + len).contains(&at) || row.len() < 4 {
            continue;
        }
        let name =
            if row[2].contains("RELATIVE") { number(row[3]).and_then(name_at) } else { row.get(4).copied() };
        entries.extend(name.and_then(member).map(|name| (at, name)));
    }
    entries.sort();
    Ok(entries.into_iter().map(|(_, name)| name).collect())
}

/// Of a mangled name of a member function: its own name and its arguments, without those of its class. Destructors are all called `~`.
fn member(mangled: &str) -> Option<String> {
    let nested = mangled.strip_prefix("_ZN")?.trim_start_matches('K');
    let mut rest = nested;
    let mut last = "";
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let len: usize = rest[..digits].parse().ok()?;
        last = rest.get(digits..digits + len)?;
        rest = &rest[digits + len..];
    }
    if rest.starts_with('D') {
        return Some("~".to_owned());
    }
    let is_const = mangled.starts_with("_ZNK");
    Some(format!("{last}{}", if is_const { " const" } else { "" }))
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not text", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_by_their_names() {
        let names = [
            ("_ZN4ceph11ErasureCode17minimum_to_decodeERKSt3setIiSt4lessIiESaIiEE", "minimum_to_decode"),
            ("_ZNK14ErasureCodeIsa14get_chunk_sizeEj", "get_chunk_size const"),
            ("_ZNK4ceph11ErasureCode11get_profileB5cxx11Ev", "get_profile const"),
            ("_ZN7gestalt5CoderD0Ev", "~"),
        ];
        for (mangled, name) in names {
            assert_eq!(member(mangled).as_deref(), Some(name));
        }
        assert_eq!(member("_ZTIN7gestalt5CoderE"), None);
    }
}
