//! Sources of the kernels, and what they are given: `kernels/` holds the text, `docs/cuda.md` the reasons.

use std::fmt::Write;
use std::ops::Range;

use codec::gf;

use crate::Matrix;
use crate::schedule::Schedule;

const PRELUDE: &str = include_str!("../kernels/prelude.cuh");
const PERMUTE: &str = include_str!("../kernels/permute.cuh");
const HORNER: &str = include_str!("../kernels/horner.cuh");
const GENERIC: &str = include_str!("../kernels/generic.cu");
const SPECIALISED: &str = include_str!("../kernels/specialised.cu");

/// The generic kernels, compiled for the oldest cards that they are for; the driver translates it for the card.
pub const GENERIC_PTX: &str = include_str!("../kernels/generic.ptx");
/// What [`GENERIC_PTX`] was compiled for: Volta and later.
pub const GENERIC_ARCHITECTURE: &str = "compute_70";
/// Outputs that a block of a generic kernel computes.
pub(crate) const GENERIC_OUTPUTS: u32 = 8;
/// Threads of a block.
pub(crate) const THREADS: u32 = 128;
/// Bytes that a block computes of each chunk.
pub(crate) const TILE_BYTES: u64 = THREADS as u64 * 16;
/// Words of a coefficient's tables.
const TABLE_WORDS: usize = 8;
/// Coefficients of one compiled kernel at most: beyond, its instructions would not stay in their cache.
const MAX_PART: usize = 512;
/// Most outputs of one: their sums are in registers, and one of twice as many takes longer than two.
const MAX_PART_ROWS: usize = 8;
/// Fewest outputs of each of several kernels for a matrix: each reads all sources.
const MIN_PART_ROWS: usize = 4;
/// Largest matrices that are worth compiling: it takes seconds.
const MAX_COMPILED: usize = 4096;
/// Sources that a compiled kernel has in registers at a time.
const GROUP: usize = 20;

/// The sums of each group of sources: row `8 o + b` of one is the sum of the sources whose coefficient for output `o` has bit `b`.
fn schedules(matrix: &Matrix) -> Vec<Schedule> {
    let firsts = (0..matrix.columns()).step_by(GROUP);
    firsts.map(|first| schedule(matrix, first..matrix.columns().min(first + GROUP))).collect()
}

fn schedule(matrix: &Matrix, sources: Range<usize>) -> Schedule {
    let has_bit = |row: usize, s: usize| {
        matrix.coefficients()[row / 8 * matrix.columns() + sources.start + s] >> (row % 8) & 1 == 1
    };
    let rows = (0..8 * matrix.rows()).map(|row| (0..sources.len()).filter(|s| has_bit(row, *s)).collect());
    Schedule::of(sources.len(), rows.collect())
}

/// Integer instructions of a compiled kernel for each 32-bit word of a source, as they are written: a compiler may do better.
#[must_use]
pub fn operations(matrix: &Matrix) -> f64 {
    let cost = |schedule: &Schedule| {
        let steps: usize = (0..matrix.rows()).map(|o| degree(schedule, o).unwrap_or(0)).sum();
        schedule.additions() + 4 * steps
    };
    schedules(matrix).iter().map(cost).sum::<usize>() as f64 / matrix.columns() as f64
}

/// The function `combine_group` of `kernels/specialised.cu`.
fn combine_group(matrix: &Matrix) -> String {
    let mut text =
        "__device__ __forceinline__ void combine_group(u32 group, const u32 *x, u32 *sums) {\n".to_owned();
    for (group, schedule) in schedules(matrix).iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "    if (group == {group}) {{");
        schedule.write_shared(&mut text);
        (0..matrix.rows()).for_each(|output| write_polynomial(&mut text, schedule, output));
        text.push_str("    }\n");
    }
    text + "}\n"
}

/// The highest power of x in the row of `output`.
fn degree(schedule: &Schedule, output: usize) -> Option<usize> {
    (0..8).rev().find(|bit| schedule.row(8 * output + bit).is_some())
}

