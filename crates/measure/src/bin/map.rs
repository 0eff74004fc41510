//! `cargo xtask bench map`: see [`measure::map`].

use std::process::ExitCode;

fn main() -> ExitCode {
    measure::map::main()
}
