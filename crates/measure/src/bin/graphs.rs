//! `cargo xtask bench graphs`: see [`measure::graphs`].

use std::process::ExitCode;

fn main() -> ExitCode {
    measure::graphs::main()
}
