//! Additive Fourier transforms: all parities of a code of [`Family::Lch`](crate::Family::Lch) in one pass over the data, with
//! fewer products than its matrix has coefficients.
//!
//! The basis and the butterflies are those of Lin, Chung and Han (Novel Polynomial Basis and Its Application to Reed-Solomon
//! Erasure Codes, FOCS 2014). With `P` points to a group, `P` a power of two: the values of a group of `P` data chunks at its
//! own points are turned into the coefficients of the polynomial through them, the coefficients of all groups are added up,
//! and the sum is evaluated at the first `P` points, which gives the parities. `docs/coding.md` derives it.
#![allow(unsafe_code)]

use super::instruction_set::{Backend, Loop};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::vector::{Access, Ahead, NEAR_LEN, Part, Past, Through, Vector, Wide, head};
use crate::gf;
use crate::points::point;

/// Most points to a group: as many sums stay in registers.
pub(super) const MAX_POINTS: usize = 16;

/// The factor of a butterfly of level `level` on points from `index` on: the level's subspace polynomial there.
fn twist(level: u32, index: usize) -> u8 {
    (0..level).fold(point(index), |x, _| gf::mul(x, x) ^ x)
}

/// The factors of a transform of `points` points from `base` on: `points / 2` of the level of neighbours, then half as many of
/// the next one, and so on.
fn twists(points: usize, base: usize) -> impl Iterator<Item = u8> {
    let of_level =
        move |level: u32| (0..points).step_by(2 << level).map(move |offset| twist(level, base + offset));
    (0..points.trailing_zeros()).flat_map(of_level)
}

/// The transform for `k` data and `m` parity chunks; none if that is done by other means, or `backend` has no transforms.
///
/// Its factors are those of the first points, then of each group's, `points - 1` each.
pub(super) fn whole(backend: &Backend, k: usize, m: usize) -> Option<Whole> {
    let points = m.next_power_of_two();
    let [through, past] = backend.transforms.filter(|_| k > 0 && m >= 2 && points <= MAX_POINTS)?;
    let groups = 0..=k.div_ceil(points);
    let factors = groups.flat_map(|group| twists(points, group * points));
    let index = points.trailing_zeros() as usize - 1;
    Some(Whole {
        factors: factors.map(|factor| backend.factors[usize::from(factor)]).collect(),
        loops: [through[index], past[index]],
    })
}

/// A vector of all outputs after the other (see [`Loop`](super::Loop)), by transforms of `P` points: `N` vectors of each at a time,
/// then one, then the part that is left.
///
/// # Safety
/// That of a [`Loop`](super::Loop) for transforms of `P` points; the processor has the instructions of `V`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) unsafe fn run<V: Vector, const P: usize, const N: usize, const STREAM: bool>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
) {
    let count = outputs.len();
    let head = if STREAM { head::<V>(outputs, len) } else { None };
    let mut pointers = [std::ptr::null_mut(); P];
    for (pointer, output) in pointers.iter_mut().zip(outputs) {
        *pointer = output.as_mut_ptr();
    }
    // SAFETY: no column goes beyond `len`, up to which all sources and outputs can be accessed; there are at most `P` outputs.
    unsafe {
        let outputs = pointers.get_unchecked(..count);
        let mut at = 0;
        if let Some(head) = head {
            if head > 0 {
                column::<V, P>(factors, sources, outputs, at, Part(head));
                at += head;
            }
            while len - at >= V::WIDTH {
                column::<V, P>(factors, sources, outputs, at, Past);
                at += V::WIDTH;
            }
            V::fence();
        }
        if len * (sources.len() + count) > NEAR_LEN {
            while len - at >= N * V::WIDTH {
                column::<Wide<V, N>, P>(factors, sources, outputs, at, Ahead);
                at += N * V::WIDTH;
            }
        }
        while len - at >= N * V::WIDTH {
            column::<Wide<V, N>, P>(factors, sources, outputs, at, Through);
            at += N * V::WIDTH;
        }
        while len - at >= V::WIDTH {
            column::<V, P>(factors, sources, outputs, at, Through);
            at += V::WIDTH;
        }
        if at < len {
            column::<V, P>(factors, sources, outputs, at, Part(len - at));
        }
    }
}

