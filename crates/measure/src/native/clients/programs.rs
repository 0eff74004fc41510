//! Clients in C: built, run, and what they print.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use processes::others::outputs;

use super::Asked;

/// How often it is tried to ask in all cells.
const TRIES: u32 = 3;
/// What Debian's libmemcached-dev brings.
const LIBMEMCACHED: &str = "/usr/include/libmemcached/memcached.h";

/// A program, and whom it asks.
#[derive(Clone)]
pub(super) struct Program {
    path: PathBuf,
    to: Vec<String>,
}

impl Program {
    /// The C client's, linked with `library`.
    pub(super) fn of_library(dir: &Path, library: &Path, uri: String) -> Result<Self, String> {
        // By this name it is asked for.
        let copy = dir.join("libgestalt.so.3");
        fs::copy(library, &copy).map_err(|error| format!("{}: {error}", library.display()))?;
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gestalt-c/include");
        let flags = [format!("-I{}", include.display()), copy.display().to_string()];
        let path = build(dir, "gestalt", &[&flags[..], &[format!("-Wl,-rpath,{}", dir.display())]].concat())?;
        Ok(Self { path, to: vec![uri] })
    }

    /// libmemcached's, if that is installed; it asks nobody yet.
    pub(super) fn of_libmemcached(dir: &Path) -> Result<Option<Self>, String> {
        if !Path::new(LIBMEMCACHED).exists() {
            return Ok(None);
        }
        let path = build(dir, "libmemcached", &["-lmemcached".to_owned()])?;
        Ok(Some(Self { path, to: Vec::new() }))
    }

    pub(super) fn to(self, addresses: &[SocketAddr]) -> Self {
        Self { to: addresses.iter().map(SocketAddr::to_string).collect(), ..self }
    }

    /// Its name and version.
    pub(super) fn version(&self) -> Result<String, String> {
        outputs(&mut Command::new(&self.path)).map(|(printed, _)| printed.trim_end().to_owned())
    }

    /// Asks in all cells, as long in each.
    pub(super) fn ask(&self, time: Duration) -> Result<Vec<Asked>, String> {
        let milliseconds = time.as_millis().to_string();
        let once = || outputs(Command::new(&self.path).arg(&milliseconds).args(&self.to));
        // Where a machine is busy a request of one cell may run into a time-out: then all cells are asked in once more.
        let (printed, _) = (1..TRIES).fold(once(), |asked, _| asked.or_else(|_| once()))?;
        printed.lines().map(|line| told(line).ok_or_else(|| format!("it has printed '{line}'"))).collect()
    }
}

fn build(dir: &Path, name: &str, flags: &[String]) -> Result<PathBuf, String> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/native/clients");
    let path = dir.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&path);
    outputs(compiler.arg(from.join(format!("{name}.c"))).args(flags))?;
    Ok(path)
}

/// What a line of a program says: see `cells.h`.
fn told(line: &str) -> Option<Asked> {
    let words: Vec<&str> = line.split(' ').collect();
    let [work, len, flight, operations, took, cpu] = words[..] else { return None };
    let write = match work {
        "set" => true,
        "get" => false,
        _ => return None,
    };
    let nanoseconds = |word: &str| word.parse().ok().map(Duration::from_nanos);
    Some(Asked {
        write,
        len: len.parse().ok()?,
        flight: flight.parse().ok()?,
        operations: operations.parse().ok().filter(|operations| *operations > 0)?,
        took: nanoseconds(took)?,
        cpu: nanoseconds(cpu)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_cell() {
        let (took, cpu) = (Duration::from_nanos(200), Duration::from_nanos(100));
        let asked = Asked { write: false, len: 1024, flight: 32, operations: 64, took, cpu };
        assert_eq!(told("get 1024 32 64 200 100"), Some(asked));
        assert_eq!(["", "get 1024 32 0 200 100", "put 1 1 1 1 1", "set 1 1 1 1 1 1"].map(told), [None; 4]);
    }
}
