//! Clients of several namespaces, and an operator who makes and removes some of them while they go on.
//!
//! Keys of all of them are called alike, and values begin with the name of their namespace: one that came from another would
//! be found. Each has a history of its own. That of the one that comes and goes is of one life: its clients stop before it goes.

use std::collections::{BTreeMap, VecDeque};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use history::recorder::{Mix, Recorder, Seen, Workload};
use types::{ClusterMap, Profile};

use crate::cluster::Cluster;
use crate::command::Command;
use crate::filler::Filler;
use crate::numbers::Numbers;
use crate::options::Options;
use crate::orders::{Home, Order, Stock};
use crate::spaces::{
    CACHE, CELLS, COPIES, LONG, PASSING, RANGES, Space, WHOLES, convert, create_namespace, create_pool,
    founding, remove,
};

/// For what is made before the first client comes.
const FOUNDING_LIMIT: Duration = Duration::from_secs(60);
/// For how many leases a name rests: by then nobody answers for who had it.
const REST_LEASES: u32 = 5;
/// Written into a namespace that is to go.
const PASSING_BYTES: usize = 6 << 20;
/// For a flush that was asked for.
const FLUSH_LIMIT: Duration = Duration::from_secs(60);
/// Between a client's operations on long values: it is bytes that the machine is busy with.
const LONG_PAUSE: Duration = Duration::from_millis(20);
/// For every key to be answered in the end.
const READ_LIMIT: Duration = Duration::from_secs(30);

/// See the module.
pub struct Tenancy {
    lease: Duration,
    workload: Workload,
    copies: Recorder,
    cache: Recorder,
    /// Of long values, if there are to be any.
    long: Vec<(Space, Recorder)>,
    passing: Option<Life>,
    /// Goes on to write into what is being removed, and is not listened to.
    fading: Option<Filler>,
    former: Vec<(u32, JoinHandle<Seen>)>,
    lives: u32,
    queue: VecDeque<Order>,
    /// Once all of these are done.
    stock: Stock,
    under_way: Option<UnderWay>,
    rests_until: Instant,
    /// A pool that was asked for, and that no map has shown yet.
    coming: Option<Profile>,
    /// By the last map, what is on its way to another pool.
    moving: Option<String>,
    numbers: Numbers,
    done: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
}

/// Clients of a namespace that comes and goes, from one time to the next.
struct Life {
    number: u32,
    recorder: Recorder,
    filler: Filler,
}

enum UnderWay {
    /// Its clients are to be gone first.
    Leaving(Order),
    Command(Order, Command),
    Flush(JoinHandle<bool>),
}

/// What clients of one namespace saw, and its name.
pub type Told = (String, Seen);

impl Tenancy {
    /// Has pools and namespaces made, and starts their clients.
    ///
    /// # Errors
    /// One line if they cannot be made.
    pub fn start(
        options: &Options,
        losses: usize,
        workload: &Workload,
        cluster: &Cluster,
    ) -> Result<Self, String> {
        for args in founding(options, losses) {
            found(cluster, args)?;
        }
        let workload = Workload {
            clients: (workload.clients / 4).max(2),
            // Native clients say by themselves whose keys they are about: those of the default namespace.
            native: Vec::new(),
            keys: (workload.keys / 4).max(12),
            ..workload.clone()
        };
        let start = |space: Space| record(cluster, space, &workload, space.name);
        let of_long = options.long.map(|longest| with_long_values(&workload, longest));
        let start_long = |workload: &Workload| {
            [LONG, CELLS, RANGES, WHOLES].map(|space| (space, record(cluster, space, workload, space.name)))
        };
        Ok(Self {
            lease: options.lease,
            copies: start(COPIES),
            cache: start(CACHE),
            long: of_long.iter().flat_map(start_long).collect(),
            workload,
            passing: None,
            fading: None,
            former: Vec::new(),
            lives: 0,
            queue: VecDeque::new(),
            stock: Stock::default(),
            under_way: None,
            rests_until: Instant::now(),
            coming: None,
            moving: None,
            numbers: Numbers::default(),
            done: BTreeMap::new(),
            failures: Vec::new(),
        })
    }

    // --- orders ---

    /// An operator wants this, once all else that was wanted is done.
    pub fn give(&mut self, order: Order) {
        self.stock = self.stock.after(order);
        self.queue.push_back(order);
    }

