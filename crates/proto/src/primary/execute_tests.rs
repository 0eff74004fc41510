//! One decision each: an operation, an item, what is to be done.

use bytes::Bytes;
use proptest::prelude::*;
use types::op::{Key, MAX_PAYLOAD_BYTES};

use super::*;

const NOW: UnixSeconds = UnixSeconds(1000);

fn context() -> Context {
    Context { now: NOW, next_version: 77, ..Context::default() }
}

/// An item's bytes: value `value`, flags 5, version 3.
fn image(value: &[u8], expiry: u32, state: ItemState) -> Vec<u8> {
    let mut image = Vec::new();
    ItemSpec { key: b"k", value: [value, b""], client_flags: 5, expiry, version: 3, state }
        .encode(&mut image);
    image
}

fn run(op: Op, image: Option<&[u8]>) -> Decision {
    let current = image.map(|image| Current { item: Item::parse(image).unwrap(), access: Access::default() });
    decide(&Request::on(Key::new(Bytes::from_static(b"k")).unwrap(), op), current, context())
}

/// What a decision leaves behind: value, flags, expiry, version.
fn written(decision: &Decision) -> (Vec<u8>, u32, u32, u64) {
    let Decision::Put { image, .. } = decision else { panic!("no new item: {decision:?}") };
    let item = Item::parse(image).unwrap();
    assert!(item.verify());
    (item.value.to_vec(), item.client_flags, item.expiry, item.version)
}

fn store(mode: StoreMode) -> Store {
    Store {
        mode,
        value: Bytes::from_static(b"new"),
        flags: 9,
        expiry: Expiry::At(UnixSeconds(2000)),
        compare: None,
        version: None,
        invalidate: false,
        vivify: None,
    }
}

fn arith(direction: Direction, delta: u64) -> Op {
    Op::Arith(Arith { direction, delta, vivify: None, initial: 0, touch: None, compare: None, version: None })
}

fn is_answer(decision: &Decision, outcome: &Outcome) -> bool {
    matches!(decision, Decision::Answer(answer) if answer == outcome)
}

#[test]
fn conditions_of_store_modes_are_memcacheds() {
    let there = image(b"old", 0, ItemState::default());
    assert_eq!(written(&run(Op::Store(store(StoreMode::Set)), None)), (b"new".to_vec(), 9, 2000, 77));
    assert_eq!(written(&run(Op::Store(store(StoreMode::Set)), Some(&there))).0, b"new");
    assert_eq!(written(&run(Op::Store(store(StoreMode::Add)), None)).0, b"new");
    assert!(is_answer(&run(Op::Store(store(StoreMode::Add)), Some(&there)), &Outcome::NotStored));
    assert_eq!(written(&run(Op::Store(store(StoreMode::Replace)), Some(&there))).0, b"new");
    for mode in [StoreMode::Replace, StoreMode::Append, StoreMode::Prepend] {
        assert!(is_answer(&run(Op::Store(store(mode)), None), &Outcome::NotStored), "{mode:?}");
    }
}

#[test]
fn append_and_prepend_keep_flags_and_expiry() {
    let there = image(b"old", 1500, ItemState::default());
    assert_eq!(
        written(&run(Op::Store(store(StoreMode::Append)), Some(&there))),
        (b"oldnew".to_vec(), 5, 1500, 77)
    );
    assert_eq!(
        written(&run(Op::Store(store(StoreMode::Prepend)), Some(&there))),
        (b"newold".to_vec(), 5, 1500, 77)
    );
    let vivified = Store { vivify: Some(Expiry::Never), ..store(StoreMode::Append) };
    assert_eq!(written(&run(Op::Store(vivified), None)), (b"new".to_vec(), 9, 0, 77));
}

#[test]
fn cas_compares_and_an_older_token_may_store_stale() {
    let there = image(b"old", 1500, ItemState::default());
    let cas = |compare, invalidate| {
        Op::Store(Store { compare: Some(compare), invalidate, ..store(StoreMode::Set) })
    };
    assert_eq!(written(&run(cas(3, false), Some(&there))).0, b"new");
    assert!(is_answer(&run(cas(2, false), Some(&there)), &Outcome::Exists));
    assert!(is_answer(&run(cas(4, true), Some(&there)), &Outcome::Exists));
    assert!(is_answer(&run(cas(3, false), None), &Outcome::NotFound));
    let stale = run(cas(2, true), Some(&there));
    assert_eq!(written(&stale), (b"new".to_vec(), 9, 1500, 77), "the old expiry stays");
    let Decision::Put { image, .. } = &stale else { unreachable!() };
    assert!(Item::parse(image).unwrap().stale);
}

#[test]
fn numbers_wrap_up_stop_at_zero_and_keep_their_length() {
    let number = |text: &[u8]| image(text, 0, ItemState::default());
    let value = |op, there: &[u8]| written(&run(op, Some(&number(there)))).0;
    assert_eq!(value(arith(Direction::Increment, 1), b"18446744073709551615"), b"0                   ");
    assert_eq!(value(arith(Direction::Decrement, 10), b"5"), b"0");
    assert_eq!(value(arith(Direction::Decrement, 1), b"10"), b"9 ");
    assert_eq!(value(arith(Direction::Increment, 1), b"9 "), b"10");
    assert_eq!(value(arith(Direction::Increment, 1), b"99"), b"100");
    assert_eq!(value(arith(Direction::Increment, 1), b" 1 "), b"2  ");
    let padded = [b"1".as_slice(), &[b' '; 70_000]].concat();
    for bad in [&padded[..], b"x", b"", b"1x", b"-1", b"100000000000000000000"] {
        let refused = Outcome::Failed(Failure::NotANumber);
        assert!(is_answer(&run(arith(Direction::Increment, 1), Some(&number(bad))), &refused), "{bad:?}");
    }
    assert!(is_answer(&run(arith(Direction::Increment, 1), None), &Outcome::NotFound));
}

