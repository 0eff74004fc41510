//! Calls as requests of a core, and what these come to as outcomes.

use bytes::Bytes;
use client_core::{Body, Done, Error, Op as Asked};
use native::{Answer, Code, Meta};
use types::op::{Failure, ItemView, Op, Outcome};

use super::Caller;

/// What a client asks of its core, which is told values as `body` says; none = such clients cannot.
pub(crate) fn asked(op: &Op, body: impl FnOnce(&Bytes) -> Body) -> Option<Asked> {
    // Nothing expires here: a time to live is counted from when a node hears of it, which no oracle knows.
    let ttl = 0;
    Some(match op {
        Op::Get(get) => Asked::Get { range: None, touch: get.touch.map(|_| ttl) },
        Op::Store(store) => Asked::Store {
            mode: store.mode,
            body: body(&store.value),
            flags: store.flags,
            ttl,
            compare: store.compare,
        },
        Op::Delete(delete) => Asked::Delete { compare: delete.compare },
        Op::Arith(arith) => Asked::Arith { direction: arith.direction, delta: arith.delta, initial: None },
        Op::Touch(_) => Asked::Touch { ttl },
        Op::Flush(_) | Op::Debug | Op::Object(_) | Op::Session | Op::Scan(_) | Op::Expect(_) => return None,
    })
}

/// What a call has come to.
pub(crate) fn outcome_of(caller: Caller, result: Result<Done, Error>) -> Outcome {
    match result {
        Ok(Done::Value) => Outcome::Hit(hit(caller.found.unwrap_or_default(), caller.value.into())),
        Ok(Done::Answer(answer)) => of_answer(answer),
        Ok(Done::Keys(page, _)) => Outcome::Keys(page),
        Err(Error::Code(code)) => failure_of(code),
        // As the core has it: whoever is told so may ask again.
        Err(error) if error.is_harmless() => Outcome::Failed(Failure::Unavailable),
        Err(_) => Outcome::Failed(Failure::Unknown),
    }
}

fn hit(meta: Meta, value: Bytes) -> ItemView {
    let Meta { version, flags, ttl, value_len } = meta;
    ItemView { value, value_len, flags, version, ttl_seconds: ttl, ..ItemView::default() }
}

fn of_answer(answer: Answer) -> Outcome {
    let version = |version| ItemView { version, ..ItemView::default() };
    match answer {
        Answer::Stored(new) => Outcome::Stored(version(new)),
        Answer::Number(number, new) => Outcome::Number(number, version(new)),
        Answer::Session(session) => Outcome::Session(session),
        Answer::Just(code) => match code {
            Code::Miss => Outcome::Miss,
            Code::NotStored => Outcome::NotStored,
            Code::Exists => Outcome::Exists,
            Code::NotFound => Outcome::NotFound,
            Code::Deleted => Outcome::Deleted,
            Code::Touched => Outcome::Touched(ItemView::default()),
            code => failure_of(code),
        },
        Answer::Value(_)
        | Answer::About(_)
        | Answer::Places(_)
        | Answer::Chunks(_)
        | Answer::Cells(_)
        | Answer::Begun(_)
        | Answer::Keys(_) => Outcome::Failed(Failure::Corrupt),
    }
}

fn failure_of(code: Code) -> Outcome {
    Outcome::Failed(match code {
        Code::NotANumber => Failure::NotANumber,
        Code::TooLarge => Failure::TooLarge,
        Code::OutOfMemory => Failure::OutOfMemory,
        Code::Busy | Code::NotOpen => Failure::Busy,
        Code::Unavailable | Code::Late => Failure::Unavailable,
        Code::Lost => Failure::Lost,
        Code::NoNamespace => Failure::NoNamespace,
        Code::NoSession => Failure::NoSession,
        Code::Expired => Failure::Expired,
        Code::Unknown | Code::Cancelled => Failure::Unknown,
        // What no request of such a client comes to.
        _ => Failure::Corrupt,
    })
}
