//! The holder of a data role gives the holders of parities what they are to add up of a cell that is put to it (`sums`).

use smallvec::SmallVec;
use types::{GroupView, HostId, MemberId};
use wire::object::{Checked, Lend, ObjectMessage, Product, Put, PutShared, Share};

use super::scope::Scope;
use crate::Impossible;

/// What is to be multiplied of a cell that is put here: as if it had been lent. None if nothing is, or it is not what it is said to be.
pub(super) fn lent_of(shared: &PutShared) -> Option<Lend> {
    let PutShared { put: Put { member, view, row, ref cell, .. }, ref shares } = *shared;
    // Behind the rows of the code a copy has what lies at other roles, too.
    let stripe = shared.put.geometry.stripe(shared.put.chunk.stripe)?;
    (row < stripe.rows && cell.is_right()).then(|| {
        let (cell, shares) = (cell.clone(), shares.clone());
        Lend { member, view, row, cell, shares }
    })
}

/// Sends each of those that are to have one the product of a cell. Nobody has any use for one who is not, by the view that is known here,
/// the holder of a parity of the same group that covers the role.
pub(super) fn give(scope: &mut Scope<'_>, writer: HostId, lend: &Lend) {
    let Lend { member, row, ref cell, ref shares, .. } = *lend;
    let (Some(view), Some(protection)) = (scope.view(member.group), scope.protection(member.group)) else {
        return;
    };
    debug_assert!(lend.view <= view.version, "who gives products knows the view by which they were wanted");
    if !cell.is_right() {
        return scope.accuse(writer, Impossible::Chunk);
    }
    if usize::from(member.role.0) >= view.k() {
        return;
    }
    let code = protection.code();
    let coefficient = |share: &Share| {
        let parity = usize::from(share.role.0).checked_sub(view.k()).filter(|parity| *parity < code.m());
        parity.map_or(0, |parity| code.coefficient(parity, usize::from(member.role.0)))
    };
    let known = shares.iter().filter(|share| is_holder(view, share));
    let targets = known.map(|share| (*share, coefficient(share))).filter(|(_, by)| *by != 0);
    let targets: SmallVec<[(Share, u8); 4]> = targets.collect();
    let by: SmallVec<[u8; 4]> = targets.iter().map(|(_, by)| *by).collect();
    for ((share, _), product) in targets.iter().zip(multiply(scope, &by, &cell.bytes)) {
        let Share { role, holder, attempt } = *share;
        let to = MemberId { group: member.group, role };
        let cell = Checked::new(product.into());
        let product = Product { writer, attempt, member: to, row, of: member.role, cell };
        scope.send(holder, ObjectMessage::Product(product));
    }
}

fn is_holder(view: &GroupView, share: &Share) -> bool {
    view.holders_of(share.role).iter().any(|holder| holder.host == share.holder)
}

fn multiply(scope: &Scope<'_>, by: &[u8], cell: &[u8]) -> Vec<Vec<u8>> {
    let mut products: Vec<Vec<u8>> = by.iter().map(|_| vec![0; cell.len()]).collect();
    let mut outputs: SmallVec<[&mut [u8]; 4]> = products.iter_mut().map(Vec::as_mut_slice).collect();
    if !outputs.is_empty() {
        scope
            .coder()
            .combine(by, &[cell], &mut outputs)
            .expect("one cell, and as many outputs as coefficients");
    }
    drop(outputs);
    products
}
