//! What the kernels' text compiles to. Needs NVRTC, which `cargo xtask test cuda` gets from PyPI, and no card.

use codec::Code;
use codec_cuda::{
    CudaError, GENERIC_ARCHITECTURE, GENERIC_PTX, Matrix, compile_to_ptx, generic_source, specialised_source,
};

/// PTX of `source`; none where there is no compiler, or an emulated one.
fn compile(source: &str, architecture: &str) -> Option<String> {
    if std::env::var_os("GESTALT_EMULATED_CUDA_DIR").is_some() {
        return None;
    }
    match compile_to_ptx(source, architecture) {
        Ok(ptx) => Some(ptx),
        Err(CudaError::NoCompiler) => {
            assert!(std::env::var_os("GESTALT_REQUIRE_NVRTC").is_none(), "no NVRTC");
            println!("skipped: no NVRTC");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Without comments, of which some tell the compiler's build.
fn instructions(ptx: &str) -> Vec<&str> {
    ptx.lines().map(str::trim_end).filter(|line| !line.starts_with("//") && !line.is_empty()).collect()
}

/// With `GESTALT_WRITE_PTX` the file is written anew.
#[test]
fn the_generic_ptx_is_that_of_its_source() {
    let Some(ptx) = compile(&generic_source(), GENERIC_ARCHITECTURE) else { return };
    if std::env::var_os("GESTALT_WRITE_PTX").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/generic.ptx"), &ptx).unwrap();
        return;
    }
    if std::env::var_os("GESTALT_REQUIRE_NVRTC").is_none() {
        return println!("skipped: another NVRTC may give other instructions");
    }
    assert!(instructions(&ptx) == instructions(GENERIC_PTX), "kernels/generic.ptx is not up to date");
}

#[test]
fn kernels_of_many_shapes_compile() {
    for (k, m) in [(1, 1), (3, 2), (10, 4), (40, 8)] {
        let matrix = Matrix::encode(&Code::rs(k, m).unwrap()).unwrap();
        for matrix in [matrix.clone(), matrix.adding()] {
            let Some(ptx) = compile(&specialised_source(&matrix), "compute_80") else { return };
            assert!(ptx.contains(".visible .entry combine("), "{k}+{m}");
        }
    }
}
