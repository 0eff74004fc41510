//! A process at the door of its cluster: what it says of itself, and what follows from what a coordinator tells it.
//!
//! A process that serves ends only on proof about itself: its own cluster, under a coordinator that is not older than any it
//! has heard, has fenced it or given its place away. Any other coordinator that does not know it, knows another cluster or
//! knows nothing is foreign: an error in the log, and nothing else. A process that serves nothing yet has nothing to lose, and
//! ends with the reason.

mod keeper;
mod place;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use types::{ClusterId, ClusterMap, Epoch, Expectations, Forming, HostId, MapChanges, NodeInfo, Time};
use wire::message::{Electors, FromCoordinator, KeptRecords, Refused, Registration, ToCoordinator};

use crate::Rules;
use keeper::{Keeper, cluster_of};
use place::{Patience, Place};

/// See the module. One a process, for all its connections to coordinators, one after the other.
#[derive(Debug)]
pub struct Entrance {
    rules: Rules,
    expect: Expectations,
    /// The cluster that this process serves.
    serves: Option<ClusterId>,
    /// Whether the coordinator of this connection has sent a map of that cluster.
    is_admitted: bool,
    /// The newest coordinator that was heard here.
    newest: Epoch,
    place: Place,
    keeper: Keeper,
}

/// What follows from a coordinator's message.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The message is for the workers, and for whoever asked.
    Deliver(FromCoordinator),
    /// This is to be answered.
    Answer(ToCoordinator),
    /// The coordinator lives and counts this process as one of its nodes; true if it had to wait for that.
    Alive(bool),
    /// The coordinator lives, and waits itself.
    Waits,
    /// The coordinator lives, counts this process as one of its nodes, and waits for others; true if this one had to wait for that.
    Forms(bool, Forming),
    /// Another process has the place: the wait begins, and lasts for so many microseconds at most.
    WaitForPlace(u64),
    /// Nothing follows.
    Nothing,
    /// The coordinator is not for this process, which goes on without it.
    Foreign(String),
    /// The process has to end.
    End(End),
}

/// Why a process has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The cluster will not have it.
    Refused(String),
    /// The coordinator's cluster is another one than this process is meant for.
    WrongCluster(String),
}

impl Entrance {
    /// Of a process that serves nothing yet.
    #[must_use]
    pub fn new(expect: Expectations, rules: Rules) -> Self {
        let (place, keeper) = (Place::default(), Keeper::default());
        Self { rules, expect, serves: None, is_admitted: false, newest: Epoch(0), place, keeper }
    }

    /// A connection to a coordinator stands: what to say first. `map`: version of the map that this process has, 0 = none.
    pub fn knock(&mut self, info: NodeInfo, map: u64) -> Registration {
        self.is_admitted = false;
        self.registration(info, map)
    }

    /// Whether this heartbeat is to be a registration instead.
    pub fn asks_again(&mut self) -> bool {
        self.place.asks_again()
    }

    /// How this process introduces itself.
    #[must_use]
    pub fn registration(&self, info: NodeInfo, map: u64) -> Registration {
        let holds = self.serves.or(self.keeper.cluster());
        Registration { info, expect: self.expect, holds, promised: self.keeper.promised(), map }
    }

    /// What this process keeps of a coordinator whose only memory is the nodes': of which one, how many records, and of whom one
    /// that goes on from them has to hear more than half, set by set. For the simulator.
    #[must_use]
    pub fn electors(&self) -> Option<(Epoch, u64, &[Electors])> {
        self.keeper.electors()
    }

