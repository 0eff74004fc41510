//! The replies of one connection, in the order of its commands.
//!
//! Answers come in any order; each waits in the slot of its command until all before it are printed, unless it is its turn. What is
//! known at once is printed at once: straight into the output if nothing waits before it, else into a side buffer, which is a queue
//! itself because such replies are made and printed in the same order.
//!
//! The bytes of a value that lies in chunks come later still (`download`): what follows it waits until they are printed.
//!
//! Nothing of a multi-key get is sent before its end is known, unless it grows large: if one of its keys cannot be
//! read the values are taken back and only the reason is printed, for a missing line would look like a miss.

use std::collections::VecDeque;

use bytes::Bytes;
use faces::{Face, Found};
use types::Time;
use types::op::{Failure, ItemView, Key, Object, OpKind, Outcome};

use crate::clients::gate::Load;
use crate::clients::key_uses::{KeyUse, KeyUses};
use crate::clients::latency::Operation;
use crate::clients::{Protocol, Style, Values};
use crate::limits::{CLIENT_OUT_HIGH_BYTES, CLIENT_PLACES_KEPT, REQUEST_OVERHEAD_BYTES};
use crate::workers::counters::Counters;

/// How the outcome of a request is printed.
#[derive(Debug)]
pub(crate) enum Print {
    /// By itself. The key is empty where it is not printed.
    Styled(Style, Bytes),
    /// A read of one key, with its end.
    Get(Bytes, Values),
    /// One key of a read of many.
    Value(Bytes, Values),
    /// The outcomes of `left` requests as one.
    Gathered {
        /// How.
        style: Style,
        /// So many have not come yet.
        left: usize,
        /// What went wrong with those that have: the first thing, unless one of them may have been done.
        failure: Option<Failure>,
        /// Whether one of them was done.
        done: bool,
    },
    /// Lines that are made elsewhere.
    Lines,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Expected {
    /// How to print it.
    pub print: Print,
    /// What to count it as, and since when it has been here; none if it is not counted.
    pub asked: Option<Asked>,
    /// What it does to which key; none if it has none.
    pub used: Option<KeyUse>,
    /// What it weighs.
    pub load: Load,
}

/// A command of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub operation: Operation,
    pub began: Time,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReplyQueue {
    slots: VecDeque<Slot>,
    /// Number of the first slot.
    first: u64,
    waiting: usize,
    /// Of all slots.
    load: Load,
    held: Vec<u8>,
    held_printed: usize,
    uses: KeyUses,
    get: Option<OpenGet>,
}

#[derive(Debug)]
enum Slot {
    Waiting(Expected),
    Known(Known),
    /// So many bytes of the side buffer.
    Held(usize),
    Lines(Vec<u8>),
    GetBegins,
    GetEnds(Values),
    /// Its answer is just being put into its place.
    Taken,
}

/// An answer that waits to be printed.
#[derive(Debug)]
struct Known {
    print: Print,
    outcome: Outcome,
    /// Whether what was asked may have changed something.
    changed: bool,
}

/// A value in chunks whose turn it is to be printed.
pub(crate) struct DueObject<'a> {
    /// Of its reply.
    pub slot: u64,
    pub key: Key,
    /// Where it lies.
    pub object: &'a Object,
    /// Whether the request that has found it may have changed something.
    pub changed: bool,
}

/// A multi-key get that is being printed.
#[derive(Debug)]
struct OpenGet {
    /// Where its unsent part begins in the output.
    start: usize,
    failure: Option<Failure>,
}

impl ReplyQueue {
    /// Whether no command waits for its reply to be printed.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many commands are unanswered.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Replies that wait to be printed, known or not.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// What requests and unprinted replies weigh.
    pub(crate) fn load(&self) -> Load {
        Load { held: self.load.held + self.held.len() - self.held_printed, ..self.load }
    }

    /// Memory of what waits, and of the places that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.load.held + self.held.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Keys with unanswered commands.
    pub(crate) fn uses(&self) -> &KeyUses {
        &self.uses
    }

