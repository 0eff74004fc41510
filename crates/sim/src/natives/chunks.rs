//! What a node's end of a connection has of chunks that its client puts and reads itself.

use std::collections::{BTreeMap, BTreeSet};

use native::{Answer, BegunChunks, Cells, Chunked, Code, FromServer, Piece};
use proto::DepositId;
use types::ObjectId;
use wire::object::Checked;

/// See the module.
#[derive(Default)]
pub(super) struct Chunks {
    puts: BTreeMap<u64, Put>,
    /// Those that are not wanted any more, of which an answer may be on its way.
    cancelled: BTreeSet<u64>,
    /// Where the chunks of values go for which the owner is asked.
    begun: BTreeMap<u64, Chunked>,
}

/// A chunk that comes: at which host, and what of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub host: usize,
    pub deposit: DepositId,
    pub cell_len: u32,
    pub left: u32,
}

impl Chunks {
    pub(super) fn expect(&mut self, id: u64, put: Put) {
        self.puts.insert(id, put);
    }

    /// A piece comes: whose cell it is, if it is one; none of a chunk that is not wanted any more. Whether it can be.
    pub(super) fn take(&mut self, piece: &Piece) -> (Option<Put>, bool) {
        let Some(put) = self.puts.get_mut(&piece.id) else {
            return (None, !self.cancelled.contains(&piece.id));
        };
        if put.left == 0 || piece.bytes.len() != put.cell_len as usize {
            return (None, false);
        }
        put.left -= 1;
        (Some(*put), true)
    }

    /// Whether pieces of this request are cells, or were.
    pub(super) fn knows(&self, id: u64) -> bool {
        self.puts.contains_key(&id) || self.cancelled.contains(&id)
    }

    /// A chunk is not wanted any more.
    pub(super) fn cancel(&mut self, id: u64) -> Option<Put> {
        let put = self.puts.remove(&id)?;
        self.cancelled.insert(id);
        Some(put)
    }

    /// Whether that was cancelled which has come to its end now.
    pub(super) fn end(&mut self, id: u64) -> bool {
        self.puts.remove(&id);
        self.cancelled.contains(&id)
    }

    /// All that come.
    pub(super) fn take_all(&mut self) -> Vec<Put> {
        std::mem::take(&mut self.puts).into_values().collect()
    }

    pub(super) fn expect_id(&mut self, id: u64, chunks: Chunked) {
        self.begun.insert(id, chunks);
    }

    /// There is an id for a value; none if nobody has asked.
    pub(super) fn begun(&mut self, id: u64, object: ObjectId, open_ms: u32) -> Option<Answer> {
        let chunks = self.begun.remove(&id)?;
        Some(Answer::Begun(Box::new(BegunChunks { open_ms, chunks: Chunked { object, ..chunks } })))
    }
}

/// Sends rows of a chunk, or says that they are not here.
pub(super) fn send(id: u64, cells: Option<Vec<Checked>>, out: &mut Vec<u8>) {
    let Some(cells) = cells.filter(|cells| !cells.is_empty()) else {
        return Answer::Just(Code::Miss).put(id, out);
    };
    let cell_len = cells[0].bytes.len() as u32;
    let checksums = cells.iter().map(|cell| cell.checksum).collect();
    Answer::Cells(Cells { cell_len, checksums }).put(id, out);
    for cell in cells {
        FromServer::Piece(Piece { id, bytes: cell.bytes }).put(out);
    }
    FromServer::End(id, Code::Whole).put(out);
}
