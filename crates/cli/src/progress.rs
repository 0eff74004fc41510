//! A progress line for whatever takes more than two seconds, on a terminal only.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const SILENT_FOR: Duration = Duration::from_secs(2);
const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// One line on standard error that is redrawn in place and wiped at the end.
pub struct Progress {
    started: Instant,
    drawn: Option<Instant>,
    terminal: Terminal,
}

#[derive(PartialEq, Eq)]
enum Terminal {
    Present,
    Absent,
}

impl Progress {
    /// Starts counting.
    pub fn start() -> Self {
        let terminal = if std::io::stderr().is_terminal() { Terminal::Present } else { Terminal::Absent };
        Self { started: Instant::now(), drawn: None, terminal }
    }

    /// Whether `show` would show something now.
    pub fn is_due(&self) -> bool {
        let now = Instant::now();
        let recent = self.drawn.is_some_and(|drawn| now - drawn < REDRAW_EVERY);
        self.terminal == Terminal::Present && !recent && now - self.started >= SILENT_FOR
    }

    /// Shows `text` if it is time to.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if !self.is_due() {
            return;
        }
        self.drawn = Some(Instant::now());
        // Made only now: it may take some asking.
        eprint!("\r\x1b[2K{}", text());
        let _ = std::io::stderr().flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            eprint!("\r\x1b[2K");
            let _ = std::io::stderr().flush();
        }
    }
}
