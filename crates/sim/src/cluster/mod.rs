//! A cluster as it is at one moment: nodes with their hosts, coordinators, and what these have recorded.
//!
//! Checks and faults look at it; what happens in it is routed by the world.

pub(crate) mod coordinators;
pub(crate) mod inspect;
pub(crate) mod nodes;
pub(crate) mod process;
pub(crate) mod scrub;
pub(crate) mod store;

use types::{ClusterMap, RoleStatus};

use crate::stage::Stage;
use coordinators::Coordinators;
use nodes::Nodes;
use store::RecordStore;

/// The processes, and the store of the coordinators' records.
pub(crate) struct Cluster {
    pub nodes: Nodes,
    pub coordinators: Coordinators,
    pub store: RecordStore,
}

impl Cluster {
    /// Processes that are about to start.
    pub(crate) fn new(stage: &mut Stage) -> Self {
        Self {
            nodes: Nodes::new(stage),
            coordinators: Coordinators::new(stage),
            store: RecordStore::default(),
        }
    }

    /// The map as it is recorded, once the cluster has formed.
    pub(crate) fn map(&self) -> Option<&ClusterMap> {
        self.store.map()
    }

    /// The map as the elected coordinator has decided; it may not be recorded yet.
    pub(crate) fn decided(&self) -> Option<&ClusterMap> {
        self.coordinators.leading()?.coordinator.map()
    }

    /// Whether the loss of a role waits for somebody to accept it.
    pub(crate) fn has_lost_roles(&self) -> bool {
        let views = self.map().into_iter().flat_map(|map| &map.groups);
        views.flat_map(|view| &view.data).any(|role| role.status == RoleStatus::Lost)
    }
}
