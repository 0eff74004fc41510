//! `cargo xtask bench fills`: see [`measure::fills`].

use std::process::ExitCode;

fn main() -> ExitCode {
    measure::fills::main()
}
