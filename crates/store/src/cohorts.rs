//! Whose items a data role has, how much of it, and what was flushed: equal at the primary and at every parity that has applied
//! the same records (docs/format.md, "Cohorts").

use types::{Cohort, IndexOp, NamespaceId, UnixSeconds};

/// What the items of one cohort take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CohortUse {
    /// Entries of the index.
    pub items: u64,
    /// Bytes of their slots.
    pub bytes: u64,
}

impl CohortUse {
    /// With those of another one.
    pub fn add(&mut self, other: Self) {
        self.items = self.items.saturating_add(other.items);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The cohorts of one data role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cohorts {
    /// Of those that have items; ascending.
    uses: Vec<(Cohort, CohortUse)>,
    /// Of the namespaces that were flushed; ascending. All others are in their first generation.
    generations: Vec<(NamespaceId, u8)>,
    /// When which namespace is to be flushed; ascending by namespace.
    scheduled: Vec<(NamespaceId, UnixSeconds)>,
}

/// What a flush leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Every entry goes: there is none of anybody else.
    All,
    /// The namespace's entries are to be looked for.
    Some,
    /// It has none.
    None,
}

/// Bytes of a row of the encoding.
pub(crate) const ROW_BYTES: usize = 21;

const USE: u8 = 0;
const GENERATION: u8 = 1;
const SCHEDULED: u8 = 2;

impl Cohorts {
    /// Those that have items, with what these take; ascending.
    pub fn uses(&self) -> impl Iterator<Item = (Cohort, CohortUse)> {
        self.uses.iter().copied()
    }

    /// What the items of `namespace` take that are found.
    #[must_use]
    pub fn use_of(&self, namespace: NamespaceId) -> CohortUse {
        let present = self.present(namespace);
        self.place_of(present).map_or(CohortUse::default(), |at| self.uses[at].1)
    }

    /// Bytes of the slots of all its items, also of those that were flushed.
    #[must_use]
    pub fn bytes_of(&self, namespace: NamespaceId) -> u64 {
        let first = self.uses.partition_point(|(cohort, _)| cohort.namespace() < namespace);
        let its = self.uses[first..].iter().take_while(|(cohort, _)| cohort.namespace() == namespace);
        its.fold(0, |sum, (_, known)| sum.saturating_add(known.bytes))
    }

    /// The cohort of what `namespace` writes now.
    #[must_use]
    #[inline]
    pub fn present(&self, namespace: NamespaceId) -> Cohort {
        if self.generations.is_empty() {
            return Cohort::of(namespace, 0);
        }
        let found = self.generations.binary_search_by_key(&namespace, |(known, _)| *known);
        Cohort::of(namespace, found.map_or(0, |at| self.generations[at].1))
    }

    /// Whether anybody was flushed since the role was last empty: if not, all items are of their first generation.
    #[must_use]
    #[inline]
    pub fn was_flushed(&self) -> bool {
        !self.generations.is_empty()
    }

    /// Whether items of `cohort` are found.
    #[must_use]
    #[inline]
    pub fn is_present(&self, cohort: Cohort) -> bool {
        self.present(cohort.namespace()) == cohort
    }

    /// Whether there are items that were flushed.
    #[must_use]
    pub fn has_flushed(&self) -> bool {
        self.uses.iter().any(|(cohort, _)| !self.is_present(*cohort))
    }

    /// Whether `namespace` can be flushed now: items that were flushed sixteen times ago are gone.
    #[must_use]
    pub fn can_flush(&self, namespace: NamespaceId) -> bool {
        // Also of one that is alone here: what others write may be on its way, and then it is not when this is committed.
        let next = Cohort::of(namespace, self.present(namespace).generation() + 1);
        self.place_of(next).is_none()
    }

    /// A namespace that is to be flushed by `now`, and can be.
    #[must_use]
    pub fn due(&self, now: UnixSeconds) -> Option<NamespaceId> {
        let is_due = |(namespace, at): &&(NamespaceId, UnixSeconds)| *at <= now && self.can_flush(*namespace);
        self.scheduled.iter().find(is_due).map(|(namespace, _)| *namespace)
    }

    /// Whether any namespace is to be flushed at some time.
    #[must_use]
    #[inline]
    pub fn has_scheduled(&self) -> bool {
        !self.scheduled.is_empty()
    }

    /// When `namespace` is to be flushed.
    #[must_use]
    pub fn scheduled(&self, namespace: NamespaceId) -> Option<UnixSeconds> {
        self.scheduled.iter().find(|(known, _)| *known == namespace).map(|(_, at)| *at)
    }

    /// Heap memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.uses.capacity() * size_of::<(Cohort, CohortUse)>()
            + self.generations.capacity() * size_of::<(NamespaceId, u8)>()
            + self.scheduled.capacity() * size_of::<(NamespaceId, UnixSeconds)>()
    }

    /// Whether nobody else has items here.
    fn is_alone(&self, namespace: NamespaceId) -> bool {
        self.uses.iter().all(|(cohort, _)| cohort.namespace() == namespace)
    }

