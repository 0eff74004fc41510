//! The binary `gestalt`: where it is, and how it is run to its end.

use std::path::PathBuf;
use std::process::Command;

/// The `gestalt` binary: `GESTALT_BIN`, or the one beside this test's own.
///
/// # Errors
/// One line that says how to build it.
pub fn binary() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("GESTALT_BIN") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    // Programs lie beside it, tests one folder below.
    let candidates = own.ancestors().skip(1).take(2).map(|dir| dir.join("gestalt"));
    candidates
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| "there is no gestalt binary: build it with `cargo build -p cli`".to_owned())
}

/// `gestalt`, without the variables that this process has for it.
///
/// # Errors
/// One line if the binary is not there.
pub fn gestalt() -> Result<Command, String> {
    let mut command = Command::new(binary()?);
    forget_settings(&mut command);
    Ok(command)
}

/// What `command` starts does not get the variables that this process has for `gestalt`; but it logs as this one does.
pub fn forget_settings(command: &mut Command) {
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("GESTALT_") && variable != "GESTALT_LOG" {
            command.env_remove(variable);
        }
    }
}

/// Runs `gestalt` with `args` to its end: exit code, standard output and standard error.
///
/// # Errors
/// One line if it cannot be run.
pub fn run(args: &[&str]) -> Result<(i32, String, String), String> {
    let output = gestalt()?.args(args).output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr)))
}
