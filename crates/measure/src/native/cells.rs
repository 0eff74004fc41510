//! What is run, by whom.

use serde::{Deserialize, Serialize};

/// One point: who asks what, how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Bytes of a value.
    pub value: usize,
    /// Connections of the one client thread.
    pub clients: u16,
    /// Requests in flight on each.
    pub depth: u16,
    pub work: Work,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    Set,
    Get,
    /// Half of each.
    Mixed,
}

/// A server and how it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Gestalt over its own protocol.
    Native,
    /// The same; writes have no names.
    Nameless,
    /// The same cluster over memcached's text protocol.
    Text,
    /// As many processes of memcached, one copy.
    Memcached,
}

/// Connections and length of values of the cells that compare costs.
pub const CROWD: u16 = 48;
pub const USUAL: usize = 1024;
/// Requests in flight where nothing blocks: so many, and bytes of values.
const WINDOW: u16 = 32;
const WINDOW_BYTES: usize = 4 << 20;

impl Work {
    pub const ALL: [Self; 3] = [Self::Set, Self::Get, Self::Mixed];

    /// As `gestalt bench` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Get => "c",
            Self::Mixed => "a",
        }
    }

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Get => "GET",
            Self::Mixed => "half of each",
        }
    }
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Native, Self::Nameless, Self::Text, Self::Memcached];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Nameless => "native, writes without names",
            Self::Text => "memcached's protocol",
            Self::Memcached => "memcached",
        }
    }

    /// Flags of `gestalt bench` beside those of the servers.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Native => &["--protocol", "native"],
            Self::Nameless => &["--protocol", "native", "--nameless"],
            Self::Text | Self::Memcached => &[],
        }
    }

    /// Whether `cell` says anything that another side's does not.
    pub fn runs(self, cell: &Cell) -> bool {
        self != Self::Nameless || (cell.clients == CROWD && cell.work == Work::Set)
    }
}

/// Requests in flight of one client that does not wait for each, with values of so many bytes.
pub fn window(value: usize) -> u16 {
    u16::try_from(WINDOW_BYTES / value.max(1)).map_or(WINDOW, |fit| fit.clamp(2, WINDOW))
}

/// One client that waits for each request, and one that does not.
pub fn by_size(value: usize) -> Vec<Cell> {
    let of = |depth| Work::ALL.map(|work| Cell { value, clients: 1, depth, work });
    [of(1), of(window(value))].concat()
}

/// More and more clients that wait.
pub fn by_clients(clients: u16) -> [Cell; 3] {
    Work::ALL.map(|work| Cell { value: USUAL, clients, depth: 1, work })
}

/// Many connections, one request on each and several.
pub fn crowded() -> Vec<Cell> {
    let of = |depth| [Work::Set, Work::Get].map(|work| Cell { value: USUAL, clients: CROWD, depth, work });
    [of(1), of(16)].concat()
}

/// `100 B`, `4 KiB`, `16 MiB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_a_bound_on_bytes_and_is_never_one() {
        assert_eq!([1, 1 << 10, 1 << 20, 16 << 20].map(window), [32, 32, 4, 2]);
    }
}
