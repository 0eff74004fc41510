//! How long clients' requests take here, by command, and how long they wait for their turn.
//!
//! A request begins when its command is taken from the bytes that were read, and ends when its answer is known, or, if that
//! is at once, has been given to the socket. The clock is read once for all that was answered in one turn of a connection: what comes
//! before, in the system's buffers, nobody here sees.

use std::cell::{Cell, RefCell};

use faces::Face;
use proto::{ByKind, Histogram};
use types::Time;
use types::op::OpKind;

use crate::clients::{Protocol, Style, Values};

/// A command: what it does, and what clients call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub kind: OpKind,
    name: u8,
}

const NAMES: &[&str] = <Protocol as Face>::NAMES;
const OPERATIONS: usize = NAMES.len();
const _: () = assert!(OPERATIONS <= u32::BITS as usize, "one bit for each");

impl Operation {
    /// A read of one or several keys.
    pub(crate) fn of_read(kind: OpKind, style: Values) -> Self {
        Self { kind, name: Protocol::name_of_read(kind, style) as u8 }
    }

    /// Any other command.
    pub(crate) fn of(kind: OpKind, style: &Style) -> Self {
        Self { kind, name: Protocol::name_of(kind, style) as u8 }
    }

    /// Its place among the names.
    fn index(self) -> usize {
        usize::from(self.name)
    }
}

/// Of one worker, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestLatencies {
    requests: [Histogram; OPERATIONS],
    /// From when a command was understood until it could be begun, where that was not at once.
    pub queue: ByKind,
}

impl RequestLatencies {
    /// These and those.
    pub(crate) fn add(&mut self, other: &Self) {
        self.requests.iter_mut().zip(&other.requests).for_each(|(sum, one)| sum.add(one));
        self.queue.add(&other.queue);
    }

    /// By the name of the command.
    pub(crate) fn by_operation(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        NAMES.iter().copied().zip(&self.requests)
    }
}

/// What a worker has measured.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    done: RefCell<RequestLatencies>,
    /// What was answered in this turn, by operation, and which of these are not 0.
    served: [Cell<u32>; OPERATIONS],
    any: Cell<u32>,
}

impl Stopwatch {
    /// A request is answered in the turn that began at `now`; it began then, or earlier and had to wait.
    pub(crate) fn served(&self, operation: Operation, began: Time, now: Time) {
        if began < now {
            return self.answered(operation, began, now);
        }
        let index = operation.index();
        self.served[index].set(self.served[index].get() + 1);
        self.any.set(self.any.get() | 1 << index);
    }

    /// A turn that began at `since` has ended: its answers are on their way.
    pub(crate) fn end_turn(&self, since: Time, clock: impl FnOnce() -> Time) {
        let mut any = self.any.take();
        if any == 0 {
            return;
        }
        let took_us = clock().since(since);
        let requests = &mut self.done.borrow_mut().requests;
        while any != 0 {
            let index = any.trailing_zeros() as usize;
            requests[index].record(took_us, u64::from(self.served[index].take()));
            any &= any - 1;
        }
    }

    /// The answer to an earlier request is known.
    pub(crate) fn answered(&self, operation: Operation, since: Time, now: Time) {
        self.done.borrow_mut().requests[operation.index()].record(now.since(since), 1);
    }

    /// A request has had to wait for its turn.
    pub(crate) fn queued(&self, kind: OpKind, since: Time, now: Time) {
        self.done.borrow_mut().queue.record(kind, since, now);
    }

    pub(crate) fn read(&self) -> RequestLatencies {
        self.done.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use faces::memcache::{MetaStyle, MetaVerb, ReplyStyle, ReturnFlags, WithCas};

    use super::*;

    fn meta() -> ReplyStyle {
        ReplyStyle::Meta(MetaStyle {
            verb: MetaVerb::Get,
            quiet: false,
            base64: false,
            value: false,
            known_version: None,
            flags: ReturnFlags::default(),
            opaque: bytes::Bytes::new(),
            sent_len: 0,
        })
    }

    fn name(operation: Operation) -> &'static str {
        NAMES[operation.index()]
    }

    #[test]
    fn commands_are_called_as_clients_call_them() {
        for kind in OpKind::ALL {
            assert_eq!(name(Operation::of(kind, &ReplyStyle::Text)), kind.name());
        }
        let metas = [OpKind::GetAndTouch, OpKind::Append, OpKind::Delete, OpKind::Decr, OpKind::Debug];
        assert_eq!(metas.map(|kind| name(Operation::of(kind, &meta()))), ["mg", "ms", "md", "ma", "me"]);
        let gets = [OpKind::Get, OpKind::GetAndTouch].map(|kind| Operation::of_read(kind, WithCas::Yes));
        assert_eq!(gets.map(name), ["gets", "gats"]);
    }

    #[test]
    fn what_is_answered_in_one_turn_takes_as_long_as_the_turn() {
        let watch = Stopwatch::default();
        watch.end_turn(Time(5), || panic!("nothing was answered"));
        let get = Operation::of_read(OpKind::Get, WithCas::No);
        (0..3).for_each(|_| watch.served(get, Time(5), Time(5)));
        watch.served(Operation::of(OpKind::Get, &meta()), Time(5), Time(5));
        watch.end_turn(Time(5), || Time(25));
        watch.end_turn(Time(5), || panic!("all has been counted"));
        watch.served(get, Time(5), Time(1005));
        let read = watch.read();
        let counts: Vec<_> = read.by_operation().filter(|(_, one)| one.count() > 0).collect();
        assert_eq!(
            counts.iter().map(|(name, one)| (*name, one.count())).collect::<Vec<_>>(),
            [("get", 4), ("mg", 1)]
        );
        assert_eq!(counts[0].1.sum().as_micros(), 3 * 20 + 1000);
    }
}
