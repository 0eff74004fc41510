//! Cells of a stripe and their parities: coded of a value that is here, or made of those that have come.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use codec::Code;
use types::{CellAt, Stripe, checksum, checksum_combine};

/// A stripe that is coded: for each role its cells, their checksums, and that of the chunk.
pub(super) struct Coded {
    pub roles: Vec<Chunk>,
    /// CRC32C of the stripe's bytes.
    pub checksum: u32,
}

/// What goes to one holder.
pub(super) struct Chunk {
    pub cells: VecDeque<Bytes>,
    pub checksums: Vec<u32>,
    /// CRC32C of the whole chunk.
    pub sum: u32,
}

impl Coded {
    /// The stripe of a value.
    pub(super) fn of(code: &Code, stripe: Stripe, value: &Bytes) -> Self {
        let empty = || Chunk { cells: VecDeque::new(), checksums: Vec::new(), sum: 0 };
        let mut roles: Vec<Chunk> = (0..code.n()).map(|_| empty()).collect();
        let (mut sum, k) = (0, code.k() as u8);
        for row in 0..stripe.rows {
            let data: Vec<Bytes> =
                (0..k).map(|role| data_cell(&stripe, CellAt { row, role }, value)).collect();
            let parities = parities(code, &data, stripe.cell_len as usize);
            for (role, (chunk, cell)) in roles.iter_mut().zip(data.into_iter().chain(parities)).enumerate() {
                let of_cell = checksum(&cell);
                if role < usize::from(k) {
                    let filled = stripe.filled(CellAt { row, role: role as u8 }) as usize;
                    let of_value = if filled == cell.len() { of_cell } else { checksum(&cell[..filled]) };
                    sum = checksum_combine(sum, of_value, filled);
                }
                chunk.add(cell, of_cell);
            }
        }
        Self { roles, checksum: sum }
    }
}

impl Chunk {
    fn add(&mut self, cell: Bytes, checksum: u32) {
        self.sum = checksum_combine(self.sum, checksum, cell.len());
        self.checksums.push(checksum);
        self.cells.push_back(cell);
    }
}

/// A cell of the value, without a copy but for the last ones, behind which all is zero.
fn data_cell(stripe: &Stripe, cell: CellAt, value: &Bytes) -> Bytes {
    let cell_len = stripe.cell_len as usize;
    let filled = stripe.filled(cell) as usize;
    // In bounds: what is filled lies within the value.
    let at = usize::try_from(stripe.start + stripe.offset(cell)).unwrap_or(usize::MAX);
    if filled == cell_len {
        return value.slice(at..at + filled);
    }
    let mut cell = BytesMut::zeroed(cell_len);
    if filled > 0 {
        cell[..filled].copy_from_slice(&value[at..at + filled]);
    }
    cell.freeze()
}

fn parities(code: &Code, data: &[Bytes], cell_len: usize) -> Vec<Bytes> {
    let sources: Vec<&[u8]> = data.iter().map(|cell| &cell[..]).collect();
    let mut sums = vec![vec![0; cell_len]; code.m()];
    let mut outputs: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&sources, &mut outputs).expect("cells of one length, as many as the code has");
    sums.into_iter().map(Bytes::from).collect()
}

/// Makes the data cells of a row that are missing of those that are here; whether all are here then, and whether any was made.
pub(super) fn mend(code: &Code, cells: &mut [Option<Bytes>]) -> Option<bool> {
    let present: Vec<usize> = (0..cells.len()).filter(|role| cells[*role].is_some()).collect();
    let wanted: Vec<usize> = (0..code.k()).filter(|role| cells[*role].is_none()).collect();
    if wanted.is_empty() {
        return Some(false);
    }
    let plan = code.plan(&present, &wanted).ok()?;
    let sources: Vec<Bytes> = plan.sources().iter().filter_map(|role| cells[*role].clone()).collect();
    let len = sources.first().map_or(0, Bytes::len);
    let sources: Vec<&[u8]> = sources.iter().map(|cell| &cell[..]).collect();
    let mut made = vec![vec![0; len]; wanted.len()];
    let mut outputs: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run(&sources, &mut outputs).ok()?;
    for (role, bytes) in wanted.into_iter().zip(made) {
        cells[role] = Some(bytes.into());
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use types::Geometry;

    use super::*;

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
            let coded = Coded::of(&code, stripe, &bytes);
            let of_value = &bytes[stripe.start as usize..(stripe.start + stripe.len) as usize];
            assert_eq!(coded.checksum, checksum(of_value));
            assert!(coded.roles.iter().all(|role| role.cells.len() == stripe.rows as usize));
            let row: Vec<Option<Bytes>> = coded.roles.iter().map(|role| role.cells.back().cloned()).collect();
            for (first, second) in [(0, 1), (0, 4), (1, 2), (3, 4)] {
                let mut left = row.clone();
                (left[first], left[second]) = (None, None);
                assert_eq!(mend(&code, &mut left), Some(first < 3));
                assert_eq!(left[..3], row[..3]);
            }
            let mut left = row.clone();
            left[..3].fill(None);
            assert_eq!(mend(&code, &mut left), None, "more than the code makes up for");
        }
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
        let coded = Coded::of(&code, geometry.stripe(0).unwrap(), &bytes);
        for role in &coded.roles {
            let whole: Vec<u8> = role.cells.iter().flat_map(|cell| cell.to_vec()).collect();
            assert_eq!(role.sum, checksum(&whole));
        }
    }
}
