//! Which faults come when: drawn from the seed alone.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use rng::Rng;

use crate::fault::{Deed, Fault, From, Ill};
use crate::options::{Coordinator, Options};
use crate::orders::{Order, Orders};

/// A fault, when it comes and how long it lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Counted from 1.
    pub number: usize,
    /// Since the action before it.
    pub after: Duration,
    /// What.
    pub fault: Fault,
    /// How long.
    pub lasts: Duration,
    /// What an operator wants meanwhile.
    pub order: Order,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, after, lasts) = (self.number, self.after.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{number:>4}  +{after:.2}s  {} for {lasts:.2}s; {}", self.fault, self.order)
    }
}

/// An endless sequence of actions.
#[derive(Clone, Debug)]
pub struct Schedule {
    rng: Rng,
    lease: Duration,
    nodes: u16,
    /// Most nodes hurt by one action; one more beyond the promise.
    losses: u16,
    etcd_members: u16,
    beyond: bool,
    weights: [u32; KINDS],
    only: Vec<String>,
    orders: Orders,
    drawn: usize,
}

/// The purpose of the random numbers drawn here.
const PURPOSE: u64 = 0x6368_616f_7301;

/// Among so many every kind comes that can come at all.
const DRAWS_FOR_ALL: usize = 5000;

/// What [`Schedule::fault`] chooses from.
const KINDS: usize = 19;

/// Weights of these.
fn weights(options: &Options) -> [u32; KINDS] {
    let asked = |kind: &str| options.only.iter().any(|only| only == kind);
    let if_so = |so: bool, weight: u32| if so { weight } else { 0 };
    let is_etcd = options.coordinator == Coordinator::Etcd;
    let nodes = [24, 16, 12, 5, 5, 6, 7, 6, 9, 5];
    let coordinator = [if_so(!is_etcd, 6), if_so(!is_etcd, 2)];
    let memory = [if_so(options.fill || asked("fill memory"), 6), if_so(options.cap.is_some(), 10)];
    let several = is_etcd && options.etcd_members > 1;
    let elected = [if_so(is_etcd, 24), if_so(is_etcd, 5), if_so(is_etcd, 5), if_so(several, 20)];
    let restarted = [if_so(!is_etcd, 12)];
    let mut all = [&nodes[..], &coordinator, &memory, &elected, &restarted].concat().into_iter();
    std::array::from_fn(|_| all.next().unwrap_or(0))
}

impl Schedule {
    /// The one that belongs to the options' seed; `losses` is how many nodes the profile can lose.
    ///
    /// # Errors
    /// One line if there is nothing to draw.
    pub fn new(options: &Options, losses: u16) -> Result<Self, String> {
        if options.etcd_members > 1 && options.coordinator != Coordinator::Etcd {
            return Err("--etcd-members needs --coordinator etcd".to_owned());
        }
        let schedule = Self {
            rng: Rng::new(options.seed, PURPOSE),
            lease: options.lease,
            nodes: options.nodes,
            losses: losses.clamp(1, options.nodes),
            etcd_members: options.etcd_members,
            beyond: options.beyond,
            weights: weights(options),
            only: options.only.clone(),
            orders: Orders::new(options, losses),
            drawn: 0,
        };
        let possible = schedule.clone().kinds();
        match options.only.iter().find(|kind| !possible.contains(kind.as_str())) {
            Some(kind) => Err(format!(
                "'{kind}' cannot come: several nodes need a profile that bears as many losses, or --beyond; a leader and etcd need --coordinator etcd, its members --etcd-members 3; squeeze needs --cap"
            )),
            None => Ok(schedule),
        }
    }

