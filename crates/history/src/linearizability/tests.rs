//! Stories of one key, the checker against an exhaustive one, and large histories.

use proptest::prelude::*;

use super::*;

const KEY: &str = "k";

fn set(value: &str) -> Op {
    Op::Set(value.into())
}

fn add(value: &str) -> Op {
    Op::Add(value.into())
}

fn cas(unique: u64, value: &str) -> Op {
    Op::Cas { value: value.into(), unique }
}

fn saw(value: &str) -> Outcome {
    Outcome::Value { value: value.into(), cas: None }
}

fn saw_version(value: &str, cas: u64) -> Outcome {
    Outcome::Value { value: value.into(), cas: Some(cas) }
}

fn operation(client: u64, invoked: u64, op: Op, answer: Option<(u64, Outcome)>) -> Operation {
    let moment = |time| Moment { time, order: 0 };
    let answer = answer.map(|(at, outcome)| Answer { at: moment(at), outcome });
    Operation { client, key: KEY.into(), op, invoked: moment(invoked), answer }
}

/// A story: begin, end, what, answer. What is unknown has no end and no answer.
fn story(events: &[(u64, u64, Op, Outcome)]) -> History {
    with_unknown(events, &[])
}

fn with_unknown(events: &[(u64, u64, Op, Outcome)], unknown: &[(u64, Op)]) -> History {
    let mut history = History::default();
    for (client, (begin, end, op, outcome)) in (0..).zip(events) {
        history.push(operation(client, *begin, op.clone(), Some((*end, outcome.clone()))));
    }
    for (client, (begin, op)) in (100..).zip(unknown) {
        history.push(operation(client, *begin, op.clone(), None));
    }
    history
}

fn violation(history: &History) -> Violation {
    match check(history) {
        Err(Failure::Violation(violation)) => *violation,
        other => panic!("expected a violation: {other:?}"),
    }
}

mod stories {
    use super::Outcome::{Deleted, Exists, Flushed, NotFound, NotNumber, NotStored, Number, Stored};
    use super::*;

    #[test]
    fn nothing_happened() {
        assert_eq!(check(&History::default()), Ok(()));
        assert_eq!(check(&story(&[(1, 2, Op::Get, NotFound)])), Ok(()));
    }

    #[test]
    fn a_flush_leaves_nothing_and_takes_what_is_written_meanwhile_or_not() {
        let flush = (3, 6, Op::Flush, Flushed);
        let all = |last: Outcome| {
            [(1, 2, set("a"), Stored), flush.clone(), (4, 5, set("b"), Stored), (7, 8, Op::Get, last)]
        };
        assert_eq!(check(&story(&all(saw("b")))), Ok(()));
        assert_eq!(check(&story(&all(NotFound))), Ok(()));
        violation(&story(&all(saw("a"))));
        violation(&story(&[(1, 2, set("a"), Stored), flush.clone(), (7, 8, Op::Get, saw("a"))]));
        assert_eq!(check(&story(&[flush, (7, 8, Op::Get, NotFound)])), Ok(()), "there was nothing");
        for seen in [saw("a"), NotFound] {
            let events = [(1, 2, set("a"), Stored), (7, 8, Op::Get, seen)];
            assert_eq!(check(&with_unknown(&events, &[(3, Op::Flush)])), Ok(()));
        }
    }

    #[test]
    fn concurrent_operations_may_take_effect_in_any_order() {
        let history = story(&[
            (1, 10, set("a"), Stored),
            (1, 10, set("b"), Stored),
            (2, 3, Op::Get, saw("b")),
            (4, 5, Op::Get, saw("a")),
            (11, 12, Op::Get, saw("a")),
        ]);
        assert_eq!(check(&history), Ok(()));
    }

    #[test]
    fn a_stale_read_is_found() {
        let history = story(&[
            (1, 2, set("old"), Stored),
            (3, 4, set("new"), Stored),
            (5, 6, Op::Get, saw("old")),
            (7, 8, Op::Get, saw("new")),
        ]);
        let found = violation(&history);
        assert_eq!(found.prefix[found.culprit], history.operations()[2]);
        assert_eq!(found.prefix.len(), 3);
    }

