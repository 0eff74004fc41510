//! What happened, line by line: printed as it happens, or the last lines kept for a report.

use std::collections::VecDeque;

/// Where lines go.
#[derive(Debug, Default)]
pub struct Trace {
    mode: Mode,
    lines: VecDeque<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Off,
    Print,
    Keep(usize),
}

impl Trace {
    /// Nowhere.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// To standard output, at once.
    #[must_use]
    pub fn print() -> Self {
        Self { mode: Mode::Print, lines: VecDeque::new() }
    }

    /// Into memory, the last `count` lines.
    #[must_use]
    pub fn keep(count: usize) -> Self {
        Self { mode: Mode::Keep(count), lines: VecDeque::new() }
    }

    /// Whether lines go anywhere, so that it is worth while to write them.
    pub(crate) fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    pub(crate) fn line(&mut self, at: u64, text: &str) {
        let line = format!("{:>9}.{:03} {text}", at / 1000, at % 1000);
        match self.mode {
            Mode::Off => {}
            Mode::Print => println!("{line}"),
            // Few lines are kept, and idle talk would push out those that matter.
            Mode::Keep(_) if is_idle_talk(text) => {}
            Mode::Keep(count) => {
                if self.lines.len() == count {
                    self.lines.pop_front();
                }
                self.lines.push_back(line);
            }
        }
    }

    /// The lines that were kept, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

/// What is said all the time, whatever happens: heartbeats, empty frames and their acks.
fn is_idle_talk(text: &str) -> bool {
    ["Heartbeat", "Alive", " empty", " Ack t"].iter().any(|talk| text.contains(talk))
}
