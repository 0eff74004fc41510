//! Quotas of the namespaces whose chunks there are.

use types::{Epoch, Grant, NamespaceId, Round};

use super::*;
use crate::{QuotaShortage, Quotas};

#[test]
fn chunks_are_charged_to_the_quota_of_their_namespace() {
    let (pages, quotas) = (pool(1), Quotas::new(1));
    let mut store = ChunkStore::new(ROLE, &pages);
    let put = |store: &mut ChunkStore, number| {
        let chunk = build(&pages, CELL, 1, number);
        store.try_insert(id(number, 0), header(1, &chunk), chunk)
    };
    let used = || quotas.report().map(|report| (report.uses[0].used_bytes, report.uses[0].share_bytes));
    let heed_of = |store: &mut ChunkStore, counted, counts| {
        let share = (NamespaceId(4), quotas.share(NamespaceId(4)));
        store.heed_quotas("rs(3+1)".parse().unwrap(), counted, [share].into_iter().filter(|_| counts));
    };
    let heed = |store: &mut ChunkStore, counts| heed_of(store, 4, counts);
    assert_eq!(put(&mut store, 1), Ok(Inserted::New), "it has no quota yet");
    heed(&mut store, true);
    // Of four equal chunks three are data.
    let one = u64::from(CELL) * 3 / 4;
    assert_eq!(used(), Some((one, one)), "what is there brings its part of the share");
    assert_eq!(put(&mut store, 2), Err(QuotaShortage::Undealt));
    quotas.deal(
        Round { epoch: Epoch(1), number: 1 },
        &[Grant { namespace: NamespaceId(4), bytes: one as i64 }],
    );
    assert_eq!((put(&mut store, 1), put(&mut store, 2)), (Ok(Inserted::Same), Ok(Inserted::New)));
    assert_eq!((put(&mut store, 3), store.count()), (Err(QuotaShortage::Spent), 2));
    assert_eq!(insert(&mut store, id(4, 0), 1, build(&pages, CELL, 1, 4)), Inserted::New, "it was elsewhere");
    assert_eq!(used(), Some((3 * one, 3 * one)));
    quotas.deal(Round { epoch: Epoch(1), number: 2 }, &[Grant { namespace: NamespaceId(4), bytes: -9 }]);
    assert_eq!(store.excess().collect::<Vec<_>>(), [(NamespaceId(4), 12)], "in bytes of pages");
    store.check_invariants();
    heed(&mut store, false);
    assert_eq!((used(), store.charged().count()), (Some((0, 0)), 0), "another holder counts now");
    heed(&mut store, true);
    heed_of(&mut store, 3, true);
    assert_eq!(used(), Some((4 * one, 4 * one)), "what another one has lost is charged here");
    heed(&mut store, true);
    assert_eq!(used(), Some((3 * one, 3 * one)), "it has it again");
    for number in [1, 2, 4] {
        store.remove_object(object(number));
    }
    assert_eq!((used(), store.taken_by(NamespaceId(4))), (Some((0, 3 * one)), 0));
    store.check_invariants();
}
