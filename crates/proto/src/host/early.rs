//! Messages of repair sessions whose view has not arrived yet. They wait for it, up to a bound; what is beyond is dropped, and
//! asked for again by whoever wants it.

use types::{GroupId, HostId};
use wire::message::{GroupBody, GroupMessage};

use crate::Limits;

/// See the module.
#[derive(Default)]
pub(super) struct Early {
    messages: Vec<(HostId, GroupMessage)>,
    bytes: usize,
}

impl Early {
    /// Lets `message` wait if there is room.
    pub(super) fn keep(&mut self, limits: &Limits, from: HostId, message: GroupMessage) {
        let bytes = self.bytes + bytes_of(&message);
        if self.messages.len() < limits.parity_sessions && bytes <= limits.early_bytes {
            self.bytes = bytes;
            self.messages.push((from, message));
        }
    }

    /// What has waited for a view of `group`, in order.
    pub(super) fn take(&mut self, group: GroupId) -> Vec<(HostId, GroupMessage)> {
        self.take_if(|_, message| message.group == group)
    }

    /// The link to `peer` is another one now, or none.
    pub(super) fn forget(&mut self, peer: HostId) {
        self.take_if(|from, _| from == peer);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + (self.messages.capacity() - self.messages.len()) * size_of::<(HostId, GroupMessage)>()
    }

    fn take_if(&mut self, due: impl Fn(HostId, &GroupMessage) -> bool) -> Vec<(HostId, GroupMessage)> {
        if self.messages.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.messages).into_iter();
        let (due, rest): (Vec<_>, Vec<_>) = all.partition(|(from, message)| due(*from, message));
        self.bytes = rest.iter().map(|(_, message)| bytes_of(message)).sum();
        self.messages = rest;
        due
    }
}

/// What a message of a session holds.
fn bytes_of(message: &GroupMessage) -> usize {
    let pages = match &message.body {
        GroupBody::Page(page) => page.bytes.as_ref().map_or(0, bytes::Bytes::len),
        GroupBody::Residual(residual) => residual.bytes.len(),
        GroupBody::Open(_) | GroupBody::Opened(_) | GroupBody::Read(_) | GroupBody::Abort(_) => 0,
        // Of no session: these do not wait.
        GroupBody::Hello(_)
        | GroupBody::Welcome(_)
        | GroupBody::Frame(_)
        | GroupBody::Ack(_)
        | GroupBody::Reject(_)
        | GroupBody::Reserve(_)
        | GroupBody::Reserved(_)
        | GroupBody::FetchIndex(_)
        | GroupBody::IndexPart(_)
        | GroupBody::LearnHello(_)
        | GroupBody::Learn(_)
        | GroupBody::Learned(_) => 0,
    };
    size_of::<(HostId, GroupMessage)>() + pages
}

#[cfg(test)]
mod tests {
    use types::{Incarnation, NodeId, RoleIndex, Term, ViewVersion};
    use wire::message::{Residual, SessionId};

    use super::*;

    const PEER: HostId = HostId { node: NodeId(1), incarnation: Incarnation(1) };

    fn residual(group: u32, len: usize) -> GroupMessage {
        let session = SessionId { role: RoleIndex(0), term: Term(1), number: 1 };
        let residual = Residual { session, lost: Default::default(), bytes: vec![0; len].into() };
        GroupMessage {
            group: GroupId(group),
            view: ViewVersion(9),
            from: RoleIndex(1),
            to: RoleIndex(0),
            body: GroupBody::Residual(residual.into()),
        }
    }

    #[test]
    fn what_waits_is_bounded_by_its_bytes_and_the_room_comes_back() {
        let limits = Limits { early_bytes: 1 << 20, ..Limits::default() };
        let mut early = Early::default();
        let quarter = (1 << 18) - 1000;
        (0..100).for_each(|_| early.keep(&limits, PEER, residual(0, quarter)));
        assert_eq!(early.messages.len(), 4);
        early.keep(&limits, PEER, residual(1, 0));
        assert_eq!((early.take(GroupId(0)).len(), early.take(GroupId(1)).len(), early.bytes), (4, 1, 0));
        (0..100).for_each(|_| early.keep(&limits, PEER, residual(2, quarter)));
        early.forget(PEER);
        assert_eq!((early.messages.len(), early.bytes), (0, 0));
    }

    #[test]
    fn what_waits_is_bounded_by_its_number() {
        let limits = Limits { parity_sessions: 7, ..Limits::default() };
        let mut early = Early::default();
        (0..100).for_each(|_| early.keep(&limits, PEER, residual(0, 0)));
        assert_eq!(early.messages.len(), 7);
    }
}
