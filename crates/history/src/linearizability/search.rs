//! The search for an order of the operations on one key.
//!
//! A node is the set of operations that are in the past, and the state they left. Its children put one more operation
//! in the past: one that no operation outside the set *ended before*. The search succeeds when all answered operations
//! are in the past: the others may take effect never.
//!
//! What keeps it small. Each rule keeps at least one order if there is any:
//!
//! - **Reads first.** A read whose answer fits the state, and teaches nothing new about it, goes next: moving it here
//!   from a later place changes no state, and it was free to move.
//! - **Twins.** Of answered operations that are the same step, the one that ended first goes first; of unanswered ones,
//!   the one that began first. Two twins can trade places, and what was free to be late is free to be early.
//! - **Unanswered operations only when needed.** They have no deadline, so each can be put off until right before the
//!   first operation `x` that needs it: if `x` fits without it, then either `x` is a read, and the unanswered operation
//!   can follow it, or `x` leaves the same state with and without it, and it need not take effect. The exception is
//!   an append `x`, which fits anywhere and remembers what was there. Within a run of unanswered operations, one that
//!   the next leaves no trace of need not take effect either, nor need a run come back to a state, and increments go
//!   in one order. So the children are *(run, x)* with such runs.
//! - **Memory.** A node is not searched if one with the same answered operations in the past, the same state, and no
//!   unanswered operation more was searched in vain: whatever works here would have worked there.
//! - **Dead ends.** A value that is still to be read cannot be left if nothing remains that could bring it back, nor a
//!   version that is still to be seen. Nor can a node lead on if one of the operations that come next fits neither the
//!   state nor anything that the operations before its end could make of it.
//!
//! The set of answered operations is remembered as a 128-bit hash: of a billion nodes two collide with a probability
//! of 10^-21.

use types::FastMap;

use super::history::Moment;
use super::model::{CasId, Model, State, Step, ValueId};

/// An answered operation.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) step: Step,
    pub(super) invoked: Moment,
    pub(super) returned: Moment,
}

/// What the search found.
pub(super) enum Verdict {
    Linearizable,
    /// There is no order.
    Violation,
    /// Too many nodes.
    Undecided,
}

/// Unanswered operations that are the same step, by invocation.
struct Twins {
    step: Step,
    invoked: Vec<Moment>,
    used: usize,
}

/// The next answered operation, after a run of unanswered ones.
struct Move {
    /// Of each operation the index of its [`Twins`], and the state it leaves.
    run: Vec<(usize, State)>,
    known: usize,
    before: State,
    after: State,
}

/// A node on the way from the start, and what is left to try from there.
struct Frame {
    /// How it was reached; none at the start.
    by: Option<Move>,
    state: State,
    /// Only what was invoked by then may come next.
    deadline: Moment,
    /// The best last.
    ideas: Vec<Idea>,
}

/// What can be tried from a node.
enum Idea {
    Move(Move),
    /// This answered operation, after any run of unanswered ones.
    Runs(usize),
}

/// A search for the moves to answered operation `known` from the state `before` by runs.
struct Runs {
    known: usize,
    before: State,
    deadline: Moment,
    tries: usize,
    found: Vec<Move>,
}

impl Runs {
    /// Unanswered increments by many different numbers, or many unanswered appends, make more runs than can be tried.
    const MAX_TRIES: usize = 10_000;
}

/// How many of which [`Twins`] were used at a node; those not listed were not.
type Used = Vec<(usize, usize)>;

/// A search on the history of one key.
pub(super) struct Search<'a> {
    model: &'a mut Model,
    /// By invocation.
    known: Vec<Known>,
    unknown: Vec<Twins>,
    /// Links of the known operations that are not in the past, in order; the last entry is the list's head.
    next: Vec<usize>,
    previous: Vec<usize>,
    tally: Tally,
    past: u128,
    past_count: usize,
    visited: FastMap<(u128, State), Vec<Used>>,
    /// Nodes, and tries of runs.
    steps: usize,
    /// Whether some runs were not tried: a search in vain proves nothing then.
    skipped: bool,
}

