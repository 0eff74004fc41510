//! What is done to a cluster, and what it may cost.

use std::fmt;
use std::time::Duration;

use crate::margin::Hurt;

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
    /// The coordinator's process is killed, and started again at the end: it knows nothing, and asks the nodes.
    KillCoordinator,
    /// Clients write until memory is full, and remove it all at the end.
    Fill,
    /// The system gives the node's process little more memory than it has, and clients write: it is killed when it needs more.
    /// At the end it gets its share again, and is started if it is dead.
    Squeeze(u16),
    /// The node whose process presides, whichever it is by then.
    Leader(Deed),
    /// etcd is killed, and started with its data at the end.
    KillEtcd,
    /// etcd is stopped, and goes on at the end.
    PauseEtcd,
    /// etcd and the nodes do not hear each other.
    CutEtcd,
    /// One member of etcd, of several: the others can do without it.
    Member(u16, Ill),
}

/// What is done to a member of etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ill {
    /// It is killed, and started with its data at the end.
    Kill,
    /// It is stopped, and goes on at the end.
    Pause,
    /// It and the other members do not hear each other. Nodes reach it all the time: it answers what it knows.
    CutOff,
}

impl Ill {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kill, Self::Pause, Self::CutOff];
}

/// What is done to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// As [`Fault::Kill`].
    Kill,
    /// As [`Fault::Pause`].
    Pause,
    /// As [`Fault::CutOff`].
    CutOff(From),
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Kill,
        Self::Pause,
        Self::CutOff(From::Everyone),
        Self::CutOff(From::Nodes),
        Self::CutOff(From::Coordinator),
    ];
}

/// From whom nodes are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From the other nodes and the coordinator.
    Everyone,
    /// From the other nodes.
    Nodes,
    /// From the coordinator, or from the etcd over which it is elected.
    Coordinator,
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
    pub const KINDS: [&'static str; 29] = [
        "kill",
        "kill several",
        "pause",
        "cut off",
        "cut off from nodes",
        "cut several off from nodes",
        "cut off from coordinator",
        "deaf",
        "mute",
        "one way",
        "packet loss",
        "delay",
        "corruption",
        "pause coordinator",
        "cut coordinator",
        "kill coordinator",
        "fill memory",
        "squeeze",
        "kill leader",
        "pause leader",
        "cut leader off",
        "cut leader off from nodes",
        "cut leader off from etcd",
        "kill etcd",
        "pause etcd",
        "cut etcd",
        "kill etcd member",
        "pause etcd member",
        "cut etcd member off",
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
            | Self::Corrupt(node, _)
            | Self::Squeeze(node) => vec![*node],
            Self::OneWay { from, to } => vec![*from, *to],
            Self::PauseCoordinator | Self::CutCoordinator | Self::KillCoordinator | Self::Fill => Vec::new(),
            Self::Leader(_) | Self::KillEtcd | Self::PauseEtcd | Self::CutEtcd | Self::Member(..) => {
                Vec::new()
            }
        }
    }

    /// What it is once it is known which node presides; none if it has to be known and nobody does.
    #[must_use]
    pub fn aimed_at(&self, leader: impl FnOnce() -> Option<u16>) -> Option<Self> {
        let Self::Leader(deed) = self else { return Some(self.clone()) };
        let leader = vec![leader()?];
        Some(match deed {
            Deed::Kill => Self::Kill(leader),
            Deed::Pause => Self::Pause(leader),
            Deed::CutOff(from) => Self::CutOff(leader, *from),
        })
    }

    /// What it takes away. Without etcd nobody is taken for lost, and nobody's memory is: that costs nothing.
    #[must_use]
    pub fn cost(&self) -> Cost {
        match self {
            // Each side has the other's parities removed, and the coordinator hears both.
            Self::CutOff(nodes, From::Nodes) if nodes.len() > 1 => Cost::Nodes(nodes.clone(), Hurt::Torn),
            // All leases run out at once.
            Self::CutCoordinator => Cost::Everything,
            Self::Kill(nodes) => Cost::Nodes(nodes.clone(), Hurt::Dead),
            Self::Squeeze(node) => Cost::Nodes(vec![*node], Hurt::Dead),
            Self::OneWay { .. } | Self::Lose(..) | Self::Delay(..) | Self::Corrupt(..) => {
                Cost::Nodes(self.nodes(), Hurt::Sick)
            }
            _ => Cost::Nodes(self.nodes(), Hurt::Away),
        }
    }

    /// Whether the coordinator itself is hurt, or its etcd.
    #[must_use]
    pub fn hurts_coordinator(&self) -> bool {
        let is_etcd = matches!(self, Self::KillEtcd | Self::PauseEtcd | Self::CutEtcd);
        is_etcd || matches!(self, Self::PauseCoordinator | Self::CutCoordinator | Self::KillCoordinator)
    }

    /// Whether it is about the coordinator or its etcd: one at a time, so that no more members of etcd are away than it can do
    /// without, unless all are.
    #[must_use]
    pub fn is_about_coordination(&self) -> bool {
        self.hurts_coordinator() || matches!(self, Self::Member(..))
    }

    /// Whether clients write a lot meanwhile.
    #[must_use]
    pub fn fills(&self) -> bool {
        matches!(self, Self::Fill | Self::Squeeze(_))
    }

    /// Its kind, for counting.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kill(nodes) if nodes.len() > 1 => "kill several",
            Self::Kill(_) => "kill",
            Self::Pause(_) => "pause",
            Self::CutOff(_, From::Everyone) => "cut off",
            Self::CutOff(nodes, From::Nodes) if nodes.len() > 1 => "cut several off from nodes",
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
            Self::KillCoordinator => "kill coordinator",
            Self::Fill => "fill memory",
            Self::Squeeze(_) => "squeeze",
            Self::Leader(deed) => match deed {
                Deed::Kill => "kill leader",
                Deed::Pause => "pause leader",
                Deed::CutOff(From::Everyone) => "cut leader off",
                Deed::CutOff(From::Nodes) => "cut leader off from nodes",
                Deed::CutOff(From::Coordinator) => "cut leader off from etcd",
            },
            Self::KillEtcd => "kill etcd",
            Self::PauseEtcd => "pause etcd",
            Self::CutEtcd => "cut etcd",
            Self::Member(_, ill) => match ill {
                Ill::Kill => "kill etcd member",
                Ill::Pause => "pause etcd member",
                Ill::CutOff => "cut etcd member off",
            },
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
            Self::Member(member, _) => write!(f, "{} {member}", self.kind()),
            other => {
                let nodes: Vec<String> = other.nodes().iter().map(ToString::to_string).collect();
                write!(f, "{} {}", other.kind(), nodes.join(" and "))
            }
        }
    }
}