fn write_polynomial(text: &mut String, schedule: &Schedule, output: usize) {
    let Some(top) = degree(schedule, output) else { return };
    let mut sum = String::new();
    for bit in (0..=top).rev() {
        let terms = schedule.row(8 * output + bit);
        sum = match (sum.is_empty(), terms) {
            (true, terms) => terms.unwrap_or_default(),
            (false, Some(terms)) => format!("times_x({sum}) ^ {terms}"),
            (false, None) => format!("times_x({sum})"),
        };
    }
    let _ = writeln!(text, "        sums[{output}] ^= {sum};");
}

/// The matrices, of some rows each, whose kernels together compute `matrix`; none if it is not worth while to compile them.
pub(crate) fn parts(matrix: &Matrix) -> Option<Vec<Matrix>> {
    let rows = matrix.rows();
    let most = MAX_PART_ROWS.min(MAX_PART / matrix.columns());
    let is_worth_while = rows <= most || most >= MIN_PART_ROWS && matrix.coefficients().len() <= MAX_COMPILED;
    is_worth_while.then(|| matrix.rows_by(rows.div_ceil(rows.div_ceil(most))))
}

/// The text of the generic kernels `combine_set` and `combine_add`.
#[must_use]
pub fn generic_source() -> String {
    [PRELUDE, PERMUTE, GENERIC].concat()
}

/// The text of the kernel `combine` for `matrix`.
#[must_use]
pub fn specialised_source(matrix: &Matrix) -> String {
    let mut known = String::new();
    for (name, value) in [
        ("SOURCES", matrix.columns()),
        ("OUTPUTS", matrix.rows()),
        ("ADD", usize::from(matrix.adds())),
        ("GROUP", GROUP.min(matrix.columns())),
    ] {
        // Writing to a string does not fail.
        let _ = writeln!(known, "#define {name} {value}");
    }
    [&known, PRELUDE, HORNER, &combine_group(matrix), SPECIALISED].concat()
}

/// The tables of all coefficients, as `kernels/generic.cu` wants them.
pub(crate) fn tables(matrix: &Matrix) -> Vec<u8> {
    let words = matrix.coefficients().iter().flat_map(|c| table(*c));
    words.flat_map(u32::to_le_bytes).collect()
}

/// Products with 0..7, with 16 times that, and with 0, 8, 128 and 136.
fn table(c: u8) -> [u32; TABLE_WORDS] {
    let four = |factors: [u8; 4]| u32::from_le_bytes(factors.map(|factor| gf::mul(c, factor)));
    [
        four([0, 1, 2, 3]),
        four([4, 5, 6, 7]),
        four([0x00, 0x10, 0x20, 0x30]),
        four([0x40, 0x50, 0x60, 0x70]),
        four([0x00, 0x08, 0x80, 0x88]),
        0,
        0,
        0,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_ones_is_added_up() {
        let ones = Matrix::new(10, vec![1; 10]).unwrap();
        assert_eq!(operations(&ones), 0.5);
        assert!(specialised_source(&ones).contains("sums[0] ^= x[0] ^ x[1] ^"));
    }

    #[test]
    fn large_matrices_are_cut_into_rows_of_like_number() {
        let rows = |k, m| {
            let matrix = Matrix::new(k, vec![3; k * m]).unwrap();
            parts(&matrix).map(|parts| parts.iter().map(Matrix::rows).collect::<Vec<_>>())
        };
        assert_eq!(rows(10, 8), Some(vec![8]));
        assert_eq!(rows(10, 9), Some(vec![5, 4]));
        assert_eq!(rows(10, 128), Some(vec![8; 16]));
        assert_eq!(rows(64, 20), Some(vec![7, 7, 6]));
        assert_eq!(rows(255, 2), Some(vec![2]));
        assert_eq!(rows(200, 4), None, "each part would have two rows");
        assert_eq!(rows(64, 128), None, "it would take too long");
    }

    #[test]
    fn tables_hold_products() {
        let bytes = tables(&Matrix::new(1, vec![0x1d]).unwrap());
        let product = |factor| gf::mul(0x1d, factor);
        assert_eq!(bytes.len(), 32);
        assert!((0..8).all(|i| bytes[i] == product(i as u8) && bytes[8 + i] == product(16 * i as u8)));
        assert_eq!(bytes[16..20], [0, product(8), product(128), product(136)]);
    }
}