impl<'a> Search<'a> {
    /// A search over `known`, and the effects of `unknown` operations with the moments they were invoked.
    pub(super) fn new(model: &'a mut Model, mut known: Vec<Known>, unknown: Vec<(Step, Moment)>) -> Self {
        known.sort_by_key(|op| op.invoked);
        let steps = known.iter().map(|op| op.step).chain(unknown.iter().map(|(step, _)| *step));
        let mut tally = Tally::new(model, &steps.collect::<Vec<_>>());
        known.iter().for_each(|op| tally.add_known(op.step));
        // Nothing waits for what an unanswered one would have seen: it need never take effect.
        unknown.iter().for_each(|(step, _)| tally.add_producer(*step));
        let head = known.len();
        Self {
            model,
            next: (1..=head).chain([0]).collect(),
            previous: [head].into_iter().chain(0..head).collect(),
            known,
            unknown: group(unknown),
            tally,
            past: 0,
            past_count: 0,
            visited: FastMap::default(),
            steps: 0,
            skipped: false,
        }
    }

    /// Searches from an absent key, through at most `max_steps` nodes and tries of runs.
    pub(super) fn run(mut self, max_steps: usize) -> Verdict {
        if self.known.is_empty() {
            return Verdict::Linearizable;
        }
        let mut path = vec![self.frame(None, State::Absent)];
        while let Some(frame) = path.last_mut() {
            let Some(candidate) = self.next_move(frame) else {
                let left = path.pop().and_then(|frame| frame.by);
                left.iter().for_each(|by| self.undo(by));
                continue;
            };
            self.take(&candidate);
            if self.past_count == self.known.len() {
                return Verdict::Linearizable;
            }
            // In this order: a node is remembered as searched in vain, and a dead end needs no memory.
            if self.is_dead_end(&candidate) || !self.visit(candidate.after) {
                self.undo(&candidate);
                continue;
            }
            if self.steps > max_steps {
                return Verdict::Undecided;
            }
            let state = candidate.after;
            path.push(self.frame(Some(candidate), state));
        }
        if self.skipped { Verdict::Undecided } else { Verdict::Violation }
    }

    /// The present node, with all that can be tried from there.
    fn frame(&mut self, by: Option<Move>, state: State) -> Frame {
        let (candidates, deadline) = self.candidates();
        let (mut moves, mut unfit) = (Vec::new(), Vec::new());
        for known in &candidates {
            let step = self.known[*known].step;
            let after = self.apply(step, state);
            let direct = after.map(|after| Move { run: Vec::new(), known: *known, before: state, after });
            if step.is_read() && after == Some(state) {
                return Frame { by, state, deadline, ideas: direct.map(Idea::Move).into_iter().collect() };
            }
            if after.is_none() || matches!(step, Step::Extend(_)) {
                unfit.push(*known);
            }
            moves.extend(direct);
        }
        // Each of these has to follow before anything that began after its end: if one of them
        // never can, nothing else helps.
        let hopeless = unfit.iter().any(|known| self.is_hopeless(*known, state));
        let ideas = if hopeless { Vec::new() } else { self.ideas(&candidates, moves, unfit) };
        Frame { by, state, deadline, ideas }
    }

    /// In what order to try the `candidates`, of which some are possible as `moves` at once and others are `unfit`; all
    /// three lists begin with the most urgent. What lets the most urgent one follow is best.
    fn ideas(&mut self, candidates: &[usize], mut moves: Vec<Move>, unfit: Vec<usize>) -> Vec<Idea> {
        let mut ideas: Vec<Idea> = unfit.iter().rev().map(|known| Idea::Runs(*known)).collect();
        let urgent = unfit.first().filter(|known| Some(*known) == candidates.first());
        let Some(urgent) = urgent.map(|known| self.known[*known].step) else {
            ideas.extend(moves.into_iter().rev().map(Idea::Move));
            return ideas;
        };
        moves.sort_by_cached_key(|candidate| self.apply(urgent, candidate.after).is_none());
        let brings_it =
            |known: &usize| urgent.needs().is_some() && self.known[*known].step.produces() == urgent.needs();
        let only_by_runs = urgent.needs().is_some() && !candidates.iter().any(brings_it);
        // Those of the most urgent one were put last. They go first where no answered
        // operation brings what it needs.
        let runs_first = if only_by_runs { ideas.pop() } else { None };
        ideas.extend(moves.into_iter().rev().map(Idea::Move));
        ideas.extend(runs_first);
        ideas
    }

