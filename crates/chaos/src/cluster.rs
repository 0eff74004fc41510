//! The processes of a cluster in their namespaces, and what can be done to them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use processes::binary::{binary, forget_settings};
use processes::namespaces::{Process, Rule};
use processes::pages::metric;
use processes::proxy::{Effect, Proxy};
use types::{ClusterMap, NamespaceId};

use crate::caps::Caps;
use crate::coordination::{Coordination, lease, parent};
use crate::fault::{Fault, Ill};
use crate::links::{Rules, addresses, drops, through_proxy};
use crate::network::{COORDINATOR, ETCD_PORT, Network, PEER_PORT, node_address, proxy_address};
use crate::options::{Coordinator, Options};
use crate::pages::{self, HTTP_PORT, fetch};
use crate::spaces::{SPACES, Space};

const MEMCACHED_PORT: u16 = 11211;
const NATIVE_PORT: u16 = 12311;
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A process that has ended although nobody wanted it.
pub struct End {
    /// Which node, none for the coordinator.
    pub node: Option<u16>,
    /// Whether it may have needed more memory than its limit, and that may be.
    pub was_starved: bool,
    /// What happened.
    pub text: String,
}

impl End {
    fn of(node: Option<u16>, process: &Process, status: ExitStatus) -> Self {
        Self { node, was_starved: false, text: format!("{} has ended by itself: {status}", process.name()) }
    }
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
    caps: Option<Caps>,
    /// Processes that were started again.
    pub restarts: usize,
    /// Those of them that had ended because they got no more memory.
    pub starved: usize,
    /// Squeezed processes that have ended, but not because of that.
    other_ends: Vec<End>,
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
        let network = Network::build(options.nodes, options.etcd_members)?;
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
            caps: options.cap.map(|bytes| Caps::new(bytes, options.cap_by, options.nodes)),
            restarts: 0,
            starved: 0,
            other_ends: Vec::new(),
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
        let mut args = vec![
            "serve".to_owned(),
            format!("--node={node}"),
            format!("--memcached={address}:{MEMCACHED_PORT}"),
            format!("--native={address}:{NATIVE_PORT}"),
            "--native-scans".to_owned(),
            format!("--peer={address}:{PEER_PORT}"),
            format!("--http={address}:{HTTP_PORT}"),
            format!("--memory={}", options.memory),
            "--workers=1".to_owned(),
            "--evict=none".to_owned(),
            lease(options),
            parent(),
        ];
        args.extend(SPACES.map(|Space { name, port }| format!("--memcached={address}:{port}={name}")));
        args.extend(self.coordination.flags(node, options));
        let mut program = self.program.clone();
        if let Some(caps) = &self.caps {
            let (outer, first) = caps.wrap(node, &program);
            (program, args) = (outer, [first, args].concat());
        }
        let namespace = &self.network.nodes[usize::from(node)];
        self.nodes[usize::from(node)].start(namespace, &program, &args)
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
            if self.is_ready(node) {
                waiting.pop();
            } else {
                sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    fn last_words(&mut self, node: Option<u16>) -> String {
        match node {
            Some(node) => self.nodes[usize::from(node)].last_line(),
            None => self.coordination.process(0).last_line(),
        }
    }

    /// Where clients connect.
    pub fn memcached(&self) -> Vec<SocketAddr> {
        self.clients_of(MEMCACHED_PORT)
    }

    /// Where clients of the native protocol connect.
    pub fn native(&self) -> Vec<SocketAddr> {
        self.clients_of(NATIVE_PORT)
    }

    /// Where clients of the namespace connect whose listeners have this port.
    pub fn clients_of(&self, port: u16) -> Vec<SocketAddr> {
        (0..self.options.nodes).map(|node| (node_address(node), port).into()).collect()
    }

    /// Has `gestalt` asked the node of this turn for something, on its own machine, as an operator would.
    ///
    /// # Errors
    /// One line if the program cannot be started.
    pub fn operate(&self, turn: u16, args: &[String]) -> Result<Child, String> {
        let node = turn % self.options.nodes;
        let mut command = Command::new(&self.program);
        forget_settings(&mut command);
        command.args(args).arg(format!("--http={}:{HTTP_PORT}", node_address(node)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = self.network.nodes[usize::from(node)].run(move || command.spawn());
        child.map_err(|error| format!("cannot run gestalt: {error}"))
    }

    /// How many items nodes have of these namespaces.
    pub fn items_of(&self, namespaces: &BTreeSet<NamespaceId>) -> u64 {
        let pages = (0..self.options.nodes).filter_map(|node| self.page(node_address(node), "/status"));
        pages.map(|page| pages::items_of(&page, namespaces)).sum()
    }

    /// The sum of a metric's samples at each node; none where it does not say.
    pub fn metrics(&self, name: &str) -> impl Iterator<Item = (u16, Option<u64>)> {
        let value = |node| metric(&self.page(node_address(node), "/metrics")?, name);
        (0..self.options.nodes).map(move |node| (node, value(node)))
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
        if self.options.coordinator == Coordinator::Embedded
            && let Some(map) = self.page(COORDINATOR, "/map").and_then(|page| pages::map(&page))
        {
            return Some(map);
        }
        let known = (0..self.options.nodes).filter_map(|node| self.page(node_address(node), "/map"));
        pages::newest(known.filter_map(|page| pages::map(&page)).collect())
    }

    /// Whether the node's process is one that the cluster has taken in.
    pub fn is_ready(&self, node: u16) -> bool {
        self.page(node_address(node), "/readyz").is_some()
    }

    /// Whether there is somebody who coordinates, as far as one can see.
    pub fn is_coordinated(&self) -> bool {
        match self.options.coordinator {
            // One that has just started knows nothing until enough nodes have answered.
            Coordinator::Embedded => self.page(COORDINATOR, "/map").is_some(),
            Coordinator::Etcd => self.leader().is_some(),
        }
    }

    /// The node that presides.
    pub fn leader(&self) -> Option<u16> {
        let status = |node: &u16| self.page(node_address(*node), "/status");
        (0..self.options.nodes).find(|node| status(node).is_some_and(|page| pages::presides(&page)))
    }

    /// The limits on the nodes' memory, if there are any.
    pub fn caps(&self) -> Option<&Caps> {
        self.caps.as_ref()
    }

    /// The processes that have ended although nobody wanted it.
    pub fn unexpected_ends(&mut self) -> Vec<End> {
        let coordinators = self.coordination.processes().map(|process| (None, process));
        let nodes = (0..).map(Some).zip(&mut self.nodes);
        // Beyond what is promised the limit may be too small for --memory.
        let may_starve = self.options.beyond && self.caps.is_some();
        let ended = |(node, process): (Option<u16>, &mut Process)| {
            let status = process.unexpected_end()?;
            let was_starved = may_starve && starved(status);
            Some(End { was_starved, ..End::of(node, process, status) })
        };
        let ends: Vec<End> = nodes.chain(coordinators).filter_map(ended).collect();
        std::mem::take(&mut self.other_ends).into_iter().chain(ends).collect()
    }

    /// Lines of all logs that tell of a panic.
    pub fn panics(&mut self) -> Vec<String> {
        let coordinators = self.coordination.processes().flat_map(|process| process.panics());
        self.nodes.iter().flat_map(Process::panics).chain(coordinators).collect()
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
                // All are killed before anyone is waited for: they are to end at one moment.
                nodes.iter().for_each(|node| self.nodes[usize::from(*node)].kill());
                nodes.iter().for_each(|node| self.nodes[usize::from(*node)].reap());
            }
            Fault::Squeeze(node) => self.squeeze(*node)?,
            Fault::KillEtcd | Fault::KillCoordinator => {
                self.coordination.processes().for_each(Process::kill);
                self.coordination.processes().for_each(Process::reap);
            }
            Fault::Member(member, ill) => self.hurt_member(*member, *ill)?,
            Fault::Pause(nodes) => self.signal(nodes, Signal::SIGSTOP),
            Fault::PauseCoordinator | Fault::PauseEtcd => {
                self.coordination.processes().for_each(|process| process.signal(Signal::SIGSTOP));
            }
            Fault::CutCoordinator | Fault::CutEtcd => self.cut_coordinator(true)?,
            Fault::Delay(node, by) => {
                self.interpose(number, *node, Effect { delay: *by, flip_every: 0 })?;
            }
            Fault::Corrupt(node, every) => {
                self.interpose(number, *node, Effect { delay: Duration::ZERO, flip_every: *every })?;
            }
            Fault::Fill => (),
            _ => self.add_rules(number, drops(fault, &self.options))?,
        }
        Ok(())
    }

    /// Ends what action `number` did.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn end(&mut self, number: usize, fault: &Fault) -> Result<(), String> {
        match fault {
            Fault::Kill(nodes) => {
                self.restarts += nodes.len();
                nodes.iter().try_for_each(|node| self.start_node(*node))?;
            }
            Fault::Pause(nodes) => self.signal(nodes, Signal::SIGCONT),
            Fault::Squeeze(node) => self.release(*node)?,
            Fault::KillEtcd | Fault::KillCoordinator => self.coordination.start_again(&self.network)?,
            Fault::Member(member, ill) => self.heal_member(*member, *ill)?,
            Fault::PauseCoordinator | Fault::PauseEtcd => {
                self.coordination.processes().for_each(|process| process.signal(Signal::SIGCONT));
            }
            Fault::CutCoordinator | Fault::CutEtcd => self.cut_coordinator(false)?,
            _ => {
                // Nothing leads to the proxy any more when it goes; what it carried
                // breaks, and is made anew without it.
                self.remove_rules(number)?;
                self.proxies.remove(&number);
            }
        }
        Ok(())
    }

