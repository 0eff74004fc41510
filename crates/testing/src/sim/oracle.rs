//! Is what the clients of one key were told what a single memcached would have said?
//!
//! An online check of linearizability. Calls and answers arrive in real-time order; the oracle keeps the set of all
//! states in which the key may be, each with the calls that have taken effect to reach it (Wing and Gong 1993, in the
//! forward form of Lowe 2017, "just-in-time linearization"). A call without an answer may take effect at any later
//! moment, or never. An empty set is a violation, found at the very event that makes it one.
//!
//! Unlike [`crate::linearizability`] it knows expiry, eviction, prepend, decrement and flushes, and it can be asked at
//! any moment whether a state *could* be the present one: that is what a decoded copy of an item is held against.
//!
//! Reductions: a call that changes nothing and agrees with the state is done at once; of two equal states the one that
//! has used up fewer unanswered calls can do all that the other can.

use std::collections::VecDeque;

use bytes::Bytes;
use types::op::{Direction, Failure, ItemView, Op, Outcome, Store, StoreMode};
use types::{ClusterId, FastMap, KeyHash, UnixSeconds};

/// Calls of one key that may be open at once, unanswered ones included. Beyond it the key is no longer checked.
const MAX_OPEN: u32 = 128;
/// States of one key that are followed at once. Beyond it the key is no longer checked.
const MAX_STATES: usize = 4096;

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
struct Call {
    op: Op,
    fate: Fate,
    /// The earliest wall time that any clock may have shown at its invocation, and the latest at its answer.
    unix: (u32, u32),
    /// The first call that began after its answer.
    before: u32,
}

/// A value with its flags, by number.
type Content = u32;

/// A version that nobody has seen.
const UNSEEN: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Item {
    content: Content,
    version: u64,
    expiry: u32,
    /// Somebody was told that it has expired before this call began: it does not come back.
    over_for: u32,
}

/// No call has been told that the item has expired.
const NOBODY: u32 = u32::MAX;

/// The key's state; none = absent.
type State = Option<Item>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Config {
    state: State,
    /// Which of the open calls have taken effect.
    used: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Invoked(u32),
    Returned(u32),
}

/// Whether items may vanish by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vanishing {
    /// Only when they expire.
    Never,
    /// At any time: the store evicts.
    Anytime,
}

/// What a copy of an item, found anywhere, says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy<'a> {
    /// The value.
    pub value: &'a [u8],
    /// Opaque client flags.
    pub flags: u32,
    /// The cas unique.
    pub version: u64,
}

/// No order of the calls explains the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The call whose answer cannot be explained.
    pub call: u32,
    /// In which states the key could have been.
    pub states: Vec<String>,
}

/// The states in which one key may be.
#[derive(Clone, Debug)]
pub struct Oracle {
    vanishing: Vanishing,
    calls: Vec<Call>,
    /// What has not been worked off yet.
    moments: VecDeque<Moment>,
    configs: Vec<Config>,
    /// Calls that were invoked and have not returned, with their bits.
    open: Vec<(u32, u32)>,
    free_bits: u128,
    contents: Contents,
    gave_up: bool,
}

/// The values with flags that the key ever had, or could have had.
#[derive(Clone, Debug, Default)]
struct Contents {
    entries: Vec<(Bytes, u32)>,
    ids: FastMap<(u64, u32), Content>,
    /// What a call stores, and what it makes of what was there: values are long, and tried out in many states.
    stored: FastMap<(u32, Option<Content>), Content>,
}

impl Oracle {
    /// A key that is absent.
    #[must_use]
    pub fn new(vanishing: Vanishing) -> Self {
        Self {
            vanishing,
            calls: Vec::new(),
            moments: VecDeque::new(),
            configs: vec![Config { state: None, used: 0 }],
            open: Vec::new(),
            free_bits: u128::MAX,
            contents: Contents::default(),
            gave_up: false,
        }
    }

    /// A call begins now, when no clock shows less than `unix`. The result names it.
    pub fn invoke(&mut self, op: Op, unix: UnixSeconds) -> u32 {
        if self.gave_up {
            return 0;
        }
        let id = self.calls.len() as u32;
        self.calls.push(Call { op, fate: Fate::Undecided, unix: (unix.0, u32::MAX), before: NOBODY });
        self.moments.push_back(Moment::Invoked(id));
        id
    }

