//! Chunks that are made again by coding graphs: by each scheme, over lists of them, and where one of a list cannot be made.

use graph::{Execution, Scheme};
use proto::{GraphSettings, GraphStats, Limits, Rules};
use types::NodeId;
use wire::graph::GraphMessage;
use wire::message::PeerMessage;
use wire::object::{Checked, ObjectMessage};

use super::objects::noise;
use super::{Cluster, Setup};

/// What happens to slices on their way.
#[derive(Default)]
pub(super) struct Wires {
    /// One slice of so many; none if 0.
    every: u32,
    seen: u32,
    harm: Harm,
    /// Cells that were sent.
    pub(super) cells: u32,
    /// Graphs that were sent to somebody, if they are to be kept.
    started: Option<Vec<wire::graph::Start>>,
    /// What arrives of a product for a parity; the numbers of them are counted.
    pub(super) products: Option<fn(u32, &wire::object::Product) -> Vec<wire::object::Product>>,
    pub(super) products_seen: u32,
    /// What nodes tell each other of slow links never arrives.
    hides_slow_links: bool,
}

#[derive(Clone, Copy, Default)]
pub(super) enum Harm {
    /// It arrives twice.
    #[default]
    Repeated,
    /// A bit of it is another one.
    Damaged,
    /// It never arrives.
    Lost,
}

impl Wires {
    pub(super) fn doing(harm: Harm, every: u32) -> Self {
        Self { every, harm, ..Self::default() }
    }

    /// What arrives of a product, where something happens to these.
    fn products_arriving(&mut self, message: &PeerMessage) -> Option<Vec<PeerMessage>> {
        let (PeerMessage::Object(object), Some(arriving)) = (message, self.products) else { return None };
        let ObjectMessage::Product(product) = &**object else { return None };
        self.products_seen += 1;
        let arriving = arriving(self.products_seen, product).into_iter();
        Some(arriving.map(|product| ObjectMessage::Product(product).into()).collect())
    }

    /// Carries a message: what arrives.
    pub(super) fn carry(&mut self, mut message: PeerMessage) -> Vec<PeerMessage> {
        if self.hides_slow_links && is_of_slow_links(&message) {
            return Vec::new();
        }
        if let PeerMessage::Object(object) = &message {
            self.cells += u32::from(matches!(**object, ObjectMessage::Cell(_)));
        }
        if let Some(arriving) = self.products_arriving(&message) {
            return arriving;
        }
        let PeerMessage::Graph(graph) = &mut message else { return vec![message] };
        if let (GraphMessage::Start(start), Some(started)) = (&**graph, &mut self.started) {
            started.push((**start).clone());
        }
        let GraphMessage::Slice(slice) = &mut **graph else { return vec![message] };
        self.seen += 1;
        if self.every == 0 || !self.seen.is_multiple_of(self.every) {
            return vec![message];
        }
        match self.harm {
            Harm::Repeated => vec![message.clone(), message],
            Harm::Lost => Vec::new(),
            Harm::Damaged => {
                let mut bytes = slice.slice.bytes.to_vec();
                bytes[0] ^= 1;
                slice.slice = Checked::said(bytes.into(), slice.slice.checksum);
                vec![message]
            }
        }
    }
}

fn by(scheme: Scheme) -> GraphSettings {
    GraphSettings { repair: Some(scheme), ..GraphSettings::default() }
}

impl Cluster {
    fn graph_stats(&self) -> GraphStats {
        let all = self.hosts.values().map(proto::Host::graph_stats);
        all.fold(GraphStats::default(), |sum, one| sum.plus(&one))
    }

    fn is_filled(&self) -> bool {
        let map = self.coordinator.map().unwrap();
        let roles = map.groups.iter().filter(|view| view.takes_chunks()).flat_map(|view| &view.holders);
        roles.into_iter().all(|holders| holders.whole.is_some() && holders.filling.is_none())
    }

    /// Values of many lengths, some of several stripes.
    fn put_values(&mut self) -> Vec<(String, Vec<u8>)> {
        let lens = [1_500_000, 2_000_000, 900_000, 300_000, 450_000, 700_000];
        let values = lens.iter().enumerate();
        let values: Vec<_> =
            values.map(|(at, len)| (format!("key-{at}"), noise(at as u64, *len as usize))).collect();
        for (key, value) in &values {
            self.put(0, key, value).unwrap();
        }
        self.advance(100);
        values
    }

