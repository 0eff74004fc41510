//! Values that are too large to lie whole at one member: their names, and where each byte of them lies (docs/objects.md).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{GroupId, MemberId, NamespaceId, RoleIndex, Term};

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

impl ObjectId {
    /// None is before this one.
    pub const MIN: Self = Self {
        owner: MemberId { group: GroupId(0), role: RoleIndex(0) },
        term: Term(0),
        number: 0,
        salt: 0,
        namespace: NamespaceId(0),
    };
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

/// A rule by which bytes are dealt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectLayout {
    /// Cells are dealt round the data roles: cell `i` of a stripe to role `i mod k`.
    #[default]
    Spread,
    /// Each data role keeps a range of a stripe: its chunk is filled before the next role's begins.
    Wide,
    /// As `Wide`, and the first data role keeps the ranges of all others behind its own: a whole copy.
    Copy,
}

impl ObjectLayout {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Wide => "wide",
            Self::Copy => "copy",
        }
    }
}

/// How an object's bytes are dealt to the roles of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Geometry {
    /// Length of the value in bytes, not 0.
    pub len: u64,
    /// Longest chunk of the code in bytes: a multiple of [`MAX_CELL_BYTES`].
    pub chunk_len: u32,
    /// Data roles of its groups.
    pub k: u8,
    /// By which rule.
    pub layout: ObjectLayout,
}

/// One stripe of an object: `k` data chunks of equal cells. Which of its bytes lie in which cell is asked here, by all who
/// write, read or show it (docs/objects.md, "Layouts").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Which one, from 0.
    pub index: u32,
    /// Bytes of the value before it.
    pub start: u64,
    /// Bytes of the value in it. What its cells have beyond that is zero.
    pub len: u64,
    /// Rows: cells of each chunk of the code.
    pub rows: u32,
    /// Length of each cell in bytes.
    pub cell_len: u32,
    /// Data roles.
    pub k: u8,
    /// By which rule its bytes are dealt.
    pub layout: ObjectLayout,
}

/// A cell of a stripe, as the code has it: rows are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellAt {
    /// In which row.
    pub row: u32,
    /// Of which role's chunk.
    pub role: u8,
}

/// Data cells of one row whose bytes follow each other in the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// In which row.
    pub row: u32,
    /// Of which role the first one is.
    pub first: u8,
    /// How many there are, not 0.
    pub count: u8,
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
        let (k, layout) = (u64::from(self.k), self.layout);
        let rows = len.div_ceil(k * u64::from(MAX_CELL_BYTES));
        let cell_len = len.div_ceil(k * rows).next_multiple_of(u64::from(CELL_ALIGNMENT));
        Some(Stripe { index, start, len, rows: rows as u32, cell_len: cell_len as u32, k: self.k, layout })
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

    /// Bytes of the data cells of one row.
    #[must_use]
    pub fn row_len(&self) -> u64 {
        u64::from(self.cell_len) * u64::from(self.k)
    }

    /// How many data cells it has.
    #[must_use]
    pub fn data_cells(&self) -> u32 {
        self.rows * u32::from(self.k)
    }

    /// Which data cell has the bytes from `nth` times the length of a cell on.
    #[must_use]
    pub fn data_cell(&self, nth: u32) -> CellAt {
        let (k, rows) = (u32::from(self.k.max(1)), self.rows.max(1));
        match self.layout {
            ObjectLayout::Spread => CellAt { row: nth / k, role: (nth % k) as u8 },
            ObjectLayout::Wide | ObjectLayout::Copy => CellAt { row: nth % rows, role: (nth / rows) as u8 },
        }
    }

    /// Bytes of the stripe's part of the value before a data cell.
    #[must_use]
    pub fn offset(&self, at: CellAt) -> u64 {
        let (row, role) = (u64::from(at.row), u64::from(at.role));
        let before = match self.layout {
            ObjectLayout::Spread => row * u64::from(self.k) + role,
            ObjectLayout::Wide | ObjectLayout::Copy => role * u64::from(self.rows) + row,
        };
        before * u64::from(self.cell_len)
    }

    /// How many bytes of the value are in a data cell; the rest of it is zero.
    #[must_use]
    pub fn filled(&self, at: CellAt) -> u32 {
        self.len.saturating_sub(self.offset(at)).min(u64::from(self.cell_len)) as u32
    }

    /// Whether a role keeps a copy of all data cells, in the order of their bytes. The first ones are its chunk of the code.
    #[must_use]
    pub fn has_copy(&self, role: u8) -> bool {
        self.layout == ObjectLayout::Copy && role == 0
    }

    /// How many cells a role keeps.
    #[must_use]
    pub fn cells_of(&self, role: u8) -> u32 {
        if self.has_copy(role) { self.data_cells() } else { self.rows }
    }

    /// Bytes that a role keeps.
    #[must_use]
    pub fn len_of(&self, role: u8) -> u64 {
        u64::from(self.cells_of(role)) * u64::from(self.cell_len)
    }

    /// Which cell of the code the `nth` one is that a role keeps.
    #[must_use]
    pub fn kept_cell(&self, role: u8, nth: u32) -> CellAt {
        if self.has_copy(role) { self.data_cell(nth) } else { CellAt { row: nth, role } }
    }

    /// Which one of the copy's cells a data cell is.
    #[must_use]
    pub fn cell_in_copy(&self, at: CellAt) -> u32 {
        u32::from(at.role) * self.rows + at.row
    }

    /// The cells that a reader of the bytes from `start` on, counted from the stripe's first one, takes at once: of one row, as
    /// far as they follow each other, and none that begins at `end` or behind it. None behind the stripe's end.
    #[must_use]
    pub fn run(&self, start: u64, end: u64) -> Option<Run> {
        let end = end.min(self.len);
        let nth = u32::try_from(start / u64::from(self.cell_len.max(1))).ok()?;
        if start >= end {
            return None;
        }
        let CellAt { row, role: first } = self.data_cell(nth);
        let cells = (end - self.offset(CellAt { row, role: first })).div_ceil(u64::from(self.cell_len));
        let most = match self.layout {
            ObjectLayout::Spread => self.k - first,
            ObjectLayout::Wide | ObjectLayout::Copy => 1,
        };
        Some(Run { row, first, count: cells.min(u64::from(most)) as u8 })
    }
}

