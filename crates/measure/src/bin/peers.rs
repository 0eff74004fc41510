//! `cargo xtask bench peers`: see [`measure::peers`].

use std::process::ExitCode;

fn main() -> ExitCode {
    measure::peers::main()
}
