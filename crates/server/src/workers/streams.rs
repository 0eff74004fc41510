//! Values that clients send or read bit by bit (docs/objects.md), between the connection and the worker that has the key's group.
//!
//! The connection gives orders, the host's answers are news; where the host is another worker's, both cross. A stream is named by the
//! asker of its reply, and is known here from its first order to its last news.
//!
//! | order | news that follow |
//! | --- | --- |
//! | `Upload`, `Feed` | `Room` as soon as bytes are taken, or `Ended` |
//! | `Gather`, `Taken` | `Part`s as far as the window goes, then `Whole` or `Ended` |
//! | `Deposit`, `Feed` | `Room` when a cell is taken, then `Ended` |
//! | `Read` | `Cells`, once |
//! | `Abandon` | none |
//!
//! A connection has one stream each way at most, feeds no more than there is room for, and takes what it has asked for: so of each there is
//! one piece of at most a cell, or one window of parts, on its way.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use proto::{DepositId, GatherId, Host, NewDeposit, NewGather, NewUpload, Now, Place, Token, UploadId};
use types::op::Outcome;
use types::{ChunkId, KeyHash, MemberId};
use wire::object::Checked;

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
    /// A client puts a chunk; each `Feed` is a cell of it.
    Deposit(Box<NewDeposit>),
    /// A client wants rows of a chunk.
    Read(Box<ChunkRows>),
    /// Nobody wants to hear more of it.
    Abandon,
}

/// Rows of a chunk, and how many bytes of them at most.
#[derive(Debug)]
pub(crate) struct ChunkRows {
    pub key_hash: KeyHash,
    pub whose: (MemberId, ChunkId),
    pub rows: (u32, u32),
    pub most_bytes: u32,
}

/// What comes of it.
#[derive(Debug)]
pub(crate) enum News {
    /// So many bytes are taken in one piece.
    Room(usize),
    /// The next bytes.
    Part(Bytes),
    /// These rows of a chunk; none if it is not here.
    Cells(Vec<Checked>),
    /// There are no more.
    Whole,
    /// It is over, with this outcome.
    Ended(Outcome),
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Upload(UploadId),
    Gather(GatherId),
    Deposit(DepositId),
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
            Order::Deposit(new) => host.streams(now).begin_deposit(token, *new).map(Stream::Deposit),
            Order::Read(rows) => {
                let ChunkRows { key_hash, whose, rows, most_bytes } = *rows;
                let cells = host.streams(now).read_chunk(key_hash, whose, rows, most_bytes);
                return Some(News::Cells(cells.unwrap_or_default()));
            }
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
            (Stream::Deposit(deposit), Order::Feed(cell)) => {
                let len = cell.len();
                host.streams(now).feed_deposit(deposit, cell);
                return Some(News::Room(len));
            }
            (Stream::Deposit(deposit), Order::Abandon) => host.streams(now).abandon_deposit(deposit),
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
