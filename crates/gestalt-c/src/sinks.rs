//! Where bytes and answers go as they come. The shell calls these under its lock: so nothing is written to a buffer of the caller's after its
//! request has been cancelled.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use gestalt::raw::{Answer, Done, Error, Landed, Meta, Sink};

use crate::codes::Status;
use crate::memory::Lent;
use crate::request::{Ending, Found, Request, Where};
use crate::room::Room;

/// Longest value for which the library takes memory before it has come.
const LONGEST_OWN: u64 = 1 << 30;

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
    /// Buffers of the library's, as long as what has come: a value in one piece is not copied.
    Library(Bytes, BytesMut),
    /// The caller's buffer, or one of the library's that is as long as the value.
    Room(Room),
}

impl Into {
    fn add(&mut self, bytes: Bytes) {
        match self {
            Self::Room(room) => room.fill(&bytes),
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

    /// A room for a value that is so long.
    fn room(&mut self, len: u64) -> Option<&mut Room> {
        if let Self::Library(first, rest) = self {
            let own = usize::try_from(len)
                .ok()
                .filter(|_| len <= LONGEST_OWN && first.is_empty() && rest.is_empty());
            *self = Self::Room(Room::own(own?)?);
        }
        match self {
            Self::Room(room) => (len <= room.len() as u64).then_some(room),
            Self::Library(..) => None,
        }
    }

    fn finish(self) -> Where {
        match self {
            Self::Room(room) => match room.finish() {
                Ok((start, len)) => Where::Caller(start, len),
                Err(own) => Where::Here(own),
            },
            Self::Library(first, rest) => Where::Here(if rest.is_empty() { first } else { rest.freeze() }),
        }
    }
}

impl Sink for Filling {
    fn head(&mut self, meta: &Meta, len: u64) -> bool {
        self.meta = Some(*meta);
        match &self.into {
            // It was for another value.
            Into::Room(room) if len > room.len() as u64 && room.is_own() => {
                self.into = Into::Library(Bytes::new(), BytesMut::new());
                true
            }
            Into::Room(room) if len > room.len() as u64 => {
                self.needed = len;
                false
            }
            Into::Room(_) | Into::Library(..) => true,
        }
    }

    fn room(&self) -> u64 {
        match &self.into {
            Into::Room(room) => room.len() as u64,
            Into::Library(..) => LONGEST_OWN,
        }
    }

    fn place(&mut self, all: u64, at: u64, len: usize) -> Option<&mut dyn BufMut> {
        self.into.room(all)?.gap(at, len).map(|gap| gap as &mut dyn BufMut)
    }

    fn view(&self, at: u64, len: usize) -> Landed {
        Landed::Bytes(match &self.into {
            Into::Room(room) => room.view(at, len),
            Into::Library(..) => Bytes::new(),
        })
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
            ending.value = into.finish();
        }
        request.end(ending);
    }
}
