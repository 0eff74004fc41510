//! How much the fills of this host may have asked for at once: what clients leave over.
//!
//! All that a fill ever puts before a reader's cells, in whatever buffer on the way, is what it has asked for and not got. So that has a
//! bound, the window, which grows while answers come as soon as they ever did, and shrinks when they wait for more than a little: whatever
//! they wait for, readers wait for it, too (LEDBAT, RFC 6817: what an answer takes beyond the least that was seen is what it has queued).
//! What graphs make for fills is asked for and comes like an answer; lists of chunks differ in length, so what each KiB takes is compared.
//!
//! It is never so narrow that a host that gets little of its processors would stand still.
//!
//! While clients have something to do with chunks here the window is a bite, and whenever something comes a pause follows that is twice as long as it
//! took: of what there is fills take a third at most. They never take less than one bite for each time that one takes and the longest pause:
//! however busy clients are, in the end all chunks are there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use types::Time;

use crate::{Rules, Timing};

/// The window while clients are at work, and in what bounds it is while they are not. One bite more than the window goes.
const BUSY_BYTES: u64 = 128 << 10;
const LEAST_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 8 << 20;
/// By how much it grows while so much comes as the window is wide.
const STEP_BYTES: u64 = 64 << 10;
/// What may wait in queues, as a part of the time after which readers call a holder slow.
const TARGET_SHARE: u64 = 8;
/// After each bite fills pause for so many times as long as it took, while clients are at work.
const PAUSE_TIMES: u64 = 2;
/// Clients are at work for so long a part of it after each sign of them.
const QUIET_SHARE: u64 = 2;
/// The least time that an answer takes is found anew each so many times it.
const BASE_TIMES: u64 = 400;

/// See the module.
pub(in crate::objects) struct Window {
    bytes: u64,
    in_flight: Arc<AtomicU64>,
    /// It was full, and not half of it has come since: what is asked for in one go goes in one write.
    is_full: bool,
    /// Nothing has had to wait yet.
    is_opening: bool,
    /// The least time that an answer took in this period and in the one before.
    least_us: [u64; 2],
    /// The same of what graphs make, in nanoseconds for each KiB: some of them make much more than others.
    least_ns_kib: [u64; 2],
    period_began: Time,
    /// When clients are no more at work, if there is no other sign of them.
    quiet_at: Time,
    paused_until: Time,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            bytes: LEAST_BYTES,
            in_flight: Arc::default(),
            is_full: false,
            is_opening: true,
            least_us: [u64::MAX; 2],
            least_ns_kib: [u64::MAX; 2],
            period_began: Time(0),
            quiet_at: Time(0),
            paused_until: Time(0),
        }
    }
}

impl Window {
    /// A client waits for something that this host does.
    pub(in crate::objects) fn note_client(&mut self, now: Time, timing: &Timing, rules: Rules) {
        self.quiet_at = now + timing.hedge_us / QUIET_SHARE;
        // What it will be afterwards is found anew.
        (self.bytes, self.is_opening) = (rules.objects().busy_window(BUSY_BYTES), true);
    }

    /// Whether one more bite may be asked for.
    pub(in crate::objects) fn is_open(&mut self, now: Time) -> bool {
        self.is_full = self.is_shut();
        !self.is_full && self.paused_until <= now
    }

    /// When it is open, if nothing comes before; never, if something has to.
    pub(in crate::objects) fn opens_at(&self) -> Time {
        if self.is_shut() { Time::NEVER } else { self.paused_until }
    }

    fn is_shut(&self) -> bool {
        let in_flight = self.in_flight();
        in_flight >= self.bytes || self.is_full && in_flight > self.bytes / 2
    }

    /// Something that was asked for has come.
    pub(in crate::objects) fn note(&mut self, now: Time, came: Came, timing: &Timing) {
        self.begin_period(now, timing);
        let waited_us = came.took_us - least(&mut self.least_us, came.took_us);
        self.judge(now, came, waited_us, timing);
    }

