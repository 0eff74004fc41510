//! Values that leave in pieces. Nothing here knows a worker.
//!
//! They take turns: a piece of each, as far as its window goes, so that a long value does not keep others waiting. A value that lies whole
//! at one member is here already; one in chunks is gathered by the host, which is asked for more as its bytes leave.

use std::collections::VecDeque;

use bytes::Bytes;
use native::{Answer, Code, FromServer, MAX_PIECE_BYTES, Meta, Piece, Value, code_of};
use proto::Place;
use types::Time;
use types::op::{Failure, Key, Object, Outcome};

use super::Reading;
use crate::clients::output::Output;
use crate::limits::NATIVE_GATHERS;
use crate::workers::streams::News;

/// All of one connection. See the module.
#[derive(Default)]
pub(super) struct Sendings {
    /// In the order of their turns.
    all: VecDeque<Sending>,
}

/// One value.
pub(super) struct Sending {
    pub id: u64,
    pub meta: Meta,
    /// The bytes that are wanted: from where to where.
    pub range: (u64, u64),
    /// How many of them have not been printed.
    left: u64,
    /// How many the client takes now.
    window: u64,
    /// Whether anything has been printed. Before that a failure is an answer like any other.
    begun: bool,
    /// Since when nothing could be printed for want of a window.
    blocked: Option<Time>,
    pub source: Source,
}

/// Where its bytes come from.
pub(super) enum Source {
    /// They are here.
    Here(Bytes),
    /// From chunks.
    Chunks(Box<Chunks>),
    /// Cells of a chunk: a piece each.
    Cells(VecDeque<Bytes>),
}

/// A value in chunks.
pub(super) struct Chunks {
    pub key: Key,
    pub place: Place,
    pub object: Object,
    /// The worker that gathers it, once it has begun.
    pub shard: Option<u16>,
    parts: VecDeque<Bytes>,
    held: usize,
    end: Option<Result<(), Failure>>,
    /// Whether the request that has found it may have changed something.
    pub changed: bool,
    /// Whether graphs are to make what lies in one lost chunk.
    pub by_graph: bool,
    /// It was asked for again, because it had been replaced before anything was printed.
    pub asked_again: bool,
}

/// What one turn has brought.
pub(super) enum Turn {
    /// So many bytes of this value were printed; the worker that gathers it, if it still does.
    Printed(u64, Option<u16>, usize),
    /// A value is at its end.
    Ended,
    /// The value was replaced before anything of it was printed: what is there now is to be asked for.
    Replaced(Box<Sending>),
}

/// The same, for who has the value at hand.
enum Step {
    Printed(Option<u16>, usize),
    Ended,
    Replaced,
}

impl Source {
    pub(super) fn of_object(reading: Reading, object: Object) -> Self {
        let Reading { key, place, get, asked_again, .. } = reading;
        let (parts, held, end, shard) = (VecDeque::new(), 0, None, None);
        let (changed, by_graph) = (get.touch.is_some(), get.by_graph);
        let chunks = Chunks { key, place, object, shard, parts, held, end, changed, by_graph, asked_again };
        Self::Chunks(Box::new(chunks))
    }
}

impl Chunks {
    /// The worker that gathers it, while it does.
    pub(super) fn gathering(&self) -> Option<u16> {
        self.shard.filter(|_| self.end.is_none())
    }
}

impl Sendings {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes that are held.
    pub(super) fn weight(&self) -> usize {
        self.all.iter().map(Sending::weight).sum()
    }

    /// Since when the first of those has waited for a window that have waited for longest.
    pub(super) fn blocked_since(&self) -> Option<Time> {
        self.all.iter().filter_map(|sending| sending.blocked).min()
    }

    pub(super) fn add(&mut self, id: u64, meta: Meta, range: (u64, u64), window: u64, source: Source) {
        let left = range.1 - range.0;
        self.all.push_back(Sending { id, meta, range, left, window, begun: false, blocked: None, source });
    }

    /// The same of what has been announced.
    pub(super) fn add_begun(&mut self, id: u64, window: u64, source: Source) {
        let left = match &source {
            Source::Cells(cells) => cells.iter().map(|cell| cell.len() as u64).sum(),
            Source::Here(_) | Source::Chunks(_) => 0,
        };
        let (meta, range) = (Meta::default(), (0, left));
        self.all.push_back(Sending { id, meta, range, left, window, begun: true, blocked: None, source });
    }

    /// The client takes so many bytes more; nothing happens if the value has been sent.
    pub(super) fn grant(&mut self, id: u64, bytes: u32) {
        if let Some(sending) = self.find(id) {
            sending.window = sending.window.saturating_add(bytes.into());
            sending.blocked = None;
        }
    }

    /// The host says something; whether it was about one of these.
    pub(super) fn hear(&mut self, id: u64, news: &News) -> bool {
        let Some(Sending { source: Source::Chunks(chunks), .. }) = self.find(id) else { return false };
        match news {
            News::Part(bytes) => {
                chunks.held += bytes.len();
                chunks.parts.push_back(bytes.clone());
            }
            News::Whole => chunks.end = Some(Ok(())),
            News::Ended(Outcome::Failed(failure)) => chunks.end = Some(Err(*failure)),
            News::Ended(_) | News::Room(_) | News::Cells(_) => {
                debug_assert!(false, "a read ends whole or with a failure")
            }
        }
        true
    }

