//! What the members of a host act in: its configuration, the pools with their codes, the pace of background work, and the outbox.

use std::sync::Arc;

use cluster::Codes;
use types::{Catalog, ClusterMap, GroupId, HostId};

use super::driver::HostConfig;
use crate::Now;
use crate::objects::Meter;
use crate::outbox::{Context, Means, Outbox};
use crate::pace::Pace;

/// See the module.
pub(crate) struct Surroundings {
    config: HostConfig,
    /// The pools and namespaces, once there is a map.
    catalog: Option<Arc<Catalog>>,
    /// How often they have changed, with the first time.
    edition: u64,
    codes: Codes,
    pace: Pace,
    out: Outbox,
    meter: Meter,
}

impl Surroundings {
    pub(crate) fn new(config: HostConfig) -> Self {
        let out = Outbox::new(config.host.node);
        let (codes, pace, meter) = (Codes::default(), Pace::default(), Meter::default());
        Self { config, catalog: None, edition: 0, codes, pace, out, meter }
    }

    pub(crate) fn config(&self) -> &HostConfig {
        &self.config
    }

    /// The process.
    pub(crate) fn host(&self) -> HostId {
        self.config.host
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    pub(crate) fn pace_mut(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// How fast other nodes are.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(crate) fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }

    pub(crate) fn out(&mut self) -> &mut Outbox {
        &mut self.out
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.out
    }

    /// The first map: without a code there is no member.
    pub(crate) fn begin(&mut self, map: &ClusterMap) {
        self.config.store.cluster = map.cluster;
        self.adopt(map);
    }

    /// A newer map.
    pub(crate) fn adopt(&mut self, map: &ClusterMap) {
        self.pace.set(&map.layout, map.shards);
        if self.catalog.as_ref().is_none_or(|known| **known != map.catalog) {
            self.codes = self.codes.changed_to(&map.catalog);
            self.catalog = Some(Arc::new(map.catalog.clone()));
            self.edition += 1;
            let is_limited = |namespace| map.catalog.data_quota(namespace).is_some();
            self.config.quotas.heed(map.version, is_limited);
        }
    }

    /// How often pools and namespaces have changed, with the first time.
    #[inline]
    pub(crate) fn edition(&self) -> u64 {
        self.edition
    }

    /// What a member of `group` is made with; none if there is no such group.
    pub(crate) fn means(&self, group: GroupId) -> Option<Means<'_>> {
        let HostConfig { store, budget, rules, .. } = &self.config;
        let (pool, protection) = (self.catalog.as_ref()?.pool_of_group(group)?, self.codes.of_group(group)?);
        Some(Means { config: store, budget, pool, protection, rules: *rules })
    }

    /// What a member handles one event with; none before there is a map, and then there are no members.
    pub(crate) fn context(&mut self, now: Now) -> Option<Context<'_>> {
        Some(Context {
            now,
            timing: &self.config.timing,
            limits: &self.config.limits,
            rules: self.config.rules,
            secret: &self.config.secret,
            catalog: self.catalog.as_deref()?,
            edition: self.edition,
            quotas: &self.config.quotas,
            pace: &mut self.pace,
            out: &mut self.out,
        })
    }
}