#[test]
fn a_touch_changes_the_header_only() {
    let there = image(b"old", 1500, ItemState::default());
    let Decision::Header { version, expiry, .. } =
        run(Op::Touch(Expiry::At(UnixSeconds(3000))), Some(&there))
    else {
        panic!("a touch rewrites the header")
    };
    assert_eq!((version, expiry), (3, 3000));
    let same = run(Op::Touch(Expiry::At(UnixSeconds(1500))), Some(&there));
    assert!(matches!(same, Decision::Answer(Outcome::Touched(_))), "nothing to write");
}

#[test]
fn the_first_reader_of_a_stale_item_wins_and_the_next_ones_hear_of_it() {
    let claim = Op::Get(Get { claim: Claim::IfDue, ..Get::default() });
    let stale = image(b"old", 0, ItemState { stale: true, ..ItemState::default() });
    let Decision::Header { state, outcome: Outcome::Hit(view), .. } = run(claim.clone(), Some(&stale)) else {
        panic!("the win is recorded")
    };
    assert!(view.win && view.stale && !view.win_sent && state.win_sent);
    let taken = image(b"old", 0, ItemState { stale: true, win_sent: true, ..ItemState::default() });
    let Decision::Answer(Outcome::Hit(view)) = run(claim, Some(&taken)) else {
        panic!("nothing more to record")
    };
    assert!(!view.win && view.win_sent);
    let plain = run(Op::Get(Get::default()), Some(&stale));
    assert!(matches!(plain, Decision::Answer(Outcome::Hit(view)) if !view.win), "get takes no part");
}

#[test]
fn a_miss_may_create_an_empty_item_for_the_winner() {
    let get =
        Op::Get(Get { vivify: Some(Expiry::At(UnixSeconds(1030))), claim: Claim::IfDue, ..Get::default() });
    let decision = run(get, None);
    assert_eq!(written(&decision), (Vec::new(), 0, 1030, 77));
    assert!(matches!(decision, Decision::Put { outcome: Outcome::Hit(view), .. } if view.win));
    assert!(is_answer(&run(Op::Get(Get::default()), None), &Outcome::Miss));
}

#[test]
fn a_conditional_delete_refuses_invalidates_or_removes() {
    let there = image(b"old", 1500, ItemState { win_sent: true, ..ItemState::default() });
    let delete = |compare, invalidate| Op::Delete(Delete { compare, invalidate, ..Delete::default() });
    assert!(is_answer(&run(delete(Some(4), false), Some(&there)), &Outcome::Exists));
    assert!(is_answer(&run(delete(None, false), None), &Outcome::NotFound));
    assert_eq!(run(delete(Some(3), false), Some(&there)), Decision::Remove { outcome: Outcome::Deleted });
    let Decision::Header { version, state, .. } = run(delete(None, true), Some(&there)) else {
        panic!("marked")
    };
    assert_eq!((version, state), (77, ItemState { stale: true, ..ItemState::default() }));
}

#[test]
fn a_dropped_value_leaves_nothing_but_the_version_and_what_the_client_wants() {
    let there = image(b"old", 1500, ItemState { win_sent: true, ..ItemState::default() });
    let dropped = |delete| written(&run(Op::Delete(delete), Some(&there)));
    let plain = Delete { drop_value: Some(0), ..Delete::default() };
    assert_eq!(dropped(plain), (Vec::new(), 0, 0, 3));
    assert_eq!(dropped(Delete { invalidate: true, ..plain }), (Vec::new(), 0, 0, 77));
    let touch = Some(Expiry::At(UnixSeconds(1700)));
    let with_all = Delete { drop_value: Some(8), touch, version: Some(9), ..Delete::default() };
    assert_eq!(dropped(with_all), (Vec::new(), 8, 1700, 9));
}

#[test]
fn what_is_too_large_is_refused() {
    let value = Bytes::from(vec![0; MAX_PAYLOAD_BYTES]);
    let huge = Store { value, ..store(StoreMode::Set) };
    assert!(is_answer(&run(Op::Store(huge), None), &Outcome::Failed(Failure::TooLarge)));
}

proptest! {
    #[test]
    fn incr_then_decr_is_the_identity(start: u64, delta: u64) {
        prop_assume!(start.checked_add(delta).is_some());
        let there = image(start.to_string().as_bytes(), 0, ItemState::default());
        let up = written(&run(arith(Direction::Increment, delta), Some(&there))).0;
        let down = written(&run(arith(Direction::Decrement, delta), Some(&image(&up, 0, ItemState::default())))).0;
        prop_assert_eq!(parse_number(&down), Some(start));
    }
}

#[test]
fn what_has_no_time_of_its_own_has_that_of_its_namespace() {
    let with_ttl = Context { default_ttl: 60, generation: 3, ..context() };
    let set = |expiry| {
        let op = Op::Store(Store { expiry, ..store(StoreMode::Set) });
        match super::decide(&Request::on(Key::new(Bytes::from_static(b"k")).unwrap(), op), None, with_ttl) {
            Decision::Put { image, .. } => {
                let item = Item::parse(&image).unwrap();
                (item.expiry, item.generation)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(set(Expiry::Never), (NOW.0 + 60, 3));
    assert_eq!(set(Expiry::At(UnixSeconds(NOW.0 + 5))), (NOW.0 + 5, 3));
}
