//! What the machine can do at all: the least memory traffic that a job could have, without any arithmetic.
//!
//! Written by hand for AVX-512 and AVX2, because a limit that a compiler missed would be none.

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
            _mm512_stream_si512, _mm512_xor_si512,
        };

        /// Bytes a step: four vectors, enough that loads do not wait for sums.
        const STEP: usize = 256;
        type Sums = (__m512i, __m512i, __m512i, __m512i);

        // Plain loops: a closure that is handed to an iterator would be compiled without the feature.

        /// Reads all whole steps of all sources.
        #[target_feature(enable = "avx512f")]
        pub fn read(sources: &[&mut [u8]]) {
            let zero = _mm512_setzero_si512();
            let mut sums = (zero, zero, zero, zero);
            for source in sources {
                let mut done = 0;
                while done + STEP <= source.len() {
                    sums = add(sums, &source[done..done + STEP]);
                    done += STEP;
                }
            }
            std::hint::black_box(sums);
        }

        /// The XOR of all whole steps: how many bytes that was.
        #[target_feature(enable = "avx512f")]
        pub fn xor(sources: &[&mut [u8]], out: &mut [u8], past: bool) -> usize {
            let past = past && out.as_ptr().align_offset(64) == 0;
            let zero = _mm512_setzero_si512();
            let mut done = 0;
            while done + STEP <= out.len() {
                let mut sums = (zero, zero, zero, zero);
                for source in sources {
                    sums = add(sums, &source[done..done + STEP]);
                }
                store(&mut out[done..done + STEP], sums, past);
                done += STEP;
            }
            _mm_sfence();
            done
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn add(sums: Sums, step: &[u8]) -> Sums {
            assert_eq!(step.len(), STEP);
            let at = step.as_ptr();
            // SAFETY: four vectors are the 256 bytes of `step`; loads may be at any address.
            let loaded = unsafe {
                (
                    _mm512_loadu_si512(at.cast()),
                    _mm512_loadu_si512(at.add(64).cast()),
                    _mm512_loadu_si512(at.add(128).cast()),
                    _mm512_loadu_si512(at.add(192).cast()),
                )
            };
            (
                _mm512_xor_si512(sums.0, loaded.0),
                _mm512_xor_si512(sums.1, loaded.1),
                _mm512_xor_si512(sums.2, loaded.2),
                _mm512_xor_si512(sums.3, loaded.3),
            )
        }

        /// `past`: `to` is aligned.
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn store(to: &mut [u8], sums: Sums, past: bool) {
            assert_eq!(to.len(), STEP);
            let at: *mut __m512i = to.as_mut_ptr().cast();
            let sums = [sums.0, sums.1, sums.2, sums.3];
            let mut index = 0;
            while index < sums.len() {
                // SAFETY: four vectors are the 256 bytes of `to`; streamed ones are aligned.
                unsafe {
                    if past {
                        _mm512_stream_si512(at.add(index), sums[index]);
                    } else {
                        _mm512_storeu_si512(at.add(index), sums[index]);
                    }
                }
                index += 1;
            }
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
