//! Requests that wait for absent pages, by the pages: what a page that comes has to do with them costs as much as they are, and
//! not as much as all the others.

use std::collections::{BTreeMap, VecDeque};

use types::{PAGE_BYTES, PageRange, RUN_BYTES, Time};

use super::Pending;

/// Most pages that one request waits for at a time: those of a run.
const MAX_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

/// See the module.
pub(in crate::primary) struct PageWaiters {
    /// By their pages, at most [`MAX_PAGES`].
    waiting: BTreeMap<PageRange, Vec<Pending>>,
    count: usize,
    /// Those whose pages have come.
    ready: VecDeque<Pending>,
    /// The pages that were demanded last: it is the turn of those after them.
    demanded: Option<PageRange>,
    /// Nobody's time is up before.
    next_deadline: Time,
    #[cfg(test)]
    looked_at: std::cell::Cell<usize>,
}

impl Default for PageWaiters {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            count: 0,
            ready: VecDeque::new(),
            demanded: None,
            next_deadline: Time::NEVER,
            #[cfg(test)]
            looked_at: Default::default(),
        }
    }
}

/// A round over everything that is wanted.
pub(in crate::primary) struct Round {
    left: usize,
}

impl PageWaiters {
    pub(in crate::primary) fn len(&self) -> usize {
        self.count + self.ready.len()
    }

    /// Nobody's time is up before.
    pub(in crate::primary) fn next_deadline(&self) -> Time {
        self.next_deadline
    }

    pub(in crate::primary) fn memory_bytes(&self) -> usize {
        let ranges = self.waiting.len() * size_of::<(PageRange, Vec<Pending>)>();
        ranges + (self.count + self.ready.capacity()) * size_of::<Pending>()
    }

    /// `pending` waits for `pages`, some of which are absent.
    pub(in crate::primary) fn push(&mut self, pages: PageRange, pending: Pending) {
        self.next_deadline = self.next_deadline.min(pending.deadline);
        self.count += 1;
        // What it waits for behind these it finds out when it is tried again.
        let pages = PageRange { count: pages.count.min(MAX_PAGES), ..pages };
        self.waiting.entry(pages).or_default().push(pending);
    }

    /// Whether somebody waits for one of `pages`.
    pub(in crate::primary) fn wants(&self, pages: PageRange) -> bool {
        self.over(pages).next().is_some()
    }

    /// `pages` have come. Whoever has all that it waits for by now is ready.
    pub(in crate::primary) fn came(&mut self, pages: PageRange, is_present: impl Fn(PageRange) -> bool) {
        let complete: Vec<PageRange> = self.over(pages).filter(|wanted| is_present(*wanted)).collect();
        for wanted in complete {
            let ready = self.waiting.remove(&wanted).unwrap_or_default();
            self.count -= ready.len();
            self.ready.extend(ready);
        }
    }

