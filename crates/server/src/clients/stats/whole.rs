//! `stats cluster`: what all nodes count, as sums.
//!
//! The node that is asked asks the others as a memcached client does, with `stats`, all at once and for a bounded time; so no
//! question makes further ones. How many have answered is said first: sums over fewer nodes than there are look like loss.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use types::NodeId;

use super::{Page, general};
use crate::limits::{SURVEY_ANSWER_BYTES, SURVEY_AT_ONCE, SURVEY_DEADLINE};
use crate::node::shared::Shared;
use crate::transport::Stream;

/// What is not the same thing on several nodes added up: facts, times, and settings.
const NOT_SUMMED: [&str; 18] = [
    "accepting_conns",
    "gestalt_groups",
    "gestalt_incarnation",
    "gestalt_map_version",
    "gestalt_namespaces",
    "gestalt_node",
    "gestalt_pools",
    "gestalt_profile",
    "gestalt_protection_achieved",
    "gestalt_protection_asked",
    "gestalt_version",
    "pid",
    "pointer_size",
    "rusage_system",
    "rusage_user",
    "time",
    "uptime",
    "version",
];

type Sums = BTreeMap<String, u64>;

/// The answer to `stats cluster`, without its end.
pub(super) async fn tell(page: &mut Page, shared: &Shared) {
    // One survey at a time: clients cannot make this node ask more than all others once.
    let _turn = shared.survey.lock().await;
    let mut own = Page::default();
    general(&mut own, shared, &shared.snapshots().await);
    let (mut sums, mut missing) = (Sums::new(), Vec::new());
    own.0.iter().for_each(|(name, value)| add(&mut sums, name, value));
    let mut answers = ask_all(others(shared));
    let mut answered = 1u64;
    while let Some(joined) = answers.join_next().await {
        match joined {
            Ok((_, Some(text))) => {
                add_text(&mut sums, &text);
                answered += 1;
            }
            Ok((node, None)) => missing.push(node),
            Err(error) => tracing::warn!(%error, "a node was not asked for its statistics"),
        }
    }
    missing.sort_unstable();
    let names: Vec<String> = missing.iter().map(|node| node.0.to_string()).collect();
    page.add("gestalt_nodes", answered + missing.len() as u64);
    page.add("gestalt_nodes_answered", answered);
    page.add("gestalt_nodes_missing", if names.is_empty() { "-".to_owned() } else { names.join(",") });
    for (name, sum) in sums {
        page.add(&name, sum);
    }
}

/// Every other node of the map, alive or not, and where its clients connect.
fn others(shared: &Shared) -> Vec<(NodeId, SocketAddr)> {
    let map = shared.map();
    let nodes = map.iter().flat_map(|map| &map.nodes);
    nodes
        .filter(|node| node.host.node != shared.host.node)
        .map(|node| (node.host.node, node.memcached))
        .collect()
}

fn ask_all(nodes: Vec<(NodeId, SocketAddr)>) -> JoinSet<(NodeId, Option<Vec<u8>>)> {
    let turns = Arc::new(Semaphore::new(SURVEY_AT_ONCE));
    let mut answers = JoinSet::new();
    for (node, address) in nodes {
        let turns = Arc::clone(&turns);
        answers.spawn(async move {
            let asked = timeout(SURVEY_DEADLINE, async {
                // Within the time-out: the whole survey has one bound, however many nodes wait for their turn.
                let _turn = turns.acquire().await.ok()?;
                ask(address).await
            });
            (node, asked.await.ok().flatten())
        });
    }
    answers
}

/// What the node there says to `stats`; none if it does not say it to the end.
async fn ask(address: SocketAddr) -> Option<Vec<u8>> {
    const END: &[u8] = b"\r\nEND\r\n";
    let mut stream = Stream::connect(address).await.ok()?;
    stream.write_all(b"stats\r\n").await.ok()?;
    let mut text = Vec::new();
    while !text.ends_with(END) {
        if text.len() >= SURVEY_ANSWER_BYTES || stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    }
    Some(text)
}

/// Adds the numbers of one node.
fn add_text(sums: &mut Sums, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let stats = text.lines().filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '));
    stats.for_each(|(name, value)| add(sums, name, value));
}

/// Adds `value` if it is a number that can be summed up.
fn add(sums: &mut Sums, name: &str, value: &str) {
    if let (Ok(value), false) = (value.parse::<u64>(), NOT_SUMMED.contains(&name)) {
        let sum = sums.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_added_and_what_is_no_sum_is_left_out() {
        let mut sums = Sums::new();
        add_text(
            &mut sums,
            b"STAT pid 5\r\nSTAT version 1.6.45\r\nSTAT cmd_get 3\r\nSTAT bytes 18446744073709551615\r\n",
        );
        add_text(&mut sums, b"STAT cmd_get 4\r\nSTAT bytes 1\r\nSTAT rusage_user 0.5\r\nEND\r\n");
        let expected = [("bytes".to_owned(), u64::MAX), ("cmd_get".to_owned(), 7)];
        assert_eq!(sums.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_list_of_what_is_not_summed_is_sorted() {
        assert!(NOT_SUMMED.is_sorted());
    }
}
