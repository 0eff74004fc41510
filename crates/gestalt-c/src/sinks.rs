//! Where bytes and answers go as they come. The shell calls these under its lock: so nothing is written to a buffer of the caller's after its
//! request has been cancelled.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use gestalt::raw::{Answer, Done, Error, Meta, Sink};

use crate::codes::Status;
use crate::memory::{Lent, Room};
use crate::request::{Ending, Found, Request, Where};

/// Of whatever reads no value.
pub(crate) struct Answering {
    pub request: Arc<Request>,
    pub lent: Lent,
}

impl Sink for Answering {
    fn lent(&self) -> Option<Range<usize>> {
        self.lent.held()
    }

    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let mut ending = match result {
            Ok(Done::Answer(answer)) => answered(answer),
            // No value was asked for.
            Ok(Done::Value | Done::Keys(..)) => Ending::of(Status::Internal),
            Err(error) => Ending::of(error.into()),
        };
        if !self.lent.is_intact() {
            ending.status = Status::BufferChanged;
        }
        self.request.end(ending);
    }
}

fn answered(answer: Answer) -> Ending {
    let mut ending = Ending::of(answer.code().into());
    match answer {
        Answer::Stored(version) => ending.meta.version = version,
        Answer::Number(number, version) => {
            ending.number = number;
            ending.meta.version = version;
        }
        Answer::About(about) => {
            ending.meta = about.meta;
            ending.about = Some(about);
        }
        Answer::Places(places) => {
            ending.places = Some(Found::of(&places));
            if let Some((meta, _)) = places.found {
                ending.meta = meta;
            }
        }
        Answer::Session(_)
        | Answer::Just(_)
        | Answer::Value(_)
        | Answer::Chunks(_)
        | Answer::Cells(_)
        | Answer::Begun(_)
        | Answer::Keys(_) => {}
    }
    ending
}

/// Of a value that is read.
pub(crate) struct Filling {
    pub request: Arc<Request>,
    pub into: Into,
    pub meta: Option<Meta>,
    /// How long a buffer has to be, where it is too short.
    pub needed: u64,
}

/// Where a value goes.
pub(crate) enum Into {
    /// A buffer of the library's, as long as what has come: a value in one piece is not copied.
    Library(Bytes, BytesMut),
    /// The caller's.
    Caller(Room),
}

impl Into {
    fn add(&mut self, bytes: Bytes) {
        match self {
            Self::Caller(room) => room.fill(&bytes),
            Self::Library(first, rest) => {
                if first.is_empty() && rest.is_empty() {
                    *first = bytes;
                    return;
                }
                if rest.is_empty() {
                    rest.extend_from_slice(first);
                    *first = Bytes::new();
                }
                rest.extend_from_slice(&bytes);
            }
        }
    }

    fn place(self) -> Where {
        match self {
            Self::Caller(room) => Where::Caller(room.start() as usize, room.filled()),
            Self::Library(first, rest) => Where::Here(if rest.is_empty() { first } else { rest.freeze() }),
        }
    }
}

impl Sink for Filling {
    fn head(&mut self, meta: &Meta, len: u64) -> bool {
        self.meta = Some(*meta);
        match &self.into {
            Into::Caller(room) if len > room.len() as u64 => {
                self.needed = len;
                false
            }
            Into::Caller(_) | Into::Library(..) => true,
        }
    }

    fn data(&mut self, bytes: Bytes) -> usize {
        let len = bytes.len();
        if self.needed == 0 {
            self.into.add(bytes);
        }
        len
    }

    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let Self { request, into, meta, needed } = *self;
        let status = match result {
            _ if needed > 0 => Status::ShortBuffer,
            Ok(Done::Value) => Status::Ok,
            Ok(Done::Answer(answer)) => answer.code().into(),
            Ok(Done::Keys(..)) => Status::Internal,
            Err(error) => error.into(),
        };
        let mut ending = Ending::of(status);
        ending.needed = needed;
        if let Some(meta) = meta {
            ending.meta = meta;
        }
        if status == Status::Ok {
            ending.value = into.place();
        }
        request.end(ending);
    }
}
