//! The coordinator: membership by leases, views by compare-and-swap, recovery of lost roles (protocol, section 4).

use cluster::{ClusterId, ClusterMap, HostId, NodeId, Profile};
use wire::message::{FromCoordinator, ToCoordinator};

use crate::{Now, Timing};

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
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorAction {
    /// Send to a node; drop it if it is not connected.
    Send {
        /// The process.
        to: HostId,
        /// The message.
        message: FromCoordinator,
    },
}

/// The embedded coordinator.
pub struct Coordinator {
    config: CoordinatorConfig,
}

impl Coordinator {
    /// A coordinator that waits for its nodes.
    #[must_use]
    pub fn new(config: CoordinatorConfig) -> Self { Self { config } }

    /// A message of `from`. `Register` names the process; later messages on the connection come from the same.
    pub fn handle(&mut self, now: Now, from: HostId, message: ToCoordinator) { let _ = (now, from, message); }

    /// The connection to `host` broke. Says nothing about the process.
    pub fn connection_lost(&mut self, now: Now, host: HostId) { let _ = (now, host); }

    /// The process is known to have ended (its parent saw it).
    pub fn exited(&mut self, now: Now, node: NodeId) { let _ = (now, node); }

    /// Timers. To be called at `next_deadline`, or more often.
    pub fn tick(&mut self, now: Now) { let _ = now; }

    /// When `tick` has something to do, at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> cluster::Time { cluster::Time(u64::MAX) }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<CoordinatorAction> { let _ = &self.config; None }

    /// The map, once the cluster has formed.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> { None }
}