    /// Nothing is to be left of what comes and goes.
    pub fn clear(&mut self) {
        self.stock.clearing().into_iter().for_each(|order| self.give(order));
    }

    /// What is not done yet; none if all is.
    pub fn pending(&self) -> Option<String> {
        let words =
            |order: &Order, last: &str| format!("an operator's order is not done: {order}: {}", last.trim());
        match &self.under_way {
            Some(UnderWay::Command(order, command)) => Some(words(order, command.last_words())),
            Some(UnderWay::Leaving(order)) => Some(words(order, "its clients have not stopped")),
            Some(UnderWay::Flush(_)) => Some(words(&Order::Flush, "no answer")),
            None => {
                let order = self.queue.front().map(|order| words(order, "nobody was asked"));
                order.or_else(|| {
                    self.moving.as_ref().map(|name| format!("namespace {name} does not come to its pool"))
                })
            }
        }
    }

    /// The code of a pool that is to be asked for now, if nothing is in the way.
    pub fn wants_pool(&self) -> Option<Profile> {
        match &self.under_way {
            Some(UnderWay::Command(Order::CreatePool(profile), command)) if command.is_due() => {
                Some(*profile)
            }
            _ => None,
        }
    }

    /// The code of a pool that may be made at any time.
    pub fn coming(&self) -> Option<Profile> {
        self.coming
    }

