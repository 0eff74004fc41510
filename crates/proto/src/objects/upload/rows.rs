//! The bytes of a value as they come: dealt into cells, and coded row by row.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cluster::Protection;
use codec::Coder;
use smallvec::SmallVec;
use types::{Geometry, Stripe, checksum, checksum_combine};
use wire::object::Checked;

/// A row that is whole: a cell for each role.
pub(super) struct Row {
    pub stripe: Stripe,
    pub cells: SmallVec<[Checked; 8]>,
}

/// See the module.
pub(super) struct Rows {
    geometry: Geometry,
    protection: Arc<Protection>,
    /// The stripe that the next bytes are of; none behind the last one.
    stripe: Option<Stripe>,
    /// The row in it.
    row: u32,
    /// Cells of it that are whole.
    cells: SmallVec<[Checked; 8]>,
    /// The one that is not.
    part: BytesMut,
    /// Of all bytes so far.
    checksum: u32,
}

impl Rows {
    pub(super) fn new(geometry: Geometry, protection: Arc<Protection>) -> Self {
        Self {
            geometry,
            protection,
            stripe: geometry.stripe(0),
            row: 0,
            cells: SmallVec::new(),
            part: BytesMut::new(),
            checksum: 0,
        }
    }

    /// The same before anything has come.
    pub(super) fn emptied(&self) -> Self {
        Self::new(self.geometry, Arc::clone(&self.protection))
    }

    /// The stripe that the next bytes are of.
    pub(super) fn stripe(&self) -> Option<u32> {
        self.stripe.map(|stripe| stripe.index)
    }

    /// Whether everything has come.
    pub(super) fn is_at_end(&self) -> bool {
        self.stripe.is_none()
    }

    /// Bytes that complete the cell which is under way.
    pub(super) fn wanted(&self) -> usize {
        let filled = self.stripe.map_or(0, |stripe| stripe.filled(self.geometry.k, self.row, self.role()));
        filled as usize - self.part.len()
    }

    /// CRC32C of everything that has come.
    pub(super) fn checksum(&self) -> u32 {
        self.checksum
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.part.capacity() + self.cells.iter().map(|cell| cell.bytes.len()).sum::<usize>()
    }

    fn role(&self) -> u8 {
        self.cells.len() as u8
    }

    /// Takes bytes, no more than are wanted; a row, if they complete one.
    pub(super) fn feed(&mut self, coder: &Coder, bytes: Bytes) -> Option<Row> {
        let stripe = self.stripe?;
        debug_assert!(bytes.len() <= self.wanted(), "no more than is wanted comes");
        let is_whole_cell = self.part.is_empty() && bytes.len() == stripe.cell_len as usize;
        if is_whole_cell {
            self.end_cell(bytes, stripe.cell_len);
        } else {
            self.part.reserve(stripe.cell_len as usize - self.part.len());
            self.part.extend_from_slice(&bytes);
            if self.wanted() > 0 {
                return None;
            }
            let filled = self.part.len() as u32;
            self.part.resize(stripe.cell_len as usize, 0);
            let cell = std::mem::take(&mut self.part).freeze();
            self.end_cell(cell, filled);
        }
        // Behind the end of the value all is zero.
        while self.role() < self.geometry.k && self.wanted() == 0 {
            let zero = Bytes::from(vec![0; stripe.cell_len as usize]);
            self.end_cell(zero, 0);
        }
        (self.role() == self.geometry.k).then(|| self.end_row(coder, stripe))
    }

    /// A cell is whole, whose first `filled` bytes are the value's.
    fn end_cell(&mut self, bytes: Bytes, filled: u32) {
        let cell = Checked::new(bytes);
        let of_value = if filled as usize == cell.bytes.len() {
            cell.checksum
        } else {
            checksum(&cell.bytes[..filled as usize])
        };
        self.checksum = checksum_combine(self.checksum, of_value, filled as usize);
        self.cells.push(cell);
    }

    fn end_row(&mut self, coder: &Coder, stripe: Stripe) -> Row {
        let mut cells = std::mem::take(&mut self.cells);
        cells.extend(parities(coder, &self.protection, &cells));
        self.row += 1;
        if self.row == stripe.rows {
            self.row = 0;
            self.stripe = self.geometry.stripe(stripe.index + 1);
        }
        Row { stripe, cells }
    }
}

/// The parity cells of a row.
fn parities(coder: &Coder, protection: &Protection, data: &[Checked]) -> Vec<Checked> {
    let (code, len) = (protection.code(), data.first().map_or(0, |cell| cell.bytes.len()));
    let sources: SmallVec<[&[u8]; 16]> = data.iter().map(|cell| &cell.bytes[..]).collect();
    let mut sums = vec![vec![0; len]; code.m()];
    let mut outputs: SmallVec<[&mut [u8]; 8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
    coder.encode(code, &sources, &mut outputs).expect("cells of one length, as many as the code has");
    drop(outputs);
    sums.into_iter().map(|sum| Checked::new(sum.into())).collect()
}