impl Run {
    /// The first of its cells.
    #[must_use]
    pub fn start(&self) -> CellAt {
        CellAt { row: self.row, role: self.first }
    }

    /// The roles whose cells they are.
    #[must_use]
    pub fn roles(&self) -> std::ops::Range<usize> {
        usize::from(self.first)..usize::from(self.first) + usize::from(self.count)
    }
}

/// Where the bytes of an object lie, and what they are: the value of the item under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Its name.
    pub id: ObjectId,
    /// How its bytes are dealt.
    pub geometry: Geometry,
    /// Stripe `s` lies in the group at `s` modulo their count; at most [`MAX_OBJECT_GROUPS`].
    pub groups: Vec<GroupId>,
    /// Stripes that lie elsewhere, ascending and apart; at most [`MAX_EXCEPTIONS`].
    pub exceptions: Vec<Exception>,
    /// CRC32C of the whole value.
    pub checksum: u32,
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

    /// What names each of these groups for the same object, and no other one: for what concerns all that they have of it. Of more than
    /// [`MAX_OBJECT_GROUPS`] the first.
    #[must_use]
    pub fn in_groups(&self, groups: impl IntoIterator<Item = GroupId>) -> Self {
        let groups: Vec<GroupId> = groups.into_iter().take(MAX_OBJECT_GROUPS).collect();
        // As long as it takes for each of them to have a stripe.
        let len = self.geometry.stripe_len().saturating_mul(groups.len() as u64);
        Self { geometry: Geometry { len, ..self.geometry }, groups, exceptions: Vec::new(), ..self.clone() }
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
        Geometry { len, chunk_len, k, layout: ObjectLayout::Spread }
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
        let descriptor = Descriptor { id: id(), geometry, groups, exceptions, checksum: 0 };
        assert!(descriptor.is_possible());
        let of: Vec<u32> = (0..5).filter_map(|stripe| descriptor.group_of(stripe)).map(|g| g.0).collect();
        assert_eq!(of, [5, 9, 9, 6, 5]);
    }

    #[test]
    fn exceptions_beyond_the_end_or_over_each_other_cannot_be() {
        let geometry = geometry(5 << 16, 1 << 16, 1);
        let with =
            |exceptions| Descriptor { id: id(), geometry, groups: vec![GroupId(5)], exceptions, checksum: 0 };
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

    #[test]
    fn a_wide_role_keeps_a_range_that_ends_where_the_next_one_s_begins() {
        let wide = Geometry { layout: ObjectLayout::Wide, ..geometry(10 << 20, 1 << 20, 3) };
        let stripe = wide.stripe(1).unwrap();
        for role in 0..3 {
            let at = CellAt { row: 0, role };
            assert_eq!((stripe.offset(at), stripe.filled(at)), (u64::from(role) << 20, 65_536));
        }
        // The last one is shorter, and so are its ranges.
        let last = wide.stripe(3).unwrap();
        assert_eq!((last.len, last.rows, last.cell_len), (1 << 20, 6, 58_304));
        assert_eq!(last.offset(CellAt { row: 0, role: 2 }), 2 * 6 * 58_304);
        assert!(last.filled(CellAt { row: 5, role: 2 }) < 58_304);
    }

    #[test]
    fn a_run_has_no_cell_that_is_not_wanted() {
        let spread = geometry(10 << 20, 1 << 20, 3).stripe(0).unwrap();
        let run = |start, end| spread.run(start, end).map(|run| (run.row, run.first, run.count));
        assert_eq!(run(0, u64::MAX), Some((0, 0, 3)));
        assert_eq!(run(65_536, 2 * 65_536), Some((0, 1, 1)));
        assert_eq!(run(4 * 65_536 + 5, u64::MAX), Some((1, 1, 2)));
        assert_eq!(run(3 << 20, u64::MAX), None);
        let wide = Stripe { layout: ObjectLayout::Wide, ..spread };
        let run = |start, end| wide.run(start, end).map(|run| (run.row, run.first, run.count));
        assert_eq!(run(0, u64::MAX), Some((0, 0, 1)));
        assert_eq!(run((1 << 20) + 65_536, u64::MAX), Some((1, 1, 1)));
    }

    #[test]
    fn a_copy_begins_with_its_own_chunk_of_the_code_and_is_the_value() {
        let geometry = Geometry { layout: ObjectLayout::Copy, ..geometry(1_000_000, 1 << 20, 3) };
        let stripe = geometry.stripe(0).unwrap();
        assert_eq!([0, 1, 2, 3].map(|role| stripe.cells_of(role)), [18, 6, 6, 6]);
        assert_eq!(stripe.kept_cell(0, 5), CellAt { row: 5, role: 0 });
        assert_eq!(stripe.kept_cell(0, 6), CellAt { row: 0, role: 1 });
        assert_eq!(stripe.kept_cell(1, 5), CellAt { row: 5, role: 1 });
        for nth in 0..stripe.data_cells() {
            let at = stripe.kept_cell(0, nth);
            assert_eq!((stripe.cell_in_copy(at), stripe.offset(at)), (nth, u64::from(nth) * 55_616));
        }
    }

    fn layout() -> impl Strategy<Value = ObjectLayout> {
        prop_oneof![Just(ObjectLayout::Spread), Just(ObjectLayout::Wide), Just(ObjectLayout::Copy)]
    }

    proptest! {
        #[test]
        fn every_byte_has_one_cell(
            len in 1u64..20_000_000,
            chunks in 1u32..5,
            k in 1u8..13,
            layout in layout(),
        ) {
            let geometry = Geometry { layout, ..geometry(len, chunks * MAX_CELL_BYTES, k) };
            let mut at = 0;
            for stripe in geometry.stripes() {
                prop_assert_eq!(stripe.start, at);
                prop_assert!(stripe.cell_len <= MAX_CELL_BYTES && stripe.cell_len.is_multiple_of(CELL_ALIGNMENT));
                prop_assert!(stripe.chunk_len() <= u64::from(geometry.chunk_len));
                let mut filled = 0;
                for cell in (0..stripe.data_cells()).map(|nth| stripe.data_cell(nth)) {
                    prop_assert!(stripe.offset(cell) == filled || stripe.filled(cell) == 0);
                    filled += u64::from(stripe.filled(cell));
                }
                prop_assert_eq!(filled, stripe.len);
                at += stripe.len;
            }
            prop_assert_eq!(at, len);
        }

        #[test]
        fn runs_follow_each_other_through_a_range(
            len in 1u64..2_000_000,
            k in 1u8..13,
            layout in layout(),
            (start, end) in (0u64..2_000_000, 0u64..2_000_000),
        ) {
            let stripe = Geometry { layout, ..geometry(len, 4 * MAX_CELL_BYTES, k) }.stripe(0).unwrap();
            let (mut at, end) = (start, end.min(stripe.len));
            while let Some(run) = stripe.run(at, end) {
                let begins = stripe.offset(run.start());
                let roles = run.roles().map(|role| CellAt { row: run.row, role: role as u8 });
                let next = begins + roles.map(|cell| u64::from(stripe.filled(cell))).sum::<u64>();
                prop_assert!(begins <= at && at < next && next < end + u64::from(stripe.cell_len));
                at = next;
            }
            prop_assert!(at >= end);
        }
    }
}
