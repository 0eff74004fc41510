//! `cargo xtask bench values`: see [`measure::values`].

use std::process::ExitCode;

fn main() -> ExitCode {
    measure::values::main()
}
