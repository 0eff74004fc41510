//! The loops over tiles that all vector back ends share.
//!
//! They are always inlined into a back end (see [`backend!`](super::backend)), which compiles them for its instruction set, so that
//! no function of another instruction set remains.
#![allow(unsafe_code)]

use super::tile::{ADD, COPY, COPY_STREAM};
use super::vector::{Access, Ahead, NEAR_LEN, Part, Past, Through, Vector, Wide, head};

/// A tile of `M` outputs (see [`Loop`](super::Loop)), whose first one is the sum of all sources with `ONES`.
///
/// # Safety
/// That of a [`Loop`](super::Loop) for tiles of `M` outputs; the processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const M: usize, const N: usize, const ONES: bool, const MODE: u8>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
) {
    // SAFETY: the sources and outputs can be accessed up to `len`, beyond which no column goes.
    unsafe {
        let mut at = 0;
        let tile = Pointers::<M>::of(factors, sources, outputs);
        // What fits into the first level is there already: asking for it would only cost instructions.
        if len * (sources.len() + M) > NEAR_LEN {
            while len - at >= N * V::WIDTH {
                column::<Wide<V, N>, M, ONES, MODE>(&tile, at, Ahead);
                at += N * V::WIDTH;
            }
        }
        // Then less and less at a time, down to a part of one vector.
        while len - at >= N * V::WIDTH {
            column::<Wide<V, N>, M, ONES, MODE>(&tile, at, Through);
            at += N * V::WIDTH;
        }
        if N > 2 && len - at >= 2 * V::WIDTH {
            column::<Wide<V, 2>, M, ONES, MODE>(&tile, at, Through);
            at += 2 * V::WIDTH;
        }
        while len - at >= V::WIDTH {
            column::<V, M, ONES, MODE>(&tile, at, Through);
            at += V::WIDTH;
        }
        if at < len {
            column::<V, M, ONES, MODE>(&tile, at, Part(len - at));
        }
    }
}

/// [`tile`] with stores that go past the caches; false, and nothing is done, where the outputs do not agree on where that can begin.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
pub(super) unsafe fn stream_tile<V: Vector, const M: usize, const ONES: bool, const MODE: u8>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
) -> bool {
    // Such stores need addresses that are multiples of a vector: what lies before the first of them goes by itself.
    let Some(head) = head::<V>(outputs, len) else { return false };
    // SAFETY: the sources and outputs can be accessed up to `len`, beyond which no column goes.
    unsafe {
        let tile = Pointers::<M>::of(factors, sources, outputs);
        if head > 0 {
            column::<V, M, ONES, MODE>(&tile, 0, Part(head));
        }
        let mut at = head;
        while len - at >= V::WIDTH {
            column::<V, M, ONES, MODE>(&tile, at, Past);
            at += V::WIDTH;
        }
        V::fence();
        if at < len {
            column::<V, M, ONES, MODE>(&tile, at, Part(len - at));
        }
    }
    true
}

/// Where a tile of `M` outputs finds everything.
struct Pointers<'a, 's, 'o, const M: usize> {
    factors: *const u64,
    sources: &'a [&'s [u8]],
    outputs: [*mut u8; M],
    /// The first of as many further outputs as there are sources, for modes that copy.
    copies: *mut &'o mut [u8],
}

impl<'a, 's, 'o, const M: usize> Pointers<'a, 's, 'o, M> {
    /// # Safety
    /// There are at least `M` outputs.
    #[inline(always)]
    unsafe fn of(factors: *const u64, sources: &'a [&'s [u8]], outputs: &mut [&'o mut [u8]]) -> Self {
        // SAFETY: as promised.
        unsafe {
            Self {
                factors,
                sources,
                outputs: std::array::from_fn(|o| outputs.get_unchecked_mut(o).as_mut_ptr()),
                copies: outputs.as_mut_ptr().add(M),
            }
        }
    }
}

/// [`tile`] of chunks that are no longer than a vector, where all that surrounds a column would take longer than the column.
///
/// # Safety
/// As [`tile`], and `len` is at most `V::WIDTH`.
#[inline(always)]
pub(super) unsafe fn small_tile<V: Vector, const M: usize, const ONES: bool, const MODE: u8>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
) {
    // SAFETY: as promised.
    unsafe {
        let tile = Pointers::<M>::of(factors, sources, outputs);
        if len == V::WIDTH {
            column::<V, M, ONES, MODE>(&tile, 0, Through);
        } else if len > 0 {
            column::<V, M, ONES, MODE>(&tile, 0, Part(len));
        }
    }
}

