//! The requests of a client that have not come to their end, and what each waits for that is no answer: its deadline, its turn to be
//! sent again, a node.

use std::collections::{BTreeMap, BTreeSet};

use types::Time;

use crate::event::RequestId;
use crate::request::Request;

/// With the next tick.
const AT_ONCE: Time = Time(0);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: BTreeMap<RequestId, Request>,
    deadlines: BTreeSet<(Time, RequestId)>,
    /// Those that are sent again then.
    parked: BTreeSet<(Time, RequestId)>,
    /// Those for which there is no node now, or no map yet.
    homeless: BTreeSet<RequestId>,
    /// The last number that was given.
    last: u64,
}

impl Requests {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn ids(&self) -> Vec<RequestId> {
        self.all.keys().copied().collect()
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&Request> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.all.get_mut(&id)
    }

    /// One more; its number is used for no other.
    pub(crate) fn add(&mut self, request: Request) -> RequestId {
        self.last += 1;
        let id = RequestId(self.last);
        self.deadlines.insert((request.deadline, id));
        self.all.insert(id, request);
        id
    }

    /// It has come to its end.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Request> {
        let request = self.all.remove(&id)?;
        self.deadlines.remove(&(request.deadline, id));
        self.homeless.remove(&id);
        Some(request)
    }

    /// The next one whose deadline has passed, once.
    pub(crate) fn next_overdue(&mut self, now: Time) -> Option<RequestId> {
        let entry = self.deadlines.first().copied().filter(|(time, _)| *time <= now)?;
        self.deadlines.remove(&entry);
        Some(entry.1)
    }

    pub(crate) fn first_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(time, _)| *time)
    }

    /// It is sent again then.
    pub(crate) fn park(&mut self, until: Time, id: RequestId) {
        self.parked.insert((until, id));
    }

    /// The same, with the next tick.
    pub(crate) fn wake(&mut self, ids: impl IntoIterator<Item = RequestId>) {
        self.parked.extend(ids.into_iter().map(|id| (AT_ONCE, id)));
    }

    /// The next one whose turn it is; it may have ended meanwhile.
    pub(crate) fn next_awake(&mut self, now: Time) -> Option<RequestId> {
        let entry = self.parked.first().copied().filter(|(time, _)| *time <= now)?;
        self.parked.remove(&entry);
        Some(entry.1)
    }

    pub(crate) fn first_awake(&self) -> Option<Time> {
        self.parked.first().map(|(time, _)| *time)
    }

    /// There is no node for it.
    pub(crate) fn has_no_home(&mut self, id: RequestId) {
        self.homeless.insert(id);
    }

    pub(crate) fn has_a_home(&mut self, id: RequestId) {
        self.homeless.remove(&id);
    }

    /// Those for which there is none.
    pub(crate) fn homeless(&self) -> Vec<RequestId> {
        self.homeless.iter().copied().collect()
    }

    pub(crate) fn are_homeless(&self) -> bool {
        !self.homeless.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::operation::Op;

    #[test]
    fn what_has_ended_waits_for_nothing() {
        let mut requests = Requests::default();
        let ids = [30, 20].map(|at| requests.add(Request::new(Bytes::new(), Op::Stat, Time(at))));
        assert_eq!(requests.first_deadline(), Some(Time(20)));
        requests.has_no_home(ids[1]);
        assert!(requests.remove(ids[1]).is_some() && !requests.are_homeless());
        assert_eq!((requests.next_overdue(Time(29)), requests.next_overdue(Time(30))), (None, Some(ids[0])));
        assert_eq!(requests.next_overdue(Time(99)), None, "its deadline passes once");
        assert_eq!(requests.len(), 1);
    }

    #[test]
    fn each_is_sent_again_in_its_turn() {
        let mut requests = Requests::default();
        let ids = [0; 3].map(|_| requests.add(Request::new(Bytes::new(), Op::Stat, Time::NEVER)));
        requests.park(Time(9), ids[0]);
        requests.park(Time(8), ids[1]);
        requests.wake([ids[2]]);
        let turns = [0, 8, 8, 9].map(|now| requests.next_awake(Time(now)));
        assert_eq!(turns, [Some(ids[2]), Some(ids[1]), None, Some(ids[0])]);
    }
}