    #[inline]
    fn place_of(&self, cohort: Cohort) -> Option<usize> {
        // Most roles have items of one namespace.
        match self.uses.as_slice() {
            [(only, _)] if *only == cohort => Some(0),
            uses => uses.binary_search_by_key(&cohort, |(known, _)| *known).ok(),
        }
    }

    /// An item more, in a slot of so many bytes.
    #[inline]
    pub(crate) fn add(&mut self, cohort: Cohort, bytes: usize) {
        let at = self.place_of(cohort).unwrap_or_else(|| self.begin(cohort));
        let known = &mut self.uses[at].1;
        known.items += 1;
        known.bytes += bytes as u64;
    }

    fn begin(&mut self, cohort: Cohort) -> usize {
        let at = self.uses.partition_point(|(known, _)| *known < cohort);
        self.uses.insert(at, (cohort, CohortUse::default()));
        at
    }

    /// An item less.
    #[inline]
    pub(crate) fn remove(&mut self, cohort: Cohort, bytes: usize) {
        let Some(at) = self.place_of(cohort) else { return };
        let known = &mut self.uses[at].1;
        known.items = known.items.saturating_sub(1);
        known.bytes = known.bytes.saturating_sub(bytes as u64);
        if known.items == 0 {
            self.uses.remove(at);
        }
    }

    /// An item has moved from one slot to another.
    #[inline]
    pub(crate) fn resize(&mut self, cohort: Cohort, old: usize, new: usize) {
        if old != new
            && let Some(at) = self.place_of(cohort)
        {
            let known = &mut self.uses[at].1;
            known.bytes = (known.bytes + new as u64).saturating_sub(old as u64);
        }
    }

    /// `namespace` is flushed; what was scheduled for later is called off by that.
    pub(crate) fn flush(&mut self, namespace: NamespaceId) -> Flushed {
        self.schedule(namespace, UnixSeconds(0));
        if self.is_alone(namespace) {
            self.uses.clear();
            // Nothing is left, of whomever, that would have to be told from what comes.
            self.generations.clear();
            return Flushed::All;
        }
        let present = self.present(namespace);
        if self.place_of(present).is_none() {
            return Flushed::None;
        }
        let next = Cohort::of(namespace, present.generation() + 1).generation();
        match self.generations.binary_search_by_key(&namespace, |(known, _)| *known) {
            Ok(at) => self.generations[at].1 = next,
            Err(at) => self.generations.insert(at, (namespace, next)),
        }
        Flushed::Some
    }

    /// `namespace` is to be flushed then; never if that is 0.
    pub(crate) fn schedule(&mut self, namespace: NamespaceId, at: UnixSeconds) {
        self.scheduled.retain(|(known, _)| *known != namespace);
        if at.0 != 0 {
            let place = self.scheduled.partition_point(|(known, _)| *known < namespace);
            self.scheduled.insert(place, (namespace, at));
        }
    }

    /// What there will be after `op`, but for bytes; whether every entry of the index goes. For those who look ahead.
    pub fn foresee(&mut self, op: &IndexOp) -> bool {
        match *op {
            IndexOp::Insert { cohort, .. } => self.add(cohort, 0),
            IndexOp::Remove { cohort, .. } => self.remove(cohort, 0),
            IndexOp::Flush { namespace } => return self.flush(namespace) == Flushed::All,
            IndexOp::FlushAt { namespace, at } => self.schedule(namespace, at),
            IndexOp::Assign { .. }
            | IndexOp::Replace { .. }
            | IndexOp::SessionBegins { .. }
            | IndexOp::SessionEnds { .. }
            | IndexOp::WriteDone { .. }
            | IndexOp::WriteCounted { .. } => {}
        }
        false
    }

    /// As rows: what is said, of whom, and two numbers; ascending, so that there is one encoding.
    pub(crate) fn rows(&self) -> impl Iterator<Item = [u8; ROW_BYTES]> {
        let uses = self.uses.iter().map(|(cohort, known)| row(USE, cohort.0, known.items, known.bytes));
        let generations = self
            .generations
            .iter()
            .map(|(namespace, generation)| row(GENERATION, namespace.0, u64::from(*generation), 0));
        let scheduled =
            self.scheduled.iter().map(|(namespace, at)| row(SCHEDULED, namespace.0, u64::from(at.0), 0));
        uses.chain(generations).chain(scheduled)
    }

    /// How many rows there are.
    pub(crate) fn row_count(&self) -> usize {
        self.uses.len() + self.generations.len() + self.scheduled.len()
    }