    /// The next reply is known: `write` prints it.
    #[inline]
    pub(crate) fn say(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let is_due = self.slots.is_empty();
        let target: &mut Vec<u8> = if is_due { out } else { &mut self.held };
        let before = target.len();
        write(target);
        let len = target.len() - before;
        if is_due {
            return;
        }
        // One slot for all that follow each other: known replies must not use up the places of those that wait.
        match self.slots.back_mut() {
            Some(Slot::Held(last)) => *last += len,
            Some(_) | None => self.slots.push_back(Slot::Held(len)),
        }
    }

    /// The next reply is the outcome of a request that did not have to wait.
    pub(crate) fn know(&mut self, print: Print, outcome: Outcome, out: &mut Vec<u8>) {
        if self.slots.is_empty() {
            return self.print(&print, &outcome, out);
        }
        self.load.held += held_by(&outcome);
        self.slots.push_back(Slot::Known(Known { print, outcome, changed: false }));
    }

    /// The next reply will come under the number that is returned.
    pub(crate) fn expect(&mut self, expected: Expected) -> u64 {
        if let Some(used) = expected.used {
            self.uses.open(used);
        }
        self.waiting += 1;
        self.load.held += expected.load.held;
        self.load.expected += expected.load.expected;
        self.slots.push_back(Slot::Waiting(expected));
        self.first + self.slots.len() as u64 - 1
    }

    /// A get of several keys begins; everything up to `end_get` belongs to it.
    pub(crate) fn begin_get(&mut self, out: &[u8]) {
        if self.slots.is_empty() {
            self.get = Some(OpenGet { start: out.len(), failure: None });
        } else {
            self.slots.push_back(Slot::GetBegins);
        }
    }

    /// The get has no further keys.
    pub(crate) fn end_get(&mut self, style: Values, out: &mut Vec<u8>) {
        if self.slots.is_empty() {
            self.close_get(style, out);
        } else {
            self.slots.push_back(Slot::GetEnds(style));
        }
    }

    /// The answer to the request of slot `number`, printed if it is its turn; what had been asked, if that is answered now.
    pub(crate) fn answer(
        &mut self,
        number: u64,
        outcome: Outcome,
        out: &mut Vec<u8>,
        counters: &Counters,
    ) -> Option<Asked> {
        let is_first = number == self.first;
        let slot = self.slot_mut(number)?;
        let Slot::Waiting(expected) = slot else { return None };
        let outcome = expected.print.gather(outcome)?;
        if let Some(asked) = expected.asked {
            counters.count_outcome(asked.operation.kind, &outcome);
        }
        if is_first && expected.print.streamed(&outcome).is_none() {
            return self.answer_first(&outcome, out);
        }
        let held = held_by(&outcome);
        let Slot::Waiting(expected) = std::mem::replace(slot, Slot::Taken) else { return None };
        self.take_off(&expected, held);
        if let Some(slot) = self.slot_mut(number) {
            let changed = expected.used.is_some_and(KeyUse::writes);
            *slot = Slot::Known(Known { print: expected.print, outcome, changed });
        }
        expected.asked
    }

    /// The answer to the first request: everything before it is printed.
    fn answer_first(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Option<Asked> {
        let slot = self.slots.pop_front()?;
        // Where it is: a slot is long.
        let Slot::Waiting(expected) = &slot else { return None };
        self.first += 1;
        self.take_off(expected, 0);
        self.print(&expected.print, outcome, out);
        expected.asked
    }

    /// The lines for slot `number`, which expects such.
    pub(crate) fn answer_lines(&mut self, number: u64, lines: Vec<u8>) {
        let Some(slot) = self.slot_mut(number) else { return };
        let held = lines.len();
        if let Slot::Waiting(expected) = std::mem::replace(slot, Slot::Lines(lines)) {
            self.take_off(&expected, held);
        }
    }

    /// Prints what has become printable.
    #[inline]
    pub(crate) fn drain(&mut self, out: &mut Vec<u8>) {
        // Nearly always the first one waits, or there is none.
        if self.slots.front().is_some_and(|slot| !matches!(slot, Slot::Waiting(_))) {
            self.drain_slots(out);
        }
    }

    fn drain_slots(&mut self, out: &mut Vec<u8>) {
        while self.slots.front().is_some_and(Slot::is_printable) {
            let Some(slot) = self.slots.pop_front() else { break };
            self.first += 1;
            self.print_slot(slot, out);
        }
        // Only when less is moved than was printed, as with the output.
        if self.held_printed > self.held.len() / 2 {
            self.held.drain(..self.held_printed);
            self.held_printed = 0;
        }
        if self.slots.is_empty() {
            debug_assert!(self.load == Load::default() && self.waiting == 0 && self.uses.is_empty());
        }
    }

    /// Whether what comes next is known, and could not be printed: a value in chunks, if all that may be printed is.
    #[inline]
    pub(crate) fn is_held_up(&self) -> bool {
        matches!(self.slots.front(), Some(Slot::Known(_)))
    }

    /// The value in chunks whose turn it is to be printed, if it is one's.
    pub(crate) fn due_object(&self) -> Option<DueObject<'_>> {
        let Some(Slot::Known(Known { print, outcome, changed })) = self.slots.front() else { return None };
        let (key, item) = print.streamed(outcome)?;
        let object = item.object.as_deref()?;
        // It was the key of a request.
        let key = Key::of(object.descriptor.id.namespace, key.clone()).ok()?;
        Some(DueObject { slot: self.first, key, object, changed: *changed })
    }