    fn next_move(&mut self, frame: &mut Frame) -> Option<Move> {
        loop {
            match frame.ideas.pop()? {
                Idea::Move(candidate) => return Some(candidate),
                Idea::Runs(known) => {
                    let mut runs = Runs {
                        known,
                        before: frame.state,
                        deadline: frame.deadline,
                        tries: 0,
                        found: Vec::new(),
                    };
                    self.extend(&mut runs, &mut Vec::new());
                    self.steps += runs.tries;
                    frame.ideas.extend(runs.found.into_iter().rev().map(Idea::Move));
                }
            }
        }
    }

    /// The answered operations that may come next, by the moment they ended and without their twins; and the moment up
    /// to which an operation must have been invoked to come next.
    fn candidates(&self) -> (Vec<usize>, Moment) {
        let mut deadline = Moment { time: u64::MAX, order: u64::MAX };
        let mut candidates = Vec::new();
        for at in self.rest() {
            // By invocation: all that follow began even later.
            if self.known[at].invoked > deadline {
                break;
            }
            deadline = deadline.min(self.known[at].returned);
            candidates.push(at);
        }
        candidates.sort_by_key(|known| self.known[*known].returned);
        let mut distinct: Vec<usize> = Vec::with_capacity(candidates.len());
        for known in candidates {
            if !distinct.iter().any(|earlier| self.known[*earlier].step == self.known[known].step) {
                distinct.push(known);
            }
        }
        (distinct, deadline)
    }

    /// The answered operations that are not in the past, by invocation.
    fn rest(&self) -> impl Iterator<Item = usize> {
        let head = self.known.len();
        std::iter::successors(Some(self.next[head]), |at| Some(self.next[*at]))
            .take_while(move |at| *at != head)
    }

    /// Finds the moves that go on from `run`.
    fn extend(&mut self, runs: &mut Runs, run: &mut Vec<(usize, State)>) {
        let target = self.known[runs.known].step;
        let now = run.last().map_or(runs.before, |(_, state)| *state);
        for index in 0..self.unknown.len() {
            if !self.is_usable(index, runs.deadline) {
                continue;
            }
            let Some(after) = self.apply(self.unknown[index].step, now) else { continue };
            if self.is_needless(index, runs.before, run, after) {
                continue;
            }
            if runs.tries == Runs::MAX_TRIES {
                self.skipped = true;
                return;
            }
            runs.tries += 1;
            let end = self.apply(target, after);
            self.unknown[index].used += 1;
            run.push((index, after));
            runs.found.extend(end.map(|after| Move {
                run: run.clone(),
                known: runs.known,
                before: runs.before,
                after,
            }));
            // Where the target fits, a longer run to it is needless. But an append remembers what was there.
            if end.is_none() || matches!(target, Step::Extend(_)) {
                self.extend(runs, run);
            }
            run.pop();
            self.unknown[index].used -= 1;
        }
    }

    /// Whether an unanswered operation of this group is left that was invoked by then.
    fn is_usable(&self, index: usize, deadline: Moment) -> bool {
        let twins = &self.unknown[index];
        twins.invoked.get(twins.used).is_some_and(|invoked| *invoked <= deadline)
    }

    /// Whether `run` from `before` need not go on with `index`, which would leave the state `after`: a shorter run or
    /// the same in another order does as well.
    fn is_needless(&mut self, index: usize, before: State, run: &[(usize, State)], after: State) -> bool {
        let comes_back = before == after || run.iter().any(|(_, state)| *state == after);
        let Some((last, _)) = run.last() else { return comes_back };
        let without_last = run.iter().rev().nth(1).map_or(before, |(_, state)| *state);
        let (step, last_step) = (self.unknown[index].step, self.unknown[*last].step);
        let trade_places = matches!((last_step, step), (Step::Count { .. }, Step::Count { .. }));
        comes_back || (trade_places && *last > index) || self.apply(step, without_last) == Some(after)
    }

