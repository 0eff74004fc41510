//! The loops that all vector back ends share, over what differs between them: a vector.
//!
//! A back end implements [`Vector`] for its register type and calls [`backend!`], which compiles the loops once for its
//! instruction set. The loops are always inlined there, so that no function of another instruction set remains.
#![allow(unsafe_code)]

use super::tile::Tile;

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

    /// Coefficient `c` for memory.
    fn stored(c: u8) -> u64;

    /// # Safety
    /// See `zero`; `stored` was made by [`Vector::stored`].
    unsafe fn factor(stored: u64) -> Self::Factor;

    /// # Safety
    /// See `zero`.
    unsafe fn mul(self, factor: Self::Factor) -> Self;
}

/// The widest vector.
const MAX_WIDTH: usize = 64;

/// Computes `f` of each vector of `dst` and `src` and writes it to `dst`. The last, partial one too.
#[inline(always)]
unsafe fn map<V: Vector>(dst: &mut [u8], src: &[u8], f: impl Fn(V, V) -> V) {
    debug_assert_eq!(dst.len(), src.len());
    let (to, from, len) = (dst.as_mut_ptr(), src.as_ptr(), dst.len().min(src.len()));
    let mut at = 0;
    // SAFETY: no vector goes beyond `len`, up to which both can be accessed.
    unsafe {
        while len - at >= V::WIDTH {
            f(V::load(to.add(at)), V::load(from.add(at))).store(to.add(at));
            at += V::WIDTH;
        }
        if at < len {
            let rest = len - at;
            f(V::load_part(to.add(at), rest), V::load_part(from.add(at), rest)).store_part(to.add(at), rest);
        }
    }
}

/// `dst ^= src`.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn xor<V: Vector>(dst: &mut [u8], src: &[u8]) {
    // SAFETY: as promised.
    unsafe { map::<V>(dst, src, |d, s| d.xor(s)) }
}

/// `dst = c * src`, or `dst ^= c * src` with `ADD`.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn scale<V: Vector, const ADD: bool>(dst: &mut [u8], c: u8, src: &[u8]) {
    // SAFETY: as promised.
    unsafe {
        let factor = V::factor(V::stored(c));
        map::<V>(dst, src, |d, s| if ADD { d.xor(s.mul(factor)) } else { s.mul(factor) });
    }
}

/// A tile of `M` outputs: `U` vectors of each at a time, then one, then the part that is left.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn combine<V: Vector, const M: usize, const U: usize>(tile: Tile<'_, '_>) {
    // SAFETY: as promised.
    unsafe {
        if tile.first_is_sum() {
            combine_rows::<V, M, U, true>(tile);
        } else {
            combine_rows::<V, M, U, false>(tile);
        }
    }
}

#[inline(always)]
unsafe fn combine_rows<V: Vector, const M: usize, const U: usize, const ONES: bool>(mut tile: Tile<'_, '_>) {
    let outputs: [*mut u8; M] = std::array::from_fn(|o| tile.output_pointer(o));
    let (mut at, end) = (tile.start(), tile.end());
    assert_eq!(tile.factors().len(), tile.sources().len() * M, "a factor for each source and output");
    // SAFETY: the sources and outputs of a tile can be accessed up to `end`, beyond which no column goes.
    unsafe {
        let load_part = |rest| move |from| V::load_part(from, rest);
        let store_part = |rest| move |to, sum: V| sum.store_part(to, rest);
        let (load, store) = (|from| V::load(from), |to, sum: V| sum.store(to));
        if tile.streams()
            && let Some(head) = head::<V>(&outputs, at, end)
        {
            if head > 0 {
                column::<V, M, 1, ONES>(&tile, outputs, at, load_part(head), store_part(head));
                at += head;
            }
            while end - at >= V::WIDTH {
                column::<V, M, 1, ONES>(&tile, outputs, at, load, |to, sum: V| sum.stream(to));
                at += V::WIDTH;
            }
            V::fence();
        }
        while end - at >= U * V::WIDTH {
            column::<V, M, U, ONES>(&tile, outputs, at, load, store);
            at += U * V::WIDTH;
        }
        while end - at >= V::WIDTH {
            column::<V, M, 1, ONES>(&tile, outputs, at, load, store);
            at += V::WIDTH;
        }
        if at < end {
            column::<V, M, 1, ONES>(&tile, outputs, at, load_part(end - at), store_part(end - at));
        }
    }
}

/// Bytes from `at` on before all outputs are at a multiple of the vector's width; none if they never are together, or not
/// before `end`.
#[inline(always)]
pub(super) fn head<V: Vector>(outputs: &[*mut u8], at: usize, end: usize) -> Option<usize> {
    let misaligned = |output: &*mut u8| output.addr().wrapping_add(at) % V::WIDTH;
    let first = outputs.first().map_or(0, misaligned);
    let head = (V::WIDTH - first) % V::WIDTH;
    (outputs.iter().all(|output| misaligned(output) == first) && head <= end - at).then_some(head)
}