    /// The next value in chunks that may be gathered.
    pub(super) fn next_to_gather(&mut self) -> Option<(u64, (u64, u64), &mut Chunks)> {
        let begun =
            |sending: &&Sending| matches!(&sending.source, Source::Chunks(chunks) if chunks.shard.is_some());
        if self.all.iter().filter(begun).count() >= NATIVE_GATHERS {
            return None;
        }
        self.all.iter_mut().find_map(|sending| match &mut sending.source {
            Source::Chunks(chunks) if chunks.shard.is_none() && chunks.end.is_none() => {
                Some((sending.id, sending.range, &mut **chunks))
            }
            _ => None,
        })
    }

    /// Forgets one; it, if it was there.
    pub(super) fn remove(&mut self, id: u64) -> Option<Sending> {
        let at = self.all.iter().position(|sending| sending.id == id)?;
        self.all.remove(at)
    }

    pub(super) fn pop(&mut self) -> Option<Sending> {
        self.all.pop_front()
    }

    /// Prints a piece of the next value whose turn it is; none if there is nothing to be printed.
    pub(super) fn turn(&mut self, now: Time, out: &mut Output) -> Option<Turn> {
        for _ in 0..self.all.len() {
            let mut sending = self.all.pop_front()?;
            let id = sending.id;
            match sending.print(now, out) {
                None => self.all.push_back(sending),
                Some(Step::Printed(shard, len)) => {
                    self.all.push_back(sending);
                    return Some(Turn::Printed(id, shard, len));
                }
                Some(Step::Replaced) => return Some(Turn::Replaced(Box::new(sending))),
                Some(Step::Ended) => return Some(Turn::Ended),
            }
        }
        None
    }

    fn find(&mut self, id: u64) -> Option<&mut Sending> {
        self.all.iter_mut().find(|sending| sending.id == id)
    }
}

impl Sending {
    fn weight(&self) -> usize {
        size_of::<Self>()
            + match &self.source {
                Source::Here(bytes) => bytes.len(),
                Source::Chunks(chunks) => chunks.held,
                // They lie in their chunk's pages, which are counted there.
                Source::Cells(_) => 0,
            }
    }

    /// What the client may still take without another word.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// Whether anything of it has been printed.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    fn print(&mut self, now: Time, out: &mut Output) -> Option<Step> {
        if let Some(end) = self.end() {
            return Some(self.print_end(end, out));
        }
        let available = self.available();
        if available > 0 && self.window < self.least() {
            self.blocked.get_or_insert(now);
            // That a value comes is no part of its bytes.
            self.begin(out);
            return None;
        }
        let most = usize::try_from(self.window).unwrap_or(usize::MAX).min(MAX_PIECE_BYTES);
        if available == 0 || most == 0 {
            return None;
        }
        self.begin(out);
        let bytes = self.take(most);
        let len = bytes.len();
        Piece::put_head(self.id, len, out.text());
        out.share(bytes);
        self.left = self.left.saturating_sub(len as u64);
        self.window -= len as u64;
        let shard = match &self.source {
            Source::Chunks(chunks) => chunks.gathering(),
            Source::Here(_) | Source::Cells(_) => None,
        };
        Some(Step::Printed(shard, len))
    }

    fn begin(&mut self, out: &mut Output) {
        if !std::mem::replace(&mut self.begun, true) {
            let part = (self.range.0, self.range.1 - self.range.0);
            Value::put_head_of(&self.meta, part, None, self.id, out.text());
        }
    }

    /// How it ends, once everything before its end has been printed.
    fn end(&self) -> Option<Result<(), Failure>> {
        match &self.source {
            Source::Here(bytes) => bytes.is_empty().then_some(Ok(())),
            Source::Chunks(chunks) if chunks.parts.is_empty() => chunks.end,
            Source::Chunks(_) => None,
            Source::Cells(cells) => cells.is_empty().then_some(Ok(())),
        }
    }

    fn print_end(&self, end: Result<(), Failure>, out: &mut Output) -> Step {
        let asked_again = matches!(&self.source, Source::Chunks(chunks) if chunks.asked_again);
        let code = match end {
            Ok(()) if self.left == 0 => Code::Whole,
            // The host has counted otherwise.
            Ok(()) => Code::Corrupt,
            Err(Failure::Replaced) if !self.begun && !asked_again => return Step::Replaced,
            Err(failure) => code_of(&Outcome::Failed(failure)),
        };
        if self.begun {
            FromServer::End(self.id, code).put(out.text());
        } else {
            Answer::Just(code).put(self.id, out.text());
        }
        Step::Ended
    }

    fn available(&self) -> usize {
        match &self.source {
            Source::Here(bytes) => bytes.len(),
            Source::Chunks(chunks) => chunks.parts.front().map_or(0, Bytes::len),
            Source::Cells(cells) => cells.front().map_or(0, Bytes::len),
        }
    }

    /// With how large a window something can be printed.
    fn least(&self) -> u64 {
        match &self.source {
            Source::Cells(cells) => cells.front().map_or(1, |cell| cell.len() as u64),
            Source::Here(_) | Source::Chunks(_) => 1,
        }
    }

    fn take(&mut self, most: usize) -> Bytes {
        match &mut self.source {
            Source::Here(bytes) => bytes.split_to(most.min(bytes.len())),
            Source::Cells(cells) => cells.pop_front().unwrap_or_default(),
            Source::Chunks(chunks) => {
                let Some(front) = chunks.parts.front_mut() else { return Bytes::new() };
                let taken = front.split_to(most.min(front.len()));
                chunks.held -= taken.len();
                if front.is_empty() {
                    chunks.parts.pop_front();
                }
                taken
            }
        }
    }
}
