//! What the members of a host act in: its configuration, the cluster's code, the pace of background work, and the outbox.

use cluster::Protection;
use types::{ClusterMap, HostId};

use super::driver::HostConfig;
use crate::Now;
use crate::outbox::{Context, Means, Outbox};
use crate::pace::Pace;

/// See the module.
pub(super) struct Surroundings {
    config: HostConfig,
    /// Once there is a map.
    protection: Option<Protection>,
    groups: usize,
    pace: Pace,
    out: Outbox,
}

impl Surroundings {
    pub(super) fn new(config: HostConfig) -> Self {
        let out = Outbox::new(config.host.node);
        Self { config, protection: None, groups: 0, pace: Pace::default(), out }
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

    /// The first map: without a code there is no member.
    pub(super) fn begin(&mut self, map: &ClusterMap) {
        self.protection = Some(Protection::of(map.profile));
        self.config.store.cluster = map.cluster;
        self.groups = map.groups.len();
        self.pace.set(&map.layout, map.shards);
    }

    /// A newer map.
    pub(super) fn adopt(&mut self, map: &ClusterMap) {
        self.pace.set(&map.layout, map.shards);
    }

    /// What a member is made with; none before there is a map.
    pub(super) fn means(&self) -> Option<Means<'_>> {
        let HostConfig { store, budget, rules, .. } = &self.config;
        Some(Means { config: store, budget, protection: self.protection.as_ref()?, rules: *rules })
    }

    /// What a member handles one event with; none before there is a map, and then there are no members.
    pub(super) fn context(&mut self, now: Now) -> Option<Context<'_>> {
        Some(Context {
            now,
            timing: &self.config.timing,
            limits: &self.config.limits,
            rules: self.config.rules,
            protection: self.protection.as_ref()?,
            groups: self.groups,
            pace: &mut self.pace,
            out: &mut self.out,
        })
    }
}