    /// A graph has made something.
    pub(in crate::objects) fn note_graph(&mut self, now: Time, came: Came, timing: &Timing) {
        self.begin_period(now, timing);
        let kib = came.bytes.div_ceil(1024).max(1);
        let least_us = least(&mut self.least_ns_kib, came.took_us.saturating_mul(1000) / kib) * kib / 1000;
        self.judge(now, came, came.took_us.saturating_sub(least_us), timing);
    }

    /// Something has come, and of the time that it took it has waited for so long.
    fn judge(&mut self, now: Time, came: Came, waited_us: u64, timing: &Timing) {
        let Came { took_us, bytes } = came;
        if now < self.quiet_at {
            self.paused_until = self.paused_until.max(now + (took_us * PAUSE_TIMES).min(timing.hedge_us));
        } else if waited_us > timing.hedge_us / TARGET_SHARE {
            self.is_opening = false;
            self.bytes = self.bytes.saturating_sub(bytes / 2).max(LEAST_BYTES);
        } else {
            let more = if self.is_opening { bytes } else { bytes * STEP_BYTES / self.bytes.max(1) };
            self.bytes = (self.bytes + more).clamp(LEAST_BYTES, MOST_BYTES);
        }
    }

    /// What is the least is found anew from time to time.
    fn begin_period(&mut self, now: Time, timing: &Timing) {
        if now.since(self.period_began) > timing.hedge_us * BASE_TIMES {
            self.period_began = now;
            for known in [&mut self.least_us, &mut self.least_ns_kib] {
                *known = [u64::MAX, known[0]];
            }
        }
    }

    /// For somebody who is about to ask.
    pub(in crate::objects) fn claim(&self) -> Claim {
        Claim { in_flight: Arc::clone(&self.in_flight), bytes: 0 }
    }

    /// How much it is.
    pub(in crate::objects) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was asked for and has not come.
    pub(in crate::objects) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// What has to hold, where so much of it is claimed.
    pub(in crate::objects) fn check_invariants(&self, claimed: u64) {
        assert_eq!(self.in_flight(), claimed, "what fills have asked for is what somebody waits for");
        assert!(self.bytes <= MOST_BYTES, "a window of {} bytes", self.bytes);
    }
}

/// The least in this period and in the one before, this one included.
fn least(known: &mut [u64; 2], one: u64) -> u64 {
    known[0] = known[0].min(one);
    known[0].min(known[1])
}

/// What was asked for has come, so long after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::objects) struct Came {
    pub took_us: u64,
    pub bytes: u64,
}

/// Bytes of a window that somebody waits for. They are given back with it.
#[derive(Debug)]
pub(in crate::objects) struct Claim {
    in_flight: Arc<AtomicU64>,
    bytes: u64,
}