    /// Whether answered operation `known` fits neither `state` nor what can be made of it before it ended.
    fn is_hopeless(&self, known: usize, state: State) -> bool {
        let Known { step, returned, .. } = self.known[known];
        let later = self.rest().take_while(|other| self.known[*other].invoked <= returned);
        let unknown = (0..self.unknown.len()).filter(|index| self.is_usable(*index, returned));
        let mut others = later
            .filter(|other| *other != known)
            .map(|other| self.known[other].step)
            .chain(unknown.map(|index| self.unknown[index].step));
        match (step, step.needs()) {
            (Step::Impossible, _) => true,
            (Step::SeesNothing | Step::PutIfAbsent(_), _) => {
                state != State::Absent && !others.any(|other| matches!(other, Step::Remove | Step::Clear))
            }
            (_, None) => state == State::Absent && !others.any(|other| other.produces().is_some()),
            (_, Some(value)) => !self.leads_to(value, state, &others.collect::<Vec<_>>()),
        }
    }

    /// Whether the value may come about from `state` by some of `steps`, as far as can be told without trying.
    fn leads_to(&self, value: ValueId, state: State, steps: &[Step]) -> bool {
        // Backwards: who leaves this value, and which one would that operation need?
        let mut goals = vec![value];
        let mut tried = 0;
        while let Some(goal) = goals.get(tried).copied() {
            tried += 1;
            let suits = |other: ValueId| {
                other == goal || (self.tally.has_appends && self.model.continues(other, goal))
            };
            if self.tally.may_be_counted(goal) || state.value().is_some_and(suits) {
                return true;
            }
            for step in steps.iter().filter(|step| step.produces().is_some_and(suits)) {
                let Some(needed) = step.needs() else { return true };
                if !goals.contains(&needed) {
                    goals.push(needed);
                }
            }
        }
        false
    }

    fn apply(&mut self, step: Step, state: State) -> Option<State> {
        let seen = &self.tally.seen;
        self.model.apply(step, state, |cas: CasId| seen[cas as usize] > 0)
    }

    fn take(&mut self, candidate: &Move) {
        for (index, _) in &candidate.run {
            self.unknown[*index].used += 1;
            self.tally.remove_producer(self.unknown[*index].step);
        }
        let known = candidate.known;
        self.past ^= mark(known);
        self.past_count += 1;
        self.tally.remove_known(self.known[known].step);
        // The links of the operation itself stay, so `undo` finds its neighbours: all that
        // was taken later is back by then.
        let (previous, next) = (self.previous[known], self.next[known]);
        self.next[previous] = next;
        self.previous[next] = previous;
    }

    fn undo(&mut self, candidate: &Move) {
        let known = candidate.known;
        self.next[self.previous[known]] = known;
        self.previous[self.next[known]] = known;
        self.tally.bring_back_known(self.known[known].step);
        self.past_count -= 1;
        self.past ^= mark(known);
        for (index, _) in &candidate.run {
            self.unknown[*index].used -= 1;
            self.tally.add_producer(self.unknown[*index].step);
        }
    }

    /// Remembers the present node. Whether it is worth searching.
    fn visit(&mut self, state: State) -> bool {
        let nodes = self.visited.entry((self.past, state)).or_default();
        let unknown = &self.unknown;
        if nodes.iter().any(|used| used.iter().all(|(index, count)| unknown[*index].used >= *count)) {
            return false;
        }
        let used = unknown.iter().enumerate().filter(|(_, twins)| twins.used > 0);
        nodes.push(used.map(|(index, twins)| (index, twins.used)).collect());
        self.steps += 1;
        true
    }

    /// Whether the move that was just taken left for good what is still to be seen.
    fn is_dead_end(&mut self, candidate: &Move) -> bool {
        let Move { run, before, after, .. } = candidate;
        // A unique is that of one version only, so it never comes back.
        if before.version() != after.version()
            && before.version().is_some_and(|cas| self.tally.is_awaited(cas))
        {
            return true;
        }
        let passed = run.iter().map(|(_, state)| state).chain([before]).filter_map(|state| state.value());
        let kept = after.value();
        passed.filter(|value| Some(*value) != kept).any(|value| self.tally.loses(self.model, value, kept))
    }
}

/// What is still to come, and what has been seen.
struct Tally {
    /// By value: answered operations to come that fit only this one.
    needs: Vec<u32>,
    /// By value: operations to come that leave it, or a value from which appends lead to it.
    producers: Vec<u32>,
    /// By value: those that it is, or becomes by appends, among the values known from the start. Filled when used.
    continuations: Vec<Option<Vec<ValueId>>>,
    /// By unique: operations to come that fit this version only.
    awaited: Vec<u32>,
    /// By unique: answered operations in the past that fitted this version only.
    seen: Vec<u32>,
    /// By value: whether unanswered increments may lead to it.
    counted: Vec<bool>,
    has_appends: bool,
}

