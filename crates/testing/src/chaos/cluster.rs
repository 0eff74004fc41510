//! The processes of a cluster in their namespaces, and what can be done to them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::ClusterMap;
use nix::sys::signal::Signal;

use crate::local_cluster::binary;

use super::network::{COORDINATOR, Network, node_address, proxy_address};
use super::options::Options;
use super::process::Process;
use super::proxy::{Effect, Proxy};
use super::rules::{COORDINATOR_PORT, PEER_PORT, Rule};
use super::schedule::{Fault, From};

const MEMCACHED_PORT: u16 = 11211;
const HTTP_PORT: u16 = 9180;
/// Port of a proxy for node `i` is this plus `i`; for the coordinator it is this.
const PROXY_PORT: u16 = 20_000;
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Longest wait for a page of a process that may be stopped.
const PAGE_LIMIT: Duration = Duration::from_millis(400);

/// A process that has ended although nobody wanted it.
pub struct End {
    /// Which node, none for the coordinator.
    pub node: Option<u16>,
    /// What happened.
    pub text: String,
}

/// Who coordinates. The one place that knows how nodes are told: another coordinator is another variant.
enum Coordination {
    /// `gestalt coordinator` in a namespace of its own. It keeps the map in memory only, so it is never killed.
    Embedded(Process),
}

impl Coordination {
    fn start(options: &Options, network: &Network, program: &Path, dir: &Path) -> Result<Self, String> {
        let mut process = Process::new("coordinator".to_owned(), dir);
        let args = [
            "coordinator".to_owned(),
            format!("--listen={COORDINATOR}:{COORDINATOR_PORT}"),
            format!("--http={COORDINATOR}:{HTTP_PORT}"),
            format!("--nodes={}", options.nodes),
            format!("--profile={}", options.profile),
            "--workers=1".to_owned(),
            lease(options),
        ];
        process.start(&network.coordinator, program, &args)?;
        Ok(Self::Embedded(process))
    }

    /// What nodes are given as `--coordinator`.
    fn url(&self) -> String {
        match self {
            Self::Embedded(_) => format!("embedded://{COORDINATOR}:{COORDINATOR_PORT}"),
        }
    }

    fn process(&mut self) -> &mut Process {
        match self {
            Self::Embedded(process) => process,
        }
    }
}

fn lease(options: &Options) -> String {
    format!("--lease={}us", options.lease.as_micros())
}

/// A running cluster and what hurts it.
pub struct Cluster {
    options: Options,
    program: PathBuf,
    coordination: Coordination,
    nodes: Vec<Process>,
    network: Network,
    /// What each node's namespace drops, by the action that wants it.
    rules: BTreeMap<(usize, u16), Vec<Rule>>,
    proxies: BTreeMap<usize, Proxy>,
    /// Bits that proxies have flipped.
    flipped: Arc<AtomicU64>,
}

impl Cluster {
    /// Starts one and waits until it is ready.
    ///
    /// # Errors
    /// One line.
    pub fn start(options: &Options, dir: &Path) -> Result<Self, String> {
        let program = binary()?;
        let network = Network::build(options.nodes)?;
        let coordination = Coordination::start(options, &network, &program, dir)?;
        let nodes = (0..options.nodes).map(|node| Process::new(format!("node {node}"), dir)).collect();
        let mut cluster = Self {
            options: options.clone(),
            program,
            coordination,
            nodes,
            network,
            rules: BTreeMap::new(),
            proxies: BTreeMap::new(),
            flipped: Arc::default(),
        };
        for node in 0..options.nodes {
            cluster.start_node(node)?;
        }
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    fn start_node(&mut self, node: u16) -> Result<(), String> {
        let address = node_address(node);
        let options = &self.options;
        let args = [
            "serve".to_owned(),
            format!("--node={node}"),
            format!("--coordinator={}", self.coordination.url()),
            format!("--memcached={address}:{MEMCACHED_PORT}"),
            format!("--peer={address}:{PEER_PORT}"),
            format!("--http={address}:{HTTP_PORT}"),
            format!("--memory={}", options.memory),
            "--workers=1".to_owned(),
            "--evict=none".to_owned(),
            lease(options),
        ];
        let namespace = &self.network.nodes[usize::from(node)];
        self.nodes[usize::from(node)].start(namespace, &self.program, &args)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + READY_LIMIT;
        let mut waiting: Vec<u16> = (0..self.options.nodes).collect();
        while let Some(&node) = waiting.last() {
            if let Some(end) = self.unexpected_ends().pop() {
                return Err(format!("{}: {}", end.text, self.last_words(end.node)));
            }
            if Instant::now() > deadline {
                return Err(format!("node {node} is not ready after {READY_LIMIT:?}"));
            }
            match self.page(node_address(node), "/readyz") {
                Some(_) => drop(waiting.pop()),
                None => sleep(Duration::from_millis(20)),
            }
        }
        Ok(())
    }

    fn last_words(&mut self, node: Option<u16>) -> String {
        match node {
            Some(node) => self.nodes[usize::from(node)].last_line(),
            None => self.coordination.process().last_line(),
        }
    }

    /// Where clients connect.
    pub fn memcached(&self) -> Vec<SocketAddr> {
        (0..self.options.nodes).map(|node| (node_address(node), MEMCACHED_PORT).into()).collect()
    }

    /// The nodes' processes that run.
    pub fn pids(&self) -> Vec<(u16, u32)> {
        (0..).zip(&self.nodes).filter_map(|(node, process)| Some((node, process.pid()?))).collect()
    }

    /// Does `work` where the clients are.
    pub fn in_hub<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.network.hub.run(work)
    }

