//! The step `cuda`: the codec's kernels for cards, on a machine without one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::built::Built;
use crate::debian::{self, Needed};
use crate::run::{Run, root};
use crate::steps::TESTED;

/// The crate, from the workspace's root.
const CRATE: &str = "crates/codec-cuda";
/// The compiler that the shipped PTX is from: an old one, whose PTX old drivers take. A package of PyPI.
const NVRTC: &str = "nvidia-cuda-nvrtc-cu11==11.8.89";
/// Its library.
const NVRTC_LIBRARY: &str = "libnvrtc.so.11.2";

/// The kernels, and the host's side of them, with a driver and a compiler that run them on the processor; then what the real
/// compiler makes of them.
pub fn test() -> Result<(), String> {
    debian::ensure(&[
        Needed { file: "g++", package: "g++" },
        Needed { file: "python3", package: "python3-venv" },
    ])?;
    let dir = emulated()?;
    let what = ["--workspace", "--features", TESTED, "--lib", "--test", "card", "--test", "ptx"];
    let built = Built::by(&what)?;
    for test in ["codec_cuda", "card", "ptx"] {
        on_emulated(Run::new(built.test(test)?, &["--quiet"]).within(&root().join(CRATE)), &dir).show()?;
    }
    let compiler = nvrtc()?;
    Run::new(built.test("ptx")?, &["--quiet"])
        .within(&root().join(CRATE))
        .env("LD_LIBRARY_PATH", text(&compiler)?)
        .env("GESTALT_REQUIRE_NVRTC", "1")
        .show()
}

/// `run` with the emulated card in `dir`.
pub fn on_emulated(run: Run, dir: &str) -> Run {
    run.env("LD_LIBRARY_PATH", dir)
        .env("GESTALT_EMULATED_CUDA_DIR", dir)
        .env("GESTALT_EMULATED_GENERIC", &format!("{dir}/generic.so"))
        .env("GESTALT_REQUIRE_CUDA", "1")
}

/// Where the emulated card is; built anew.
pub fn emulated() -> Result<String, String> {
    let emulated = root().join("target/cuda-emulated");
    make_emulated(&emulated)?;
    text(&emulated).map(str::to_owned)
}

/// Builds libcuda and libnvrtc out of `emulator/`, and the generic kernels for the processor.
fn make_emulated(dir: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    fs::create_dir_all(dir).map_err(failed)?;
    fs::copy(root().join(CRATE).join("emulator/shim.h"), dir.join("shim.h")).map_err(failed)?;
    let kernels = root().join(CRATE).join("kernels");
    let parts = ["prelude.cuh", "permute.cuh", "generic.cu"];
    let parts = parts.map(|name| fs::read_to_string(kernels.join(name)));
    let source = parts.into_iter().collect::<Result<String, _>>().map_err(failed)?;
    let generic = dir.join("generic.cpp");
    fs::write(&generic, source).map_err(failed)?;
    let out = |name: &str| dir.join(name);
    compile(&root().join(CRATE).join("emulator/driver.cpp"), &out("libcuda.so"), &[])?;
    // For those who have the driver alone.
    let alone = dir.join("without-compiler");
    fs::create_dir_all(&alone).map_err(failed)?;
    fs::copy(out("libcuda.so"), alone.join("libcuda.so")).map_err(failed)?;
    compile(&root().join(CRATE).join("emulator/nvrtc.cpp"), &out("libnvrtc.so"), &[])?;
    compile(&generic, &out("generic.so"), &["-include", text(&out("shim.h"))?])
}

fn compile(source: &Path, object: &Path, options: &[&str]) -> Result<(), String> {
    let usual = ["-std=c++17", "-O2", "-Wall", "-Wno-unknown-pragmas", "-shared", "-fPIC"];
    Run::new("g++", &[&usual[..], options, &["-o", text(object)?, text(source)?]].concat()).show()
}

/// Where the real compiler is; fetched into a virtual environment if it is not there.
fn nvrtc() -> Result<PathBuf, String> {
    let environment = root().join("target/others").join(NVRTC);
    if library_dir(&environment).is_none() {
        Run::new("python3", &["-m", "venv", text(&environment)?]).show()?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", NVRTC];
        Run::new(text(&environment.join("bin/python"))?, &install).show()?;
    }
    let libraries = library_dir(&environment).ok_or_else(|| format!("{NVRTC} has no libnvrtc"))?;
    // It is looked for by this name.
    let (library, name) = (libraries.join(NVRTC_LIBRARY), libraries.join("libnvrtc.so"));
    if !name.exists() {
        fs::copy(&library, &name).map_err(|error| format!("{}: {error}", name.display()))?;
    }
    Ok(libraries)
}

/// The directory of the library, below some version of Python's.
fn library_dir(environment: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(environment.join("lib")).ok()?.filter_map(Result::ok);
    let mut dirs = versions.map(|version| version.path().join("site-packages/nvidia/cuda_nvrtc/lib"));
    dirs.find(|dir| dir.join(NVRTC_LIBRARY).exists())
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not text", path.display()))
}