    #[test]
    fn two_readers_may_not_see_a_write_come_and_go() {
        let history = story(&[
            (1, 2, set("old"), Stored),
            (3, 20, set("new"), Stored),
            (4, 5, Op::Get, saw("new")),
            (6, 7, Op::Get, saw("old")),
        ]);
        assert_eq!(violation(&history).culprit, 3);
    }

    #[test]
    fn a_lost_write_is_found() {
        let history = story(&[(1, 2, set("a"), Stored), (3, 4, Op::Get, NotFound)]);
        assert_eq!(violation(&history).culprit, 1);
    }

    #[test]
    fn a_resurrected_delete_is_found() {
        let history = story(&[
            (1, 2, set("a"), Stored),
            (3, 4, Op::Delete, Deleted),
            (5, 6, Op::Get, NotFound),
            (7, 8, Op::Get, saw("a")),
        ]);
        assert_eq!(violation(&history).culprit, 3);
    }

    #[test]
    fn a_value_never_written_is_found_whatever_is_unknown() {
        let read = (5, 6, Op::Get, saw("phantom"));
        let unknown = [(1, set("b")), (2, Op::Delete), (3, Op::Append("tom".into())), (4, Op::Incr(1))];
        let history = with_unknown(&[(1, 2, set("phan"), Stored), read.clone()], &unknown);
        assert_eq!(check(&history), Ok(()), "an append explains it");
        let history = with_unknown(&[(1, 2, set("fan"), Stored), read], &unknown);
        assert_eq!(violation(&history).culprit, 5);
    }

    #[test]
    fn a_double_increment_is_found() {
        let counted = |seen: u64| {
            story(&[
                (1, 2, set("5"), Stored),
                (3, 4, Op::Incr(2), Number(7)),
                (5, 6, Op::Get, saw(&seen.to_string())),
            ])
        };
        assert_eq!(check(&counted(7)), Ok(()));
        assert_eq!(violation(&counted(9)).culprit, 2);
    }

    #[test]
    fn an_unknown_increment_applies_at_most_once() {
        let seen = |value: &str| {
            with_unknown(&[(1, 2, set("5"), Stored), (5, 6, Op::Get, saw(value))], &[(3, Op::Incr(2))])
        };
        assert_eq!(check(&seen("5")), Ok(()));
        assert_eq!(check(&seen("7")), Ok(()));
        violation(&seen("9"));
    }

    #[test]
    fn increments_wrap_and_refuse_text() {
        let history = story(&[
            (1, 2, set("18446744073709551615"), Stored),
            (3, 4, Op::Incr(2), Number(1)),
            (5, 6, set("text"), Stored),
            (7, 8, Op::Incr(2), NotNumber),
            (9, 10, Op::Delete, Deleted),
            (11, 12, Op::Incr(2), NotFound),
        ]);
        assert_eq!(check(&history), Ok(()));
        violation(&story(&[(1, 2, set("1"), Stored), (3, 4, Op::Incr(2), NotNumber)]));
    }

    #[test]
    fn an_unknown_write_may_take_effect_late() {
        let events = [
            (1, 2, set("a"), Stored),
            (5, 6, Op::Get, saw("a")),
            (7, 8, set("b"), Stored),
            (9, 10, Op::Get, saw("b")),
            (11, 12, Op::Get, saw("late")),
        ];
        assert_eq!(check(&with_unknown(&events, &[(3, set("late"))])), Ok(()));
        violation(&with_unknown(&events, &[(13, set("late"))]));
    }

    #[test]
    fn an_unknown_write_may_not_be_observed_and_then_unobserved() {
        let events = [(1, 2, set("a"), Stored), (5, 6, Op::Get, saw("late")), (7, 8, Op::Get, saw("a"))];
        assert_eq!(violation(&with_unknown(&events, &[(3, set("late"))])).culprit, 3);
        assert_eq!(check(&with_unknown(&events, &[(3, set("late")), (4, set("a"))])), Ok(()));
    }

