//! `gestalt graph probe`: how fast the nodes of a cluster are, by what they have fetched of each other, and how fast each adds up.

use std::time::Duration;

use clap::Args;
use client::fetch_json;
use graph::{LinkEnd, Links};
use serde::Serialize;
use server::{GraphsReport, SeenNode};
use types::ClusterMap;

use crate::endpoint::{Endpoint, without_map};
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};

/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(2);
/// Who takes so many times as long as others is slow, by what most that have asked it say.
const SLOW: f64 = 1.5;

const EXAMPLE: &str = "\
Examples:
  gestalt graph probe                       who was asked by whom, and how long 64 KiB took
  gestalt graph probe -o json | jq .links > links.json
  gestalt graph explain --links links.json  what each scheme would cost over these links";

/// How fast nodes are, by chunks that others have fetched of them, and what planners make of it
///
/// Nothing is sent for it: what readers and repair have fetched since the nodes were started is timed. Every node adds up for
/// a millisecond.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ProbeArgs {
    #[command(flatten)]
    endpoint: Endpoint,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Serialize)]
struct Report {
    nodes: Vec<NodeLine>,
    /// Nodes of the map that did not answer.
    silent: Vec<u16>,
    /// What `--links` of `explain` and `plan` takes.
    links: Links,
}

#[derive(Serialize)]
struct NodeLine {
    node: u16,
    products_per_s: f64,
    /// What its planners take every link for that they know nothing else of.
    usual_bytes_per_s: f64,
    seen: Vec<SeenNode>,
}

/// Runs the command.
///
/// # Errors
/// `Unreachable` if no cluster is there.
pub async fn run(args: &ProbeArgs) -> Result<(), Exit> {
    let http = args.endpoint.find_map().await?;
    let map: ClusterMap = fetch_json(http, "/map", LIMIT).await.map_err(|error| without_map(&error))?;
    let asked: Vec<_> = map
        .nodes
        .iter()
        .map(|info| {
            let (http, host) = (info.http, info.host);
            tokio::spawn(async move {
                let report = fetch_json::<GraphsReport>(http, "/graphs", LIMIT).await.ok();
                report.filter(|report| report.node == host)
            })
        })
        .collect();
    let (mut reports, mut silent) = (Vec::new(), Vec::new());
    for (info, answer) in map.nodes.iter().zip(asked) {
        match answer.await.ok().flatten() {
            Some(report) => reports.push(report),
            None => silent.push(info.host.node.0),
        }
    }
    let links = links_of(&reports);
    let nodes = reports.into_iter().map(line).collect();
    let report = Report { nodes, silent, links };
    match args.output {
        Format::Json => print_json(&report),
        Format::Table => print(&text(&report)),
    }
    Ok(())
}

fn line(report: GraphsReport) -> NodeLine {
    NodeLine {
        node: report.node.node.0,
        products_per_s: report.products_per_s,
        usual_bytes_per_s: report.links.others.up_bytes_per_s,
        seen: report.seen,
    }
}

