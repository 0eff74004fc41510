//! A replica as bytes, in parts: how a parity hands it to a stand-in or to another parity (docs/format.md, "Index
//! replica").
//!
//! The encoding is one stream: a header with counts, the run classes, the touched bitmap, the entries in
//! ascending order. Part `p` is the stream's bytes from `p * max_bytes` on, so parts can be asked for in any order and
//! asked for again; the replica must not change meanwhile (its role has no primary, or its stream is held).

use crate::cohorts::ROW_BYTES;
use crate::replica::{MAX_RUNS, is_entry};
use crate::{Budget, Index, Replica};
use bytes::Bytes;
use types::class::MIN_SLOT_BYTES;
use types::{Addr, IndexHash, IndexOp, MAX_AREA_BYTES, PAGE_BYTES, RunClass};

const MAGIC: u32 = u32::from_le_bytes(*b"gri2");
const HEADER_BYTES: usize = 24;
/// 64-page words of the longest area's touched bitmap.
const MAX_WORDS: usize = MAX_AREA_BYTES / PAGE_BYTES / 64;
/// Items of the longest area.
const MAX_ENTRIES: u64 = (MAX_AREA_BYTES / MIN_SLOT_BYTES) as u64;
const WORD_BYTES: usize = 8;
const ENTRY_BYTES: usize = 9;

/// Why bytes are no replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaError {
    /// Not the header of this version's encoding.
    #[error("not an index replica of this version")]
    NotAReplica,
    /// A run class, page, hash or address that cannot be.
    #[error("the replica names what cannot be")]
    Impossible,
    /// Entries are not in strictly ascending order.
    #[error("the replica's entries are out of order")]
    OutOfOrder,
    /// The last part is missing.
    #[error("the replica ends too early")]
    Incomplete,
    /// Bytes after the end.
    #[error("the replica has bytes after its end")]
    TooLong,
}

/// The stream's header: lengths of its sections.
#[derive(Clone, Copy, Debug)]
struct Header {
    cohorts: u32,
    classes: u32,
    words: u32,
    entries: u64,
}

impl Header {
    fn of(replica: &Replica) -> Self {
        Self {
            cohorts: replica.row_count() as u32,
            classes: replica.classes().len() as u32,
            words: replica.touched().words().len() as u32,
            entries: replica.index().len() as u64,
        }
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.cohorts.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.classes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.words.to_le_bytes());
        bytes[16..].copy_from_slice(&self.entries.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let header = Self { cohorts: u32_at(4), classes: u32_at(8), words: u32_at(12), entries: u64_at(16) };
        (u32_at(0) == MAGIC).then_some(header)
    }
}

impl Replica {
    /// Part `part` of the encoding, of at most `max_bytes` bytes, and whether it is the last. Parts beyond the last are
    /// empty. All parts must be asked for with the same `max_bytes`.
    ///
    /// # Panics
    /// If `max_bytes` is 0.
    #[must_use]
    pub fn encode_part(&self, part: u32, max_bytes: usize) -> (Bytes, bool) {
        assert!(max_bytes > 0, "a part has room for something");
        let total = self.encoded_bytes();
        let start = (part as usize).saturating_mul(max_bytes).min(total);
        let end = start.saturating_add(max_bytes).min(total);
        let mut window = Window { skip: start, left: end - start, out: Vec::with_capacity(end - start) };
        self.encode_window(&mut window);
        (window.out.into(), end == total)
    }

