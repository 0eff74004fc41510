//! What can never fit is refused before its bytes come. Nothing is reserved by a declared length; but what there is no room for, whatever
//! goes for it, need not be sent.

use types::{CHUNK_PAGE_BYTES, Geometry, GroupView, HostId, MemberId, NamespaceId};

use super::groups::groups_beside;
use crate::objects::scope::Scope;

/// Whether a value of `namespace` takes more than its quota, if it is not charged to that already, or than this host has for chunks where it has one of each stripe.
pub(super) fn never_fits(
    scope: &Scope<'_>,
    owner: MemberId,
    namespace: NamespaceId,
    geometry: Geometry,
    is_charged: bool,
) -> bool {
    // A copy is with the first role; all others have as much as any of them.
    let (Some(first), Some(each)) = (bytes_of_role(geometry, 0), bytes_of_role(geometry, 1)) else {
        return true;
    };
    let others = scope.protection(owner.group).map_or(0, |it| it.code().n() as u64 - 1);
    let known = scope.views.map().and_then(|map| map.catalog.namespace(namespace));
    let quota = known.map(|known| known.policy.quota_bytes).filter(|quota| *quota > 0 && !is_charged);
    if quota.is_some_and(|quota| each.saturating_mul(others).saturating_add(first) > quota) {
        return true;
    }
    let here = scope.here();
    let is_here = |view: &GroupView| has_role(view, here);
    let mut groups = groups_beside(scope, owner.group).into_iter();
    each > scope.budget().chunk_limit() && groups.all(|group| scope.view(group).is_some_and(is_here))
}

/// Bytes of the pages of what a role keeps of every stripe; none if nobody can count them.
fn bytes_of_role(geometry: Geometry, role: u8) -> Option<u64> {
    let last = geometry.stripe_count().checked_sub(1)?;
    let pages = |index| Some(geometry.stripe(index)?.len_of(role).next_multiple_of(CHUNK_PAGE_BYTES as u64));
    // All but the last one are alike.
    pages(0)?.checked_mul(u64::from(last))?.checked_add(pages(last)?)
}

/// Whether a chunk of every stripe that is put into this group comes to `host`: also where nobody has put anything yet, for then its
/// members become its holders.
fn has_role(view: &GroupView, host: HostId) -> bool {
    if view.takes_chunks() {
        return view.all_holders().any(|(_, holder)| holder.host == host);
    }
    let primaries = view.data.iter().map(|role| role.primary);
    primaries.chain(view.parity.iter().copied()).any(|member| member == Some(host))
}