    /// The kinds that come sooner or later.
    fn kinds(mut self) -> BTreeSet<&'static str> {
        (0..DRAWS_FOR_ALL).map(|_| self.fault().kind()).collect()
    }

    fn fault(&mut self) -> Fault {
        let rng = &mut self.rng;
        let several = match rng.below(100) {
            0..10 if self.beyond => u64::from(self.losses) + 1,
            0..40 => rng.range(1, self.losses.into()),
            _ => 1,
        };
        let mut nodes: Vec<u16> = (0..self.nodes).collect();
        for place in 0..nodes.len() {
            let other = place + rng.index(nodes.len() - place);
            nodes.swap(place, other);
        }
        let (one, two) = (nodes[0], nodes[1 % nodes.len()]);
        let some = rng.range(self.losses.min(2).into(), self.losses.into());
        let mut some = nodes[..some as usize].to_vec();
        some.sort_unstable();
        nodes.truncate(several as usize);
        nodes.sort_unstable();
        // Drawn for every fault, whatever it needs: so its kind does not shift what is drawn after it.
        let (percent, delay_ms, every) = (rng.range(2, 40), rng.tailed(120), rng.range(3_000, 200_000));
        let from = rng.pick(&[From::Everyone, From::Everyone, From::Nodes, From::Coordinator]);
        let deed = rng.pick(&Deed::ALL);
        match rng.weighted(&self.weights) {
            0 => Fault::Kill(nodes),
            1 => Fault::Pause(nodes),
            2 => Fault::CutOff(nodes, from),
            3 => Fault::Deaf(one),
            4 => Fault::Mute(one),
            5 => Fault::OneWay { from: one, to: two },
            6 => Fault::Lose(one, percent as u8),
            7 => Fault::Delay(one, Duration::from_millis(1 + delay_ms)),
            8 => Fault::Corrupt(one, every),
            9 => Fault::CutOff(some, From::Nodes),
            10 => Fault::PauseCoordinator,
            11 => Fault::CutCoordinator,
            12 => Fault::Fill,
            13 => Fault::Squeeze(one),
            14 => Fault::Leader(deed),
            15 => Fault::KillEtcd,
            16 if percent % 2 == 0 => Fault::PauseEtcd,
            16 => Fault::CutEtcd,
            // Drawn here and not above: schedules without members are what they were before there were any.
            17 => Fault::Member(rng.below(self.etcd_members.into()) as u16, rng.pick(&Ill::ALL)),
            _ => Fault::KillCoordinator,
        }
    }

    /// Shorter or longer than the lease, which is what matters.
    fn lasts(&mut self, fault: &Fault) -> Duration {
        let (short, long) = ((10, 90), (150, 600));
        let (low, high) = match fault {
            Fault::CutCoordinator if self.beyond => (10, 1500),
            // The coordinator declares lost what it has not heard of for five leases.
            Fault::CutCoordinator => (10, 300),
            Fault::Fill => (600, 1200),
            Fault::Squeeze(_) => (200, 600),
            Fault::KillEtcd | Fault::PauseEtcd | Fault::CutEtcd | Fault::Member(..) => (10, 1000),
            _ if self.rng.percent(35) => short,
            _ => long,
        };
        self.lease * self.rng.range(low, high) as u32 / 100
    }
}

impl Iterator for Schedule {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        self.drawn += 1;
        let after = self.lease * self.rng.range(10, 350) as u32 / 100;
        let mut fault = self.fault();
        while !self.only.is_empty() && !self.only.iter().any(|kind| kind == fault.kind()) {
            fault = self.fault();
        }
        let lasts = self.lasts(&fault);
        let order = self.orders.next()?;
        Some(Action { number: self.drawn, after, fault, lasts, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(seed: u64, beyond: bool) -> Vec<Action> {
        drawn(&Options { seed, beyond, fill: true, ..Options::default() })
    }

    fn drawn(options: &Options) -> Vec<Action> {
        Schedule::new(options, 2).unwrap().take(500).collect()
    }

    fn kinds(options: &Options) -> BTreeSet<&'static str> {
        drawn(options).iter().map(|action| action.fault.kind()).collect()
    }

    #[test]
    fn a_seed_is_a_schedule() {
        assert_eq!(schedule(7, false), schedule(7, false));
        assert_ne!(schedule(7, false), schedule(8, false));
    }

    #[test]
    fn every_kind_comes_and_names_distinct_nodes_of_the_cluster() {
        let embedded = Options { fill: true, cap: Some(1), ..Options::default() };
        let etcd = Options { coordinator: Coordinator::Etcd, etcd_members: 3, ..embedded.clone() };
        let both = &kinds(&embedded) | &kinds(&etcd);
        assert_eq!(both, BTreeSet::from(Fault::KINDS));
        let actions = [drawn(&embedded), drawn(&etcd)].concat();
        for action in &actions {
            let nodes = action.fault.nodes();
            let distinct: BTreeSet<u16> = nodes.iter().copied().collect();
            assert!(nodes.iter().all(|node| *node < 7) && nodes.len() == distinct.len(), "{action}");
            assert!(nodes.len() <= 2, "{action}");
        }
    }

    #[test]
    fn what_there_is_not_is_not_hurt() {
        let embedded = kinds(&Options::default());
        for kind in ["kill leader", "kill etcd", "fill memory", "squeeze"] {
            assert!(!embedded.contains(kind), "{kind}");
            let only = Options { only: vec![kind.to_owned()], ..Options::default() };
            assert_eq!(Schedule::new(&only, 2).is_err(), kind != "fill memory", "{kind}");
        }
        let etcd = kinds(&Options { coordinator: Coordinator::Etcd, ..Options::default() });
        assert!(!etcd.contains("kill etcd member") && etcd.contains("kill etcd"));
        assert!(etcd.iter().all(|kind| !kind.ends_with("coordinator") || kind.starts_with("cut off")));
    }

    #[test]
    fn a_schedule_may_be_of_some_kinds_only() {
        let only = vec!["fill memory".to_owned(), "mute".to_owned()];
        let options = Options { only: only.clone(), ..Options::default() };
        let drawn: BTreeSet<&str> =
            Schedule::new(&options, 2).unwrap().take(50).map(|action| action.fault.kind()).collect();
        assert_eq!(drawn, only.iter().map(String::as_str).collect());
    }

    #[test]
    fn only_beyond_the_promise_are_more_nodes_hurt_than_can_be_lost() {
        assert!(schedule(1, true).iter().any(|action| action.fault.nodes().len() == 3));
    }
}
