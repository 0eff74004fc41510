//! Who makes the parities of a value where that is to be chosen (`EncodeBy::Auto`): its writer, or the holders of its data.
//!
//! What counts is how long a byte takes, and what its copies between zones cost. The model says by which way values of about one length go
//! first (`forecast`). Then both are measured by the values themselves ([`types::trials`]). Where the model expects nothing of the other way
//! it is tried after a while.

use types::Time;
use types::trials::{CLASSES, Mark, Recent, Terms, Traffic, Trials, class_of};

/// A trial is over when the other way is known, and after so many leases in any case.
const TRIAL_LEASES: u64 = 60;
/// Pauses between trials: where the other way may be as good, where the model says that it is not, and where trials change nothing.
const PAUSE_LEASES: u64 = 1;
const LONG_PAUSE_LEASES: u64 = 8;
const LONGEST_PAUSE_LEASES: u64 = 120;
/// How much less a byte must cost by the other way.
const BETTER: f64 = 0.9;
/// The model may be wrong by that: what costs more by it is tried later.
const DOUBT: f64 = 1.25;

/// Who makes parities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum By {
    /// The writer.
    #[default]
    Node,
    /// The holders of data.
    Tri,
}

impl By {
    fn other(self) -> Self {
        match self {
            Self::Node => Self::Tri,
            Self::Tri => Self::Node,
        }
    }
}

/// What the model says of both ways, in the order of [`By`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Forecast {
    /// How long a byte takes, in picoseconds.
    pub time: [f64; 2],
    /// What it costs between zones, in the same.
    pub zones: [f64; 2],
}

impl Forecast {
    fn cost(&self, by: By) -> f64 {
        self.time[by as usize] + self.zones[by as usize]
    }
}

/// A value that is on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    pub by: By,
    mark: Mark,
}

/// See the module.
#[derive(Default)]
pub(super) struct Ways {
    classes: [Class; CLASSES],
    traffic: Traffic,
    lease_us: u64,
}

#[derive(Clone, Copy, Default)]
struct Class {
    /// By which way values go, once that was asked.
    at: Option<By>,
    forecast: Option<Forecast>,
    recent: [Recent; 2],
    trials: Trials,
}

fn terms(lease_us: u64) -> Terms {
    Terms {
        trial_us: TRIAL_LEASES * lease_us,
        pause_us: PAUSE_LEASES * lease_us,
        longest_pause_us: LONGEST_PAUSE_LEASES * lease_us,
    }
}

impl Ways {
    /// A value of this length begins; `forecast` gets what is known of the times of both ways.
    pub(super) fn begin(
        &mut self,
        now: Time,
        lease_us: u64,
        len: u64,
        forecast: impl FnOnce([Option<f64>; 2]) -> Option<Forecast>,
    ) -> Trip {
        self.lease_us = lease_us;
        let by = self.classes[class_of(len)].next(now, lease_us, forecast);
        Trip { by, mark: self.traffic.begin(now, by as usize) }
    }

    /// It is not under way any more.
    pub(super) fn end(&mut self, trip: Trip) {
        self.traffic.end(trip.mark);
    }

    /// It has come to a good end, before [`Self::end`].
    pub(super) fn arrive(&mut self, now: Time, trip: Trip, len: u64) {
        if let Some(picos) = self.traffic.arrive(now, trip.mark, len) {
            self.classes[class_of(len)].note(now, self.lease_us, trip.by, picos);
        }
    }

    /// Values whose holders were to make the parities, trials of either way, and changes.
    pub(super) fn counts(&self) -> [u64; 3] {
        let sum = |of: fn(&Class) -> u64| self.classes.iter().map(of).sum();
        [
            self.traffic.begun(By::Tri as usize),
            sum(|class| class.trials.count()),
            sum(|class| class.trials.turns()),
        ]
    }
}

impl Class {
    /// By which way the next one goes.
    fn next(
        &mut self,
        now: Time,
        lease_us: u64,
        forecast: impl FnOnce([Option<f64>; 2]) -> Option<Forecast>,
    ) -> By {
        let Some(at) = self.at else {
            self.forecast = forecast([None; 2]);
            let is_better = |it: Forecast| it.cost(By::Tri) < BETTER * it.cost(By::Node);
            let at = if self.forecast.is_some_and(is_better) { By::Tri } else { By::Node };
            self.at = Some(at);
            self.trials.since(now);
            return at;
        };
        let terms = terms(lease_us);
        if self.trials.is_on() {
            if self.trials.takes(now, &terms) {
                return at.other();
            }
            self.conclude(now, lease_us);
            return self.at.unwrap_or(at);
        }
        if self.recent[at as usize].median().is_none() || !self.trials.is_due(now, terms.pause_us) {
            return at;
        }
        self.forecast = forecast(self.medians());
        let long_us = LONG_PAUSE_LEASES * lease_us;
        if !self.may_pay(at) && !self.trials.is_due(now, long_us) {
            self.trials.pause(long_us);
            return at;
        }
        self.recent[at.other() as usize] = Recent::default();
        self.trials.begin(now);
        at.other()
    }

    fn medians(&self) -> [Option<f64>; 2] {
        self.recent.map(|recent| recent.median().map(|picos| picos as f64))
    }

    /// Whether the model leaves it open that the other way is better.
    fn may_pay(&self, at: By) -> bool {
        self.forecast.is_some_and(|it| it.cost(at.other()) < DOUBT * it.cost(at))
    }

    fn note(&mut self, now: Time, lease_us: u64, by: By, picos: u64) {
        self.recent[by as usize].add(picos);
        let is_known = self.recent[by as usize].median().is_some();
        if self.trials.is_on() && self.at != Some(by) && is_known {
            self.conclude(now, lease_us);
        }
    }