impl Claim {
    pub(in crate::objects) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many are asked for.
    pub(in crate::objects) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.in_flight.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many have come.
    pub(in crate::objects) fn subtract(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.in_flight.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// None of it will come.
    pub(in crate::objects) fn clear(&mut self, rules: Rules) {
        if rules.objects().lost_answers_are_given_back() {
            self.subtract(self.bytes);
        }
        self.bytes = 0;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.subtract(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const TIMING: Timing = Timing::from_lease(1_000_000);
    const BITE: u64 = 192 << 10;
    const RULES: Rules = Rules::all();

    /// Fills for a second: how long a bite takes goes by what is in flight, and clients are at work when `has_clients` says so. Bytes that
    /// came.
    fn fill(
        window: &mut Window,
        start: Time,
        has_clients: impl Fn(u64) -> bool,
        took: impl Fn(u64) -> u64,
    ) -> u64 {
        let mut asked: VecDeque<(u64, u64, Claim)> = VecDeque::new();
        let mut came = 0;
        for us in (0..1_000_000).step_by(50) {
            let now = start + us;
            if has_clients(us) {
                window.note_client(now, &TIMING, RULES);
            }
            while asked.front().is_some_and(|(_, due, _)| *due <= us) {
                let (at, _, claim) = asked.pop_front().unwrap();
                came += claim.bytes();
                window.note(now, Came { took_us: us - at, bytes: claim.bytes() }, &TIMING);
                drop(claim);
            }
            while window.is_open(now) {
                let before = window.in_flight();
                assert!(before == 0 || before < window.bytes(), "no more than the window, and a bite");
                let mut claim = window.claim();
                claim.add(BITE);
                asked.push_back((us, us + took(window.in_flight()), claim));
            }
            window.check_invariants(asked.iter().map(|(.., claim)| claim.bytes()).sum());
        }
        came
    }

    /// A link of a gigabyte a second, and half a millisecond.
    fn link(in_flight: u64) -> u64 {
        500 + in_flight / 1000
    }

    #[test]
    fn it_opens_until_answers_wait_and_no_further() {
        let mut window = Window::default();
        let came = fill(&mut window, Time(1), |_| false, link);
        assert!(came > 700_000_000, "{came} bytes of a thousand million");
        let waits_us = window.bytes() / 1000;
        assert!(waits_us < 2 * TIMING.hedge_us / TARGET_SHARE, "{waits_us}");
    }

    #[test]
    fn clients_have_most_of_the_time_and_fills_go_on() {
        let mut window = Window::default();
        fill(&mut window, Time(1), |_| false, link);
        let busy = fill(&mut window, Time(2_000_000), |_| true, link);
        assert_eq!(window.bytes(), BUSY_BYTES);
        // A bite takes 0.7 ms, and a pause twice as long.
        assert!((66_000_000..107_000_000).contains(&busy), "{busy} bytes");
        // Where each takes a tenth of a second, they still come.
        let crowded = fill(&mut window, Time(4_000_000), |_| true, |_| 100_000);
        let floor = 1_000_000 / (100_000 + TIMING.hedge_us) * BITE;
        assert!(crowded >= floor - BITE, "{crowded} of {floor}");
    }

    #[test]
    fn it_opens_again_when_clients_have_gone() {
        let mut window = Window::default();
        let half = fill(&mut window, Time(1), |us| us < 500_000, link);
        assert!(half > 400_000_000, "{half}");
        assert!(window.bytes() > LEAST_BYTES);
    }

    #[test]
    fn graphs_of_all_lengths_are_judged_by_what_each_kib_takes() {
        let mut window = Window::default();
        let took = |bytes: u64| 1_000 + bytes / 1_000;
        for number in 0..200 {
            let bytes = (1 + number % 8) * (512 << 10);
            window.note_graph(Time(number * 10_000), Came { took_us: took(bytes), bytes }, &TIMING);
        }
        assert_eq!(window.bytes(), MOST_BYTES, "none of them has waited");
        for number in 200..400 {
            let came = Came { took_us: 8 * took(1 << 20), bytes: 1 << 20 };
            window.note_graph(Time(number * 10_000), came, &TIMING);
        }
        assert_eq!(window.bytes(), LEAST_BYTES, "all of them have");
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_given_back() {
        let window = Window::default();
        let (mut one, mut other) = (window.claim(), window.claim());
        one.add(BITE);
        other.add(BITE);
        drop(one);
        assert_eq!(window.in_flight(), BITE);
        other.clear(RULES);
        assert_eq!((window.in_flight(), other.bytes()), (0, 0));
    }

    #[test]
    fn a_slower_network_is_the_new_measure_in_the_end() {
        let mut window = Window::default();
        fill(&mut window, Time(1), |_| false, link);
        let slow = |in_flight: u64| 20_000 + in_flight / 1000;
        fill(&mut window, Time(2_000_000), |_| false, slow);
        assert_eq!(window.bytes(), LEAST_BYTES, "all seem to wait");
        for second in 3..30 {
            fill(&mut window, Time(second * 1_000_000), |_| false, slow);
        }
        assert!(window.bytes() > 2 * LEAST_BYTES, "{}", window.bytes());
    }
}
