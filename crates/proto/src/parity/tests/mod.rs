//! Stories of one parity: a state, one message, the exact list of what it answers.

mod learner;
mod recovery;
mod scrub;
mod session;

use std::sync::Arc;

use bytes::Bytes;
use cluster::Protection;
use cluster::place;
use smallvec::smallvec;
use store::{Eviction, StoreConfig};
use types::{Addr, Catalog, ClusterId, EXTENT_BYTES, Incarnation, NodeId, PageRange, Profile, RoleStatus};
use wire::message::{Frame, GroupBody, Hello, Open, Page, PeerMessage, Record, Reserve, SessionId, Write};

use super::*;
use crate::outbox::{Outbox, Peer};
use crate::pace::Pace;
use crate::{Limits, Now, Rules, Timing};

const PRIMARIES: [RoleIndex; 2] = [RoleIndex(0), RoleIndex(1)];

/// The first parity of a group of two data roles, and what it acts in.
struct Stage {
    parity: Parity,
    view: GroupView,
    timing: Timing,
    limits: Limits,
    catalog: Catalog,
    quotas: store::Quotas,
    pace: Pace,
    out: Outbox,
    now: u64,
}

/// A group of two data roles and two parities.
fn placed() -> GroupView {
    let hosts: Vec<HostId> = (0..4).map(host).collect();
    place(Profile::rs(2, 2).unwrap(), &hosts, 1).unwrap().remove(0)
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

impl Stage {
    fn new() -> Self {
        let mut stage = Self::of(placed());
        for role in PRIMARIES {
            stage.hear(role, GroupBody::Reserve(Reserve { term: Term(1), run: 15 }));
        }
        stage
    }

    /// The first parity of `view`, or its learner.
    fn of(view: GroupView) -> Self {
        Self::at(RoleIndex(2), view)
    }

    /// The parity of `view` that has this role, or its learner.
    fn at(role: RoleIndex, view: GroupView) -> Self {
        let config = StoreConfig {
            cluster: ClusterId(1),
            area_limit_bytes: 4 * EXTENT_BYTES,
            eviction: Eviction::None,
        };
        let member = MemberId { group: view.group, role };
        let learner = || view.learner(member.role).map(|learner| learner.host);
        let here = view.parity_host(member.role).or_else(learner).unwrap();
        let catalog = Catalog::first(Profile::rs(2, 2).unwrap(), 1);
        let (pool, protection) = (&catalog.pools[0], Arc::new(Protection::of(catalog.pools[0].profile)));
        let budget = Budget::new(64 << 20);
        let (config, budget, protection) = (&config, &budget, &protection);
        let means = Means { config, budget, pool, protection, rules: Rules::all() };
        let parity = Parity::new(member, here, view.clone(), means).unwrap();
        Self {
            parity,
            view,
            timing: Timing::from_lease(1_000_000),
            limits: Limits::default(),
            catalog,
            quotas: store::Quotas::new(1),
            pace: Pace::default(),
            out: Outbox::new(types::NodeId(u16::MAX)),
            now: 5_000_000,
        }
    }

    /// A message of the primary of `role`, and what it is answered.
    fn hear(&mut self, role: RoleIndex, body: GroupBody) -> Vec<GroupBody> {
        let host = self.view.data_role(role).unwrap().primary.unwrap();
        self.hear_of(Peer { role, host }, body)
    }

    fn hear_of(&mut self, from: Peer, body: GroupBody) -> Vec<GroupBody> {
        self.act(|parity, context| parity.handle(context, from, body))
            .1
            .into_iter()
            .map(|(_, body)| body)
            .collect()
    }

    /// Lets it do something; to whom it sends what.
    fn act<T>(
        &mut self,
        act: impl FnOnce(&mut Parity, &mut Context<'_>) -> T,
    ) -> (T, Vec<(RoleIndex, GroupBody)>) {
        let mut context = Context {
            now: Now { time: Time(self.now), unix: UnixSeconds(1000) },
            timing: &self.timing,
            limits: &self.limits,
            rules: Rules::all(),
            secret: &const { crate::Secret::known_to_all() },
            catalog: &self.catalog,
            edition: 1,
            quotas: &self.quotas,
            pace: &mut self.pace,
            out: &mut self.out,
        };
        let result = act(&mut self.parity, &mut context);
        self.parity.check_invariants();
        let sent = self.out.messages.drain(..).map(|(_, message)| match message {
            PeerMessage::Group(message) => (message.to, message.body),
            other => panic!("not expected here: {other:?}"),
        });
        (result, sent.collect())
    }

    /// The next view, changed like this.
    fn adopt(&mut self, change: impl FnOnce(&mut GroupView)) {
        change(&mut self.view);
        self.view.version = self.view.version.next();
        self.parity.adopt(&self.view);
        self.parity.check_invariants();
    }

    /// Why somebody was accused last.
    fn accused(&mut self) -> Option<Impossible> {
        self.out.accusations.pop().map(|(_, why)| why)
    }

    fn frame(&mut self, role: RoleIndex, committed: u64, records: Vec<Record>) -> Vec<GroupBody> {
        let (sent_at, wall, committed) = (Time(77), UnixSeconds(1000), Seq(committed));
        self.hear(role, GroupBody::Frame(Frame { term: Term(1), sent_at, wall, committed, records }))
    }

    fn byte(&self) -> u8 {
        self.parity.area().bytes(0, 1)[0]
    }

    /// The same, if there is memory for it.
    fn byte_or_none(&self) -> Option<u8> {
        self.parity.area().covers(0, 1).then(|| self.byte())
    }

    fn received(&self, role: RoleIndex) -> (u64, u64) {
        let stream = &self.parity.streams()[usize::from(role.0)];
        (stream.received().0, stream.applied().0)
    }
}

/// Record `seq` adds `byte` to the first byte of the area.
fn record(seq: u64, byte: u8) -> Record {
    let write = Write::new(Addr::from_byte(0), Bytes::copy_from_slice(&[byte; 64]));
    Record { seq: Seq(seq), writes: smallvec![write], ops: Default::default() }
}

fn acked(answers: &[GroupBody]) -> Option<u64> {
    match answers {
        [GroupBody::Ack(ack)] if ack.echo == Time(77) => Some(ack.received.0),
        _ => None,
    }
}

#[test]
fn records_are_kept_and_acknowledged_at_once_and_applied_when_they_are_committed() {
    let mut stage = Stage::new();
    assert_eq!(acked(&stage.frame(PRIMARIES[0], 0, vec![record(1, 5), record(2, 6)])), Some(2));
    assert_eq!((stage.received(PRIMARIES[0]), stage.byte()), ((2, 0), 0));
    assert_eq!(acked(&stage.frame(PRIMARIES[0], 1, vec![])), Some(2));
    assert_eq!((stage.received(PRIMARIES[0]), stage.byte()), ((2, 1), 5), "its weight in the first row is 1");
}

#[test]
fn a_role_weighs_in_each_row_what_the_code_says() {
    for row in 0..2 {
        let mut stage = Stage::at(RoleIndex(2 + row), placed());
        stage.hear(PRIMARIES[1], GroupBody::Reserve(Reserve { term: Term(1), run: 15 }));
        stage.frame(PRIMARIES[1], 0, vec![record(1, 5)]);
        stage.frame(PRIMARIES[1], 1, vec![]);
        let mut expected = [0];
        codec::mul_add(
            &mut expected,
            Protection::of(stage.catalog.pools[0].profile).code().coefficient(row.into(), 1),
            &[5],
        )
        .unwrap();
        assert_eq!(stage.byte(), expected[0], "row {row}");
    }
}

#[test]
fn a_record_that_comes_twice_counts_once() {
    let mut stage = Stage::new();
    stage.frame(PRIMARIES[0], 0, vec![record(1, 5)]);
    assert_eq!(acked(&stage.frame(PRIMARIES[0], 1, vec![record(1, 5)])), Some(1));
    assert_eq!(stage.byte(), 5);
}

#[test]
fn after_a_gap_the_primary_is_told_where_to_go_on() {
    let mut stage = Stage::new();
    let answers = stage.frame(PRIMARIES[0], 0, vec![record(3, 5)]);
    let [GroupBody::Welcome(welcome)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((welcome.received, stage.received(PRIMARIES[0])), (Seq(0), (0, 0)));
}

#[test]
fn a_fenced_term_is_rejected_and_changes_nothing() {
    let mut stage = Stage::new();
    stage.parity.fence(Time(0), PRIMARIES[0], Term(2), Epoch(1));
    let answers = stage.frame(PRIMARIES[0], 0, vec![record(1, 5)]);
    assert!(matches!(&answers[..], [GroupBody::Reject(reject)] if reject.fence == Term(2)), "{answers:?}");
    assert_eq!(stage.received(PRIMARIES[0]), (0, 0));
    let hello = GroupBody::Hello(Hello { term: Term(2), committed: Seq(0) });
    assert!(matches!(&stage.hear(PRIMARIES[0], hello)[..], [GroupBody::Welcome(_)]));
}

#[test]
fn a_commit_index_beyond_what_is_here_is_believed_by_nobody() {
    let mut stage = Stage::new();
    assert_eq!(stage.frame(PRIMARIES[0], 9, vec![]), []);
    let why = stage.out.accusations.pop().map(|(_, why)| why);
    assert_eq!(why, Some(Impossible::Committed { committed: Seq(9), received: Seq(0) }));
}

#[test]
fn a_record_for_a_place_that_was_never_reserved_is_believed_by_nobody() {
    let mut stage = Stage::new();
    let mut far = record(1, 5);
    far.writes[0].addr = Addr::from_byte(EXTENT_BYTES);
    assert_eq!(stage.frame(PRIMARIES[0], 0, vec![far]), []);
    assert_eq!(stage.out.accusations.pop().map(|(_, why)| why), Some(Impossible::Place { seq: Seq(1) }));
    assert_eq!(stage.received(PRIMARIES[0]), (0, 0));
}

#[test]
fn what_is_left_of_a_session_is_the_sum_without_the_other_roles_at_one_point_of_their_streams() {
    let mut stage = Stage::new();
    for (role, byte) in PRIMARIES.into_iter().zip([5, 9]) {
        stage.frame(role, 0, vec![record(1, byte)]);
        stage.frame(role, 1, vec![]);
    }
    let session = SessionId { role: PRIMARIES[0], term: Term(1), number: 1 };
    let pages = PageRange { first: 0, count: 1 };
    let open = GroupBody::Open(Open { session, pages, committed: Seq(1) });
    assert!(matches!(&stage.hear(PRIMARIES[0], open)[..], [GroupBody::Opened(_)]));
    let mut bytes = vec![0; pages.len_bytes()];
    bytes[..64].fill(9);
    let page =
        Page { session, term: Term(1), committed: Seq(1), bytes: Some(bytes.into()), wrong: smallvec![] };
    let answers = stage.hear(PRIMARIES[1], GroupBody::Page(page.into()));
    let [GroupBody::Residual(residual)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((residual.bytes[0], residual.lost.as_slice()), (5, &[PRIMARIES[0]][..]));
    assert_eq!(stage.parity.session_bytes(), 0, "the session is over");
}
