//! Prints the text of the kernel that is compiled for the parities of a Reed-Solomon code: to be looked at, or to be counted in what a
//! compiler makes of it.
//!
//!     cargo run -p codec-cuda --example kernel_source -- 10 4

use codec_cuda::{Matrix, operations, specialised_source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [k, m] = &arguments[..] else { return Err("usage: kernel_source K M".into()) };
    let matrix = Matrix::encode(&codec::Code::rs(k.parse()?, m.parse()?)?)?;
    println!("{}", specialised_source(&matrix));
    eprintln!("{:.1} operations a word", operations(&matrix));
    Ok(())
}
