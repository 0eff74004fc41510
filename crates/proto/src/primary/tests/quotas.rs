//! Quotas, from the primary's side.

use types::op::Failure;
use types::{EvictPolicy, Grant, Name, NamespaceId, PolicyChange, Round};

use super::*;

/// Bytes of a slot for a small item.
const SLOT: i64 = 48;
const FULL: Option<Outcome> = Some(Outcome::Failed(Failure::OutOfMemory));

impl Stage {
    /// One with a committed item, whose namespace has a quota from now on.
    fn limited(evict: EvictPolicy) -> Self {
        let mut stage = Self::with_item();
        stage.change(PolicyChange {
            quota_bytes: Some(1 << 20),
            evict: Some(evict),
            ..PolicyChange::default()
        });
        stage
    }

    fn change(&mut self, change: PolicyChange) {
        self.catalog.set_policy(&Name::default_name(), change).unwrap();
        self.edition += 1;
        self.act(|primary, context| primary.heed_catalog(context));
    }

    /// `bytes` are added to the node's share.
    fn deal(&mut self, number: u64, bytes: i64) -> Vec<Done> {
        let round = Round { epoch: types::Epoch(1), number };
        self.quotas.deal(round, &[Grant { namespace: NamespaceId::DEFAULT, bytes }]);
        self.act(|primary, context| primary.retry_waiting(context)).1
    }

    fn used(&self) -> (u64, u64) {
        let known = self.quotas.report().unwrap().uses[0];
        (known.used_bytes, known.share_bytes)
    }

    /// Both parities acknowledge everything.
    fn commit(&mut self) -> Vec<Done> {
        self.flush();
        let last = self.primary().stream.last().0;
        PARITIES.iter().flat_map(|role| self.ack(*role, last)).collect()
    }
}

#[test]
fn what_is_there_is_charged_and_more_waits_until_something_is_dealt_out() {
    let mut stage = Stage::limited(EvictPolicy::Keep);
    assert_eq!(stage.used(), (SLOT as u64, SLOT as u64));
    assert_eq!(stage.set_on("l", 2, 5), (None, vec![]));
    assert!(stage.primary().stream.is_empty(), "it waits");
    stage.deal(1, SLOT);
    assert_eq!(stage.used(), (2 * SLOT as u64, 2 * SLOT as u64), "charged before it commits");
    assert!(matches!(stage.commit()[..], [Done::Replies(2, Outcome::Stored(_))]));
    assert_eq!(stage.used(), (2 * SLOT as u64, 2 * SLOT as u64));
}

#[test]
fn where_the_share_is_used_up_only_what_takes_no_more_is_written() {
    let mut stage = Stage::limited(EvictPolicy::Keep);
    stage.deal(1, 0);
    assert_eq!(stage.set_on("l", 2, 5).0, FULL);
    assert_eq!(stage.set_on("k", 3, 400).0, FULL, "longer than what it replaces");
    assert_eq!(stage.set(4).0, None);
    assert!(matches!(stage.commit()[..], [Done::Replies(4, Outcome::Stored(_))]));
    stage.submit(5, Op::Delete(types::op::Delete::default()));
    assert_eq!(stage.set_on("l", 6, 5).0, FULL, "what goes is there until that is committed");
    stage.commit();
    assert_eq!(stage.used(), (0, SLOT as u64));
    assert_eq!(stage.set_on("l", 7, 5).0, None);
}

#[test]
fn items_of_a_namespace_that_evicts_give_way_to_each_other() {
    let mut stage = Stage::limited(EvictPolicy::Evict);
    stage.deal(1, 0);
    assert_eq!(stage.set_on("l", 2, 5).0, None);
    assert_eq!(stage.primary().stream.last(), Seq(2), "the other one is on its way out");
    stage.commit();
    assert!(matches!(stage.commit()[..], [Done::Replies(2, Outcome::Stored(_))]));
    assert_eq!(stage.submit(3, Op::Get(Get::default())).0, Some(Outcome::Miss));
    assert_eq!(stage.used(), (SLOT as u64, SLOT as u64));
}

#[test]
fn where_a_quota_has_become_smaller_items_go_by_themselves() {
    let mut stage = Stage::limited(EvictPolicy::Evict);
    stage.deal(1, -SLOT);
    stage.now += LEASE_US / 2;
    stage.tick();
    stage.commit();
    assert_eq!(stage.used(), (0, 0));
}

#[test]
fn a_quota_that_is_taken_back_holds_nobody_up() {
    let mut stage = Stage::limited(EvictPolicy::Keep);
    assert_eq!(stage.set_on("l", 2, 5), (None, vec![]));
    stage.change(PolicyChange { quota_bytes: Some(0), ..PolicyChange::default() });
    stage.quotas.heed(2, |_| false);
    stage.act(|primary, context| primary.retry_waiting(context));
    assert!(matches!(stage.commit()[..], [Done::Replies(2, Outcome::Stored(_))]));
    assert_eq!(stage.quotas.report(), None);
}
