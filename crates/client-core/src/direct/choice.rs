//! By which way values go of which that may be chosen: coded by this client, or by a node.
//!
//! What counts is how long a byte takes, and of two ways that take about as long the client's, which costs the servers less. Both are
//! measured by the values themselves ([`types::trials`]). Where the model ([`Pace`]) says that the other way cannot pay, it is left untried
//! for longest.
//!
//! Medians are compared, and the way that is gone has an advantage: a few slow values, or noise, change nothing.

use types::Time;
use types::trials::{CLASSES, Mark, Recent, Terms, Traffic, Trials, class_of, longest};

use super::pace::Pace;

/// The first pause between two trials, where they change nothing, and how long they take.
const TERMS: Terms = Terms { pause_us: 1_000_000, longest_pause_us: 120_000_000, trial_us: 120_000_000 };

/// Who codes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Client,
    Node,
}

/// What is known of values of about one length, by who codes them. Times are of a million bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The longest of them; `u64::MAX` of the last.
    pub up_to_bytes: u64,
    /// How long they take that the client codes, in microseconds.
    pub by_client_us: Option<u64>,
    /// How long they take that a node codes, in microseconds.
    pub by_node_us: Option<u64>,
    /// Whether the next one is the client's, but for trials.
    pub is_clients: bool,
    /// How often the other way was tried.
    pub trials: u64,
    /// How often that changed the way.
    pub turns: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    classes: [Class; CLASSES],
    traffic: Traffic,
    /// How long the last one was: the next one is taken for as long where nobody knows.
    last_len: u64,
}

#[derive(Clone, Debug, Default)]
struct Class {
    /// Whether nodes code.
    is_nodes: bool,
    recent: [Recent; 2],
    trials: Trials,
    /// What the way that is gone took when it was chosen.
    settled: Option<u64>,
}

/// A value that is on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    pub by: By,
    pub began: Time,
    /// Bytes that had been sent then.
    pub sent: u64,
    mark: Mark,
}

impl By {
    const ALL: [Self; 2] = [Self::Client, Self::Node];

    fn other(self) -> Self {
        match self {
            Self::Client => Self::Node,
            Self::Node => Self::Client,
        }
    }
}

impl Choice {
    /// A value begins, of this length if that is known.
    pub(crate) fn begin(&mut self, now: Time, len: Option<u64>, may_code: bool, pace: &Pace) -> Trip {
        let class = class_of(len.unwrap_or(self.last_len));
        let by = if may_code { self.classes[class].next(now, pace) } else { By::Node };
        self.set_out(now, by, pace)
    }

    /// The same of one that the caller feeds: it goes the way that others of its length go, and is no trial.
    pub(crate) fn begin_fed(&mut self, now: Time, len: u64, may_code: bool, pace: &Pace) -> Trip {
        let by = if may_code { self.classes[class_of(len)].at() } else { By::Node };
        self.set_out(now, by, pace)
    }

    fn set_out(&mut self, now: Time, by: By, pace: &Pace) -> Trip {
        Trip { by, began: now, sent: pace.sent(), mark: self.traffic.begin(now, by as usize) }
    }

    /// It has come to its end, which says how long such values take if `is_sample`.
    pub(crate) fn end(&mut self, now: Time, trip: Trip, len: u64, is_sample: bool) {
        if is_sample {
            self.last_len = len;
            if let Some(picos) = self.traffic.arrive(now, trip.mark, len) {
                self.classes[class_of(len)].note(now, trip.by, picos);
            }
        }
        self.traffic.end(trip.mark);
    }

    /// How often a way was changed.
    pub(crate) fn turns(&self) -> u64 {
        self.classes.iter().map(|class| class.trials.turns()).sum()
    }

    /// What is known, of lengths of which something is.
    pub(crate) fn estimates(&self) -> impl Iterator<Item = Estimate> {
        let known = self.classes.iter().enumerate().filter(|(_, class)| class.trials.has_begun());
        known.map(|(number, class)| Estimate { up_to_bytes: longest(number), ..class.estimate() })
    }
}