impl Tally {
    /// Counts nothing yet; `steps` are all there are.
    fn new(model: &Model, steps: &[Step]) -> Self {
        let has_appends = steps.iter().any(|step| matches!(step, Step::Extend(_)));
        let has_counts = steps.iter().any(|step| matches!(step, Step::Count { .. }));
        let count = model.value_count();
        let values = (0..).take(count);
        let counted = values.map(|value| has_counts && model.may_be_counted(value, has_appends)).collect();
        Self {
            needs: vec![0; count],
            producers: vec![0; count],
            continuations: (0..)
                .take(count)
                .map(|value| Some(onward(model, value, count, has_appends)))
                .collect(),
            awaited: vec![0; model.unique_count()],
            seen: vec![0; model.unique_count()],
            counted,
            has_appends,
        }
    }

    fn add_known(&mut self, step: Step) {
        self.add_producer(step);
        change(&mut self.needs, step.needs(), 1);
        change(&mut self.awaited, step.observes(), 1);
    }

    fn remove_known(&mut self, step: Step) {
        self.remove_producer(step);
        change(&mut self.needs, step.needs(), -1);
        change(&mut self.awaited, step.observes(), -1);
        change(&mut self.seen, step.observes(), 1);
    }

    fn bring_back_known(&mut self, step: Step) {
        self.add_known(step);
        change(&mut self.seen, step.observes(), -1);
    }

    fn add_producer(&mut self, step: Step) {
        self.change_producers(step, 1);
    }

    fn remove_producer(&mut self, step: Step) {
        self.change_producers(step, -1);
    }

    fn change_producers(&mut self, step: Step, by: i32) {
        let Some(value) = step.produces() else { return };
        let onward =
            self.continuations[value as usize].as_ref().expect("filled for all values known from the start");
        onward.iter().for_each(|longer| change(&mut self.producers, Some(*longer), by));
    }

    fn is_awaited(&self, cas: CasId) -> bool {
        self.awaited[cas as usize] > 0
    }

    fn may_be_counted(&self, value: ValueId) -> bool {
        self.counted[value as usize]
    }

    /// Whether going from `value` to `kept` loses a value for good that is still needed.
    fn loses(&mut self, model: &Model, value: ValueId, kept: Option<ValueId>) -> bool {
        let (count, index) = (self.needs.len(), value as usize);
        // Counting and appending make values during the search that were not known at its start.
        if self.continuations.len() <= index {
            self.continuations.resize(index + 1, None);
        }
        let has_appends = self.has_appends;
        let onward =
            self.continuations[index].get_or_insert_with(|| onward(model, value, count, has_appends));
        onward.iter().any(|lost| {
            let index = *lost as usize;
            self.needs[index] > 0
                && self.producers[index] == 0
                && !self.counted[index]
                && !kept.is_some_and(|kept| kept == *lost || (has_appends && model.continues(kept, *lost)))
        })
    }
}

/// The values below `count` that `value` is or may become by appends.
fn onward(model: &Model, value: ValueId, count: usize, has_appends: bool) -> Vec<ValueId> {
    if has_appends {
        return model.continuations(value, count);
    }
    if (value as usize) < count { vec![value] } else { Vec::new() }
}

fn change(counts: &mut [u32], index: Option<u32>, by: i32) {
    if let Some(index) = index {
        let count = &mut counts[index as usize];
        *count = count.checked_add_signed(by).expect("what is taken away was there");
    }
}

/// Unanswered operations by step, each group by invocation.
fn group(mut unknown: Vec<(Step, Moment)>) -> Vec<Twins> {
    unknown.sort_unstable();
    let groups = unknown.chunk_by(|a, b| a.0 == b.0);
    groups
        .map(|group| Twins {
            step: group[0].0,
            invoked: group.iter().map(|(_, moment)| *moment).collect(),
            used: 0,
        })
        .collect()
}

/// The hash of a set is the XOR of these for its members.
fn mark(known: usize) -> u128 {
    let word = |salt: u64| {
        // SplitMix64.
        let mixed = (known as u64 ^ salt).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    u128::from(word(0)) << 64 | u128::from(word(0x5851_f42d_4c95_7f2d))
}
