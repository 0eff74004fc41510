//! Which faults come when: drawn from the seed alone.

use std::fmt;
use std::time::Duration;

use crate::sim::Rng;

use super::margin::Hurt;
use super::options::Options;

/// What is done to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The processes are killed at once, and started again with empty memory at the end.
    Kill(Vec<u16>),
    /// The processes are stopped (SIGSTOP), and go on at the end (SIGCONT).
    Pause(Vec<u16>),
    /// The nodes hear nothing of the others, and the others nothing of them. Among themselves they talk; clients reach all.
    CutOff(Vec<u16>, From),
    /// The node does not hear the others, which hear it.
    Deaf(u16),
    /// The node hears the others, which do not hear it.
    Mute(u16),
    /// What `from` sends to `to` is dropped; the other direction works.
    OneWay {
        /// Who sends.
        from: u16,
        /// Who should hear.
        to: u16,
    },
    /// So many of 100 packets to the node are lost.
    Lose(u16, u8),
    /// What the node and the others send each other takes so much longer.
    Delay(u16, Duration),
    /// In what the node and the others send each other, a bit of about so many bytes is flipped.
    Corrupt(u16, u64),
    /// The coordinator's process is stopped, and goes on at the end.
    PauseCoordinator,
    /// The coordinator and the nodes do not hear each other.
    CutCoordinator,
    /// Clients write until memory is full, and remove it all at the end.
    Fill,
}

/// From whom nodes are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From the other nodes and the coordinator.
    Everyone,
    /// From the other nodes.
    Nodes,
    /// From the coordinator.
    Coordinator,
}

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
}

/// What an action takes away from the groups for as long as it lasts, and a while longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// What these nodes may cost when they are hurt so.
    Nodes(Vec<u16>, Hurt),
    /// Nobody can say: nothing else may happen meanwhile.
    Everything,
}

impl Fault {
    /// All kinds.
    pub const KINDS: [&'static str; 15] = [
        "kill",
        "kill several",
        "pause",
        "cut off",
        "cut off from nodes",
        "cut off from coordinator",
        "deaf",
        "mute",
        "one way",
        "packet loss",
        "delay",
        "corruption",
        "pause coordinator",
        "cut coordinator",
        "fill memory",
    ];

    /// The nodes that it is about.
    #[must_use]
    pub fn nodes(&self) -> Vec<u16> {
        match self {
            Self::Kill(nodes) | Self::Pause(nodes) | Self::CutOff(nodes, _) => nodes.clone(),
            Self::Deaf(node)
            | Self::Mute(node)
            | Self::Lose(node, _)
            | Self::Delay(node, _)
            | Self::Corrupt(node, _) => vec![*node],
            Self::OneWay { from, to } => vec![*from, *to],
            Self::PauseCoordinator | Self::CutCoordinator | Self::Fill => Vec::new(),
        }
    }

    /// What it takes away.
    #[must_use]
    pub fn cost(&self) -> Cost {
        match self {
            // Each side has the other's parities removed, and the coordinator hears both.
            Self::CutOff(nodes, From::Nodes) if nodes.len() > 1 => Cost::Everything,
            // All leases run out at once.
            Self::CutCoordinator => Cost::Everything,
            Self::Kill(nodes) => Cost::Nodes(nodes.clone(), Hurt::Dead),
            Self::OneWay { .. } | Self::Lose(..) | Self::Delay(..) | Self::Corrupt(..) => {
                Cost::Nodes(self.nodes(), Hurt::Sick)
            }
            _ => Cost::Nodes(self.nodes(), Hurt::Away),
        }
    }

    /// Whether the coordinator itself is hurt.
    #[must_use]
    pub fn hurts_coordinator(&self) -> bool {
        matches!(self, Self::PauseCoordinator | Self::CutCoordinator)
    }