    fn page(&self, address: Ipv4Addr, path: &'static str) -> Option<String> {
        self.in_hub(move || fetch(address, path))
    }

    /// The newest map: the coordinator's, or what the nodes know while it is away.
    pub fn map(&self) -> Option<ClusterMap> {
        let parse = |text: String| serde_json::from_str::<ClusterMap>(&text).ok();
        if let Some(map) = self.page(COORDINATOR, "/map").and_then(parse) {
            return Some(map);
        }
        let known = (0..self.options.nodes).filter_map(|node| self.page(node_address(node), "/map"));
        let known: Vec<ClusterMap> = known.filter_map(parse).collect();
        let mut newest = known.iter().max_by_key(|map| map.version)?.clone();
        for view in known.into_iter().flat_map(|map| map.groups) {
            newest.adopt(view);
        }
        Some(newest)
    }

    /// The processes that have ended although nobody wanted it.
    pub fn unexpected_ends(&mut self) -> Vec<End> {
        let coordinator = (None, self.coordination.process());
        let nodes = (0..).map(Some).zip(&mut self.nodes);
        let ended = |(node, process): (Option<u16>, &mut Process)| {
            let status = process.unexpected_end()?;
            Some(End { node, text: format!("{} has ended by itself: {status}", process.name()) })
        };
        nodes.chain([coordinator]).filter_map(ended).collect()
    }

    /// Lines of all logs that tell of a panic.
    pub fn panics(&mut self) -> Vec<String> {
        let coordinator = self.coordination.process().panics();
        self.nodes.iter().flat_map(Process::panics).chain(coordinator).collect()
    }

    /// Bits that have been flipped on the way.
    pub fn flipped(&self) -> u64 {
        self.flipped.load(Ordering::Relaxed)
    }

    /// Begins what action `number` does.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn begin(&mut self, number: usize, fault: &Fault) -> Result<(), String> {
        match fault {
            Fault::Kill(nodes) => {
                nodes.iter().for_each(|node| self.nodes[usize::from(*node)].kill());
                nodes.iter().for_each(|node| self.nodes[usize::from(*node)].reap());
            }
            Fault::Pause(nodes) => self.signal(nodes, Signal::SIGSTOP),
            Fault::PauseCoordinator => self.coordination.process().signal(Signal::SIGSTOP),
            Fault::CutCoordinator => self.cut_coordinator(true)?,
            Fault::Delay(node, by) => {
                self.interpose(number, *node, Effect { delay: *by, flip_every: 0 })?;
            }
            Fault::Corrupt(node, every) => {
                self.interpose(number, *node, Effect { delay: Duration::ZERO, flip_every: *every })?;
            }
            Fault::Fill => (),
            _ => self.add_rules(number, packet_rules(fault, self.options.nodes))?,
        }
        Ok(())
    }

    /// Ends what action `number` did.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn end(&mut self, number: usize, fault: &Fault) -> Result<(), String> {
        match fault {
            Fault::Kill(nodes) => nodes.iter().try_for_each(|node| self.start_node(*node))?,
            Fault::Pause(nodes) => self.signal(nodes, Signal::SIGCONT),
            Fault::PauseCoordinator => self.coordination.process().signal(Signal::SIGCONT),
            Fault::CutCoordinator => self.cut_coordinator(false)?,
            _ => {
                self.remove_rules(number)?;
                self.proxies.remove(&number);
            }
        }
        Ok(())
    }

    fn signal(&self, nodes: &[u16], signal: Signal) {
        nodes.iter().for_each(|node| self.nodes[usize::from(*node)].signal(signal));
    }

    fn cut_coordinator(&self, cut: bool) -> Result<(), String> {
        let all = addresses(0..self.options.nodes);
        let rules = [Rule::DropFrom(all.clone()), Rule::DropTo(all)];
        self.network.coordinator.apply(if cut { &rules } else { &[] })
    }

    fn add_rules(&mut self, number: usize, rules: BTreeMap<u16, Vec<Rule>>) -> Result<(), String> {
        let nodes: Vec<u16> = rules.keys().copied().collect();
        self.rules.extend(rules.into_iter().map(|(node, rules)| ((number, node), rules)));
        nodes.into_iter().try_for_each(|node| self.apply(node))
    }

    fn remove_rules(&mut self, number: usize) -> Result<(), String> {
        let nodes: Vec<u16> =
            self.rules.keys().filter(|(of, _)| *of == number).map(|(_, node)| *node).collect();
        self.rules.retain(|(of, _), _| *of != number);
        nodes.into_iter().try_for_each(|node| self.apply(node))
    }

    fn apply(&self, node: u16) -> Result<(), String> {
        let of_node = self.rules.iter().filter(|((_, of), _)| *of == node);
        let rules: Vec<Rule> = of_node.flat_map(|(_, rules)| rules.clone()).collect();
        self.network.nodes[usize::from(node)].apply(&rules)
    }

    /// Puts a proxy into all links of `node`. A node dials those with higher numbers and the coordinator.
    fn interpose(&mut self, number: usize, node: u16, effect: Effect) -> Result<(), String> {
        let via = proxy_address(node);
        let redirect = |target: u16| Rule::Redirect {
            from: (node_address(target), PEER_PORT),
            to: (via, PROXY_PORT + 1 + target),
        };
        let coordinator = Rule::Redirect { from: (COORDINATOR, COORDINATOR_PORT), to: (via, PROXY_PORT) };
        let below = (0..node).map(|lower| Rule::ResetFrom(node_address(lower), PEER_PORT));
        let above = (node + 1..self.options.nodes).map(redirect);
        let own: Vec<Rule> = above.chain(below).chain([coordinator]).collect();
        let mut rules: BTreeMap<u16, Vec<Rule>> =
            (0..node).map(|lower| (lower, vec![redirect(node)])).collect();
        rules.insert(node, own);
        let peer = |target: u16| (PROXY_PORT + 1 + target, (node_address(target), PEER_PORT).into());
        let mut targets: Vec<(u16, SocketAddr)> = (node..self.options.nodes).map(peer).collect();
        targets.push((PROXY_PORT, (COORDINATOR, COORDINATOR_PORT).into()));
        let (seed, flipped) = (self.options.seed ^ number as u64, Arc::clone(&self.flipped));
        let proxy = self.in_hub(move || Proxy::start(via, targets, effect, seed, flipped))?;
        self.proxies.insert(number, proxy);
        self.add_rules(number, rules)
    }
}