    /// Whether this process serves a cluster.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.serves.is_some()
    }

    /// What follows from `message`.
    pub fn receive(&mut self, now: Time, message: FromCoordinator) -> Verdict {
        let verdict = self.judge(now, message);
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
        verdict
    }

    fn judge(&mut self, now: Time, message: FromCoordinator) -> Verdict {
        match message {
            FromCoordinator::Alive => Verdict::Alive(self.place.admitted()),
            FromCoordinator::Waiting => Verdict::Waits,
            FromCoordinator::Forming(forming) => self.forming(forming),
            FromCoordinator::Refused(refused) => self.refused(refused),
            FromCoordinator::Occupied { by, peer, lease_us, cluster, epoch } => {
                self.occupied(now, by, peer, lease_us, cluster, epoch)
            }
            FromCoordinator::Map(map) => self.map(map),
            FromCoordinator::Changes(changes) => self.changes(changes),
            FromCoordinator::Keep { epoch, position, electors, whole, records } => {
                self.keep(whole, KeptRecords { epoch, position, electors, records })
            }
            FromCoordinator::Recall { epoch } => self.recall(epoch),
            FromCoordinator::Admin { .. } => Verdict::Deliver(message),
            FromCoordinator::View(_)
            | FromCoordinator::Fence { .. }
            | FromCoordinator::Settle { .. }
            | FromCoordinator::HandOver { .. }
            | FromCoordinator::Shares { .. }
            | FromCoordinator::Confirm { .. } => {
                // Who has shown no map of this cluster on this connection may be the coordinator of another one.
                if !self.is_admitted {
                    return Verdict::Nothing;
                }
                // A view has no epoch, and needs none: an older one is not taken.
                match message.epoch().is_none_or(|epoch| self.obey(epoch)) {
                    true => Verdict::Deliver(message),
                    false => Verdict::Nothing,
                }
            }
        }
    }

    /// Whether the coordinator of `epoch` commands here: not if a later one has been heard.
    fn obey(&mut self, epoch: Epoch) -> bool {
        let is_newest = epoch >= self.newest;
        self.newest = self.newest.max(epoch);
        self.rules.command_needs_newest_epoch(is_newest)
    }

    /// A coordinator without a cluster is nobody to whom has one.
    fn forming(&mut self, forming: Forming) -> Verdict {
        match self.serves {
            None => Verdict::Forms(self.place.admitted(), forming),
            Some(_) => Verdict::Waits,
        }
    }

    fn refused(&mut self, refused: Refused) -> Verdict {
        let Refused { cluster, epoch, fenced, reason } = refused;
        if self.serves.is_none() {
            return Verdict::End(End::Refused(reason));
        }
        if fenced && self.is_own(cluster, epoch) {
            return Verdict::End(End::Refused(reason));
        }
        Verdict::Foreign(reason)
    }

    /// Whether the coordinator that speaks is of the cluster that this process serves, and not older than one it has heard.
    fn is_own(&self, cluster: Option<ClusterId>, epoch: Epoch) -> bool {
        cluster.is_some() && cluster == self.serves && epoch >= self.newest.max(self.keeper.promised())
    }

    /// Process `by` has the id of this one: it waits, and ends if that one lives.
    fn occupied(
        &mut self,
        now: Time,
        by: HostId,
        peer: SocketAddr,
        lease_us: u64,
        cluster: Option<ClusterId>,
        epoch: Epoch,
    ) -> Verdict {
        let taken = format!("{} is already here as another process ({by}, at {peer})", by.node);
        if self.serves.is_some() {
            return match self.is_own(cluster, epoch) {
                true => Verdict::End(End::Refused(format!("{taken}, which has taken its place"))),
                // The one before it has said so when this process waited for its place, and it comes late.
                false if cluster == self.serves => Verdict::Nothing,
                false => Verdict::Foreign(taken),
            };
        }
        match self.place.occupied(now, lease_us, epoch) {
            Patience::Begins(most_us) => Verdict::WaitForPlace(most_us),
            Patience::Lasts => Verdict::Nothing,
            Patience::Ends => {
                let remedy = "stop it first, or give this one another --node";
                Verdict::End(End::Refused(format!("{taken}, and that one lives: {remedy}")))
            }
        }
    }

    /// What has changed of a map that this process has, so of its own cluster.
    fn changes(&mut self, changes: Arc<MapChanges>) -> Verdict {
        match self.serves {
            // It has asked for the whole map.
            None => Verdict::Nothing,
            Some(own) if own != changes.cluster => Verdict::Foreign(format!(
                "this node is meant for {own}, the coordinator has {}",
                changes.cluster
            )),
            Some(_) => {
                self.place.admitted();
                self.is_admitted = true;
                Verdict::Deliver(FromCoordinator::Changes(changes))
            }
        }
    }

    fn map(&mut self, map: Arc<ClusterMap>) -> Verdict {
        if let Err(text) = self.check(&map) {
            return match self.serves {
                Some(_) => Verdict::Foreign(text),
                None => Verdict::End(End::WrongCluster(text)),
            };
        }
        self.place.admitted();
        self.serves = Some(map.cluster);
        self.is_admitted = true;
        Verdict::Deliver(FromCoordinator::Map(map))
    }

    /// That `map` is of the cluster that this process is meant for.
    fn check(&self, map: &ClusterMap) -> Result<(), String> {
        if let Some(wanted) = self.serves.or(self.expect.cluster).filter(|wanted| *wanted != map.cluster) {
            return Err(format!("this node is meant for {wanted}, the coordinator has {}", map.cluster));
        }
        let has = map.default_pool().profile;
        if let Some(wanted) = self.expect.profile.filter(|wanted| *wanted != has) {
            return Err(format!("this node is meant for profile {wanted}, the cluster has {has}"));
        }
        let (mine, theirs) = (self.expect.shards, map.shards);
        if mine != 0 && mine != theirs {
            return Err(format!(
                "this node has {mine} workers, the cluster's nodes have {theirs}: set workers = {theirs}"
            ));
        }
        Ok(())
    }

    fn keep(&mut self, whole: bool, new: KeptRecords) -> Verdict {
        let (epoch, position) = (new.epoch, new.position);
        // Only a head names its cluster; but whoever sends records sends all of them first, the head among them.
        let foreign =
            new.records.iter().filter_map(cluster_of).find(|of| self.serves.is_some_and(|own| own != *of));
        if let Some(cluster) = foreign {
            return Verdict::Foreign(format!("the coordinator has {cluster}"));
        }
        match self.keeper.keep(whole, new) {
            true => Verdict::Answer(ToCoordinator::Kept { epoch, position }),
            false => Verdict::Nothing,
        }
    }

    fn recall(&mut self, epoch: Epoch) -> Verdict {
        // Of any cluster or none: a coordinator that knows nothing has none to show yet.
        let kept = self.keeper.recall(epoch);
        kept.map_or(Verdict::Nothing, |kept| Verdict::Answer(ToCoordinator::Recalled { epoch, kept }))
    }

    /// What holds after every message.
    fn check_invariants(&self) {
        assert!(!self.is_admitted || self.serves.is_some(), "only who serves a cluster is commanded");
        self.keeper.check_invariants();
    }
}
