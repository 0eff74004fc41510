//! `cargo xtask measure`: see [`measure::alone`].

use std::process::ExitCode;

fn main() -> ExitCode {
    measure::alone::main()
}
