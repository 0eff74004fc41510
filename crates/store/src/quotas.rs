//! What namespaces with a quota may take at a node: shares of their quotas, which all its workers draw on.
//!
//! A role *charges* what its items take, and what is on its way to it; a holder what its chunks take. A share goes where its role goes:
//! who begins to serve a role, or to keep its chunks, brings what they take into the node's share, and takes it out again at the end.
//! So roles move, and the sum of all shares stays what it was.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use types::{Grant, NamespaceId, QuotaReport, QuotaUse, Round};

/// The shares of one node. Clones are of the same node.
#[derive(Clone, Debug)]
pub struct Quotas(Arc<Mutex<Ledger>>);

#[derive(Debug)]
struct Ledger {
    /// Of the namespaces that have a quota by the newest map that any worker has heard of.
    shares: BTreeMap<NamespaceId, Share>,
    /// Version of that map.
    version: u64,
    /// The newest round that is in the shares.
    dealt: Round,
    /// The newest round that each worker has heard.
    heard: Vec<Round>,
}

/// What a node may take of one quota. Clones are of the same share.
#[derive(Clone, Debug, Default)]
pub struct Share(Arc<Amounts>);

#[derive(Debug, Default)]
struct Amounts {
    share: AtomicU64,
    used: AtomicU64,
    /// Of what is used, by chunks.
    chunks: AtomicU64,
    roles: AtomicU32,
    dealt: AtomicBool,
}

/// Why a charge cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaShortage {
    /// Nobody has dealt out anything since the node serves what it serves.
    Undealt,
    /// The share is used up.
    Spent,
}

impl Quotas {
    /// Of a node with so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let (shares, heard) = (BTreeMap::new(), vec![Round::default(); workers]);
        Self(Arc::new(Mutex::new(Ledger { shares, version: 0, dealt: Round::default(), heard })))
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Nothing in here panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By the map of this version, those for whom `is_limited` have a quota. What others had is nobody's.
    pub fn heed(&self, version: u64, is_limited: impl Fn(NamespaceId) -> bool) {
        let mut ledger = self.ledger();
        // Workers hear of maps one after the other, and one that is late knows less.
        if ledger.version <= version {
            ledger.version = version;
            ledger.shares.retain(|namespace, _| is_limited(*namespace));
        }
    }

    /// The share of `namespace`, which has a quota.
    #[must_use]
    pub fn share(&self, namespace: NamespaceId) -> Share {
        self.ledger().shares.entry(namespace).or_default().clone()
    }

    /// What the coordinator deals out in `round`; each worker may say it.
    pub fn deal(&self, round: Round, grants: &[Grant]) {
        let mut ledger = self.ledger();
        if ledger.dealt >= round {
            return;
        }
        ledger.dealt = round;
        for Grant { namespace, bytes } in grants {
            if let Some(share) = ledger.shares.get(namespace) {
                share.deal(*bytes);
            }
        }
    }

    /// `worker` has heard `round`, and everything that the coordinator had said before: what its roles take is charged.
    pub fn note_heard(&self, worker: usize, round: Round) {
        if let Some(heard) = self.ledger().heard.get_mut(worker) {
            *heard = round;
        }
    }

    /// What the coordinator is told; none if there is nothing to tell.
    #[must_use]
    pub fn report(&self) -> Option<QuotaReport> {
        let ledger = self.ledger();
        let heard = ledger.heard.iter().min().copied().unwrap_or_default();
        let uses: Vec<QuotaUse> =
            ledger.shares.iter().map(|(namespace, share)| share.report(*namespace)).collect();
        (heard != Round::default() || !uses.is_empty()).then_some(QuotaReport { heard, uses })
    }
}

impl Share {
    /// Whether both are of the same namespace at the same node, between two changes of its quota.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A role that takes so much already, and brings it with it.
    #[must_use]
    pub fn open(&self, bytes: u64) -> QuotaCharge {
        self.open_for(bytes, false)
    }

    /// A holder whose chunks take so much already, and bring it with them.
    #[must_use]
    pub fn open_for_chunks(&self, bytes: u64) -> QuotaCharge {
        self.open_for(bytes, true)
    }

    fn open_for(&self, bytes: u64, is_of_chunks: bool) -> QuotaCharge {
        self.0.roles.fetch_add(1, Ordering::Relaxed);
        // Of the rest it has no part yet: whoever needs more now waits for that, as if nothing had been dealt out.
        self.0.dealt.store(false, Ordering::Relaxed);
        let mut charge = QuotaCharge { share: self.clone(), is_of_chunks, bytes: 0 };
        charge.bring(bytes);
        charge
    }

