//! What differs between back ends: a vector, and how it is loaded and stored.
#![allow(unsafe_code)]

/// A register of bytes, and how to multiply it by a constant.
///
/// # Safety
/// Loads and stores touch exactly the bytes that they are told to.
pub(super) unsafe trait Vector: Copy {
    /// Bytes of a vector.
    const WIDTH: usize;

    /// Whether it can be stored past the caches.
    const STREAMS: bool = false;

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

    const STREAMS: bool = V::STREAMS;

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
