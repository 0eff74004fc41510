//! Runs programs, shows what is run, and says what failed.

use std::io::{BufRead, BufReader, IsTerminal, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::clock::compiling;
use crate::excerpt::excerpt;

/// For how long the output of a command that has ended is waited for: what it started may live on, and hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// The workspace's root: of the checkout that cargo runs this for, which may not be the one that it was built in.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(package).join("..").canonicalize().unwrap_or_else(|_| "..".into())
}

/// A command to be run from the workspace's root.
pub struct Run {
    command: Command,
    text: String,
}

impl Run {
    /// `program` with `args`.
    pub fn new(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).current_dir(root());
        Self { command, text: [&[program], args].concat().join(" ") }
    }

    /// The same cargo that runs this.
    pub fn cargo(args: &[&str]) -> Self {
        let mut run = Self::new("cargo", args);
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut command = Command::new(cargo);
            command.args(args).current_dir(root());
            run.command = command;
        }
        run
    }

    /// With an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.text = format!("{name}='{value}' {}", self.text);
        self
    }

    /// In another directory.
    pub fn within(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Without the environment variables of this process.
    pub fn without_environment(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Runs it, with its output shown. In a log, what it complained of is a part of the error, so that it is found at the end.
    pub fn show(mut self) -> Result<(), String> {
        println!("$ {}", self.text);
        let ended = match std::io::stdout().is_terminal() {
            true => self.command.status().map(|status| (status, String::new())),
            false => show_and_keep(self.command),
        };
        let (status, output) = ended.map_err(|error| format!("cannot run `{}`: {error}", self.text))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("`{}` failed ({status})\n{}", self.text, excerpt(&output)))
    }

    /// Runs it, with its output shown, as a part of building.
    pub fn builds(self) -> Result<(), String> {
        compiling(|| self.show())
    }

    /// Runs it for its output, as a part of building, with its complaints shown.
    pub fn compiles(mut self) -> Result<String, String> {
        println!("$ {}", self.text);
        self.command.stderr(Stdio::inherit());
        compiling(|| self.read())
    }

    /// Runs it for its output.
    pub fn read(mut self) -> Result<String, String> {
        let output = self.command.output().map_err(|error| format!("cannot run `{}`: {error}", self.text))?;
        if !output.status.success() {
            return Err(format!("`{}` failed ({})", self.text, output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn show_and_keep(mut command: Command) -> std::io::Result<(ExitStatus, String)> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // Its ends of the pipe.
    drop(command);
    let lines = show_lines(reader);
    let status = child.wait()?;
    let mut output = String::new();
    while let Ok(line) = lines.recv_timeout(LAST_OUTPUT) {
        output.push_str(&line);
        output.push('\n');
    }
    Ok((status, output))
}

/// Prints what comes, and hands it on, in a thread of its own.
fn show_lines(reader: PipeReader) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            println!("{line}");
            let _ = std::io::stdout().flush();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