    #[test]
    fn an_unknown_delete_explains_one_absence() {
        let events = [
            (1, 2, set("a"), Stored),
            (5, 6, Op::Get, NotFound),
            (7, 8, add("b"), Stored),
            (9, 10, Op::Get, NotFound),
        ];
        violation(&with_unknown(&events, &[(3, Op::Delete)]));
        assert_eq!(check(&with_unknown(&events, &[(3, Op::Delete), (3, Op::Delete)])), Ok(()));
    }

    #[test]
    fn an_unknown_write_nobody_reads_still_explains_presence() {
        let events = [(5, 6, add("b"), NotStored), (7, 8, Op::Delete, Deleted), (9, 10, Op::Get, NotFound)];
        violation(&story(&events));
        assert_eq!(check(&with_unknown(&events, &[(1, set("unread"))])), Ok(()));
    }

    #[test]
    fn add_and_replace_depend_on_presence() {
        let history = story(&[
            (1, 2, Op::Replace("a".into()), NotStored),
            (3, 4, add("b"), Stored),
            (5, 6, add("c"), NotStored),
            (7, 8, Op::Replace("d".into()), Stored),
            (9, 10, Op::Get, saw("d")),
        ]);
        assert_eq!(check(&history), Ok(()));
        let both = [(1, 9, add("b"), Stored), (2, 8, add("c"), Stored)];
        violation(&story(&both));
    }

    #[test]
    fn appends_add_up_in_one_order() {
        let append = |text: &str| Op::Append(text.into());
        let mut events = vec![
            (1, 2, append("x"), NotStored),
            (1, 3, set("a"), Stored),
            (4, 9, append("b"), Stored),
            (4, 9, append("c"), Stored),
            (5, 10, Op::Get, saw("ac")),
            (11, 12, Op::Get, saw("acb")),
        ];
        assert_eq!(check(&story(&events)), Ok(()));
        events[5].3 = saw("abc");
        violation(&story(&events));
        events[5].3 = saw("ac");
        violation(&story(&events));
        events[5].3 = saw("acdb");
        assert_eq!(check(&with_unknown(&events, &[(1, append("d"))])), Ok(()));
    }

    #[test]
    fn cas_wins_against_the_version_it_saw_and_no_other() {
        let history = |unique, outcome| {
            story(&[
                (1, 2, set("a"), Stored),
                (3, 4, Op::Get, saw_version("a", 7)),
                (5, 6, set("a"), Stored),
                (7, 8, Op::Get, saw_version("a", 9)),
                (9, 10, cas(unique, "b"), outcome),
            ])
        };
        assert_eq!(check(&history(9, Stored)), Ok(()));
        assert_eq!(check(&history(7, Exists)), Ok(()));
        violation(&history(7, Stored));
        violation(&history(9, Exists));
        violation(&history(9, NotFound));
    }

    #[test]
    fn two_cas_on_one_version_do_not_both_win() {
        let mut events = vec![
            (1, 2, set("a"), Stored),
            (3, 4, Op::Get, saw_version("a", 7)),
            (5, 9, cas(7, "b"), Stored),
            (5, 9, cas(7, "c"), Exists),
        ];
        assert_eq!(check(&story(&events)), Ok(()));
        events[3].3 = Stored;
        violation(&story(&events));
    }

    #[test]
    fn a_version_is_not_given_twice() {
        let events = [
            (1, 2, set("a"), Stored),
            (3, 4, Op::Get, saw_version("a", 7)),
            (5, 6, set("b"), Stored),
            (7, 8, Op::Get, saw_version("b", 7)),
        ];
        violation(&story(&events));
    }

    #[test]
    fn of_two_equal_values_a_read_may_have_seen_the_later_version() {
        let history = story(&[
            (1, 2, set("a"), Stored),
            (3, 20, set("a"), Stored),
            (3, 9, Op::Get, saw_version("a", 1)),
            (3, 10, Op::Get, saw_version("a", 2)),
            (21, 22, Op::Get, saw_version("a", 1)),
        ]);
        assert_eq!(check(&history), Ok(()));
    }

    #[test]
    fn an_answer_that_does_not_fit_its_question_is_a_violation() {
        violation(&story(&[(1, 2, set("a"), Deleted)]));
    }

