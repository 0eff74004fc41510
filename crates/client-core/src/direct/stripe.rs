//! Cells of a stripe and their parities: coded of a value that is here, or made of those that have come.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use codec::Code;
use types::{CellAt, Stripe, checksum, checksum_combine};

/// A stripe as it is coded, row by row: for each role its cells, their checksums, and that of the chunk.
#[derive(Debug)]
pub(super) struct Coded {
    pub stripe: Stripe,
    pub roles: Vec<Chunk>,
    /// CRC32C of the bytes of its rows so far.
    pub checksum: u32,
    /// The next row.
    row: u32,
}

/// What goes to one holder.
#[derive(Debug)]
pub(super) struct Chunk {
    pub cells: VecDeque<Bytes>,
    pub checksums: Vec<u32>,
    /// CRC32C of the whole chunk.
    pub sum: u32,
}

impl Coded {
    /// A stripe whose cells go round the data roles, so that the bytes of a row are those between two places of the value.
    pub(super) fn begin(code: &Code, stripe: Stripe) -> Self {
        let empty = || Chunk { cells: VecDeque::new(), checksums: Vec::new(), sum: 0 };
        Self { stripe, roles: (0..code.n()).map(|_| empty()).collect(), checksum: 0, row: 0 }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.row == self.stripe.rows
    }

    /// How many bytes of the value are in each cell of the next row.
    pub(super) fn row(&self) -> Vec<usize> {
        (0..self.stripe.k).map(|role| self.filled(role)).collect()
    }

    fn filled(&self, role: u8) -> usize {
        self.stripe.filled(CellAt { row: self.row, role }) as usize
    }

    /// Codes the next row, of whose cells these are the bytes.
    pub(super) fn add_row(&mut self, code: &Code, row: Vec<Bytes>) {
        let cell_len = self.stripe.cell_len as usize;
        let data: Vec<Bytes> = row.into_iter().map(|bytes| padded(bytes, cell_len)).collect();
        let parities = parities(code, &data, cell_len);
        for (role, cell) in data.into_iter().chain(parities).enumerate() {
            let of_cell = checksum(&cell);
            if role < usize::from(self.stripe.k) {
                let filled = self.filled(role as u8);
                let of_value = if filled == cell_len { of_cell } else { checksum(&cell[..filled]) };
                self.checksum = checksum_combine(self.checksum, of_value, filled);
            }
            self.roles[role].add(cell, of_cell);
        }
        self.row += 1;
    }
}

/// A cell of the value, without a copy but for the last ones, behind which all is zero.
fn padded(bytes: Bytes, cell_len: usize) -> Bytes {
    if bytes.len() == cell_len {
        return bytes;
    }
    let mut cell = BytesMut::zeroed(cell_len);
    cell[..bytes.len()].copy_from_slice(&bytes);
    cell.freeze()
}

impl Chunk {
    fn add(&mut self, cell: Bytes, checksum: u32) {
        self.sum = checksum_combine(self.sum, checksum, cell.len());
        self.checksums.push(checksum);
        self.cells.push_back(cell);
    }
}

fn parities(code: &Code, data: &[Bytes], cell_len: usize) -> Vec<Bytes> {
    let sources: Vec<&[u8]> = data.iter().map(|cell| &cell[..]).collect();
    let mut sums = zeroed(code.m(), cell_len);
    let mut outputs: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&sources, &mut outputs).expect("cells of one length, as many as the code has");
    sums.into_iter().map(Bytes::from).collect()
}

/// Each as it comes from the allocator: to clone one would copy it.
fn zeroed(count: usize, len: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| vec![0; len]).collect()
}

