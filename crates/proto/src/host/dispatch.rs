//! Whether a message of a peer can be what it claims, by the views.

use types::{GroupView, HostId, Term};
use wire::message::{GroupBody, GroupMessage};

use crate::Impossible;

/// Whether the primary that sends `message` can have its term: in the view that both know it has the view's; a view adds one at
/// most, and takes none away.
pub(super) fn check_term(view: &GroupView, from: HostId, message: &GroupMessage) -> Result<(), Impossible> {
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
        // By name: a message of primaries that was forgotten here would be believed with any term.
        GroupBody::Hello(hello) => Some(hello.term),
        GroupBody::Frame(frame) => Some(frame.term),
        GroupBody::Reserve(reserve) => Some(reserve.term),
        GroupBody::FetchIndex(fetch) => Some(fetch.term),
        GroupBody::Page(page) => Some(page.term),
        GroupBody::Learn(learn) => Some(learn.term),
        // A primary sends these, too. They are of a session, and count in its view only.
        GroupBody::Open(_) | GroupBody::Read(_) | GroupBody::Abort(_) => None,
        GroupBody::Welcome(_)
        | GroupBody::Ack(_)
        | GroupBody::Reject(_)
        | GroupBody::Reserved(_)
        | GroupBody::IndexPart(_)
        | GroupBody::Opened(_)
        | GroupBody::Residual(_)
        | GroupBody::LearnHello(_)
        | GroupBody::Learned(_) => None,
    }
}

/// Sessions live inside one view (I7).
pub(super) fn is_of_session(body: &GroupBody) -> bool {
    match body {
        // By name: a message of sessions that was forgotten here would be handled in another view than its own.
        GroupBody::Open(_)
        | GroupBody::Opened(_)
        | GroupBody::Read(_)
        | GroupBody::Page(_)
        | GroupBody::Residual(_)
        | GroupBody::Abort(_) => true,
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
        | GroupBody::Learned(_) => false,
    }
}