    /// A digest of all contents: equal for equal replicas.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = [0u32; 2];
        let (mut part, mut last) = (0, false);
        while !last {
            let bytes;
            (bytes, last) = self.encode_part(part, 1 << 20);
            digest[0] = crc32c::crc32c_append(digest[0], &bytes);
            digest[1] = digest[1].rotate_left(5) ^ crc32c::crc32c_append(u32::MAX - part, &bytes);
            part += 1;
        }
        u64::from(digest[0]) << 32 | u64::from(digest[1])
    }

    /// A replica at the begin of a lesson: run classes (a byte each), cohorts and sessions, no entries and no pages yet.
    ///
    /// # Errors
    /// If a class, a cohort or a session is none.
    pub fn at_begin(budget: Budget, classes: &[u8], rows: &[u8]) -> Result<Self, ReplicaError> {
        let mut replica = Self::new(budget);
        let (rows, rest) = rows.as_chunks::<ROW_BYTES>();
        if !rest.is_empty() {
            return Err(ReplicaError::Incomplete);
        }
        if !rows.iter().all(|row| replica.push_row(row)) {
            return Err(ReplicaError::Impossible);
        }
        for (run, class) in classes.iter().enumerate() {
            let op = IndexOp::Assign { run: run as u32, class: RunClass(*class) };
            if !Self::accepts(&op) {
                return Err(ReplicaError::Impossible);
            }
            replica.apply(&op);
        }
        Ok(replica)
    }

    /// The cohorts, for the begin of a lesson.
    #[must_use]
    pub fn encode_cohorts(&self) -> Bytes {
        self.cohorts().rows().flatten().collect::<Vec<u8>>().into()
    }

    /// The sessions, to come behind the cohorts.
    #[must_use]
    pub fn encode_sessions(&self) -> Bytes {
        self.sessions().rows().flatten().collect::<Vec<u8>>().into()
    }

    /// The entries of one segment of the index.
    ///
    /// # Panics
    /// If there is no such segment.
    #[must_use]
    pub fn encode_segment(&self, segment: usize) -> Bytes {
        self.index()
            .segment_entries(segment)
            .flat_map(|(hash, addr)| encode_entry(hash, addr))
            .collect::<Vec<u8>>()
            .into()
    }

    /// Takes in the entries of a segment that has none yet.
    ///
    /// # Errors
    /// If they are no entries of this segment in ascending order; some may have been taken in.
    pub fn learn_segment(&mut self, segment: usize, entries: &[u8]) -> Result<(), ReplicaError> {
        let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() {
            return Err(ReplicaError::Incomplete);
        }
        let mut last = None;
        for (hash, addr) in entries.iter().map(|entry| decode_entry(*entry)) {
            // Whose they are was said at the begin of the lesson.
            if !is_entry(hash, addr) || Index::segment_of(hash) != segment {
                return Err(ReplicaError::Impossible);
            }
            if last.replace((hash, addr)) >= Some((hash, addr)) {
                return Err(ReplicaError::OutOfOrder);
            }
            self.insert_counted(hash, addr);
        }
        Ok(())
    }

    fn encoded_bytes(&self) -> usize {
        let words = self.touched().words().len() * WORD_BYTES;
        let rows = self.row_count() * ROW_BYTES;
        HEADER_BYTES + rows + self.classes().len() + words + self.index().len() * ENTRY_BYTES
    }

    fn encode_window(&self, window: &mut Window) {
        window.put(&Header::of(self).encode());
        self.rows().for_each(|row| window.put(&row));
        if !window.skip_whole(self.classes().len()) {
            self.classes().iter().for_each(|class| window.put(&[class.0]));
        }
        if !window.skip_whole(self.touched().words().len() * WORD_BYTES) {
            self.touched().words().iter().for_each(|word| window.put(&word.to_le_bytes()));
        }
        for (segment, len) in self.index().segment_lens().enumerate() {
            if window.skip_whole(len * ENTRY_BYTES) {
                continue;
            }
            for (hash, addr) in self.index().segment_entries(segment) {
                window.put(&encode_entry(hash, addr));
            }
        }
    }
}

/// The bytes `skip .. skip + left` of a stream that is written into it.
struct Window {
    skip: usize,
    left: usize,
    out: Vec<u8>,
}

impl Window {
    fn put(&mut self, bytes: &[u8]) {
        if self.skip_whole(bytes.len()) || self.left == 0 {
            return;
        }
        let bytes = &bytes[self.skip..];
        let bytes = &bytes[..bytes.len().min(self.left)];
        self.skip = 0;
        self.left -= bytes.len();
        self.out.extend_from_slice(bytes);
    }

    /// Skips the next `len` bytes if none of them is wanted.
    fn skip_whole(&mut self, len: usize) -> bool {
        if self.left == 0 {
            return true;
        }
        let outside = self.skip >= len;
        if outside {
            self.skip -= len;
        }
        outside
    }
}

/// 40 bits of hash, then the address: 9 bytes that sort like the pair.
fn encode_entry(hash: IndexHash, addr: Addr) -> [u8; ENTRY_BYTES] {
    let [_, _, _, a, b, c, d, e] = hash.0.to_be_bytes();
    let [f, g, h, i] = addr.0.to_be_bytes();
    [a, b, c, d, e, f, g, h, i]
}

fn decode_entry(bytes: [u8; ENTRY_BYTES]) -> (IndexHash, Addr) {
    let [a, b, c, d, e, f, g, h, i] = bytes;
    (IndexHash(u64::from_be_bytes([0, 0, 0, a, b, c, d, e])), Addr(u32::from_be_bytes([f, g, h, i])))
}

/// Puts the parts of a replica together. Memory grows with what has arrived, never by a declared length.
#[derive(Debug)]
pub struct ReplicaBuilder {
    replica: Replica,
    /// Bytes that have arrived and are not read yet; less than one unit of the current section.
    rest: Vec<u8>,
    header: Option<Header>,
    /// Units of the sections that were read so far: cohorts, classes, words, entries.
    read: [u64; 4],
    last: Option<(IndexHash, Addr)>,
}

