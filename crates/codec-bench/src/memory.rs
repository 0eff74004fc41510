//! Where chunks lie.

use crate::{Job, Op};

/// Bytes of a cache line.
const LINE: usize = 64;
/// At least so many lines between chunks, 576 bytes: chunks whose distance is a multiple of a page get into each other's way in
/// the cache, which costs up to half the speed. So the distance is an odd number of lines.
const GAP_LINES: usize = 9;
/// What a cold pool holds: more than the largest third-level caches of today, of which a core gets a share.
const COLD_BYTES: usize = 640 << 20;
/// The same for a card alone: many times its second-level cache, and so much that a launch and waiting for it, some 20 us, are little of it.
const COLD_BYTES_OF_CARD: usize = 512 << 20;

/// Memory for one or many sets of chunks. All sides work on the same, one after another.
pub struct Memory {
    bytes: Vec<u8>,
    offset: usize,
    stride: usize,
    len: usize,
    k: usize,
    m: usize,
    extra: usize,
    sets: usize,
}

/// The chunks of one code word, and room for results.
pub struct Set<'a> {
    /// Data chunks.
    pub data: Vec<&'a mut [u8]>,
    /// Parity chunks.
    pub parity: Vec<&'a mut [u8]>,
    /// As many as there are data chunks: copies, or what is repaired.
    pub extra: Vec<&'a mut [u8]>,
}

impl Memory {
    /// For `job`, whose code has `k` data and `m` parity roles. Data chunks are noise.
    #[must_use]
    pub fn new(job: &Job, k: usize, m: usize) -> Self {
        Self::of(job, k, m, COLD_BYTES)
    }

    /// The same where only a card takes part.
    #[must_use]
    pub fn for_card(job: &Job, k: usize, m: usize) -> Self {
        Self::of(job, k, m, COLD_BYTES_OF_CARD)
    }

    fn of(job: &Job, k: usize, m: usize, cold_bytes: usize) -> Self {
        let stride = stride(job.len);
        let sets = if job.cold { cold_bytes.div_ceil(touched(job, k, m) * stride) } else { 1 };
        let extra = k;
        // A line more, to begin at one wherever the allocator puts it.
        let bytes = vec![0; sets * (k + m + extra) * stride + LINE];
        let offset = bytes.as_ptr().align_offset(LINE);
        let mut memory = Self { bytes, offset, stride, len: job.len, k, m, extra, sets };
        memory.fill();
        memory
    }

    /// Noise for the data, and writes to all else, so that all pages are there.
    fn fill(&mut self) {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for set in self.sets() {
            for chunk in set.data {
                noise(chunk, &mut state);
            }
            set.parity.into_iter().chain(set.extra).for_each(|chunk| chunk.fill(0xa5));
        }
    }

    /// All sets.
    pub fn sets(&mut self) -> Vec<Set<'_>> {
        let (k, m, len) = (self.k, self.m, self.len);
        let of_set = (k + m + self.extra) * self.stride;
        let range = self.offset..self.offset + self.sets * of_set;
        let split = |bytes| {
            let mut chunks = <[u8]>::chunks_exact_mut(bytes, self.stride).map(|chunk| &mut chunk[..len]);
            let data = chunks.by_ref().take(k).collect();
            let parity = chunks.by_ref().take(m).collect();
            Set { data, parity, extra: chunks.collect() }
        };
        self.bytes[range].chunks_exact_mut(of_set).map(split).collect()
    }

    /// All sets, each as the chunks of all roles in their order: for those who repair in place.
    #[cfg(feature = "peers")]
    pub fn words(&mut self) -> Vec<Vec<&mut [u8]>> {
        self.sets().into_iter().map(|set| set.data.into_iter().chain(set.parity).collect()).collect()
    }
}

/// Chunks of a set that one operation touches.
fn touched(job: &Job, k: usize, m: usize) -> usize {
    match job.op {
        Op::Delta => 1 + m,
        Op::CopyEncode => 2 * k + m,
        Op::Decode => k + job.losses,
        Op::Encode | Op::ChecksumEncode => k + m,
    }
}

/// Bytes from the start of a chunk to the next.
fn stride(len: usize) -> usize {
    let lines = len.div_ceil(LINE) + GAP_LINES;
    (lines | 1) * LINE
}

/// Bytes without structure.
pub fn noise(bytes: &mut [u8], state: &mut u64) {
    let mut step = || {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        state.to_le_bytes()
    };
    let mut words = bytes.chunks_exact_mut(8);
    words.by_ref().for_each(|word| word.copy_from_slice(&step()));
    let tail = words.into_remainder();
    let last = step();
    tail.copy_from_slice(&last[..tail.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    #[test]
    fn chunks_lie_an_odd_number_of_lines_apart_and_begin_at_lines() {
        for len in [1, 63, 64, 65, 512, 4096, 65_536] {
            assert_eq!(stride(len) / LINE % 2, 1, "{len}");
            assert!(stride(len) >= len + 576);
            let job = Job::new("3+2".parse().unwrap(), Op::Encode, Extent::Chunk(len), 3);
            let mut memory = Memory::new(&job, 3, 2);
            let sets = memory.sets();
            let [set] = &sets[..] else { panic!("one set in cache") };
            assert_eq!((set.data.len(), set.parity.len(), set.extra.len()), (3, 2, 3));
            let chunks = set.data.iter().chain(&set.parity).chain(&set.extra);
            assert!(chunks.into_iter().all(|c| c.len() == len && c.as_ptr().align_offset(LINE) == 0));
        }
    }

    #[test]
    fn a_cold_pool_is_much_larger_than_the_caches() {
        let job = Job::new("3+2".parse().unwrap(), Op::Encode, Extent::Chunk(1 << 20), 3);
        let mut memory = Memory::new(&Job { cold: true, ..job }, 3, 2);
        let sets = memory.sets();
        assert!(sets.len() * 5 * (1 << 20) > COLD_BYTES - (5 << 20));
    }

    #[test]
    fn noise_fills_the_tail_too() {
        let mut bytes = [0; 21];
        noise(&mut bytes, &mut 7);
        assert!(bytes[16..].iter().any(|byte| *byte != 0));
    }
}
