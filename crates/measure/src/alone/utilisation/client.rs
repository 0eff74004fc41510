//! A client that writes and deletes keys by number, in batches, through any node, and counts what is refused.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};

/// Commands in flight on one connection.
const BATCH: usize = 256;

/// Connections to all nodes.
pub struct Client {
    nodes: Vec<BufReader<TcpStream>>,
    next: usize,
}

/// What became of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that did what they were to do.
    pub done: u64,
    /// Those refused for want of memory.
    pub refused: u64,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// Sets key `key` to a value of so many bytes.
    Set(u64, usize),
    /// Deletes key `key`.
    Delete(u64),
}

impl Client {
    /// Connects.
    pub fn new(nodes: &[SocketAddr]) -> Result<Self, String> {
        let connect = |node: &SocketAddr| TcpStream::connect(node).map(BufReader::new);
        let nodes: Result<Vec<_>, _> = nodes.iter().map(connect).collect();
        Ok(Self { nodes: nodes.map_err(|error| error.to_string())?, next: 0 })
    }

    /// Runs all of `commands`, batch by batch; each batch goes through another node.
    pub fn run(&mut self, commands: impl IntoIterator<Item = Command>) -> Result<Tally, String> {
        let mut all = Tally::default();
        let mut commands = commands.into_iter().peekable();
        while commands.peek().is_some() {
            let batch: Vec<Command> = commands.by_ref().take(BATCH).collect();
            let tally = self.batch(&batch)?;
            all.done += tally.done;
            all.refused += tally.refused;
        }
        Ok(all)
    }

    fn batch(&mut self, batch: &[Command]) -> Result<Tally, String> {
        let mut text = String::new();
        batch.iter().for_each(|command| command.print(&mut text));
        self.next = (self.next + 1) % self.nodes.len();
        let node = &mut self.nodes[self.next];
        node.get_mut().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
        // Only now: the answers of a whole batch are short, and wait in the sockets' buffers.
        let mut tally = Tally::default();
        for _ in batch {
            let mut line = String::new();
            node.read_line(&mut line).map_err(|error| error.to_string())?;
            match line.trim_end() {
                "STORED" | "DELETED" | "NOT_FOUND" => tally.done += 1,
                refused if refused.contains("out of memory") => tally.refused += 1,
                other => return Err(format!("a node answers '{other}'")),
            }
        }
        Ok(tally)
    }
}

impl Command {
    /// Keys have 24 bytes, as those of `gestalt bench`.
    fn print(&self, text: &mut String) {
        let printed = match self {
            Self::Set(key, len) => {
                let filler = (b'a' + (key % 26) as u8) as char;
                write!(text, "set k{key:023} 0 0 {len}\r\n").map(|()| {
                    text.extend(std::iter::repeat_n(filler, *len));
                    text.push_str("\r\n");
                })
            }
            Self::Delete(key) => write!(text, "delete k{key:023}\r\n"),
        };
        printed.expect("a string takes everything");
    }
}
