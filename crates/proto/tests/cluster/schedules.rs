//! Schedules that show what single rules of values in chunks prevent (docs/objects.md): each ends well by all rules, and badly without
//! its one.
#![cfg(feature = "planted-bugs")]

use proto::{Action, Bug, Rules};
use types::{MemberId, NodeId, NodeLoad, ViewVersion};
use wire::message::ToCoordinator;
use wire::object::{Ask, Asked, ChunkReport, Harm, ObjectMessage};

use super::objects::noise;
use super::{Cluster, Setup, host_id, key_of};

/// Seven nodes, of which five have the chunks of one value of a stripe.
fn with_value(rules: Rules) -> Cluster {
    let mut cluster = Cluster::of(7, "rs(3+2)", &Setup { rules, ..Setup::default() });
    cluster.put(0, "key", &noise(1, 150_000)).unwrap();
    cluster.advance(200);
    cluster
}

impl Cluster {
    /// The roles that have a chunk, each with its node.
    fn places(&self) -> Vec<(MemberId, NodeId)> {
        let of_host = |(node, host): (&NodeId, &proto::Host)| {
            let chunks = host.chunks().filter(|(_, chunks)| chunks.count() > 0);
            chunks.map(|(member, _)| (member, *node)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.hosts.iter().flat_map(of_host).collect();
        all.sort_unstable();
        all
    }

    /// Time passes while the coordinator hears all of `silent`, and nobody else does.
    fn advance_hearing(&mut self, silent: &[NodeId], ms: u64) {
        let map = self.hosts.values().next().unwrap().map().unwrap().version;
        for _ in 0..ms.div_ceil(100) {
            for node in silent {
                let host = host_id(node.0);
                let heartbeat = ToCoordinator::Heartbeat { host, map, load: NodeLoad::default() };
                self.coordinator.handle(self.now, host, heartbeat);
            }
            self.advance(100);
        }
    }
}

/// A host that is appointed has said late that it has everything since its appointment before; whether that is believed.
fn an_earlier_appointment_is_over(rules: Rules) -> bool {
    let mut cluster = with_value(rules);
    let places = cluster.places();
    let (MemberId { group, role }, node) = *places.last().unwrap();
    let has_none = |node: &NodeId| !places.iter().any(|(_, known)| known == node);
    // Whoever is appointed says nothing, and gets nothing.
    let spares: Vec<NodeId> = cluster.hosts.keys().copied().filter(has_none).collect();
    spares.iter().for_each(|node| drop(cluster.hosts.remove(node)));
    cluster.kill(node.0);
    cluster.advance_hearing(&spares, 3_000);
    let holders =
        |cluster: &Cluster| cluster.coordinator.map().unwrap().group(group).unwrap().holders_of(role);
    let appointed = holders(&cluster).filling.expect("somebody is appointed");
    let since = ViewVersion(appointed.since.0 - 1);
    let late = ToCoordinator::Chunks(ChunkReport::Filled { group, role, since });
    cluster.coordinator.handle(cluster.now, appointed.host, late);
    holders(&cluster).whole.is_some()
}

#[test]
fn who_was_filled_for_an_earlier_appointment_is_not_whole_by_this_one() {
    assert!(!an_earlier_appointment_is_over(Rules::all()));
    assert!(an_earlier_appointment_is_over(Rules::without(Bug::FilledOfAnySince)));
}

/// An owner that was cut off comes back, does not know that it was deposed, and is asked about what its successor has committed.
/// How many chunks are left of that.
fn a_deposed_owner_is_asked(rules: Rules) -> usize {
    let mut cluster = with_value(rules);
    let owner = cluster.hosts[&NodeId(0)].locate(&key_of("key")).member.unwrap();
    let view = cluster.coordinator.map().unwrap().group(owner.group).unwrap();
    let cut_off = view.data[usize::from(owner.role.0)].primary.unwrap().node;
    let mut old = cluster.hosts.remove(&cut_off).unwrap();
    for host in cluster.hosts.values_mut() {
        host.link_down(cluster.now, host_id(cut_off.0));
    }
    cluster.advance(4_000);
    let writer = cluster.hosts.keys().next().unwrap().0;
    cluster.put(writer, "key", &noise(2, 150_000)).unwrap();
    cluster.advance(1_000);
    let key_hash = cluster.hosts[&NodeId(writer)].locate(&key_of("key")).hash;
    let (member, node) = cluster.places().into_iter().find(|(_, node)| *node != cut_off).unwrap();
    let of_holder = cluster.hosts[&node].chunks().find(|(known, _)| *known == member);
    let object = of_holder.unwrap().1.list_after(None, 1).next().unwrap().0.object;
    assert!(object.term.0 > 1, "it is the successor's: {object}");
    let ask = Ask { owner, member, objects: vec![Asked { object, key_hash }], found: Harm::None };
    old.handle_peer(cluster.now, host_id(node.0), ObjectMessage::Ask(ask).into());
    old.flush(cluster.now);
    while let Some(action) = old.poll_action() {
        if let Action::Send { to, message } = action
            && to == node
        {
            let now = cluster.now;
            let host = cluster.hosts.get_mut(&node).unwrap();
            host.link_up(now, host_id(cut_off.0));
            host.handle_peer(now, host_id(cut_off.0), message);
        }
    }
    let chunks = cluster.hosts[&node].chunks().find(|(known, _)| *known == member);
    chunks.map_or(0, |(_, chunks)| chunks.of_object(object).count())
}

#[test]
fn an_owner_that_was_deposed_says_nothing_of_what_came_after_it() {
    assert_eq!(a_deposed_owner_is_asked(Rules::all()), 1);
    assert_eq!(a_deposed_owner_is_asked(Rules::without(Bug::DeposedOwnerAnswers)), 0);
}
