//! `gestalt graph probe`: how fast the nodes of a cluster are, by what they have fetched of each other, and how fast each adds up. With
//! `--active` each node fetches something of each other one for it, one node and one of its workers after the other.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use client::{HttpError, fetch_json, post_json};
use graph::{LinkEnd, Links, Pair};
use serde::Serialize;
use server::{GraphsReport, ProbeAnswer, ProbeRequest, ProbedNode, SeenNode};
use types::{ClusterMap, NodeInfo};

use crate::endpoint::{Endpoint, without_map};
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};
use crate::progress::Progress;
use crate::units::Size;

/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(2);
/// Who takes so many times as long as others is slow, by what most that have asked it say.
const SLOW: f64 = 1.5;
/// Most bytes that a node fetches of another one.
const MAX_BYTES: u64 = 16 << 20;
/// How often a node is asked how far it is, and how long measuring one link may take: nodes give up sooner.
const ASKED_EVERY: Duration = Duration::from_millis(50);
const LINK_LIMIT: Duration = Duration::from_secs(30);

const EXAMPLE: &str = "\
Examples:
  gestalt graph probe                         who was asked by whom, and how long 64 KiB took
  gestalt graph probe --active --bytes 1MiB   each node fetches 1 MiB of each other one, for the time
  gestalt graph probe -o json | jq .links > links.json
  gestalt graph explain --links links.json  what each scheme would cost over these links";

/// How fast nodes are, by chunks that others have fetched of them, and what planners make of it
///
/// Nothing is sent for it unless --active is given: what readers and repair have fetched since the nodes were started is timed. Every
/// node adds up for a millisecond.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ProbeArgs {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Measure on purpose: the workers of each node, one after the other, fetch bytes of chunks of each other node, behind what clients
    /// want
    #[arg(long)]
    active: bool,
    /// Bytes that a node fetches of each other one, in equal parts by its workers; 16MiB at most
    #[arg(long, default_value = "4MiB", requires = "active")]
    bytes: Size,
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
    /// What was measured on purpose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<ProbedNode>,
}