    /// Everybody reads everything a few times while cells of one node come late.
    fn read_slowly(&mut self, slow: NodeId, values: &[(String, Vec<u8>)]) {
        let nodes: Vec<u16> = self.hosts.keys().map(|node| node.0).collect();
        self.slow = Some(slow);
        for _ in 0..6 {
            for (node, (key, _)) in
                nodes.iter().flat_map(|node| values.iter().map(move |value| (node, value)))
            {
                assert!(self.read(*node, key).is_ok());
            }
        }
        self.slow = None;
    }

    fn has_values(&mut self, values: &[(String, Vec<u8>)]) {
        let node = self.hosts.keys().next().unwrap().0;
        for (key, value) in values {
            assert!(self.read(node, key).unwrap() == *value, "{key}");
        }
    }
}

/// A node dies, and what it had is made again: all of it by graphs, and right.
fn lost_chunks_are_made(profile: &str, nodes: u16, graphs: GraphSettings) -> GraphStats {
    let mut cluster = Cluster::with_graphs(nodes, profile, graphs);
    let values = cluster.put_values();
    let all = cluster.chunk_count();
    cluster.kill(1);
    cluster.advance(6_000);
    assert!(cluster.is_filled());
    assert_eq!(cluster.chunk_count(), all, "as many as before");
    cluster.has_values(&values);
    // What was made is what others are made of now.
    cluster.kill(2);
    cluster.advance(3_500);
    cluster.has_values(&values);
    let stats = cluster.graph_stats();
    assert_eq!((stats.load.runs, stats.load.reserved_bytes, stats.load.held_bytes), (0, 0, 0));
    stats
}

fn made_by(stats: &GraphStats, scheme: Scheme) -> u64 {
    stats.orders[scheme as usize].made
}

#[test]
fn each_scheme_makes_what_a_lost_node_had() {
    for scheme in [Scheme::Star, Scheme::Lrc, Scheme::Ppr, Scheme::Chain, Scheme::Tri] {
        for execution in [Execution::Coherent, Execution::Incoherent] {
            let graphs = GraphSettings { execution, ..by(scheme) };
            let stats = lost_chunks_are_made("rs(3+2)", 7, graphs);
            assert!(made_by(&stats, scheme) > 0, "{scheme} {execution:?}: {stats:?}");
            let failed: u64 = stats.orders.iter().map(|orders| orders.failed).sum();
            assert_eq!(failed, 0, "{scheme} {execution:?}");
        }
    }
}

#[test]
fn a_local_code_makes_them_of_its_local_group() {
    let stats = lost_chunks_are_made("lrc(4,2,1)", 9, by(Scheme::Chain));
    assert!(made_by(&stats, Scheme::Chain) > 0, "{stats:?}");
}

#[test]
fn the_model_chooses_where_nobody_else_does() {
    let stats = lost_chunks_are_made("rs(3+2)", 7, by(Scheme::Auto));
    let made: u64 = stats.orders.iter().map(|orders| orders.made).sum();
    assert!(made > 0 && made_by(&stats, Scheme::Auto) == 0, "{stats:?}");
}

#[test]
fn a_helper_that_dies_is_planned_around() {
    let mut cluster = Cluster::with_graphs(8, "rs(3+2)", by(Scheme::Chain));
    let values = cluster.put_values();
    let all = cluster.chunk_count();
    cluster.kill(1);
    // The next one goes as soon as something is asked for.
    for _ in 0..400 {
        cluster.advance(10);
        if cluster.graph_stats().steps.primitives.iter().any(|steps| steps.started > 0) {
            break;
        }
    }
    cluster.kill(3);
    cluster.advance(12_000);
    assert!(cluster.is_filled());
    assert_eq!(cluster.chunk_count(), all, "as many as before");
    cluster.has_values(&values);
    assert_eq!(cluster.graph_stats().load.runs, 0);
    assert!(!cluster.hosts.contains_key(&NodeId(3)));
}

/// Steps that a slow node has taken part with while others made what was lost; it was read from before, or was not.
fn steps_of_a_slow_node(is_known: bool) -> u64 {
    let mut cluster = Cluster::with_graphs(7, "rs(3+2)", by(Scheme::Auto));
    let values = cluster.put_values();
    if is_known {
        cluster.read_slowly(NodeId(4), &values);
    }
    cluster.kill(1);
    cluster.advance(6_000);
    assert!(cluster.is_filled());
    cluster.has_values(&values);
    let stats = cluster.hosts[&NodeId(4)].graph_stats();
    // What it makes for itself it has to.
    stats.steps.of(graph::Primitive::EcSend).started + stats.steps.of(graph::Primitive::RecvEcSend).started
}

