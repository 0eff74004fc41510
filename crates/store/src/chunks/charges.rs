//! What the chunks of a role take of their namespaces' quotas (docs/pools.md, "Quotas").

use std::collections::BTreeMap;

use types::{NamespaceId, Profile};

use crate::{QuotaCharge, QuotaShortage, Share};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Charges {
    /// Bytes of pages, of every namespace that has chunks here.
    taken: BTreeMap<NamespaceId, u64>,
    /// Of those that have a quota, where this holder counts.
    charges: BTreeMap<NamespaceId, QuotaCharge>,
    part: DataPart,
}

/// Quotas are dealt out as what data roles may have. All chunks of a stripe are equally long, so each of them stands for an equal part
/// of what the `k` data roles have of it: one in so many as have theirs. What is lost is to be made again, and so counts at the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DataPart {
    k: u64,
    counted: u64,
}

impl Default for DataPart {
    fn default() -> Self {
        Self { k: 1, counted: 1 }
    }
}

impl DataPart {
    /// What is charged for so many bytes of pages.
    fn of(self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.k).div_ceil(self.counted)
    }

    /// So many bytes of pages are charged like this.
    fn pages(self, charged: u64) -> u64 {
        charged.saturating_mul(self.counted).div_ceil(self.k)
    }
}

impl Charges {
    /// Namespaces with a quota are these from now on, and of so many roles chunks count: what is there is charged, and brings its part of
    /// the share with it. None is charged where another holder of the role counts.
    pub(super) fn heed(
        &mut self,
        profile: Profile,
        counted: usize,
        limited: impl Iterator<Item = (NamespaceId, Share)>,
    ) {
        self.part = DataPart { k: profile.k() as u64, counted: counted.max(1) as u64 };
        let mut before = std::mem::take(&mut self.charges);
        for (namespace, share) in limited {
            let due = self.part.of(self.taken_by(namespace));
            // One of before the quota was taken back and given anew is charged to nobody.
            let known = before.remove(&namespace).filter(|charge| charge.share().is(&share));
            let charge = match known {
                Some(mut charge) => {
                    charge.carry(due);
                    charge
                }
                None => share.open_for_chunks(due),
            };
            self.charges.insert(namespace, charge);
        }
    }

    /// Bytes of pages that the chunks of `namespace` take.
    pub(super) fn taken_by(&self, namespace: NamespaceId) -> u64 {
        self.taken.get(&namespace).copied().unwrap_or(0)
    }

    /// What namespaces take.
    pub(super) fn taken(&self) -> impl Iterator<Item = (NamespaceId, u64)> {
        self.taken.iter().map(|(namespace, bytes)| (*namespace, *bytes))
    }

    /// What is charged.
    pub(super) fn charged(&self) -> impl Iterator<Item = (NamespaceId, u64)> {
        self.charges.iter().map(|(namespace, charge)| (*namespace, charge.bytes()))
    }

    /// Bytes of pages that are to go: the part that these chunks have of what is taken beyond the node's shares, by namespaces.
    pub(super) fn excess(&self) -> impl Iterator<Item = (NamespaceId, u64)> {
        self.charges.iter().map(|(namespace, charge)| (*namespace, self.part.pages(charge.excess_bytes())))
    }

    /// `bytes` more, if the share suffices.
    pub(super) fn try_add(&mut self, namespace: NamespaceId, bytes: u64) -> Result<(), QuotaShortage> {
        let taken = self.taken_by(namespace).saturating_add(bytes);
        if let Some(charge) = self.charges.get_mut(&namespace) {
            charge.try_set(self.part.of(taken))?;
        }
        self.taken.insert(namespace, taken);
        Ok(())
    }

    /// `bytes` more, whatever the share is: they were charged elsewhere, and bring their part of it with them.
    pub(super) fn bring(&mut self, namespace: NamespaceId, bytes: u64) {
        let taken = self.taken_by(namespace).saturating_add(bytes);
        if let Some(charge) = self.charges.get_mut(&namespace) {
            charge.bring(self.part.of(taken));
        }
        self.taken.insert(namespace, taken);
    }

    /// `bytes` less.
    pub(super) fn subtract(&mut self, namespace: NamespaceId, bytes: u64) {
        let taken = self.taken_by(namespace).saturating_sub(bytes);
        if let Some(charge) = self.charges.get_mut(&namespace) {
            charge.set(self.part.of(taken));
        }
        if taken == 0 {
            self.taken.remove(&namespace);
        } else {
            self.taken.insert(namespace, taken);
        }
    }

    /// That `there` is what is known to be there, and charged.
    pub(super) fn check_invariants(&self, there: &BTreeMap<NamespaceId, u64>) {
        assert_eq!(&self.taken, there, "chunks are counted by namespaces");
        for (namespace, charge) in &self.charges {
            let due = self.part.of(self.taken_by(*namespace));
            assert_eq!(charge.bytes(), due, "{namespace} is charged what its chunks take");
        }
    }
}