    fn deal(&self, bytes: i64) {
        let dealt = |share: u64| Some(share.saturating_add_signed(bytes));
        // It always is.
        let _ = self.0.share.fetch_update(Ordering::Relaxed, Ordering::Relaxed, dealt);
        self.0.dealt.store(true, Ordering::Relaxed);
    }

    fn report(&self, namespace: NamespaceId) -> QuotaUse {
        let Amounts { share, used, roles, dealt, .. } = &*self.0;
        // The use first: it grows within the share only.
        let used_bytes = used.load(Ordering::Acquire);
        QuotaUse {
            namespace,
            roles: roles.load(Ordering::Relaxed),
            used_bytes,
            share_bytes: share.load(Ordering::Relaxed),
            dealt: dealt.load(Ordering::Relaxed),
        }
    }
}

/// What the items, or the chunks, of a namespace at one role take of the node's share.
#[derive(Debug)]
pub struct QuotaCharge {
    share: Share,
    is_of_chunks: bool,
    bytes: u64,
}

impl QuotaCharge {
    /// Where it is charged.
    #[must_use]
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// How much it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What this one has to make up for of what is taken beyond the share. Chunks go before items: the items of long values go with them,
    /// and are too short to make up for anything. All chunks together make up for it by what each role's take, and so do items.
    #[must_use]
    pub fn excess_bytes(&self) -> u64 {
        let Amounts { share, used, chunks, .. } = &*self.share.0;
        let (used, chunks) = (used.load(Ordering::Relaxed), chunks.load(Ordering::Relaxed));
        let excess = used.saturating_sub(share.load(Ordering::Relaxed));
        let of_chunks = excess.min(chunks);
        let (excess, all) = if self.is_of_chunks {
            (of_chunks, chunks)
        } else {
            (excess - of_chunks, used.saturating_sub(chunks))
        };
        let part = (u128::from(excess) * u128::from(self.bytes)).div_ceil(u128::from(all.max(1)));
        u64::try_from(part).unwrap_or(excess)
    }

    /// So much from now on, whatever the share is: it is there already, or gone.
    pub fn set(&mut self, bytes: u64) {
        let used = &self.share.0.used;
        match bytes.checked_sub(self.bytes) {
            Some(more) => used.fetch_add(more, Ordering::Relaxed),
            None => used.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        };
        self.note(bytes);
    }

    /// So much from now on; where it is more, that brings its part of the share with it.
    pub fn bring(&mut self, bytes: u64) {
        self.share.0.share.fetch_add(bytes.saturating_sub(self.bytes), Ordering::Relaxed);
        self.set(bytes);
    }

    /// So much from now on, of what is there as before; its part of the share comes with it, or goes where it is charged instead.
    pub fn carry(&mut self, bytes: u64) {
        let share = &self.share.0.share;
        if let Some(less) = self.bytes.checked_sub(bytes) {
            // The share first: nothing of it is to be free meanwhile.
            let rest = |share: u64| Some(share.saturating_sub(less));
            let _ = share.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
            return self.set(bytes);
        }
        self.bring(bytes);
    }

    fn note(&mut self, bytes: u64) {
        if self.is_of_chunks {
            // A difference below nothing wraps, and so does the sum.
            self.share.0.chunks.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// So much from now on.
    ///
    /// # Errors
    /// If the share is too small for that; what was charged stays charged.
    pub fn try_set(&mut self, bytes: u64) -> Result<(), QuotaShortage> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else {
            self.set(bytes);
            return Ok(());
        };
        let Amounts { share, used, dealt, .. } = &*self.share.0;
        let limit = share.load(Ordering::Relaxed);
        let fits = |used: u64| used.checked_add(more).filter(|sum| *sum <= limit);
        if used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok() {
            self.note(bytes);
            return Ok(());
        }
        Err(if dealt.load(Ordering::Relaxed) { QuotaShortage::Spent } else { QuotaShortage::Undealt })
    }
}

/// The role is served here no more, or there is no quota any more: its part of the share goes with it.
impl Drop for QuotaCharge {
    fn drop(&mut self) {
        let brought = self.bytes;
        self.set(0);
        let Amounts { share, roles, .. } = &*self.share.0;
        roles.fetch_sub(1, Ordering::Relaxed);
        let rest = |share: u64| Some(share.saturating_sub(brought));
        let _ = share.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
    }
}

#[cfg(test)]
mod tests {
    use types::Epoch;

    use super::*;

    const A: NamespaceId = NamespaceId(1);

    fn round(number: u64) -> Round {
        Round { epoch: Epoch(1), number }
    }

