//! Inputs with the answers of memcached 1.6.45, and where ours differ on purpose. The files beside this one are its format:
//!
//! - `== name` begins a case; each has a connection of its own, in this order against one server.
//! - `> input`, or `% input` against a server that asks for user and password (`u`, `p`).
//! - `< answer` if the connection is still open afterwards, `x answer` if it is closed.
//! - `# ` tells why ours is another answer.
//!
//! Bytes are escaped as in Rust; `{3*ab}` is `ababab`, `{keys 3}` is `k0 k1 k2`. The answers are recorded, not written:
//! `cargo xtask test conformance` compares them with what memcached says and prints a new file where they differ.

use std::fmt::Write as _;

/// How a connection ends when its client stops sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Open,
    Closed,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// As it is written.
    pub input: String,
    /// Whether the server asks for a password.
    pub locked: bool,
    /// As it is written.
    pub answer: String,
    pub end: End,
    pub reason: String,
}

/// What goes wrong in lines, numbers and lengths.
pub const BAD_INPUT: &str = include_str!("bad_input.txt");
/// What commands do, beyond a line each.
pub const CONVERSATIONS: &str = include_str!("conversations.txt");
/// What we answer on purpose otherwise, to either.
pub const DEVIATIONS: &str = include_str!("deviations.txt");

/// The cases of a file.
pub fn cases(file: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in file.lines() {
        if let Some(name) = line.strip_prefix("== ") {
            let name = name.to_owned();
            let (input, answer, reason) = Default::default();
            cases.push(Case { name, input, locked: false, answer, end: End::Open, reason });
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        let (mark, rest) = line.split_at(line.len().min(2));
        match mark.trim_end() {
            ">" => case.input = rest.to_owned(),
            "%" => (case.input, case.locked) = (rest.to_owned(), true),
            "<" => case.answer = rest.to_owned(),
            "x" => (case.answer, case.end) = (rest.to_owned(), End::Closed),
            "#" => case.reason = rest.to_owned(),
            _ => assert!(line.is_empty(), "not a golden line: {line}"),
        }
    }
    cases
}

impl Case {
    /// What is sent.
    pub fn input_bytes(&self) -> Vec<u8> {
        bytes(&self.input)
    }

    /// What is answered.
    pub fn answer_bytes(&self) -> Vec<u8> {
        bytes(&self.answer)
    }
}

/// The bytes that a text stands for.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').expect("a brace is closed");
        unescape(before, &mut out);
        match inside.split_once('*') {
            Some((count, what)) => {
                let mut unit = Vec::new();
                unescape(what, &mut unit);
                out.extend(unit.repeat(count.parse().expect("a count")));
            }
            None => {
                let count: usize = inside.strip_prefix("keys ").and_then(|n| n.parse().ok()).expect("keys");
                let keys: Vec<_> = (0..count).map(|i| format!("k{i}")).collect();
                out.extend_from_slice(keys.join(" ").as_bytes());
            }
        }
        rest = after;
    }
    unescape(rest, &mut out);
    out
}

fn unescape(text: &str, out: &mut Vec<u8>) {
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(u8::try_from(char).expect("files are ASCII"));
            continue;
        }
        out.push(match chars.next().expect("an escape has a letter") {
            'r' => b'\r',
            'n' => b'\n',
            't' => b'\t',
            'x' => {
                let hex: String = chars.by_ref().take(2).collect();
                u8::from_str_radix(&hex, 16).expect("two digits")
            }
            other => u8::try_from(other).expect("files are ASCII"),
        });
    }
}

/// Bytes as a golden file has them: lines that repeat are counted.
#[allow(dead_code)]
pub fn written(bytes: &[u8]) -> String {
    let mut out = String::new();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let mut at = 0;
    while let Some(&line) = lines.get(at) {
        let count = lines.iter().skip(at).take_while(|&&other| other == line).count();
        let text = line.escape_ascii().to_string().replace('{', "\\x7b").replace('}', "\\x7d");
        if count > 3 {
            write!(out, "{{{count}*{text}}}").expect("a string takes all");
        } else {
            out.push_str(&text.repeat(count));
        }
        at += count;
    }
    out
}

/// The file that `cases` make.
#[allow(dead_code)]
pub fn file(cases: &[Case]) -> String {
    let mut out = String::new();
    for case in cases {
        let asks = if case.locked { '%' } else { '>' };
        let says = if case.end == End::Open { '<' } else { 'x' };
        let (name, input, answer) = (&case.name, &case.input, &case.answer);
        writeln!(out, "== {name}\n{asks} {input}\n{says} {answer}").expect("a string takes all");
    }
    out
}
