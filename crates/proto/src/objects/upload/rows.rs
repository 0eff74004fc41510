//! The bytes of a value as they come: dealt into cells by the layout, and coded as soon as a row has all of its data.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cluster::Protection;
use codec::Coder;
use smallvec::SmallVec;
use types::{CellAt, Geometry, ObjectLayout, Stripe, checksum, checksum_combine};
use wire::object::Checked;

/// Cells of a stripe that are there, each with its role: those of a role come in their order.
pub(super) struct Dealt {
    pub stripe: Stripe,
    pub cells: SmallVec<[(u8, Checked); 8]>,
    /// Whether there are no more of it.
    pub is_last: bool,
}

/// See the module.
pub(super) struct Rows {
    geometry: Geometry,
    protection: Arc<Protection>,
    /// The stripe that the next bytes are of; none behind the last one.
    stripe: Option<Stripe>,
    /// How many of its data cells are whole.
    nth: u32,
    /// Those of them whose rows are not coded yet, by row.
    uncoded: BTreeMap<u32, SmallVec<[Checked; 8]>>,
    /// Cells that were not given out yet.
    dealt: SmallVec<[(u8, Checked); 8]>,
    /// The one that is not whole.
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
            nth: 0,
            uncoded: BTreeMap::new(),
            dealt: SmallVec::new(),
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
        let filled = self.stripe.map_or(0, |stripe| stripe.filled(stripe.data_cell(self.nth)));
        filled as usize - self.part.len()
    }

    /// CRC32C of everything that has come.
    pub(super) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// What was given out is the stripe's, though some of it may still be needed here.
    pub(super) fn memory_bytes(&self) -> usize {
        self.part.capacity() + self.dealt.iter().map(|(_, cell)| cell.bytes.len()).sum::<usize>()
    }

    /// Takes bytes, no more than are wanted; cells, if they complete any that can go out.
    pub(super) fn feed(&mut self, coder: &Coder, bytes: Bytes) -> Option<Dealt> {
        let stripe = self.stripe?;
        debug_assert!(bytes.len() <= self.wanted(), "no more than is wanted comes");
        let is_whole_cell = self.part.is_empty() && bytes.len() == stripe.cell_len as usize;
        if is_whole_cell {
            self.end_cell(coder, stripe, bytes, stripe.cell_len);
        } else {
            self.part.reserve(stripe.cell_len as usize - self.part.len());
            self.part.extend_from_slice(&bytes);
            if self.wanted() > 0 {
                return None;
            }
            let filled = self.part.len() as u32;
            self.part.resize(stripe.cell_len as usize, 0);
            let cell = std::mem::take(&mut self.part).freeze();
            self.end_cell(coder, stripe, cell, filled);
        }
        // Behind the end of the value all is zero.
        while self.nth < stripe.data_cells() && self.wanted() == 0 {
            let zero = Bytes::from(vec![0; stripe.cell_len as usize]);
            self.end_cell(coder, stripe, zero, 0);
        }
        let is_last = self.nth == stripe.data_cells();
        if is_last {
            self.nth = 0;
            self.stripe = self.geometry.stripe(stripe.index + 1);
        }
        // Cells of one row go out together: fewer messages are begun for them.
        let is_to_go = stripe.layout != ObjectLayout::Spread || self.uncoded.is_empty();
        is_to_go.then(|| Dealt { stripe, cells: std::mem::take(&mut self.dealt), is_last })
    }

    /// A cell is whole, whose first `filled` bytes are the value's.
    fn end_cell(&mut self, coder: &Coder, stripe: Stripe, bytes: Bytes, filled: u32) {
        let cell = Checked::new(bytes);
        let of_value = if filled as usize == cell.bytes.len() {
            cell.checksum
        } else {
            checksum(&cell.bytes[..filled as usize])
        };
        self.checksum = checksum_combine(self.checksum, of_value, filled as usize);
        let CellAt { row, role } = stripe.data_cell(self.nth);
        self.nth += 1;
        self.dealt.push((role, cell.clone()));
        // Where its own bytes are the copy's, too, they are there already.
        if stripe.has_copy(0) && role != 0 {
            self.dealt.push((0, cell.clone()));
        }
        let data = self.uncoded.entry(row).or_default();
        data.push(cell);
        if data.len() == usize::from(stripe.k) {
            let made = parities(coder, &self.protection, data);
            self.uncoded.remove(&row);
            self.dealt.extend((stripe.k..).zip(made));
        }
    }
}

/// The parity cells of a row.
fn parities(coder: &Coder, protection: &Protection, data: &[Checked]) -> Vec<Checked> {
    let (code, len) = (protection.code(), data.first().map_or(0, |cell| cell.bytes.len()));
    let sources: SmallVec<[&[u8]; 16]> = data.iter().map(|cell| &cell.bytes[..]).collect();
    let mut sums: Vec<Vec<u8>> = (0..code.m()).map(|_| vec![0; len]).collect();
    let mut outputs: SmallVec<[&mut [u8]; 8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
    coder.encode(code, &sources, &mut outputs).expect("cells of one length, as many as the code has");
    drop(outputs);
    sums.into_iter().map(|sum| Checked::new(sum.into())).collect()
}