/// The parameters of the cluster: what its nodes have found out, in the median, and for each node that is slower than others by what most
/// who have asked it say how many times that is.
fn links_of(reports: &[GraphsReport]) -> Links {
    let mut links = Links::default();
    let known = |of: fn(&GraphsReport) -> f64| median(reports.iter().map(of).collect());
    if let Some(rate) = known(|report| report.links.others.up_bytes_per_s) {
        let others = LinkEnd { up_bytes_per_s: rate, down_bytes_per_s: rate, ..links.others };
        (links.others, links.asker) = (others, others);
    }
    if let Some(products) = known(|report| report.products_per_s) {
        links.products_per_s = products;
    }
    let all = reports.iter().flat_map(|report| &report.seen);
    let mut nodes: Vec<u16> = all.clone().map(|seen| seen.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        let said = all.clone().filter(|seen| seen.node == node).map(|seen| seen.slowness).collect();
        let times = median(said).filter(|times| *times >= SLOW);
        if let Some(times) = times {
            let rate = links.others.up_bytes_per_s / times;
            let end = LinkEnd { up_bytes_per_s: rate, down_bytes_per_s: rate, ..links.others };
            links.nodes.insert(node, end);
        }
    }
    links
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn text(report: &Report) -> String {
    let mut links = Table::new(&["by", "from", "timed", "rate", "round trip", "64 KiB", "beside others"]);
    for line in &report.nodes {
        for seen in &line.seen {
            let unknown = || "-".to_owned();
            links.row(vec![
                format!("node-{}", line.node),
                format!("node-{}", seen.node),
                seen.samples.to_string(),
                seen.bytes_per_s.map_or_else(unknown, |rate| format!("{:.2} Gbit/s", rate / 125e6)),
                seen.round_trip_us.map_or_else(unknown, |us| format!("{us:.0} us")),
                format!("{:.0} us", seen.usual_us),
                format!("{:.2}", seen.slowness),
            ]);
        }
    }
    let mut coding = Table::new(&["node", "adds up", "takes links for"]);
    for line in &report.nodes {
        coding.row(vec![
            format!("node-{}", line.node),
            format!("{:.1} GB/s", line.products_per_s / 1e9),
            format!("{:.2} Gbit/s", line.usual_bytes_per_s / 125e6),
        ]);
    }
    let mut text = coding.render();
    text.push('\n');
    if report.nodes.iter().all(|line| line.seen.is_empty()) {
        text.push_str("Nothing is known of single links: too few chunks of long values were fetched since the nodes were started.\n");
    } else {
        text.push_str(&links.render());
    }
    for (node, end) in &report.links.nodes {
        let times = report.links.others.up_bytes_per_s / end.up_bytes_per_s;
        text.push_str(&format!(
            "\nnode-{node} is {times:.1} times slower than others: graphs go round it where they can\n"
        ));
    }
    for node in &report.silent {
        text.push_str(&format!("\nnode-{node} did not answer\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use types::{HostId, Incarnation, NodeId};

    use super::*;

    fn report(node: u16, seen: &[(u16, f64)]) -> GraphsReport {
        let seen = seen.iter().map(|(node, slowness)| SeenNode {
            node: *node,
            samples: 9,
            bytes_per_s: None,
            round_trip_us: None,
            usual_us: 100.0 * slowness,
            slowness: *slowness,
        });
        GraphsReport {
            node: HostId { node: NodeId(node), incarnation: Incarnation(1) },
            seen: seen.collect(),
            links: Links::default(),
            products_per_s: 5e9,
        }
    }

    #[test]
    fn a_node_is_slow_if_most_who_have_asked_it_say_so() {
        let reports = [
            report(0, &[(1, 1.0), (2, 6.0), (3, 4.0)]),
            report(1, &[(2, 8.0), (3, 1.0)]),
            report(3, &[(1, 1.1), (2, 7.0)]),
            report(2, &[(1, 0.9), (3, 1.0)]),
        ];
        let links = links_of(&reports);
        assert_eq!(links.nodes.keys().collect::<Vec<_>>(), [&2]);
        assert_eq!(links.others.up_bytes_per_s / links.nodes[&2].up_bytes_per_s, 7.0);
        assert!(links.is_sound() && links.products_per_s == 5e9);
        let silent = vec![5];
        let text = text(&Report { nodes: reports.into_iter().map(line).collect(), silent, links });
        assert!(
            text.contains("node-2 is 7.0 times slower") && text.contains("node-5 did not answer"),
            "{text}"
        );
    }

    #[test]
    fn of_a_cluster_that_has_fetched_nothing_it_says_so() {
        let reports = vec![report(0, &[])];
        let links = links_of(&reports);
        let text = text(&Report { nodes: reports.into_iter().map(line).collect(), silent: vec![], links });
        assert!(text.contains("Nothing is known"), "{text}");
    }
}