impl ReplicaBuilder {
    /// Nothing has arrived.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        let replica = Replica::new(budget);
        Self { replica, rest: Vec::new(), header: None, read: [0; 4], last: None }
    }

    /// Adds the next part.
    ///
    /// # Errors
    /// If the bytes are not those of a replica. The builder is of no use then.
    pub fn push(&mut self, part: &[u8]) -> Result<(), ReplicaError> {
        let mut joined = std::mem::take(&mut self.rest);
        joined.extend_from_slice(part);
        let mut bytes = joined.as_slice();
        while self.read_unit(&mut bytes)? {}
        self.rest = bytes.to_vec();
        Ok(())
    }

    /// The replica, once all parts have been added.
    ///
    /// # Errors
    /// If something is missing.
    pub fn finish(self) -> Result<Replica, ReplicaError> {
        if self.section() != Some(Section::End) {
            return Err(ReplicaError::Incomplete);
        }
        // What is counted there must be what there is.
        let counted: u64 =
            self.replica.cohorts().uses().map(|(_, known)| known.items).fold(0, u64::saturating_add);
        if counted == self.replica.index().len() as u64 {
            Ok(self.replica)
        } else {
            Err(ReplicaError::Impossible)
        }
    }

    fn section(&self) -> Option<Section> {
        let header = self.header?;
        let [cohorts, classes, words, entries] = self.read;
        Some(if cohorts < u64::from(header.cohorts) {
            Section::Cohorts
        } else if classes < u64::from(header.classes) {
            Section::Classes
        } else if words < u64::from(header.words) {
            Section::Words
        } else if entries < header.entries {
            Section::Entries
        } else {
            Section::End
        })
    }

    /// Reads one unit of the current section; false if there are too few bytes.
    fn read_unit(&mut self, bytes: &mut &[u8]) -> Result<bool, ReplicaError> {
        match self.section() {
            None => read(bytes, |unit| self.read_header(unit)),
            Some(Section::Cohorts) => read(bytes, |unit| self.read_cohort(unit)),
            Some(Section::Classes) => read(bytes, |unit| self.read_class(unit)),
            Some(Section::Words) => read(bytes, |unit| self.read_word(unit)),
            Some(Section::Entries) => read(bytes, |unit| self.read_entry(unit)),
            Some(Section::End) if bytes.is_empty() => Ok(false),
            Some(Section::End) => Err(ReplicaError::TooLong),
        }
    }

    fn read_header(&mut self, unit: [u8; HEADER_BYTES]) -> Result<(), ReplicaError> {
        let header = Header::decode(&unit).ok_or(ReplicaError::NotAReplica)?;
        if header.classes as usize > MAX_RUNS
            || header.words as usize > MAX_WORDS
            || header.entries > MAX_ENTRIES
        {
            return Err(ReplicaError::Impossible);
        }
        self.header = Some(header);
        Ok(())
    }

    fn read_cohort(&mut self, row: [u8; ROW_BYTES]) -> Result<(), ReplicaError> {
        self.read[0] += 1;
        if self.replica.push_row(&row) { Ok(()) } else { Err(ReplicaError::Impossible) }
    }

    fn read_class(&mut self, [class]: [u8; 1]) -> Result<(), ReplicaError> {
        let op = IndexOp::Assign { run: self.read[1] as u32, class: RunClass(class) };
        self.read[1] += 1;
        self.apply(op)
    }

    fn read_word(&mut self, unit: [u8; WORD_BYTES]) -> Result<(), ReplicaError> {
        self.replica.set_touched_word(self.read[2] as usize, u64::from_le_bytes(unit));
        self.read[2] += 1;
        Ok(())
    }

    fn read_entry(&mut self, unit: [u8; ENTRY_BYTES]) -> Result<(), ReplicaError> {
        let (hash, addr) = decode_entry(unit);
        if self.last >= Some((hash, addr)) {
            return Err(ReplicaError::OutOfOrder);
        }
        self.last = Some((hash, addr));
        self.read[3] += 1;
        if !is_entry(hash, addr) {
            return Err(ReplicaError::Impossible);
        }
        self.replica.insert_counted(hash, addr);
        Ok(())
    }

    fn apply(&mut self, op: IndexOp) -> Result<(), ReplicaError> {
        if !Replica::accepts(&op) {
            return Err(ReplicaError::Impossible);
        }
        self.replica.apply(&op);
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Cohorts,
    Classes,
    Words,
    Entries,
    End,
}