    /// A trial is over.
    fn conclude(&mut self, now: Time, lease_us: u64) {
        let Some(at) = self.at else { return };
        let medians = self.medians();
        let cost = |by: By| {
            let zones = self.forecast.map_or(0.0, |forecast| forecast.zones[by as usize]);
            Some(medians[by as usize]? + zones)
        };
        let is_better = cost(at).zip(cost(at.other())).is_some_and(|(this, other)| other < BETTER * this);
        if self.trials.conclude(now, &terms(lease_us), is_better) {
            self.at = Some(at.other());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const LEASE_US: u64 = 1_000_000;
    const LEN: u64 = 1_000_000;

    /// A writer that has so many values under way, each of which takes as long as is said of its way.
    struct World {
        ways: Ways,
        forecast: Option<Forecast>,
        in_flight: usize,
        now: u64,
    }

    impl World {
        fn new(in_flight: usize, forecast: Option<Forecast>) -> Self {
            Self { ways: Ways::default(), forecast, in_flight, now: 0 }
        }

        /// How many of so many others made parities of.
        fn run(&mut self, values: u64, takes_us: impl Fn(By) -> u64) -> u64 {
            let (mut under_way, mut by_tri) = (VecDeque::new(), 0);
            for _ in 0..values {
                if under_way.len() == self.in_flight {
                    self.end(&mut under_way, &takes_us);
                }
                let forecast = self.forecast;
                let trip = self.ways.begin(Time(self.now), LEASE_US, LEN, |_| forecast);
                by_tri += u64::from(trip.by == By::Tri);
                under_way.push_back(trip);
            }
            while !under_way.is_empty() {
                self.end(&mut under_way, &takes_us);
            }
            by_tri
        }

        fn end(&mut self, under_way: &mut VecDeque<Trip>, takes_us: &impl Fn(By) -> u64) {
            let Some(trip) = under_way.pop_front() else { return };
            self.now += takes_us(trip.by);
            self.ways.arrive(Time(self.now), trip, LEN);
            self.ways.end(trip);
        }

        fn turns(&self) -> u64 {
            self.ways.counts()[2]
        }
    }

    fn forecast(node: f64, tri: f64) -> Option<Forecast> {
        Some(Forecast { time: [node, tri], zones: [0.0; 2] })
    }

    /// What both take where the writer's link is all that counts.
    fn thin(by: By) -> u64 {
        if by == By::Node { 150_000 } else { 100_000 }
    }

    /// And where processors are.
    fn fast(by: By) -> u64 {
        if by == By::Node { 1_000 } else { 1_500 }
    }

    #[test]
    fn what_the_model_is_right_of_is_done_from_the_first_value_on_and_the_other_way_tried_little() {
        for in_flight in [1, 8] {
            let mut world = World::new(in_flight, forecast(1.5e5, 1e5));
            let by_tri = world.run(1_000, thin);
            assert!(by_tri > 930 && world.turns() == 0, "{by_tri} of 1000, {in_flight} at once");
            let mut world = World::new(in_flight, forecast(1e3, 1e3));
            let by_tri = world.run(100_000, fast);
            assert!((3..7_000).contains(&by_tri) && world.turns() == 0, "{by_tri}, {in_flight} at once");
        }
    }

    #[test]
    fn what_the_model_is_wrong_of_is_found_out_either_way() {
        for in_flight in [1, 8] {
            let mut world = World::new(in_flight, forecast(1.5e5, 1e5));
            world.run(20_000, fast);
            assert_eq!(world.turns(), 1);
            assert!(world.run(1_000, fast) < 70, "{in_flight} at once");
            let mut world = World::new(in_flight, forecast(1.0, 1.0));
            world.run(200, thin);
            assert_eq!(world.turns(), 1);
            assert!(world.run(1_000, thin) > 930, "{in_flight} at once");
        }
    }

    #[test]
    fn where_nothing_can_be_predicted_the_writer_sends_all_and_looks_whether_that_is_right() {
        let mut world = World::new(1, None);
        assert_eq!(world.run(50, thin), 0);
        world.run(200, thin);
        assert_eq!(world.turns(), 1);
    }

    #[test]
    fn what_takes_about_as_long_stays_as_it_is() {
        let mut world = World::new(4, forecast(1e3, 1e3));
        let takes_us = |by| if by == By::Node { 1_000 } else { 930 };
        world.run(50_000, takes_us);
        assert_eq!(world.turns(), 0);
    }

    #[test]
    fn bytes_between_zones_count_as_time() {
        let costly = Forecast { time: [1.5e5, 1e5], zones: [0.0, 1e5] };
        let mut world = World::new(1, Some(costly));
        assert!(world.run(500, thin) < 40);
        assert_eq!(world.turns(), 0);
    }

    #[test]
    fn a_value_that_fails_says_nothing_and_those_beside_the_other_way_do_not_either() {
        let mut ways = Ways::default();
        for at in 0..20 {
            let now = Time(at * 100 * LEASE_US);
            let trip = ways.begin(now, LEASE_US, LEN, |_| None);
            assert_eq!(trip.by, By::Node);
            ways.end(trip);
        }
        let one = ways.begin(Time(1), LEASE_US, LEN, |_| None);
        let other_len = types::trials::longest(0);
        let other = ways.begin(Time(1), LEASE_US, other_len, |_| forecast(1.5, 1.0));
        assert_eq!(other.by, By::Tri);
        ways.arrive(Time(2), one, LEN);
        ways.arrive(Time(2), other, other_len);
        assert!(ways.classes.iter().all(|class| class.recent.iter().all(Recent::is_empty)));
    }
}
