//! How fast other nodes are, from cells that are fetched of them anyway: one question to each is timed, then another one.
//!
//! Whoever shares this host's own links with others is timed with them, so how fast a node is counts beside the others: who takes half as
//! long again as most do is slow, and coding graphs go round it where they can (`graphs/speed.rs`).

use std::collections::BTreeMap;

use graph::Fit;
use types::{ChunkId, MemberId, NodeId, Time};
use wire::object::{Cell, Fetch};

/// By what a sample counts for more than the one before.
const KEEP: f64 = 0.8;
/// What is said of a node is believed after so many samples.
const MIN_SAMPLES: u32 = 4;
/// Nodes are compared by what so many bytes take.
const USUAL_BYTES: f64 = 65_536.0;
/// An answer that has not come after so long will not; another question is timed then.
const LOST_US: u64 = 10_000_000;
/// Who takes so many times as long as the median is slow; who takes less is as good as any.
const SLOW: f64 = 1.5;
/// What was found out longer ago may be otherwise: who is slow is tried again then.
const LATELY_US: u64 = 20_000_000;
/// Nobody is slower than this by what is believed: a node that was, and is not, is asked again some day.
const SLOWEST: f64 = 100.0;

/// See the module.
#[derive(Default)]
pub(crate) struct Meter {
    nodes: BTreeMap<NodeId, Timed>,
}

struct Timed {
    fit: Fit,
    samples: u32,
    timed_at: Time,
    question: Option<Question>,
}

/// Cells of a chunk that have been asked for.
struct Question {
    number: u64,
    member: MemberId,
    chunk: ChunkId,
    /// The first one, and the first behind them.
    rows: (u32, u32),
    left: u32,
    bytes: u64,
    asked_at: Time,
}

/// What is known of the way from another node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenLink {
    /// From which node.
    pub node: NodeId,
    /// Questions that were timed.
    pub samples: u32,
    /// Bytes a second, where answers of several lengths have come.
    pub bytes_per_s: Option<f64>,
    /// There and back, without what the bytes take.
    pub round_trip_us: Option<f64>,
    /// What 64 KiB take.
    pub usual_us: f64,
    /// How many times as long as with most others that is.
    pub slowness: f64,
}

impl Meter {
    /// These cells are asked of a node.
    pub(crate) fn asked(&mut self, now: Time, node: NodeId, fetch: &Fetch) {
        let fresh = || Timed { fit: Fit::moving(KEEP), samples: 0, timed_at: Time(0), question: None };
        let timed = self.nodes.entry(node).or_insert_with(fresh);
        if timed.question.as_ref().is_some_and(|known| now.since(known.asked_at) < LOST_US) {
            return;
        }
        let Fetch { number, member, chunk, first, count } = *fetch;
        let rows = (first, first.saturating_add(count));
        timed.question = Some(Question { number, member, chunk, rows, left: count, bytes: 0, asked_at: now });
    }

    /// A cell has come of it.
    pub(crate) fn came(&mut self, now: Time, node: NodeId, cell: &Cell) {
        let Some(timed) = self.nodes.get_mut(&node) else { return };
        let Some(question) = &mut timed.question else { return };
        let is_of_it = (question.number, question.member, question.chunk)
            == (cell.number, cell.member, cell.chunk)
            && (question.rows.0..question.rows.1).contains(&cell.row);
        if !is_of_it {
            return;
        }
        question.bytes += cell.cell.bytes.len() as u64;
        question.left = question.left.saturating_sub(1);
        if question.left == 0 {
            timed.fit.add(question.bytes as f64, now.since(question.asked_at).max(1) as f64);
            timed.samples = timed.samples.saturating_add(1);
            timed.timed_at = now;
            timed.question = None;
        }
    }

    /// What was asked of it does not come.
    pub(crate) fn forget_question(&mut self, node: NodeId) {
        if let Some(timed) = self.nodes.get_mut(&node) {
            timed.question = None;
        }
    }

    /// Nodes that are not in the map any more.
    pub(crate) fn retain(&mut self, is_there: impl Fn(NodeId) -> bool) {
        self.nodes.retain(|node, _| is_there(*node));
    }

    /// All of which enough is known.
    pub(crate) fn links(&self) -> Vec<SeenLink> {
        let known = self.nodes.iter().filter(|(_, timed)| timed.samples >= MIN_SAMPLES);
        let mut links: Vec<SeenLink> = known.filter_map(|(node, timed)| timed.link(*node)).collect();
        let mut times: Vec<f64> = links.iter().map(|link| link.usual_us).collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().unwrap_or(1.0).max(1.0);
        links.iter_mut().for_each(|link| link.slowness = link.usual_us / median);
        links
    }

    /// Those that are slower than most, and how many times.
    pub(crate) fn slow(&self) -> impl Iterator<Item = (NodeId, f64)> {
        let slow = self.links().into_iter().filter(|link| link.slowness >= SLOW);
        slow.map(|link| (link.node, link.slowness.min(SLOWEST)))
    }

