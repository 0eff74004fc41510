//! What the parts act in while they handle one event.

use std::sync::Arc;

use cluster::Protection;
use codec::Coder;
use store::Share;
use types::{ClusterMap, GroupId, GroupView, HostId, MemberId, NamespaceId, NodeId, ObjectPolicy, Profile};
use wire::graph::GraphMessage;
use wire::object::ObjectMessage;

use crate::host::{Surroundings, Views, Zones};
use crate::impossible::{Accusation, Impossible};
use crate::{GraphSettings, Limits, Now, Rules, Timing};

/// See the module.
pub(crate) struct Scope<'a> {
    pub now: Now,
    pub around: &'a mut Surroundings,
    pub views: &'a Views,
}

impl Scope<'_> {
    pub(super) fn here(&self) -> HostId {
        self.around.host()
    }

    pub(super) fn timing(&self) -> Timing {
        self.around.config().timing
    }

    pub(super) fn rules(&self) -> Rules {
        self.around.config().rules
    }

    pub(super) fn limits(&self) -> Limits {
        self.around.config().limits
    }

    /// Who computes codes.
    pub(super) fn coder(&self) -> &Coder {
        &self.around.config().coder
    }

    /// How chunks are made of others.
    pub(super) fn graphs(&self) -> GraphSettings {
        self.around.config().graphs
    }

    /// Most bytes of chunks that one graph makes for repair; none if none does.
    pub(super) fn graph_bytes(&self) -> Option<u64> {
        let Limits { graph_bytes, graph_reader_bytes, .. } = self.limits();
        // Of two at once: the chunks themselves, and as much again for what flows.
        let most = graph_bytes.saturating_sub(graph_reader_bytes) / 4;
        self.graphs().repair.and((most > 0).then_some(most))
    }

    /// Whether this worker has the group, of those of its node.
    pub(super) fn is_of_this_shard(&self, group: GroupId) -> bool {
        self.views.is_of_shard(group, self.around.config().shard)
    }

    /// Where nodes are.
    pub(super) fn zones(&self) -> &Zones {
        self.views.zones()
    }

    pub(super) fn view(&self, group: GroupId) -> Option<&GroupView> {
        self.views.group(group)
    }

    /// The code of a group.
    pub(super) fn protection(&self, group: GroupId) -> Option<Arc<Protection>> {
        self.around.means(group).map(|means| Arc::clone(means.protection))
    }

    /// The process that speaks for an owner.
    pub(super) fn primary_of(&self, owner: MemberId) -> Option<HostId> {
        self.view(owner.group)?.data_role(owner.role)?.primary
    }

    /// A message for a process of a node.
    pub(super) fn send(&mut self, to: HostId, message: ObjectMessage) {
        if let ObjectMessage::Fetch(fetch) = &message
            && to != self.here()
        {
            self.around.meter_mut().asked(self.now.time, to.node, fetch);
        }
        self.around.out().send(to.node, message.into());
    }

    /// A message of a graph, for whatever process is on a node.
    pub(super) fn send_of_graph(&mut self, to: NodeId, message: GraphMessage) {
        self.around.out().send(to, message.into());
    }

    /// The node's memory.
    pub(super) fn budget(&self) -> store::Budget {
        self.around.config().budget.clone()
    }

    /// Whether namespaces that say nothing of it evict.
    pub(super) fn evicts(&self) -> bool {
        self.around.config().store.eviction == store::Eviction::Clock
    }

    /// The namespaces with a quota whose chunks may lie in `group`, with the node's shares of it, and the profile of their pool.
    pub(super) fn limited_in(
        &self,
        group: GroupId,
    ) -> Option<(Profile, impl Iterator<Item = (NamespaceId, Share)>)> {
        let catalog = &self.views.map()?.catalog;
        let pool = catalog.pool_of_group(group)?;
        let quotas = &self.around.config().quotas;
        let limited = catalog.tenants_of(pool.id).filter(|known| known.policy.quota_bytes > 0);
        Some((pool.profile, limited.map(|known| (known.id, quotas.share(known.id)))))
    }

    /// Whether `namespace` is of a newer map than there is here.
    pub(super) fn is_to_come(&self, namespace: NamespaceId) -> bool {
        let is_known =
            |map: &ClusterMap| map.catalog.namespace(namespace).is_some() || map.catalog.is_gone(namespace);
        !self.views.map().is_some_and(is_known)
    }

    /// Whether `namespace` was removed.
    pub(super) fn is_gone(&self, namespace: NamespaceId) -> bool {
        self.views.map().is_some_and(|map| map.catalog.is_gone(namespace))
    }

    /// Whether values of `namespace` give way to others, as far as it is known here: owners decide.
    pub(super) fn may_evict(&self, namespace: NamespaceId) -> bool {
        let known = self.views.map().and_then(|map| map.catalog.namespace(namespace));
        let may = known.is_some_and(|known| known.policy.evict.evicts(self.evicts()));
        self.rules().objects().evicts(may)
    }

    /// Whether values of any namespace give way to others, as far as it is known here.
    pub(super) fn may_evict_some(&self) -> bool {
        let namespaces = self.views.map().into_iter().flat_map(|map| &map.catalog.namespaces);
        namespaces.map(|known| known.id).any(|id| self.may_evict(id))
    }

    /// How values of `namespace` are cut.
    pub(super) fn object_policy(&self, namespace: NamespaceId) -> ObjectPolicy {
        let known = self.views.map().and_then(|map| map.catalog.namespace(namespace));
        known.map(|known| known.policy.objects).unwrap_or_default()
    }

    /// See [`types::op::Begin`]: of values of `namespace` whose owner is in `group`.
    pub(super) fn conversions_of(&self, namespace: NamespaceId, group: GroupId) -> u32 {
        self.views.map().map_or(0, |map| map.catalog.conversions_into(namespace, group))
    }

    /// Something for the coordinator to know.
    pub(super) fn report(&mut self, report: wire::object::ChunkReport) {
        self.around.out().coordinator.push_back(wire::message::ToCoordinator::Chunks(report));
    }

    /// Somebody knows a newer view of this group.
    pub(super) fn want_view(&mut self, group: GroupId) {
        self.around.out().views_wanted.push(group);
    }

    /// `from` has sent what cannot be.
    pub(super) fn accuse(&mut self, from: HostId, why: Impossible) {
        let accusation: Accusation = (from, why);
        self.around.out().accusations.push(accusation);
    }
}
