//! The embedded coordinator inside `gestalt local`.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use cluster::{ClusterId, NodeId};
use proto::CoordinatorConfig;
use server::{CoordinatorHandle, CoordinatorServer, CoordinatorServerConfig};

use crate::exit::Exit;
use crate::local::Plan;
use crate::serve::timing;

/// A running coordinator.
pub struct Coordinator {
    server: CoordinatorHandle,
}

impl Coordinator {
    /// Starts one for the nodes of `plan`.
    ///
    /// # Errors
    /// `Usage` if it cannot listen.
    pub fn start(plan: &Plan) -> Result<Self, Exit> {
        let config = CoordinatorServerConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            http: Some(plan.http),
            cluster: CoordinatorConfig {
                cluster: fresh_id(),
                profile: plan.profile,
                nodes: u16::try_from(plan.nodes.len()).map_err(Exit::usage)?,
                shards: plan.workers,
                groups: plan.groups,
                timing: timing(plan.lease),
            },
        };
        let server = CoordinatorServer::start(config).map_err(Exit::usage)?;
        Ok(Self { server })
    }

    /// Where nodes connect.
    pub fn address(&self) -> SocketAddr {
        self.server.addr()
    }

    /// A node's process is known to have ended.
    pub fn exited(&self, node: NodeId) {
        self.server.exited(node);
    }
}

/// An id that no other cluster has, so that their nodes cannot meet by mistake; also the seed of the key hash.
fn fresh_id() -> ClusterId {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    ClusterId(nanos ^ (u64::from(std::process::id()) << 48) | 1)
}
