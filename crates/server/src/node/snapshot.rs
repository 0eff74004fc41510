//! What one worker knows at one moment, for the other threads.

use std::collections::BTreeMap;

use proto::{
    GraphStats, HostLatencies, HostMemory, HostStats, LostKey, NamespaceUse, ProbeReport, RoleBytes,
    ScrubFinding, SeenLink, WrongStripe,
};
use types::{HostId, NamespaceId};

use crate::clients::latency::RequestLatencies;

/// What one worker knows at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerSnapshot {
    pub shard: u16,
    pub host: HostStats,
    pub graphs: Box<GraphStats>,
    /// How fast other nodes are, and what planners make of it.
    pub seen_links: Vec<SeenLink>,
    pub graph_links: Box<graph::Links>,
    /// What has come of measuring links on purpose.
    pub probe: ProbeReport,
    pub roles: Vec<RoleBytes>,
    pub namespaces: BTreeMap<NamespaceId, NamespaceUse>,
    pub scrub_findings: Vec<ScrubFinding>,
    pub lost_keys: Vec<LostKey>,
    pub wrong_keys: Vec<LostKey>,
    pub wrong_stripes: Vec<WrongStripe>,
    /// Commands of its clients, keys where they have several, without an answer.
    pub open_requests: usize,
    pub buffer_bytes: usize,
    pub memory: WorkerMemory,
    pub links: Vec<LinkSnapshot>,
    pub requests: Box<RequestLatencies>,
    pub waits: Box<HostLatencies>,
}

/// One link at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSnapshot {
    pub peer: HostId,
    pub unsent_bytes: usize,
}

/// What one worker can name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerMemory {
    pub host: HostMemory,
    /// Buffers of clients' connections, used or not.
    pub client_bytes: usize,
    /// Buffers of links to other nodes.
    pub link_bytes: usize,
}
