//! Histories of one key, told call by call.

use bytes::Bytes;
use types::UnixSeconds;
use types::op::{Delete, Direction, Expiry, Failure, Get, ItemView, Op, Outcome, Store, StoreMode};

use super::{Contradiction, Copy, Fate, Oracle, Vanishing};

const NOW: UnixSeconds = UnixSeconds(1000);

fn set(value: &'static str) -> Op {
    Op::Store(Store {
        mode: StoreMode::Set,
        value: Bytes::from_static(value.as_bytes()),
        flags: 0,
        expiry: Expiry::Never,
        compare: None,
        version: None,
        invalidate: false,
        vivify: None,
    })
}

fn mode(value: &'static str, mode: StoreMode) -> Op {
    let Op::Store(store) = set(value) else { unreachable!() };
    Op::Store(Store { mode, ..store })
}

fn get() -> Op {
    Op::Get(Get::default())
}

fn stored(version: u64) -> Fate {
    Fate::Answered(Outcome::Stored(ItemView { version, ..ItemView::default() }))
}

fn hit(value: &'static str, version: u64) -> Fate {
    let value = Bytes::from_static(value.as_bytes());
    Fate::Answered(Outcome::Hit(ItemView { value, version, ..ItemView::default() }))
}

fn miss() -> Fate {
    Fate::Answered(Outcome::Miss)
}

fn now(oracle: &mut Oracle, op: Op, fate: Fate) -> Result<(), Contradiction> {
    let call = oracle.invoke(op, NOW);
    oracle.close(call, fate, NOW)
}

#[test]
fn a_read_must_see_the_last_write() {
    let mut oracle = Oracle::new(Vanishing::Never);
    now(&mut oracle, set("a"), stored(1)).unwrap();
    now(&mut oracle, get(), hit("a", 1)).unwrap();
    now(&mut oracle, set("b"), stored(2)).unwrap();
    assert!(now(&mut oracle.clone(), get(), hit("a", 1)).is_err());
    assert!(now(&mut oracle.clone(), get(), hit("b", 7)).is_err());
    assert!(now(&mut oracle.clone(), get(), miss()).is_err());
    now(&mut oracle, get(), hit("b", 2)).unwrap();
}

#[test]
fn concurrent_writes_may_take_either_order_and_only_one() {
    let mut oracle = Oracle::new(Vanishing::Never);
    let (a, b) = (oracle.invoke(set("a"), NOW), oracle.invoke(set("b"), NOW));
    oracle.close(b, stored(2), NOW).unwrap();
    oracle.close(a, stored(1), NOW).unwrap();
    now(&mut oracle.clone(), get(), hit("b", 2)).unwrap();
    now(&mut oracle, get(), hit("a", 1)).unwrap();
    assert!(now(&mut oracle, get(), hit("b", 2)).is_err());
}

#[test]
fn an_unanswered_write_may_take_effect_late_but_once() {
    let mut oracle = Oracle::new(Vanishing::Never);
    now(&mut oracle, set("late"), Fate::Unknown).unwrap();
    now(&mut oracle, set("a"), stored(2)).unwrap();
    now(&mut oracle, get(), hit("a", 2)).unwrap();
    now(&mut oracle, get(), hit("late", 3)).unwrap();
    now(&mut oracle, set("b"), stored(4)).unwrap();
    assert!(now(&mut oracle, get(), hit("late", 3)).is_err());
}

#[test]
fn a_void_call_never_takes_effect() {
    let mut oracle = Oracle::new(Vanishing::Never);
    now(&mut oracle, set("a"), Fate::Void).unwrap();
    assert!(now(&mut oracle.clone(), get(), hit("a", 1)).is_err());
    now(&mut oracle, get(), miss()).unwrap();
}

#[test]
fn a_long_read_may_have_seen_any_state_of_its_time() {
    let mut oracle = Oracle::new(Vanishing::Never);
    now(&mut oracle, set("a"), stored(1)).unwrap();
    let read = oracle.invoke(get(), NOW);
    for (value, version) in [("b", 2), ("c", 3), ("d", 4)] {
        now(&mut oracle, set(value), stored(version)).unwrap();
    }
    for (value, version) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        oracle.clone().close(read, hit(value, version), NOW).unwrap();
    }
    assert!(oracle.close(read, miss(), NOW).is_err());
}

