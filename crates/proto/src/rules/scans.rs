//! The rules of scans (docs/native-protocol.md, "Scans").

use store::{DataStore, Step};
use types::{IndexHash, ScanBound};

use super::{Bug, Rules};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct ScanRules(Rules);

impl ScanRules {
    /// Those of all rules that scans have.
    pub(crate) fn of(rules: Rules) -> Self {
        Self(rules)
    }

    /// A page is a read, and needs a lease as any other.
    pub(crate) fn need_lease(self, may_serve: bool) -> bool {
        may_serve || !self.0.prevent(Bug::ScanWithoutLease)
    }

    /// What is not there yet is waited for.
    pub(crate) fn passes_over_what_is_absent(self) -> bool {
        !self.0.prevent(Bug::ScanPassesOverAbsent)
    }

    /// What a scan meets next that has come to `bound`: a bound is one of hashes, and no place in a table.
    pub(crate) fn step(self, store: &DataStore, bound: ScanBound) -> Step<'_> {
        if self.0.prevent(Bug::ScanByPosition) {
            return store.step(bound.hash());
        }
        let there =
            usize::try_from(bound.number()).ok().and_then(|at| store.replica().index().iter().nth(at));
        there.map_or(Step::End, |(hash, _)| store.step(hash))
    }

    /// The bound behind what was met from `from` on.
    pub(crate) fn behind(self, from: ScanBound, met: IndexHash) -> Option<ScanBound> {
        if self.0.prevent(Bug::ScanByPosition) {
            ScanBound::behind(met)
        } else {
            ScanBound::new(from.number() + 1)
        }
    }
}