    /// A call is answered now, when no clock shows more than `unix`, or will never be.
    ///
    /// # Errors
    /// If no order of the calls explains all answers so far.
    pub fn settle(&mut self, call: u32, fate: Fate, unix: UnixSeconds) -> Result<(), Contradiction> {
        if self.gave_up {
            return Ok(());
        }
        let next = self.calls.len() as u32;
        let entry = &mut self.calls[call as usize];
        debug_assert_eq!(entry.fate, Fate::Undecided, "a call is settled once");
        if matches!(fate, Fate::Answered(_)) {
            (entry.unix.1, entry.before) = (unix.0, next);
            self.moments.push_back(Moment::Returned(call));
        }
        entry.fate = fate;
        self.advance()
    }

    /// Whether the key was checked to the end, and not given up for its many unanswered calls.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.gave_up
    }

    /// Whether the key may look like this now: what a copy that was decoded from the survivors says.
    #[must_use]
    pub fn admits(&self, found: Option<Copy<'_>>, unix: UnixSeconds) -> bool {
        if self.gave_up {
            return true;
        }
        let mut fork = self.clone();
        for call in &mut fork.calls {
            if call.fate == Fate::Undecided {
                call.fate = Fate::Unknown;
            }
        }
        let outcome = match found {
            None => Outcome::Miss,
            Some(copy) => Outcome::Hit(ItemView {
                value: Bytes::copy_from_slice(copy.value),
                flags: copy.flags,
                version: copy.version,
                ..ItemView::default()
            }),
        };
        // A copy in a slot is there whether or not it has expired, so it is looked at before the beginning of time.
        let unix = if found.is_some() { UnixSeconds(0) } else { unix };
        let read = fork.invoke(Op::Get(types::op::Get::default()), unix);
        fork.settle(read, Fate::Answered(outcome), unix).is_ok()
    }

    /// The calls, oldest first, for a report.
    pub fn describe(&self) -> impl Iterator<Item = String> + '_ {
        self.calls.iter().enumerate().map(|(id, call)| {
            let fate = match &call.fate {
                Fate::Answered(outcome) => brief_outcome(outcome),
                other => format!("{other:?}").to_lowercase(),
            };
            format!("call {id}: {} -> {fate}", brief_op(&call.op))
        })
    }

    fn advance(&mut self) -> Result<(), Contradiction> {
        while let Some(moment) = self.moments.front().copied() {
            match moment {
                Moment::Invoked(call) => match self.calls[call as usize].fate {
                    Fate::Undecided => return Ok(()),
                    Fate::Void => {}
                    Fate::Unknown if is_plain_read(&self.calls[call as usize].op) => {}
                    _ => self.begin(call),
                },
                Moment::Returned(call) => self.end(call)?,
            }
            self.moments.pop_front();
            if self.gave_up {
                self.moments.clear();
                self.calls.clear();
                self.calls.shrink_to_fit();
            }
        }
        Ok(())
    }

    fn begin(&mut self, call: u32) {
        let bit = self.free_bits.trailing_zeros();
        if bit >= MAX_OPEN {
            self.gave_up = true;
            return;
        }
        self.free_bits &= !(1 << bit);
        self.open.push((call, bit));
    }

    /// `call` has returned: it took effect in every state that remains.
    fn end(&mut self, call: u32) -> Result<(), Contradiction> {
        if self.gave_up {
            return Ok(());
        }
        let Some(at) = self.open.iter().position(|(open, _)| *open == call) else { return Ok(()) };
        let bit = self.open[at].1;
        let before = std::mem::take(&mut self.configs);
        let mut done = Vec::with_capacity(before.len());
        let mut seen: FastMap<Config, ()> = FastMap::default();
        let mut todo = before.clone();
        while let Some(config) = todo.pop() {
            if config.used & (1 << bit) != 0 {
                push_new(&mut done, Config { used: config.used & !(1 << bit), ..config });
                continue;
            }
            if seen.insert(config, ()).is_some() {
                continue;
            }
            self.successors(config, &mut todo);
            if seen.len() > MAX_STATES {
                self.gave_up = true;
                return Ok(());
            }
        }
        self.open.swap_remove(at);
        self.free_bits |= 1 << bit;
        if done.is_empty() {
            let states = before.iter().map(|config| self.show(config.state)).collect();
            return Err(Contradiction { call, states });
        }
        self.configs = self.without_dominated(done);
        Ok(())
    }

    /// All states that one more call leads to.
    fn successors(&mut self, config: Config, out: &mut Vec<Config>) {
        for at in 0..self.open.len() {
            let (call, bit) = self.open[at];
            if config.used & (1 << bit) != 0 {
                continue;
            }
            let used = config.used | 1 << bit;
            let after = self.step(call, config.state);
            if after.iter().flatten().any(|state| *state == config.state) && self.only_observes(call) {
                // It fits and can never change anything: nothing is gained by waiting.
                out.push(Config { used, ..config });
                return;
            }
            for state in after.into_iter().flatten() {
                if state != config.state || self.is_answered(call) {
                    out.push(Config { state, used });
                }
            }
        }
    }

    /// Whether the answer says that nothing was changed.
    fn only_observes(&self, call: u32) -> bool {
        let Call { op, fate, .. } = &self.calls[call as usize];
        match fate {
            Fate::Answered(Outcome::Hit(_)) => is_plain_read(op),
            Fate::Answered(outcome) => matches!(
                outcome,
                Outcome::Miss | Outcome::NotStored | Outcome::Exists | Outcome::NotFound | Outcome::Failed(_)
            ),
            _ => false,
        }
    }

    fn is_answered(&self, call: u32) -> bool {
        matches!(self.calls[call as usize].fate, Fate::Answered(_))
    }

    /// Of equal states those stay that have used up fewest of the unanswered calls.
    fn without_dominated(&self, configs: Vec<Config>) -> Vec<Config> {
        if configs.len() == 1 {
            return configs;
        }
        let unanswered: u128 =
            self.open.iter().filter(|(call, _)| !self.is_answered(*call)).map(|(_, b)| 1 << b).sum();
        let beats = |a: &Config, b: &Config| {
            a.state == b.state
                && a.used != b.used
                && (a.used & !b.used) == 0
                && (b.used & !a.used) & !unanswered == 0
        };
        let kept = configs.iter().filter(|config| !configs.iter().any(|other| beats(other, config)));
        kept.copied().collect()
    }

    /// The states after `call` took effect in `state`: if the item is seen, if it has expired, if it was evicted.
    fn step(&mut self, call: u32, state: State) -> [Option<State>; 3] {
        let entry = &self.calls[call as usize];
        let Some(item) = state else { return [entry.apply(call, &mut self.contents, None), None, None] };
        let (begun, ended) = entry.unix;
        let over = call >= item.over_for && begun > 0;
        let alive = item.expiry == 0 || item.expiry > begun && !over;
        let expired = item.expiry != 0 && item.expiry <= ended;
        let evicted = self.vanishing == Vanishing::Anytime;
        let seen = if alive { entry.apply(call, &mut self.contents, state) } else { None };
        let gone = if expired || evicted { entry.apply(call, &mut self.contents, None) } else { None };
        // A call that found an expired item gone has not removed it: one that began before the answer may still act on it.
        let over = Item { over_for: item.over_for.min(entry.before), ..item };
        let left = if expired && gone == Some(None) { Some(Some(over)) } else { gone };
        [seen, left, if evicted { gone } else { None }]
    }

    fn show(&self, state: State) -> String {
        match state {
            None => "absent".to_owned(),
            Some(item) => {
                let (value, flags) = self.contents.of(item);
                let version = if item.version == UNSEEN { "?".to_owned() } else { item.version.to_string() };
                format!("{} flags {flags} version {version} expiry {}", brief_bytes(value), item.expiry)
            }
        }
    }
}