    #[test]
    fn keys_do_not_disturb_each_other() {
        let mut history = History::default();
        let first = history.invoke(1, 1, "x", set("1"));
        history.answer(1, first, Stored);
        let second = history.invoke(1, 1, "y", Op::Get);
        history.answer(1, second, NotFound);
        assert_eq!(check(&history), Ok(()));
        let third = history.invoke(1, 2, "x", Op::Get);
        history.answer(1, third, NotFound);
        assert_eq!(violation(&history).key, "x".into());
    }

    #[test]
    fn events_at_one_time_follow_each_other_as_recorded() {
        let mut history = History::default();
        for (op, outcome) in [(set("a"), Stored), (set("b"), Stored), (Op::Get, saw("a"))] {
            let operation = history.invoke(5, 1, KEY, op);
            history.answer(5, operation, outcome);
        }
        violation(&history);
    }
}

mod reports {
    use super::*;

    #[test]
    fn the_text_names_the_key_the_answer_and_who_wrote_what_was_seen() {
        let mut history = History::default();
        for value in 0..50 {
            let written = history.invoke(value * 10, 3, KEY, set(&format!("v{value}")));
            history.answer(value * 10 + 5, written, Outcome::Stored);
        }
        let read = history.invoke(1000, 4, KEY, Op::Get);
        history.answer(1001, read, saw("v2"));
        let text = violation(&history).to_string();
        assert!(text.contains("key \"k\" is not linearizable"), "{text}");
        assert!(text.contains("client 4: get -> \"v2\""), "{text}");
        assert!(text.contains("client 3: set \"v2\" -> stored"), "{text}");
        assert!(text.contains("operations on the key, 21 of 51"), "{text}");
        assert!(!text.contains("\"v3\""), "{text}");
    }

    #[test]
    fn the_prefix_ends_where_the_history_went_wrong() {
        let mut history = History::default();
        for round in 0..100 {
            let written = history.invoke(round * 10, 1, KEY, set(&format!("v{round}")));
            history.answer(round * 10 + 1, written, Outcome::Stored);
            let read = history.invoke(round * 10 + 2, 2, KEY, Op::Get);
            let seen = if round == 40 { 39 } else { round };
            history.answer(round * 10 + 3, read, saw(&format!("v{seen}")));
        }
        let found = violation(&history);
        assert_eq!((found.prefix.len(), found.culprit), (82, 81));
    }

    #[test]
    fn too_hard_a_history_is_undecided_not_passed() {
        let mut history = story(&[(30, 31, Op::Get, saw("never"))]);
        for client in 0..10 {
            let value = format!("v{client}");
            history.push(operation(client, 1, set(&value), Some((20, Outcome::Stored))));
            history.push(operation(client + 20, 1, Op::Get, Some((20, saw(&value)))));
        }
        let result = check_within(&history, Limits { max_steps: 50 });
        assert_eq!(result, Err(Failure::Undecided { key: KEY.into(), max_steps: 50 }));
        violation(&history);
    }

    #[test]
    fn histories_survive_json() {
        let mut history = with_unknown(
            &[
                (1, 2, set("a"), Outcome::Stored),
                (3, 4, Op::Get, saw_version("a", u64::MAX)),
                (5, 6, cas(9, "\u{1}\""), Outcome::Exists),
                (5, 6, Op::Incr(9), Outcome::Number(3)),
            ],
            &[(3, Op::Delete)],
        );
        history.push(Operation { key: Bytes(vec![0, 128, 255]), ..operation(1, 1, Op::Get, None) });
        let mut lines = Vec::new();
        history.write(&mut lines).unwrap();
        assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 6);
        assert_eq!(History::read(lines.as_slice()).unwrap(), history);
        let error = History::read(b"\n{}".as_slice()).unwrap_err();
        assert!(error.to_string().contains("line 2"));
    }

    #[test]
    fn each_key_is_one_line_for_other_checkers() {
        let mut history = History::default();
        for key in ["b", "a", "b"] {
            history.invoke(1, 1, key, Op::Get);
        }
        let mut text = Vec::new();
        history.write_by_key(&mut text).unwrap();
        let lines: Vec<Vec<Operation>> = text
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        let [a, b] = [1, 0].map(|index| history.operations()[index].clone());
        assert_eq!(lines, [vec![a], vec![b, history.operations()[2].clone()]]);
    }
}