    fn only(quotas: &Quotas) -> QuotaUse {
        quotas.report().expect("there is a share").uses[0]
    }

    #[test]
    fn nothing_is_taken_beyond_the_share() {
        let quotas = Quotas::new(1);
        let mut charge = quotas.share(A).open(0);
        assert_eq!(charge.try_set(10), Err(QuotaShortage::Undealt));
        quotas.deal(round(1), &[Grant { namespace: A, bytes: 100 }]);
        assert_eq!(charge.try_set(100), Ok(()));
        assert_eq!(charge.try_set(101), Err(QuotaShortage::Spent));
        let mut other = quotas.share(A).open(0);
        assert_eq!(other.try_set(1), Err(QuotaShortage::Undealt), "there may be something for it");
        quotas.deal(round(2), &[Grant { namespace: A, bytes: 0 }]);
        assert_eq!(other.try_set(1), Err(QuotaShortage::Spent), "both draw on one share");
        charge.set(60);
        assert_eq!((other.try_set(40), other.bytes()), (Ok(()), 40));
        let known = only(&quotas);
        assert_eq!((known.roles, known.used_bytes, known.share_bytes), (2, 100, 100));
    }

    #[test]
    fn a_share_comes_and_goes_with_the_role() {
        let quotas = Quotas::new(1);
        let mut charge = quotas.share(A).open(30);
        quotas.deal(round(1), &[Grant { namespace: A, bytes: 20 }]);
        assert_eq!((only(&quotas).used_bytes, only(&quotas).share_bytes), (30, 50));
        charge.try_set(40).unwrap();
        drop(charge);
        assert_eq!((only(&quotas).used_bytes, only(&quotas).share_bytes), (0, 10));
    }

    #[test]
    fn a_round_is_dealt_once_and_no_older_one_after_it() {
        let quotas = Quotas::new(2);
        let _charge = quotas.share(A).open(0);
        let grant = |bytes| [Grant { namespace: A, bytes }];
        quotas.deal(round(2), &grant(10));
        quotas.deal(round(2), &grant(10));
        quotas.deal(round(1), &grant(10));
        assert_eq!(only(&quotas).share_bytes, 10);
        quotas.deal(round(3), &grant(-50));
        assert_eq!(only(&quotas).share_bytes, 0, "as far as it goes");
        quotas.note_heard(0, round(3));
        assert_eq!(quotas.report().unwrap().heard, Round::default(), "the other worker has not");
        quotas.note_heard(1, round(2));
        assert_eq!(quotas.report().unwrap().heard, round(2));
    }

    #[test]
    fn a_quota_that_was_taken_back_leaves_nothing_behind() {
        let quotas = Quotas::new(1);
        let before = quotas.share(A);
        let charge = before.open(5);
        quotas.deal(round(1), &[Grant { namespace: A, bytes: 95 }]);
        quotas.heed(7, |_| false);
        assert_eq!(quotas.report(), None);
        let after = quotas.share(A);
        quotas.heed(6, |_| false);
        assert!(after.is(&quotas.share(A)), "one who is late knows less");
        assert!(!after.is(charge.share()));
        assert_eq!(only(&quotas).share_bytes, 0);
        drop(charge);
        assert_eq!(only(&quotas).roles, 0);
    }

    #[test]
    fn chunks_make_up_for_what_is_too_much_before_items_do() {
        let quotas = Quotas::new(1);
        let share = quotas.share(A);
        let items = [share.open(60), share.open(40)];
        let mut chunks = share.open_for_chunks(0);
        assert_eq!(chunks.try_set(1), Err(QuotaShortage::Undealt));
        chunks.bring(300);
        assert_eq!((only(&quotas).used_bytes, only(&quotas).share_bytes), (400, 400));
        assert_eq!(chunks.excess_bytes(), 0, "it has brought what it takes");
        let mut others = share.open_for_chunks(100);
        quotas.deal(round(1), &[Grant { namespace: A, bytes: -40 }]);
        assert_eq!((chunks.excess_bytes(), others.excess_bytes()), (30, 10));
        assert_eq!(items.each_ref().map(QuotaCharge::excess_bytes), [0, 0]);
        others.set(0);
        chunks.set(0);
        assert_eq!(chunks.excess_bytes(), 0, "there is room again");
        quotas.deal(round(2), &[Grant { namespace: A, bytes: -410 }]);
        assert_eq!((only(&quotas).used_bytes, only(&quotas).share_bytes), (100, 50));
        assert_eq!(items.each_ref().map(QuotaCharge::excess_bytes), [30, 20], "and else items go");
        drop((items, chunks, others));
        assert_eq!(only(&quotas).used_bytes, 0);
    }
}
