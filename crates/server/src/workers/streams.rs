//! Values that clients send or read bit by bit (docs/objects.md), between the connection and the worker that has the key's group.
//!
//! The connection gives orders, the host's answers are news; where the host is another worker's, both cross. A stream is named by the
//! asker of its reply, and is known here from its first order to its last news.
//!
//! | order | news that follow |
//! | --- | --- |
//! | `Upload`, `Feed` | `Room` as soon as bytes are taken, or `Ended` |
//! | `Gather`, `Taken` | `Part`s as far as the window goes, then `Whole` or `Ended` |
//! | `Abandon` | none |
//!
//! A connection has one stream each way at most, feeds no more than there is room for, and takes what it has asked for: so of each there is
//! one piece of at most a cell, or one window of parts, on its way.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use proto::{GatherId, Host, NewGather, NewUpload, Now, Place, Token, UploadId};
use types::KeyHash;
use types::op::Outcome;

/// What a connection wants done.
#[derive(Debug)]
pub(crate) enum Order {
    /// A value is to be written.
    Upload(Place, Box<NewUpload>),
    /// Its next bytes, as many as there was room for.
    Feed(Bytes),
    /// A value is to be read.
    Gather(KeyHash, Box<NewGather>),
    /// So many bytes of it are not held here any more.
    Taken(usize),
    /// Nobody wants to hear more of it.
    Abandon,
}

/// What comes of it.
#[derive(Debug)]
pub(crate) enum News {
    /// So many bytes are taken in one piece.
    Room(usize),
    /// The next bytes.
    Part(Bytes),
    /// There are no more.
    Whole,
    /// It is over, with this outcome.
    Ended(Outcome),
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Upload(UploadId),
    Gather(GatherId),
}

/// The streams of one worker's host. See the module.
#[derive(Debug, Default)]
pub(crate) struct Streams(RefCell<BTreeMap<Token, Stream>>);

impl Streams {
    pub(super) fn carry_out(&self, host: &mut Host, now: Now, token: Token, order: Order) -> Option<News> {
        let begun = match order {
            Order::Upload(place, new) => {
                host.streams(now).begin_upload(token, place, *new).map(Stream::Upload)
            }
            Order::Gather(hash, new) => host.streams(now).begin_gather(token, hash, *new).map(Stream::Gather),
            order => return self.go_on(host, now, token, order),
        };
        match begun {
            Ok(stream) => {
                self.0.borrow_mut().insert(token, stream);
                self.room(host, now, token)
            }
            Err(failure) => Some(News::Ended(Outcome::Failed(failure))),
        }
    }

    /// Of a stream that has ended nothing comes.
    fn go_on(&self, host: &mut Host, now: Now, token: Token, order: Order) -> Option<News> {
        let stream = *self.0.borrow().get(&token)?;
        match (stream, order) {
            (Stream::Upload(upload), Order::Feed(bytes)) => {
                host.streams(now).feed(upload, bytes);
                return self.room(host, now, token);
            }
            (Stream::Gather(gather), Order::Taken(bytes)) => host.streams(now).gather_taken(gather, bytes),
            (Stream::Upload(upload), Order::Abandon) => host.streams(now).abandon_upload(upload),
            (Stream::Gather(gather), Order::Abandon) => host.streams(now).abandon_gather(gather),
            (_, order) => {
                debug_assert!(false, "no connection orders {order:?} of {stream:?}");
                return None;
            }
        }
        None
    }

    /// How many bytes an upload takes; nothing if the host will say so.
    pub(crate) fn room(&self, host: &mut Host, now: Now, token: Token) -> Option<News> {
        let Stream::Upload(upload) = *self.0.borrow().get(&token)? else { return None };
        match host.streams(now).upload_wants(upload) {
            0 => None,
            wanted => Some(News::Room(wanted)),
        }
    }

    pub(super) fn end(&self, token: Token) {
        self.0.borrow_mut().remove(&token);
    }
}
