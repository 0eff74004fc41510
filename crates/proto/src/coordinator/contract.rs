//! What a coordinator is started with, and what its driver has to do.

use types::{ClusterId, HostId, LossPolicy, Profile};
use wire::message::FromCoordinator;
use wire::record::Record;

use crate::{Impossible, Rules, Timing};

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct CoordinatorConfig {
    /// Identity of the cluster to form.
    pub cluster: ClusterId,
    /// Protection of all groups.
    pub profile: Profile,
    /// How many nodes must register before the cluster forms.
    pub nodes: u16,
    /// Workers a node.
    pub shards: u16,
    /// Groups in all.
    pub groups: u32,
    /// Time-outs, the same as the nodes'.
    pub timing: Timing,
    /// The rules that it keeps: all of them, unless a test says otherwise.
    pub rules: Rules,
    /// Where its records are.
    pub records: RecordKeeping,
    /// What becomes of lost data roles, unless operators say otherwise later.
    pub on_loss: LossPolicy,
}

/// Where a coordinator's records outlive it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordKeeping {
    /// In a store that the driver writes to: it says when a [`CoordinatorAction::Record`] is written by going on.
    #[default]
    Stored,
    /// With the nodes, which are sent them: a [`CoordinatorAction::Record`] says that it is in force already.
    Kept,
}

/// What the driver has to do, in this order.
///
/// Whatever comes after a `Record` may be done only when that record is known to be written, the answer of
/// [`super::Coordinator::administer`] included: what nobody has recorded nobody may have been told. Records are written in order; one
/// that cannot be written ends this coordinator, and nothing that comes after it may be done. Where the nodes keep them
/// ([`RecordKeeping::Kept`]) the driver passes over them.
#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorAction {
    /// Send to a node; drop it if it is not connected.
    Send {
        /// The process.
        to: HostId,
        /// The message.
        message: FromCoordinator,
    },
    /// Close the connection of this process: it has sent what cannot be. Waits for no record.
    Close {
        /// The process.
        peer: HostId,
        /// What it has sent.
        why: Impossible,
    },
    /// Write this down, under [`Record::key`].
    Record(Record),
    /// This coordinator decides nothing any more: it is cut off from most nodes, or another one has followed it. The next one
    /// may do better.
    Resign,
}
