//! Items that make way for chunks: an extent is emptied, and goes back.

use super::Primary;
use crate::outbox::Context;

/// The node has no room for chunks, which have less than their share of its memory: one more extent is to go. Whether one does.
pub(crate) fn make_way(primary: &mut Primary, context: &mut Context<'_>) -> bool {
    primary.release.want(true);
    go_on(primary, context);
    primary.release.is_wanted()
}

/// Empties the extent that is wanted, and begins to give it back once it is.
pub(super) fn go_on(primary: &mut Primary, context: &mut Context<'_>) {
    if !primary.release.is_wanted() || primary.release.is_under_way() {
        return;
    }
    // What is emptied while nothing may go back would be filled again.
    if !primary.is_undisturbed() || !primary.may_serve(context.now.time, context.timing) {
        return;
    }
    let Primary { phase, stream, release, space, wall, .. } = primary;
    let store = phase.serving_mut();
    let vacant = store.vacant_extents().next();
    match vacant.or_else(|| store.take_emptied()) {
        Some(extent) => release.begin_with(extent, store, stream),
        None => {
            let goes_on = space.empty_extent(context, store, stream, wall.at(context.now.unix));
            release.want(goes_on);
        }
    }
}