    /// Takes those whose pages have come.
    pub(in crate::primary) fn take_ready(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.ready).into()
    }

    /// Begins to go through what is wanted, each once, where the last round ended.
    pub(in crate::primary) fn round(&self) -> Round {
        Round { left: self.waiting.len() }
    }

    /// The next pages that are wanted.
    pub(in crate::primary) fn next_wanted(&mut self, round: &mut Round) -> Option<PageRange> {
        use std::ops::Bound::{Excluded, Unbounded};
        round.left = round.left.checked_sub(1)?;
        self.look();
        let after = self.demanded.map_or(Unbounded, Excluded);
        let next = self.waiting.range((after, Unbounded)).next().or_else(|| self.waiting.first_key_value());
        self.demanded = next.map(|(pages, _)| *pages);
        self.demanded
    }

    /// Takes those whose time is up.
    pub(in crate::primary) fn take_expired(&mut self, now: Time) -> Vec<Pending> {
        if now < self.next_deadline {
            return Vec::new();
        }
        let mut next_deadline = Time::NEVER;
        let mut is_late = |pending: &Pending| {
            let late = pending.deadline <= now;
            next_deadline = if late { next_deadline } else { next_deadline.min(pending.deadline) };
            late
        };
        let mut expired = Vec::new();
        self.waiting.retain(|_, waiting| {
            expired.extend(waiting.extract_if(.., |pending| is_late(pending)));
            !waiting.is_empty()
        });
        self.count -= expired.len();
        let ready: Vec<Pending> = std::mem::take(&mut self.ready).into();
        let (late, ready): (Vec<Pending>, Vec<Pending>) = ready.into_iter().partition(is_late);
        self.ready = ready.into();
        self.next_deadline = next_deadline;
        expired.extend(late);
        expired
    }

    /// Takes everybody.
    pub(in crate::primary) fn take_all(&mut self) -> Vec<Pending> {
        let all = std::mem::take(self);
        all.ready.into_iter().chain(all.waiting.into_values().flatten()).collect()
    }

    /// What is wanted over `pages`.
    fn over(&self, pages: PageRange) -> impl Iterator<Item = PageRange> + '_ {
        let end = pages.first.saturating_add(pages.count);
        // No range is longer, so none that begins before can reach here.
        let from = PageRange { first: pages.first.saturating_sub(MAX_PAGES - 1), count: 0 };
        let to = PageRange { first: end, count: 0 };
        let near = self.waiting.range(from..to.max(from)).map(|(wanted, _)| *wanted);
        near.inspect(|_| self.look()).filter(move |wanted| wanted.first + wanted.count > pages.first)
    }

    /// For tests of how much there is to do.
    fn look(&self) {
        #[cfg(test)]
        self.looked_at.set(self.looked_at.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use types::KeyHash;
    use types::op::{Get, Key, Op, Request};

    use super::*;
    use crate::host::Token;
    use crate::outbox::ReplyTo;

    fn pending(number: u64, deadline: u64) -> Pending {
        let key = Key::new(Bytes::from_static(b"k")).unwrap();
        let request = Request::on(key, Op::Get(Get::default()));
        Pending {
            reply: ReplyTo::Local(Token([number, 0])),
            hash: KeyHash(0),
            request: request.into(),
            deadline: Time(deadline),
        }
    }

    fn numbers(pending: &[Pending]) -> Vec<u64> {
        let number = |pending: &Pending| match pending.reply {
            ReplyTo::Local(Token([number, _])) => number,
            _ => u64::MAX,
        };
        pending.iter().map(number).collect()
    }

    fn range(first: u32, count: u32) -> PageRange {
        PageRange { first, count }
    }

    #[test]
    fn a_request_is_ready_when_all_of_its_pages_are_there() {
        let mut waiters = PageWaiters::default();
        waiters.push(range(3, 2), pending(1, 9));
        waiters.push(range(4, 1), pending(2, 9));
        waiters.push(range(20, 1), pending(3, 9));
        assert!(waiters.wants(range(0, 4)) && waiters.wants(range(4, 1)) && waiters.wants(range(20, 9)));
        assert!(!waiters.wants(range(0, 3)) && !waiters.wants(range(5, 15)) && !waiters.wants(range(21, 1)));
        waiters.came(range(4, 1), |pages| pages.first == 4);
        assert_eq!(numbers(&waiters.take_ready()), [2]);
        waiters.came(range(3, 1), |_| true);
        assert_eq!((numbers(&waiters.take_ready()), waiters.len()), (vec![1], 1));
        assert_eq!(numbers(&waiters.take_all()), [3]);
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn whose_time_is_up_goes_ready_or_not() {
        let mut waiters = PageWaiters::default();
        for number in 0..4 {
            waiters.push(range(0, 1), pending(number, 10 + number));
            waiters.push(range(7, 1), pending(10 + number, 10 + number));
        }
        waiters.came(range(7, 1), |_| true);
        assert!(waiters.take_expired(Time(9)).is_empty());
        assert_eq!(numbers(&waiters.take_expired(Time(11))), [0, 1, 10, 11]);
        assert_eq!((waiters.len(), waiters.next_deadline), (4, Time(12)));
        assert_eq!(waiters.take_expired(Time(99)).len(), 4);
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn a_round_goes_on_where_the_last_one_ended() {
        let mut waiters = PageWaiters::default();
        (0..5).for_each(|page| waiters.push(range(page * 16, 1), pending(page.into(), 9)));
        let take = |waiters: &mut PageWaiters, most: usize| -> Vec<u32> {
            let mut round = waiters.round();
            (0..most).map_while(|_| waiters.next_wanted(&mut round)).map(|pages| pages.first / 16).collect()
        };
        assert_eq!(take(&mut waiters, 2), [0, 1]);
        assert_eq!(take(&mut waiters, 2), [2, 3]);
        assert_eq!(take(&mut waiters, 9), [4, 0, 1, 2, 3]);
    }

    /// A takeover with as many parked requests as there may be: each page that comes concerns its own requests, so that all
    /// of the repair looks at each of them a few times, and not as often as there are pages.
    #[test]
    fn the_work_of_a_takeover_grows_with_its_requests_and_not_with_their_square() {
        const REQUESTS: u32 = 65_536;
        const SESSIONS: usize = 64;
        let mut waiters = PageWaiters::default();
        (0..REQUESTS).for_each(|page| waiters.push(range(page, 1), pending(page.into(), 9)));
        let mut answered = 0;
        for run in 0..REQUESTS / MAX_PAGES {
            let pages = range(run * MAX_PAGES, MAX_PAGES);
            assert!(waiters.wants(pages));
            waiters.came(pages, |_| true);
            answered += waiters.take_ready().len();
            let mut round = waiters.round();
            (0..SESSIONS).map_while(|_| waiters.next_wanted(&mut round)).for_each(drop);
            assert!(waiters.take_expired(Time(8)).is_empty());
        }
        assert_eq!((answered, waiters.len()), (REQUESTS as usize, 0));
        let most = (REQUESTS as usize) * (2 + SESSIONS / MAX_PAGES as usize + 1);
        assert!(waiters.looked_at.get() <= most, "{} of {most}", waiters.looked_at.get());
    }
}
