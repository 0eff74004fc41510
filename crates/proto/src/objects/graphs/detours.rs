//! Nodes that hold graphs up, and the ways round them, by what graphs for repair have taken.
//!
//! All links of a pipeline are as slow as its slowest one. So the asker looks which that is (`graph::Look`), and takes the nodes at both of its
//! ends for suspects; whether it is slow, or all are, shows when it is gone round: the next graphs do without suspects where others have
//! what is needed. If they are no faster all is well; if they are, the suspect is so many times slower. After a while it is tried
//! again, and each time that it still is the next trial is later.
//!
//! A graph that should have ended and is not half made is not waited for: it is begun anew without one of the two.

use std::collections::{BTreeMap, VecDeque};

use types::{NodeId, Time};

use super::course::Course;

/// Who makes graphs take so many times as long as they could is slow. A tree whose asker receives two sums takes twice as long if one of them
/// comes over a link that is four times slower.
const SLOW: f64 = 1.75;
/// What takes so many times as long as it could is worth to be begun anew: what has come of it is lost.
const TOO_SLOW: f64 = 2.5;
/// No node is said to be slower than this.
const SLOWEST: f64 = 100.0;
/// What could be is what the fastest quarter of so many graphs has taken.
const RECENT: usize = 8;
/// Before anything is known a graph is late when it takes so many times as long as was predicted: links that are ten times slower than is
/// expected, all of them, are nobody's fault.
const FIRST_PATIENCE: f64 = 6.0;
/// A suspect is tried again after so many leases, and then after twice as many each time that it is slow still, up to the most.
const FIRST_PAUSE_LEASES: u64 = 8;
const MOST_PAUSE_LEASES: u64 = 128;

/// See the module.
#[derive(Default)]
pub(super) struct Detours {
    /// What the last graphs have taken, as if each had been alone, in times of what they take over links of 1 Gbit/s.
    recent: VecDeque<f64>,
    suspects: BTreeMap<NodeId, Suspect>,
}

struct Suspect {
    /// What the last graph has taken that it may have held up.
    slowness: f64,
    /// It is as good as others: without it graphs took as long.
    is_cleared: bool,
    pause_leases: u64,
    tried_at: Time,
}

impl Detours {
    /// A graph has ended well.
    pub(super) fn ended(&mut self, now: Time, lease_us: u64, course: &Course) {
        let slowness = course.slowness;
        self.suspects
            .retain(|node, suspect| !(course.helpers.contains(node) && suspect.slowness >= SLOW * slowness));
        let passed = self.suspects.iter_mut().filter(|(node, _)| !course.helpers.contains(node));
        passed.for_each(|(_, suspect)| suspect.is_cleared |= suspect.slowness < SLOW * slowness);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(slowness);
        self.suspect(now, lease_us, course, slowness);
    }

    fn suspect(&mut self, now: Time, lease_us: u64, course: &Course, slowness: f64) {
        let is_late = self.is_late(slowness);
        for node in &course.held {
            let tried_at = now + FIRST_PAUSE_LEASES * lease_us;
            let fresh =
                || Suspect { slowness, is_cleared: false, pause_leases: FIRST_PAUSE_LEASES, tried_at };
            let suspect = self.suspects.entry(*node).or_insert_with(fresh);
            if is_late && suspect.tried_at <= now {
                suspect.pause_leases = (2 * suspect.pause_leases).min(MOST_PAUSE_LEASES);
            }
            suspect.slowness = slowness;
            suspect.is_cleared &= !is_late;
            suspect.tried_at = suspect.tried_at.max(now + suspect.pause_leases * lease_us);
        }
    }

    /// How a graph that runs was seen, which should take `predicted` of what it takes over links of 1 Gbit/s: the node to go round, if that
    /// is worth it. `draw` says which of two.
    pub(super) fn seen(
        &mut self,
        now: Time,
        lease_us: u64,
        course: &Course,
        predicted: f64,
        draw: u64,
    ) -> Option<NodeId> {
        let expected = self.best().unwrap_or(FIRST_PATIENCE * predicted * course.crowd);
        let had_its_time = course.so_far >= expected && course.share > 0.0;
        if !had_its_time || course.share * TOO_SLOW > 1.0 || course.slowness < TOO_SLOW * expected {
            return None;
        }
        let known = course.held.iter().find(|node| self.suspects.contains_key(node)).copied();
        let either = course.held.get((draw % course.held.len().max(1) as u64) as usize).copied();
        self.suspect(now, lease_us, course, course.slowness);
        known.or(either)
    }

