//! Values that are too large to lie whole at one member: their names, and where each byte of them lies (docs/objects.md).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{GroupId, MemberId, NamespaceId, Term};

/// Longest cell, in bytes: what is coded, sent and checked at once.
pub const MAX_CELL_BYTES: u32 = 64 * 1024;
/// Cells have lengths that are multiples of this, so that every one begins at a word of the widest loops.
pub const CELL_ALIGNMENT: u32 = 64;
/// Most groups that one object uses.
pub const MAX_OBJECT_GROUPS: usize = 16;
/// Most ranges of stripes of one object that lie elsewhere than its groups say.
pub const MAX_EXCEPTIONS: usize = 64;
/// Longest object, in bytes: the format's limit.
pub const MAX_OBJECT_BYTES: u64 = 1 << 40;

/// The name of one object, of which there is never another one.
///
/// Ordered by the owner first: whoever asks about many asks each owner once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    /// The data role that speaks for it: that of its key.
    pub owner: MemberId,
    /// The term of the primary that has given the number.
    pub term: Term,
    /// Counted by that primary.
    pub number: u64,
    /// Nobody guesses it, and no later life of the role gives it again.
    pub salt: u64,
    /// Whose key it is.
    pub namespace: NamespaceId,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object-{}-{}.{}-{:016x}", self.owner, self.term, self.number, self.salt)
    }
}

/// The name of one chunk of a role: whose role it is, the place where it lies says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId {
    /// Of this object.
    pub object: ObjectId,
    /// Of this stripe of it, from 0.
    pub stripe: u32,
}

impl ChunkId {
    /// The first that there can be of `object`.
    #[must_use]
    pub fn first_of(object: ObjectId) -> Self {
        Self { object, stripe: 0 }
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.object, self.stripe)
    }
}

/// How an object's bytes are dealt to the roles of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Geometry {
    /// Length of the value in bytes, not 0.
    pub len: u64,
    /// Longest chunk in bytes: a multiple of [`MAX_CELL_BYTES`].
    pub chunk_len: u32,
    /// Data roles of its groups.
    pub k: u8,
}

/// One stripe of an object: `k` data chunks of equal cells, dealt round the data roles row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Which one, from 0.
    pub index: u32,
    /// Bytes of the value before it.
    pub start: u64,
    /// Bytes of the value in it. What its cells have beyond that is zero.
    pub len: u64,
    /// Rows: cells of each chunk.
    pub rows: u32,
    /// Length of each cell in bytes.
    pub cell_len: u32,
}

impl Geometry {
    /// Whether there can be such an object.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        let chunk_fits = self.chunk_len > 0 && self.chunk_len.is_multiple_of(MAX_CELL_BYTES);
        let len_fits = (1..=MAX_OBJECT_BYTES).contains(&self.len);
        // Not the division of `stripe_count`: it would be by what is checked here.
        chunk_fits && len_fits && self.k > 0 && self.len.div_ceil(self.stripe_len()) <= u64::from(u32::MAX)
    }

    /// Bytes of the value in every stripe but the last.
    #[must_use]
    pub fn stripe_len(&self) -> u64 {
        u64::from(self.chunk_len) * u64::from(self.k)
    }

    /// How many stripes it has.
    #[must_use]
    pub fn stripe_count(&self) -> u32 {
        self.len.div_ceil(self.stripe_len()) as u32
    }

    /// A stripe of it, none beyond its end.
    #[must_use]
    pub fn stripe(&self, index: u32) -> Option<Stripe> {
        let start = u64::from(index) * self.stripe_len();
        let len = self.len.checked_sub(start).filter(|left| *left > 0)?.min(self.stripe_len());
        let k = u64::from(self.k);
        let rows = len.div_ceil(k * u64::from(MAX_CELL_BYTES));
        let cell_len = len.div_ceil(k * rows).next_multiple_of(u64::from(CELL_ALIGNMENT));
        Some(Stripe { index, start, len, rows: rows as u32, cell_len: cell_len as u32 })
    }

    /// All stripes, in the order of their bytes.
    pub fn stripes(&self) -> impl Iterator<Item = Stripe> + use<> {
        let geometry = *self;
        (0..self.stripe_count()).filter_map(move |index| geometry.stripe(index))
    }
}

impl Stripe {
    /// Length of each of its chunks in bytes, data and parity alike.
    #[must_use]
    pub fn chunk_len(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.cell_len)
    }

    /// Bytes of the value in one row of `k` data cells, unless it is the last one.
    #[must_use]
    pub fn row_len(&self, k: u8) -> u64 {
        u64::from(self.cell_len) * u64::from(k)
    }

    /// How many bytes of the value are in the cell of data role `role` in row `row`; the rest of the cell is zero.
    #[must_use]
    pub fn filled(&self, k: u8, row: u32, role: u8) -> u32 {
        let before = u64::from(row) * self.row_len(k) + u64::from(role) * u64::from(self.cell_len);
        self.len.saturating_sub(before).min(u64::from(self.cell_len)) as u32
    }
}