    /// That value is asked for anew: its key.
    pub(crate) fn reopen(&mut self) -> Option<Key> {
        let key = self.due_object()?.key;
        let print = self.take_known()?;
        self.first -= 1;
        self.waiting += 1;
        let expected = Expected { print, asked: None, used: None, load: Load::default() };
        self.slots.push_front(Slot::Waiting(expected));
        Some(key)
    }

    /// Prints what stands before the bytes of that value.
    pub(crate) fn begin_value(&mut self, out: &mut Vec<u8>) {
        let Some(Slot::Known(Known { print, outcome, .. })) = self.slots.front() else { return };
        match (print, outcome) {
            (Print::Get(key, style) | Print::Value(key, style), Outcome::Hit(item)) => {
                Protocol::print_head(*style, key, item, out);
            }
            (Print::Styled(style, key), outcome) => Protocol::print(style, key, outcome, out),
            _ => debug_assert!(false, "only a read has such a value"),
        }
    }

    /// Prints what stands behind the bytes of that value.
    pub(crate) fn end_value(&mut self, out: &mut Vec<u8>) {
        let Some(print) = self.take_known() else { return };
        out.extend_from_slice(Protocol::VALUE_END);
        if let Print::Get(_, style) = print {
            Protocol::print_end(style, None, out);
        }
    }

    /// Nothing of that value can be read: this has come of it.
    pub(crate) fn replace_value(&mut self, outcome: Outcome, out: &mut Vec<u8>) {
        if let Some(print) = self.take_known() {
            self.print(&print, &outcome, out);
        }
    }

    fn take_known(&mut self) -> Option<Print> {
        match self.slots.pop_front()? {
            Slot::Known(known) => {
                self.first += 1;
                self.load.held -= held_by(&known.outcome);
                Some(known.print)
            }
            other => {
                self.slots.push_front(other);
                None
            }
        }
    }

    /// Gives back what a burst has needed, if nothing waits.
    pub(crate) fn trim(&mut self) {
        if self.slots.is_empty() && self.slots.capacity() > CLIENT_PLACES_KEPT {
            self.slots = VecDeque::new();
            self.held = Vec::new();
            self.uses = KeyUses::default();
        }
    }

    /// How much of the output's text may be sent now, which is `len` long.
    #[inline]
    pub(crate) fn sendable(&mut self, len: usize) -> usize {
        let Some(get) = &mut self.get else { return len };
        // Else a large get would stay in memory as a whole. What is sent cannot be taken back: its end tells a failure.
        if len - get.start >= CLIENT_OUT_HIGH_BYTES {
            get.start = len;
        }
        get.start
    }

    /// Bytes of a long value follow the text of the output, which is `len` long: that goes with them.
    pub(crate) fn let_go(&mut self, len: usize) {
        if let Some(get) = &mut self.get {
            get.start = len;
        }
    }

    /// The first `len` bytes of the output are gone.
    pub(crate) fn sent(&mut self, len: usize) {
        if let Some(get) = &mut self.get {
            // No more than up to the start was sendable, so this cannot go below 0.
            get.start -= len;
        }
    }

