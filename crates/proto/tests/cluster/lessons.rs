//! A learner whose lessons are not what they should be: it starts again or gives up, and never answers for them.

use store::INDEX_SEGMENTS;
use types::{
    ClusterMap, DataRole, GroupId, GroupView, Learner, PAGE_BYTES, RoleIndex, Seq, Term, ViewVersion,
};
use wire::message::{FromCoordinator, GroupBody, GroupMessage, Learn, LearnPart, Lesson, PeerMessage};

use super::*;

const SINCE: ViewVersion = ViewVersion(3);

/// Node 1 learns to be the only parity of a group; this test is its primary, on node 0.
struct Pair {
    learner: Host,
    now: Now,
}

impl Pair {
    fn new(memory: u64) -> Self {
        let store =
            StoreConfig { cluster: ClusterId(7), area_limit_bytes: 8 << 20, eviction: Eviction::Clock };
        let config = HostConfig {
            host: host_id(1),
            shard: 0,
            secret: proto::Secret::known_to_all(),
            timing: Timing::default(),
            rules: Rules::all(),
            limits: Limits::default(),
            graphs: proto::GraphSettings::default(),
            coder: codec::Coder::default(),
            store,
            budget: Budget::new(memory),
            quotas: store::Quotas::new(1),
        };
        let now = Now { time: Time(1_000_000), unix: UnixSeconds(1_000_000) };
        let mut pair = Self { learner: Host::new(config), now };
        pair.learner.handle_coordinator(now, FromCoordinator::Map(map().into()));
        pair.learner.link_up(now, host_id(0));
        pair.learner.flush(now);
        pair
    }

    /// Sends a part as of record 0; everything that comes of it.
    fn learn(&mut self, lesson: Lesson, number: u32, tag: u64, part: LearnPart) -> Vec<Action> {
        let learn = Learn { lesson, term: Term(1), number, tag: Seq(tag), part };
        let (from, to) = (RoleIndex(0), RoleIndex(1));
        let message =
            GroupMessage { group: GroupId(0), view: SINCE, from, to, body: GroupBody::Learn(learn.into()) };
        self.learner.handle_peer(self.now, host_id(0), PeerMessage::Group(message));
        self.actions()
    }

    fn actions(&mut self) -> Vec<Action> {
        self.learner.flush(self.now);
        std::iter::from_fn(|| self.learner.poll_action()).collect()
    }

    /// The lesson that it asks for after a while.
    fn asked(&mut self) -> Option<Lesson> {
        self.now.time = self.now.time + Timing::default().retry_us;
        self.learner.tick(self.now);
        self.actions().into_iter().find_map(|action| match body(&action) {
            Some(GroupBody::LearnHello(hello)) => Some(hello.lesson),
            _ => None,
        })
    }
}

fn map() -> ClusterMap {
    let address = "127.0.0.1:1".parse().unwrap();
    let node = |id| NodeInfo {
        host: host_id(id),
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone: String::new(),
        alive: true,
    };
    let primary =
        DataRole { primary: Some(host_id(0)), term: Term(1), origin: Term(1), status: RoleStatus::Full };
    let learner = Learner { role: RoleIndex(1), host: host_id(1), since: SINCE, whole: false };
    let view = GroupView {
        group: GroupId(0),
        version: SINCE,
        data: vec![primary],
        parity: vec![None],
        learners: vec![learner],
        former: vec![],
        holders: Vec::new(),
    };
    ClusterMap {
        cluster: ClusterId(7),
        version: 1,
        catalog: types::Catalog::first(Profile::rs(1, 1).unwrap(), 1),
        shards: 1,
        layout: Default::default(),
        nodes: vec![node(0), node(1)],
        groups: vec![view],
    }
}

fn body(action: &Action) -> Option<&GroupBody> {
    match action {
        Action::Send { message: PeerMessage::Group(message), .. } => Some(&message.body),
        _ => None,
    }
}

