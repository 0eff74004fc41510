//! Budgets and queues stay within their bounds.

use proto::{Host, Limits};
use store::Category;

use crate::cluster::nodes::Nodes;
use crate::cluster::process::Node;
use crate::stage::book::Book;

/// By how much an index may overdraw a budget: committed records must never fail to apply.
const OVERDRAFT_BYTES: u64 = 1 << 20;
/// Records beyond the bound that a primary may write by itself: what one request makes it reclaim.
const OWN_RECORDS: usize = 1024;

pub(super) fn check(book: &mut Book, limits: &Limits, nodes: &Nodes) {
    nodes.iter().for_each(|node| check_budget(book, node));
    let broken = nodes.hosts().filter_map(|host| overflow(limits, host)).last();
    if let Some(what) = broken {
        book.fail("bounds", None, what);
    }
}

/// What is too long at a host: the last such thing.
fn overflow(limits: &Limits, host: &Host) -> Option<String> {
    let mut broken = None;
    if host.routed_requests() > limits.forwarded_requests + limits.parked_requests {
        broken = Some(format!("{} requests are on their way", host.routed_requests()));
    }
    // All that runs is for repair.
    let (reserved, most) =
        (host.graph_stats().load.reserved_bytes, limits.graph_bytes - limits.graph_reader_bytes);
    if reserved > most {
        broken = Some(format!("graphs have reserved {reserved} of {most} bytes"));
    }
    for primary in host.primaries() {
        let records = primary.uncommitted.len();
        if records > limits.log_records + OWN_RECORDS {
            broken = Some(format!("{} has {records} uncommitted records", primary.member));
        }
        if primary.waiting > limits.parked_requests {
            broken = Some(format!("{} has {} waiting requests", primary.member, primary.waiting));
        }
    }
    broken
}

fn check_budget(book: &mut Book, node: &Node) {
    let budget = &node.budget;
    let (used, limit) = (budget.total_used(), budget.limit());
    let sum: u64 = Category::ALL.iter().map(|category| budget.used(*category)).sum();
    if sum != used || used > limit + OVERDRAFT_BYTES {
        let by_category: Vec<String> =
            Category::ALL.iter().map(|c| format!("{} {}", c.name(), budget.used(*c))).collect();
        let (number, all) = (node.id.node.0, by_category.join(", "));
        book.fail("budget", None, format!("node-{number} uses {used} of {limit} bytes: {all}"));
    }
}
