//! Lines and words of a text that is stored under a key, counted by a task that fetches all of it, or by tasks beside the nodes, each of
//! which reads what lies there.
//!
//! Ranges end where they end, and lines elsewhere. So a task skips everything up to the first end of a line in its range, but for the range
//! that the text begins with, and reads on behind its range up to the next one: it never has to look at what lies before.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use gestalt::{Client, Error, NodeId, Reader};
use tokio::io::AsyncReadExt as _;

/// Bytes that are read at once behind the end of a range.
const STEP: u64 = 4 << 10;
/// Bytes of a piece of a value.
const PIECE: usize = 256 << 10;

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines.
    pub lines: u64,
    /// Words in them.
    pub words: u64,
    /// Lines with the word that is looked for.
    pub matches: u64,
    /// Bytes that were read to find that.
    pub bytes: u64,
}

impl Counts {
    /// Of two parts.
    pub fn plus(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            words: self.words + other.words,
            matches: self.matches + other.matches,
            bytes: self.bytes + other.bytes,
        }
    }

    /// What was found, whatever was read for it.
    pub fn found(self) -> (u64, u64, u64) {
        (self.lines, self.words, self.matches)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.lines, self.words, self.matches, self.bytes)
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [lines, words, matches, bytes] = numbers[..] else {
            return Err(format!("'{text}' is no result"));
        };
        Ok(Self { lines, words, matches, bytes })
    }
}

/// Why nothing was counted.
#[derive(Debug)]
pub enum Failure {
    /// It could not be read.
    Read(Error),
    /// It broke off in the middle.
    Cut(std::io::Error),
    /// There is no such key, or it has another value by now.
    Gone,
    /// Nobody knows where these bytes are, so no task is beside them.
    Nowhere(Range<u64>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "{error}"),
            Self::Cut(error) => write!(f, "{error}"),
            Self::Gone => write!(f, "there is no such value any more"),
            Self::Nowhere(bytes) => write!(f, "nobody has bytes {} to {} now", bytes.start, bytes.end),
        }
    }
}

/// Counts what lines there are in bytes that come piece by piece.
struct Counter<'a> {
    word: &'a [u8],
    /// The line that has begun.
    open: Vec<u8>,
    counts: Counts,
}

impl<'a> Counter<'a> {
    fn new(word: &'a [u8]) -> Self {
        Self { word, open: Vec::new(), counts: Counts::default() }
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.open.extend_from_slice(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.open.extend_from_slice(bytes);
    }

    fn end_line(&mut self) {
        let line = &self.open[..];
        self.counts.lines += 1;
        self.counts.words +=
            line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() as u64;
        let is_in = |word: &[u8]| line.windows(word.len().max(1)).any(|part| part == word);
        self.counts.matches += u64::from(is_in(self.word));
        self.open.clear();
    }

    /// The text ends here.
    fn end(mut self) -> Counts {
        if !self.open.is_empty() {
            self.end_line();
        }
        self.counts
    }
}

/// All of it, fetched by this client.
pub async fn fetched(client: &Client, key: &str, word: &[u8]) -> Result<Counts, Failure> {
    let reader = client.reader(key.to_owned(), None).await.map_err(Failure::Read)?.ok_or(Failure::Gone)?;
    let mut counter = Counter::new(word);
    let bytes = pieces(reader, |piece| counter.feed(piece)).await?;
    Ok(Counts { bytes, ..counter.end() })
}

/// The lines that begin behind the first byte of a range which lies on `node`, up to the one that begins where it ends; read by a client
/// beside the node.
pub async fn beside(client: &Client, key: &str, word: &[u8], node: NodeId) -> Result<Counts, Failure> {
    let places = client.locate(key.to_owned()).await.map_err(Failure::Read)?;
    let (meta, _) = places.found.as_ref().ok_or(Failure::Gone)?;
    let (version, len) = (meta.version, meta.value_len);
    let mut all = Counts::default();
    for range in places.ranges().filter(|range| range.node == Some(node)) {
        all = all.plus(in_range(client, key, word, (version, len), range.bytes).await?);
    }
    Ok(all)
}

/// The nodes that have bytes of a value.
pub async fn nodes(client: &Client, key: &str) -> Result<Vec<NodeId>, Failure> {
    let places = client.locate(key.to_owned()).await.map_err(Failure::Read)?;
    let mut nodes = Vec::new();
    for range in places.ranges() {
        nodes.push(range.node.ok_or(Failure::Nowhere(range.bytes))?);
    }
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.is_empty() { Err(Failure::Gone) } else { Ok(nodes) }
}

async fn in_range(
    client: &Client,
    key: &str,
    word: &[u8],
    (version, len): (u64, u64),
    range: Range<u64>,
) -> Result<Counts, Failure> {
    let mut counter = Counter::new(word);
    let mut skips = range.start > 0;
    let reader = part(client, key, version, range.clone()).await?;
    let mut bytes = pieces(reader, |piece| {
        if !skips {
            counter.feed(piece);
        } else if let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            skips = false;
            counter.feed(&piece[end + 1..]);
        }
    })
    .await?;
    // Where no line begins, none is to be completed.
    let (mut at, mut goes_on) = (range.end, !skips);
    while goes_on && at < len {
        let next = at..len.min(at + STEP);
        at = next.end;
        let reader = part(client, key, version, next).await?;
        bytes += pieces(reader, |piece| {
            let end = piece.iter().position(|byte| *byte == b'\n');
            let line = end.map_or(piece, |end| &piece[..=end]);
            if goes_on {
                counter.feed(line);
            }
            goes_on &= end.is_none();
        })
        .await?;
    }
    Ok(Counts { bytes, ..counter.end() })
}

/// Bytes of the value of this version.
async fn part(client: &Client, key: &str, version: u64, bytes: Range<u64>) -> Result<Reader, Failure> {
    let range = gestalt::Range { start: bytes.start, len: bytes.end - bytes.start };
    let found = client.reader(key.to_owned(), Some(range)).await.map_err(Failure::Read)?;
    found.filter(|reader| reader.meta().version == version).ok_or(Failure::Gone)
}

/// Gives all that comes to `take`; how many bytes that are.
async fn pieces(mut reader: Reader, mut take: impl FnMut(&[u8])) -> Result<u64, Failure> {
    let (mut buffer, mut bytes) = (vec![0; PIECE], 0);
    loop {
        let count = reader.read(&mut buffer).await.map_err(Failure::Cut)?;
        if count == 0 {
            return Ok(bytes);
        }
        take(&buffer[..count]);
        bytes += count as u64;
    }
}
