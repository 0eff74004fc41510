//! What an index takes that has grown to so many entries, whose hashes are spread as hashes are.

use types::{Addr, ClusterId, IndexHash, KeyHash};

use super::segment::{Segment, grown_bytes};
use super::{Index, SEGMENTS};
use crate::Budget;
use crate::growing::dealt;

/// Up to so many entries a segment an index is tried out: in small tables chance decides when a tail is full, which makes them
/// grow early. Beyond, the rule by which tables grow is all there is to it.
const TRIED: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct GrownIndex {
    /// What a real index took with 0, 1, 2, ... entries a segment.
    tried: Vec<usize>,
}

impl GrownIndex {
    /// Tries an index out: a millisecond.
    pub(crate) fn new() -> Self {
        let mut index = Index::new(Budget::new(u64::MAX));
        let mut tried = vec![index.memory_bytes()];
        for entries in 0..TRIED * SEGMENTS {
            let hash = KeyHash::of(ClusterId(0), &entries.to_le_bytes());
            index.insert(IndexHash::from(hash), Addr(entries as u32));
            if (entries + 1).is_multiple_of(SEGMENTS) {
                tried.push(index.memory_bytes());
            }
        }
        Self { tried }
    }

    /// With `len` entries.
    pub(crate) fn bytes(&self, len: usize) -> usize {
        let (whole, part) = (len / SEGMENTS, len % SEGMENTS);
        if let (Some(before), Some(after)) = (self.tried.get(whole), self.tried.get(whole + 1)) {
            return before + after.saturating_sub(*before) * part / SEGMENTS;
        }
        let segment = |at| grown_bytes(dealt(len as f64 / SEGMENTS as f64, at as u64));
        (0..SEGMENTS).map(segment).sum::<usize>() + SEGMENTS * size_of::<Segment>()
    }
}