    /// What a graph takes that nothing holds up.
    fn best(&self) -> Option<f64> {
        let mut recent: Vec<f64> = self.recent.iter().copied().collect();
        recent.sort_by(f64::total_cmp);
        recent.get(recent.len().saturating_sub(1) / 4).copied()
    }

    /// Whether a graph has taken much longer than it could.
    pub(super) fn is_late(&self, slowness: f64) -> bool {
        self.best().is_some_and(|best| slowness >= SLOW * best)
    }

    /// Nodes that are slow, and how many times.
    pub(super) fn slow(&self, now: Time) -> impl Iterator<Item = (NodeId, f64)> {
        let best = self.best().unwrap_or(f64::MAX);
        let slow = self.open(now).filter(move |(_, suspect)| suspect.slowness >= SLOW * best);
        slow.map(move |(node, suspect)| (node, (suspect.slowness / best).min(SLOWEST)))
    }

    /// Nodes that are not asked while others have what is needed.
    pub(super) fn avoided(&self, now: Time) -> Vec<NodeId> {
        self.open(now).map(|(node, _)| node).collect()
    }

    /// Those that are neither cleared nor due to be tried again.
    fn open(&self, now: Time) -> impl Iterator<Item = (NodeId, &Suspect)> {
        let open = self.suspects.iter().filter(move |(_, it)| !it.is_cleared && now < it.tried_at);
        open.map(|(node, suspect)| (*node, suspect))
    }

