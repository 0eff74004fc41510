//! Our linearizability checker against porcupine, on the same histories: what a correct key did, the same with false
//! answers, and what clients of a real cluster saw. The two share no code. The model of a key in Go is meant to say the same
//! as `model.rs` in the plainest way, without its reductions: what both leave open, this cannot find.
//!
//! Porcupine comes from the Go module proxy, at the version in `porcupine/go.mod`.

use std::time::Duration;

use history::linearizability::simulated::{Draft, Fate, history};
use history::linearizability::{Bytes, Failure, Op, Operation, Outcome, check};
use history::porcupine::{one_history, verdicts};
use history::recorder::{Recorder, Workload};
use processes::local_cluster::{LocalCluster, Options};
use rng::Rng;

/// Histories of each kind.
const HISTORIES: u64 = 3000;

/// Ways in which each recorded history is made false.
const VARIANTS: usize = 20;

/// What random histories look like.
struct Shape {
    name: &'static str,
    /// Operations, at most.
    operations: u64,
    /// When the last one begins: few operations in a long time hardly overlap.
    span: u64,
    /// Per cent without an answer. Each doubles what porcupine has to try.
    unanswered: u64,
    /// Weights of get, set, add, replace, append, cas, delete, incr and flush.
    mix: [u32; 10],
    /// Per cent that store something, roughly.
    stores: u64,
}

const ANY: Shape = Shape {
    name: "",
    operations: 0,
    span: 0,
    unanswered: 0,
    mix: [5, 3, 1, 1, 2, 2, 2, 2, 1, 1],
    stores: 40,
};
const SHAPES: [Shape; 5] = [
    Shape { name: "short", operations: 8, span: 12, unanswered: 35, ..ANY },
    Shape { name: "crowded", operations: 14, span: 6, unanswered: 25, ..ANY },
    Shape { name: "medium", operations: 25, span: 40, unanswered: 15, ..ANY },
    Shape { name: "long", operations: 120, span: 600, unanswered: 2, ..ANY },
    Shape {
        name: "versions",
        operations: 30,
        span: 100,
        unanswered: 5,
        mix: [8, 1, 0, 0, 0, 6, 0, 0, 0, 1],
        stores: 20,
    },
];

/// How often the checkers said what.
#[derive(Debug, Default)]
struct Counts {
    ok: usize,
    illegal: usize,
}

impl Counts {
    /// Agreement means little unless each verdict is a tenth of all at least.
    fn assert_mixed(&self) {
        let all = self.ok + self.illegal;
        assert!(self.ok * 10 >= all && self.illegal * 10 >= all, "one verdict is too rare: {self:?}");
    }
}

#[test]
fn both_checkers_agree_on_what_a_correct_key_did() {
    for (seed, shape) in (1..).zip(&SHAPES) {
        let mut rng = Rng::new(seed, 0);
        let histories: Vec<_> = (0..HISTORIES).map(|_| history(&drafts(shape, &mut rng))).collect();
        let counts = compare(&format!("correct-{}", shape.name), &histories);
        assert_eq!(counts.illegal, 0, "what a correct key did is called illegal");
    }
}

#[test]
fn both_checkers_agree_on_histories_with_false_answers() {
    for (seed, shape) in (11..).zip(&SHAPES) {
        let mut rng = Rng::new(seed, 0);
        let corrupted = |_| corrupt(history(&drafts(shape, &mut rng)), &mut rng);
        let histories: Vec<_> = (0..HISTORIES).map(corrupted).collect();
        compare(&format!("corrupted-{}", shape.name), &histories).assert_mixed();
    }
}

#[test]
fn both_checkers_agree_on_what_clients_of_a_cluster_saw() {
    let recorded = recorded();
    let counts = compare("recorded", &recorded);
    assert_eq!(counts.illegal, 0, "the cluster is not linearizable");
    let mut rng = Rng::new(21, 0);
    let corrupted = recorded.iter().cycle().take(recorded.len() * VARIANTS);
    let corrupted: Vec<_> = corrupted.map(|history| corrupt(history.clone(), &mut rng)).collect();
    compare("recorded-corrupted", &corrupted).assert_mixed();
}

/// What a few clients of a healthy cluster saw, key by key.
fn recorded() -> Vec<Vec<Operation>> {
    const ANSWERS: u64 = 4000;
    let cluster = LocalCluster::start(&Options::default()).expect("a cluster starts");
    let workload = Workload { clients: 6, keys: 30, max_value_bytes: 100, ..Workload::default() };
    let recorder = Recorder::start(&workload, &cluster.all_memcached());
    recorder.wait_for(ANSWERS, Duration::from_secs(30)).expect("a healthy cluster answers");
    let seen = recorder.finish().history;
    seen.by_key().into_values().map(|operations| operations.into_iter().cloned().collect()).collect()
}

/// Asks both checkers about every history, prints the counts, and demands that they agree.
fn compare(name: &str, histories: &[Vec<Operation>]) -> Counts {
    let theirs = verdicts(name, histories).expect("porcupine can be asked");
    assert_eq!(theirs.len(), histories.len(), "porcupine left histories out");
    let mut counts = Counts::default();
    for (number, (operations, theirs)) in histories.iter().zip(&theirs).enumerate() {
        let ours = our_verdict(operations);
        if ours != theirs {
            let told: Vec<String> = operations.iter().map(ToString::to_string).collect();
            panic!("{name} {number}: we say {ours}, porcupine {theirs}:\n{}", told.join("\n"));
        }
        match ours {
            "ok" => counts.ok += 1,
            _ => counts.illegal += 1,
        }
    }
    println!("{name}: {} histories, both say ok {}, illegal {}", histories.len(), counts.ok, counts.illegal);
    counts
}