/// Makes cells of a row, of which there are none, of those that are here; whether any was made. None if these are not enough.
pub(super) fn mend(code: &Code, cells: &mut [Option<Bytes>], wanted: &[usize]) -> Option<bool> {
    let present: Vec<usize> = (0..cells.len()).filter(|role| cells[*role].is_some()).collect();
    if wanted.is_empty() {
        return Some(false);
    }
    let plan = code.plan(&present, wanted).ok()?;
    let sources: Vec<Bytes> = plan.sources().iter().filter_map(|role| cells[*role].clone()).collect();
    let len = sources.first().map_or(0, Bytes::len);
    let sources: Vec<&[u8]> = sources.iter().map(|cell| &cell[..]).collect();
    let mut made = zeroed(wanted.len(), len);
    let mut outputs: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run(&sources, &mut outputs).ok()?;
    for (role, bytes) in wanted.iter().zip(made) {
        cells[*role] = Some(bytes.into());
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use types::Geometry;

    use super::*;

    fn coded(code: &Code, stripe: Stripe, value: &Bytes) -> Coded {
        let mut coded = Coded::begin(code, stripe);
        let mut rest = value.slice(stripe.start as usize..);
        while !coded.is_whole() {
            let row = coded.row().into_iter().map(|len| rest.split_to(len)).collect();
            coded.add_row(code, row);
        }
        coded
    }

    fn mend_all(code: &Code, cells: &mut [Option<Bytes>]) -> Option<bool> {
        let wanted: Vec<usize> = (0..code.k()).filter(|role| cells[*role].is_none()).collect();
        mend(code, cells, &wanted)
    }

    fn value(len: usize) -> Bytes {
        (0..len).map(|at| (at * 31 % 253) as u8).collect::<Vec<u8>>().into()
    }

    #[test]
    fn whatever_two_cells_of_a_row_are_missing_the_others_make_them() {
        let code = Code::rs(3, 2).unwrap();
        let bytes = value(1_000_003);
        let geometry = Geometry {
            len: bytes.len() as u64,
            chunk_len: 1 << 17,
            k: 3,
            layout: types::ObjectLayout::Spread,
        };
        for stripe in geometry.stripes() {
            let coded = coded(&code, stripe, &bytes);
            let of_value = &bytes[stripe.start as usize..(stripe.start + stripe.len) as usize];
            assert_eq!(coded.checksum, checksum(of_value));
            assert!(coded.roles.iter().all(|role| role.cells.len() == stripe.rows as usize));
            let row: Vec<Option<Bytes>> = coded.roles.iter().map(|role| role.cells.back().cloned()).collect();
            for (first, second) in [(0, 1), (0, 4), (1, 2), (3, 4)] {
                let mut left = row.clone();
                (left[first], left[second]) = (None, None);
                assert_eq!(mend_all(&code, &mut left), Some(first < 3));
                assert_eq!(left[..3], row[..3]);
            }
            let mut left = row.clone();
            left[..3].fill(None);
            assert_eq!(mend_all(&code, &mut left), None, "more than the code makes up for");
        }
    }

    #[test]
    fn data_cells_are_the_values_own_bytes_but_for_the_last_ones() {
        let code = Code::rs(3, 2).unwrap();
        let bytes = value(1 << 20);
        let (len, layout) = (bytes.len() as u64, types::ObjectLayout::Spread);
        let geometry = Geometry { len, chunk_len: 1 << 20, k: 3, layout };
        let stripe = geometry.stripe(0).unwrap();
        let coded = coded(&code, stripe, &bytes);
        let is_own = |cell: &&Bytes| bytes.as_ptr_range().contains(&cell.as_ptr());
        let own: Vec<usize> =
            coded.roles.iter().map(|role| role.cells.iter().filter(is_own).count()).collect();
        let rows = stripe.rows as usize;
        assert_eq!(own, [rows, rows, rows - 1, 0, 0]);
    }

    #[test]
    fn a_chunk_has_the_checksum_of_its_cells() {
        let code = Code::rs(2, 1).unwrap();
        let bytes = value(300_000);
        let geometry = Geometry {
            len: bytes.len() as u64,
            chunk_len: 1 << 20,
            k: 2,
            layout: types::ObjectLayout::Spread,
        };
        let coded = coded(&code, geometry.stripe(0).unwrap(), &bytes);
        for role in &coded.roles {
            let whole: Vec<u8> = role.cells.iter().flat_map(|cell| cell.to_vec()).collect();
            assert_eq!(role.sum, checksum(&whole));
        }
    }
}
