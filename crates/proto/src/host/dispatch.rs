//! Messages find their member.

use cluster::{GroupId, GroupView, HostId, MemberId, Term, ViewVersion};
use wire::message::{GroupBody, GroupMessage, PeerMessage};

use super::Host;
use crate::{Impossible, Now};

impl Host {
    pub(super) fn dispatch(&mut self, now: Now, from: HostId, message: PeerMessage) {
        match message {
            PeerMessage::Group(message) => self.dispatch_group(now, from, message),
            PeerMessage::Forward(forward) => self.handle_forward(now, from, forward),
            PeerMessage::Answer(answer) => self.handle_answer(now, from, answer),
        }
    }

    fn dispatch_group(&mut self, now: Now, from: HostId, message: GroupMessage) {
        let Some(view) = self.map.as_ref().and_then(|map| map.group(message.group)) else { return };
        let known = view.version;
        if let Err(why) = check_term(view, from, &message) {
            return self.outbox.accusations.push((from, why));
        }
        if message.view > known {
            self.fetch_view(now, message.group);
        }
        if is_of_session(&message.body) && message.view != known {
            return self.keep_early(known, from, message);
        }
        let to = MemberId { group: message.group, role: message.to };
        // A mirror has the number of the role that it mirrors.
        if self.is_primary_role(message.to) && !self.members.parities.contains_key(&to) {
            self.dispatch_to_primary(now, from, message);
        } else {
            self.dispatch_to_parity(now, from, message);
        }
    }

    /// A session's message that came before the view it belongs to waits for it; one of an older view is moot.
    fn keep_early(&mut self, known: ViewVersion, from: HostId, message: GroupMessage) {
        if message.view > known {
            self.early.keep(&self.config.limits, from, message);
        }
    }

    /// The view of `group` is here: on with the messages that waited for it.
    pub(super) fn replay_early(&mut self, now: Now, group: GroupId) {
        for (from, message) in self.early.take(group) {
            self.dispatch_group(now, from, message);
        }
    }

    fn dispatch_to_primary(&mut self, now: Now, from: HostId, message: GroupMessage) {
        let id = MemberId { group: message.group, role: message.to };
        let from = (message.from, from);
        self.with_primary(now, id, |primary, context| primary.handle(context, from, message.body));
    }

    fn dispatch_to_parity(&mut self, now: Now, from: HostId, message: GroupMessage) {
        let id = MemberId { group: message.group, role: message.to };
        let (parities, mut context) = self.parities_and_context(now);
        let Some(parity) = parities.get_mut(&id) else { return };
        parity.handle(&mut context, (message.from, from), message.body);
        if cfg!(debug_assertions) {
            parity.check_invariants();
        }
    }
}

/// Whether the primary that sends `message` can have its term: in the view that both know it has the view's; a view adds one at
/// most, and takes none away.
fn check_term(view: &GroupView, from: HostId, message: &GroupMessage) -> Result<(), Impossible> {
    let Some(term) = term_of_primary(&message.body) else { return Ok(()) };
    let possible = view.data_role(message.from).is_some_and(|role| {
        if message.view == view.version {
            role.term == term && role.primary == Some(from)
        } else {
            let changes = message.view.0.saturating_sub(view.version.0);
            u64::from(term.0) <= u64::from(role.term.0).saturating_add(changes)
        }
    });
    let impossible = Impossible::Term { role: message.from, term, view: message.view };
    if possible { Ok(()) } else { Err(impossible) }
}

/// The term of the primary that sends this; none if it is not a primary that does.
fn term_of_primary(body: &GroupBody) -> Option<Term> {
    match body {
        GroupBody::Hello(hello) => Some(hello.term),
        GroupBody::Frame(frame) => Some(frame.term),
        GroupBody::Reserve(reserve) => Some(reserve.term),
        GroupBody::FetchIndex(fetch) => Some(fetch.term),
        GroupBody::Page(page) => Some(page.term),
        GroupBody::Learn(learn) => Some(learn.term),
        _ => None,
    }
}

/// Sessions live inside one view (I7).
fn is_of_session(body: &GroupBody) -> bool {
    matches!(
        body,
        GroupBody::Open(_)
            | GroupBody::Opened(_)
            | GroupBody::Read(_)
            | GroupBody::Page(_)
            | GroupBody::Residual(_)
            | GroupBody::Abort(_)
    )
}
