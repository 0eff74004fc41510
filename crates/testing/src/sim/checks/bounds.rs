//! Budgets and queues stay within their bounds.

use store::Category;

use super::super::world::World;

/// By how much an index may overdraw a budget: committed records must never fail to apply.
const OVERDRAFT_BYTES: u64 = 1 << 20;
/// Records beyond the bound that a primary may write by itself: what one request makes it reclaim.
const OWN_RECORDS: usize = 1024;

impl World {
    pub(super) fn check_bounds(&mut self) {
        for node in 0..self.stage.options.nodes {
            self.check_budget(node);
        }
        let mut broken = None;
        for shard in &self.shards {
            let Some(host) = &shard.host else { continue };
            let limits = &self.stage.options.limits;
            if host.routed_requests() > limits.forwarded_requests + limits.parked_requests {
                broken = Some(format!("{} requests are on their way", host.routed_requests()));
            }
            for primary in host.primaries() {
                let records = primary.uncommitted.len();
                if records > self.stage.options.limits.log_records + OWN_RECORDS {
                    broken = Some(format!("{} has {records} uncommitted records", primary.member));
                }
                if primary.waiting > self.stage.options.limits.parked_requests {
                    broken = Some(format!("{} has {} waiting requests", primary.member, primary.waiting));
                }
            }
        }
        if let Some(what) = broken {
            self.stage.book.fail("bounds", None, what);
        }
    }

    fn check_budget(&mut self, node: usize) {
        let budget = &self.nodes[node].budget;
        let (used, limit) = (budget.total_used(), budget.limit());
        let sum: u64 = Category::ALL.iter().map(|category| budget.used(*category)).sum();
        if sum != used || used > limit + OVERDRAFT_BYTES {
            let by_category: Vec<String> =
                Category::ALL.iter().map(|c| format!("{} {}", c.name(), budget.used(*c))).collect();
            let what = format!("node-{node} uses {used} of {limit} bytes: {}", by_category.join(", "));
            self.stage.book.fail("budget", None, what);
        }
    }
}
