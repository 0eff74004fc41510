//! What one key of a memcached does, reduced to what its observers can tell apart.
//!
//! An operation with its answer becomes a [`Step`]: a condition on the state and a new state. An operation without
//! answer becomes the step that it would be if it took effect.
//!
//! Values are small numbers here. A value that is not a prefix of any value that was ever read can never be read, not
//! even after appends, so all such values are one, [`ANY`]; a number stays itself as long as somebody counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::history::{Bytes, Op, Outcome};

/// A value, by number.
pub(super) type ValueId = u32;
/// A unique that some client saw or sent, by number.
pub(super) type CasId = u32;
/// The bytes of an append, by number.
pub(super) type SuffixId = u32;

/// Any value that nobody can ever read.
pub(super) const ANY: ValueId = 0;

/// What the key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Absent,
    /// `cas` is known from the moment somebody saw it.
    Present {
        value: ValueId,
        cas: Option<CasId>,
    },
}

impl State {
    /// What a write leaves: a version that nobody has seen.
    fn fresh(value: ValueId) -> Self {
        Self::Present { value, cas: None }
    }

    pub(super) fn version(self) -> Option<CasId> {
        match self {
            Self::Absent => None,
            Self::Present { cas, .. } => cas,
        }
    }

    pub(super) fn value(self) -> Option<ValueId> {
        match self {
            Self::Absent => None,
            Self::Present { value, .. } => Some(value),
        }
    }
}

/// An operation and its answer, as a partial function on states. Different operations that say the same about the
/// key are the same step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Step {
    /// An answer that no state explains.
    Impossible,
    /// Learns that there is nothing.
    SeesNothing,
    /// Learns that there is something.
    SeesSomething,
    /// Learns that there is something that is not a number.
    SeesText,
    /// Learns that the version is not this one.
    SeesOther(CasId),
    Sees {
        value: ValueId,
        cas: Option<CasId>,
    },
    Put(ValueId),
    PutIfAbsent(ValueId),
    PutIfPresent(ValueId),
    PutIfVersion {
        value: ValueId,
        cas: CasId,
    },
    Remove,
    /// Removes what there is, or does nothing.
    Clear,
    Extend(SuffixId),
    /// An increment whose result is not known.
    Count {
        by: u64,
    },
    /// One whose result is: from the number `from`, if there is one way to write that.
    Counted {
        by: u64,
        to: u64,
        from: Option<ValueId>,
        left: ValueId,
    },
}

impl Step {
    /// Whether the value stays what it is. (A version may become known.)
    pub(super) fn is_read(self) -> bool {
        use Step::{Impossible, Sees, SeesNothing, SeesOther, SeesSomething, SeesText};
        matches!(self, Impossible | SeesNothing | SeesSomething | SeesText | SeesOther(_) | Sees { .. })
    }

    /// The value it leaves, if that is the same for all states.
    pub(super) fn produces(self) -> Option<ValueId> {
        match self {
            Self::Put(value)
            | Self::PutIfAbsent(value)
            | Self::PutIfPresent(value)
            | Self::PutIfVersion { value, .. }
            | Self::Counted { left: value, .. } => Some(value),
            _ => None,
        }
    }

    /// The only value that it fits, if there is only one.
    pub(super) fn needs(self) -> Option<ValueId> {
        match self {
            Self::Sees { value, .. } => Some(value),
            Self::Counted { from, .. } => from,
            _ => None,
        }
    }

    /// The unique of the only version that it fits, where it was answered.
    pub(super) fn observes(self) -> Option<CasId> {
        match self {
            Self::Sees { cas, .. } => cas,
            Self::PutIfVersion { cas, .. } => Some(cas),
            _ => None,
        }
    }
}

/// The values, uniques and suffixes of one key.
pub(super) struct Model {
    /// By number; empty for [`ANY`].
    values: Vec<Vec<u8>>,
    ids: BTreeMap<Vec<u8>, ValueId>,
    /// The values that were read, or counted on from.
    reads: BTreeSet<Vec<u8>>,
    /// Those that are not prefixes of others.
    longest_reads: Vec<Vec<u8>>,
    suffixes: Vec<Vec<u8>>,
    uniques: Vec<u64>,
    /// Whether anybody increments.
    counts: bool,
    /// Whether every number that the key can hold is written without leading zeros.
    plain_numbers: bool,
}