    /// Goes on with what is wanted; a pool is asked for only if that `may` be. What is done now.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn go_on(&mut self, cluster: &Cluster, may: bool) -> Result<Option<Order>, String> {
        let Some(under_way) = self.under_way.take().or_else(|| self.begin(cluster)) else { return Ok(None) };
        let (left, done) = match under_way {
            UnderWay::Leaving(order) if self.former.iter().all(|(_, clients)| clients.is_finished()) => {
                (Some(self.command(order)), None)
            }
            UnderWay::Leaving(order) => (Some(UnderWay::Leaving(order)), None),
            UnderWay::Command(order, command) => self.follow(order, command, cluster, may)?,
            UnderWay::Flush(thread) if thread.is_finished() => {
                if !thread.join().unwrap_or(false) {
                    self.failures.push(format!("{} is not flushed within {FLUSH_LIMIT:?}", CACHE.name));
                }
                (None, Some(Order::Flush))
            }
            UnderWay::Flush(thread) => (Some(UnderWay::Flush(thread)), None),
        };
        self.under_way = left;
        if let Some(order) = done {
            *self.done.entry(order.kind()).or_default() += 1;
            self.follows(order, cluster);
        }
        Ok(done)
    }

    fn begin(&mut self, cluster: &Cluster) -> Option<UnderWay> {
        let order = self.queue.pop_front()?;
        Some(match order {
            Order::Flush => {
                let flusher = self.cache.flusher();
                UnderWay::Flush(cluster.in_hub(move || thread::spawn(move || flusher.flush(FLUSH_LIMIT))))
            }
            Order::RemoveNamespace => {
                if let Some(Life { number, recorder, filler }) = self.passing.take() {
                    self.former.push((number, thread::spawn(move || recorder.finish())));
                    self.fading = Some(filler);
                }
                UnderWay::Leaving(order)
            }
            other => self.command(other),
        })
    }

    fn command(&self, order: Order) -> UnderWay {
        let (name, now) = (PASSING.name, Instant::now());
        let (args, at) = match order {
            Order::CreatePool(profile) => (create_pool(name, &profile.to_string()), now),
            Order::RemovePool => (remove("pool", name), now),
            Order::CreateNamespace(home) => {
                (create_namespace(name, (home == Home::Passing).then_some(name)), self.rests_until.max(now))
            }
            Order::Convert(name, to) => (convert(name, to), now),
            Order::RemoveNamespace | Order::Flush => (remove("namespace", name), now),
        };
        UnderWay::Command(order, Command::new(args, at))
    }

    fn follow(
        &mut self,
        order: Order,
        mut command: Command,
        cluster: &Cluster,
        may: bool,
    ) -> Result<(Option<UnderWay>, Option<Order>), String> {
        if command.poll() {
            return Ok((None, Some(order)));
        }
        let pool = if let Order::CreatePool(profile) = order { Some(profile) } else { None };
        if !command.is_due() {
            // It rests, or waits for an answer.
        } else if pool.is_none() || may {
            self.coming = pool.or(self.coming);
            command.attempt(cluster)?;
        } else {
            command.postpone();
        }
        Ok((Some(UnderWay::Command(order, command)), None))
    }

    /// What comes of `order`, which is done.
    fn follows(&mut self, order: Order, cluster: &Cluster) {
        match order {
            Order::CreateNamespace(_) => {
                self.lives += 1;
                let mark = format!("{}-{}", PASSING.name, self.lives);
                let workload =
                    Workload { seed: self.workload.seed + u64::from(self.lives), ..self.workload.clone() };
                let recorder = record(cluster, PASSING, &workload, &mark);
                let (number, nodes) = (self.lives, cluster.clients_of(PASSING.port));
                let filler =
                    cluster.in_hub(move || Filler::start_small(number as usize, nodes, PASSING_BYTES));
                self.passing = Some(Life { number, recorder, filler });
            }
            Order::RemoveNamespace => {
                self.rests_until = Instant::now() + REST_LEASES * self.lease;
                // It may wait for an answer yet.
                self.fading.take().map(|filler| thread::spawn(|| filler.abandon()));
            }
            Order::RemovePool => self.coming = None,
            Order::Convert(name, _) => self.moving = Some(name.to_owned()),
            Order::CreatePool(_) | Order::Flush => (),
        }
    }

    // --- what is seen ---

    /// Looks at a map of the cluster.
    pub fn observe(&mut self, map: &ClusterMap) {
        if map.catalog.pools.iter().any(|pool| pool.name.to_string() == PASSING.name) {
            self.coming = None;
        }
        let mut moving = map.catalog.namespaces.iter().filter(|known| known.conversion.is_some());
        self.moving = moving.next().map(|known| known.name.to_string());
        self.failures.extend(self.numbers.observe(map.version, &map.catalog));
    }

    /// Where something is left of namespaces that are no more.
    pub fn left_over(&self, cluster: &Cluster) -> Option<String> {
        let items = cluster.items_of(self.numbers.gone());
        (items > 0).then(|| format!("{items} items are left of namespaces that are removed"))
    }

    /// Stops the clients and reads everything once more: what they saw, by namespace; what went wrong is added to `failures`.
    pub fn finish(self, cluster: &Cluster, failures: &mut Vec<String>) -> Vec<Told> {
        failures.extend(self.failures);
        let mut told = Vec::new();
        for (space, recorder) in [(COPIES, self.copies), (CACHE, self.cache)].into_iter().chain(self.long) {
            match cluster.in_hub(move || recorder.finish_and_read_all(READ_LIMIT)) {
                Ok(seen) => told.push((space.name.to_owned(), seen)),
                Err(why) => failures.push(format!("{}: {why}", space.name)),
            }
        }
        let last = self.passing.map(|life| {
            life.filler.abandon();
            (life.number, life.recorder.finish())
        });
        let former = self
            .former
            .into_iter()
            .map(|(number, clients)| (number, clients.join().expect("no client panics")));
        let name = |(number, seen)| (format!("{}-{number}", PASSING.name), seen);
        told.extend(former.chain(last).map(name));
        told
    }

    /// How many orders of each kind are done.
    pub fn done(&self) -> &BTreeMap<&'static str, usize> {
        &self.done
    }
}

/// Has something done before anything is hurt.
fn found(cluster: &Cluster, args: Vec<String>) -> Result<(), String> {
    let deadline = Instant::now() + FOUNDING_LIMIT;
    let mut command = Command::new(args.clone(), Instant::now());
    while !command.poll() {
        if Instant::now() > deadline {
            return Err(format!("gestalt {}: {}", args.join(" "), command.last_words()));
        }
        if command.is_due() {
            command.attempt(cluster)?;
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The load of a namespace whose values are long, up to so many bytes.
fn with_long_values(workload: &Workload, longest: u64) -> Workload {
    Workload {
        mix: Mix::Long,
        max_value_bytes: usize::try_from(longest).unwrap_or(usize::MAX),
        pause: LONG_PAUSE,
        ..workload.clone()
    }
}

fn record(cluster: &Cluster, space: Space, workload: &Workload, mark: &str) -> Recorder {
    let workload = Workload { mark: format!("{mark}-"), ..workload.clone() };
    let nodes = cluster.clients_of(space.port);
    cluster.in_hub(move || Recorder::start(&workload, &nodes))
}
