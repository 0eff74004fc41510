//! Tables for people, JSON for programs.

use std::io::{ErrorKind, IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

/// How a table is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// One JSON document.
    Json,
}

/// Rows under a header, printed with aligned columns.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with as many cells as the header has.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells);
    }

    /// The text, one line a row.
    pub fn render(&self) -> String {
        let width_of = |column: usize| {
            // In characters: some units have more bytes.
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.header[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width_of).collect();
        let header = self.header.iter().map(|name| (*name).to_owned()).collect();
        [&header].into_iter().chain(&self.rows).map(|row: &Vec<String>| line(row, &widths)).collect()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
    format!("{}\n", padded.join("  ").trim_end())
}

/// Says something on standard error, if anybody still reads it: the exit code says it in any case.
pub fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints to standard output; a reader that has gone away is no error. Where it cannot be written, this is the end, with exit code 1.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    goes_on(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Whether somebody still reads what was written to standard output with this result. Where it cannot be written, this is the end, with
/// exit code 1.
pub fn goes_on(written: std::io::Result<()>) -> bool {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&format!("gestalt: cannot write to standard output: {error}"));
            std::process::exit(1);
        }
        written => written.is_ok(),
    }
}

/// Prints `value` as indented JSON and a line end.
pub fn print_json(value: &impl Serialize) {
    let mut text = serde_json::to_string_pretty(value).expect("reports are plain data with string keys");
    text.push('\n');
    print(&text);
}

/// How well something is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Green.
    Good,
    /// Yellow.
    Warning,
    /// Red.
    Bad,
}

/// `text`, coloured if standard output is a terminal and `NO_COLOR` is not set.
pub fn tinted(text: &str, tone: Tone) -> String {
    if !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some() {
        return text.to_owned();
    }
    let code = match tone {
        Tone::Good => 32,
        Tone::Warning => 33,
        Tone::Bad => 31,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["node", "pid"]);
        table.row(vec!["0".into(), "12345".into()]);
        table.row(vec!["10".into(), "7".into()]);
        assert_eq!(table.render(), "node  pid\n0     12345\n10    7\n");
    }
}
