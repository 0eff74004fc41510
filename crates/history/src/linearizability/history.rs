//! Histories: what clients asked and saw, and how that is written down.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A key or a value. Shown with escapes; in JSON a string with one character (U+0000 to U+00FF) for each byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Bytes {
    fn from(bytes: &T) -> Self {
        Self(bytes.as_ref().to_vec())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 40;
        write!(f, "\"{}\"", self.0[..self.0.len().min(SHOWN)].escape_ascii())?;
        if self.0.len() > SHOWN { write!(f, "... ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.iter().map(|byte| char::from(*byte)).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        bytes.map(Self).map_err(|_| serde::de::Error::custom("a character beyond U+00FF stands for no byte"))
    }
}

/// When something happened: a time in any unit (one clock for the whole history), and an order among equal times.
///
/// Operations of which neither *ended before* the other began are concurrent, and so are those that touch at equal
/// moments: give events that are known to follow each other different orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// The clock.
    pub time: u64,
    /// Breaks ties.
    pub order: u64,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.time, self.order)
    }
}

/// What a client asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Read.
    Get,
    /// Store in any case.
    Set(Bytes),
    /// Store if there is nothing.
    Add(Bytes),
    /// Store if there is something.
    Replace(Bytes),
    /// Append to what there is.
    Append(Bytes),
    /// Store if what is there has this unique.
    Cas {
        /// The new value.
        value: Bytes,
        /// From an earlier get.
        unique: u64,
    },
    /// Remove.
    Delete,
    /// Give it another time to live, by which it does not end.
    Touch,
    /// Add to a decimal number, modulo 2^64.
    Incr(u64),
    /// Remove whatever there is; of a whole namespace, hence of this key.
    Flush,
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Get: a hit.
    Value {
        /// The value.
        value: Bytes,
        /// Its unique, where asked for.
        cas: Option<u64>,
    },
    /// Set, add, replace, append, cas: done.
    Stored,
    /// Add: there is something. Replace, append: there is nothing.
    NotStored,
    /// Cas: what is there has another unique.
    Exists,
    /// Get, cas, delete, touch, incr: there is nothing.
    NotFound,
    /// Delete: done.
    Deleted,
    /// Touch: done.
    Touched,
    /// Incr: the new number.
    Number(u64),
    /// Incr: what is there is not a number.
    NotNumber,
    /// Flush: done.
    Flushed,
}

/// An outcome and when it arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// When the client had it.
    pub at: Moment,
    /// What it says.
    pub outcome: Outcome,
}

/// One request of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Who asked; for reports only.
    pub client: u64,
    /// On which key.
    pub key: Bytes,
    /// What.
    pub op: Op,
    /// When the request left the client.
    pub invoked: Moment,
    /// The answer; none if it never came, and the operation may yet take effect.
    pub answer: Option<Answer>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.answer {
            Some(answer) => write!(f, "[{} .. {}] ", self.invoked, answer.at)?,
            None => write!(f, "[{} .. ?] ", self.invoked)?,
        }
        write!(f, "client {}: {} -> ", self.client, self.op)?;
        match &self.answer {
            Some(answer) => write!(f, "{}", answer.outcome),
            None => f.write_str("unknown"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get => f.write_str("get"),
            Self::Set(value) => write!(f, "set {value}"),
            Self::Add(value) => write!(f, "add {value}"),
            Self::Replace(value) => write!(f, "replace {value}"),
            Self::Append(value) => write!(f, "append {value}"),
            Self::Cas { value, unique } => write!(f, "cas {unique} {value}"),
            Self::Delete => f.write_str("delete"),
            Self::Touch => f.write_str("touch"),
            Self::Incr(by) => write!(f, "incr {by}"),
            Self::Flush => f.write_str("flush"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { value, cas: Some(cas) } => write!(f, "{value} (cas {cas})"),
            Self::Value { value, cas: None } => write!(f, "{value}"),
            Self::Stored => f.write_str("stored"),
            Self::NotStored => f.write_str("not stored"),
            Self::Exists => f.write_str("exists"),
            Self::NotFound => f.write_str("not found"),
            Self::Deleted => f.write_str("deleted"),
            Self::Touched => f.write_str("touched"),
            Self::Number(number) => write!(f, "{number}"),
            Self::NotNumber => f.write_str("not a number"),
            Self::Flushed => f.write_str("flushed"),
        }
    }
}

/// Why a written history could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The source failed.
    #[error("the history cannot be read")]
    Io(#[from] io::Error),
    /// A line is not an operation.
    #[error("line {line} of the history is not an operation")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Operations of many clients on many keys, in the order in which they were invoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    operations: Vec<Operation>,
    /// How many events were recorded: the order among equal times.
    events: u64,
}

impl History {
    /// Records that `client` asks `op` on `key` at `time`. The result names the operation to [`History::answer`].
    pub fn invoke(&mut self, time: u64, client: u64, key: impl Into<Bytes>, op: Op) -> usize {
        let invoked = self.moment(time);
        self.operations.push(Operation { client, key: key.into(), op, invoked, answer: None });
        self.operations.len() - 1
    }

    /// Records the answer to an operation at `time`. An operation that is never answered stays unknown.
    ///
    /// # Panics
    /// If `operation` did not come from [`History::invoke`] of this history.
    pub fn answer(&mut self, time: u64, operation: usize, outcome: Outcome) {
        let at = self.moment(time);
        self.operations[operation].answer = Some(Answer { at, outcome });
    }

    /// Adds an operation as it was recorded elsewhere.
    pub fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// All operations.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operations of each key, in the order in which they were recorded.
    #[must_use]
    pub fn by_key(&self) -> BTreeMap<&Bytes, Vec<&Operation>> {
        let mut keys: BTreeMap<&Bytes, Vec<&Operation>> = BTreeMap::new();
        for operation in &self.operations {
            keys.entry(&operation.key).or_default().push(operation);
        }
        keys
    }

    /// Writes one JSON array a line: all operations of one key, in the order of the keys. What checkers in other
    /// languages read, see `crates/history/porcupine`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_by_key(&self, mut out: impl Write) -> io::Result<()> {
        for operations in self.by_key().values() {
            serde_json::to_writer(&mut out, operations)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Writes one JSON object a line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        for operation in &self.operations {
            serde_json::to_writer(&mut out, operation)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Reads what [`History::write`] wrote. Empty lines are skipped.
    ///
    /// # Errors
    /// `Io`, or `Syntax` with the line.
    pub fn read(input: impl BufRead) -> Result<Self, ReadError> {
        let mut history = Self::default();
        for (index, line) in input.lines().enumerate() {
            let line = line?;
            if !line.trim().is_empty() {
                let parsed = serde_json::from_str(&line);
                history.push(parsed.map_err(|source| ReadError::Syntax { line: index + 1, source })?);
            }
        }
        Ok(history)
    }

    fn moment(&mut self, time: u64) -> Moment {
        self.events += 1;
        Moment { time, order: self.events }
    }
}