#[test]
fn a_flush_may_take_effect_when_there_is_something_to_flush() {
    let mut oracle = Oracle::new(Vanishing::Never);
    let flush = oracle.invoke(
        Op::Flush(types::op::Flush { namespace: types::NamespaceId::DEFAULT, at: types::op::FlushAt::Now }),
        NOW,
    );
    now(&mut oracle, set("a"), stored(1)).unwrap();
    now(&mut oracle, get(), hit("a", 1)).unwrap();
    now(&mut oracle, get(), miss()).unwrap();
    oracle.close(flush, Fate::Answered(Outcome::Flushed), NOW).unwrap();
}

#[test]
fn a_miss_is_an_eviction_only_where_the_store_evicts() {
    for (vanishing, allowed) in [(Vanishing::Never, false), (Vanishing::Anytime, true)] {
        let mut oracle = Oracle::new(vanishing);
        now(&mut oracle, set("a"), stored(1)).unwrap();
        assert_eq!(now(&mut oracle, get(), miss()).is_ok(), allowed);
        if allowed {
            assert!(now(&mut oracle, get(), hit("a", 1)).is_err(), "what vanished does not come back");
        }
    }
}

#[test]
fn an_item_whose_namespace_goes_may_vanish_for_calls_under_way_and_later_ones() {
    let mut oracle = Oracle::new(Vanishing::Never);
    now(&mut oracle, set("a"), stored(1)).unwrap();
    // Nothing after this read is looked at before it ends.
    let long = oracle.invoke(get(), NOW);
    let mut early = oracle.clone();
    now(&mut early, get(), miss()).unwrap();
    early.let_vanish();
    assert!(early.close(long, hit("a", 1), NOW).is_err(), "a miss before the removal stays wrong");

    oracle.let_vanish();
    assert!(oracle.admits(None, NOW) && oracle.admits(Some(Copy { value: b"a", flags: 0, version: 1 }), NOW));
    oracle.clone().close(long, miss(), NOW).unwrap();
    now(&mut oracle, get(), hit("a", 1)).unwrap();
    oracle.close(long, hit("a", 1), NOW).unwrap();
    assert!(now(&mut oracle.clone(), get(), hit("b", 1)).is_err());
    now(&mut oracle, get(), miss()).unwrap();
    assert!(now(&mut oracle, get(), hit("a", 1)).is_err(), "what vanished does not come back");
}

#[test]
fn an_item_is_gone_from_its_second_on_and_not_before() {
    let mut oracle = Oracle::new(Vanishing::Never);
    let Op::Store(store) = set("a") else { unreachable!() };
    let expiring = Op::Store(Store { expiry: Expiry::At(UnixSeconds(1005)), ..store });
    now(&mut oracle, expiring, stored(1)).unwrap();
    assert!(now(&mut oracle.clone(), get(), miss()).is_err());
    let late = oracle.invoke(get(), UnixSeconds(1005));
    assert!(oracle.clone().close(late, hit("a", 1), UnixSeconds(1005)).is_err());
    oracle.close(late, miss(), UnixSeconds(1005)).unwrap();
}

#[test]
fn a_call_that_began_before_the_second_may_act_after_a_miss() {
    let mut oracle = Oracle::new(Vanishing::Never);
    let Op::Store(store) = set("a") else { unreachable!() };
    let expiring = Op::Store(Store { expiry: Expiry::At(UnixSeconds(1005)), ..store.clone() });
    now(&mut oracle, expiring, stored(1)).unwrap();
    let cas = oracle.invoke(Op::Store(Store { compare: Some(1), ..store }), UnixSeconds(1004));
    let late = oracle.invoke(get(), UnixSeconds(1005));
    oracle.close(late, miss(), UnixSeconds(1005)).unwrap();
    oracle.close(cas, stored(2), UnixSeconds(1006)).unwrap();
    now(&mut oracle, get(), hit("a", 2)).unwrap();
}

