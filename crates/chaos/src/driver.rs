//! Runs a schedule against a cluster, heals it, and judges.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use history::recorder::{Lasting, Mix, Recorder, Scans, Workload};
use types::{ClusterMap, NodeId, Profile};

use crate::cluster::Cluster;
use crate::cold;
use crate::fault::{Cost, Fault};
use crate::filler::Filler;
use crate::margin::{Hurt, HurtNodes};
use crate::options::{Length, Options};
use crate::report::Report;
use crate::schedule::{Action, Schedule};
use crate::tenancy::Tenancy;
use crate::verdict;
use crate::watch::Watch;
use crate::{leaks, margin};

/// Before the first fault, so that processes can be compared with themselves.
const WARM_UP: Duration = Duration::from_secs(leaks::WARM_UP.as_secs() + 2);
/// How often it is looked whether something is due.
const TICK: Duration = Duration::from_millis(50);
/// For how many leases a node counts as hurt after its fault is over: suspicions and complaints of before take that long.
const GRACE_LEASES: u32 = 3;
/// For redundancy to come back in the end.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
/// For what an operator wanted, once nothing is hurt any more.
const ORDERS_LIMIT: Duration = Duration::from_secs(90);
/// The same where it may not come back at all.
const SETTLE_LIMIT_BEYOND: Duration = Duration::from_secs(10);
/// For how many leases redundancy must have been back: what went wrong at the very end shows by then.
const STABLE_LEASES: u32 = 3;
/// For every key to be answered in the end.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// Answers that show that the cluster goes on after the faults, and how long they may take.
const PROGRESS: (u64, Duration) = (500, Duration::from_secs(60));
/// Without clients, before processes are looked at for the last time.
const QUIET: Duration = Duration::from_secs(5);
/// Written while a node gets no more memory.
const SQUEEZE_BYTES: usize = 24 << 20;
/// How long keys are in use.
const GENERATION: Duration = Duration::from_secs(15);

/// Runs what `options` say.
///
/// # Errors
/// One line if the cluster cannot be started or hurt. What is found wrong with it is in the report.
pub fn run(options: &Options) -> Result<Report, String> {
    let profile: Profile = options.profile.parse().map_err(|error| format!("{error}"))?;
    let losses = profile.tolerance();
    let schedule = Schedule::new(options, u16::try_from(losses).unwrap_or(u16::MAX))?;
    let (dir, keeper) = directory(options)?;
    let mut run = Run::start(options, losses, &dir)?;
    sleep(WARM_UP);
    run.hurt(schedule)?;
    run.heal()?;
    let report = run.judge(&dir);
    if let (Some(keeper), false) = (keeper, report.passed()) {
        // The logs and the history of a run that failed are wanted.
        let _ = keeper.keep();
    }
    Ok(report)
}

/// Where to put things, and what removes it in the end.
fn directory(options: &Options) -> Result<(PathBuf, Option<tempfile::TempDir>), String> {
    let told = |error: std::io::Error| format!("cannot make a directory for logs: {error}");
    match &options.dir {
        Some(dir) => std::fs::create_dir_all(dir).map(|()| (dir.clone(), None)).map_err(told),
        None => {
            let made = tempfile::Builder::new().prefix("chaos-").tempdir().map_err(told)?;
            Ok((made.path().to_owned(), Some(made)))
        }
    }
}

/// A run under way.
pub struct Run {
    options: Options,
    epoch: Instant,
    cluster: Cluster,
    recorder: Recorder,
    scans: Scans,
    tenancy: Tenancy,
    watch: Watch,
    fillers: BTreeMap<usize, Filler>,
    /// What hurts now, and until when.
    active: Vec<(Action, Instant)>,
    /// Nodes whose fault is over, and when that may be believed.
    convalescent: BTreeMap<(u16, Hurt), Instant>,
    report: Report,
}

impl Run {
    fn start(options: &Options, losses: usize, dir: &Path) -> Result<Self, String> {
        let epoch = Instant::now();
        let cluster = Cluster::start(options, dir)?;
        let workload = Workload {
            clients: options.clients,
            native: cluster.native(),
            keys: options.keys,
            max_value_bytes: 1500,
            timeout: 6 * options.lease,
            pause: options.pause,
            mix: Mix::Full { generation: GENERATION },
            seed: options.seed,
            mark: String::new(),
            hears_trouble: true,
        };
        let tenancy = Tenancy::start(options, losses, &workload, &cluster)?;
        let (nodes, cold) = (cluster.memcached(), options.cold);
        cluster.in_hub(move || cold::load(cold, &nodes))?;
        let nodes = cluster.memcached();
        let recorder = cluster.in_hub(move || Recorder::start(&workload, &nodes));
        let (native, timeout) = (cluster.native(), 6 * options.lease);
        let lasting = Lasting { prefix: cold::PREFIX.to_owned(), count: cold };
        let scans = cluster.in_hub(move || Scans::start(&native, timeout, lasting));
        let watch = Watch::start(&cluster, epoch);
        let report = Report { seed: options.seed, dir: dir.display().to_string(), ..Report::default() };
        Ok(Self {
            options: options.clone(),
            epoch,
            cluster,
            recorder,
            scans,
            tenancy,
            watch,
            fillers: BTreeMap::new(),
            active: Vec::new(),
            convalescent: BTreeMap::new(),
            report,
        })
    }

