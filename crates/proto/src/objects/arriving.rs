//! Chunks that come in cell by cell.

use std::collections::BTreeMap;

use store::{ChunkBuilder, ChunkPages, PushError};
use types::{HostId, ObjectId, Time, ViewVersion};
use wire::object::{Put, Refusal};

/// Chunks that may be arriving at one role at once; those that have stood still for longest make way.
const MAX_ARRIVING: usize = 4096;

/// See the module. By the writer's process and its number for the try.
#[derive(Default)]
pub(super) struct Arriving {
    chunks: BTreeMap<(HostId, u64), ArrivingChunk>,
}

/// One of them.
pub(super) struct ArrivingChunk {
    /// As the newest cell came, without its bytes.
    pub put: Put,
    pub builder: ChunkBuilder,
    /// The view that was known here when its first cell came.
    pub known: ViewVersion,
    pub moved: Time,
}

impl Arriving {
    /// Takes one more cell. The chunk, if it was the last one.
    pub(super) fn take(
        &mut self,
        (now, known): (Time, ViewVersion),
        pages: &ChunkPages,
        from: HostId,
        put: Put,
    ) -> Result<Option<ArrivingChunk>, Refusal> {
        let key = (from, put.attempt);
        if put.row == 0 {
            self.make_place();
            let stripe = put.geometry.stripe(put.chunk.stripe).ok_or(Refusal::Gap)?;
            let builder = ChunkBuilder::new(pages, stripe.cell_len, stripe.cells_of(put.member.role.0));
            self.chunks.insert(key, ArrivingChunk { put: without_bytes(&put), builder, known, moved: now });
        }
        let arriving = self.chunks.get_mut(&key).ok_or(Refusal::Gap)?;
        let goes_on = arriving.put.chunk == put.chunk
            && arriving.put.geometry == put.geometry
            && arriving.builder.rows_there() == put.row;
        let pushed = if goes_on {
            arriving.builder.push_checked(&put.cell.bytes, put.cell.checksum).map_err(refusal_of)
        } else {
            Err(Refusal::Gap)
        };
        if let Err(refusal) = pushed {
            self.chunks.remove(&key);
            return Err(refusal);
        }
        (arriving.put, arriving.moved) = (without_bytes(&put), now);
        let is_whole = arriving.builder.rows_there() == arriving.builder.rows();
        Ok(if is_whole { self.chunks.remove(&key) } else { None })
    }

    fn make_place(&mut self) {
        if self.chunks.len() >= MAX_ARRIVING {
            let oldest = self.chunks.iter().min_by_key(|(_, chunk)| chunk.moved).map(|(key, _)| *key);
            oldest.into_iter().for_each(|key| _ = self.chunks.remove(&key));
        }
    }

    /// Nothing more will come of this try.
    pub(super) fn drop_one(&mut self, from: HostId, attempt: u64) {
        self.chunks.remove(&(from, attempt));
    }

    /// Nothing more will come of what `is_over`.
    pub(super) fn forget(&mut self, is_over: impl Fn(&HostId, ObjectId, Time) -> bool) {
        self.chunks.retain(|(from, _), chunk| !is_over(from, chunk.put.chunk.object, chunk.moved));
    }

    /// When the one moved that has stood still for longest.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.chunks.values().map(|chunk| chunk.moved).min()
    }

    /// Memory of what has come.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.chunks.values().map(|chunk| chunk.builder.allocated_bytes()).sum()
    }
}

fn refusal_of(error: PushError) -> Refusal {
    match error {
        PushError::Memory(_) => Refusal::NoRoom,
        PushError::Length { .. } | PushError::Full(_) => Refusal::Gap,
    }
}

fn without_bytes(put: &Put) -> Put {
    let cell = wire::object::Checked::said(bytes::Bytes::new(), put.cell.checksum);
    Put { cell, ..put.clone() }
}
