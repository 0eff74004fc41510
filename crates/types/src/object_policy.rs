//! Which values of a namespace lie in chunks.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{MAX_CELL_BYTES, ObjectLayout};

/// No value that is longer than this lies whole at one member.
pub const MAX_STRIPED_ABOVE: u32 = 1 << 20;

/// The same where a namespace does not say: from here on a SET in chunks costs a third less than a whole one, and a GET a sixth more at most
/// (docs/benchmarks/values.md).
const DEFAULT_STRIPED_ABOVE: u32 = 768 << 10;

/// Longest chunk that a namespace may ask for.
pub const MAX_CHUNK_BYTES: u32 = 64 << 20;

/// Which values of a namespace are objects, and how they are cut (docs/objects.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectPolicy {
    /// Longer values than so many bytes are, and those that are too long for an item; none = no value is. At most
    /// [`MAX_STRIPED_ABOVE`].
    #[serde(default)]
    pub striped_above: Option<u32>,
    /// Longest chunk in bytes: a multiple of [`MAX_CELL_BYTES`], at most [`MAX_CHUNK_BYTES`].
    #[serde(default = "default_chunk_bytes")]
    pub chunk_bytes: u32,
    /// By which rule their bytes are dealt.
    #[serde(default)]
    pub layout: ObjectLayout,
}

const fn default_chunk_bytes() -> u32 {
    1 << 20
}

impl Default for ObjectPolicy {
    fn default() -> Self {
        let (chunk_bytes, layout) = (default_chunk_bytes(), ObjectLayout::default());
        Self { striped_above: Some(DEFAULT_STRIPED_ABOVE), chunk_bytes, layout }
    }
}

impl ObjectPolicy {
    /// Whether values may be cut like that.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), BadObjects> {
        if let Some(bytes) = self.striped_above.filter(|bytes| *bytes > MAX_STRIPED_ABOVE) {
            return Err(BadObjects::StripedAbove(bytes));
        }
        let may_be = MAX_CELL_BYTES..=MAX_CHUNK_BYTES;
        if !may_be.contains(&self.chunk_bytes) || !self.chunk_bytes.is_multiple_of(MAX_CELL_BYTES) {
            return Err(BadObjects::Chunk(self.chunk_bytes));
        }
        Ok(())
    }
}

/// Why values cannot be cut like that.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadObjects {
    /// An item cannot be so long.
    #[error("values up to {0} bytes cannot lie whole at one member: the longest is 1 MiB")]
    StripedAbove(u32),
    /// Chunks cannot be so long.
    #[error("a chunk cannot have {0} bytes: a multiple of 64 KiB, and at most 64 MiB")]
    Chunk(u32),
}

/// Which values are to be objects. In a change a bare `Option` would not tell "none" from "as it is".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Striped {
    /// None.
    Never,
    /// Those that are longer than so many bytes.
    Above(u32),
}

impl Striped {
    /// As [`ObjectPolicy::striped_above`] has it.
    #[must_use]
    pub fn above(self) -> Option<u32> {
        match self {
            Self::Never => None,
            Self::Above(bytes) => Some(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BadCatalog, Catalog, Name, PolicyChange};

    #[test]
    fn values_are_cut_as_a_namespace_says_if_they_can_be() {
        let mut catalog = Catalog::first("rs(3+2)".parse().unwrap(), 5);
        let mut set = |change: PolicyChange| {
            catalog.set_policy(&Name::default_name(), change).map(|()| catalog.clone())
        };
        let striped = |striped| PolicyChange { striped: Some(striped), ..PolicyChange::default() };
        let chunk = |bytes| PolicyChange { chunk_bytes: Some(bytes), ..PolicyChange::default() };
        for change in [striped(Striped::Above(0)), striped(Striped::Above(MAX_STRIPED_ABOVE)), chunk(1 << 26)]
        {
            assert_eq!(set(change).map(|catalog| catalog.check()), Ok(Ok(())), "{change:?}");
        }
        for change in
            [striped(Striped::Above(MAX_STRIPED_ABOVE + 1)), chunk(0), chunk(65_537), chunk(65 << 20)]
        {
            assert!(matches!(set(change), Err(BadCatalog::Objects { .. })), "{change:?}");
        }
        let objects = set(striped(Striped::Never)).unwrap().namespaces[0].policy.objects;
        let layout = ObjectLayout::Spread;
        assert_eq!(objects, ObjectPolicy { striped_above: None, chunk_bytes: 1 << 26, layout });
        let wide = PolicyChange { layout: Some(ObjectLayout::Wide), ..PolicyChange::default() };
        let objects = set(wide).unwrap().namespaces[0].policy.objects;
        assert_eq!((objects.layout, objects.chunk_bytes), (ObjectLayout::Wide, 1 << 26));
    }
}