/// Where packets of these nodes may come from: themselves, and their proxies.
fn addresses(nodes: impl IntoIterator<Item = u16>) -> Vec<Ipv4Addr> {
    nodes.into_iter().flat_map(|node| [node_address(node), proxy_address(node)]).collect()
}

/// What each node's namespace drops because of `fault`.
fn packet_rules(fault: &Fault, nodes: u16) -> BTreeMap<u16, Vec<Rule>> {
    let others = |of: &[u16]| addresses((0..nodes).filter(|node| !of.contains(node)));
    let everyone = |of: u16| [others(&[of]), vec![COORDINATOR]].concat();
    let one = |node: u16, rule: Rule| BTreeMap::from([(node, vec![rule])]);
    match fault {
        Fault::CutOff(cut, from) => {
            let away = match from {
                From::Everyone => [others(cut), vec![COORDINATOR]].concat(),
                From::Nodes => others(cut),
                From::Coordinator => vec![COORDINATOR],
            };
            let both = vec![Rule::DropFrom(away.clone()), Rule::DropTo(away)];
            cut.iter().map(|node| (*node, both.clone())).collect()
        }
        Fault::Deaf(node) => one(*node, Rule::DropFrom(everyone(*node))),
        Fault::Mute(node) => one(*node, Rule::DropTo(everyone(*node))),
        Fault::OneWay { from, to } => one(*to, Rule::DropFrom(addresses([*from]))),
        Fault::Lose(node, percent) => one(*node, Rule::LoseFrom(everyone(*node), *percent)),
        _ => BTreeMap::new(),
    }
}

/// A page of a process, if it answers well and in time. The calling thread must be in the hub.
pub fn fetch(address: Ipv4Addr, path: &str) -> Option<String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(PAGE_LIMIT)).build();
    let agent = ureq::Agent::new_with_config(config);
    let mut answer = agent.get(format!("http://{address}:{HTTP_PORT}{path}")).call().ok()?;
    answer.body_mut().read_to_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_drops_the_other_side_and_its_proxies_and_nothing_else() {
        let rules = packet_rules(&Fault::CutOff(vec![0, 1], From::Nodes), 3);
        assert_eq!(rules.keys().collect::<Vec<_>>(), [&0, &1]);
        let away = vec![node_address(2), proxy_address(2)];
        assert_eq!(rules[&0], [Rule::DropFrom(away.clone()), Rule::DropTo(away)]);
        let rules = packet_rules(&Fault::CutOff(vec![2], From::Coordinator), 3);
        assert_eq!(rules[&2][0], Rule::DropFrom(vec![COORDINATOR]));
    }

    #[test]
    fn one_direction_is_dropped_where_it_arrives() {
        let rules = packet_rules(&Fault::OneWay { from: 2, to: 0 }, 3);
        assert_eq!(rules, BTreeMap::from([(0, vec![Rule::DropFrom(addresses([2]))])]));
    }
}