/// A checker that knows nothing but the rules: all orders, no memory, plain values.
mod exhaustive {
    use super::*;

    #[derive(Clone, Default)]
    struct Server {
        item: Option<(Vec<u8>, Option<u64>)>,
        seen: Vec<u64>,
    }

    impl Server {
        fn store(&mut self, value: &[u8]) -> bool {
            self.item = Some((value.to_vec(), None));
            true
        }

        /// Whether `unique` may be the present version's.
        fn matches(&self, unique: u64) -> bool {
            let Some((_, version)) = &self.item else { return false };
            version.map_or(!self.seen.contains(&unique), |version| version == unique)
        }

        fn number(&self) -> Option<u64> {
            let text = std::str::from_utf8(&self.item.as_ref()?.0).ok()?;
            if text.starts_with('+') { None } else { text.parse().ok() }
        }

        /// Executes `op`; whether `outcome`, if there is one, is right. An operation without effect is not executed.
        fn execute(&mut self, op: &Op, outcome: Option<&Outcome>) -> bool {
            let present = self.item.is_some();
            match (op, outcome) {
                (Op::Get, None) => false,
                (Op::Get, Some(Outcome::NotFound)) => !present,
                (Op::Get, Some(Outcome::Value { value, cas })) => {
                    let fits = self.item.as_ref().is_some_and(|(held, _)| *held == value.0);
                    if !fits || cas.is_some_and(|unique| !self.matches(unique)) {
                        return false;
                    }
                    self.seen.extend(cas);
                    self.item = self.item.take().map(|(held, version)| (held, version.or(*cas)));
                    true
                }
                (Op::Set(value), None | Some(Outcome::Stored)) => self.store(&value.0),
                (Op::Add(value), None | Some(Outcome::Stored)) => !present && self.store(&value.0),
                (Op::Add(_), Some(Outcome::NotStored)) => present,
                (Op::Replace(value), None | Some(Outcome::Stored)) => present && self.store(&value.0),
                (Op::Replace(_) | Op::Append(_), Some(Outcome::NotStored)) => !present,
                (Op::Append(suffix), None | Some(Outcome::Stored)) => {
                    let held = self.item.clone();
                    held.is_some_and(|(held, _)| self.store(&[held, suffix.0.clone()].concat()))
                }
                (Op::Delete, None | Some(Outcome::Deleted)) => self.item.take().is_some(),
                (Op::Flush, None) => self.item.take().is_some(),
                (Op::Flush, Some(Outcome::Flushed)) => {
                    self.item = None;
                    true
                }
                (Op::Delete | Op::Touch | Op::Cas { .. } | Op::Incr(_), Some(Outcome::NotFound)) => !present,
                (Op::Touch, Some(Outcome::Touched)) => present,
                (Op::Cas { value, unique }, None | Some(Outcome::Stored)) => {
                    let fits = self.matches(*unique);
                    self.seen.extend(outcome.filter(|_| fits).map(|_| *unique));
                    fits && self.store(&value.0)
                }
                (Op::Cas { unique, .. }, Some(Outcome::Exists)) => {
                    self.item.as_ref().is_some_and(|(_, version)| *version != Some(*unique))
                }
                (Op::Incr(_), Some(Outcome::NotNumber)) => present && self.number().is_none(),
                (Op::Incr(by), None) => {
                    self.number().is_some_and(|n| self.store(n.wrapping_add(*by).to_string().as_bytes()))
                }
                (Op::Incr(by), Some(Outcome::Number(to))) => {
                    self.number().is_some_and(|n| n.wrapping_add(*by) == *to)
                        && self.store(to.to_string().as_bytes())
                }
                _ => false,
            }
        }
    }

    pub(super) fn is_linearizable(operations: &[Operation]) -> bool {
        search(&Server::default(), &operations.iter().collect::<Vec<_>>())
    }

