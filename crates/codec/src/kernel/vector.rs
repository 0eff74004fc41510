//! The loops that all vector back ends share, over what differs between them: a vector.
//!
//! A back end implements [`Vector`] for its register type and calls [`backend!`], which compiles the loops once for its
//! instruction set. The loops are always inlined there, so that no function of another instruction set remains.
#![allow(unsafe_code)]

use super::tile::{MAX_SOURCES, Tile};

/// A register of bytes, and how to multiply it by a constant.
///
/// # Safety
/// Loads and stores touch exactly the bytes that they are told to.
pub(super) unsafe trait Vector: Copy {
    /// Bytes of a vector.
    const WIDTH: usize;

    /// A coefficient as it is kept in memory while a tile is computed.
    type Stored: Copy;
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

    /// # Safety
    /// See `zero`.
    unsafe fn xor(self, other: Self) -> Self;

    /// Coefficient `c` for memory.
    fn stored(c: u8) -> Self::Stored;

    /// # Safety
    /// See `zero`.
    unsafe fn factor(stored: Self::Stored) -> Self::Factor;

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
pub(super) unsafe fn combine<V: Vector, const M: usize, const U: usize>(mut tile: Tile<'_, '_>) {
    let mut factors = [[V::stored(0); M]; MAX_SOURCES];
    for (s, factors) in factors[..tile.sources().len()].iter_mut().enumerate() {
        *factors = std::array::from_fn(|o| V::stored(tile.coefficient(o, s)));
    }
    let outputs: [*mut u8; M] = std::array::from_fn(|o| tile.output_pointer(o));
    let (mut at, end) = (tile.start(), tile.end());
    // SAFETY: the sources and outputs of a tile can be accessed up to `end`, beyond which no column goes.
    unsafe {
        while end - at >= U * V::WIDTH {
            let (load, store) = (|from| V::load(from), |to, sum: V| sum.store(to));
            column::<V, M, U>(&tile, &factors, outputs, at, load, store);
            at += U * V::WIDTH;
        }
        while end - at >= V::WIDTH {
            let (load, store) = (|from| V::load(from), |to, sum: V| sum.store(to));
            column::<V, M, 1>(&tile, &factors, outputs, at, load, store);
            at += V::WIDTH;
        }
        if at < end {
            let rest = end - at;
            let (load, store) = (|from| V::load_part(from, rest), |to, sum: V| sum.store_part(to, rest));
            column::<V, M, 1>(&tile, &factors, outputs, at, load, store);
        }
    }
}

/// `U` vectors of each output, from position `at` on.
///
/// # Safety
/// `outputs` are those of the tile; `load` and `store` touch nothing at or beyond its end.
#[inline(always)]
unsafe fn column<V: Vector, const M: usize, const U: usize>(
    tile: &Tile<'_, '_>,
    factors: &[[V::Stored; M]; MAX_SOURCES],
    outputs: [*mut u8; M],
    at: usize,
    load: impl Fn(*const u8) -> V,
    store: impl Fn(*mut u8, V),
) {
    // SAFETY: `at` and what follows lie within the sources and outputs, as promised.
    unsafe {
        let mut sums = [[V::zero(); U]; M];
        if tile.adds() {
            for (sums, output) in sums.iter_mut().zip(outputs) {
                for (u, sum) in sums.iter_mut().enumerate() {
                    *sum = load(output.add(at + u * V::WIDTH));
                }
            }
        }
        for (source, factors) in tile.sources().iter().zip(factors) {
            let mut values = [V::zero(); U];
            for (u, value) in values.iter_mut().enumerate() {
                *value = load(source.as_ptr().add(at + u * V::WIDTH));
            }
            for (sums, stored) in sums.iter_mut().zip(factors) {
                let factor = V::factor(*stored);
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = sum.xor(value.mul(factor));
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