/// Runs the command.
///
/// # Errors
/// `Unreachable` if no cluster is there.
pub async fn run(args: &ProbeArgs) -> Result<(), Exit> {
    if args.bytes.0 > MAX_BYTES {
        return Err(Exit::usage("--bytes is 16MiB at most: links share their time with clients"));
    }
    let http = args.endpoint.find_map().await?;
    let map: ClusterMap = fetch_json(http, "/map", LIMIT).await.map_err(|error| without_map(&error))?;
    let answers = if args.active { measure(&map, args.bytes.0).await } else { ask(&map.nodes).await };
    let (mut reports, mut silent) = (Vec::new(), Vec::new());
    for (info, answer) in map.nodes.iter().zip(answers) {
        match answer {
            Some(report) => reports.push(report),
            None => silent.push(info.host.node.0),
        }
    }
    if !args.active {
        // What another probe has found out may be old.
        reports.iter_mut().for_each(|report| report.probe.nodes.clear());
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

/// What each node knows; none of those that do not answer.
async fn ask(nodes: &[NodeInfo]) -> Vec<Option<GraphsReport>> {
    let asked: Vec<_> = nodes
        .iter()
        .map(|info| {
            let (http, host) = (info.http, info.host);
            tokio::spawn(async move {
                let report = fetch_json::<GraphsReport>(http, "/graphs", LIMIT).await.ok();
                report.filter(|report| report.node == host)
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(asked.len());
    for answer in asked {
        answers.push(answer.await.ok().flatten());
    }
    answers
}

/// Has one worker of one node after the other measure its links, so that they do not measure each other.
async fn measure(map: &ClusterMap, bytes: u64) -> Vec<Option<GraphsReport>> {
    let nodes = &map.nodes;
    let workers = map.shards.max(1);
    let bytes = bytes.div_ceil(u64::from(workers)).max(1);
    let mut answers = Vec::with_capacity(nodes.len());
    let mut progress = Progress::start();
    for info in nodes {
        progress.show(|| format!("{} of {} nodes have measured their links", answers.len(), nodes.len()));
        let limit = LINK_LIMIT * u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let mut report = None;
        for worker in 0..workers {
            report = measure_at(info.http, ProbeRequest { bytes, worker }, limit).await.ok();
            if report.is_none() {
                break;
            }
        }
        answers.push(report.filter(|report| report.node == info.host));
    }
    answers
}

async fn measure_at(
    http: SocketAddr,
    request: ProbeRequest,
    limit: Duration,
) -> Result<GraphsReport, HttpError> {
    match post_json(http, "/graphs/probe", &request, LIMIT).await {
        // Somebody else has it measure: that is as good.
        Ok(_) | Err(HttpError::Status { status: 409, .. }) => {}
        Err(error) => return Err(error),
    }
    let began = Instant::now();
    loop {
        let report = fetch_json::<GraphsReport>(http, "/graphs", LIMIT).await?;
        if !report.probe.is_under_way || began.elapsed() > limit {
            return Ok(report);
        }
        tokio::time::sleep(ASKED_EVERY).await;
    }
}

fn line(report: GraphsReport) -> NodeLine {
    NodeLine {
        node: report.node.node.0,
        products_per_s: report.products_per_s,
        usual_bytes_per_s: report.links.others.up_bytes_per_s,
        seen: report.seen,
        measured: report.probe.nodes,
    }
}

/// The way from one node to another, and how many times as long as most others it takes.
struct Way {
    from: u16,
    to: u16,
    times: f64,
}

/// What was measured on purpose, if anything was, else what was seen.
fn ways(reports: &[GraphsReport], usual: f64) -> Vec<Way> {
    let measured =
        reports.iter().flat_map(|report| report.probe.nodes.iter().map(move |node| (report, node)));
    let measured = measured.filter_map(|(report, node)| {
        let times = usual / node.bytes_per_s?;
        Some(Way { from: node.node, to: report.node.node.0, times })
    });
    let measured: Vec<Way> = measured.collect();
    if !measured.is_empty() {
        return best(measured);
    }
    let seen = reports.iter().flat_map(|report| report.seen.iter().map(move |seen| (report, seen)));
    seen.map(|(report, seen)| Way { from: seen.node, to: report.node.node.0, times: seen.slowness }).collect()
}

/// Of the ways that several workers have measured the fastest: the link between their nodes is no slower.
fn best(mut ways: Vec<Way>) -> Vec<Way> {
    ways.sort_by(|one, other| {
        (one.from, one.to).cmp(&(other.from, other.to)).then(one.times.total_cmp(&other.times))
    });
    ways.dedup_by_key(|way| (way.from, way.to));
    ways
}

/// The parameters of the cluster: what was measured, or what its nodes have found out, in the median; each node that is slower than
/// others by what most who have asked it say, and each other link that is.
fn links_of(reports: &[GraphsReport]) -> Links {
    let mut links = Links::default();
    let known = |of: fn(&GraphsReport) -> f64| median(reports.iter().map(of).collect());
    let measured = || reports.iter().flat_map(|report| &report.probe.nodes);
    let rate = median(measured().filter_map(|node| node.bytes_per_s).collect());
    if let Some(rate) = rate.or_else(|| known(|report| report.links.others.up_bytes_per_s)) {
        let others = LinkEnd { up_bytes_per_s: rate, down_bytes_per_s: rate, ..links.others };
        (links.others, links.asker) = (others, others);
    }
    if let Some(round_trip_us) = median(measured().filter_map(|node| node.round_trip_us).collect()) {
        // There and back is twice what lies between two ends.
        (links.others.latency_us, links.asker.latency_us) = (round_trip_us / 4.0, round_trip_us / 4.0);
    }
    if let Some(products) = known(|report| report.products_per_s).filter(|products| *products > 0.0) {
        links.products_per_s = products;
    }
    let usual = links.others.up_bytes_per_s;
    let ways = ways(reports, usual);
    let mut nodes: Vec<u16> = ways.iter().map(|way| way.from).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        let said = ways.iter().filter(|way| way.from == node).map(|way| way.times).collect();
        let times = most(said).filter(|times| *times >= SLOW);
        if let Some(times) = times {
            let rate = usual / times;
            let end = LinkEnd { up_bytes_per_s: rate, down_bytes_per_s: rate, ..links.others };
            links.nodes.insert(node, end);
        }
    }
    let is_slow = |way: &&Way| way.times >= SLOW && !links.nodes.contains_key(&way.from);
    let slow: Vec<&Way> = ways.iter().filter(is_slow).collect();
    for Way { from, to, times } in slow {
        links.set_pair(Pair { from: *from, to: *to, bytes_per_s: usual / times, latency_us: 0.0 });
    }
    links
}

/// What more than half of them reach; of two, what both do.
fn most(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
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
    if report.nodes.iter().any(|line| !line.measured.is_empty()) {
        text.push_str(&measured_text(report));
    } else if report.nodes.iter().all(|line| line.seen.is_empty()) {
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
    for pair in &report.links.pairs {
        let times = report.links.others.up_bytes_per_s / pair.bytes_per_s;
        text.push_str(&format!(
            "\nfrom node-{} to node-{} it takes {times:.1} times as long as usual: chains and trees go round it\n",
            pair.from, pair.to
        ));
    }
    for node in &report.silent {
        text.push_str(&format!("\nnode-{node} did not answer\n"));
    }
    text
}

/// Links that were measured on purpose, and who has not answered whom.
fn measured_text(report: &Report) -> String {
    let mut table = Table::new(&["by", "worker", "from", "timed", "bytes", "rate", "round trip"]);
    let (mut silent, mut empty) = (BTreeSet::new(), BTreeSet::new());
    for (line, node) in
        report.nodes.iter().flat_map(|line| line.measured.iter().map(move |node| (line, node)))
    {
        let unknown = || "-".to_owned();
        match node.answer {
            ProbeAnswer::Answered => table.row(vec![
                format!("node-{}", line.node),
                node.worker.to_string(),
                format!("node-{}", node.node),
                node.questions.to_string(),
                node.bytes.to_string(),
                node.bytes_per_s.map_or_else(unknown, |rate| format!("{:.2} Gbit/s", rate / 125e6)),
                node.round_trip_us.map_or_else(unknown, |us| format!("{us:.0} us")),
            ]),
            ProbeAnswer::Silent => _ = silent.insert((line.node, node.node)),
            ProbeAnswer::Empty => _ = empty.insert((line.node, node.node)),
        }
    }
    let mut text = table.render();
    for (by, node) in silent {
        text.push_str(&format!("\nnode-{node} did not answer node-{by}\n"));
    }
    for (by, node) in empty {
        text.push_str(&format!(
            "\nnode-{node} has no chunks of long values that a worker of node-{by} could fetch\n"
        ));
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
            probe: server::LinkProbe::default(),
        }
    }

    fn measured(node: u16, gbit: f64) -> ProbedNode {
        ProbedNode {
            node,
            worker: 0,
            answer: ProbeAnswer::Answered,
            questions: 9,
            bytes: 1 << 20,
            bytes_per_s: Some(gbit * 125e6),
            round_trip_us: Some(200.0),
        }
    }

    #[test]
    fn what_was_measured_goes_before_what_was_seen_and_one_slow_link_is_one() {
        let mut reports = [report(0, &[(1, 9.0)]), report(1, &[]), report(2, &[])];
        let silent = ProbedNode { answer: ProbeAnswer::Silent, bytes_per_s: None, ..measured(3, 1.0) };
        reports[0].probe.nodes = vec![measured(1, 10.0), measured(2, 10.0), silent];
        reports[1].probe.nodes = vec![measured(0, 10.0), measured(2, 1.0)];
        reports[2].probe.nodes = vec![measured(0, 10.0), measured(1, 10.0)];
        let links = links_of(&reports);
        assert!(links.is_sound() && links.nodes.is_empty(), "{links:?}");
        assert_eq!((links.others.up_bytes_per_s, links.others.latency_us), (1.25e9, 50.0));
        let pairs: Vec<_> = links.pairs.iter().map(|pair| (pair.from, pair.to, pair.bytes_per_s)).collect();
        assert_eq!(pairs, [(2, 1, 1.25e8)]);
        let nodes = reports.into_iter().map(line).collect();
        let text = text(&Report { nodes, silent: vec![3], links });
        for said in ["node-3 did not answer node-0", "from node-2 to node-1 it takes 10.0", "200 us"] {
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn of_what_several_workers_have_measured_the_fastest_is_what_the_link_bears() {
        let mut reports = [report(0, &[]), report(1, &[]), report(2, &[])];
        let by = |worker, node, gbit| ProbedNode { worker, ..measured(node, gbit) };
        reports[0].probe.nodes = vec![by(0, 1, 10.0), by(0, 2, 10.0), by(1, 1, 10.0), by(1, 2, 9.0)];
        reports[1].probe.nodes = vec![by(0, 0, 10.0), by(0, 2, 1.0), by(1, 0, 10.0), by(1, 2, 2.0)];
        reports[2].probe.nodes = vec![by(0, 0, 10.0), by(0, 1, 1.0), by(1, 0, 10.0), by(1, 1, 10.0)];
        let links = links_of(&reports);
        let pairs: Vec<_> = links.pairs.iter().map(|pair| (pair.from, pair.to, pair.bytes_per_s)).collect();
        assert_eq!(pairs, [(2, 1, 2.5e8)], "the other one is slow for one worker alone");
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
