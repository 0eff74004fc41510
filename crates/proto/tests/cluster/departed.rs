//! What comes late to a namespace that moves to another pool, or never (docs/pools.md, "Why nothing is lost or comes back").

use types::op::{Begin, Condition, Departure, Expect, ObjectOp, Transfer, Via};
use types::{MemberId, Term};

use super::moving::{OTHER, with_pool_and};
use super::*;

/// A namespace on its way back from the other pool for the second time, where "key" has left already, and has been written since.
struct OnItsWayBack {
    cluster: Cluster,
    /// The primary that had the key until it left, and the one that has it now.
    former: MemberId,
    new: MemberId,
}

/// What has left by an earlier conversion: the one that is under way is the fourth.
fn departure(number: u32) -> Departure {
    Departure { number, wall: UnixSeconds(0) }
}

impl OnItsWayBack {
    fn by(rules: Rules) -> Self {
        let mut cluster = with_pool_and("rs(2+1)", &Setup { rules, ..Setup::default() });
        cluster.set(0, "key", b"old").unwrap();
        let place = |cluster: &Cluster| cluster.hosts[&NodeId(0)].locate(b"key").member.unwrap();
        let new = place(&cluster);
        for pool in [OTHER, "default", OTHER] {
            cluster.convert(pool);
            cluster.advance(5_000);
            assert_eq!(cluster.home(), (pool.to_owned(), false));
        }
        let former = place(&cluster);
        // A value that is being written holds the conversion up.
        cluster.begin_upload(0, "held", 300_000, StoreMode::Set);
        cluster.convert("default");
        cluster.advance(3_000);
        assert!(matches!(cluster.set(1, "key", b"new"), Some(Outcome::Stored(_))));
        assert_eq!(cluster.home(), (OTHER.to_owned(), true));
        Self { cluster, former, new }
    }

    /// What a primary answers to what comes to it late, if anything.
    fn ask(&mut self, member: MemberId, request: Request) -> Option<Outcome> {
        let cluster = &mut self.cluster;
        let view = cluster.coordinator.map().unwrap().group(member.group).unwrap();
        let node = view.data[usize::from(member.role.0)].primary.unwrap().node;
        let (now, token) = (cluster.clocks(node), Token([u64::from(u32::MAX), 0]));
        let host = cluster.hosts.get_mut(&node).unwrap();
        let place = Place { member: Some(member), ..host.locate(b"key") };
        if let Submitted::Done(outcome) = host.submit(now, token, place, request) {
            return Some(outcome);
        }
        cluster.settle();
        cluster.answers.get(&token).cloned()
    }
}

/// An item that was sent here in the conversion before the last comes now: what is answered, and what is read then.
fn late_item(rules: Rules) -> (Option<Outcome>, Vec<u8>) {
    let mut scene = OnItsWayBack::by(rules);
    let expected = Expect { from: scene.former, term: Term(1), number: 1 };
    let transfer = Transfer { expected, departure: departure(2), stale: false, win_sent: false };
    let item = Request { via: Some(Box::new(Via::Transfer(transfer))), ..set("key", b"old") };
    let outcome = scene.ask(scene.new, item);
    (outcome, scene.cluster.get(2, "key").unwrap())
}

#[test]
fn an_item_that_comes_two_conversions_late_is_refused() {
    let refused = Some(Outcome::Failed(Failure::WrongPrimary));
    assert_eq!(late_item(Rules::all()), (refused, b"new".to_vec()));
}

#[test]
#[cfg(feature = "planted-bugs")]
fn an_item_that_is_sent_on_takes_the_place_of_what_was_written_since() {
    assert_eq!(late_item(Rules::without(proto::Bug::LateItemSentOn)).1, b"old");
}

/// An id is asked for by the conversion before: what is answered.
fn late_id(rules: Rules) -> Option<Outcome> {
    let condition = Condition { mode: StoreMode::Set, compare: None, invalidate: false };
    let begin = Op::Object(ObjectOp::Begin(Begin { condition, conversions: 3 }));
    let via = Some(Box::new(Via::Departed(departure(3))));
    let mut scene = OnItsWayBack::by(rules);
    scene.ask(scene.former, Request { via, ..Request::on(key_of("key"), begin) })
}

#[test]
fn no_id_is_given_for_a_key_that_has_left() {
    assert_eq!(late_id(Rules::all()), Some(Outcome::Failed(Failure::Busy)));
}

#[test]
#[cfg(feature = "planted-bugs")]
fn an_id_that_is_given_for_a_key_that_has_left_is_seen() {
    assert!(matches!(late_id(Rules::without(proto::Bug::LateIdGiven)), Some(Outcome::Begun(_))));
}

#[test]
fn an_answer_that_is_lost_holds_the_others_up_once() {
    let mut cluster = with_pool_and("rs(2+1)", &Setup::default());
    for number in 0..60 {
        let value = vec![number; 20_000 + 1_000 * usize::from(number)];
        cluster.put(0, &format!("key-{number}"), &value).unwrap();
    }
    cluster.lost_answers = 1;
    cluster.convert(OTHER);
    cluster.advance(10_000);
    assert_eq!((cluster.lost_answers, cluster.home()), (0, (OTHER.to_owned(), false)));
}