    /// Its kind, for counting.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kill(nodes) if nodes.len() > 1 => "kill several",
            Self::Kill(_) => "kill",
            Self::Pause(_) => "pause",
            Self::CutOff(_, From::Everyone) => "cut off",
            Self::CutOff(_, From::Nodes) => "cut off from nodes",
            Self::CutOff(_, From::Coordinator) => "cut off from coordinator",
            Self::Deaf(_) => "deaf",
            Self::Mute(_) => "mute",
            Self::OneWay { .. } => "one way",
            Self::Lose(..) => "packet loss",
            Self::Delay(..) => "delay",
            Self::Corrupt(..) => "corruption",
            Self::PauseCoordinator => "pause coordinator",
            Self::CutCoordinator => "cut coordinator",
            Self::Fill => "fill memory",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneWay { from, to } => write!(f, "one way: {to} does not hear {from}"),
            Self::Lose(node, percent) => write!(f, "packet loss of {percent} % at {node}"),
            Self::Delay(node, by) => write!(f, "delay of {} ms at {node}", by.as_millis()),
            Self::Corrupt(node, every) => write!(f, "corruption: a bit of {every} bytes at {node}"),
            other => {
                let nodes: Vec<String> = other.nodes().iter().map(ToString::to_string).collect();
                write!(f, "{} {}", other.kind(), nodes.join(" and "))
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, after, lasts) = (self.number, self.after.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{number:>4}  +{after:.2}s  {} for {lasts:.2}s", self.fault)
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
    beyond: bool,
    fill: bool,
    only: Vec<String>,
    drawn: usize,
}

/// The purpose of the random numbers drawn here.
const PURPOSE: u64 = 0x6368_616f_7301;

/// Weights of the kinds, in the order of [`Schedule::fault`].
const WEIGHTS: [u32; 12] = [24, 16, 12, 5, 5, 6, 7, 6, 9, 6, 2, 6];

impl Schedule {
    /// The one that belongs to the options' seed; `losses` is how many nodes the profile can lose.
    ///
    /// # Errors
    /// One line if there is nothing to draw.
    pub fn new(options: &Options, losses: u16) -> Result<Self, String> {
        let several = |kind: &String| kind == "kill several";
        if losses < 2 && !options.beyond && !options.only.is_empty() && options.only.iter().all(several) {
            return Err(format!("several nodes cannot be killed where {losses} may be lost: give --beyond"));
        }
        Ok(Self {
            rng: Rng::new(options.seed, PURPOSE),
            lease: options.lease,
            nodes: options.nodes,
            losses: losses.clamp(1, options.nodes),
            beyond: options.beyond,
            fill: options.fill || options.only.iter().any(|kind| kind == Fault::Fill.kind()),
            only: options.only.clone(),
            drawn: 0,
        })
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
        nodes.truncate(several as usize);
        nodes.sort_unstable();
        let (percent, delay_ms, every) = (rng.range(2, 40), rng.tailed(120), rng.range(3_000, 200_000));
        let from = rng.pick(&[From::Everyone, From::Everyone, From::Nodes, From::Coordinator]);
        match rng.weighted(&WEIGHTS) {
            0 => Fault::Kill(nodes),
            1 => Fault::Pause(nodes),
            2 => Fault::CutOff(nodes, from),
            3 => Fault::Deaf(one),
            4 => Fault::Mute(one),
            5 => Fault::OneWay { from: one, to: two },
            6 => Fault::Lose(one, percent as u8),
            7 => Fault::Delay(one, Duration::from_millis(1 + delay_ms)),
            8 => Fault::Corrupt(one, every),
            9 => Fault::PauseCoordinator,
            10 => Fault::CutCoordinator,
            _ if self.fill => Fault::Fill,
            _ => Fault::Kill(vec![one]),
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
        Some(Action { number: self.drawn, after, fault, lasts })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn schedule(seed: u64, beyond: bool) -> Vec<Action> {
        let options = Options { seed, beyond, fill: true, ..Options::default() };
        Schedule::new(&options, 2).unwrap().take(500).collect()
    }

    #[test]
    fn a_seed_is_a_schedule() {
        assert_eq!(schedule(7, false), schedule(7, false));
        assert_ne!(schedule(7, false), schedule(8, false));
    }

    #[test]
    fn every_kind_comes_and_names_distinct_nodes_of_the_cluster() {
        let actions = schedule(1, false);
        let kinds: BTreeSet<&str> = actions.iter().map(|action| action.fault.kind()).collect();
        assert_eq!(kinds, BTreeSet::from(Fault::KINDS));
        for action in &actions {
            let nodes = action.fault.nodes();
            let distinct: BTreeSet<u16> = nodes.iter().copied().collect();
            assert!(nodes.iter().all(|node| *node < 7) && nodes.len() == distinct.len(), "{action}");
            assert!(nodes.len() <= 2, "{action}");
        }
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
