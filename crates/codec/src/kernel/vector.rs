//! The loops that all vector back ends share, over what differs between them: a vector.
//!
//! A back end implements [`Vector`] for its register type and calls [`backend!`], which compiles the loops once for its
//! instruction set. The loops are always inlined there, so that no function of another instruction set remains.
#![allow(unsafe_code)]

use super::tile::{ADD, COPY, COPY_STREAM, STREAM};

/// A register of bytes, and how to multiply it by a constant.
///
/// # Safety
/// Loads and stores touch exactly the bytes that they are told to.
pub(super) unsafe trait Vector: Copy {
    /// Bytes of a vector.
    const WIDTH: usize;

    /// A coefficient in registers.
    type Factor: Copy;

    /// # Safety
    /// The processor has the back end's instructions: so for all functions here.
    unsafe fn zero() -> Self;

    /// # Safety
    /// `WIDTH` bytes can be read; no alignment is needed.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    /// `WIDTH` bytes can be written; no alignment is needed.
    unsafe fn store(self, to: *mut u8);

    /// The first `len < WIDTH` bytes; the others are 0.
    ///
    /// # Safety
    /// `len` bytes can be read.
    #[inline(always)]
    unsafe fn load_part(from: *const u8, len: usize) -> Self {
        let mut bytes = [0; MAX_WIDTH];
        // SAFETY: `len` bytes can be read, and a buffer has room for a vector.
        unsafe {
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len);
            Self::load(bytes.as_ptr())
        }
    }

    /// Stores the first `len < WIDTH` bytes.
    ///
    /// # Safety
    /// `len` bytes can be written.
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, len: usize) {
        let mut bytes = [0; MAX_WIDTH];
        // SAFETY: a buffer has room for a vector, and `len` bytes can be written.
        unsafe {
            self.store(bytes.as_mut_ptr());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
    }

    /// Stores past the caches. [`Vector::fence`] has to follow.
    ///
    /// # Safety
    /// `WIDTH` bytes can be written at `to`, which is a multiple of `WIDTH`.
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: as promised.
        unsafe { self.store(to) }
    }

    /// Has the cache line at `at` brought into the first level, wherever that is.
    ///
    /// # Safety
    /// See `zero`.
    #[inline(always)]
    unsafe fn prefetch(_at: *const u8) {}

    /// What was streamed is seen by other threads before what is stored from now on.
    ///
    /// # Safety
    /// See `zero`.
    #[inline(always)]
    unsafe fn fence() {}

    /// # Safety
    /// See `zero`.
    unsafe fn xor(self, other: Self) -> Self;

    /// `self ^ a ^ b`.
    ///
    /// # Safety
    /// See `zero`.
    #[inline(always)]
    unsafe fn xor3(self, a: Self, b: Self) -> Self {
        // SAFETY: as promised.
        unsafe { self.xor(a.xor(b)) }
    }

    /// Coefficients as they are in memory.
    const FACTORS: &'static [u64; 256];

    /// # Safety
    /// See `zero`; `stored` is one of [`Vector::FACTORS`].
    unsafe fn factor(stored: u64) -> Self::Factor;

    /// # Safety
    /// See `zero`.
    unsafe fn mul(self, factor: Self::Factor) -> Self;
}

/// What all chunks together may take of the first cache level, of 32 KiB or more. Of larger ones, lines are asked for in advance:
/// the processor's own prefetching follows a few streams, not one for each source.
pub(super) const NEAR_LEN: usize = 32 << 10;
/// How far ahead: a second-level cache answers within the time that takes.
const AHEAD: usize = 512;
/// The widest vector.
const MAX_WIDTH: usize = 64;

/// `N` vectors side by side, as one: loops over them have fewer turns, and more sums to add to at a time.
#[derive(Clone, Copy)]
pub(super) struct Wide<V, const N: usize>([V; N]);

// SAFETY: the vectors' loads and stores touch `N * WIDTH` bytes in all.
unsafe impl<V: Vector, const N: usize> Vector for Wide<V, N> {
    const WIDTH: usize = N * V::WIDTH;

    const FACTORS: &'static [u64; 256] = V::FACTORS;

