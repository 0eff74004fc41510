//! Is what the clients of one key were told what a single memcached would have said?
//!
//! An online check of linearizability. Calls and answers arrive in real-time order; the oracle keeps the set of all
//! states in which the key may be, each with the calls that have taken effect to reach it (Wing and Gong 1993, in the
//! forward form of Lowe 2017, "just-in-time linearization"). A call without an answer may take effect at any later
//! moment, or never. An empty set is a violation, found at the very event that makes it one.
//!
//! Unlike the checker of the crate `history` it knows expiry, eviction, prepend, decrement and flushes, and it can be asked at
//! any moment whether a state *could* be the present one: that is what a decoded copy of an item is held against.
//!
//! Reductions: a call that changes nothing and agrees with the state is done at once; of two equal states the one that
//! has used up fewer unanswered calls can do all that the other can.

mod call;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use types::op::{Get, ItemView, Op, Outcome};
use types::{FastMap, UnixSeconds};

use crate::stage::brief::{brief_bytes, brief_op, brief_outcome};
use call::{Call, is_plain_read};
use state::{Contents, Item, NOBODY, State, UNSEEN};

pub use call::Fate;

/// Calls of one key that may be open at once, unanswered ones included. Beyond it the key is no longer checked.
const MAX_OPEN: u32 = 128;
/// States of one key that are followed at once. Beyond it the key is no longer checked.
const MAX_STATES: usize = 4096;

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
    /// For calls that begin.
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
        let vanishing = self.vanishing;
        self.calls.push(Call {
            op,
            fate: Fate::Undecided,
            unix: (unix.0, u32::MAX),
            before: NOBODY,
            vanishing,
        });
        self.moments.push_back(Moment::Invoked(id));
        id
    }

    /// A call is answered now, when no clock shows more than `unix`, or will never be.
    ///
    /// # Errors
    /// If no order of the calls explains all answers so far.
    pub fn close(&mut self, call: u32, fate: Fate, unix: UnixSeconds) -> Result<(), Contradiction> {
        if self.gave_up {
            return Ok(());
        }
        let next = self.calls.len() as u32;
        let entry = &mut self.calls[call as usize];
        debug_assert_eq!(entry.fate, Fate::Undecided, "a call ends once");
        // Without an answer it never returns: it stays open, and may take effect at any later time.
        if matches!(fate, Fate::Answered(_)) {
            (entry.unix.1, entry.before) = (unix.0, next);
            self.moments.push_back(Moment::Returned(call));
        }
        entry.fate = fate;
        self.advance()
    }

    /// From now on the item may be gone at any moment: its namespace was removed, and some have swept it while others have not
    /// heard of that. Calls that were answered before have seen what was there.
    pub fn let_vanish(&mut self) {
        if self.vanishing == Vanishing::Anytime {
            return;
        }
        self.vanishing = Vanishing::Anytime;
        let goes_on = |call: &&mut Call| !matches!(call.fate, Fate::Answered(_));
        self.calls.iter_mut().filter(goes_on).for_each(|call| call.vanishing = Vanishing::Anytime);
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
            // What is under way may have taken effect already, or not.
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
        let read = fork.invoke(Op::Get(Get::default()), unix);
        fork.close(read, Fate::Answered(outcome), unix).is_ok()
    }

    /// Whether the key is there now, whatever has become of calls that are under way, and stays if nothing more is asked.
    #[must_use]
    pub fn is_surely_there(&self) -> bool {
        !self.admits(None, UnixSeconds(u32::MAX))
    }

    /// Whether the key is not there, and nothing that is under way can bring it.
    #[must_use]
    pub fn is_surely_not_there(&self) -> bool {
        let is_at_rest = !self.gave_up && self.open.is_empty() && self.moments.is_empty();
        is_at_rest && self.configs.iter().all(|config| config.state.is_none())
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
                    // Not worked off yet: if it turns out to be void, or a read without an answer,
                    // it needs none of the few bits.
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
                // A call without an answer that changes nothing here is better left open: it
                // may still change something later.
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
        // Not for a copy in a slot, which `admits` looks at before the beginning of time.
        let over = call >= item.over_for && begun > 0;
        let alive = item.expiry == 0 || item.expiry > begun && !over;
        let expired = item.expiry != 0 && item.expiry <= ended;
        let evicted = entry.vanishing == Vanishing::Anytime;
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

fn push_new(configs: &mut Vec<Config>, config: Config) {
    if !configs.contains(&config) {
        configs.push(config);
    }
}