fn our_verdict(operations: &[Operation]) -> &'static str {
    match check(&one_history(operations)) {
        Ok(()) => "ok",
        Err(Failure::Violation(_)) => "illegal",
        Err(Failure::Undecided { .. }) => "undecided",
    }
}

/// A unique that is not far from `version`.
fn near(version: u64, rng: &mut Rng) -> u64 {
    rng.range(version.saturating_sub(2).max(1), version + 2)
}

/// Few values, so that operations cannot be told apart by them, and numbers and text that appends make of each other.
const VALUES: [&str; 7] = ["", "1", "2", "12", "a", "b", "ab"];

fn value(rng: &mut Rng) -> Bytes {
    rng.pick(&VALUES).into()
}

/// Any operation. A cas names a unique near `version`.
fn op(mix: &[u32], version: u64, rng: &mut Rng) -> Op {
    match rng.weighted(mix) {
        0 => Op::Get,
        1 => Op::Set(value(rng)),
        2 => Op::Add(value(rng)),
        3 => Op::Replace(value(rng)),
        4 => Op::Append(value(rng)),
        5 => Op::Cas { value: value(rng), unique: near(version, rng) },
        6 => Op::Delete,
        7 => Op::Incr(rng.range(1, 11)),
        8 => Op::Flush,
        _ => Op::Touch,
    }
}

fn drafts(shape: &Shape, rng: &mut Rng) -> Vec<Draft> {
    (0..rng.range(1, shape.operations)).map(|_| draft(shape, rng)).collect()
}

fn draft(shape: &Shape, rng: &mut Rng) -> Draft {
    let fate = match rng.percent(shape.unanswered) {
        false => Fate::Answered,
        true if rng.once_in(3) => Fate::Lost,
        true => Fate::Silent,
    };
    // What is not answered may take effect much later.
    let delay = rng.below(if fate == Fate::Silent { shape.span } else { 6 });
    let (begin, length) = (rng.below(shape.span), rng.below(4));
    let version = begin * shape.operations * shape.stores / 100 / shape.span;
    Draft { op: op(&shape.mix, version, rng), begin, delay, length, fate, with_cas: rng.once_in(2) }
}

/// Makes one to three things false; by chance the history may still be linearizable.
fn corrupt(mut operations: Vec<Operation>, rng: &mut Rng) -> Vec<Operation> {
    for _ in 0..rng.range(1, 3) {
        let chosen = rng.index(operations.len());
        match rng.below(5) {
            0 => invent_outcome(&mut operations[chosen], rng),
            1 => copy_outcome(&mut operations, chosen, rng),
            2 => begin_later(&mut operations[chosen]),
            3 => change_version(&mut operations, rng),
            _ if operations.len() > 1 => drop(operations.remove(chosen)),
            _ => {}
        }
    }
    operations
}

/// Gives an operation another answer: mostly one that it might have had in another state, sometimes nonsense.
fn invent_outcome(operation: &mut Operation, rng: &mut Rng) {
    use Outcome::{Deleted, Exists, NotFound, NotNumber, NotStored, Stored};
    let Some(answer) = &mut operation.answer else { return };
    let hit = Outcome::Value { value: value(rng), cas: rng.once_in(2).then(|| rng.range(1, 6)) };
    let number = Outcome::Number(rng.range(1, 14));
    let nonsense = [hit.clone(), number.clone(), Stored, NotStored, Exists, NotFound, Deleted, NotNumber];
    let outcomes = match operation.op {
        _ if rng.once_in(8) => &nonsense[..],
        Op::Get => &[hit, NotFound],
        Op::Set(_) => &[Stored],
        Op::Add(_) | Op::Replace(_) | Op::Append(_) => &[Stored, NotStored],
        Op::Cas { .. } => &[Stored, Exists, NotFound],
        Op::Delete => &[Deleted, NotFound],
        Op::Incr(_) => &[number, NotNumber, NotFound],
        Op::Touch => &[Outcome::Touched, NotFound],
        Op::Flush => &[Outcome::Flushed],
    };
    answer.outcome = outcomes[rng.index(outcomes.len())].clone();
}

/// Gives an operation the answer that another one of its kind had: a stale read, for example.
fn copy_outcome(operations: &mut [Operation], chosen: usize, rng: &mut Rng) {
    let kind = std::mem::discriminant(&operations[chosen].op);
    let same_kind = operations.iter().filter(|other| std::mem::discriminant(&other.op) == kind);
    let outcomes: Vec<Outcome> =
        same_kind.filter_map(|other| other.answer.as_ref()).map(|answer| answer.outcome.clone()).collect();
    if let Some(answer) = &mut operations[chosen].answer {
        answer.outcome = outcomes[rng.index(outcomes.len())].clone();
    }
}

/// Gives a read another unique than it saw.
fn change_version(operations: &mut [Operation], rng: &mut Rng) {
    let mut seen: Vec<&mut u64> = operations.iter_mut().filter_map(version_seen).collect();
    if !seen.is_empty() {
        let chosen = rng.index(seen.len());
        *seen[chosen] = near(*seen[chosen], rng);
    }
}

fn version_seen(operation: &mut Operation) -> Option<&mut u64> {
    match &mut operation.answer.as_mut()?.outcome {
        Outcome::Value { cas, .. } => cas.as_mut(),
        _ => None,
    }
}

/// Lets an operation begin only when its answer comes, which takes it out of the time in which it had its effect.
fn begin_later(operation: &mut Operation) {
    if let Some(answer) = &operation.answer {
        operation.invoked = answer.at;
    }
}
