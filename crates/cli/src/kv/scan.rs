//! `gestalt kv scan`: the keys that there are, as they come.

use std::io::{self, Write};

use client::{ClientError, FailureCode};
use gestalt::{Bytes, Code, Error};

use super::way::Way;
use crate::output::{self, Format};

const NO_NATIVE: &str =
    "no node speaks the native protocol, over which keys are listed: start them with --native";

/// Prints them.
pub(super) async fn run(way: &Way, prefix: &str, format: Format) -> Result<(), ClientError> {
    let mut keys = way.scan(prefix.as_bytes()).ok_or_else(|| ClientError::Request(NO_NATIVE.to_owned()))?;
    let mut print = Print { format, out: io::stdout().lock(), count: 0 };
    loop {
        let next = keys.next().await;
        let key = next.as_ref().map_or(None, Option::as_ref);
        let is_answer = matches!(next, Ok(_) | Err(Error::Code(Code::Corrupt)));
        // A list that has begun is closed, whatever ends it. A reader that has gone away wants no more.
        if (is_answer || print.count > 0) && !output::goes_on(print.next(key)) {
            return Ok(());
        }
        match next {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            // All that can be read have come.
            Err(Error::Code(Code::Corrupt)) => return Err(damaged(keys.damaged())),
            Err(error) => return Err(way.scan_failed(error)),
        }
    }
}

fn damaged(count: u64) -> ClientError {
    let words = format!(
        "{count} items are damaged: their keys are not among these, and nobody can say which they are"
    );
    ClientError::Server { code: Some(FailureCode::Corrupt), words }
}

/// Lines, or one list of strings: it may be longer than memory.
struct Print<W> {
    format: Format,
    out: W,
    count: u64,
}

impl<W: Write> Print<W> {
    /// The next key, or the end of all.
    fn next(&mut self, key: Option<&Bytes>) -> io::Result<()> {
        self.count += u64::from(key.is_some());
        let text = key.map(|key| shown(key));
        match (self.format, text) {
            (Format::Table, Some(text)) => writeln!(self.out, "{text}"),
            (Format::Table, None) => self.out.flush(),
            (Format::Json, Some(text)) => {
                let before = if self.count == 1 { "[\n" } else { ",\n" };
                write!(self.out, "{before}  {}", serde_json::Value::String(text))
            }
            (Format::Json, None) => {
                let end = if self.count == 0 { "[]\n" } else { "\n]\n" };
                self.out.write_all(end.as_bytes()).and_then(|()| self.out.flush())
            }
        }
    }
}

/// As text if it is some; else with what is none escaped.
fn shown(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => key.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: Format, keys: &[&'static [u8]]) -> String {
        let mut print = Print { format, out: Vec::new(), count: 0 };
        let keys = keys.iter().map(|key| Some(Bytes::from_static(key))).chain([None]);
        keys.for_each(|key| print.next(key.as_ref()).expect("memory takes all"));
        String::from_utf8(print.out).expect("it is text")
    }

    #[test]
    fn keys_are_lines_or_a_list() {
        let keys: [&[u8]; 3] = [b"a", "\u{e4}\"".as_bytes(), b"\0\n"];
        assert_eq!(printed(Format::Table, &keys), "a\n\u{e4}\"\n\\x00\\n\n");
        let list: Vec<String> = serde_json::from_str(&printed(Format::Json, &keys)).expect("JSON");
        assert_eq!(list, ["a", "\u{e4}\"", "\\x00\\n"]);
        assert_eq!(printed(Format::Json, &[]), "[]\n");
    }
}
