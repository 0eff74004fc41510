//! Chunks that a client reads and puts here itself. Nothing here knows a worker.
//!
//! Of a chunk that is put nothing is kept here: each cell goes on to the worker of its group as it comes, and no more of them are on their
//! way there than [`NATIVE_CELLS_BYTES`].

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use native::{Code, MAX_PUTS, code_of};
use types::op::{Failure, Outcome};

use crate::limits::{NATIVE_CELLS_BYTES, NATIVE_FETCHES};
use crate::workers::streams::News;

/// All of one connection. See the module.
#[derive(Default)]
pub(super) struct Chunks {
    puts: BTreeMap<u64, Put>,
    /// Reads for which the worker of the group has been asked.
    fetches: BTreeSet<u64>,
}

/// A chunk that comes.
struct Put {
    /// The worker of its group.
    shard: u16,
    cell_len: usize,
    /// Cells that are still to come.
    left: u32,
    /// Bytes that this worker has not taken.
    untaken: usize,
}

/// What a client has sent that is no cell of its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoCell;

/// What is to be said to the client.
pub(super) enum Said {
    /// What became of a chunk that it has put.
    Put(Code),
    /// What is here of a chunk that it wants.
    Cells(Vec<(Bytes, u32)>),
    /// Nothing.
    Nothing,
}

impl Chunks {
    /// Requests that have no answer.
    pub(super) fn len(&self) -> usize {
        self.puts.len() + self.fetches.len()
    }

    /// Bytes that are on their way to workers.
    pub(super) fn untaken(&self) -> usize {
        self.puts.values().map(|put| put.untaken).sum()
    }

    /// Whether no more cells may come now.
    pub(super) fn are_full(&self) -> bool {
        self.untaken() >= NATIVE_CELLS_BYTES
    }

    /// Whether the client has to send something now.
    pub(super) fn wait_for_client(&self) -> bool {
        self.puts.values().any(|put| put.left > 0)
    }

    /// A chunk of so many cells begins to come; whether there may be one more.
    pub(super) fn begin_put(&mut self, id: u64, shard: u16, cell_len: u32, cells: u32) -> bool {
        if self.puts.len() >= MAX_PUTS {
            return false;
        }
        self.puts.insert(id, Put { shard, cell_len: cell_len as usize, left: cells, untaken: 0 });
        true
    }

    /// Rows are asked for; whether they may be, beside so many whose bytes are being sent.
    pub(super) fn begin_fetch(&mut self, id: u64, sending: usize) -> bool {
        let may = self.fetches.len() + sending < NATIVE_FETCHES;
        if may {
            self.fetches.insert(id);
        }
        may
    }

    /// A piece comes: the worker to which it goes if it is the next cell of a chunk. None if that is not wanted any more.
    pub(super) fn take_piece(&mut self, id: u64, piece: &Bytes) -> Result<Option<u16>, NoCell> {
        let Some(put) = self.puts.get_mut(&id) else { return Ok(None) };
        if put.left == 0 || piece.len() != put.cell_len {
            return Err(NoCell);
        }
        put.left -= 1;
        put.untaken += piece.len();
        Ok(Some(put.shard))
    }

    /// The worker of a group says something; what is to be said of it, if it was about one of these.
    pub(super) fn hear(&mut self, id: u64, news: &News) -> Option<Said> {
        if self.fetches.remove(&id) {
            let cells = match news {
                News::Cells(cells) => cells.iter().map(|cell| (cell.bytes.clone(), cell.checksum)).collect(),
                _ => Vec::new(),
            };
            return Some(Said::Cells(cells));
        }
        let put = self.puts.get_mut(&id)?;
        match news {
            News::Room(taken) => {
                put.untaken = put.untaken.saturating_sub(*taken);
                Some(Said::Nothing)
            }
            News::Ended(outcome) => {
                self.puts.remove(&id);
                Some(Said::Put(code_of_put(outcome)))
            }
            _ => None,
        }
    }

    /// One is not wanted any more: the worker that has a part of it. None if there was none.
    pub(super) fn remove(&mut self, id: u64) -> Option<u16> {
        self.puts.remove(&id).map(|put| put.shard)
    }

    /// Those of which cells are missing that nobody will send.
    pub(super) fn incomplete(&self) -> Vec<u64> {
        self.puts.iter().filter(|(_, put)| put.left > 0).map(|(id, _)| *id).collect()
    }

    /// All chunks that come.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.puts.keys().copied().collect()
    }
}

fn code_of_put(outcome: &Outcome) -> Code {
    match outcome {
        Outcome::Noted => Code::Placed,
        Outcome::Failed(Failure::WrongPrimary) => Code::Moved,
        outcome => code_of(outcome),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_the_cells_that_were_announced() {
        let (mut chunks, cell) = (Chunks::default(), Bytes::from_static(&[7; 64]));
        assert!(chunks.begin_put(1, 3, 64, 2));
        assert_eq!(chunks.take_piece(1, &cell.slice(1..)), Err(NoCell));
        assert_eq!(chunks.take_piece(1, &cell), Ok(Some(3)));
        assert!(chunks.wait_for_client());
        assert_eq!(chunks.take_piece(1, &cell), Ok(Some(3)));
        assert_eq!((chunks.take_piece(1, &cell), chunks.wait_for_client()), (Err(NoCell), false));
        assert_eq!(chunks.take_piece(2, &cell), Ok(None), "nobody has announced it");
        let said = chunks.hear(1, &News::Ended(Outcome::Failed(Failure::WrongPrimary)));
        assert!(matches!(said, Some(Said::Put(Code::Moved))));
        assert_eq!((chunks.take_piece(1, &cell), chunks.len()), (Ok(None), 0));
    }

    #[test]
    fn cells_that_nobody_has_taken_hold_up_the_client() {
        let (mut chunks, cell) = (Chunks::default(), Bytes::from(vec![7; 1 << 16]));
        let count = (NATIVE_CELLS_BYTES / cell.len()) as u32;
        assert!(chunks.begin_put(1, 0, 1 << 16, count + 1));
        (0..count).for_each(|_| assert_eq!(chunks.take_piece(1, &cell), Ok(Some(0))));
        assert!(chunks.are_full());
        chunks.hear(1, &News::Room(cell.len()));
        assert!(!chunks.are_full());
    }

    #[test]
    fn only_so_many_are_under_way_at_once() {
        let mut chunks = Chunks::default();
        let begun = (0..).take_while(|id| chunks.begin_put(*id, 0, 64, 1)).count();
        let asked = (1000..).take_while(|id| chunks.begin_fetch(*id, 4)).count();
        assert_eq!((begun, asked), (MAX_PUTS, NATIVE_FETCHES - 4));
    }
}