    /// Nodes that are not in the map any more.
    pub(super) fn retain(&mut self, is_there: impl Fn(NodeId) -> bool) {
        self.suspects.retain(|node, _| is_there(*node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_US: u64 = 1_000_000;

    fn nodes(numbers: &[u16]) -> Vec<NodeId> {
        numbers.iter().copied().map(NodeId).collect()
    }

    /// One that has ended, and was held up between these.
    fn whole(helpers: &[u16], held: &[u16], slowness: f64) -> Course {
        Course {
            helpers: nodes(helpers).into_iter().collect(),
            held: nodes(held),
            slowness,
            so_far: slowness,
            share: 1.0,
            crowd: 1.0,
        }
    }

    fn slow(detours: &Detours, now: Time) -> Vec<(u16, f64)> {
        detours.slow(now).map(|(node, times)| (node.0, times)).collect()
    }

    #[test]
    fn who_was_gone_round_is_slow_if_that_is_faster_and_cleared_if_not() {
        let mut detours = Detours::default();
        detours.ended(Time(0), LEASE_US, &whole(&[1, 2, 3], &[2, 3], 40.0));
        assert_eq!((detours.avoided(Time(1)), slow(&detours, Time(1))), (nodes(&[2, 3]), vec![]));
        // Without 2 it is no better: so it is not 2.
        detours.ended(Time(1), LEASE_US, &whole(&[1, 3, 4], &[3, 4], 40.0));
        assert_eq!(detours.avoided(Time(2)), nodes(&[3, 4]));
        detours.ended(Time(2), LEASE_US, &whole(&[1, 2, 4], &[1, 2], 10.0));
        assert_eq!(slow(&detours, Time(3)), [(3, 4.0)]);
        assert!(!detours.avoided(Time(3)).contains(&NodeId(4)), "it has helped in a fast one");
    }

    #[test]
    fn where_all_are_alike_all_are_cleared() {
        let mut detours = Detours::default();
        let mut now = Time(0);
        for round in 0..12u16 {
            let [one, two, three, four] = [0, 1, 2, 3].map(|at| (round + at) % 5);
            now = now + 1_000;
            let slowness = 10.0 + f64::from(round % 3);
            detours.ended(now, LEASE_US, &whole(&[one, two, three, four], &[one, two], slowness));
            assert_eq!(slow(&detours, now), []);
        }
        assert!(detours.avoided(now).len() <= 2, "{:?}", detours.avoided(now));
    }

    #[test]
    fn who_is_slow_is_tried_again_and_later_each_time_until_it_is_well() {
        let mut detours = Detours::default();
        detours.ended(Time(0), LEASE_US, &whole(&[1, 2], &[1, 2], 40.0));
        detours.ended(Time(0), LEASE_US, &whole(&[2, 3], &[2, 3], 10.0));
        let mut now = Time(0);
        for pause in [FIRST_PAUSE_LEASES, 2 * FIRST_PAUSE_LEASES, 4 * FIRST_PAUSE_LEASES] {
            (0..RECENT).for_each(|_| detours.ended(now, LEASE_US, &whole(&[2, 3], &[], 10.0)));
            now = now + pause * LEASE_US;
            assert_eq!(slow(&detours, now), [], "after {pause}");
            detours.ended(now, LEASE_US, &whole(&[1, 2], &[1], 40.0));
            assert_eq!(slow(&detours, now), [(1, 4.0)]);
            assert_eq!(slow(&detours, Time(now.0 + 2 * pause * LEASE_US - 1)), [(1, 4.0)]);
        }
        detours.ended(now, LEASE_US, &whole(&[1, 2], &[1, 2], 11.0));
        assert_eq!(slow(&detours, now), []);
    }

    #[test]
    fn one_that_should_have_ended_is_begun_anew_and_one_that_is_half_made_is_not() {
        let mut detours = Detours::default();
        let part = |so_far, share| Course {
            so_far,
            share,
            ..whole(&[1, 2, 3], &[2, 3], so_far / f64::max(share, 0.1))
        };
        let mut seen = |course: &Course, draw| detours.seen(Time(1), LEASE_US, course, 10.0, draw);
        assert_eq!(seen(&part(59.0, 0.2), 0), None, "nothing is known of how fast it could be");
        assert_eq!(seen(&part(60.0, 0.5), 0), None);
        assert_eq!(seen(&part(60.0, 0.0), 0), None);
        assert_eq!(seen(&part(60.0, 0.2), 1), Some(NodeId(3)));
        detours.ended(Time(2), LEASE_US, &whole(&[1, 2, 4], &[1, 4], 10.0));
        assert_eq!(slow(&detours, Time(3)), [(3, 30.0)]);
        assert_eq!(
            detours.seen(Time(3), LEASE_US, &part(10.0, 0.25), 10.0, 0),
            Some(NodeId(3)),
            "as is known"
        );
    }

    #[test]
    fn one_that_gets_little_of_a_link_that_is_full_is_held_up_by_nobody() {
        let mut detours = Detours::default();
        detours.ended(Time(0), LEASE_US, &whole(&[1, 2, 3], &[], 10.0));
        // Others beside it have as much of the link as it lacks.
        let starved = Course { so_far: 30.0, share: 0.1, ..whole(&[1, 2, 4], &[2, 4], 10.0) };
        assert_eq!(detours.seen(Time(1), LEASE_US, &starved, 1.0, 0), None);
        let held_up = Course { slowness: 40.0, ..starved };
        assert_eq!(detours.seen(Time(1), LEASE_US, &held_up, 1.0, 0), Some(NodeId(2)));
    }

    #[test]
    fn a_star_over_links_that_are_all_slower_than_is_expected_is_not_begun_anew() {
        let mut detours = Detours::default();
        let star = |slowness| Course {
            so_far: slowness * 0.375,
            share: 0.375,
            crowd: 6.0,
            ..whole(&[1, 2, 3, 4, 5, 6], &[4], slowness)
        };
        assert_eq!(detours.seen(Time(1), LEASE_US, &star(10.7), 1.0, 0), None);
        // It takes a link that is slower than all of what comes to the asker.
        assert_eq!(detours.seen(Time(1), LEASE_US, &star(100.0), 1.0, 0), Some(NodeId(4)));
    }

    #[test]
    fn a_tree_that_takes_twice_as_long_is_late_and_goes_round_until_the_next_trial() {
        let mut detours = Detours::default();
        detours.ended(Time(0), LEASE_US, &whole(&[1, 2, 3], &[3], 20.0));
        for _ in 0..RECENT {
            detours.ended(Time(1), LEASE_US, &whole(&[1, 2, 4], &[2], 10.0));
            assert_eq!(slow(&detours, Time(2)), [(3, 2.0)]);
        }
        assert!(detours.avoided(Time(2)).contains(&NodeId(3)));
    }

    #[test]
    fn a_network_that_has_become_slower_is_the_new_measure_in_the_end() {
        let mut detours = Detours::default();
        detours.ended(Time(0), LEASE_US, &whole(&[1, 2], &[1], 1.0));
        for _ in 0..RECENT {
            detours.ended(Time(1), LEASE_US, &whole(&[1, 2], &[1], 10.0));
        }
        assert_eq!(slow(&detours, Time(1)), []);
        detours.retain(|node| node != NodeId(1));
        assert_eq!(detours.avoided(Time(1)), []);
    }
}
