//! Names of one connection's writes, under which the servers do them once (docs/native-protocol.md, "Sessions").
//!
//! As with the client `gestalt`, a session is begun by the first write to a data role. Unlike there that write does not wait for it: it and
//! those behind it have no names until the session is there, and are counted.

use std::collections::{BTreeMap, VecDeque};

use types::{ClientSession, MAX_BEHIND, MemberId, Once};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Names {
    sessions: BTreeMap<MemberId, Session>,
}

/// Which write of which role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub role: MemberId,
    pub once: Once,
}

#[derive(Debug)]
enum Session {
    /// It was asked for, or refused, as where there is no room: nobody asks again.
    NotThere,
    Open(Open),
}

#[derive(Debug)]
struct Open {
    id: ClientSession,
    newest: u32,
    /// Whether a write is unfinished, from the oldest one on; the first of them is.
    unfinished: VecDeque<bool>,
}

/// What a write gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Named(Name),
    /// No name, and the session of its role is to be asked for.
    Asks,
    Nameless,
}

impl Names {
    /// A write to `role`; `may_ask` = a session may be asked for now.
    pub(crate) fn name(&mut self, role: MemberId, may_ask: bool) -> Given {
        match self.sessions.get_mut(&role) {
            None if may_ask => {
                self.sessions.insert(role, Session::NotThere);
                Given::Asks
            }
            None | Some(Session::NotThere) => Given::Nameless,
            Some(Session::Open(open)) => {
                open.name().map_or(Given::Nameless, |once| Given::Named(Name { role, once }))
            }
        }
    }

    /// The session of `role` has begun.
    pub(crate) fn begun(&mut self, role: MemberId, id: ClientSession) {
        let open = Open { id, newest: 0, unfinished: VecDeque::new() };
        self.sessions.insert(role, Session::Open(open));
    }

    /// Nothing is waited for of this write any more.
    pub(crate) fn end(&mut self, name: &Name) {
        if let Some(Session::Open(open)) = self.sessions.get_mut(&name.role)
            && open.id == name.once.session
        {
            open.end(name.once.sequence);
        }
    }

    /// The server does not know this session any more: the next write asks for another.
    pub(crate) fn forget(&mut self, name: &Name) {
        let is_it =
            |session: &Session| matches!(session, Session::Open(open) if open.id == name.once.session);
        if self.sessions.get(&name.role).is_some_and(is_it) {
            self.sessions.remove(&name.role);
        }
    }

    /// What became of the writes under way is not known, and they are not sent again: other sessions begin.
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
    }
}

impl Open {
    fn name(&mut self) -> Option<Once> {
        let behind = u16::try_from(self.unfinished.len()).ok().filter(|behind| *behind <= MAX_BEHIND)?;
        let sequence = self.newest.checked_add(1)?;
        self.newest = sequence;
        self.unfinished.push_back(true);
        Some(Once { session: self.id, sequence, behind, again: false })
    }

    fn end(&mut self, sequence: u32) {
        let from_newest = (self.newest - sequence) as usize;
        let at = self.unfinished.len().checked_sub(from_newest + 1);
        if let Some(unfinished) = at.and_then(|at| self.unfinished.get_mut(at)) {
            *unfinished = false;
        }
        while self.unfinished.front() == Some(&false) {
            self.unfinished.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{GroupId, RoleIndex};

    use super::*;

    const ROLE: MemberId = MemberId { group: GroupId(3), role: RoleIndex(1) };

    fn open() -> Names {
        let mut names = Names::default();
        assert_eq!(names.name(ROLE, false), Given::Nameless);
        assert_eq!(names.name(ROLE, true), Given::Asks);
        assert_eq!(names.name(ROLE, true), Given::Nameless, "it is asked for once");
        names.begun(ROLE, ClientSession(5));
        names
    }

    fn named(names: &mut Names) -> Name {
        match names.name(ROLE, true) {
            Given::Named(name) => name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_says_how_far_below_it_the_oldest_unfinished_write_is() {
        let mut names = open();
        let all = [(); 3].map(|()| named(&mut names));
        assert_eq!(all.map(|name| (name.once.sequence, name.once.behind)), [(1, 0), (2, 1), (3, 2)]);
        names.end(&all[1]);
        assert_eq!(named(&mut names).once.behind, 3, "the first one is unfinished");
        names.end(&all[0]);
        assert_eq!(named(&mut names).once.floor(), 3);
    }

    #[test]
    fn no_more_are_named_than_the_server_keeps_results_of() {
        let mut names = open();
        let oldest = named(&mut names);
        for _ in 0..MAX_BEHIND {
            named(&mut names);
        }
        assert_eq!(names.name(ROLE, true), Given::Nameless);
        names.end(&oldest);
        assert_eq!(named(&mut names).once.behind, MAX_BEHIND);
    }

    #[test]
    fn a_session_that_is_gone_is_asked_for_again() {
        let mut names = open();
        let name = named(&mut names);
        names.forget(&name);
        assert_eq!(names.name(ROLE, true), Given::Asks);
        names.end(&name);
    }
}
