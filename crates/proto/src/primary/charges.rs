//! What the namespaces of a role that have a quota take of the node's shares (docs/pools.md, "Quotas").
//!
//! Charged is what committed items take, and what uncommitted ones will take beyond what they replace. So the sum is never less than
//! what there will be, whatever commits when.

use store::{Cohorts, QuotaCharge, QuotaShortage, Quotas};
use types::{Catalog, IndexOp, NamespaceId, PoolId};
use wire::message::Record;

/// See the module.
#[derive(Default)]
pub(super) struct Charges {
    /// Ascending by namespace.
    rows: Vec<Row>,
}

struct Row {
    namespace: NamespaceId,
    charge: QuotaCharge,
    /// Bytes of what is not committed.
    on_its_way: u64,
}

/// What is charged for a record that is not committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charged {
    namespace: NamespaceId,
    bytes: u64,
}

impl Charges {
    /// Whether any namespace of the role has a quota.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Other namespaces may have a quota by now. What is there is charged, and brings its part of the share with it.
    pub(super) fn heed(&mut self, quotas: &Quotas, catalog: &Catalog, pool: PoolId, cohorts: &Cohorts) {
        let mut before = std::mem::take(&mut self.rows).into_iter().peekable();
        for limited in catalog.tenants_of(pool).filter(|known| known.policy.quota_bytes > 0) {
            let (namespace, share) = (limited.id, quotas.share(limited.id));
            while before.next_if(|row| row.namespace < namespace).is_some() {}
            let known = before.next_if(|row| row.namespace == namespace);
            // One of before the quota was taken back and given anew is charged to nobody.
            let known = known.filter(|row| row.charge.share().is(&share));
            self.rows.push(known.unwrap_or_else(|| Row {
                namespace,
                charge: share.open(cohorts.bytes_of(namespace)),
                on_its_way: 0,
            }));
        }
    }

    /// Charges for `bytes` more of `namespace`, if it has a quota.
    pub(super) fn charge(
        &mut self,
        namespace: NamespaceId,
        bytes: u64,
        cohorts: &Cohorts,
    ) -> Result<Option<Charged>, QuotaShortage> {
        let Some(row) = self.row(namespace) else { return Ok(None) };
        // What replaces as much takes nothing, also where there is nothing left.
        if bytes > 0 {
            let on_its_way = row.on_its_way.saturating_add(bytes);
            row.charge.try_set(cohorts.bytes_of(namespace).saturating_add(on_its_way))?;
            row.on_its_way = on_its_way;
        }
        Ok(Some(Charged { namespace, bytes }))
    }

    /// The record that this was charged for is committed, or there is none.
    pub(super) fn settle(&mut self, charged: Charged, cohorts: &Cohorts) {
        if let Some(row) = self.row(charged.namespace) {
            row.on_its_way = row.on_its_way.saturating_sub(charged.bytes);
            row.refresh(cohorts);
        }
    }

    /// `record` is committed: what it has changed is charged as it is now.
    pub(super) fn note_committed(&mut self, record: &Record, cohorts: &Cohorts) {
        for op in &record.ops {
            let namespace = match *op {
                IndexOp::Insert { cohort, .. }
                | IndexOp::Replace { cohort, .. }
                | IndexOp::Remove { cohort, .. } => cohort.namespace(),
                IndexOp::Flush { namespace } => namespace,
                IndexOp::Assign { .. }
                | IndexOp::FlushAt { .. }
                | IndexOp::SessionBegins { .. }
                | IndexOp::SessionEnds { .. }
                | IndexOp::WriteDone { .. }
                | IndexOp::WriteCounted { .. } => continue,
            };
            if let Some(row) = self.row(namespace) {
                row.refresh(cohorts);
            }
        }
    }

    /// A namespace that takes more than it may at this node, some of it here, and how much is to go here; of those for whom `may_give_way`.
    pub(super) fn excess(&self, may_give_way: impl Fn(NamespaceId) -> bool) -> Option<(NamespaceId, u64)> {
        let excess = |row: &Row| (row.namespace, row.charge.excess_bytes());
        self.rows.iter().map(excess).find(|(namespace, bytes)| *bytes > 0 && may_give_way(*namespace))
    }

    fn row(&mut self, namespace: NamespaceId) -> Option<&mut Row> {
        let at = self.rows.binary_search_by_key(&namespace, |row| row.namespace).ok()?;
        self.rows.get_mut(at)
    }

    /// That what is charged is what is there, and what is on its way.
    pub(super) fn check_invariants(&self, cohorts: &Cohorts) {
        for Row { namespace, charge, on_its_way } in &self.rows {
            let there = cohorts.bytes_of(*namespace).saturating_add(*on_its_way);
            assert_eq!(charge.bytes(), there, "{namespace} is charged what it takes");
        }
    }
}

impl Row {
    fn refresh(&mut self, cohorts: &Cohorts) {
        self.charge.set(cohorts.bytes_of(self.namespace).saturating_add(self.on_its_way));
    }
}