/// A tile of a single source, which is added to `M` outputs: the factors stay in registers.
///
/// # Safety
/// That of a [`Loop`](super::Loop) for tiles of `M` outputs, of one source; the processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn update<V: Vector, const M: usize, const N: usize, const ONES: bool>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
) {
    // SAFETY: there is a source; it and the outputs can be accessed up to `len`, beyond which no column goes.
    unsafe {
        let source = sources.get_unchecked(0).as_ptr();
        let outputs: [*mut u8; M] = std::array::from_fn(|o| outputs.get_unchecked_mut(o).as_mut_ptr());
        let factors: [V::Factor; M] = std::array::from_fn(|o| V::factor(*factors.add(o)));
        let mut at = 0;
        // Never past the caches: the outputs are read as well, and are in the caches for that.
        while len - at >= N * V::WIDTH {
            update_column::<Wide<V, N>, M, ONES>(factors, source, outputs, at, Through);
            at += N * V::WIDTH;
        }
        while len - at >= V::WIDTH {
            update_column::<V, M, ONES>(factors, source, outputs, at, Through);
            at += V::WIDTH;
        }
        if at < len {
            update_column::<V, M, ONES>(factors, source, outputs, at, Part(len - at));
        }
    }
}

/// One vector of each output of [`update`], at position `at`.
///
/// # Safety
/// What `access` touches at `at` can be accessed.
#[inline(always)]
unsafe fn update_column<V: Vector, const M: usize, const ONES: bool>(
    factors: [V::Factor; M],
    source: *const u8,
    outputs: [*mut u8; M],
    at: usize,
    access: impl Access<V>,
) {
    // SAFETY: as promised.
    unsafe {
        let value = access.load(source.add(at));
        for (o, (factor, output)) in factors.into_iter().zip(outputs).enumerate() {
            let product = if ONES && o == 0 { value } else { value.mul(factor) };
            access.store(access.load(output.add(at)).xor(product), output.add(at));
        }
    }
}

/// One vector of each output, at position `at`. Two sources at a time, since some processors add three vectors at once.
///
/// # Safety
/// There is a factor for each source and output, and a copy for each source if the mode wants them; what `access` touches at `at`
/// can be accessed.
#[inline(always)]
unsafe fn column<V: Vector, const M: usize, const ONES: bool, const MODE: u8>(
    tile: &Pointers<'_, '_, '_, M>,
    at: usize,
    access: impl Access<V>,
) {
    // SAFETY: as promised; `source`, `copy` and `factors` stay in step and within their slices.
    unsafe {
        let (mut source, mut copy, mut factors) = (tile.sources.as_ptr(), tile.copies, tile.factors);
        let end = source.add(tile.sources.len());
        let value = |source: *const &[u8], copy: *mut &mut [u8]| {
            let value = access.load((*source).as_ptr().add(at));
            if MODE == COPY || MODE == COPY_STREAM {
                access.store(value, (*copy).as_mut_ptr().add(at));
            }
            value
        };
        let product = |value: V, o: usize, factor: *const u64| {
            if ONES && o == 0 { value } else { value.mul(V::factor(*factor.add(o))) }
        };
        // Sums begin with what is there or with what the first sources give, not with zeros, which would have to be added to.
        let mut sums = [V::zero(); M];
        if MODE == ADD {
            for (sum, output) in sums.iter_mut().zip(tile.outputs) {
                *sum = access.load(output.add(at));
            }
        }
        if tile.sources.len() % 2 == 1 {
            let a = value(source, copy);
            for (o, sum) in sums.iter_mut().enumerate() {
                let product = product(a, o, factors);
                *sum = if MODE == ADD { sum.xor(product) } else { product };
            }
            // `wrapping_add`: in modes that copy nothing `copy` leaves its slice, and is never followed.
            (source, copy, factors) = (source.add(1), copy.wrapping_add(1), factors.add(M));
        } else if MODE != ADD {
            let (a, b) = (value(source, copy), value(source.add(1), copy.wrapping_add(1)));
            for (o, sum) in sums.iter_mut().enumerate() {
                *sum = product(a, o, factors).xor(product(b, o, factors.add(M)));
            }
            (source, copy, factors) = (source.add(2), copy.wrapping_add(2), factors.add(2 * M));
        }
        while source < end {
            let (a, b) = (value(source, copy), value(source.add(1), copy.wrapping_add(1)));
            for (o, sum) in sums.iter_mut().enumerate() {
                *sum = sum.xor3(product(a, o, factors), product(b, o, factors.add(M)));
            }
            (source, copy, factors) = (source.add(2), copy.wrapping_add(2), factors.add(2 * M));
        }
        for (sum, output) in sums.into_iter().zip(tile.outputs) {
            access.store(sum, output.add(at));
        }
    }
}
