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
pub(crate) const GENERIC_OUTPUTS: u32 = 4;
/// Words of a coefficient's tables.
const TABLE_WORDS: usize = 8;
/// Bytes that a block computes of each chunk, for each vector of a thread.
const STEP_BYTES: u64 = 256 * 16;
/// Largest matrices that are worth a kernel of their own: beyond, its instructions would not stay in their cache.
const MAX_SPECIALISED: usize = 512;
/// Most outputs of one: their sums are in registers.
const MAX_SPECIALISED_ROWS: usize = 16;

/// How a kernel that is compiled for its matrix multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// Rows as polynomials in x, evaluated by Horner's rule.
    Horner,
    /// Bit planes, and sums of planes.
    Bitslice,
}

impl Scheme {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Horner, Self::Bitslice];

    /// As reports have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Horner => "horner",
            Self::Bitslice => "bitslice",
        }
    }

    /// Vectors of 16 bytes that a thread has of each chunk.
    fn vectors(self) -> u32 {
        match self {
            Self::Horner => 1,
            Self::Bitslice => 2,
        }
    }

    /// Sources that are in registers at a time.
    fn group(self) -> usize {
        match self {
            Self::Horner => 20,
            Self::Bitslice => 10,
        }
    }

    /// The sums of each group of sources.
    fn schedules(self, matrix: &Matrix) -> Vec<Schedule> {
        let firsts = (0..matrix.columns()).step_by(self.group());
        firsts.map(|first| self.schedule(matrix, first..matrix.columns().min(first + self.group()))).collect()
    }

    /// Horner: row `8 o + b` is the sum of the sources whose coefficient for output `o` has bit `b`. Planes: row `8 o + r` is plane `r` of
    /// output `o`, and multiplication by `c` adds to it the planes `b` for which bit `r` of `c * x^b` is set.
    fn schedule(self, matrix: &Matrix, sources: Range<usize>) -> Schedule {
        let coefficient =
            |output: usize, s: usize| matrix.coefficients()[output * matrix.columns() + sources.start + s];
        let rows = (0..8 * matrix.rows()).map(|row| {
            let (output, bit) = (row / 8, row % 8);
            match self {
                Self::Horner => {
                    (0..sources.len()).filter(|s| coefficient(output, *s) >> bit & 1 == 1).collect()
                }
                Self::Bitslice => {
                    let adds = |term: &usize| {
                        gf::mul(coefficient(output, term / 8), 1 << (term % 8)) >> bit & 1 == 1
                    };
                    (0..8 * sources.len()).filter(adds).collect()
                }
            }
        });
        Schedule::of(sources.len() * if self == Self::Horner { 1 } else { 8 }, rows.collect())
    }

    /// Integer instructions for each 32-bit word of a source, as they are written: a compiler may do better.
    #[must_use]
    pub fn operations(self, matrix: &Matrix) -> f64 {
        let (k, m) = (matrix.columns(), matrix.rows());
        let schedules = self.schedules(matrix);
        let additions: usize = schedules.iter().map(Schedule::additions).sum();
        let operations = match self {
            Self::Horner => {
                let steps =
                    |schedule: &Schedule| (0..m).map(|o| degree(schedule, o).unwrap_or(0)).sum::<usize>();
                (additions + 4 * schedules.iter().map(steps).sum::<usize>()) as f64
            }
            Self::Bitslice => (additions + 48 * (k + m)) as f64 / 8.0,
        };
        operations / k as f64
    }

    /// The one with the fewest operations.
    #[must_use]
    pub fn cheapest(matrix: &Matrix) -> Self {
        let cost = |scheme: &Self| scheme.operations(matrix);
        Self::ALL.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(Self::Horner)
    }

    /// The function `combine_group` of `kernels/specialised.cu`.
    fn combine_group(self, matrix: &Matrix) -> String {
        let mut text =
            "__device__ __forceinline__ void combine_group(u32 group, const u32 *x, u32 *sums) {\n"
                .to_owned();
        for (group, schedule) in self.schedules(matrix).iter().enumerate() {
            let _ = writeln!(text, "    if (group == {group}) {{");
            schedule.write_shared(&mut text);
            for output in 0..matrix.rows() {
                match self {
                    Self::Horner => write_polynomial(&mut text, schedule, output),
                    Self::Bitslice => write_planes(&mut text, schedule, output),
                }
            }
            text.push_str("    }\n");
        }
        text + "}\n"
    }
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

fn write_planes(text: &mut String, schedule: &Schedule, output: usize) {
    for row in 8 * output..8 * output + 8 {
        if let Some(terms) = schedule.row(row) {
            let _ = writeln!(text, "        sums[{row}] ^= {terms};");
        }
    }
}

/// Whether a kernel of its own is worth while for `matrix`.
pub(crate) fn is_specialisable(matrix: &Matrix) -> bool {
    matrix.rows() <= MAX_SPECIALISED_ROWS && matrix.coefficients().len() <= MAX_SPECIALISED
}

/// The text of the generic kernels `combine_set` and `combine_add`.
#[must_use]
pub fn generic_source() -> String {
    [PRELUDE, PERMUTE, GENERIC].concat()
}

/// The text of the kernel `combine` for `matrix`.
#[must_use]
pub fn specialised_source(matrix: &Matrix, scheme: Scheme) -> String {
    let mut known = String::new();
    for (name, value) in [
        ("SOURCES", matrix.columns()),
        ("OUTPUTS", matrix.rows()),
        ("ADD", usize::from(matrix.adds())),
        ("PLANES", usize::from(scheme == Scheme::Bitslice)),
        ("GROUP", scheme.group().min(matrix.columns())),
        ("VECTORS", scheme.vectors() as usize),
    ] {
        // Writing to a string does not fail.
        let _ = writeln!(known, "#define {name} {value}");
    }
    [&known, PRELUDE, HORNER, &scheme.combine_group(matrix), SPECIALISED].concat()
}

/// Bytes of each chunk that a block computes; none for a generic kernel's scheme.
pub(crate) fn tile_bytes(scheme: Option<Scheme>) -> u64 {
    STEP_BYTES * u64::from(scheme.map_or(1, Scheme::vectors))
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
    fn a_row_of_ones_is_cheapest_by_adding() {
        let ones = Matrix::new(10, vec![1; 10]).unwrap();
        assert_eq!(Scheme::cheapest(&ones), Scheme::Horner);
        assert_eq!(Scheme::Horner.operations(&ones), 0.5);
        assert!(specialised_source(&ones, Scheme::Horner).contains("sums[0] ^= x[0] ^ x[1] ^"));
    }

    #[test]
    fn narrow_codes_are_cheapest_by_horners_rule_and_wide_ones_in_planes() {
        let matrix = |k, m| Matrix::encode(&codec::Code::rs(k, m).unwrap()).unwrap();
        assert_eq!(Scheme::cheapest(&matrix(20, 4)), Scheme::Horner);
        assert_eq!(Scheme::cheapest(&matrix(10, 16)), Scheme::Bitslice);
        assert!(is_specialisable(&matrix(10, 16)) && !is_specialisable(&matrix(10, 17)));
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