/// Hands the next `N` bytes to `take`; false if there are fewer.
fn read<const N: usize>(
    bytes: &mut &[u8],
    take: impl FnOnce([u8; N]) -> Result<(), ReplicaError>,
) -> Result<bool, ReplicaError> {
    let Some((unit, rest)) = bytes.split_first_chunk::<N>() else { return Ok(false) };
    take(*unit)?;
    *bytes = rest;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::{ClientSession, Cohort, NamespaceId, ResultCode, UnixSeconds};

    use super::*;

    fn sample() -> Replica {
        let mut replica = Replica::new(Budget::new(1 << 30));
        for run in 0..40u32 {
            replica.apply(&IndexOp::Assign { run, class: RunClass(5) });
        }
        for i in 0..3000u64 {
            let hash = IndexHash(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & 0xff_ffff_ffff);
            let namespace = NamespaceId((i % 3) as u32);
            let cohort = Cohort::of(namespace, 0);
            replica.apply(&IndexOp::Insert { hash, addr: Addr(i as u32 * 10), cohort });
            replica.touch(Addr(i as u32 * 10), 80);
        }
        let namespace = NamespaceId(1);
        replica.apply(&IndexOp::FlushAt { namespace, at: UnixSeconds(77) });
        replica.apply(&IndexOp::Flush { namespace: NamespaceId(2) });
        replica.apply(&IndexOp::SessionBegins { session: ClientSession(4) });
        replica.apply(&done(1));
        replica
    }

    fn done(sequence: u32) -> IndexOp {
        let (session, code) = (ClientSession(4), ResultCode::Stored);
        IndexOp::WriteDone { session, sequence, behind: 0, code, version: 9 }
    }

    fn parts(replica: &Replica, max_bytes: usize) -> Vec<Bytes> {
        let (mut parts, mut last) = (vec![], false);
        while !last {
            let bytes;
            (bytes, last) = replica.encode_part(parts.len() as u32, max_bytes);
            assert!(bytes.len() == max_bytes || last);
            parts.push(bytes);
        }
        parts
    }

    fn rebuild(parts: &[Bytes]) -> Result<Replica, ReplicaError> {
        let mut builder = ReplicaBuilder::new(Budget::new(1 << 30));
        parts.iter().try_for_each(|part| builder.push(part))?;
        builder.finish()
    }

    #[test]
    fn parts_of_any_size_make_the_same_replica() {
        let replica = sample();
        for max_bytes in [1, 7, 100, 4096, 1 << 20] {
            let copy = rebuild(&parts(&replica, max_bytes)).unwrap();
            assert_eq!(copy, replica);
            assert_eq!(copy.digest(), replica.digest());
        }
        let (beyond, last) = replica.encode_part(1000, 1 << 20);
        assert!(beyond.is_empty() && last);
    }

    #[test]
    fn an_empty_replica_is_one_part() {
        let empty = Replica::new(Budget::new(1 << 30));
        let parts = parts(&empty, 1000);
        assert_eq!(parts.len(), 1);
        assert_eq!(rebuild(&parts).unwrap(), empty);
    }

    #[test]
    fn the_digest_sees_every_part_of_the_contents() {
        let changes: [fn(&mut Replica); 5] = [
            |replica| replica.touch(Addr(500_000), 1),
            |replica| replica.apply(&done(2)),
            |replica| {
                replica.apply(&IndexOp::FlushAt { namespace: NamespaceId(1), at: UnixSeconds(78) });
            },
            |replica| replica.apply(&IndexOp::Assign { run: 3, class: RunClass(6) }),
            |replica| {
                let (hash, addr) = (IndexHash(5), Addr(80));
                replica.apply(&IndexOp::Insert { hash, addr, cohort: Cohort::default() });
            },
        ];
        for change in changes {
            let mut other = sample();
            change(&mut other);
            assert_ne!(other, sample());
            assert_ne!(other.digest(), sample().digest());
        }
    }

    #[test]
    fn missing_further_and_foreign_bytes_are_refused() {
        let parts = parts(&sample(), 1 << 20);
        assert_eq!(rebuild(&[parts[0].slice(..parts[0].len() - 1)]).unwrap_err(), ReplicaError::Incomplete);
        assert_eq!(
            rebuild(&[parts[0].clone(), Bytes::from_static(b"x")]).unwrap_err(),
            ReplicaError::TooLong
        );
        let other = Bytes::from_static(&[b'x'; HEADER_BYTES]);
        assert_eq!(rebuild(&[other]).unwrap_err(), ReplicaError::NotAReplica);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn garbage_is_an_error_or_a_possible_replica(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = parts(&sample(), 1 << 20)[0].to_vec();
            for (at, byte) in changes {
                let len = bytes.len();
                bytes[at.index(len)] = byte;
            }
            let cut = cut.index(bytes.len());
            let _ = rebuild(&[Bytes::copy_from_slice(&bytes[..cut]), Bytes::copy_from_slice(&bytes[cut..])]);
            let _ = rebuild(&[Bytes::copy_from_slice(&bytes[cut..])]);
        }
    }
}