    fn slot_mut(&mut self, number: u64) -> Option<&mut Slot> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(index)
    }

    /// A request has been answered; its slot now holds `held` bytes.
    fn take_off(&mut self, expected: &Expected, held: usize) {
        self.waiting -= 1;
        self.load.held = self.load.held + held - expected.load.held;
        self.load.expected -= expected.load.expected;
        if let Some(used) = expected.used {
            self.uses.close(used);
        }
    }

    fn print_slot(&mut self, slot: Slot, out: &mut Vec<u8>) {
        match slot {
            Slot::Known(Known { print, outcome, .. }) => {
                self.load.held -= held_by(&outcome);
                self.print(&print, &outcome, out);
            }
            Slot::Held(len) => {
                let end = self.held_printed + len;
                out.extend_from_slice(&self.held[self.held_printed..end]);
                self.held_printed = end;
            }
            Slot::Lines(lines) => {
                self.load.held -= lines.len();
                out.extend_from_slice(&lines);
            }
            Slot::GetBegins => self.get = Some(OpenGet { start: out.len(), failure: None }),
            Slot::GetEnds(style) => self.close_get(style, out),
            Slot::Waiting(_) | Slot::Taken => debug_assert!(false, "only what is known is printed"),
        }
    }

    fn print(&mut self, print: &Print, outcome: &Outcome, out: &mut Vec<u8>) {
        match print {
            Print::Styled(style, key) => Protocol::print(style, key, outcome, out),
            Print::Gathered { style, done: true, failure: Some(_), .. } => {
                // More is known than `unknown` says: some of it was done.
                Protocol::print_partial(style, out);
            }
            Print::Gathered { style, .. } => Protocol::print(style, &[], outcome, out),
            Print::Get(key, style) => {
                let failure = print_value(key, *style, outcome, out);
                Protocol::print_end(*style, failure, out);
            }
            Print::Value(key, style) => {
                if let Some(failure) = print_value(key, *style, outcome, out)
                    && let Some(get) = &mut self.get
                {
                    get.failure.get_or_insert(failure);
                }
            }
            Print::Lines => (),
        }
    }

    fn close_get(&mut self, style: Values, out: &mut Vec<u8>) {
        let failure = match self.get.take() {
            Some(OpenGet { start, failure: Some(failure) }) => {
                out.truncate(start);
                Some(failure)
            }
            Some(OpenGet { failure: None, .. }) | None => None,
        };
        Protocol::print_end(style, failure, out);
    }
}

impl Slot {
    /// Whether all of it is known.
    fn is_printable(&self) -> bool {
        match self {
            Self::Waiting(_) => false,
            Self::Known(known) => known.print.streamed(&known.outcome).is_none(),
            Self::Held(_) | Self::Lines(_) | Self::GetBegins | Self::GetEnds(_) | Self::Taken => true,
        }
    }
}

/// Prints the value that a read has found, if so; why it could not be read, if that is so.
fn print_value(key: &[u8], style: Values, outcome: &Outcome, out: &mut Vec<u8>) -> Option<Failure> {
    match outcome {
        Outcome::Hit(item) => {
            let found = Found { flags: item.flags, version: item.version, value: &item.value };
            Protocol::print_value(style, key, &found, out);
            None
        }
        Outcome::Failed(failure) => Some(*failure),
        Outcome::Miss
        | Outcome::Stored(_)
        | Outcome::NotStored
        | Outcome::Exists
        | Outcome::NotFound
        | Outcome::Deleted
        | Outcome::Touched(_)
        | Outcome::Number(..)
        | Outcome::Begun(_)
        | Outcome::Noted
        | Outcome::Session(_)
        | Outcome::Keys(_)
        | Outcome::Flushed => None,
    }
}

impl Print {
    /// What was asked for, if it does this.
    pub(crate) fn operation(&self, kind: OpKind) -> Option<Operation> {
        match self {
            Self::Styled(style, _) | Self::Gathered { style, .. } => Some(Operation::of(kind, style)),
            Self::Get(_, style) | Self::Value(_, style) => Some(Operation::of_read(kind, *style)),
            Self::Lines => None,
        }
    }

