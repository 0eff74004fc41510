//! The roles whose chunks are kept here, and which of them have something to do: what a message costs does not grow with their number.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use types::{MemberId, Time};

use super::holder::Holder;
use crate::Timing;

/// See the module.
#[derive(Default)]
pub(crate) struct Holders {
    all: BTreeMap<MemberId, Kept>,
    /// Those that may have changed since it was last looked at what they have to do.
    touched: BTreeSet<MemberId>,
    /// Those that lack chunks, and perhaps some of which something has come meanwhile.
    lacking: BTreeSet<MemberId>,
    /// Whose time comes when.
    due: BTreeSet<(Time, MemberId)>,
}

struct Kept {
    holder: Holder,
    /// As it is in the list.
    due: Time,
}

impl Holders {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn get(&self, member: MemberId) -> Option<&Holder> {
        self.all.get(&member).map(|kept| &kept.holder)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemberId, &Holder)> {
        self.all.iter().map(|(member, kept)| (*member, &kept.holder))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Holder> {
        self.all.values().map(|kept| &kept.holder)
    }

    /// Those behind this one, in their order.
    pub(super) fn behind(&self, member: MemberId) -> impl Iterator<Item = (MemberId, &Holder)> {
        let behind = self.all.range((Bound::Excluded(member), Bound::Unbounded));
        behind.map(|(member, kept)| (*member, &kept.holder))
    }

    /// For somebody who may give it something to do.
    pub(super) fn get_mut(&mut self, member: MemberId) -> Option<&mut Holder> {
        let kept = self.all.get_mut(&member)?;
        self.touched.insert(member);
        Some(&mut kept.holder)
    }

    /// All of them, for what concerns all.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Holder> {
        self.touched.extend(self.all.keys());
        self.all.values_mut().map(|kept| &mut kept.holder)
    }

    pub(super) fn insert(&mut self, member: MemberId, holder: Holder) {
        self.all.insert(member, Kept { holder, due: Time::NEVER });
        self.touched.insert(member);
    }

    pub(super) fn retain(&mut self, stays: impl Fn(MemberId, &Holder) -> bool) {
        let Self { all, touched, lacking, due } = self;
        all.retain(|member, kept| {
            let stays = stays(*member, &kept.holder);
            if !stays {
                touched.remove(member);
                lacking.remove(member);
                due.remove(&(kept.due, *member));
            }
            stays
        });
    }

    /// Looks at what those have to do that may have changed.
    #[inline]
    pub(super) fn settle(&mut self, timing: &Timing) {
        if !self.touched.is_empty() {
            self.settle_touched(timing);
        }
    }

    #[cold]
    fn settle_touched(&mut self, timing: &Timing) {
        while let Some(member) = self.touched.pop_first() {
            let Some(kept) = self.all.get_mut(&member) else { continue };
            let due = kept.holder.due(timing);
            if due != kept.due {
                self.due.remove(&(kept.due, member));
                kept.due = due;
                self.due.insert((due, member));
            }
            if kept.holder.fill().left() > 0 {
                self.lacking.insert(member);
            } else {
                self.lacking.remove(&member);
            }
        }
    }

    /// When the first of them has something to do, as it was settled.
    pub(super) fn due(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(due, _)| *due)
    }

    /// Those whose time has come.
    pub(super) fn due_at(&self, now: Time) -> Vec<MemberId> {
        self.due.iter().take_while(|(due, _)| *due <= now).map(|(_, member)| *member).collect()
    }

    /// Those that lack chunks, as it was settled: from behind this one on, then from the first.
    pub(super) fn lacking_behind(
        &self,
        member: Option<MemberId>,
    ) -> impl Iterator<Item = (MemberId, &Holder)> {
        let after = member.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.lacking.range((after, Bound::Unbounded)).chain(&self.lacking);
        all.filter_map(|member| Some((*member, self.get(*member)?)))
    }

    /// What the first of them gives that lack chunks and give anything.
    pub(super) fn find_of_lacking<T>(&mut self, mut find: impl FnMut(&mut Holder) -> Option<T>) -> Option<T> {
        let Self { all, touched, lacking, .. } = self;
        lacking.iter().find_map(|member| {
            // Also who gives nothing may have found that it lacks nothing any more.
            touched.insert(*member);
            all.get_mut(member).and_then(|kept| find(&mut kept.holder))
        })
    }

    /// What has to hold.
    pub(super) fn check_invariants(&self, timing: &Timing) {
        for (member, kept) in self.all.iter().filter(|(member, _)| !self.touched.contains(member)) {
            let (due, lacks) = (kept.holder.due(timing), kept.holder.fill().left() > 0);
            assert!(kept.due <= due, "{member} is due at {due:?}, and known for {:?}", kept.due);
            assert_eq!(self.lacking.contains(member), lacks, "{member} lacks chunks");
        }
        let known = self.all.iter().filter(|(_, kept)| kept.due < Time::NEVER);
        assert!(known.map(|(member, kept)| (kept.due, *member)).all(|due| self.due.contains(&due)));
    }
}
