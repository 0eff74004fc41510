//! Budgets and queues stay within their bounds.

use proto::{Host, Limits};
use store::Category;

use crate::cluster::nodes::Nodes;
use crate::cluster::process::Node;
use crate::stage::Stage;
use crate::stage::book::Book;

/// By how much an index may overdraw a budget: committed records must never fail to apply.
const OVERDRAFT_BYTES: u64 = 1 << 20;
/// Records beyond the bound that a primary may write by itself: what one request makes it reclaim.
const OWN_RECORDS: usize = 1024;

/// How long after its deadline a run of a graph may be there, at a process that does not stand still: as long as its timers take.
const GRAPH_GRACE_US: u64 = 100_000;

pub(super) fn check(stage: &mut Stage, nodes: &Nodes) {
    nodes.iter().for_each(|node| check_budget(&mut stage.book, node));
    let limits = &stage.options.limits;
    let broken = nodes.hosts().filter_map(|host| overflow(limits, host)).last();
    if let Some(what) = broken {
        stage.book.fail("bounds", None, what);
    }
    let awake = (0..nodes.host_count()).filter(|host| nodes.is_up(nodes.node_of(*host)));
    let spoilt = awake.into_iter().find_map(|host| bad_graphs(stage, nodes, host));
    if let Some(what) = spoilt {
        stage.book.fail("graphs", None, what);
    }
}

/// What is wrong with graphs at a host: no memory is damaged here and no wire, so they make what they should, until their deadline.
fn bad_graphs(stage: &Stage, nodes: &Nodes, host: usize) -> Option<String> {
    let (id, stats) = (nodes.id_of(host), nodes.host(host)?.graph_stats());
    if stats.spoilt > 0 {
        return Some(format!("{} runs of {id} have made something else than was wanted", stats.spoilt));
    }
    let wrong = nodes.host(host)?.stats().objects.wrong_sums;
    if wrong > 0 {
        return Some(format!("{wrong} sums of products at {id} were not what was to be put"));
    }
    let now = stage.read(&nodes[nodes.node_of(host)].clock).time;
    let late_us = now.since(stats.first_deadline?);
    (late_us > GRAPH_GRACE_US).then(|| format!("a run at {id} goes on {late_us} us after its deadline"))
}

/// What is too long at a host: the last such thing.
fn overflow(limits: &Limits, host: &Host) -> Option<String> {
    let mut broken = None;
    if host.routed_requests() > limits.forwarded_requests + limits.parked_requests {
        broken = Some(format!("{} requests are on their way", host.routed_requests()));
    }
    let (load, most) = (host.graph_stats().load, limits.graph_bytes);
    let kept = limits.graph_reader_bytes;
    if load.reserved_bytes > most || load.repair_bytes > most - kept {
        broken = Some(format!("graphs have reserved {load:?} of {most} bytes, {kept} of them for readers"));
    }
    let sums = host.stats().objects.sum_bytes;
    if sums > limits.sum_bytes as u64 {
        broken = Some(format!("products take {sums} bytes, and may take {}", limits.sum_bytes));
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
