//! What the members of a host act in: its configuration, the cluster's code, the pace of background work, and the outbox.

use codec::Code;
use types::{ClusterMap, HostId};

use super::driver::HostConfig;
use crate::Now;
use crate::outbox::{Context, Outbox};
use crate::pace::Pace;

/// See the module.
pub(super) struct Surroundings {
    config: HostConfig,
    /// Once there is a map.
    code: Option<Code>,
    groups: usize,
    pace: Pace,
    out: Outbox,
}

impl Surroundings {
    pub(super) fn new(config: HostConfig) -> Self {
        let out = Outbox::new(config.host.node);
        Self { config, code: None, groups: 0, pace: Pace::default(), out }
    }

    pub(super) fn config(&self) -> &HostConfig {
        &self.config
    }

    /// The process.
    pub(super) fn host(&self) -> HostId {
        self.config.host
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    pub(super) fn out(&mut self) -> &mut Outbox {
        &mut self.out
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.out
    }

    /// The first map: without a code there is no member. Whether its profile has one.
    pub(super) fn begin(&mut self, map: &ClusterMap) -> bool {
        match crate::code_of(map.profile) {
            Ok(code) => self.code = Some(code),
            Err(error) => {
                tracing::error!(%error, profile = %map.profile, "the map's profile has no code");
                return false;
            }
        }
        self.config.store.cluster = map.cluster;
        self.groups = map.groups.len();
        self.pace.set(&map.layout, map.shards);
        true
    }

    /// A newer map.
    pub(super) fn adopt(&mut self, map: &ClusterMap) {
        self.pace.set(&map.layout, map.shards);
    }

    /// What a member handles one event with; none before there is a map, and then there are no members.
    pub(super) fn context(&mut self, now: Now) -> Option<Context<'_>> {
        Some(Context {
            now,
            timing: &self.config.timing,
            limits: &self.config.limits,
            code: self.code.as_ref()?,
            groups: self.groups,
            pace: &mut self.pace,
            out: &mut self.out,
        })
    }
}
