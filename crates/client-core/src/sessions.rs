//! Sessions of this client: the names under which its writes are done once (docs/native-protocol.md, "Sessions").
//!
//! There is one for each data role that it writes to, begun with the first write there. A write keeps its name, whatever happens, until
//! it has come to its end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use types::{ClientSession, ClusterId, MAX_BEHIND, Once, PoolId, Time};

use crate::event::RequestId;
use crate::rules::Rules;

/// A data role: which one of a pool of a cluster.
pub(crate) type RoleId = (ClusterId, PoolId, usize);

/// The name of a write, and where it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteName {
    pub role: RoleId,
    pub once: Once,
}

/// What becomes of a write that has no name yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// It has this one.
    Named(WriteName),
    /// It waits for a session, which is on its way.
    Waits,
    /// The same, and the session is to be asked for.
    Asks,
    /// It has none: there are no sessions to be had.
    Nameless,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sessions {
    all: BTreeMap<RoleId, Session>,
    /// For so long nobody asks again for what was refused.
    pause_us: u64,
    rules: Rules,
}

#[derive(Debug)]
enum Session {
    /// It was asked for by this request; these writes wait for it.
    Asked(Option<RequestId>, VecDeque<RequestId>),
    /// There was none to be had.
    Refused,
    /// Nobody asks again before this.
    Shunned(Time),
    Open(Open),
}

#[derive(Debug)]
struct Open {
    id: ClientSession,
    newest: u32,
    /// Writes that have not come to their end.
    unfinished: BTreeSet<u32>,
    /// Writes that get their names when older ones have ended.
    held: VecDeque<RequestId>,
}

impl Open {
    fn name(&mut self, rules: Rules) -> Option<Once> {
        let sequence = self.newest.checked_add(1)?;
        let floor = rules.floor(self.unfinished.first().copied().unwrap_or(sequence), sequence);
        let behind = u16::try_from(sequence - floor).ok().filter(|behind| *behind <= MAX_BEHIND)?;
        self.newest = sequence;
        self.unfinished.insert(sequence);
        Some(Once { session: self.id, sequence, behind, again: false })
    }
}

impl Sessions {
    pub(crate) fn new(pause_us: u64, rules: Rules) -> Self {
        Self { all: BTreeMap::new(), pause_us, rules }
    }

    /// A write at `role` needs a name.
    pub(crate) fn name(&mut self, now: Time, role: RoleId, request: RequestId) -> Naming {
        match self.all.get_mut(&role) {
            Some(Session::Refused) => {
                self.all.insert(role, Session::Shunned(now + self.pause_us));
                Naming::Nameless
            }
            Some(Session::Shunned(until)) if *until > now => Naming::Nameless,
            None | Some(Session::Shunned(_)) => {
                self.all.insert(role, Session::Asked(None, VecDeque::from([request])));
                Naming::Asks
            }
            Some(Session::Asked(_, waiting)) => {
                waiting.push_back(request);
                Naming::Waits
            }
            Some(Session::Open(open)) => match open.name(self.rules) {
                Some(once) => Naming::Named(WriteName { role, once }),
                None => {
                    open.held.push_back(request);
                    Naming::Waits
                }
            },
        }
    }

    /// The request that asks for the session at `role`.
    pub(crate) fn asked_by(&mut self, role: RoleId, request: RequestId) {
        if let Some(Session::Asked(by, _)) = self.all.get_mut(&role) {
            *by = Some(request);
        }
    }

    /// The role for which this request asks for a session.
    pub(crate) fn asked_for_by(&self, request: RequestId) -> Option<RoleId> {
        let is_it = |session: &Session| matches!(session, Session::Asked(Some(by), _) if *by == request);
        self.all.iter().find(|(_, session)| is_it(session)).map(|(role, _)| *role)
    }

    /// It has begun, or not: those that have waited for it.
    pub(crate) fn settle(&mut self, role: RoleId, begun: Option<ClientSession>) -> VecDeque<RequestId> {
        let session = match begun {
            Some(id) => {
                Session::Open(Open { id, newest: 0, unfinished: BTreeSet::new(), held: VecDeque::new() })
            }
            None => Session::Refused,
        };
        match self.all.insert(role, session) {
            Some(Session::Asked(_, waiting)) => waiting,
            _ => VecDeque::new(),
        }
    }

    /// The name as it is now, when less is waited for.
    pub(crate) fn freshened(&self, name: WriteName) -> Once {
        let Some(Session::Open(open)) = self.all.get(&name.role) else { return name.once };
        let floor = open.unfinished.first().copied().filter(|_| open.id == name.once.session);
        let behind = floor.and_then(|floor| name.once.sequence.checked_sub(floor));
        let behind = behind.and_then(|behind| u16::try_from(behind).ok());
        Once { behind: behind.unwrap_or(name.once.behind).min(name.once.behind), ..name.once }
    }

