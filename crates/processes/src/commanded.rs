//! A process of `gestalt` with any flags, on this machine.
//!
//! The binary has to be built before, as for [`crate::local_cluster`]. Dropping a [`Commanded`] ends it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::binary::gestalt;

/// See the module.
#[derive(Debug)]
pub struct Commanded {
    child: Child,
    log: PathBuf,
}

impl Commanded {
    /// Starts `gestalt` with `args`, and without the variables that this process has for it; it logs into `dir`, as `name`.
    ///
    /// # Errors
    /// One line if it cannot be started.
    pub fn start(name: &str, dir: &Path, args: &[String]) -> Result<Self, String> {
        let log = dir.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).map_err(|error| error.to_string())?;
        let mut command = gestalt()?;
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let child = command.spawn().map_err(|error| format!("cannot start gestalt: {error}"))?;
        Ok(Self { child, log })
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How it has ended by itself; none if it has not within `limit`.
    pub fn ended(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Commanded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