    /// Those of them that were timed lately.
    pub(crate) fn slow_lately(&self, now: Time) -> impl Iterator<Item = (NodeId, f64)> {
        let is_fresh = move |node: &NodeId| {
            self.nodes.get(node).is_some_and(|timed| now.since(timed.timed_at) < LATELY_US)
        };
        self.slow().filter(move |(node, _)| is_fresh(node))
    }
}

impl Timed {
    fn link(&self, node: NodeId) -> Option<SeenLink> {
        let (bytes, us) = self.fit.mean()?;
        // Where all answers were of one length only what they took in all is known.
        let usual_us = match self.fit.line() {
            Some((per_byte, whatever)) if per_byte > 0.0 => whatever.max(0.0) + per_byte * USUAL_BYTES,
            _ => us * (USUAL_BYTES / bytes.max(1.0)).min(1.0),
        };
        Some(SeenLink {
            node,
            samples: self.samples,
            bytes_per_s: self.fit.bytes_per_s(),
            round_trip_us: self.fit.latency_us(),
            usual_us: usual_us.max(1.0),
            slowness: 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use types::{GroupId, NamespaceId, ObjectId, RoleIndex, Term};
    use wire::object::Checked;

    use super::*;

    fn member() -> MemberId {
        MemberId { group: GroupId(1), role: RoleIndex(2) }
    }

    fn chunk() -> ChunkId {
        let object =
            ObjectId { owner: member(), term: Term(1), number: 1, salt: 1, namespace: NamespaceId::DEFAULT };
        ChunkId { object, stripe: 0 }
    }

    fn fetch(number: u64, count: u32) -> Fetch {
        Fetch { number, member: member(), chunk: chunk(), first: 0, count }
    }

    fn cell(number: u64, row: u32, len: usize) -> Cell {
        let cell = Checked::new(Bytes::from(vec![0; len]));
        Cell { number, member: member(), chunk: chunk(), row, cell }
    }

    /// Answers of a node that sends `per_us` bytes a microsecond.
    fn answers(meter: &mut Meter, node: u16, per_us: u64) {
        for number in 0..20u64 {
            let len = 1_000 * (1 + number as usize % 5);
            let asked_at = Time(number * 1_000_000);
            meter.asked(asked_at, NodeId(node), &fetch(number, 2));
            let came_at = asked_at + 100 + 2 * len as u64 / per_us;
            meter.came(asked_at + 50, NodeId(node), &cell(number, 0, len));
            meter.came(came_at, NodeId(node), &cell(number, 1, len));
        }
    }

    #[test]
    fn who_is_slower_than_most_is_slow_and_by_how_much() {
        let mut meter = Meter::default();
        for node in [1, 2, 4] {
            answers(&mut meter, node, 100);
        }
        answers(&mut meter, 3, 10);
        let slow: Vec<(NodeId, f64)> = meter.slow().collect();
        assert_eq!(meter.slow_lately(Time(20_000_000)).collect::<Vec<_>>(), slow);
        assert_eq!(meter.slow_lately(Time(40_000_000)).count(), 0, "that was long ago");
        let [(NodeId(3), times)] = slow[..] else { panic!("{slow:?}") };
        assert!((8.0..10.0).contains(&times), "{times}");
        let link = meter.links()[0];
        let (rate, way) = (link.bytes_per_s.unwrap(), link.round_trip_us.unwrap());
        assert!((rate / 100e6 - 1.0).abs() < 0.05 && (way - 100.0).abs() < 5.0, "{link:?}");
    }

    #[test]
    fn what_was_not_asked_for_or_comes_again_is_not_timed() {
        let mut meter = Meter::default();
        meter.came(Time(5), NodeId(1), &cell(1, 0, 10));
        meter.asked(Time(5), NodeId(1), &fetch(1, 1));
        meter.came(Time(6), NodeId(1), &cell(2, 0, 10));
        meter.came(Time(6), NodeId(1), &cell(1, 1, 10));
        meter.came(Time(6), NodeId(2), &cell(1, 0, 10));
        assert_eq!(meter.nodes[&NodeId(1)].samples, 0);
        meter.came(Time(6), NodeId(1), &cell(1, 0, 10));
        meter.came(Time(6), NodeId(1), &cell(1, 0, 10));
        assert_eq!(meter.nodes[&NodeId(1)].samples, 1);
        assert!(meter.links().is_empty(), "one sample is too few");
    }

    #[test]
    fn an_answer_that_is_lost_holds_the_next_question_up_for_a_while_only() {
        let mut meter = Meter::default();
        meter.asked(Time(0), NodeId(1), &fetch(1, 1));
        meter.asked(Time(10), NodeId(1), &fetch(2, 1));
        meter.came(Time(20), NodeId(1), &cell(2, 0, 10));
        assert_eq!(meter.nodes[&NodeId(1)].samples, 0);
        meter.asked(Time(LOST_US), NodeId(1), &fetch(3, 1));
        meter.came(Time(LOST_US + 9), NodeId(1), &cell(3, 0, 10));
        assert_eq!(meter.nodes[&NodeId(1)].samples, 1);
        meter.retain(|node| node != NodeId(1));
        assert!(meter.nodes.is_empty());
    }
}