    fn hurt(&mut self, schedule: Schedule) -> Result<(), String> {
        let begun = Instant::now();
        let (most, until) = match self.options.length {
            Length::Actions(count) => (count, None),
            Length::Time(time) => (usize::MAX, Some(begun + time)),
        };
        let mut last = 0;
        for action in schedule.take(most) {
            if until.is_some_and(|until| Instant::now() > until) {
                break;
            }
            last = action.number;
            self.wait(action.after)?;
            self.attempt(action)?;
        }
        self.report.seconds = begun.elapsed().as_secs_f64();
        self.report.replay = self.options.replay(last);
        Ok(())
    }

    /// Does `action` as soon as it takes away no more than it may, or leaves it out.
    fn attempt(&mut self, mut action: Action) -> Result<(), String> {
        let deadline = Instant::now() + self.options.patience();
        let (kind, text) = (action.fault.kind(), action.to_string());
        self.tenancy.give(action.order);
        action.fault = loop {
            // Aimed anew each time: another node may preside by now.
            let why = match action.fault.aimed_at(|| self.cluster.leader()) {
                Some(fault) => match self.objection(&fault) {
                    Some(why) => why,
                    None => break fault,
                },
                None => Objection { kind: "nobody presides".to_owned(), text: "nobody presides".to_owned() },
            };
            if Instant::now() > deadline {
                self.tell(&format!("{text}: left out, {why}"));
                *self.report.skipped.entry(why.kind).or_default() += 1;
                return Ok(());
            }
            self.wait(2 * TICK)?;
        };
        let which = if kind == action.fault.kind() { String::new() } else { format!(": {}", action.fault) };
        self.tell(&format!("{text}{which}"));
        *self.report.done.entry(kind).or_default() += 1;
        self.begin(action)
    }

    fn begin(&mut self, action: Action) -> Result<(), String> {
        self.cluster.begin(action.number, &action.fault)?;
        if action.fault.fills() {
            let (number, nodes) = (action.number, self.cluster.memcached());
            // Under a squeeze a little is enough. Only `Fill` is to fill the other nodes, too.
            let most = (action.fault != Fault::Fill).then_some(SQUEEZE_BYTES);
            let filler = self.cluster.in_hub(move || Filler::start(number, nodes, most));
            self.fillers.insert(number, filler);
        }
        self.watch.follow(&self.cluster);
        let until = Instant::now() + action.lasts;
        self.active.push((action, until));
        Ok(())
    }

    /// Why `fault` may not come now.
    fn objection(&mut self, fault: &Fault) -> Option<Objection> {
        let going_on = self.active.iter().map(|(action, _)| &action.fault);
        let nodes = fault.nodes();
        if let Some(other) = going_on.clone().find(|other| other.nodes().iter().any(|n| nodes.contains(n))) {
            return Objection::new("its node is hurt already", format!("{other} is going on"));
        }
        let is_same = |other: &&Fault| {
            (other.is_about_coordination() && fault.is_about_coordination())
                || (other.fills() && fault.fills())
        };
        if let Some(other) = going_on.clone().find(is_same) {
            return Objection::new("the same is going on", format!("{other} is going on"));
        }
        if self.options.beyond {
            return None;
        }
        if let Some(other) = going_on.clone().find(|other| other.cost() == Cost::Everything) {
            return Objection::new("it must not meet another", format!("{other} is going on"));
        }
        match self.cluster.map() {
            Some(map) => self.objection_of(&map, fault),
            None => Objection::new("nobody has a map", "nobody has a map".to_owned()),
        }
    }

    /// Whether what `fault` costs is too much for the groups of `map`.
    fn objection_of(&mut self, map: &ClusterMap, fault: &Fault) -> Option<Objection> {
        let mut hurt = self.hurt_nodes(map);
        let coming = self.tenancy.coming();
        match fault.cost() {
            Cost::Everything if !hurt.is_empty() || coming.is_some() || !margin::is_full(map) => {
                let text = format!("these are not well, or redundancy is not back: {hurt:?}");
                Objection::new("it must not meet another", text)
            }
            Cost::Everything => None,
            cost => {
                self.add(&mut hurt, cost);
                // A pool that was asked for may be made at any time.
                let in_future = || coming.and_then(|profile| margin::pool_objection(profile, &hurt));
                margin::objection(map, &hurt)
                    .or_else(in_future)
                    .and_then(|text| Objection::new("too little redundancy is left", text))
            }
        }
    }