/// Where the bytes of an object lie, and what they are: the value of the item under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Its name.
    pub id: ObjectId,
    /// How its bytes are dealt.
    pub geometry: Geometry,
    /// By which rule.
    pub layout: ObjectLayout,
    /// Stripe `s` lies in the group at `s` modulo their count; at most [`MAX_OBJECT_GROUPS`].
    pub groups: Vec<GroupId>,
    /// Stripes that lie elsewhere, ascending and apart; at most [`MAX_EXCEPTIONS`].
    pub exceptions: Vec<Exception>,
    /// CRC32C of the whole value.
    pub checksum: u32,
}

/// A rule by which bytes are dealt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectLayout {
    /// Cells are dealt round the data roles.
    #[default]
    Spread,
}

/// Stripes that lie in another group than the list says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The first of them.
    pub first: u32,
    /// How many there are, not 0.
    pub count: u32,
    /// Where they lie.
    pub group: GroupId,
}

impl Exception {
    /// The first stripe behind them.
    #[must_use]
    pub fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.count)
    }

    /// Whether it is about stripe `stripe`.
    #[must_use]
    pub fn covers(&self, stripe: u32) -> bool {
        (u64::from(self.first)..self.end()).contains(&u64::from(stripe))
    }

    /// Whether the chunks of stripe `stripe` that are in `group` are of no use, by all exceptions of their object: the stripe was put
    /// into another group afterwards.
    #[must_use]
    pub fn strand(all: &[Self], stripe: u32, group: GroupId) -> bool {
        all.iter().any(|range| range.covers(stripe) && range.group != group)
    }

    /// Notes in `all`, ascending and apart, that `stripe`, of which they say nothing, lies in `group`.
    pub fn add(all: &mut Vec<Self>, stripe: u32, group: GroupId) {
        let at = all.partition_point(|range| range.first < stripe);
        let after =
            all.get(at).filter(|next| next.group == group && next.first.checked_sub(1) == Some(stripe));
        let count = 1 + after.map_or(0, |next| next.count);
        all.splice(at..at + usize::from(count > 1), [Self { first: stripe, count, group }]);
        if let [before, new] = &mut all[at.saturating_sub(1)..=at]
            && before.group == group
            && before.end() == u64::from(stripe)
        {
            before.count += new.count;
            all.remove(at);
        }
    }
}

impl Descriptor {
    /// The group that stripe `stripe` lies in.
    #[must_use]
    pub fn group_of(&self, stripe: u32) -> Option<GroupId> {
        let has = |range: &&Exception| range.covers(stripe);
        let listed = || self.groups.get(stripe as usize % self.groups.len().max(1)).copied();
        self.exceptions.iter().find(has).map(|range| range.group).or_else(listed)
    }

