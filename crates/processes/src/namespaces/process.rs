//! One process: started in a namespace, signalled, reaped.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::binary::forget_settings;

use super::Namespace;

/// A process and its log, to which all its lives append.
pub struct Process {
    name: String,
    log: PathBuf,
    child: Option<Child>,
    /// Whether its end is wanted.
    may_end: bool,
}

impl Process {
    /// One that does not run yet; it will log into `dir`.
    pub fn new(name: String, dir: &Path) -> Self {
        let log = dir.join(format!("{}.log", name.replace(' ', "-")));
        Self { name, log, child: None, may_end: false }
    }

    /// Starts `program` with `args`, which have to see to it that it dies with this process, however that ends.
    ///
    /// # Errors
    /// One line.
    pub fn start(&mut self, namespace: &Namespace, program: &Path, args: &[String]) -> Result<(), String> {
        let name = self.name.clone();
        let log = open_log(&self.log)?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        forget_settings(&mut command);
        command.args(args);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = namespace.run(move || command.spawn());
        self.child = Some(child.map_err(|error| format!("cannot start {name}: {error}"))?);
        self.may_end = false;
        Ok(())
    }

    /// The process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends a signal, if it runs.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Kills it without waiting for its end.
    pub fn kill(&mut self) {
        self.may_end = true;
        self.signal(Signal::SIGKILL);
    }

    /// Waits for the end of a process that was killed.
    pub fn reap(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Whether its end is wanted from now on.
    pub fn let_end(&mut self, may_end: bool) {
        self.may_end = may_end;
    }

    /// How it has ended by itself, if it has, whether or not that was wanted.
    pub fn end(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(status)
    }

    /// How it has ended, if it has although nobody wanted it.
    pub fn unexpected_end(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        // One whose end is wanted is left for `end`, which tells how it came.
        (!self.may_end).then(|| {
            self.child = None;
            status
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last line of its log.
    pub fn last_line(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no word in its log").to_owned()
    }

    /// Lines of its log that tell of a panic.
    pub fn panics(&self) -> Vec<String> {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter(|line| line.contains("panicked")).map(str::to_owned).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        self.reap();
    }
}

fn open_log(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| format!("{}: {error}", path.display()))
}