/// `U` vectors of each output, from position `at` on. Two sources at a time, since some processors add three vectors at once.
///
/// # Safety
/// `outputs` are those of the tile, which has a factor for each source and output; `load` and `store` touch nothing at or
/// beyond its end.
#[inline(always)]
unsafe fn column<V: Vector, const M: usize, const U: usize, const ONES: bool>(
    tile: &Tile<'_, '_>,
    outputs: [*mut u8; M],
    at: usize,
    load: impl Fn(*const u8) -> V,
    store: impl Fn(*mut u8, V),
) {
    // SAFETY: `at` and what follows lie within the sources and outputs, and there are factors enough, as promised.
    unsafe {
        let mut sums = [[V::zero(); U]; M];
        if tile.adds() {
            for (sums, output) in sums.iter_mut().zip(outputs) {
                for (u, sum) in sums.iter_mut().enumerate() {
                    *sum = load(output.add(at + u * V::WIDTH));
                }
            }
        }
        let values = |source: &&[u8]| {
            let mut values = [V::zero(); U];
            for (u, value) in values.iter_mut().enumerate() {
                *value = load(source.as_ptr().add(at + u * V::WIDTH));
            }
            values
        };
        let mut factors = tile.factors().as_ptr();
        let (pairs, last) = tile.sources().as_chunks::<2>();
        for [a, b] in pairs {
            let (a, b) = (values(a), values(b));
            for (o, sums) in sums.iter_mut().enumerate() {
                if ONES && o == 0 {
                    for u in 0..U {
                        sums[u] = sums[u].xor3(a[u], b[u]);
                    }
                } else {
                    let (of_a, of_b) = (V::factor(*factors.add(o)), V::factor(*factors.add(M + o)));
                    for u in 0..U {
                        sums[u] = sums[u].xor3(a[u].mul(of_a), b[u].mul(of_b));
                    }
                }
            }
            factors = factors.add(2 * M);
        }
        if let [a] = last {
            let a = values(a);
            for (o, sums) in sums.iter_mut().enumerate() {
                let factor = V::factor(*factors.add(o));
                for u in 0..U {
                    sums[u] = sums[u].xor(if ONES && o == 0 { a[u] } else { a[u].mul(factor) });
                }
            }
        }
        for (sums, output) in sums.iter().zip(outputs) {
            for (u, sum) in sums.iter().enumerate() {
                store(output.add(at + u * V::WIDTH), *sum);
            }
        }
    }
}

/// Makes a back end of a [`Vector`]: a type that can be reached through `detect` only, where the processor has the
/// features listed. `unroll` is how many vectors of each output are computed at a time.
macro_rules! backend {
    (
        $(#[$doc:meta])* $type:ident, $name:literal, $vector:ty, unroll: $unroll:literal,
        detect: $detected:ident, features: $($feature:tt),+
    ) => {
        $(#[$doc])*
        pub(in crate::kernel) struct $type(());

        impl $type {
            pub(in crate::kernel) fn detect() -> Option<&'static dyn crate::kernel::Backend> {
                static BACKEND: $type = $type(());
                ($(std::arch::$detected!($feature))&&+).then_some(&BACKEND)
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn run_xor(dst: &mut [u8], src: &[u8]) {
                // SAFETY: the features are those of the vector.
                unsafe { crate::kernel::vector::xor::<$vector>(dst, src) }
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn run_scale<const ADD: bool>(dst: &mut [u8], c: u8, src: &[u8]) {
                // SAFETY: as above.
                unsafe { crate::kernel::vector::scale::<$vector, ADD>(dst, c, src) }
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn run_combine<const M: usize>(tile: crate::kernel::tile::Tile<'_, '_>) {
                // SAFETY: as above.
                unsafe { crate::kernel::vector::combine::<$vector, M, $unroll>(tile) }
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn run_transform<const P: usize>(job: crate::kernel::transform::Job<'_, '_>) {
                // SAFETY: as above.
                unsafe { crate::kernel::transform::run::<$vector, P>(job) }
            }
        }

        // SAFETY (of all calls): `self` was reached through `detect`, so the processor has the features.
        impl crate::kernel::Backend for $type {
            fn name(&self) -> &'static str {
                $name
            }

            fn xor(&self, dst: &mut [u8], src: &[u8]) {
                // SAFETY: see above.
                unsafe { Self::run_xor(dst, src) }
            }

            fn mul(&self, dst: &mut [u8], c: u8, src: &[u8]) {
                // SAFETY: see above.
                unsafe { Self::run_scale::<false>(dst, c, src) }
            }

            fn mul_add(&self, dst: &mut [u8], c: u8, src: &[u8]) {
                // SAFETY: see above.
                unsafe { Self::run_scale::<true>(dst, c, src) }
            }

            fn stored(&self, c: u8) -> u64 {
                <$vector as crate::kernel::vector::Vector>::stored(c)
            }

            fn has_transforms(&self) -> bool {
                true
            }

            fn transform(&self, job: crate::kernel::transform::Job<'_, '_>) {
                const { assert!(crate::kernel::transform::MAX_POINTS == 16) };
                // SAFETY: see above.
                unsafe {
                    match job.points() {
                        2 => Self::run_transform::<2>(job),
                        4 => Self::run_transform::<4>(job),
                        8 => Self::run_transform::<8>(job),
                        _ => Self::run_transform::<16>(job),
                    }
                }
            }

            fn combine(&self, tile: crate::kernel::tile::Tile<'_, '_>) {
                const { assert!(crate::kernel::tile::MAX_OUTPUTS == 4) };
                // SAFETY: see above.
                unsafe {
                    match tile.output_count() {
                        1 => Self::run_combine::<1>(tile),
                        2 => Self::run_combine::<2>(tile),
                        3 => Self::run_combine::<3>(tile),
                        _ => Self::run_combine::<4>(tile),
                    }
                }
            }
        }
    };
}

pub(super) use backend;