/// One vector of each output, at position `at`.
///
/// # Safety
/// There are factors for all groups of sources and no more outputs than points, and what `access` touches at `at` can be accessed.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn column<V: Vector, const P: usize>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &[*mut u8],
    at: usize,
    access: impl Access<V>,
) {
    // SAFETY: as promised.
    unsafe {
        let mut sums = [V::zero(); P];
        let (groups, rest) = sources.as_chunks::<P>();
        // The first ones are for the evaluation, which comes last.
        let mut of_group = factors.add(P - 1);
        for group in groups {
            let mut values = [V::zero(); P];
            for (value, source) in values.iter_mut().zip(group) {
                *value = access.load(source.as_ptr().add(at));
            }
            interpolate::<V, P, false>(&mut values, of_group);
            add(&mut sums, &values);
            of_group = of_group.add(P - 1);
        }
        if !rest.is_empty() {
            let mut values = [V::zero(); P];
            for (value, source) in values.iter_mut().zip(rest) {
                *value = access.load(source.as_ptr().add(at));
            }
            // Chunks that are missing count as zeros. Where they are half of the group, most butterflies would only add zeros.
            if rest.len() <= P / 2 {
                interpolate::<V, P, true>(&mut values, of_group);
            } else {
                interpolate::<V, P, false>(&mut values, of_group);
            }
            add(&mut sums, &values);
        }
        evaluate(&mut sums, factors);
        for (value, output) in sums.into_iter().zip(outputs) {
            access.store(value, output.add(at));
        }
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn add<V: Vector, const P: usize>(sums: &mut [V; P], values: &[V; P]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        // SAFETY: the caller has the instructions.
        *sum = unsafe { sum.xor(*value) };
    }
}

/// From values at a group's points to coefficients. With `HALF`, the values of the second half are 0.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn interpolate<V: Vector, const P: usize, const HALF: bool>(values: &mut [V; P], factors: *const u64) {
    let (mut level, mut factors) = (1, factors);
    // SAFETY: there are `P - 1` factors, and `low`, `high` are below `P`.
    unsafe {
        while level < P {
            let is_last = 2 * level == P;
            let blocks = P / (2 * level);
            let live = if HALF && !is_last { blocks / 2 } else { blocks };
            for block in 0..live {
                let factor = V::factor(*factors.add(block));
                for i in 0..level {
                    let (low, high) = (2 * level * block + i, 2 * level * block + level + i);
                    // `high` is zero, and no level before this one has looked at it.
                    values[high] = if HALF && is_last { values[low] } else { values[high].xor(values[low]) };
                    values[low] = values[low].xor(values[high].mul(factor));
                }
            }
            factors = factors.add(blocks);
            level *= 2;
        }
    }
}

/// From coefficients to values at the first points, where the first factor of each level is 0.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn evaluate<V: Vector, const P: usize>(values: &mut [V; P], factors: *const u64) {
    let mut level = P;
    // SAFETY: there are `P - 1` factors, and `low`, `high` are below `P`.
    unsafe {
        while level > 1 {
            level /= 2;
            let blocks = P / (2 * level);
            // The factors of the levels before this one.
            let before = P - 2 * blocks;
            for block in 0..blocks {
                for i in 0..level {
                    let (low, high) = (2 * level * block + i, 2 * level * block + level + i);
                    // The factor of block 0 is 0, whatever the level.
                    if block > 0 {
                        let factor = V::factor(*factors.add(before + block));
                        values[low] = values[low].xor(values[high].mul(factor));
                    }
                    values[high] = values[high].xor(values[low]);
                }
            }
        }
    }
}