    /// A write has come to its end: the one that gets its name now, if one has waited for that.
    pub(crate) fn end(&mut self, name: &WriteName) -> Option<RequestId> {
        let Some(Session::Open(open)) = self.all.get_mut(&name.role) else { return None };
        if open.id != name.once.session {
            return None;
        }
        open.unfinished.remove(&name.once.sequence);
        open.held.pop_front()
    }

    /// The session of this name is not there any more: those that wait for names of it.
    pub(crate) fn drop_session(&mut self, name: &WriteName) -> VecDeque<RequestId> {
        // Another one may have begun since, or be on its way.
        let is_it =
            matches!(self.all.get(&name.role), Some(Session::Open(open)) if open.id == name.once.session);
        match is_it.then(|| self.all.remove(&name.role)).flatten() {
            Some(Session::Open(open)) => open.held,
            _ => VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: RoleId = (ClusterId(1), PoolId(0), 2);
    const NOW: Time = Time(5);
    const PAUSE_US: u64 = 1_000;

    fn open() -> Sessions {
        let mut sessions = Sessions::new(PAUSE_US, Rules::all());
        assert_eq!(sessions.name(NOW, ROLE, RequestId(1)), Naming::Asks);
        assert_eq!(sessions.name(NOW, ROLE, RequestId(2)), Naming::Waits);
        sessions.asked_by(ROLE, RequestId(9));
        assert_eq!(sessions.asked_for_by(RequestId(9)), Some(ROLE));
        assert_eq!(sessions.settle(ROLE, Some(ClientSession(77))), [RequestId(1), RequestId(2)]);
        sessions
    }

    fn named(sessions: &mut Sessions, request: u64) -> WriteName {
        match sessions.name(NOW, ROLE, RequestId(request)) {
            Naming::Named(name) => name,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_write_of_a_role_asks_and_names_go_upwards() {
        let mut sessions = open();
        let (first, second) = (named(&mut sessions, 1), named(&mut sessions, 2));
        assert_eq!((first.once.sequence, first.once.behind), (1, 0));
        assert_eq!((second.once.sequence, second.once.behind), (2, 1));
        sessions.end(&first);
        assert_eq!(sessions.freshened(second).behind, 0, "nobody waits for the first any more");
        assert_eq!(named(&mut sessions, 3).once.floor(), 2);
    }

    #[test]
    fn no_more_are_named_than_the_server_keeps_results_of() {
        let mut sessions = open();
        let oldest = named(&mut sessions, 1);
        for _ in 0..MAX_BEHIND {
            named(&mut sessions, 2);
        }
        assert_eq!(sessions.name(NOW, ROLE, RequestId(7)), Naming::Waits);
        assert_eq!(sessions.end(&oldest), Some(RequestId(7)));
        assert_eq!(named(&mut sessions, 7).once.behind, MAX_BEHIND);
    }

    #[test]
    fn where_no_session_is_to_be_had_writes_have_no_names_for_a_while() {
        let mut sessions = Sessions::new(PAUSE_US, Rules::all());
        assert_eq!(sessions.name(NOW, ROLE, RequestId(1)), Naming::Asks);
        assert_eq!(sessions.settle(ROLE, None), [RequestId(1)]);
        assert_eq!(sessions.name(NOW, ROLE, RequestId(1)), Naming::Nameless);
        assert_eq!(sessions.name(NOW + PAUSE_US, ROLE, RequestId(1)), Naming::Asks);
    }

    #[test]
    fn a_session_that_is_gone_is_asked_for_anew() {
        let mut sessions = open();
        let name = named(&mut sessions, 1);
        sessions.drop_session(&name);
        assert_eq!(sessions.name(NOW, ROLE, RequestId(1)), Naming::Asks);
        assert_eq!(sessions.end(&name), None, "it is of another session");
    }

    #[test]
    fn a_session_that_was_gone_before_does_not_take_the_next_one_with_it() {
        let mut sessions = open();
        let (name, late) = (named(&mut sessions, 1), named(&mut sessions, 2));
        sessions.drop_session(&name);
        assert_eq!(sessions.name(NOW, ROLE, RequestId(1)), Naming::Asks);
        sessions.asked_by(ROLE, RequestId(10));
        assert!(sessions.drop_session(&late).is_empty());
        assert_eq!(sessions.asked_for_by(RequestId(10)), Some(ROLE), "those who wait for it still do");
        sessions.settle(ROLE, Some(ClientSession(78)));
        sessions.drop_session(&late);
        assert_eq!(named(&mut sessions, 1).once.session, ClientSession(78));
    }
}