    /// Lowers a node's share of memory. It may end for it from now on.
    fn squeeze(&mut self, node: u16) -> Result<(), String> {
        let process = &mut self.nodes[usize::from(node)];
        process.let_end(true);
        match (&self.caps, process.pid()) {
            (Some(caps), Some(pid)) => caps.squeeze(node, pid),
            _ => Ok(()),
        }
    }

    /// Gives it its share again, and starts it if it has ended.
    fn release(&mut self, node: u16) -> Result<(), String> {
        let process = &mut self.nodes[usize::from(node)];
        // Before its end is unwanted again: one that has ended meanwhile was allowed to.
        let end = process.end();
        process.let_end(false);
        if let Some(caps) = &self.caps {
            caps.release(node, process.pid())?;
        }
        let Some(status) = end else { return Ok(()) };
        if starved(status) {
            return self.start_starved(node);
        }
        self.other_ends.push(End::of(Some(node), process, status));
        Ok(())
    }

    /// Starts a node that has ended because it got no more memory.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn start_starved(&mut self, node: u16) -> Result<(), String> {
        self.starved += 1;
        self.restarts += 1;
        self.start_node(node)
    }

    fn signal(&self, nodes: &[u16], signal: Signal) {
        nodes.iter().for_each(|node| self.nodes[usize::from(*node)].signal(signal));
    }

    fn cut_coordinator(&self, cut: bool) -> Result<(), String> {
        let all = addresses(0..self.options.nodes);
        let rules = [Rule::DropFrom(all.clone()), Rule::DropTo(all)];
        let mut namespaces = self.network.coordinators.iter();
        namespaces.try_for_each(|namespace| namespace.apply(if cut { &rules } else { &[] }))
    }

    fn hurt_member(&mut self, member: u16, ill: Ill) -> Result<(), String> {
        let process = self.coordination.process(usize::from(member));
        match ill {
            Ill::Kill => {
                process.kill();
                process.reap();
            }
            Ill::Pause => process.signal(Signal::SIGSTOP),
            Ill::CutOff => {
                // From the other members only: nodes go on asking it, and it answers what it knows.
                let mut others = self.options.coordinators();
                others.remove(usize::from(member));
                let rules = [Rule::DropFrom(others.clone()), Rule::DropTo(others)];
                self.network.coordinators[usize::from(member)].apply(&rules)?;
            }
        }
        Ok(())
    }

    fn heal_member(&mut self, member: u16, ill: Ill) -> Result<(), String> {
        let member = usize::from(member);
        match ill {
            Ill::Kill => self.coordination.start_member(&self.network, member)?,
            Ill::Pause => self.coordination.process(member).signal(Signal::SIGCONT),
            Ill::CutOff => self.network.coordinators[member].apply(&[])?,
        }
        Ok(())
    }

    fn add_rules(&mut self, number: usize, rules: Rules) -> Result<(), String> {
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
        // Those of all faults that go on: a namespace is given the whole of its rules at once.
        let of_node = self.rules.iter().filter(|((_, of), _)| *of == node);
        let rules: Vec<Rule> = of_node.flat_map(|(_, rules)| rules.clone()).collect();
        self.network.nodes[usize::from(node)].apply(&rules)
    }

    /// Puts a proxy into all links of `node`. What comes from etcd is delayed like the rest and not falsified: nobody but TCP
    /// would notice.
    fn interpose(&mut self, number: usize, node: u16, effect: Effect) -> Result<(), String> {
        let (targets, rules) = through_proxy(node, &self.options);
        let effect_on = move |target: &SocketAddr| {
            let is_checked = target.port() != ETCD_PORT;
            Effect { flip_every: if is_checked { effect.flip_every } else { 0 }, ..effect }
        };
        let targets = targets.into_iter().map(|(port, target)| (port, target, effect_on(&target))).collect();
        let (seed, flipped) = (self.options.seed ^ number as u64, Arc::clone(&self.flipped));
        // First the proxy, then the rules that lead to it.
        let proxy = self.in_hub(move || Proxy::start(proxy_address(node), targets, seed, flipped))?;
        self.proxies.insert(number, proxy);
        self.add_rules(number, rules)
    }
}

/// Whether a process that ended so may have got no more memory: the kernel kills it, or it has nothing else left to do.
fn starved(status: ExitStatus) -> bool {
    [Signal::SIGKILL, Signal::SIGABRT].iter().any(|signal| status.signal() == Some(*signal as i32))
}
