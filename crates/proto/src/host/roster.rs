//! Members of one kind by their names.
//!
//! A host with many groups looks a member up for every message, and hardly two in a row are of one group: so a look-up is to touch
//! as little memory as it can. They come and go as rarely as views.

use types::MemberId;

/// See the module.
pub(super) struct Roster<T> {
    /// Ascending.
    members: Vec<(MemberId, Box<T>)>,
    /// By the group's number: where its first member is, or would be. Numbers of groups are dense, or nearly so.
    firsts: Vec<u32>,
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self { members: Vec::new(), firsts: Vec::new() }
    }
}

impl<T> Roster<T> {
    pub(super) fn contains(&self, id: MemberId) -> bool {
        self.place(id).is_some()
    }

    pub(super) fn get_mut(&mut self, id: MemberId) -> Option<&mut T> {
        self.place(id).and_then(|place| self.at_mut(place))
    }

    /// Where `id` is among them, until one comes or goes.
    #[inline]
    pub(super) fn place(&self, id: MemberId) -> Option<u32> {
        let mut place = *self.firsts.get(id.group.0 as usize)?;
        // A host has a role or two of a group.
        loop {
            let (known, _) = self.members.get(place as usize)?;
            if *known >= id {
                return (*known == id).then_some(place);
            }
            place += 1;
        }
    }

    /// The one at a place.
    pub(super) fn at_mut(&mut self, place: u32) -> Option<&mut T> {
        self.members.get_mut(place as usize).map(|(_, member)| &mut **member)
    }

    /// One more, or another one of this name.
    pub(super) fn insert(&mut self, id: MemberId, member: T) {
        match self.members.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(place) => *self.members[place].1 = member,
            Err(place) => {
                self.members.insert(place, (id, Box::new(member)));
                self.note_places();
            }
        }
    }

    pub(super) fn remove(&mut self, id: MemberId) -> Option<T> {
        let place = self.place(id)? as usize;
        let (_, member) = self.members.remove(place);
        self.note_places();
        Some(*member)
    }

    fn note_places(&mut self) {
        self.firsts.clear();
        for (place, (id, _)) in (0u32..).zip(&self.members) {
            let groups = id.group.0 as usize + 1;
            if self.firsts.len() < groups {
                self.firsts.resize(groups, place);
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.members.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// All, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (MemberId, &T)> {
        self.members.iter().map(|(id, member)| (*id, &**member))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, member)| member)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.members.iter_mut().map(|(_, member)| &mut **member)
    }
}

#[cfg(test)]
mod tests {
    use types::{GroupId, RoleIndex};

    use super::*;

    fn id(group: u32) -> MemberId {
        MemberId { group: GroupId(group), role: RoleIndex(1) }
    }

    #[test]
    fn each_is_found_at_its_place_whoever_comes_and_goes() {
        let mut roster = Roster::default();
        for group in [5, 1, 9, 3] {
            roster.insert(id(group), group);
        }
        assert!(roster.iter().eq([1, 3, 5, 9].iter().map(|group| (id(*group), group))));
        assert_eq!((roster.remove(id(3)), roster.remove(id(4)), roster.len()), (Some(3), None, 3));
        roster.insert(id(9), 10);
        for (place, group) in [(0, 1), (1, 5), (2, 9)] {
            assert_eq!(roster.place(id(group)), Some(place));
        }
        assert!(roster.values().eq(&[1, 5, 10]) && !roster.contains(id(3)) && !roster.is_empty());
        *roster.get_mut(id(5)).unwrap() = 6;
        assert_eq!(roster.at_mut(1), Some(&mut 6));
        assert_eq!(roster.at_mut(3), None);
    }
}
