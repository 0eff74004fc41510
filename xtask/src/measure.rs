//! `cargo xtask measure`: builds what is measured, then hands over to the measuring program.

use crate::run::Run;

/// Runs the program `measure` with `args`.
pub fn run(args: &[&str]) -> Result<(), String> {
    Run::cargo(&["build", "--release", "--quiet", "-p", "cli"]).show()?;
    let program = ["run", "--release", "--quiet", "-p", "measure", "--bin", "measure", "--"];
    Run::cargo(&[&program, args].concat()).show()
}