    /// Takes in the next row; false if there can be no such row here.
    pub(crate) fn push_row(&mut self, bytes: &[u8; ROW_BYTES]) -> bool {
        let (kind, id, a, b) = read_row(bytes);
        let later = !self.generations.is_empty() || !self.scheduled.is_empty();
        match kind {
            USE => {
                let is_next = self.uses.last().is_none_or(|(last, _)| last.0 < id) && !later;
                let is_possible = is_next && id <= Cohort::MAX.0 && a > 0;
                if is_possible {
                    self.uses.push((Cohort(id), CohortUse { items: a, bytes: b }));
                }
                is_possible
            }
            GENERATION => {
                let is_next = self.generations.last().is_none_or(|(last, _)| last.0 < id);
                let is_possible = is_next
                    && self.scheduled.is_empty()
                    && id <= NamespaceId::MAX.0
                    && a < u64::from(Cohort::GENERATIONS)
                    && b == 0;
                if is_possible {
                    self.generations.push((NamespaceId(id), a as u8));
                }
                is_possible
            }
            SCHEDULED => {
                let is_next = self.scheduled.last().is_none_or(|(last, _)| last.0 < id);
                let at = u32::try_from(a).ok().filter(|at| *at > 0 && b == 0 && id <= NamespaceId::MAX.0);
                let Some(at) = at.filter(|_| is_next) else { return false };
                self.scheduled.push((NamespaceId(id), UnixSeconds(at)));
                true
            }
            _ => false,
        }
    }

    /// That what is counted is so much in all.
    pub(crate) fn check_invariants(&self, items: usize) {
        let counted: u64 = self.uses.iter().map(|(_, known)| known.items).sum();
        assert_eq!(counted, items as u64, "every entry of the index is somebody's");
        assert!(self.uses.is_sorted_by(|a, b| a.0 < b.0), "cohorts are in order");
    }
}

pub(crate) fn row(kind: u8, id: u32, a: u64, b: u64) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    bytes[0] = kind;
    bytes[1..5].copy_from_slice(&id.to_le_bytes());
    bytes[5..13].copy_from_slice(&a.to_le_bytes());
    bytes[13..].copy_from_slice(&b.to_le_bytes());
    bytes
}

pub(crate) fn read_row(bytes: &[u8; ROW_BYTES]) -> (u8, u32, u64, u64) {
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    (bytes[0], number(1, 4) as u32, number(5, 8), number(13, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NamespaceId = NamespaceId(0);
    const B: NamespaceId = NamespaceId(7);

    fn both() -> Cohorts {
        let mut cohorts = Cohorts::default();
        cohorts.add(Cohort::of(B, 0), 100);
        cohorts.add(Cohort::of(A, 0), 50);
        cohorts.add(Cohort::of(B, 0), 100);
        cohorts
    }

    #[test]
    fn what_each_namespace_has_is_counted() {
        let mut cohorts = both();
        assert_eq!(cohorts.use_of(B), CohortUse { items: 2, bytes: 200 });
        cohorts.resize(Cohort::of(B, 0), 100, 30);
        cohorts.remove(Cohort::of(B, 0), 100);
        assert_eq!(cohorts.use_of(B), CohortUse { items: 1, bytes: 30 });
        cohorts.remove(Cohort::of(A, 0), 50);
        assert_eq!(cohorts.uses().count(), 1, "whoever has nothing is not here");
        cohorts.check_invariants(1);
    }

    #[test]
    fn whoever_is_alone_is_flushed_at_once_and_others_find_theirs() {
        let mut cohorts = both();
        assert_eq!(cohorts.flush(B), Flushed::Some);
        assert!(cohorts.has_flushed() && cohorts.is_present(Cohort::of(A, 0)));
        assert_eq!((cohorts.use_of(B), cohorts.present(B)), (CohortUse::default(), Cohort::of(B, 1)));
        assert_eq!(cohorts.flush(B), Flushed::None, "there is nothing of it to be told apart");
        cohorts.remove(Cohort::of(A, 0), 50);
        assert_eq!(cohorts.flush(B), Flushed::All);
        assert_eq!(cohorts, Cohorts::default());
    }

    #[test]
    fn a_generation_comes_again_only_when_its_items_are_gone() {
        let mut cohorts = both();
        for generation in 1..16 {
            assert!(cohorts.can_flush(B));
            cohorts.flush(B);
            assert_eq!(cohorts.present(B), Cohort::of(B, generation));
            cohorts.add(cohorts.present(B), 10);
        }
        assert!(!cohorts.can_flush(B));
        (0..2).for_each(|_| cohorts.remove(Cohort::of(B, 0), 100));
        assert!(cohorts.can_flush(B));
        cohorts.flush(B);
        assert_eq!(cohorts.present(B), Cohort::of(B, 0));
    }

    #[test]
    fn rows_make_the_same_again_and_no_others_do() {
        let mut cohorts = both();
        cohorts.flush(B);
        cohorts.schedule(A, UnixSeconds(9));
        cohorts.schedule(B, UnixSeconds(8));
        assert_eq!((cohorts.due(UnixSeconds(7)), cohorts.due(UnixSeconds(8))), (None, Some(B)));
        let rows: Vec<_> = cohorts.rows().collect();
        assert_eq!(rows.len(), cohorts.row_count());
        let mut again = Cohorts::default();
        assert!(rows.iter().all(|row| again.push_row(row)));
        assert_eq!(again, cohorts);
        assert!(!again.push_row(&rows[0]), "out of order");
        assert!(!Cohorts::default().push_row(&row(9, 0, 0, 0)));
        assert!(!Cohorts::default().push_row(&row(USE, u32::MAX, 1, 1)));
        assert!(!Cohorts::default().push_row(&row(GENERATION, 0, 16, 0)));
    }
}
