//! Schedules that show what single rules of values in chunks prevent (docs/objects.md): each ends well by all rules, and badly without
//! its one.
#![cfg(feature = "planted-bugs")]

use proto::{Action, Bug, Limits, Rules, lost_keys};
use types::op::{Op, Outcome, Request, StoreMode};
use types::{MemberId, NodeId, NodeLoad, Once, ViewVersion};
use wire::message::ToCoordinator;
use wire::object::{Ask, Asked, ChunkReport, Harm, ObjectMessage};

use super::objects::{CHUNK_LEN, noise};
use super::{Cluster, Setup, host_id, key_of};

/// Seven nodes, of which five have the chunks of one value of a stripe.
fn with_value(rules: Rules) -> Cluster {
    with_value_and(rules, Limits::default())
}

fn with_value_and(rules: Rules, limits: Limits) -> Cluster {
    let mut cluster = Cluster::of(7, "rs(3+2)", &Setup { rules, limits, ..Setup::default() });
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

/// The holders of both parities are gone, and one without which nothing can be made of what is left says nothing for a while. How many
/// keys are named as lost then, and how many chunks there are when it speaks again.
fn silence_is_no_answer(rules: Rules) -> (usize, usize) {
    let mut cluster = with_value_and(rules, Limits { graph_bytes: 0, ..Limits::default() });
    let (places, owner) = (cluster.places(), cluster.owner_of("key"));
    assert_eq!(places.len(), 5);
    let of = |roles: std::ops::Range<usize>| places[roles].iter().map(|(_, node)| *node);
    let gone: Vec<NodeId> = of(3..5).collect();
    assert!(!gone.contains(&owner), "another key has to be taken: {places:?}");
    // Not the first, who is asked for the list.
    let silent = of(1..3).find(|node| *node != owner).unwrap();
    let host = cluster.hosts.remove(&silent).unwrap();
    gone.iter().for_each(|node| cluster.kill(node.0));
    cluster.advance_hearing(&[silent], 6_000);
    let lost = cluster.hosts.values().flat_map(lost_keys).count();
    cluster.hosts.insert(silent, host);
    cluster.advance(10_000);
    (lost, cluster.chunk_count())
}

#[test]
fn who_is_silent_may_have_what_others_lack() {
    assert_eq!(silence_is_no_answer(Rules::all()), (0, 5));
    let (lost, chunks) = silence_is_no_answer(Rules::without(Bug::SkippedForSilence));
    assert!(lost == 1 && chunks < 5, "{lost} keys are said to be lost, and there are {chunks} chunks");
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

/// A cluster with a value, a node that has nothing to do with its owner, and the name of a write of a session that the owner knows.
fn with_session(rules: Rules) -> (Cluster, u16, Once) {
    let mut cluster = with_value(rules);
    let owner = cluster.owner_of("key");
    let writer = cluster.hosts.keys().find(|node| **node != owner).unwrap().0;
    let session = match cluster.run(writer, Request::on(key_of("key"), Op::Session)) {
        Some(Outcome::Session(session)) => session,
        other => panic!("{other:?}"),
    };
    (cluster, writer, Once { session, sequence: 1, behind: 0, again: false })
}

impl Cluster {
    fn put_once(&mut self, node: u16, value: &[u8], once: Once) -> Option<Outcome> {
        let (token, upload) =
            self.begin_upload_once(node, "key", (value.len(), CHUNK_LEN), StoreMode::Set, Some(once));
        self.settle();
        self.feed(node, upload, value, 0);
        self.answers.get(&token).cloned()
    }
}

fn version_of(outcome: Option<Outcome>) -> u64 {
    match outcome {
        Some(Outcome::Stored(view)) => view.version,
        other => panic!("{other:?}"),
    }
}

/// A value is written, then another one; the owner is lost, and the first write comes again: what is said to it then and to begin with,
/// and whether the second value is still there.
fn a_write_comes_again_after_a_takeover(rules: Rules) -> (u64, u64, bool) {
    let (mut cluster, writer, once) = with_session(rules);
    let (first, second) = (noise(2, 300_000), noise(3, 200_000));
    let before = version_of(cluster.put_once(writer, &first, once));
    cluster.put(writer, "key", &second).unwrap();
    cluster.advance(200);
    let owner = cluster.owner_of("key");
    cluster.kill(owner.0);
    cluster.advance(4_000);
    let after = version_of(cluster.put_once(writer, &first, Once { again: true, ..once }));
    cluster.advance(1_000);
    (before, after, cluster.read(writer, "key").unwrap() == second)
}

#[test]
fn a_write_that_comes_again_after_a_takeover_is_not_done_again() {
    let (before, after, is_second) = a_write_comes_again_after_a_takeover(Rules::all());
    assert!(before == after && is_second);
    let (before, after, is_second) = a_write_comes_again_after_a_takeover(Rules::without(Bug::CommitUnnamed));
    assert!(before < after && !is_second, "{before} {after} {is_second}");
}

/// The owner is lost when all parities have the record of a commit and it has not heard so, another value is written, and the first write
/// comes again. Whether anything was said of it before, and whether the other value is still there.
fn a_write_comes_again_whose_commit_was_in_flight(rules: Rules) -> (Option<Outcome>, bool) {
    let (mut cluster, writer, once) = with_session(rules);
    let (first, second) = (noise(2, 100_000), noise(3, 200_000));
    let owner = cluster.owner_of("key");
    let (token, upload) =
        cluster.begin_upload_once(writer, "key", (first.len(), CHUNK_LEN), StoreMode::Set, Some(once));
    cluster.settle();
    let open = |cluster: &Cluster| cluster.hosts[&owner].stats().objects.open_ids;
    assert_eq!(open(&cluster), 1);
    // Cell by cell, and nothing is delivered yet.
    let (now, mut rest) = (cluster.clocks(NodeId(writer)), bytes::Bytes::from(first.clone()));
    let mut streams = cluster.hosts.get_mut(&NodeId(writer)).unwrap().streams(now);
    while !rest.is_empty() {
        let wanted = streams.upload_wants(upload);
        streams.feed(upload, rest.split_to(wanted));
    }
    while open(&cluster) > 0 {
        assert!(cluster.deliver(), "it comes to a commit");
    }
    // The record is under way, and gets there.
    cluster.deliver();
    assert_eq!(cluster.answers.get(&token), None);
    cluster.kill(owner.0);
    cluster.advance(4_000);
    let said = cluster.answers.get(&token).cloned();
    cluster.put(writer, "key", &second).unwrap();
    version_of(cluster.put_once(writer, &first, Once { again: true, ..once }));
    cluster.advance(1_000);
    (said, cluster.read(writer, "key").unwrap() == second)
}

#[test]
fn a_write_that_comes_again_is_not_done_again_if_its_commit_was_in_flight_at_a_takeover() {
    let (said, is_second) = a_write_comes_again_whose_commit_was_in_flight(Rules::all());
    assert!(is_second, "{said:?}");
    let (said, is_second) =
        a_write_comes_again_whose_commit_was_in_flight(Rules::without(Bug::CommitUnnamed));
    assert!(!is_second, "{said:?}");
}