fn is_learned(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(body(action), Some(GroupBody::Learned(_))))
}

fn begin() -> LearnPart {
    LearnPart::Begin { rows: Bytes::new(), classes: Bytes::new() }
}

/// The set of the first run beyond the area.
fn run_128() -> Bytes {
    let (mut runs, mut bytes) = (store::PageSet::new(), Vec::new());
    runs.insert(128);
    runs.encode(&mut bytes);
    bytes.into()
}

fn run(run: u32, pages: u16, len: usize) -> LearnPart {
    LearnPart::Run { run, pages, bytes: vec![7; len].into() }
}

#[test]
fn a_part_that_does_not_fit_makes_the_learner_start_again() {
    let segment = |segment, entries: &'static [u8]| LearnPart::Segment {
        segment,
        entries: Bytes::from_static(entries),
    };
    let bad = [
        (0, 0, begin()),
        (1, 0, begin()),
        (2, 0, run(0, 1, PAGE_BYTES)),
        (1, 9, run(0, 1, PAGE_BYTES)),
        (1, 0, run(0, 3, PAGE_BYTES)),
        (1, 0, run(128, 1, PAGE_BYTES)),
        (1, 0, run(u32::MAX, 1, PAGE_BYTES)),
        (1, 0, segment(1, b"")),
        (1, 0, segment(INDEX_SEGMENTS as u16, b"")),
        (1, 0, segment(0, b"not an entry")),
        (1, 0, segment(0, &[0xff; 9])),
        (1, 0, LearnPart::End { runs: Bytes::from_static(b"\x01\0\0\0") }),
        (1, 0, LearnPart::End { runs: run_128() }),
    ];
    for (number, tag, part) in bad {
        let mut pair = Pair::new(64 << 20);
        let first = Lesson { since: SINCE, attempt: 0 };
        assert_eq!(pair.asked(), Some(first));
        assert!(is_learned(&pair.learn(first, 0, 0, begin())));
        assert!(!is_learned(&pair.learn(first, number, tag, part.clone())), "{part:?}");
        assert_eq!(pair.asked(), Some(Lesson { attempt: 1, ..first }), "{part:?}");
    }
}

#[test]
fn an_unknown_run_class_makes_the_learner_start_again() {
    let mut pair = Pair::new(64 << 20);
    let first = pair.asked().unwrap();
    let classes = Bytes::from_static(&[0xee]);
    let part = LearnPart::Begin { rows: Bytes::new(), classes };
    assert!(!is_learned(&pair.learn(first, 0, 0, part)));
    assert_eq!(pair.asked(), Some(Lesson { attempt: 1, ..first }));
}

#[test]
fn a_part_of_another_lesson_is_ignored() {
    let mut pair = Pair::new(64 << 20);
    let first = pair.asked().unwrap();
    assert!(pair.learn(Lesson { attempt: 1, ..first }, 0, 0, begin()).is_empty());
    assert!(pair.learn(Lesson { since: ViewVersion(2), ..first }, 0, 0, begin()).is_empty());
    assert!(is_learned(&pair.learn(first, 0, 0, begin())));
}

#[test]
fn a_learner_without_memory_gives_up_once_and_says_no_more() {
    let mut pair = Pair::new(1 << 20);
    let first = pair.asked().unwrap();
    assert!(is_learned(&pair.learn(first, 0, 0, begin())));
    // There is memory for some runs of the first extent, and not for another extent.
    let actions = pair.learn(first, 1, 0, run(16, 1, PAGE_BYTES));
    let gave_up = ToCoordinator::GaveUp { group: GroupId(0), learner: RoleIndex(1), since: SINCE };
    assert_eq!(actions, [Action::Coordinator(gave_up.into())]);
    assert!(pair.learn(first, 2, 0, run(17, 1, PAGE_BYTES)).is_empty());
    assert_eq!(pair.asked(), None);
}