impl Class {
    fn at(&self) -> By {
        if self.is_nodes { By::Node } else { By::Client }
    }

    fn recent(&self, by: By) -> &Recent {
        &self.recent[by as usize]
    }

    /// By which way the next one goes.
    fn next(&mut self, now: Time, pace: &Pace) -> By {
        self.trials.since(now);
        if self.trials.is_on() {
            if self.trials.takes(now, &TERMS) {
                return self.at().other();
            }
            self.conclude(now);
            return self.at();
        }
        let least_us = if self.may_pay(pace) { TERMS.pause_us } else { TERMS.longest_pause_us };
        if self.recent(self.at()).median().is_some() && self.trials.is_due(now, least_us) {
            self.recent[self.at().other() as usize] = Recent::default();
            self.trials.begin(now);
            return self.at().other();
        }
        self.at()
    }

    /// Whether the other way may be the better one, by what this client's own part of it takes.
    fn may_pay(&self, pace: &Pace) -> bool {
        let Some(time) = self.recent(self.at()).median() else { return true };
        match self.at() {
            By::Client => is_nodes_better(time, time.saturating_sub(pace.saved_by_node())),
            By::Node => is_clients_good(pace.by_client(), time),
        }
    }

    fn note(&mut self, now: Time, by: By, time: u64) {
        self.recent[by as usize].add(time);
        let median = self.recent(by).median();
        if by != self.at() {
            if self.trials.is_on() && self.recent(by).is_full() {
                self.conclude(now);
            }
            return;
        }
        // Where things have changed it is time to look again.
        let (Some(median), Some(settled)) = (median, self.settled) else { return };
        if median > 2 * settled || median < settled / 2 {
            self.trials.pause(TERMS.pause_us);
            self.settled = Some(median);
        }
    }

    /// A trial is over.
    fn conclude(&mut self, now: Time) {
        let [client, node] = By::ALL.map(|by| self.recent(by).median());
        let is_better = match (self.at(), client, node) {
            (By::Client, Some(client), Some(node)) => is_nodes_better(client, node),
            (By::Node, Some(client), Some(node)) => is_clients_good(client, node),
            _ => false,
        };
        if self.trials.conclude(now, &TERMS, is_better) {
            self.is_nodes = !self.is_nodes;
        }
        self.settled = self.recent(self.at()).median();
    }

    fn estimate(&self) -> Estimate {
        let [by_client_us, by_node_us] = By::ALL.map(|by| self.recent(by).median());
        let (is_clients, trials, turns) = (!self.is_nodes, self.trials.count(), self.trials.turns());
        Estimate { up_to_bytes: u64::MAX, by_client_us, by_node_us, is_clients, trials, turns }
    }
}

/// A node's way is taken if the client's takes a quarter longer, and left if that takes no more than a tenth longer: in between, which of
/// them is gone stays.
fn is_nodes_better(client: u64, node: u64) -> bool {
    client > node + node / 4
}

