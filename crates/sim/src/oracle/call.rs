//! Calls: what each makes of a state, if its answer allows that.

use bytes::Bytes;
use types::op::{Arith, Direction, Expiry, Failure, Op, Outcome, Store, StoreMode};

use super::Vanishing;
use super::state::{Contents, Item, NOBODY, State, UNSEEN};

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// Not known yet.
    Undecided,
    /// It took effect between its two moments, with this answer.
    Answered(Outcome),
    /// It may take effect at any time, or never.
    Unknown,
    /// It certainly has no effect.
    Void,
}

/// One call on the key.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub op: Op,
    pub fate: Fate,
    /// The earliest wall time that any clock may have shown at its invocation, and the latest at its answer.
    pub unix: (u32, u32),
    /// The first call that began after its answer.
    pub before: u32,
    /// Whether the item may vanish for it.
    pub vanishing: Vanishing,
}

impl Call {
    /// The state after the call, whose number is `call`, took effect in exactly `state`; none if its answer says otherwise.
    pub(super) fn apply(&self, call: u32, contents: &mut Contents, state: State) -> Option<State> {
        let outcome = if let Fate::Answered(outcome) = &self.fate { Some(outcome) } else { None };
        if let Some(Outcome::Failed(failure)) = outcome {
            return after_failure(contents, *failure, state);
        }
        match &self.op {
            Op::Get(get) => after_read(contents, state, outcome, get.touch.map(Expiry::to_stored)),
            Op::Touch(expiry) => match (state, outcome) {
                (None, None | Some(Outcome::NotFound)) => Some(None),
                (Some(item), None | Some(Outcome::Touched(_))) => Some(Some(item.until(expiry.to_stored()))),
                _ => None,
            },
            Op::Delete(_) => match (state, outcome) {
                (None, None | Some(Outcome::NotFound)) | (Some(_), None | Some(Outcome::Deleted)) => {
                    Some(None)
                }
                _ => None,
            },
            Op::Flush(_) => Some(None),
            Op::Debug | Op::Object(_) | Op::Session | Op::Scan(_) | Op::Expect(_) => Some(state),
            Op::Store(store) => after_store(contents, call, store, state, outcome),
            Op::Arith(arith) => after_count(contents, *arith, state, outcome),
        }
    }
}

fn after_failure(contents: &Contents, failure: Failure, state: State) -> Option<State> {
    match failure {
        Failure::NotANumber => parse_number(&contents.of(state?).0).is_none().then_some(state),
        _ => Some(state),
    }
}

fn after_read(
    contents: &Contents,
    state: State,
    outcome: Option<&Outcome>,
    touch: Option<u32>,
) -> Option<State> {
    match (state, outcome) {
        (None, None | Some(Outcome::Miss)) => Some(None),
        (Some(item), None) => Some(Some(touch.map_or(item, |expiry| item.until(expiry)))),
        (Some(item), Some(Outcome::Hit(view))) => {
            let (value, flags) = contents.of(item);
            let same = value == &view.value && *flags == view.flags;
            if !same || (item.version != UNSEEN && item.version != view.version) {
                return None;
            }
            let item = Item { version: view.version, ..item };
            Some(Some(touch.map_or(item, |expiry| item.until(expiry))))
        }
        _ => None,
    }
}

fn after_store(
    contents: &mut Contents,
    call: u32,
    store: &Store,
    state: State,
    outcome: Option<&Outcome>,
) -> Option<State> {
    let refusal = match (store.mode, store.compare, state) {
        (StoreMode::Set, Some(_), None) => Some(Outcome::NotFound),
        (StoreMode::Set, Some(compare), Some(item)) if item.version != compare => Some(Outcome::Exists),
        (StoreMode::Add, _, Some(_)) => Some(Outcome::NotStored),
        (StoreMode::Replace | StoreMode::Append | StoreMode::Prepend, _, None) => Some(Outcome::NotStored),
        _ => None,
    };
    if let Some(refusal) = refusal {
        return outcome.is_none_or(|outcome| *outcome == refusal).then_some(state);
    }
    let version = match outcome {
        None => UNSEEN,
        Some(Outcome::Stored(view)) => view.version,
        Some(_) => return None,
    };
    // memcached ignores the flags and the expiry of append and prepend.
    let (content, expiry, over_for) = match (store.mode, state) {
        (StoreMode::Append | StoreMode::Prepend, Some(item)) => {
            (contents.after(call, store, Some(item.content)), item.expiry, item.over_for)
        }
        _ => (contents.after(call, store, None), store.expiry.to_stored(), NOBODY),
    };
    Some(Some(Item { content, version, expiry, over_for }))
}

fn after_count(
    contents: &mut Contents,
    arith: Arith,
    state: State,
    outcome: Option<&Outcome>,
) -> Option<State> {
    let Some(item) = state else {
        return outcome.is_none_or(|outcome| *outcome == Outcome::NotFound).then_some(None);
    };
    let (value, flags) = contents.of(item).clone();
    let Some(old) = parse_number(&value) else { return outcome.is_none().then_some(state) };
    let new = match arith.direction {
        Direction::Increment => old.wrapping_add(arith.delta),
        Direction::Decrement => old.saturating_sub(arith.delta),
    };
    let version = match outcome {
        None => UNSEEN,
        Some(Outcome::Number(number, view)) if *number == new => view.version,
        Some(_) => return None,
    };
    // memcached writes over the old number where it lies, and fills up with spaces when the new one is shorter.
    let width = value.len();
    let content = contents.add(Bytes::from(format!("{new:<width$}")), flags);
    Some(Some(Item { content, version, ..item }))
}

/// Whether an operation never changes anything.
pub(super) fn is_plain_read(op: &Op) -> bool {
    matches!(op, Op::Get(get) if get.touch.is_none()) || matches!(op, Op::Debug | Op::Session)
}

/// A decimal number, possibly padded with spaces by an earlier decrement.
fn parse_number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii_end();
    // The largest number has 20 digits.
    let decimal = !digits.is_empty() && value.len() <= 20 && digits.iter().all(u8::is_ascii_digit);
    if decimal { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}