    fn search(server: &Server, rest: &[&Operation]) -> bool {
        let Some(deadline) = rest.iter().filter_map(|op| op.answer.as_ref()).map(|answer| answer.at).min()
        else {
            return true;
        };
        (0..rest.len()).filter(|index| rest[*index].invoked <= deadline).any(|index| {
            let mut after = server.clone();
            let mut others = rest.to_vec();
            let chosen = others.remove(index);
            after.execute(&chosen.op, chosen.answer.as_ref().map(|answer| &answer.outcome))
                && search(&after, &others)
        })
    }
}

fn value_strategy() -> impl Strategy<Value = Bytes> {
    prop::sample::select(vec!["", "1", "2", "12", "a", "b", "ab"]).prop_map(|text| text.into())
}

fn op_strategy() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Get),
        3 => value_strategy().prop_map(Op::Set),
        1 => value_strategy().prop_map(Op::Add),
        1 => value_strategy().prop_map(Op::Replace),
        2 => value_strategy().prop_map(Op::Append),
        2 => (value_strategy(), 1u64..5).prop_map(|(value, unique)| Op::Cas { value, unique }),
        2 => Just(Op::Delete),
        2 => (1u64..12).prop_map(Op::Incr),
        1 => Just(Op::Flush),
    ]
}

fn draft_strategy() -> impl Strategy<Value = simulated::Draft> {
    use simulated::Fate::{Answered, Lost, Silent};
    let fate = prop_oneof![5 => Just(Answered), 2 => Just(Silent), 1 => Just(Lost)];
    (op_strategy(), 0u64..12, 0u64..6, 0u64..4, fate, any::<bool>()).prop_map(
        |(op, begin, delay, length, fate, with_cas)| simulated::Draft {
            op,
            begin,
            delay,
            length,
            fate,
            with_cas,
        },
    )
}

fn outcome_strategy() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        (value_strategy(), prop::option::of(1u64..5)).prop_map(|(value, cas)| Outcome::Value { value, cas }),
        Just(Outcome::Stored),
        Just(Outcome::NotStored),
        Just(Outcome::Exists),
        Just(Outcome::NotFound),
        Just(Outcome::Deleted),
        (1u64..15).prop_map(Outcome::Number),
        Just(Outcome::NotNumber),
        Just(Outcome::Flushed),
    ]
}