fn is_clients_good(client: u64, node: u64) -> bool {
    client <= node + node / 10
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const LEN: u64 = 1_000_000;

    /// A client that has so many values under way, one behind the other, each of which takes as long as `takes` says of its way and number.
    struct World {
        choice: Choice,
        pace: Pace,
        now: u64,
        in_flight: usize,
        number: u64,
    }

    impl World {
        fn new(in_flight: usize) -> Self {
            let mut pace = Pace::default();
            pace.note_code(3, 5);
            Self { choice: Choice::default(), pace, now: 1_000, in_flight, number: 0 }
        }

        /// How many of so many a node codes.
        fn run(&mut self, values: u64, mut takes: impl FnMut(By, u64) -> u64) -> u64 {
            let (mut under_way, mut by_node) = (VecDeque::new(), 0);
            for _ in 0..values {
                if under_way.len() == self.in_flight {
                    self.end(&mut under_way, &mut takes);
                }
                let trip = self.choice.begin(Time(self.now), Some(LEN), true, &self.pace);
                by_node += u64::from(trip.by == By::Node);
                under_way.push_back(trip);
            }
            while !under_way.is_empty() {
                self.end(&mut under_way, &mut takes);
            }
            by_node
        }

        fn end(&mut self, under_way: &mut VecDeque<Trip>, takes: &mut impl FnMut(By, u64) -> u64) {
            let Some(trip) = under_way.pop_front() else { return };
            self.number += 1;
            self.now += takes(trip.by, self.number);
            self.pace.note_sent(if trip.by == By::Client { LEN * 5 / 3 } else { LEN });
            self.pace.note_sending(Time(self.now), trip.began, trip.sent);
            self.choice.end(Time(self.now), trip, LEN, true);
        }

        fn turns(&self) -> u64 {
            self.choice.turns()
        }
    }

    /// What both ways take where the uplink is all that counts: 10 MB/s.
    fn thin(by: By, _: u64) -> u64 {
        if by == By::Client { 166_667 } else { 102_000 }
    }

    /// And where the servers are.
    fn fast(by: By, _: u64) -> u64 {
        if by == By::Client { 1_000 } else { 1_600 }
    }

    #[test]
    fn a_thin_uplink_makes_the_servers_code_and_is_not_tried_with_more_bytes_again() {
        for in_flight in [1, 48] {
            let mut world = World::new(in_flight);
            world.run(200 + 8 * in_flight as u64, thin);
            assert_eq!((world.turns(), world.run(500, thin)), (1, 500), "{in_flight} in flight");
        }
    }

    #[test]
    fn fast_uplinks_and_cores_code_themselves_and_try_little_else() {
        for in_flight in [1, 48] {
            let mut world = World::new(in_flight);
            let by_node = world.run(100_000, fast);
            assert!((1..2_000).contains(&by_node) && world.turns() == 0, "{by_node} of 100,000");
        }
    }

    #[test]
    fn what_takes_about_as_long_is_the_clients() {
        let mut world = World::new(4);
        world.run(20_000, |by, _| if by == By::Client { 1_150 } else { 1_000 });
        assert_eq!(world.turns(), 0);
    }

    #[test]
    fn noise_turns_nothing_back_and_forth() {
        let mut noise = rand();
        let mut world = World::new(1);
        world
            .run(100_000, |_, _| 500 + noise() % 1_000 + if noise().is_multiple_of(20) { 20_000 } else { 0 });
        let estimates: Vec<Estimate> = world.choice.estimates().collect();
        assert!(world.turns() <= 1, "{estimates:?}");
    }

    /// xorshift.
    fn rand() -> impl FnMut() -> u64 {
        let mut state = 88_172_645_463_325_252u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }

    #[test]
    fn what_has_changed_is_noticed_either_way() {
        let mut world = World::new(1);
        world.run(20_000, fast);
        world.run(400, thin);
        assert_eq!(world.turns(), 1);
        world.run(400_000, fast);
        assert_eq!((world.turns(), world.run(100, fast)), (2, 0));
    }

    #[test]
    fn a_short_lived_client_tries_nothing_and_a_failure_says_nothing() {
        let mut world = World::new(1);
        assert_eq!(world.run(900, fast), 0);
        let mut choice = Choice::default();
        for at in 0..100 {
            let trip = choice.begin(Time(at * 10_000_000), Some(LEN), true, &Pace::default());
            assert_eq!(trip.by, By::Client);
            choice.end(Time(at * 10_000_000 + 5), trip, LEN, false);
        }
    }

    #[test]
    fn values_that_went_beside_others_of_the_other_way_measure_neither() {
        let mut choice = Choice::default();
        for at in 0..10 {
            let now = Time(1 + at * 10);
            let one = choice.begin(now, Some(LEN), true, &Pace::default());
            let other = choice.begin(now, Some(LEN), false, &Pace::default());
            assert_eq!((one.by, other.by), (By::Client, By::Node));
            choice.end(now + 5, one, LEN, true);
            choice.end(now + 6, other, LEN, true);
        }
        let [estimate] = choice.estimates().collect::<Vec<_>>()[..] else { panic!("one length") };
        assert_eq!((estimate.by_client_us, estimate.by_node_us), (None, None));
    }
}