impl Model {
    /// The model for the operations of one key.
    pub(super) fn new<'a>(operations: impl Iterator<Item = (&'a Op, Option<&'a Outcome>)> + Clone) -> Self {
        let mut model = Self {
            values: vec![Vec::new()],
            ids: BTreeMap::new(),
            reads: BTreeSet::new(),
            longest_reads: Vec::new(),
            suffixes: Vec::new(),
            uniques: Vec::new(),
            counts: false,
            plain_numbers: true,
        };
        for (op, _) in operations.clone() {
            model.counts |= matches!(op, Op::Incr(_));
            model.plain_numbers &= leaves_plain_numbers(op);
        }
        for asked_and_told in operations {
            match asked_and_told {
                (_, Some(Outcome::Value { value, .. })) => model.reads.insert(value.0.clone()),
                (Op::Incr(by), Some(Outcome::Number(to))) if model.plain_numbers => {
                    model.reads.insert(to.wrapping_sub(*by).to_string().into_bytes())
                }
                _ => false,
            };
        }
        // In the order of bytes whatever continues a value follows it at once.
        let followers = model.reads.iter().skip(1).map(Some).chain([None]);
        let longest = model.reads.iter().zip(followers);
        let longest = longest.filter(|(read, next)| next.is_none_or(|next| !next.starts_with(read)));
        model.longest_reads = longest.map(|(read, _)| read.clone()).collect();
        model
    }

    /// What the answer to `op` tells.
    pub(super) fn answered(&mut self, op: &Op, outcome: &Outcome) -> Step {
        match (op, outcome) {
            (Op::Get, Outcome::Value { value, cas }) => {
                Step::Sees { value: self.value(&value.0), cas: cas.map(|unique| self.unique(unique)) }
            }
            (Op::Get | Op::Delete | Op::Touch | Op::Incr(_) | Op::Cas { .. }, Outcome::NotFound)
            | (Op::Replace(_) | Op::Append(_), Outcome::NotStored) => Step::SeesNothing,
            // The version stays, too.
            (Op::Add(_), Outcome::NotStored) | (Op::Touch, Outcome::Touched) => Step::SeesSomething,
            (Op::Cas { unique, .. }, Outcome::Exists) => Step::SeesOther(self.unique(*unique)),
            (Op::Incr(_), Outcome::NotNumber) => Step::SeesText,
            (Op::Incr(by), Outcome::Number(to)) => self.counted(*by, *to),
            (Op::Delete, Outcome::Deleted) => Step::Remove,
            (Op::Flush, Outcome::Flushed) => Step::Clear,
            (Op::Set(_) | Op::Add(_) | Op::Replace(_) | Op::Append(_) | Op::Cas { .. }, Outcome::Stored) => {
                self.effect(op).expect("every store has an effect")
            }
            _ => Step::Impossible,
        }
    }

    /// What `op` does if it takes effect; nothing for what leaves the value as it is.
    pub(super) fn effect(&mut self, op: &Op) -> Option<Step> {
        Some(match op {
            Op::Get | Op::Touch => return None,
            Op::Set(value) => Step::Put(self.value(&value.0)),
            Op::Add(value) => Step::PutIfAbsent(self.value(&value.0)),
            Op::Replace(value) => Step::PutIfPresent(self.value(&value.0)),
            Op::Append(Bytes(suffix)) => {
                // Nobody ever reads a value with this in it, so what is left cannot be told from any other.
                if !self.shows(suffix) {
                    return Some(Step::PutIfPresent(ANY));
                }
                Step::Extend(numbered(&mut self.suffixes, suffix.clone()))
            }
            Op::Cas { value, unique } => {
                Step::PutIfVersion { value: self.value(&value.0), cas: self.unique(*unique) }
            }
            // Where there is nothing it has no effect that anybody could tell.
            Op::Delete | Op::Flush => Step::Remove,
            Op::Incr(by) => Step::Count { by: *by },
        })
    }

    /// The state after `step`, or `None` if its condition does not hold. `seen` says whether a unique has been seen
    /// before now: if so it cannot be that of a version nobody has seen.
    pub(super) fn apply(&mut self, step: Step, state: State, seen: impl Fn(CasId) -> bool) -> Option<State> {
        let State::Present { value: held, cas: version } = state else { return self.apply_absent(step) };
        let may_be = |cas: CasId| version.map_or(!seen(cas), |version| version == cas);
        match step {
            Step::Impossible | Step::SeesNothing | Step::PutIfAbsent(_) => None,
            Step::SeesSomething => Some(state),
            Step::SeesText => (self.number(held).is_none()).then_some(state),
            // Also where nobody has seen the version: then it may be any other.
            Step::SeesOther(cas) => (version != Some(cas)).then_some(state),
            Step::Sees { value, cas: None } => (value == held).then_some(state),
            Step::Sees { value, cas: Some(cas) } => {
                (value == held && may_be(cas)).then_some(State::Present { value, cas: Some(cas) })
            }
            Step::Put(value) | Step::PutIfPresent(value) => Some(State::fresh(value)),
            Step::PutIfVersion { value, cas } => may_be(cas).then_some(State::fresh(value)),
            Step::Remove | Step::Clear => Some(State::Absent),
            Step::Extend(suffix) => Some(State::fresh(self.extended(held, suffix))),
            Step::Count { by } => {
                let sum = self.number(held)?.wrapping_add(by);
                Some(State::fresh(self.value(sum.to_string().as_bytes())))
            }
            Step::Counted { by, to, left, .. } => {
                (self.number(held)?.wrapping_add(by) == to).then_some(State::fresh(left))
            }
        }
    }

    fn apply_absent(&mut self, step: Step) -> Option<State> {
        match step {
            Step::SeesNothing | Step::Clear => Some(State::Absent),
            Step::Put(value) | Step::PutIfAbsent(value) => Some(State::fresh(value)),
            _ => None,
        }
    }

    /// How many values there are so far; numbers are below.
    pub(super) fn value_count(&self) -> usize {
        self.values.len()
    }

    /// How many uniques there are; all are known before the search.
    pub(super) fn unique_count(&self) -> usize {
        self.uniques.len()
    }

    /// The values with numbers below `count` that `value` becomes by appends, itself included.
    pub(super) fn continuations(&self, value: ValueId, count: usize) -> Vec<ValueId> {
        if value == ANY {
            return Vec::new();
        }
        let bytes = self.values[value as usize].as_slice();
        let from_here = self.ids.range::<[u8], _>((Bound::Included(bytes), Bound::Unbounded));
        // Values that begin with these bytes stand side by side in this order.
        let longer = from_here.take_while(|(read, _)| read.starts_with(bytes));
        longer.map(|(_, id)| *id).filter(|id| (*id as usize) < count).collect()
    }

    /// Whether appends can make `longer` of `value`.
    pub(super) fn continues(&self, value: ValueId, longer: ValueId) -> bool {
        value != ANY && self.values[longer as usize].starts_with(&self.values[value as usize])
    }

    /// Whether `value` is a number, or with appends begins with one.
    pub(super) fn may_be_counted(&self, value: ValueId, with_appends: bool) -> bool {
        let bytes = &self.values[value as usize];
        if with_appends { bytes.first().is_some_and(u8::is_ascii_digit) } else { number(bytes).is_some() }
    }

    fn counted(&mut self, by: u64, to: u64) -> Step {
        let from = to.wrapping_sub(by).to_string();
        // With leading zeros about, several values are the number that it was counted on from.
        let from = self.plain_numbers.then(|| self.value(from.as_bytes()));
        Step::Counted { by, to, from, left: self.value(to.to_string().as_bytes()) }
    }

    fn value(&mut self, bytes: &[u8]) -> ValueId {
        if !self.matters(bytes) {
            return ANY;
        }
        if let Some(id) = self.ids.get(bytes) {
            return *id;
        }
        let id = u32::try_from(self.values.len()).expect("fewer than 2^32 values");
        self.values.push(bytes.to_vec());
        self.ids.insert(bytes.to_vec(), id);
        id
    }

    /// Whether anybody could ever tell `bytes` from other values.
    fn matters(&self, bytes: &[u8]) -> bool {
        let from_here = (Bound::Included(bytes), Bound::Unbounded);
        let next_read = self.reads.range::<[u8], _>(from_here).next();
        next_read.is_some_and(|read| read.starts_with(bytes)) || (self.counts && is_short_digits(bytes))
    }

    /// Whether a value that ends with `suffix` could ever be told from others.
    fn shows(&self, suffix: &[u8]) -> bool {
        let is_in =
            |read: &Vec<u8>| suffix.is_empty() || read.windows(suffix.len()).any(|window| window == suffix);
        self.longest_reads.iter().any(is_in) || (self.counts && is_short_digits(suffix))
    }

    fn extended(&mut self, value: ValueId, suffix: SuffixId) -> ValueId {
        if value == ANY {
            return ANY;
        }
        let bytes = [self.values[value as usize].as_slice(), &self.suffixes[suffix as usize]].concat();
        self.value(&bytes)
    }

    fn number(&self, value: ValueId) -> Option<u64> {
        if value == ANY { None } else { number(&self.values[value as usize]) }
    }

    fn unique(&mut self, unique: u64) -> CasId {
        numbered(&mut self.uniques, unique)
    }
}

/// The position of `item` in `list`, where it is added if need be.
fn numbered<T: PartialEq>(list: &mut Vec<T>, item: T) -> u32 {
    let index = list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    });
    u32::try_from(index).expect("fewer than 2^32 items")
}

/// Whether the values that `op` leaves are not numbers with leading zeros.
fn leaves_plain_numbers(op: &Op) -> bool {
    match op {
        Op::Append(_) => false,
        Op::Set(Bytes(value))
        | Op::Add(Bytes(value))
        | Op::Replace(Bytes(value))
        | Op::Cas { value: Bytes(value), .. } => value.len() < 2 || value[0] != b'0',
        Op::Get | Op::Delete | Op::Touch | Op::Flush | Op::Incr(_) => true,
    }
}

/// The number that an increment would find: up to 20 digits.
fn number(bytes: &[u8]) -> Option<u64> {
    if is_short_digits(bytes) { std::str::from_utf8(bytes).ok()?.parse().ok() } else { None }
}

/// Whether `bytes` are a number, or could become one by appending digits.
fn is_short_digits(bytes: &[u8]) -> bool {
    bytes.len() <= 20 && bytes.iter().all(u8::is_ascii_digit)
}