/// One loop for all sources and outputs.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    /// What the loops multiply by.
    pub(super) factors: Vec<u64>,
    /// The loops that store through the caches and past them.
    pub(super) loops: [Loop; 2],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::Chunks;
    use crate::kernel::{Matrix, kernels};
    use crate::{Code, Family};

    #[test]
    fn the_basis_is_cantors() {
        for pair in crate::points::BASIS.windows(2) {
            assert_eq!(gf::mul(pair[1], pair[1]) ^ pair[1], pair[0]);
        }
        let points: std::collections::BTreeSet<u8> = (0..256).map(point).collect();
        assert_eq!(points.len(), 256);
    }

    /// Chunks of `len` bytes that begin at odd addresses.
    fn chunks(buffer: &mut [u8], len: usize) -> Vec<&mut [u8]> {
        buffer.chunks_mut(len + 67).map(|chunk| &mut chunk[3..3 + len]).collect()
    }

    #[test]
    fn transforms_give_what_the_rows_give_at_every_shape() {
        for m in 2..=16 {
            for k in (1..=20).chain([31, 64, 200]) {
                let rows = Code::of_family(Family::Lch, k, m).unwrap().coefficients().to_vec();
                let len = 70 + k + 19 * m;
                let mut data: Vec<u8> = (0..k * (len + 67)).map(|i| ((i * 167) ^ (i >> 7)) as u8).collect();
                let sources: Vec<&[u8]> = chunks(&mut data, len).into_iter().map(|chunk| &*chunk).collect();
                for kernel in kernels().iter().filter(|kernel| kernel.name() != "scalar") {
                    let (mut expected, mut found) = (vec![0; m * (len + 67)], vec![0; m * (len + 67)]);
                    let matrix = Matrix::new(*kernel, k, rows.clone());
                    matrix.combine(Chunks::new(&sources, &mut chunks(&mut expected, len)).unwrap());
                    let transform = matrix.with_transform_if_any();
                    assert_eq!(transform.method(), "transform");
                    transform.combine(Chunks::new(&sources, &mut chunks(&mut found, len)).unwrap());
                    assert!(found == expected, "{kernel:?} lch({k}+{m})");
                }
            }
        }
    }

    #[test]
    fn results_past_the_caches_are_the_same_wherever_they_lie() {
        let len = 5000;
        let chunk = |salt: usize| (0..len).map(|i| (i * 31 + i / 251 * salt) as u8).collect();
        let data: Vec<Vec<u8>> = (0..3).map(chunk).collect();
        let sources: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let code = Code::of_family(Family::Lch, 3, 2).unwrap();
        let by_hand = |row: usize, at: usize| {
            (0..3).fold(0, |sum, s| sum ^ gf::mul(code.coefficient(row, s), data[s][at]))
        };
        for kernel in kernels().iter().filter(|kernel| kernel.name() != "scalar") {
            let matrix = Matrix::new(*kernel, 3, code.coefficients().to_vec());
            let transform = matrix.clone().with_transform_if_any();
            for offset in [0, 1, 48] {
                let mut results = vec![vec![0; len + 64]; 4];
                let mut ranges = results.iter_mut().map(|b| &mut b[offset..offset + len]);
                let mut ranges: [&mut [u8]; 4] = std::array::from_fn(|_| ranges.next().unwrap());
                let (by_matrix, by_transform) = ranges.split_at_mut(2);
                matrix.combine_as(Chunks::new(&sources, by_matrix).unwrap(), true);
                transform.combine_as(Chunks::new(&sources, by_transform).unwrap(), true);
                assert!(by_matrix == by_transform, "{kernel:?} at {offset}");
                for at in [0, 1, 63, 64, 1000, len / 2, len - 1] {
                    assert_eq!([0, 1].map(|row| by_matrix[row][at]), [0, 1].map(|row| by_hand(row, at)));
                }
            }
        }
    }
}
