//! Requests that wait, by what they wait for.

mod pages;

use std::collections::VecDeque;

use bytes::Bytes;
use types::op::Request;
use types::{KeyHash, PageRange, Time};

use crate::outbox::ReplyTo;
pub(super) use pages::PageWaiters;

/// A request that is not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub reply: ReplyTo,
    pub hash: KeyHash,
    pub request: Box<Request>,
    pub deadline: Time,
}

impl Pending {
    /// The same for a request that may have been done.
    pub(crate) fn once_more(mut self) -> Self {
        if let Some(once) = &mut self.request.once {
            once.again = true;
        }
        self
    }

    /// Its key, as a cheap handle; empty for what has none.
    pub(crate) fn key(&self) -> Bytes {
        self.request.key.as_ref().map(|key| key.bytes().clone()).unwrap_or_default()
    }
}

/// What a request has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A lease, or the end of the former primary's, or the index.
    Lease,
    /// Room in the log, or the end of a flush.
    Log,
    /// A flush that is due; or that nothing is left of what was flushed sixteen times ago.
    Sweep,
    /// The commit of what its key will have then.
    Commit,
    /// A share of a quota, of which nothing was dealt out yet.
    Share,
    /// Room in the area, or in a share.
    Space,
    /// These pages.
    Pages(PageRange),
}

/// Queues whose first is tried first, and which stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Log,
    Space,
}

/// See the module.
pub(super) struct Waiting {
    /// For a lease, a flush, a commit or a share: all are tried whenever something has happened.
    unordered: VecDeque<Pending>,
    log: VecDeque<Pending>,
    space: VecDeque<Pending>,
    pages: PageWaiters,
    /// Nobody's time in one of the queues is up before.
    next_deadline: Time,
    /// Whether the queues are being gone through.
    retrying: bool,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            unordered: VecDeque::new(),
            log: VecDeque::new(),
            space: VecDeque::new(),
            pages: PageWaiters::default(),
            next_deadline: Time::NEVER,
            retrying: false,
        }
    }
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.unordered.len() + self.log.len() + self.space.len() + self.pages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let queues = [&self.unordered, &self.log, &self.space];
        let places: usize = queues.map(VecDeque::capacity).iter().sum();
        places * size_of::<Pending>() + self.pages.memory_bytes()
    }

    /// Those that wait for pages.
    pub(super) fn for_pages(&mut self) -> &mut PageWaiters {
        &mut self.pages
    }

    /// When somebody's time is up, at the earliest.
    pub(super) fn due(&self) -> Time {
        self.next_deadline.min(self.pages.next_deadline())
    }

    pub(super) fn push(&mut self, wait: Wait, pending: Pending) {
        if !matches!(wait, Wait::Pages(_)) {
            self.next_deadline = self.next_deadline.min(pending.deadline);
        }
        match wait {
            Wait::Lease | Wait::Sweep | Wait::Commit | Wait::Share => self.unordered.push_back(pending),
            Wait::Log => self.log.push_back(pending),
            Wait::Space => self.space.push_back(pending),
            Wait::Pages(pages) => self.pages.push(pages, pending),
        }
    }

    /// Begins to go through the queues, unless that is under way: what a retry brings about may want to retry in its turn, and
    /// one level is enough.
    pub(super) fn begin_retry(&mut self) -> bool {
        !self.is_empty() && !std::mem::replace(&mut self.retrying, true)
    }

    pub(super) fn end_retry(&mut self) {
        self.retrying = false;
    }

    /// Takes those that are not kept in order.
    pub(super) fn take_unordered(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.unordered).into()
    }

    pub(super) fn queue_len(&self, queue: Queue) -> usize {
        match queue {
            Queue::Log => self.log.len(),
            Queue::Space => self.space.len(),
        }
    }

    pub(super) fn pop_front(&mut self, queue: Queue) -> Option<Pending> {
        self.queue(queue).pop_front()
    }

    /// It has to wait again, before all others.
    pub(super) fn push_front(&mut self, queue: Queue, pending: Pending) {
        self.next_deadline = self.next_deadline.min(pending.deadline);
        self.queue(queue).push_front(pending);
    }

    fn queue(&mut self, queue: Queue) -> &mut VecDeque<Pending> {
        match queue {
            Queue::Log => &mut self.log,
            Queue::Space => &mut self.space,
        }
    }

    pub(super) fn take_all(mut self) -> Vec<Pending> {
        let mut all: Vec<_> =
            self.unordered.drain(..).chain(self.log.drain(..)).chain(self.space.drain(..)).collect();
        all.extend(self.pages.take_all());
        all
    }

    /// Takes those whose time is up before anything was done for them.
    pub(super) fn take_expired(&mut self, now: Time) -> Vec<Pending> {
        let mut expired = Vec::new();
        if self.next_deadline <= now {
            self.next_deadline = Time::NEVER;
            for queue in [&mut self.unordered, &mut self.log, &mut self.space] {
                let (late, rest): (Vec<_>, Vec<_>) =
                    queue.drain(..).partition(|pending| pending.deadline <= now);
                expired.extend(late);
                queue.extend(rest);
                let first = queue.iter().map(|pending| pending.deadline).min();
                self.next_deadline = first.map_or(self.next_deadline, |first| first.min(self.next_deadline));
            }
        }
        expired.extend(self.pages.take_expired(now));
        expired
    }
}