impl Item {
    /// With another expiry, of which nobody has heard.
    fn until(self, expiry: u32) -> Self {
        Self { expiry, over_for: NOBODY, ..self }
    }
}

impl Call {
    /// The state after the call, whose number is `call`, took effect in exactly `state`; none if its answer says otherwise.
    fn apply(&self, call: u32, contents: &mut Contents, state: State) -> Option<State> {
        let outcome = if let Fate::Answered(outcome) = &self.fate { Some(outcome) } else { None };
        if let Some(Outcome::Failed(failure)) = outcome {
            return after_failure(contents, *failure, state);
        }
        match &self.op {
            Op::Get(get) => after_read(contents, state, outcome, get.touch.map(types::op::Expiry::to_stored)),
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
            Op::Debug => Some(state),
            Op::Store(store) => after_store(contents, (call, store), state, outcome),
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
    (call, store): (u32, &Store),
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
    arith: types::op::Arith,
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
    let width = value.len();
    let content = contents.add(Bytes::from(format!("{new:<width$}")), flags);
    Some(Some(Item { content, version, ..item }))
}

impl Contents {
    fn of(&self, item: Item) -> &(Bytes, u32) {
        &self.entries[item.content as usize]
    }

    /// What `call` leaves, which puts the value of `store` in the place of all that was there, or next to `before`.
    fn after(&mut self, call: u32, store: &Store, before: Option<Content>) -> Content {
        if let Some(known) = self.stored.get(&(call, before)) {
            return *known;
        }
        let content = match before {
            None => self.add(store.value.clone(), store.flags),
            Some(before) => {
                let (old, flags) = self.entries[before as usize].clone();
                let parts =
                    if store.mode == StoreMode::Append { [&old, &store.value] } else { [&store.value, &old] };
                self.add(Bytes::from(parts.map(|part| &part[..]).concat()), flags)
            }
        };
        self.stored.insert((call, before), content);
        content
    }

    fn add(&mut self, value: Bytes, flags: u32) -> Content {
        let hash = KeyHash::of(ClusterId(u64::from(flags)), &value).0;
        let next = self.entries.len() as Content;
        let id = *self.ids.entry((hash, flags)).or_insert(next);
        if id == next {
            self.entries.push((value, flags));
        }
        id
    }
}

fn push_new(configs: &mut Vec<Config>, config: Config) {
    if !configs.contains(&config) {
        configs.push(config);
    }
}

fn is_plain_read(op: &Op) -> bool {
    matches!(op, Op::Get(get) if get.touch.is_none()) || matches!(op, Op::Debug)
}

/// A decimal number, possibly padded with spaces by an earlier decrement.
fn parse_number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii_end();
    let decimal = !digits.is_empty() && value.len() <= 20 && digits.iter().all(u8::is_ascii_digit);
    if decimal { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// The first bytes of a value, and its length.
pub(crate) fn brief_bytes(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(24)];
    let dots = if bytes.len() > shown.len() { "..." } else { "" };
    format!("\"{}{dots}\" ({} B)", shown.escape_ascii(), bytes.len())
}

/// An operation in a few words.
pub(crate) fn brief_op(op: &Op) -> String {
    match op {
        Op::Get(get) if get.touch.is_some() => format!("gat {:?}", get.touch.unwrap_or_default()),
        Op::Get(_) => "get".to_owned(),
        Op::Store(store) => {
            let compare = store.compare.map(|unique| format!(" if {unique}")).unwrap_or_default();
            format!(
                "{:?} {} flags {} {:?}{compare}",
                store.mode,
                brief_bytes(&store.value),
                store.flags,
                store.expiry
            )
            .to_lowercase()
        }
        Op::Arith(arith) => format!("{:?} {}", arith.direction, arith.delta).to_lowercase(),
        Op::Delete(_) => "delete".to_owned(),
        Op::Touch(expiry) => format!("touch {expiry:?}"),
        Op::Flush(_) => "flush".to_owned(),
        Op::Debug => "debug".to_owned(),
    }
}

/// An outcome in a few words.
pub(crate) fn brief_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Hit(view) => {
            format!("hit {} flags {} version {}", brief_bytes(&view.value), view.flags, view.version)
        }
        Outcome::Stored(view) => format!("stored, version {}", view.version),
        Outcome::Touched(view) => format!("touched, version {}", view.version),
        Outcome::Number(number, view) => format!("{number}, version {}", view.version),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::op::{Delete, Expiry, Get};

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
        oracle.settle(call, fate, NOW)
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
        oracle.settle(b, stored(2), NOW).unwrap();
        oracle.settle(a, stored(1), NOW).unwrap();
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
            oracle.clone().settle(read, hit(value, version), NOW).unwrap();
        }
        assert!(oracle.settle(read, miss(), NOW).is_err());
    }

    #[test]
    fn a_flush_may_take_effect_when_there_is_something_to_flush() {
        let mut oracle = Oracle::new(Vanishing::Never);
        let flush = oracle.invoke(Op::Flush(types::op::FlushAt::Now), NOW);
        now(&mut oracle, set("a"), stored(1)).unwrap();
        now(&mut oracle, get(), hit("a", 1)).unwrap();
        now(&mut oracle, get(), miss()).unwrap();
        oracle.settle(flush, Fate::Answered(Outcome::Flushed), NOW).unwrap();
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
    fn an_item_is_gone_from_its_second_on_and_not_before() {
        let mut oracle = Oracle::new(Vanishing::Never);
        let Op::Store(store) = set("a") else { unreachable!() };
        let expiring = Op::Store(Store { expiry: Expiry::At(UnixSeconds(1005)), ..store });
        now(&mut oracle, expiring, stored(1)).unwrap();
        assert!(now(&mut oracle.clone(), get(), miss()).is_err());
        let late = oracle.invoke(get(), UnixSeconds(1005));
        assert!(oracle.clone().settle(late, hit("a", 1), UnixSeconds(1005)).is_err());
        oracle.settle(late, miss(), UnixSeconds(1005)).unwrap();
    }

    #[test]
    fn a_call_that_began_before_the_second_may_act_after_a_miss() {
        let mut oracle = Oracle::new(Vanishing::Never);
        let Op::Store(store) = set("a") else { unreachable!() };
        let expiring = Op::Store(Store { expiry: Expiry::At(UnixSeconds(1005)), ..store.clone() });
        now(&mut oracle, expiring, stored(1)).unwrap();
        let cas = oracle.invoke(Op::Store(Store { compare: Some(1), ..store }), UnixSeconds(1004));
        let late = oracle.invoke(get(), UnixSeconds(1005));
        oracle.settle(late, miss(), UnixSeconds(1005)).unwrap();
        oracle.settle(cas, stored(2), UnixSeconds(1006)).unwrap();
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
        oracle.settle(first, miss(), most).unwrap();
        oracle.clone().settle(early, hit("a", 1), most).unwrap();
        let later = oracle.invoke(get(), least);
        oracle.settle(early, miss(), most).unwrap();
        assert!(oracle.clone().settle(later, hit("a", 1), most).is_err());
        assert!(oracle.admits(Some(Copy { value: b"a", flags: 0, version: 1 }), most), "its bytes are there");
        oracle.settle(later, miss(), most).unwrap();
    }

    #[test]
    fn appends_numbers_and_compare_and_swap_follow_memcached() {
        let mut oracle = Oracle::new(Vanishing::Never);
        now(&mut oracle, mode("x", StoreMode::Append), Fate::Answered(Outcome::NotStored)).unwrap();
        now(&mut oracle, mode("10", StoreMode::Add), stored(1)).unwrap();
        let count = |direction, delta| Op::Arith(types::op::Arith { direction, delta, ..Default::default() });
        let number =
            |n, version| Fate::Answered(Outcome::Number(n, ItemView { version, ..ItemView::default() }));
        now(&mut oracle, count(Direction::Decrement, 1), number(9, 2)).unwrap();
        now(&mut oracle, get(), hit("9 ", 2)).unwrap();
        now(&mut oracle, mode("x", StoreMode::Prepend), stored(3)).unwrap();
        now(&mut oracle, get(), hit("x9 ", 3)).unwrap();
        now(
            &mut oracle,
            count(Direction::Increment, 1),
            Fate::Answered(Outcome::Failed(Failure::NotANumber)),
        )
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
        oracle.settle(running, stored(2), NOW).unwrap();
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
}