    /// Nodes that are hurt, or were until a moment ago.
    fn hurt_nodes(&mut self, map: &ClusterMap) -> HurtNodes {
        self.tenancy.observe(map);
        self.discharge(map);
        let mut hurt: HurtNodes = self.convalescent.keys().copied().collect();
        let costs = self.active.iter().map(|(action, _)| action.fault.cost());
        costs.for_each(|cost| self.add(&mut hurt, cost));
        hurt
    }

    /// Whether the pool that an operator wants now, if there is one, can be made without losing anything.
    fn may_make_pool(&mut self) -> bool {
        let Some(profile) = self.tenancy.wants_pool() else { return true };
        if self.options.beyond {
            return true;
        }
        let is_all_hurt = self.active.iter().any(|(action, _)| action.fault.cost() == Cost::Everything);
        let Some(map) = self.cluster.map().filter(|_| !is_all_hurt) else { return false };
        margin::pool_objection(profile, &self.hurt_nodes(&map)).is_none()
    }

    fn add(&self, hurt: &mut HurtNodes, cost: Cost) {
        if let Cost::Nodes(nodes, how) = cost {
            let how = if self.options.bold { Hurt::Dead } else { how };
            hurt.extend(nodes.into_iter().map(|node| (node, how)));
        }
    }

    /// Those that have been well for long enough, and that the map knows as they are, count as well. While nobody coordinates
    /// the map is of former times, and afterwards it takes as long again until it tells what has become of them.
    fn discharge(&mut self, map: &ClusterMap) {
        let now = Instant::now();
        let is_hurt = self.active.iter().any(|(action, _)| action.fault.hurts_coordinator());
        if is_hurt || !self.cluster.is_coordinated() {
            let believed = now + GRACE_LEASES * self.options.lease;
            self.convalescent.values_mut().for_each(|until| *until = believed);
        }
        let cluster = &self.cluster;
        let is_back = |node: u16| is_known(map, NodeId(node)) && cluster.is_ready(node);
        self.convalescent.retain(|(node, _), until| now < *until || !is_back(*node));
    }

