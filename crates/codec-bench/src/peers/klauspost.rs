//! klauspost/reedsolomon: a small Go program that does a round for each line that it is sent.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use super::peer::Peer;
use crate::memory::Memory;
use crate::side::Side;
use crate::{BenchError, Job, Op};

/// The program's files.
const FILES: [(&str, &str); 3] = [
    ("main.go", include_str!("../../peers/klauspost/main.go")),
    ("go.mod", include_str!("../../peers/klauspost/go.mod")),
    ("go.sum", include_str!("../../peers/klauspost/go.sum")),
];
/// What it is called.
const PROGRAM: &str = "klauspost-rounds";
const NAME: &str = "klauspost/reedsolomon 1.14.2";

/// The program at work.
pub struct Klauspost {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The job as the program reads it, but for the time.
    line: String,
}

impl Klauspost {
    /// Builds the program if this process has not done so, and starts it.
    pub fn new(job: &Job) -> Result<Self, BenchError> {
        let peer = Peer::Klauspost;
        let (k, m) = peer.reed_solomon(job)?;
        peer.check(job, &[Op::Encode, Op::Decode])?;
        let cold = u8::from(job.cold);
        let line = format!("{} {k} {m} {} {} {} {cold}", job.op.name(), job.len, job.losses, job.threads);
        let dir = built()?;
        let mut child = Command::new(dir.path().join(PROGRAM))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| BenchError::Io(format!("cannot start {NAME}: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(BenchError::Io(format!("{NAME} has no standard input or output")));
        };
        Ok(Self { child, input, output: BufReader::new(output), line })
    }

    /// Sends a line and reads the answer.
    fn ask(&mut self, time: Duration) -> std::io::Result<String> {
        writeln!(self.input, "{} {}", self.line, time.as_secs_f64())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer)
    }
}

impl Side for Klauspost {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    /// Its memory is its own, laid out in the same way.
    fn round(&mut self, _: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        let answer = self.ask(time).map_err(|error| BenchError::Io(format!("{NAME}: {error}")))?;
        let answer = answer.trim();
        answer.parse().map_err(|_| BenchError::Io(format!("{NAME} says: '{answer}'")))
    }
}

impl Drop for Klauspost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the program lies, built once a process.
fn built() -> Result<&'static TempDir, BenchError> {
    static BUILT: OnceLock<Result<TempDir, String>> = OnceLock::new();
    BUILT.get_or_init(build).as_ref().map_err(|reason| BenchError::Io(reason.clone()))
}

fn build() -> Result<TempDir, String> {
    let dir = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    for (name, text) in FILES {
        std::fs::write(dir.path().join(name), text)
            .map_err(|error| format!("cannot write {name}: {error}"))?;
    }
    let built = Command::new("go")
        .args(["build", "-buildvcs=false", "-o", PROGRAM, "."])
        .current_dir(dir.path())
        .output()
        .map_err(|error| {
            format!("klauspost needs Go 1.24 or newer to build its program: cannot run `go` ({error})")
        })?;
    if built.status.success() {
        return Ok(dir);
    }
    let reason = String::from_utf8_lossy(&built.stderr);
    let line = reason.lines().last().unwrap_or_default();
    Err(format!("klauspost needs Go 1.24 or newer, and its module proxy: `go build` failed: {line}"))
}