#[test]
fn a_node_that_is_known_to_be_slow_is_not_asked_while_others_have_what_is_needed() {
    assert!(steps_of_a_slow_node(false) > 0);
    assert_eq!(steps_of_a_slow_node(true), 0);
}

/// Of graphs that make what a node has lost, those in which one with a slow link takes part, and all of them. Nobody knows of it before.
fn graphs_of_a_slow_node(rules: Rules, scheme: Scheme) -> (usize, usize) {
    // One graph makes one chunk.
    let limits = Limits::default();
    let limits = Limits { graph_bytes: limits.graph_reader_bytes + (2 << 20), ..limits };
    let mut cluster =
        Cluster::of(7, "rs(3+2)", &Setup { limits, graphs: by(scheme), rules, ..Setup::default() });
    let values: Vec<_> = (0..240).map(|at| (format!("key-{at}"), noise(at, 600_000))).collect();
    for (key, value) in &values {
        cluster.put(0, key, value).unwrap();
    }
    cluster.advance(100);
    (cluster.slow, cluster.slow_slices) = (Some(NodeId(4)), true);
    cluster.wires.started = Some(Vec::new());
    cluster.kill(1);
    cluster.advance(20_000);
    assert!(cluster.is_filled());
    (cluster.slow, cluster.slow_slices) = (None, false);
    cluster.has_values(&values);
    let started = cluster.wires.started.take().unwrap();
    // A graph is sent to each that takes part.
    let runs = |starts: &mut dyn Iterator<Item = &wire::graph::Start>| {
        starts
            .map(|start| (start.run.asker, start.run.number))
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    let helps = |start: &&wire::graph::Start| start.steps.iter().any(|step| step.at == Some(NodeId(4)));
    let all = runs(&mut started.iter());
    (runs(&mut started.iter().filter(helps)), all)
}

#[test]
fn a_link_that_becomes_slow_is_found_while_a_node_is_filled() {
    for scheme in [Scheme::Chain, Scheme::Auto] {
        let (slow, all) = graphs_of_a_slow_node(Rules::all(), scheme);
        assert!(0 < slow && slow * 5 < all, "{scheme}: {slow} of {all}");
    }
}

/// Of what is made in [`sent_by_a_slow_node`] each node that is asked sends more.
const MUCH_BYTES: usize = 400_000;

/// Bytes that a node sends for what is made of cells; its link was found to be slow before.
fn sent_by_a_slow_node(rules: Rules) -> usize {
    let mut cluster = Cluster::of(7, "rs(3+2)", &Setup { rules, ..Setup::default() });
    let values = cluster.put_values();
    cluster.read_slowly(NodeId(4), &values);
    cluster.metered = Some((NodeId(4), 0));
    cluster.kill(1);
    cluster.advance(6_000);
    assert!(cluster.is_filled());
    let (_, sent) = cluster.metered.take().unwrap();
    cluster.has_values(&values);
    sent
}

#[test]
fn cells_are_fetched_of_others_than_a_node_that_is_known_to_be_slow() {
    let sent = sent_by_a_slow_node(Rules::all());
    assert!(sent < MUCH_BYTES / 5, "{sent}");
}

/// Graphs in which a node helps, and those of them in which it sends to the asker itself.
fn graphs_of(started: &[wire::graph::Start], node: NodeId) -> (usize, usize) {
    let at = |start: &wire::graph::Start, step: u32| start.steps[step as usize].at;
    let sends = |start: &wire::graph::Start, to: Option<Option<NodeId>>| {
        let edges = start.edges.iter();
        edges
            .into_iter()
            .any(|edge| at(start, edge.from) == Some(node) && to.is_none_or(|to| at(start, edge.to) == to))
    };
    let helped = started.iter().filter(|start| sends(start, None));
    (helped.clone().count(), helped.filter(|start| sends(start, Some(None))).count())
}

/// Two nodes die, so that each of the others has to help; a third one's links were slow before, or were not, and who asks knows of its own.
fn helps_over_a_slow_link(is_known: bool) -> (usize, usize) {
    let mut cluster = Cluster::with_graphs(6, "rs(3+2)", by(Scheme::Chain));
    // Who knows that all of its links are slow has no way round.
    cluster.wires.hides_slow_links = true;
    let values = cluster.put_values();
    if is_known {
        cluster.read_slowly(NodeId(4), &values);
    }
    cluster.wires.started = Some(Vec::new());
    cluster.kill(1);
    cluster.kill(2);
    cluster.advance(9_000);
    cluster.has_values(&values);
    graphs_of(&cluster.wires.started.take().unwrap(), NodeId(4))
}

#[test]
fn whose_link_is_known_to_be_slow_helps_by_way_of_others() {
    let (helped, sent) = helps_over_a_slow_link(false);
    assert!(helped > 0 && sent > 0, "{helped} {sent}");
    let (helped, sent) = helps_over_a_slow_link(true);
    assert!(helped > 0 && sent == 0, "{helped} {sent}");
}

fn is_of_slow_links(message: &PeerMessage) -> bool {
    matches!(message, PeerMessage::Graph(message) if matches!(**message, GraphMessage::SlowLinks(_)))
}

/// Two nodes die, so that each of the others has to help; the link from node 4 to node 5 is slow, and node 5 alone has measured that. It
/// tells the others, or is not heard. How many of the others' graphs have something sent over that link, and who knew of it.
fn sent_over_a_link_that_others_measured(is_heard: bool) -> (usize, Vec<u16>) {
    let mut cluster = Cluster::with_graphs(6, "rs(3+2)", by(Scheme::Chain));
    let values = cluster.put_values();
    cluster.slow_to = Some(NodeId(5));
    cluster.wires.hides_slow_links = !is_heard;
    cluster.read_slowly(NodeId(4), &values);
    cluster.advance(3_000);
    let knows = |host: &proto::Host| {
        let links = proto::graph_links(host, cluster.now.time);
        links.pairs.iter().any(|pair| (pair.from, pair.to) == (4, 5))
    };
    let know = cluster.hosts.iter().filter(|(_, host)| knows(host)).map(|(node, _)| node.0).collect();
    cluster.wires.started = Some(Vec::new());
    cluster.kill(1);
    cluster.kill(2);
    cluster.advance(9_000);
    cluster.has_values(&values);
    let goes = |start: &wire::graph::Start| {
        let at = |step: u32| start.steps[step as usize].at.map(|node| node.0);
        start.edges.iter().any(|edge| (at(edge.from), at(edge.to)) == (Some(4), Some(5)))
    };
    let started = cluster.wires.started.take().unwrap();
    (started.iter().filter(|start| goes(start)).count(), know)
}

#[test]
fn graphs_go_round_a_slow_link_between_two_others_that_these_have_told_of() {
    let (sent, know) = sent_over_a_link_that_others_measured(false);
    assert!(sent > 0 && know == [5], "{sent} {know:?}");
    let (sent, know) = sent_over_a_link_that_others_measured(true);
    assert!(sent == 0 && know == [0, 1, 2, 3, 4, 5], "{sent} {know:?}");
}

/// Which links a node takes for slow.
fn slow_links_of(cluster: &Cluster, node: u16) -> Vec<(u16, u16)> {
    let links = proto::graph_links(&cluster.hosts[&NodeId(node)], cluster.now.time);
    links.pairs.iter().map(|pair| (pair.from, pair.to)).collect()
}

#[test]
fn what_is_heard_of_links_is_renewed_and_is_forgotten_when_it_is_not() {
    let mut cluster = Cluster::with_graphs(6, "rs(3+2)", by(Scheme::Chain));
    let values = cluster.put_values();
    cluster.slow_to = Some(NodeId(5));
    cluster.read_slowly(NodeId(4), &values);
    cluster.advance(150_000);
    assert_eq!(slow_links_of(&cluster, 0), [(4, 5)], "it is renewed");
    // The link is as good as others now.
    for _ in 0..40 {
        cluster.has_values(&values);
        (0..values.len()).for_each(|at| _ = cluster.read(5, &values[at].0).unwrap());
    }
    cluster.advance(3_000);
    assert_eq!(slow_links_of(&cluster, 0), [], "it is taken back");
    cluster.read_slowly(NodeId(4), &values);
    cluster.advance(3_000);
    assert_eq!(slow_links_of(&cluster, 0), [(4, 5)]);
    cluster.wires.hides_slow_links = true;
    cluster.advance(70_000);
    assert_eq!(slow_links_of(&cluster, 0), [], "nobody has said so for long");
}

#[test]
fn what_is_taken_back_is_told_though_a_link_has_come_up_just_then() {
    let mut cluster = Cluster::with_graphs(6, "rs(3+2)", by(Scheme::Chain));
    let values = cluster.put_values();
    cluster.slow_to = Some(NodeId(5));
    cluster.read_slowly(NodeId(4), &values);
    cluster.advance(3_000);
    assert_eq!(slow_links_of(&cluster, 0), [(4, 5)]);
    let relink = |cluster: &mut Cluster, other: u16| {
        let (now, other) = (cluster.now, super::host_id(other));
        let host = cluster.hosts.get_mut(&NodeId(5)).unwrap();
        host.link_down(now, other);
        host.link_up(now, other);
    };
    relink(&mut cluster, 1);
    // Before anybody looks whether there is something to say the link is well.
    for _ in 0..40 {
        (0..values.len()).for_each(|at| _ = cluster.read(5, &values[at].0).unwrap());
    }
    cluster.advance(3_000);
    assert_eq!(slow_links_of(&cluster, 0), []);
    // Who was away has missed that.
    cluster.wires.hides_slow_links = true;
    cluster.read_slowly(NodeId(4), &values);
    cluster.advance(3_000);
    cluster.wires.hides_slow_links = false;
    relink(&mut cluster, 0);
    cluster.advance(3_000);
    assert_eq!(slow_links_of(&cluster, 0), [(4, 5)]);
}

/// Most bytes of a list of several chunks that graphs have made, while clients ask for something all the time, or do not.
fn made_at_once(has_clients: bool) -> u64 {
    let mut cluster = Cluster::with_graphs(7, "rs(3+2)", by(Scheme::Chain));
    let values = cluster.put_values();
    cluster.set(0, "small", b"value");
    let all = cluster.chunk_count();
    cluster.wires.started = Some(Vec::new());
    cluster.kill(1);
    let mut most_asked = 0;
    for _ in 0..3_000 {
        cluster.advance(10);
        for node in cluster.hosts.keys().copied().filter(|_| has_clients).collect::<Vec<_>>() {
            cluster.begin(node.0, super::get("small"));
        }
        let stats = cluster.hosts.values().map(|host| host.stats().objects);
        let asked = stats.map(|stats| stats.fill_asked_bytes.saturating_sub(stats.fill_window_bytes));
        most_asked = asked.max().unwrap().max(most_asked);
        if cluster.is_filled() && cluster.chunk_count() == all {
            break;
        }
    }
    assert!(cluster.is_filled() && cluster.chunk_count() == all, "however busy clients are");
    cluster.has_values(&values);
    let started = cluster.wires.started.take().unwrap();
    assert!(!started.is_empty() && most_asked <= 512 << 10, "{most_asked}");
    let bytes = |start: &wire::graph::Start| start.strand.iter().map(|part| u64::from(part.len)).sum::<u64>();
    started.iter().filter(|start| start.strand.len() > 1).map(bytes).max().unwrap_or(0)
}

#[test]
fn fills_by_graphs_make_little_at_once_while_clients_are_at_work() {
    let (alone, busy) = (made_at_once(false), made_at_once(true));
    assert!(alone > 256 << 10 && busy <= 128 << 10, "{alone} {busy}");
}

/// What is done to a cluster before a node dies.
type Hurt = fn(&mut Cluster);

/// Chunks of a lost node are made over bad wires, or of a rotten one: all is right in the end. Runs that made something wrong.
fn spoilt(rules: Rules, scheme: Scheme, hurt: Hurt) -> u64 {
    let setup = Setup { graphs: by(scheme), rules, ..Setup::default() };
    let mut cluster = Cluster::of(7, "rs(3+2)", &setup);
    let values = cluster.put_values();
    let all = cluster.chunk_count();
    hurt(&mut cluster);
    cluster.kill(1);
    cluster.advance(8_000);
    assert!(cluster.is_filled());
    assert_eq!(cluster.chunk_count(), all, "as many as before");
    cluster.has_values(&values);
    cluster.graph_stats().spoilt
}

fn repeat_slices(cluster: &mut Cluster) {
    cluster.wires = Wires::doing(Harm::Repeated, 7);
}

fn damage_slices(cluster: &mut Cluster) {
    cluster.wires = Wires::doing(Harm::Damaged, 7);
}

#[test]
fn slices_that_come_twice_or_damaged_are_not_added() {
    for hurt in [repeat_slices, damage_slices] {
        assert_eq!(spoilt(Rules::all(), Scheme::Chain, hurt), 0);
    }
}

/// A helper in the middle of a chain along which nothing comes: all others are gone with the asker, or say nothing any more.
fn waiting_helper(rules: Rules) -> (Cluster, NodeId) {
    let setup = Setup { graphs: by(Scheme::Chain), rules, ..Setup::default() };
    let mut cluster = Cluster::of(7, "rs(3+2)", &setup);
    cluster.put_values();
    cluster.wires = Wires::doing(Harm::Lost, 1);
    cluster.kill(1);
    let is_waiting = |host: &proto::Host| {
        let stats = host.graph_stats();
        stats.load.runs > 0 && stats.steps.of(graph::Primitive::RecvEcSend).started > 0
    };
    for _ in 0..400 {
        cluster.advance(10);
        if let Some((node, _)) = cluster.hosts.iter().find(|(_, host)| is_waiting(host)) {
            let node = *node;
            cluster.hosts.retain(|known, _| *known == node);
            return (cluster, node);
        }
    }
    panic!("nobody waits");
}

/// The links to all others go down. No run of theirs is left: that is an invariant of hosts.
fn all_askers_go(rules: Rules) {
    let (mut cluster, node) = waiting_helper(rules);
    let now = cluster.now;
    let host = cluster.hosts.get_mut(&node).unwrap();
    (0..7).filter(|peer| NodeId(*peer) != node).for_each(|peer| host.link_down(now, super::host_id(peer)));
}

/// Whether a run goes on that should have ended, where all others say nothing and their links are there.
fn goes_on_after_its_deadline(rules: Rules) -> bool {
    let (mut cluster, node) = waiting_helper(rules);
    cluster.advance(proto::Timing::default().object_deadline_us / 1_000 + 100);
    let first = cluster.hosts[&node].graph_stats().first_deadline;
    first.is_some_and(|deadline| deadline < cluster.now.time)
}

#[test]
fn a_run_ends_with_its_asker_and_by_its_deadline() {
    all_askers_go(Rules::all());
    assert!(!goes_on_after_its_deadline(Rules::all()));
}

#[cfg(feature = "planted-bugs")]
mod without_a_rule {
    use proto::Bug;
    use types::{MemberId, RoleIndex};

    use super::*;

    /// One chunk of each node but the one that is about to die is not what it was.
    fn rot(cluster: &mut Cluster) {
        for (node, host) in cluster.hosts.iter_mut().filter(|(node, _)| node.0 != 1) {
            let chunks = host.chunks().flat_map(|(member, chunks)| {
                chunks.list_after(None, usize::MAX).map(move |(id, _)| (member, id)).collect::<Vec<_>>()
            });
            let chunk: Vec<(MemberId, types::ChunkId)> = chunks.collect();
            let (member, id) = chunk[usize::from(node.0) % chunk.len()];
            assert!(member.role < RoleIndex(5) && proto::damage_chunk(host, member, id, 17, 4));
        }
    }

    #[test]
    fn a_slow_link_is_waited_for() {
        let (slow, all) = graphs_of_a_slow_node(Rules::without(Bug::SlowLinksWaitedFor), Scheme::Chain);
        assert!(slow * 3 > all, "{slow} of {all}");
        let sent = sent_by_a_slow_node(Rules::without(Bug::SlowLinksWaitedFor));
        assert!(sent > MUCH_BYTES, "{sent}");
    }

    #[test]
    fn a_rotten_chunk_is_not_read() {
        assert_eq!(spoilt(Rules::all(), Scheme::Chain, rot), 0);
    }

    #[test]
    fn a_run_goes_on_without_its_asker_or_beyond_its_deadline() {
        let story = || all_askers_go(Rules::without(Bug::GraphOutlivesAsker));
        assert!(std::panic::catch_unwind(story).is_err());
        assert!(goes_on_after_its_deadline(Rules::without(Bug::GraphOutlivesDeadline)));
    }

    #[test]
    fn wrong_bytes_are_made_and_found_out_by_their_checksum_alone() {
        let harms: [(Bug, Hurt); 3] = [
            (Bug::GraphSliceTwice, repeat_slices),
            (Bug::GraphSliceUnchecked, damage_slices),
            (Bug::RottenSourceRead, rot),
        ];
        for (bug, hurt) in harms {
            assert!(spoilt(Rules::without(bug), Scheme::Chain, hurt) > 0, "{bug:?}");
        }
    }
}
