//! What the machine can do at all: the least memory traffic that a job could have, without any arithmetic.
//!
//! Written by hand for AVX-512, because a limit that a compiler missed would be none. Elsewhere it is what the compiler makes of
//! plain loops.

use std::time::Duration;

use crate::memory::{Memory, Set};
use crate::side::{Side, timed};
use crate::{BenchError, Job};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// All data chunks are read.
    Read,
    /// Their XOR is written to one chunk.
    Xor,
    /// The same, past the caches.
    XorPastCaches,
    /// All data chunks are copied, as the system's `memcpy` does it.
    Copy,
}

impl Bound {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Xor, Self::XorPastCaches, Self::Copy];

    /// For reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read of k sources",
            Self::Xor => "XOR of k sources",
            Self::XorPastCaches => "XOR of k sources, non-temporal",
            Self::Copy => "memcpy of k sources",
        }
    }
}

/// A limit as a side: it takes turns with the others.
pub struct Limit {
    bound: Bound,
    len: usize,
}

impl Limit {
    /// For chunks like those of `job`.
    #[must_use]
    pub fn new(bound: Bound, job: &Job) -> Self {
        Self { bound, len: job.len }
    }
}

impl Side for Limit {
    fn name(&self) -> String {
        self.bound.name().to_owned()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        let mut sets = memory.sets();
        let bytes = sets.first().map_or(0, |set| set.data.len()) * self.len;
        timed(&mut sets, bytes, time, |set| {
            self.run(set);
            Ok(())
        })
    }
}

impl Limit {
    fn run(&self, set: &mut Set<'_>) {
        match self.bound {
            Bound::Read => vector::read(&set.data),
            Bound::Xor => vector::xor(&set.data, set.extra[0], false),
            Bound::XorPastCaches => vector::xor(&set.data, set.extra[0], true),
            Bound::Copy => {
                set.extra.iter_mut().zip(&set.data).for_each(|(copy, chunk)| copy.copy_from_slice(chunk));
            }
        }
    }
}

/// Loops over vectors, and over single bytes for what is left.
mod vector {
    #![allow(unsafe_code)]

