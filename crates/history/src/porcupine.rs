//! Asks porcupine, a linearizability checker that others wrote, what it thinks of histories.
//!
//! It comes from the Go module proxy, at the version in `porcupine/go.mod`, and shares no code with ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use processes::others::{ensure_program, filter, others_dir, read};

use crate::linearizability::{History, Operation};

/// One verdict (ok, illegal, or unknown: out of time) for each history, which is one key's; `name` names the file through
/// which they go.
///
/// # Errors
/// One line if porcupine cannot be built or asked.
pub fn verdicts(name: &str, histories: &[Vec<Operation>]) -> Result<Vec<String>, String> {
    let program = PROGRAM.as_ref()?;
    let mut lines = Vec::new();
    for operations in histories {
        one_history(operations).write_by_key(&mut lines).map_err(|error| error.to_string())?;
    }
    let input = program.with_file_name(format!("{name}.jsonl"));
    fs::write(&input, lines).map_err(|error| error.to_string())?;
    Ok(filter(&mut Command::new(program), &input)?.lines().map(str::to_owned).collect())
}

/// The history that is made of these operations.
#[must_use]
pub fn one_history(operations: &[Operation]) -> History {
    let mut history = History::default();
    operations.iter().cloned().for_each(|operation| history.push(operation));
    history
}

/// The program that asks porcupine, built once.
static PROGRAM: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    ensure_program("go", "golang-go")?;
    let dir = others_dir()?.join("porcupine");
    fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let program = dir.join("porcupine-check");
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/porcupine"));
    let mut build = Command::new("go");
    build.current_dir(source).args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".");
    read(&mut build)?;
    Ok(program)
});