    /// Every group that has chunks of it, once.
    #[must_use]
    pub fn all_groups(&self) -> Vec<GroupId> {
        let stripes = self.geometry.stripe_count() as usize;
        let listed = self.groups.iter().copied().take(stripes);
        let mut all: Vec<GroupId> = listed.chain(self.exceptions.iter().map(|range| range.group)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether there can be such an object: its bytes have a place each, and one only.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        if !self.geometry.is_possible() || !(1..=MAX_OBJECT_GROUPS).contains(&self.groups.len()) {
            return false;
        }
        let count = u64::from(self.geometry.stripe_count());
        let is_range = |range: &Exception| range.count > 0 && range.end() <= count;
        let apart = self.exceptions.windows(2).all(|pair| pair[0].end() <= u64::from(pair[1].first));
        self.exceptions.len() <= MAX_EXCEPTIONS && apart && self.exceptions.iter().all(is_range)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::RoleIndex;

    fn id() -> ObjectId {
        let owner = MemberId { group: GroupId(3), role: RoleIndex(1) };
        ObjectId { owner, term: Term(2), number: 7, salt: 9, namespace: NamespaceId(4) }
    }

    fn geometry(len: u64, chunk_len: u32, k: u8) -> Geometry {
        Geometry { len, chunk_len, k }
    }

    #[test]
    fn a_megabyte_in_three_chunks_takes_less_than_a_page_each_beyond_its_bytes() {
        let geometry = geometry(1_000_000, 1 << 20, 3);
        let stripe = geometry.stripe(0).unwrap();
        assert_eq!((geometry.stripe_count(), stripe.rows, stripe.cell_len), (1, 6, 55_616));
        assert!(stripe.chunk_len() * 3 < 1_000_000 + 3 * 4096);
    }

    #[test]
    fn full_stripes_have_cells_of_the_greatest_length() {
        let geometry = geometry(10 << 20, 1 << 20, 3);
        let lens: Vec<(u64, u32, u32)> =
            geometry.stripes().map(|stripe| (stripe.len, stripe.rows, stripe.cell_len)).collect();
        assert_eq!(lens[..3], [(3 << 20, 16, 65_536); 3]);
        assert_eq!(lens[3].0, 1 << 20);
        assert_eq!(lens.len(), 4);
    }

    #[test]
    fn what_cannot_be_is_no_geometry() {
        assert!(geometry(1, 1 << 16, 1).is_possible());
        assert!(geometry(MAX_OBJECT_BYTES, 1 << 16, 1).is_possible());
        let wrong = [
            geometry(0, 1 << 16, 1),
            geometry(1, 0, 1),
            geometry(1, 65_535, 1),
            geometry(1, 1 << 16, 0),
            geometry(MAX_OBJECT_BYTES + 1, 1 << 16, 1),
        ];
        assert!(wrong.iter().all(|geometry| !geometry.is_possible()));
    }

    #[test]
    fn stripes_go_round_the_groups_but_for_exceptions() {
        let exceptions = vec![Exception { first: 1, count: 2, group: GroupId(9) }];
        let groups = vec![GroupId(5), GroupId(6)];
        let geometry = geometry(5 << 16, 1 << 16, 1);
        let layout = ObjectLayout::Spread;
        let descriptor = Descriptor { id: id(), geometry, layout, groups, exceptions, checksum: 0 };
        assert!(descriptor.is_possible());
        let of: Vec<u32> = (0..5).filter_map(|stripe| descriptor.group_of(stripe)).map(|g| g.0).collect();
        assert_eq!(of, [5, 9, 9, 6, 5]);
    }

    #[test]
    fn exceptions_beyond_the_end_or_over_each_other_cannot_be() {
        let geometry = geometry(5 << 16, 1 << 16, 1);
        let with = |exceptions| Descriptor {
            id: id(),
            geometry,
            layout: ObjectLayout::Spread,
            groups: vec![GroupId(5)],
            exceptions,
            checksum: 0,
        };
        let range = |first, count| Exception { first, count, group: GroupId(1) };
        assert!(with(vec![range(0, 5)]).is_possible());
        assert!(!with(vec![range(0, 6)]).is_possible());
        assert!(!with(vec![range(u32::MAX, 1)]).is_possible());
        assert!(!with(vec![range(0, 0)]).is_possible());
        assert!(!with(vec![range(0, 2), range(1, 1)]).is_possible());
    }

    #[test]
    fn stripes_that_follow_each_other_into_one_group_are_one_exception() {
        let mut all = Vec::new();
        for (stripe, group) in [(4, 1), (6, 1), (5, 1), (8, 1), (7, 2), (0, 1)] {
            Exception::add(&mut all, stripe, GroupId(group));
        }
        let ranges: Vec<(u32, u32, u32)> = all.iter().map(|it| (it.first, it.count, it.group.0)).collect();
        assert_eq!(ranges, [(0, 1, 1), (4, 3, 1), (7, 1, 2), (8, 1, 1)]);
        assert!(Exception::strand(&all, 5, GroupId(2)) && !Exception::strand(&all, 5, GroupId(1)));
        assert!(!Exception::strand(&all, 9, GroupId(2)), "where it lies no exception says");
    }

    proptest! {
        #[test]
        fn every_byte_has_one_cell(len in 1u64..20_000_000, chunks in 1u32..5, k in 1u8..13) {
            let geometry = geometry(len, chunks * MAX_CELL_BYTES, k);
            let mut at = 0;
            for stripe in geometry.stripes() {
                prop_assert_eq!(stripe.start, at);
                prop_assert!(stripe.cell_len <= MAX_CELL_BYTES && stripe.cell_len.is_multiple_of(CELL_ALIGNMENT));
                prop_assert!(stripe.chunk_len() <= u64::from(geometry.chunk_len));
                let cells = (0..stripe.rows).flat_map(|row| (0..k).map(move |role| (row, role)));
                let filled: u64 = cells.map(|(row, role)| u64::from(stripe.filled(k, row, role))).sum();
                prop_assert_eq!(filled, stripe.len);
                at += stripe.len;
            }
            prop_assert_eq!(at, len);
        }
    }
}
