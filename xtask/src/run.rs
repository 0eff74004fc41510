//! Runs programs, shows what is run, and says what failed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::clock::compiling;

/// A command to be run from the workspace's root.
pub struct Run {
    command: Command,
    text: String,
}

impl Run {
    /// `program` with `args`.
    pub fn new(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        Self { command, text: [&[program], args].concat().join(" ") }
    }

    /// The same cargo that runs this.
    pub fn cargo(args: &[&str]) -> Self {
        let mut run = Self::new("cargo", args);
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut command = Command::new(cargo);
            command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
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

    /// Runs it, with its output shown.
    pub fn show(mut self) -> Result<(), String> {
        println!("$ {}", self.text);
        let status = self.command.status().map_err(|error| format!("cannot run `{}`: {error}", self.text))?;
        if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", self.text)) }
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