    type Factor = V::Factor;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as promised to this function; so below.
        unsafe { Self([V::zero(); N]) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see `zero`.
        unsafe {
            let mut wide = Self::zero();
            for (i, part) in wide.0.iter_mut().enumerate() {
                *part = V::load(from.add(i * V::WIDTH));
            }
            wide
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        for (i, part) in self.0.into_iter().enumerate() {
            // SAFETY: see `zero`.
            unsafe { part.store(to.add(i * V::WIDTH)) }
        }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        for (i, part) in self.0.into_iter().enumerate() {
            // SAFETY: see `zero`.
            unsafe { part.stream(to.add(i * V::WIDTH)) }
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        for i in 0..N {
            // SAFETY: see `zero`.
            unsafe { V::prefetch(at.wrapping_add(i * V::WIDTH)) }
        }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: see `zero`.
        unsafe { V::fence() }
    }

    #[inline(always)]
    unsafe fn xor(mut self, other: Self) -> Self {
        for (part, other) in self.0.iter_mut().zip(other.0) {
            // SAFETY: see `zero`.
            *part = unsafe { part.xor(other) };
        }
        self
    }

    #[inline(always)]
    unsafe fn xor3(mut self, a: Self, b: Self) -> Self {
        for ((part, a), b) in self.0.iter_mut().zip(a.0).zip(b.0) {
            // SAFETY: see `zero`.
            *part = unsafe { part.xor3(a, b) };
        }
        self
    }

    #[inline(always)]
    unsafe fn factor(stored: u64) -> V::Factor {
        // SAFETY: see `zero`.
        unsafe { V::factor(stored) }
    }

    #[inline(always)]
    unsafe fn mul(mut self, factor: V::Factor) -> Self {
        for part in &mut self.0 {
            // SAFETY: see `zero`.
            *part = unsafe { part.mul(factor) };
        }
        self
    }
}

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
        let head = if is_stream(MODE) { head::<V>(outputs, len) } else { None };
        let tile = Pointers::<M>::of(factors, sources, outputs);
        if let Some(head) = head {
            if head > 0 {
                column::<V, M, ONES, MODE>(&tile, at, Part(head));
                at += head;
            }
            while len - at >= V::WIDTH {
                column::<V, M, ONES, MODE>(&tile, at, Past);
                at += V::WIDTH;
            }
            V::fence();
        }
        if len * (sources.len() + M) > NEAR_LEN {
            while len - at >= N * V::WIDTH {
                column::<Wide<V, N>, M, ONES, MODE>(&tile, at, Ahead);
                at += N * V::WIDTH;
            }
        }
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

/// Whether stores go past the caches.
const fn is_stream(mode: u8) -> bool {
    mode == STREAM || mode == COPY_STREAM
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

/// How a column gets at its vectors.
pub(super) trait Access<V: Vector>: Copy {
    /// # Safety
    /// The processor has the instructions of `V`, and what is loaded can be read.
    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> V {
        // SAFETY: as promised.
        unsafe { V::load(from) }
    }

    /// # Safety
    /// The processor has the instructions of `V`, and what is stored can be written.
    unsafe fn store(self, value: V, to: *mut u8);
}

/// Whole vectors.
#[derive(Clone, Copy)]
pub(super) struct Through;

impl<V: Vector> Access<V> for Through {
    #[inline(always)]
    unsafe fn store(self, value: V, to: *mut u8) {
        // SAFETY: as promised.
        unsafe { value.store(to) }
    }
}

/// Whole vectors, whose successors are asked for.
#[derive(Clone, Copy)]
pub(super) struct Ahead;

impl<V: Vector> Access<V> for Ahead {
    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> V {
        // SAFETY: as promised; nothing is read from where it is prefetched.
        unsafe {
            V::prefetch(from.wrapping_add(AHEAD));
            V::load(from)
        }
    }

    #[inline(always)]
    unsafe fn store(self, value: V, to: *mut u8) {
        // SAFETY: as promised.
        unsafe { value.store(to) }
    }
}

/// Whole vectors, which are stored past the caches at addresses that are multiples of their width.
#[derive(Clone, Copy)]
pub(super) struct Past;

impl<V: Vector> Access<V> for Past {
    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> V {
        // SAFETY: as promised; nothing is read from where it is prefetched.
        unsafe {
            V::prefetch(from.wrapping_add(AHEAD));
            V::load(from)
        }
    }

    #[inline(always)]
    unsafe fn store(self, value: V, to: *mut u8) {
        // SAFETY: as promised.
        unsafe { value.stream(to) }
    }
}

/// The first bytes of vectors.
#[derive(Clone, Copy)]
pub(super) struct Part(pub(super) usize);

impl<V: Vector> Access<V> for Part {
    #[inline(always)]
    unsafe fn load(self, from: *const u8) -> V {
        // SAFETY: as promised.
        unsafe { V::load_part(from, self.0) }
    }

    #[inline(always)]
    unsafe fn store(self, value: V, to: *mut u8) {
        // SAFETY: as promised.
        unsafe { value.store_part(to, self.0) }
    }
}

/// Bytes before all outputs are at a multiple of the vector's width; none if they never are together, or not before `len`.
#[inline(always)]
pub(super) fn head<V: Vector>(outputs: &[&mut [u8]], len: usize) -> Option<usize> {
    let misaligned = |output: &&mut [u8]| output.as_ptr().addr() % V::WIDTH;
    let first = outputs.first().map_or(0, misaligned);
    let head = (V::WIDTH - first) % V::WIDTH;
    (outputs.iter().all(|output| misaligned(output) == first) && head <= len).then_some(head)
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
            (source, copy, factors) = (source.add(1), copy.add(1), factors.add(M));
        } else if MODE != ADD {
            let (a, b) = (value(source, copy), value(source.add(1), copy.add(1)));
            for (o, sum) in sums.iter_mut().enumerate() {
                *sum = product(a, o, factors).xor(product(b, o, factors.add(M)));
            }
            (source, copy, factors) = (source.add(2), copy.add(2), factors.add(2 * M));
        }
        while source < end {
            let (a, b) = (value(source, copy), value(source.add(1), copy.add(1)));
            for (o, sum) in sums.iter_mut().enumerate() {
                *sum = sum.xor3(product(a, o, factors), product(b, o, factors.add(M)));
            }
            (source, copy, factors) = (source.add(2), copy.add(2), factors.add(2 * M));
        }
        for (sum, output) in sums.into_iter().zip(tile.outputs) {
            access.store(sum, output.add(at));
        }
    }
}

/// Makes a back end of a [`Vector`]: its loops, compiled for the processors that have the features listed, and `detect`, which
/// gives it to nobody else. `unroll` is how many vectors of each output are computed at a time, for one to four outputs and for
/// transforms of two to sixteen points.
macro_rules! backend {
    (
        $(#[$doc:meta])* $module:ident, $name:literal, $vector:ty,
        unroll: [$u1:literal, $u2:literal, $u3:literal, $u4:literal],
        transforms: [$t2:literal, $t4:literal, $t8:literal, $t16:literal],
        detect: $detected:ident, features: $($feature:tt),+
    ) => {
        $(#[$doc])*
        pub(in crate::kernel) mod $module {
            use super::*;
            use crate::kernel::tile::{ADD, COPY, COPY_STREAM, SET, STREAM, UPDATE};
            use crate::kernel::{Backend, Loop, transform, vector};

            pub(in crate::kernel) fn detect() -> Option<&'static Backend> {
                ($(std::arch::$detected!($feature))&&+).then_some(&BACKEND)
            }

            static BACKEND: Backend = Backend {
                name: $name,
                factors: <$vector as Vector>::FACTORS,
                tiles: [
                    [tiles::<false, { SET }>(), tiles::<true, { SET }>()],
                    [tiles::<false, { ADD }>(), tiles::<true, { ADD }>()],
                    [tiles::<false, { STREAM }>(), tiles::<true, { STREAM }>()],
                    [tiles::<false, { COPY }>(), tiles::<true, { COPY }>()],
                    [tiles::<false, { COPY_STREAM }>(), tiles::<true, { COPY_STREAM }>()],
                    [tiles::<false, { UPDATE }>(), tiles::<true, { UPDATE }>()],
                ],
                transforms: Some([transforms::<false>(), transforms::<true>()]),
            };

            const fn tiles<const ONES: bool, const MODE: u8>() -> [Loop; 4] {
                [
                    tile::<1, $u1, ONES, MODE>,
                    tile::<2, $u2, ONES, MODE>,
                    tile::<3, $u3, ONES, MODE>,
                    tile::<4, $u4, ONES, MODE>,
                ]
            }

            const fn transforms<const STREAM: bool>() -> [Loop; 4] {
                [
                    transform::<2, $t2, STREAM>,
                    transform::<4, $t4, STREAM>,
                    transform::<8, $t8, STREAM>,
                    transform::<16, $t16, STREAM>,
                ]
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn tile<const M: usize, const N: usize, const ONES: bool, const MODE: u8>(
                factors: *const u64,
                sources: &[&[u8]],
                outputs: &mut [&mut [u8]],
                len: usize,
            ) {
                // SAFETY: the features are those of the vector, and the caller keeps to what a loop asks for.
                unsafe {
                    if MODE == UPDATE {
                        vector::update::<$vector, M, N, ONES>(factors, sources, outputs, len);
                    } else if len <= <$vector as Vector>::WIDTH && MODE != STREAM && MODE != COPY_STREAM {
                        vector::small_tile::<$vector, M, ONES, MODE>(factors, sources, outputs, len);
                    } else {
                        large_tile::<M, N, ONES, MODE>(factors, sources, outputs, len);
                    }
                }
            }

            /// Apart from the small ones, which would have to save its registers.
            $(#[target_feature(enable = $feature)])+
            #[inline(never)]
            unsafe fn large_tile<const M: usize, const N: usize, const ONES: bool, const MODE: u8>(
                factors: *const u64,
                sources: &[&[u8]],
                outputs: &mut [&mut [u8]],
                len: usize,
            ) {
                // SAFETY: as above.
                unsafe { vector::tile::<$vector, M, N, ONES, MODE>(factors, sources, outputs, len) }
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn transform<const P: usize, const N: usize, const STREAM: bool>(
                factors: *const u64,
                sources: &[&[u8]],
                outputs: &mut [&mut [u8]],
                len: usize,
            ) {
                // SAFETY: as above.
                unsafe { transform::run::<$vector, P, N, STREAM>(factors, sources, outputs, len) }
            }
        }
    };
}

pub(super) use backend;