    /// Looks at all bytes.
    pub fn read(sources: &[&mut [u8]]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F.
            return unsafe { x86::read(sources) };
        }
        let sum = sources.iter().flat_map(|source| source.iter()).fold(0, |sum, byte| sum ^ byte);
        std::hint::black_box(sum);
    }

    /// `out = sum of the sources`, with stores that go past the caches if `past` and the machine has them.
    pub fn xor(sources: &[&mut [u8]], out: &mut [u8], past: bool) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F.
            let done = unsafe { x86::xor(sources, out, past) };
            return rest(sources, out, done);
        }
        let _ = past;
        out.fill(0);
        for source in sources {
            out.iter_mut().zip(source.iter()).for_each(|(sum, byte)| *sum ^= byte);
        }
    }

    /// The bytes from `done` on.
    #[cfg(target_arch = "x86_64")]
    fn rest(sources: &[&mut [u8]], out: &mut [u8], done: usize) {
        for (index, sum) in out.iter_mut().enumerate().skip(done) {
            *sum = sources.iter().fold(0, |sum, source| sum ^ source[index]);
        }
    }

    #[cfg(target_arch = "x86_64")]
    mod x86 {
        use std::arch::x86_64::{
            __m512i, _mm_sfence, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_storeu_si512,
            _mm512_stream_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
        };

        /// Bytes of a vector.
        const WIDTH: usize = 64;
        /// Vectors a step: enough that loads do not wait for sums.
        const STEP: usize = 4;

        // Plain loops: a closure that is handed to an iterator would be compiled without the feature.

        /// Reads all whole steps of all sources.
        #[target_feature(enable = "avx512f")]
        pub fn read(sources: &[&mut [u8]]) {
            let mut sums = [_mm512_setzero_si512(); STEP];
            for source in sources {
                let mut done = 0;
                while done + STEP * WIDTH <= source.len() {
                    for (index, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: a whole step is left.
                        *sum = unsafe { _mm512_xor_si512(*sum, load(source, done + index * WIDTH)) };
                    }
                    done += STEP * WIDTH;
                }
            }
            std::hint::black_box(sums);
        }

        /// The XOR of all whole vectors: how many bytes that was.
        #[target_feature(enable = "avx512f")]
        pub fn xor(sources: &[&mut [u8]], out: &mut [u8], past: bool) -> usize {
            assert!(sources.iter().all(|source| source.len() == out.len()), "all of one length");
            // Such stores need aligned addresses.
            let past = past && out.as_ptr().align_offset(WIDTH) == 0;
            let mut done = 0;
            // SAFETY: so many bytes are left of all sources and of `out`, which is aligned if stores go past the caches.
            unsafe {
                while done + STEP * WIDTH <= out.len() {
                    step::<STEP>(sources, out, done, past);
                    done += STEP * WIDTH;
                }
                while done + WIDTH <= out.len() {
                    step::<1>(sources, out, done, past);
                    done += WIDTH;
                }
            }
            // Stores past the caches are ordered with nothing: the clock must not stop before they are out.
            _mm_sfence();
            done
        }

        /// `N` vectors of the XOR, two sources at a time.
        ///
        /// # Safety
        /// All sources and `out` go on for `N` vectors from `at`; with `past`, `out` is aligned there.
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn step<const N: usize>(sources: &[&mut [u8]], out: &mut [u8], at: usize, past: bool) {
            let mut sums = [_mm512_setzero_si512(); N];
            let (pairs, last) = sources.as_chunks::<2>();
            // SAFETY: as promised.
            unsafe {
                // 0x96 is the XOR of three, which halves the arithmetic.
                for [a, b] in pairs {
                    for (index, sum) in sums.iter_mut().enumerate() {
                        let (a, b) = (load(a, at + index * WIDTH), load(b, at + index * WIDTH));
                        *sum = _mm512_ternarylogic_epi64::<0x96>(*sum, a, b);
                    }
                }
                for source in last {
                    for (index, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_xor_si512(*sum, load(source, at + index * WIDTH));
                    }
                }
                for (index, sum) in sums.into_iter().enumerate() {
                    let to: *mut __m512i = out.as_mut_ptr().add(at + index * WIDTH).cast();
                    if past {
                        _mm512_stream_si512(to, sum);
                    } else {
                        _mm512_storeu_si512(to, sum);
                    }
                }
            }
        }

        /// # Safety
        /// A vector can be read from `at` on.
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn load(source: &[u8], at: usize) -> __m512i {
            // SAFETY: as promised; loads may be at any address.
            unsafe { _mm512_loadu_si512(source.as_ptr().add(at).cast()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extent, Op};

    #[test]
    fn the_xor_that_is_the_limit_is_the_xor() {
        for len in [1, 64, 255, 256, 257, 1000] {
            let job = Job::new("5+1".parse().unwrap(), Op::Encode, Extent::Chunk(len), 5);
            let mut memory = Memory::new(&job, 5, 1);
            for bound in [Bound::Xor, Bound::XorPastCaches] {
                let mut sets = memory.sets();
                let set = &mut sets[0];
                set.extra[0].fill(0x77);
                Limit::new(bound, &job).run(set);
                for at in 0..len {
                    assert_eq!(set.extra[0][at], set.data.iter().fold(0, |sum, chunk| sum ^ chunk[at]));
                }
            }
        }
    }

    #[test]
    fn all_limits_have_a_rate() {
        let job = Job::new("5+1".parse().unwrap(), Op::Encode, Extent::Chunk(777), 5);
        let mut memory = Memory::new(&job, 5, 1);
        for bound in Bound::ALL {
            let rate = Limit::new(bound, &job).round(&mut memory, Duration::from_micros(50));
            assert!(rate.unwrap() > 0.0, "{}", bound.name());
        }
    }
}