    /// Lets `time` pass, and ends what is over.
    fn wait(&mut self, time: Duration) -> Result<(), String> {
        let until = Instant::now() + time;
        loop {
            self.end_what_is_over(Instant::now())?;
            self.look_after_processes()?;
            self.go_on_with_orders()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(TICK));
        }
    }

    fn end_what_is_over(&mut self, now: Instant) -> Result<(), String> {
        let active = std::mem::take(&mut self.active);
        let (over, active): (Vec<_>, Vec<_>) = active.into_iter().partition(|(_, until)| *until <= now);
        self.active = active;
        for (action, _) in over {
            self.cluster.end(action.number, &action.fault)?;
            if let Some(filler) = self.fillers.get(&action.number) {
                filler.stop();
            }
            let mut hurt = HurtNodes::new();
            match action.fault.cost() {
                // While nobody decided anything, each of them may have been missed.
                Cost::Everything => hurt.extend((0..self.options.nodes).map(|node| (node, Hurt::Away))),
                cost => self.add(&mut hurt, cost),
            }
            let believed = now + GRACE_LEASES * self.options.lease;
            self.convalescent.extend(hurt.into_iter().map(|hurt| (hurt, believed)));
            self.watch.follow(&self.cluster);
        }
        Ok(())
    }

    /// What an operator wants goes on beside all else.
    fn go_on_with_orders(&mut self) -> Result<(), String> {
        let may = self.may_make_pool();
        if let Some(order) = self.tenancy.go_on(&self.cluster, may)? {
            self.tell(&format!("      done: {order}"));
            self.report.orders = self.tenancy.done().clone();
        }
        Ok(())
    }

    /// A process that ends by itself is a failure, but one that got no more memory where that may be: it is started again.
    fn look_after_processes(&mut self) -> Result<(), String> {
        for end in self.cluster.unexpected_ends() {
            match end.node {
                Some(node) if end.was_starved => self.cluster.start_starved(node)?,
                _ => {
                    self.tell(&end.text);
                    self.report.failures.push(end.text);
                }
            }
            self.watch.follow(&self.cluster);
        }
        Ok(())
    }

    /// Waits for the end of all faults, then until redundancy is back.
    fn heal(&mut self) -> Result<(), String> {
        while !self.active.is_empty() {
            self.wait(TICK)?;
        }
        self.tell("all faults are over");
        std::mem::take(&mut self.fillers).into_values().for_each(Filler::finish);
        self.finish_orders()?;
        let limit = if self.options.beyond { SETTLE_LIMIT_BEYOND } else { SETTLE_LIMIT };
        let begun = Instant::now();
        let (mut why, mut since) = (self.unsettled(), begun);
        while (why.is_some() || since.elapsed() < STABLE_LEASES * self.options.lease)
            && begun.elapsed() < limit
        {
            self.wait(4 * TICK)?;
            why = self.unsettled();
            if why.is_some() {
                since = Instant::now();
            }
        }
        match why {
            None => self.report.settled_after_seconds = Some((since - begun).as_secs_f64()),
            Some(_) if self.options.beyond => (),
            Some(why) => {
                self.report.failures.push(format!("redundancy is not back after {SETTLE_LIMIT:?}: {why}"));
            }
        }
        if !self.options.beyond
            && let Err(why) = self.recorder.wait_for(PROGRESS.0, PROGRESS.1)
        {
            self.report.failures.push(format!("the cluster does not go on: {why}"));
        }
        Ok(())
    }

    /// Waits until all that an operator wanted is done, and nothing is left of what comes and goes.
    fn finish_orders(&mut self) -> Result<(), String> {
        self.tenancy.clear();
        let limit = if self.options.beyond { SETTLE_LIMIT_BEYOND } else { ORDERS_LIMIT };
        let begun = Instant::now();
        while let Some(why) = self.tenancy.pending() {
            if begun.elapsed() > limit {
                self.report.failures.extend((!self.options.beyond).then_some(why));
                return Ok(());
            }
            self.wait(4 * TICK)?;
            if let Some(map) = self.cluster.map() {
                self.tenancy.observe(&map);
            }
        }
        Ok(())
    }

    fn unsettled(&mut self) -> Option<String> {
        let Some(map) = self.cluster.map() else { return Some("nobody has a map".to_owned()) };
        if !self.cluster.is_coordinated() {
            return Some("nobody presides".to_owned());
        }
        self.tenancy.observe(&map);
        let is_back = |node: u16| is_known(&map, NodeId(node)) && self.cluster.is_ready(node);
        let absent = (0..self.options.nodes).find(|node| !is_back(*node));
        let absent = absent.map(|node| format!("node {node} is not back"));
        absent.or_else(|| margin::missing(&map)).or_else(|| self.tenancy.left_over(&self.cluster))
    }

    /// Stops the clients, reads everything, and looks for what is wrong.
    fn judge(mut self, dir: &Path) -> Report {
        let recorder = self.recorder;
        match self.cluster.in_hub(move || recorder.finish_and_read_all(READ_LIMIT)) {
            Ok(seen) => verdict::on_history(&mut self.report, &seen, &self.options, dir),
            Err(why) => self.report.failures.push(why),
        }
        verdict::on_scans(&mut self.report, self.scans.finish(), &self.options);
        for told in self.tenancy.finish(&self.cluster, &mut self.report.failures) {
            verdict::on_namespace(&mut self.report, &told, &self.options, dir);
        }
        let (nodes, cold) = (self.cluster.memcached(), self.options.cold);
        match self.cluster.in_hub(move || cold::verify(cold, &nodes)) {
            Ok(lost) => verdict::on_cold(&mut self.report, cold, lost, &self.options),
            Err(why) => self.report.failures.push(why),
        }
        verdict::on_chunks(&mut self.report, &self.cluster, &self.options);
        sleep(QUIET);
        let samples = self.watch.finish();
        verdict::on_processes(&mut self.report, &mut self.cluster, &samples, &self.options);
        self.report
    }

    fn tell(&self, text: &str) {
        if self.options.verbose {
            let (seconds, answers) = (self.epoch.elapsed().as_secs_f64(), self.recorder.answered());
            eprintln!("[{seconds:7.2}s {answers:>8} answers] {text}");
        }
    }
}

/// Why an action is left out.
struct Objection {
    kind: String,
    text: String,
}

impl Objection {
    #[allow(clippy::unnecessary_wraps)] // an answer to "is there one?"
    fn new(kind: &str, text: String) -> Option<Self> {
        Some(Self { kind: kind.to_owned(), text })
    }
}

impl std::fmt::Display for Objection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether the map has `node` alive, and nothing any more of its former lives.
fn is_known(map: &ClusterMap, node: NodeId) -> bool {
    let Some(info) = map.node(node).filter(|info| info.alive) else { return false };
    let primaries = map.groups.iter().flat_map(|view| &view.data).filter_map(|role| role.primary);
    let parities = map.groups.iter().flat_map(|view| view.in_sync()).map(|(_, host)| host);
    primaries.chain(parities).all(|host| host.node != node || host == info.host)
}