#[test]
fn an_item_that_was_told_expired_does_not_come_back() {
    let mut oracle = Oracle::new(Vanishing::Never);
    let Op::Store(store) = set("a") else { unreachable!() };
    let expiring = Op::Store(Store { expiry: Expiry::At(UnixSeconds(1005)), ..store.clone() });
    now(&mut oracle, expiring, stored(1)).unwrap();
    // Clocks differ by five seconds: some show 1005 already.
    let (least, most) = (UnixSeconds(995), UnixSeconds(1005));
    let early = oracle.invoke(get(), least);
    let first = oracle.invoke(get(), least);
    oracle.close(first, miss(), most).unwrap();
    oracle.clone().close(early, hit("a", 1), most).unwrap();
    let later = oracle.invoke(get(), least);
    oracle.close(early, miss(), most).unwrap();
    assert!(oracle.clone().close(later, hit("a", 1), most).is_err());
    assert!(oracle.admits(Some(Copy { value: b"a", flags: 0, version: 1 }), most), "its bytes are there");
    oracle.close(later, miss(), most).unwrap();
}

#[test]
fn appends_numbers_and_compare_and_swap_follow_memcached() {
    let mut oracle = Oracle::new(Vanishing::Never);
    now(&mut oracle, mode("x", StoreMode::Append), Fate::Answered(Outcome::NotStored)).unwrap();
    now(&mut oracle, mode("10", StoreMode::Add), stored(1)).unwrap();
    let count = |direction, delta| Op::Arith(types::op::Arith { direction, delta, ..Default::default() });
    let number = |n, version| Fate::Answered(Outcome::Number(n, ItemView { version, ..ItemView::default() }));
    now(&mut oracle, count(Direction::Decrement, 1), number(9, 2)).unwrap();
    now(&mut oracle, get(), hit("9 ", 2)).unwrap();
    now(&mut oracle, mode("x", StoreMode::Prepend), stored(3)).unwrap();
    now(&mut oracle, get(), hit("x9 ", 3)).unwrap();
    now(&mut oracle, count(Direction::Increment, 1), Fate::Answered(Outcome::Failed(Failure::NotANumber)))
        .unwrap();
    let Op::Store(store) = set("new") else { unreachable!() };
    let cas = |compare| Op::Store(Store { compare: Some(compare), ..store.clone() });
    now(&mut oracle, cas(2), Fate::Answered(Outcome::Exists)).unwrap();
    assert!(now(&mut oracle.clone(), cas(2), stored(4)).is_err());
    now(&mut oracle, cas(3), stored(4)).unwrap();
    now(&mut oracle, Op::Delete(Delete::default()), Fate::Answered(Outcome::Deleted)).unwrap();
    now(&mut oracle, cas(4), Fate::Answered(Outcome::NotFound)).unwrap();
}

#[test]
fn a_decoded_copy_may_be_the_answered_state_or_that_of_a_running_call() {
    let mut oracle = Oracle::new(Vanishing::Never);
    now(&mut oracle, set("a"), stored(1)).unwrap();
    let running = oracle.invoke(set("b"), NOW);
    let copy = |value: &'static str, version| Some(Copy { value: value.as_bytes(), flags: 0, version });
    assert!(oracle.admits(copy("a", 1), NOW) && oracle.admits(copy("b", 2), NOW));
    assert!(!oracle.admits(copy("c", 3), NOW) && !oracle.admits(None, NOW));
    oracle.close(running, stored(2), NOW).unwrap();
    assert!(!oracle.admits(copy("a", 1), NOW) && oracle.admits(copy("b", 2), NOW));
}

#[test]
fn many_unanswered_writes_do_not_multiply_the_states() {
    let mut oracle = Oracle::new(Vanishing::Never);
    for _ in 0..40 {
        now(&mut oracle, set("lost"), Fate::Unknown).unwrap();
        now(&mut oracle, set("a"), stored(1)).unwrap();
        now(&mut oracle, get(), hit("a", 1)).unwrap();
    }
    assert!(oracle.is_complete() && oracle.configs.len() <= 2, "{} states", oracle.configs.len());
}