    /// The key and the item of `outcome`, if bytes that lie in chunks are a part of what is printed.
    fn streamed<'a>(&'a self, outcome: &'a Outcome) -> Option<(&'a Bytes, &'a ItemView)> {
        let Outcome::Hit(item) = outcome else { return None };
        item.object.as_ref()?;
        match self {
            Self::Get(key, _) | Self::Value(key, _) => Some((key, item)),
            Self::Styled(style, key) if Protocol::streams(style, item) => Some((key, item)),
            Self::Styled(..) | Self::Gathered { .. } | Self::Lines => None,
        }
    }

    /// The outcomes of `count` requests, as one.
    pub(crate) fn gathered(style: Style, count: usize) -> Self {
        Self::Gathered { style, left: count, failure: None, done: false }
    }

    /// Takes one more outcome; what all of them amount to, once they are complete. Nobody knows the outcome of what was
    /// done in part.
    fn gather(&mut self, outcome: Outcome) -> Option<Outcome> {
        let Self::Gathered { left, failure, done, .. } = self else { return Some(outcome) };
        match outcome {
            Outcome::Failed(Failure::Unknown) => *failure = Some(Failure::Unknown),
            Outcome::Failed(reason) => *failure = failure.or(Some(reason)),
            Outcome::Hit(_)
            | Outcome::Miss
            | Outcome::Stored(_)
            | Outcome::NotStored
            | Outcome::Exists
            | Outcome::NotFound
            | Outcome::Deleted
            | Outcome::Touched(_)
            | Outcome::Number(..)
            | Outcome::Begun(_)
            | Outcome::Noted
            | Outcome::Session(_)
            | Outcome::Keys(_)
            | Outcome::Flushed => *done = true,
        }
        *left -= 1;
        match *failure {
            _ if *left > 0 => None,
            Some(_) if *done => Some(Outcome::Failed(Failure::Unknown)),
            Some(reason) => Some(Outcome::Failed(reason)),
            None => Some(outcome),
        }
    }
}

