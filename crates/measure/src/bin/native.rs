//! `cargo xtask bench native`: see [`measure::native`].

use std::process::ExitCode;

fn main() -> ExitCode {
    measure::native::main()
}
