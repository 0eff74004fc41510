//! What an operator has `gestalt` do, on one node after the other until it is done.

use std::io::Read;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use crate::cluster::Cluster;

/// For one attempt: whoever is asked may stand still.
const ATTEMPT: Duration = Duration::from_secs(4);
/// Before the next one.
const TRY_AGAIN: Duration = Duration::from_millis(300);

/// See the module.
pub struct Command {
    args: Vec<String>,
    attempts: u16,
    running: Option<(Child, Instant)>,
    next_at: Instant,
    last_words: String,
}

impl Command {
    /// One that is not to be tried before `at`.
    pub fn new(args: Vec<String>, at: Instant) -> Self {
        Self { args, attempts: 0, running: None, next_at: at, last_words: String::new() }
    }

    /// Whether an attempt is to begin now.
    pub fn is_due(&self) -> bool {
        self.running.is_none() && Instant::now() >= self.next_at
    }

    /// The next attempt comes later.
    pub fn postpone(&mut self) {
        self.next_at = Instant::now() + TRY_AGAIN;
    }

    /// What the last attempt came to.
    pub fn last_words(&self) -> &str {
        &self.last_words
    }

    /// Asks the next node.
    ///
    /// # Errors
    /// One line if the program cannot be run.
    pub fn attempt(&mut self, cluster: &Cluster) -> Result<(), String> {
        let child = cluster.operate(self.attempts, &self.args)?;
        self.attempts += 1;
        self.running = Some((child, Instant::now() + ATTEMPT));
        Ok(())
    }

    /// Looks what has become of the attempt; whether it is done.
    pub fn poll(&mut self) -> bool {
        let Some((child, deadline)) = &mut self.running else { return false };
        let ended = child.try_wait().ok().flatten();
        if ended.is_none() && Instant::now() < *deadline {
            return false;
        }
        let is_done = ended.is_some_and(|status| self.has_done(status));
        if let Some((mut child, _)) = self.running.take() {
            // One that has ended does not mind.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.postpone();
        is_done
    }

    /// An attempt without an answer may have done it: then the next one hears that there is nothing to do.
    fn has_done(&mut self, status: ExitStatus) -> bool {
        if let Some((child, _)) = &mut self.running
            && let Some(errors) = &mut child.stderr
        {
            self.last_words.clear();
            let _ = errors.read_to_string(&mut self.last_words);
        }
        let is_so =
            ["' already", "there is no pool '", "there is no namespace '", "it is there", "on its way there"]
                .iter()
                .any(|words| self.last_words.contains(words));
        status.success() || (self.attempts > 1 && is_so)
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