/// Bytes that an unprinted outcome holds.
fn held_by(outcome: &Outcome) -> usize {
    REQUEST_OVERHEAD_BYTES
        + match outcome {
            Outcome::Hit(item)
            | Outcome::Stored(item)
            | Outcome::Touched(item)
            | Outcome::Number(_, item) => item.value.len(),
            Outcome::Keys(page) => page.len_bytes(),
            Outcome::Miss
            | Outcome::NotStored
            | Outcome::Exists
            | Outcome::NotFound
            | Outcome::Deleted
            | Outcome::Begun(_)
            | Outcome::Noted
            | Outcome::Session(_)
            | Outcome::Flushed
            | Outcome::Failed(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use faces::memcache::{ReplyStyle, WithCas};
    use types::{
        Descriptor, Geometry, GroupId, MemberId, NamespaceId, ObjectId, ObjectLayout, RoleIndex, Term,
    };

    use super::*;

    fn hit(value: &'static str) -> Outcome {
        Outcome::Hit(ItemView { value: Bytes::from_static(value.as_bytes()), ..ItemView::default() })
    }

    fn value_of(key: &'static str) -> Expected {
        let print = Print::Value(Bytes::from_static(key.as_bytes()), WithCas::No);
        Expected { print, asked: asked(OpKind::Get), used: None, load: Load::default() }
    }

    fn asked(kind: OpKind) -> Option<Asked> {
        Some(Asked { operation: Operation::of(kind, &ReplyStyle::Text), began: Time(1) })
    }

    fn store() -> Expected {
        let print = Print::Styled(ReplyStyle::Text, Bytes::new());
        Expected { print, asked: asked(OpKind::Set), used: None, load: Load { held: 100, expected: 7 } }
    }

    fn text(out: &[u8]) -> &str {
        std::str::from_utf8(out).unwrap()
    }

    #[test]
    fn replies_are_printed_in_the_order_of_the_commands() {
        let (mut queue, mut out, counters) = (ReplyQueue::default(), Vec::new(), Counters::default());
        queue.say(&mut out, |out| out.extend_from_slice(b"first "));
        let second = queue.expect(store());
        queue.say(&mut out, |out| out.extend_from_slice(b"third "));
        queue.say(&mut out, |out| out.extend_from_slice(b"fourth "));
        let fifth = queue.expect(store());
        queue.answer(fifth, Outcome::NotStored, &mut out, &counters);
        queue.drain(&mut out);
        assert_eq!(text(&out), "first ");
        queue.answer(second, Outcome::Stored(ItemView::default()), &mut out, &counters);
        queue.drain(&mut out);
        assert_eq!(text(&out), "first STORED\r\nthird fourth NOT_STORED\r\n");
        assert_eq!((queue.load(), queue.waiting(), queue.is_empty()), (Load::default(), 0, true));
    }

    #[test]
    fn a_late_or_repeated_answer_changes_nothing() {
        let (mut queue, mut out, counters) = (ReplyQueue::default(), Vec::new(), Counters::default());
        let number = queue.expect(store());
        queue.answer(number, Outcome::NotStored, &mut out, &counters);
        queue.answer(number, Outcome::Exists, &mut out, &counters);
        queue.drain(&mut out);
        queue.answer(number, Outcome::Exists, &mut out, &counters);
        queue.answer(number + 7, Outcome::Exists, &mut out, &counters);
        queue.drain(&mut out);
        assert_eq!(text(&out), "NOT_STORED\r\n");
    }

    #[test]
    fn a_multi_key_get_keeps_the_order_of_its_keys_and_is_sent_as_a_whole() {
        let (mut queue, mut out, counters) = (ReplyQueue::default(), Vec::new(), Counters::default());
        queue.begin_get(&out);
        let a = queue.expect(value_of("a"));
        let b = queue.expect(value_of("b"));
        let c = queue.expect(value_of("c"));
        queue.end_get(WithCas::No, &mut out);
        queue.answer(c, hit("3"), &mut out, &counters);
        queue.answer(a, hit("1"), &mut out, &counters);
        queue.drain(&mut out);
        assert_eq!(queue.sendable(out.len()), 0);
        queue.answer(b, Outcome::Miss, &mut out, &counters);
        queue.drain(&mut out);
        assert_eq!(queue.sendable(out.len()), out.len());
        assert_eq!(text(&out), "VALUE a 0 1\r\n1\r\nVALUE c 0 1\r\n3\r\nEND\r\n");
    }

    fn object(len: u64) -> Outcome {
        let owner = MemberId { group: GroupId(0), role: RoleIndex(0) };
        let id = ObjectId { owner, term: Term(1), number: 1, salt: 1, namespace: NamespaceId::DEFAULT };
        let geometry = Geometry { len, chunk_len: 1 << 16, k: 3, layout: ObjectLayout::Spread };
        let groups = vec![GroupId(0)];
        let descriptor = Descriptor { id, geometry, groups, exceptions: vec![], checksum: 0 };
        let object = Some(Box::new(Object { descriptor, pin: Some(1) }));
        Outcome::Hit(ItemView { value_len: len, object, ..ItemView::default() })
    }

    #[test]
    fn a_value_in_chunks_holds_up_what_follows_until_its_bytes_are_printed() {
        let (mut queue, mut out, counters) = (ReplyQueue::default(), Vec::new(), Counters::default());
        queue.begin_get(&out);
        let [a, b, c] = ["a", "b", "c"].map(|key| queue.expect(value_of(key)));
        queue.end_get(WithCas::No, &mut out);
        queue.answer(c, hit("3"), &mut out, &counters);
        queue.answer(a, object(4), &mut out, &counters);
        queue.answer(b, object(5), &mut out, &counters);
        queue.drain(&mut out);
        assert!(out.is_empty());
        let due = |queue: &ReplyQueue| queue.due_object().map(|due| (due.slot, due.key.client().to_vec()));
        assert_eq!(due(&queue), Some((a, b"a".to_vec())));
        queue.begin_value(&mut out);
        out.extend_from_slice(b"abcd");
        queue.end_value(&mut out);
        queue.drain(&mut out);
        assert_eq!(due(&queue), Some((b, b"b".to_vec())));
        // It is not there any more: what is there now is no object.
        assert_eq!(queue.reopen().map(|key| key.client().to_vec()), Some(b"b".to_vec()));
        assert_eq!((queue.waiting(), due(&queue)), (1, None));
        queue.answer(b, hit("2"), &mut out, &counters);
        queue.drain(&mut out);
        assert_eq!(queue.sendable(out.len()), out.len());
        let expected = "VALUE a 0 4\r\nabcd\r\nVALUE b 0 1\r\n2\r\nVALUE c 0 1\r\n3\r\nEND\r\n";
        assert_eq!((text(&out), queue.load(), queue.is_empty()), (expected, Load::default(), true));
    }

    #[test]
    fn a_value_in_chunks_that_cannot_be_read_is_a_failed_read() {
        let (mut queue, mut out, counters) = (ReplyQueue::default(), Vec::new(), Counters::default());
        let print = Print::Get(Bytes::from_static(b"k"), WithCas::No);
        let asked = asked(OpKind::Get);
        let slot = queue.expect(Expected { print, asked, used: None, load: Load::default() });
        queue.answer(slot, object(9), &mut out, &counters);
        queue.replace_value(Outcome::Failed(Failure::Lost), &mut out);
        assert!(text(&out).starts_with("SERVER_ERROR lost"), "{}", text(&out));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_key_that_cannot_be_read_takes_the_values_back() {
        let (mut queue, mut out, counters) =
            (ReplyQueue::default(), b"before ".to_vec(), Counters::default());
        queue.begin_get(&out);
        queue.say(&mut out, |out| out.extend_from_slice(b"VALUE "));
        let b = queue.expect(value_of("b"));
        queue.end_get(WithCas::No, &mut out);
        queue.say(&mut out, |out| out.extend_from_slice(b"after"));
        queue.answer(b, Outcome::Failed(Failure::Lost), &mut out, &counters);
        queue.drain(&mut out);
        assert!(text(&out).starts_with("before SERVER_ERROR lost"), "{}", text(&out));
        assert!(text(&out).ends_with("\r\nafter"));
    }

    #[test]
    fn a_large_get_is_sent_before_its_end_and_then_ends_with_the_error() {
        let (mut queue, mut out, counters) = (ReplyQueue::default(), Vec::new(), Counters::default());
        queue.begin_get(&out);
        out.resize(CLIENT_OUT_HIGH_BYTES + 1, b'x');
        let b = queue.expect(value_of("b"));
        queue.end_get(WithCas::No, &mut out);
        assert_eq!(queue.sendable(out.len()), out.len());
        queue.sent(out.len());
        out.clear();
        queue.answer(b, Outcome::Failed(Failure::Lost), &mut out, &counters);
        queue.drain(&mut out);
        assert!(text(&out).starts_with("SERVER_ERROR lost"));
    }

    /// What a flush of as many data roles says that end like this.
    fn flushed(outcomes: &[Outcome]) -> String {
        let (mut queue, mut out, counters) = (ReplyQueue::default(), Vec::new(), Counters::default());
        let print = Print::gathered(ReplyStyle::Text, outcomes.len());
        let used = Some(KeyUse::ALL);
        let asked = asked(OpKind::FlushAll);
        let slot = queue.expect(Expected { print, asked, used, load: Load::default() });
        for (at, outcome) in outcomes.iter().enumerate() {
            assert!(out.is_empty() && queue.waiting() == 1, "answered before outcome {at}");
            queue.answer(slot, outcome.clone(), &mut out, &counters);
            queue.drain(&mut out);
        }
        text(&out).to_owned()
    }

    #[test]
    fn gathered_outcomes_are_answered_once_and_the_first_failure_counts() {
        let failed = |failure| Outcome::Failed(failure);
        assert_eq!(flushed(&[Outcome::Flushed, Outcome::Flushed]), "OK\r\n");
        let nothing = flushed(&[failed(Failure::Unavailable), failed(Failure::Lost)]);
        assert!(nothing.starts_with("SERVER_ERROR unavailable: "), "{nothing}");
    }

    #[test]
    fn a_flush_that_was_done_in_part_never_says_that_nothing_was_done() {
        use Failure::{Busy, Lost, Unavailable, Unknown};
        for failure in [Busy, Lost, Unavailable, Unknown] {
            for order in
                [[Outcome::Flushed, Outcome::Failed(failure)], [Outcome::Failed(failure), Outcome::Flushed]]
            {
                let said = flushed(&order);
                assert!(said.starts_with("SERVER_ERROR partial: "), "{failure:?}: {said}");
            }
            let said = flushed(&[Outcome::Failed(failure), Outcome::Failed(Unknown)]);
            assert!(said.starts_with("SERVER_ERROR unknown: "), "{failure:?}: {said}");
        }
    }
}
