//! What another member's session asks of a primary (R3).

use bytes::Bytes;
use smallvec::SmallVec;
use store::DataStore;
use types::Addr;
use wire::message::{GroupBody, MAX_WRONG_ITEMS, Page, Read};

use crate::outbox::Context;
use crate::primary::core::Core;
use crate::primary::stream::SendStream;

/// One snapshot of committed bytes, into the FIFO to each parity of the session.
pub(in crate::primary) fn answer_read(
    context: &mut Context<'_>,
    core: &Core,
    stream: &SendStream,
    store: Option<&DataStore>,
    read: &Read,
) {
    // A stand-in without its index cannot say what it has: it lacks everything.
    let present = store.filter(|store| store.pages_present(read.pages));
    let bytes = present.map(|store| Bytes::copy_from_slice(store.page_bytes(read.pages)));
    let committed = context.rules.page_is_as_of(stream.committed());
    let wrong = wrong_items(core, store, read);
    let page = Page { session: read.session, term: core.term(), committed, bytes, wrong };
    for parity in core.in_sync_of(&read.parities) {
        core.sender().send(context, parity, GroupBody::Page(page.clone().into()));
    }
}

/// What a scrub is told of the items over its pages.
fn wrong_items(core: &Core, store: Option<&DataStore>, read: &Read) -> SmallVec<[Addr; 2]> {
    let of_scrub = usize::from(read.session.role.0) >= core.view().k();
    let store = store.filter(|_| of_scrub);
    store.map(|store| store.wrong_items(read.pages, MAX_WRONG_ITEMS).into()).unwrap_or_default()
}