fn verdict(operations: Vec<Operation>) -> Result<(), Failure> {
    let mut history = History::default();
    operations.into_iter().for_each(|operation| history.push(operation));
    check(&history)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_a_correct_server_did_is_linearizable(drafts in prop::collection::vec(draft_strategy(), 0..25)) {
        prop_assert_eq!(verdict(simulated::history(&drafts)), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn the_search_agrees_with_an_exhaustive_one(
        drafts in prop::collection::vec(draft_strategy(), 1..8),
        changes in prop::collection::vec((any::<prop::sample::Index>(), outcome_strategy()), 0..3),
        late in prop::option::of((any::<prop::sample::Index>(), 0u64..12)),
    ) {
        let mut operations = simulated::history(&drafts);
        for (index, outcome) in changes {
            if let Some(answer) = &mut operations[index.index(drafts.len())].answer {
                answer.outcome = outcome;
            }
        }
        if let Some((index, begin)) = late {
            let moved = &mut operations[index.index(drafts.len())];
            let end = moved.answer.as_ref().map_or(u64::MAX, |answer| answer.at.time);
            moved.invoked.time = begin.min(end);
        }
        let expected = exhaustive::is_linearizable(&operations);
        match verdict(operations.clone()) {
            Ok(()) => prop_assert!(expected),
            Err(Failure::Violation(found)) => {
                prop_assert!(!expected);
                prop_assert!(!exhaustive::is_linearizable(&found.prefix));
                let mut without = found.prefix.clone();
                let end = without[found.culprit].answer.as_ref().map(|answer| answer.at);
                for operation in &mut without {
                    operation.answer.take_if(|answer| Some(answer.at) == end);
                }
                prop_assert!(exhaustive::is_linearizable(&without));
            }
            Err(undecided) => prop_assert!(false, "{}", undecided),
        }
    }
}

mod large {
    use super::simulated::{Draft, Fate};
    use super::*;

    struct Draw(u64);

    impl Draw {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    /// `clients` clients that each do one operation after the other, on one key, with `unknown` per cent unknown.
    fn drafts(
        seed: u64,
        clients: u64,
        rounds: u64,
        unknown: u64,
        op: impl Fn(&mut Draw, u64) -> Op,
    ) -> Vec<Draft> {
        let mut draw = Draw(seed);
        let mut drafts = Vec::new();
        for client in 0..clients {
            let mut now = 0;
            for round in 0..rounds {
                let fate = match draw.below(200) {
                    chance if chance < unknown => Fate::Silent,
                    chance if chance < 2 * unknown => Fate::Lost,
                    _ => Fate::Answered,
                };
                let op = op(&mut draw, client * rounds + round);
                let (begin, delay, length) = (now + draw.below(20), draw.below(60), draw.below(60));
                now = begin + delay + length + 1;
                // What is unknown may take effect much later.
                let delay = if fate == Fate::Silent { draw.below(3000) } else { delay };
                drafts.push(Draft { op, begin, delay, length, fate, with_cas: draw.below(4) == 0 });
            }
        }
        drafts
    }

    fn mixed(draw: &mut Draw, unique: u64) -> Op {
        let value = Bytes(format!("{}v", unique + 1000).into_bytes());
        match draw.below(20) {
            0..10 => Op::Get,
            10..15 => Op::Set(value),
            15 => Op::Add(value),
            16 => Op::Replace(value),
            17 => Op::Cas { value, unique: draw.below(900) },
            18 => Op::Delete,
            _ => Op::Incr(1),
        }
    }

    fn assert_decided_in(operations: Vec<Operation>, steps_per_operation: usize) {
        let mut history = History::default();
        let max_steps = operations.len() * steps_per_operation;
        operations.into_iter().for_each(|operation| history.push(operation));
        assert_eq!(check_within(&history, Limits { max_steps }), Ok(()));
    }

    #[test]
    fn thousands_of_operations_of_32_clients_with_unknown_ones_are_decided_fast() {
        for seed in 0..3 {
            assert_decided_in(simulated::history(&drafts(seed, 32, 125, 6, mixed)), 10);
        }
    }

    #[test]
    fn counters_and_logs_of_8_clients_are_decided_fast() {
        let counter = |draw: &mut Draw, _| match draw.below(20) {
            0 => set("0"),
            1 => Op::Delete,
            2..4 => add("0"),
            4..10 => Op::Get,
            _ => Op::Incr(1),
        };
        assert_decided_in(simulated::history(&drafts(6, 8, 250, 2, counter)), 50);
        let log = |draw: &mut Draw, unique: u64| match draw.below(20) {
            0 => Op::Delete,
            1..4 => add(&format!("{unique};")),
            4..10 => Op::Get,
            _ => Op::Append(Bytes(format!("{unique};").into_bytes())),
        };
        assert_decided_in(simulated::history(&drafts(7, 8, 250, 2, log)), 50);
    }

    #[test]
    fn thousands_of_reads_and_blind_writes_of_few_values_are_decided_fast() {
        let few = |draw: &mut Draw, _| match draw.below(4) {
            0 => Op::Set(Bytes(vec![b'a' + draw.below(3) as u8])),
            1 => Op::Delete,
            _ => Op::Get,
        };
        assert_decided_in(simulated::history(&drafts(4, 32, 125, 6, few)), 100);
    }

    #[test]
    fn a_stale_read_late_in_a_large_history_is_found() {
        let mut operations = simulated::history(&drafts(5, 16, 150, 6, mixed));
        let reads = |operation: &&mut Operation| {
            matches!(operation.answer.as_ref().map(|a| &a.outcome), Some(Outcome::Value { .. }))
        };
        let mut reads: Vec<&mut Operation> = operations.iter_mut().filter(reads).collect();
        let old = reads[reads.len() / 4].answer.as_ref().map(|answer| answer.outcome.clone());
        let late = reads.len() * 3 / 4;
        let answer = reads[late].answer.as_mut().expect("reads have answers");
        answer.outcome = old.expect("reads have answers");
        let end = answer.at;
        let Err(Failure::Violation(found)) = verdict(operations) else { panic!("a stale read passed") };
        assert_eq!(found.prefix[found.culprit].answer.as_ref().map(|answer| answer.at), Some(end));
    }
}
