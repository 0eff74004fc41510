//! Stories of one primary with two parities: a state, one event, the exact list of what it wants done.

mod hand_over;
mod lessons;
mod parities;
mod quotas;
mod release;
mod repair;
mod scans;
mod sessions;

use std::sync::Arc;

use bytes::Bytes;
use cluster::Protection;
use cluster::place;
use store::{Budget, Eviction, StoreConfig};
use types::op::{Expiry, Get, Key, Op, Outcome, Request, Store, StoreMode};
use types::{
    Catalog, ClusterId, EXTENT_BYTES, Epoch, GroupView, HostId, Incarnation, KeyHash, NodeId, Profile,
    RoleIndex, Seq, Term, Time, UnixSeconds, ViewVersion,
};
use wire::message::{Ack, GroupBody, LearnPart, PeerMessage, Reserved, ToCoordinator, Welcome};

use super::*;
use crate::host::Token;
use crate::outbox::{Outbox, Peer, ReplyTo};
use crate::pace::Pace;
use crate::{Impossible, Limits, Now, Rules, Timing};

const LEASE_US: u64 = 1_000_000;
const PARITIES: [RoleIndex; 2] = [RoleIndex(2), RoleIndex(3)];

/// A primary, and what it acts in.
struct Stage {
    primary: Option<Primary>,
    view: GroupView,
    now: u64,
    timing: Timing,
    limits: Limits,
    catalog: Catalog,
    quotas: store::Quotas,
    edition: u64,
    protection: Arc<Protection>,
    pace: Pace,
    out: Outbox,
    budget: Budget,
    /// What was sent and reported by the newest act, in full.
    sent: Vec<(RoleIndex, GroupBody)>,
    reported: Vec<ToCoordinator>,
}

/// What it wants done, by whom it concerns.
#[derive(Debug, PartialEq)]
enum Done {
    Sends(RoleIndex, &'static str),
    Reports(&'static str),
    Replies(u64, Outcome),
    Accuses(NodeId, Impossible),
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn config() -> StoreConfig {
    StoreConfig { cluster: ClusterId(1), area_limit_bytes: 4 * EXTENT_BYTES, eviction: Eviction::None }
}

fn name_of(body: &GroupBody) -> &'static str {
    match body {
        GroupBody::Hello(_) => "Hello",
        GroupBody::Frame(frame) if frame.records.is_empty() => "Frame",
        GroupBody::Frame(_) => "records",
        GroupBody::Reserve(_) => "Reserve",
        GroupBody::FetchIndex(_) => "FetchIndex",
        GroupBody::Open(_) => "Open",
        GroupBody::Read(_) => "Read",
        GroupBody::Page(_) => "Page",
        GroupBody::Abort(_) => "Abort",
        GroupBody::Learn(learn) => match learn.part {
            LearnPart::Begin { .. } => "Begin",
            LearnPart::Run { .. } => "Run",
            LearnPart::Segment { .. } => "Segment",
            LearnPart::End { .. } => "End",
            LearnPart::Resume => "Resume",
            LearnPart::Gone => "Gone",
        },
        other => panic!("not expected here: {other:?}"),
    }
}

/// What a primary is made with in this context.
fn means<'a>(
    context: &Context<'a>,
    config: &'a StoreConfig,
    budget: &'a Budget,
    protection: &'a Arc<Protection>,
) -> Means<'a> {
    Means { config, budget, pool: &context.catalog.pools[0], protection, rules: context.rules }
}

impl Stage {
    fn new() -> Self {
        let mut stage = Self::empty();
        let config = config();
        let member = MemberId { group: stage.view.group, role: RoleIndex(0) };
        let (view, budget) = (stage.view.clone(), stage.budget.clone());
        let protection = Arc::clone(&stage.protection);
        let here = view.data[0].primary.unwrap();
        let mut context = stage.context();
        let means = means(&context, &config, &budget, &protection);
        let primary = Primary::first(&mut context, member, here, &view, means).unwrap();
        stage.primary = Some(primary);
        stage
    }

    /// A group, and nobody in it.
    fn empty() -> Self {
        let profile = Profile::rs(2, 2).unwrap();
        let hosts: Vec<HostId> = (0..4).map(host).collect();
        Self {
            primary: None,
            view: place(profile, &hosts, 1).unwrap().remove(0),
            now: 10 * LEASE_US,
            timing: Timing::from_lease(LEASE_US),
            limits: Limits::default(),
            catalog: Catalog::first(profile, 1),
            quotas: store::Quotas::new(1),
            edition: 1,
            protection: Arc::new(Protection::of(profile)),
            pace: Pace::default(),
            out: Outbox::new(types::NodeId(u16::MAX)),
            budget: Budget::new(64 << 20),
            sent: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// One whose parities have welcomed it, and which holds a lease.
    fn leased() -> Self {
        let mut stage = Self::new();
        for role in PARITIES {
            stage.hear(
                role,
                GroupBody::Welcome(Welcome { term: Term(1), received: Seq(0), wall: UnixSeconds(0) }),
            );
        }
        stage.flush();
        PARITIES.iter().for_each(|role| drop(stage.ack(*role, 0)));
        assert!(stage.may_serve());
        stage.flush();
        stage
    }

    /// The same, and its first item is committed.
    fn with_item() -> Self {
        let mut stage = Self::leased();
        stage.set(1);
        stage.grow();
        stage.flush();
        PARITIES.iter().for_each(|role| drop(stage.ack(*role, 1)));
        assert_eq!(stage.primary().stream.committed(), Seq(1));
        stage
    }

    fn primary(&self) -> &Primary {
        self.primary.as_ref().unwrap()
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            now: Now { time: Time(self.now), unix: UnixSeconds(1000) },
            timing: &self.timing,
            limits: &self.limits,
            rules: Rules::all(),
            secret: &const { crate::Secret::known_to_all() },
            catalog: &self.catalog,
            edition: self.edition,
            quotas: &self.quotas,
            pace: &mut self.pace,
            out: &mut self.out,
        }
    }

    fn parity_host(&self, role: RoleIndex) -> HostId {
        self.view.parity_host(role).unwrap()
    }

    fn parity(&self, role: RoleIndex) -> Peer {
        Peer { role, host: self.parity_host(role) }
    }

    /// Lets it do something, and says what it wants done.
    fn act<T>(&mut self, act: impl FnOnce(&mut Primary, &mut Context<'_>) -> T) -> (T, Vec<Done>) {
        let mut primary = self.primary.take().unwrap();
        let result = act(&mut primary, &mut self.context());
        primary.check_invariants();
        self.primary = Some(primary);
        (result, self.done())
    }

    fn done(&mut self) -> Vec<Done> {
        let Outbox { messages, coordinator, replies, accusations, .. } = &mut self.out;
        let sent = messages.drain(..).map(|(_, message)| match message {
            PeerMessage::Group(message) => (message.to, message.body),
            other => panic!("not expected here: {other:?}"),
        });
        self.sent = sent.collect();
        let sends = self.sent.iter().map(|(to, body)| Done::Sends(*to, name_of(body)));
        self.reported = coordinator.drain(..).collect();
        let reports = self.reported.iter().map(|message| match message {
            ToCoordinator::Stalled { .. } => Done::Reports("Stalled"),
            ToCoordinator::HandedOver { .. } => Done::Reports("HandedOver"),
            ToCoordinator::FetchView { .. } => Done::Reports("FetchView"),
            ToCoordinator::CaughtUp { .. } => Done::Reports("CaughtUp"),
            ToCoordinator::Repaired { .. } => Done::Reports("Repaired"),
            other => panic!("not expected here: {other:?}"),
        });
        let replies = replies.drain(..).map(|(to, outcome)| match to {
            ReplyTo::Local(Token([token, _])) => Done::Replies(token, outcome),
            other => panic!("not expected here: {other:?}"),
        });
        let accused = accusations.drain(..).map(|(peer, why)| Done::Accuses(peer.node, why));
        sends.chain(reports).chain(replies).chain(accused).collect()
    }

    fn hear(&mut self, role: RoleIndex, body: GroupBody) -> Vec<Done> {
        self.hear_of(self.parity(role), body)
    }

    fn hear_of(&mut self, from: Peer, body: GroupBody) -> Vec<Done> {
        self.act(|primary, context| primary.handle(context, from, body)).1
    }

    /// An acknowledgement of the Frame that was sent now.
    fn ack(&mut self, role: RoleIndex, received: u64) -> Vec<Done> {
        self.ack_of(self.parity(role), received)
    }

    fn ack_of(&mut self, from: Peer, received: u64) -> Vec<Done> {
        let term = self.primary().core().term();
        let ack = Ack { term, received: Seq(received), echo: Time(self.now) };
        self.hear_of(from, GroupBody::Ack(ack))
    }

    /// The next view, changed like this.
    fn adopt(&mut self, change: impl FnOnce(&mut GroupView)) -> Vec<Done> {
        change(&mut self.view);
        self.view.version = self.view.version.next();
        let view = self.view.clone();
        self.act(|primary, context| primary.adopt(context, &view)).1
    }

    fn flush(&mut self) -> Vec<Done> {
        self.act(|primary, context| primary.flush(context)).1
    }

    /// Time has passed since the last batch of events.
    fn tick(&mut self) -> Vec<Done> {
        let tick = |primary: &mut Primary, context: &mut Context<'_>| {
            primary.touch(super::Touched::ByEvents);
            primary.arm(context);
            primary.tick(context);
        };
        self.act(tick).1
    }

    fn may_serve(&self) -> bool {
        self.primary.as_ref().is_some_and(|primary| primary.may_serve(Time(self.now), &self.timing))
    }

    fn submit(&mut self, token: u64, op: Op) -> (Option<Outcome>, Vec<Done>) {
        self.submit_on("k", token, op)
    }

    fn submit_on(&mut self, key: &'static str, token: u64, op: Op) -> (Option<Outcome>, Vec<Done>) {
        let request = Request::on(Key::new(Bytes::from_static(key.as_bytes())).unwrap(), op);
        let hash = KeyHash::of(ClusterId(1), key.as_bytes());
        let deadline = Time(self.now + self.timing.request_deadline_us);
        let pending =
            Pending { reply: ReplyTo::Local(Token([token, 0])), hash, request: request.into(), deadline };
        self.act(|primary, context| primary.submit(context, &pending))
    }

    fn set(&mut self, token: u64) -> (Option<Outcome>, Vec<Done>) {
        self.set_on("k", token, 5)
    }

    fn set_on(&mut self, key: &'static str, token: u64, len_bytes: usize) -> (Option<Outcome>, Vec<Done>) {
        let store = Store {
            mode: StoreMode::Set,
            value: b"value".iter().copied().cycle().take(len_bytes).collect(),
            flags: 0,
            expiry: Expiry::Never,
            compare: None,
            version: None,
            invalidate: false,
            vivify: None,
        };
        self.submit_on(key, token, Op::Store(store))
    }

    /// Both parities grant the first extent.
    fn grow(&mut self) {
        let reserved = Reserved { term: Term(1), run: 0, granted: true };
        for role in PARITIES {
            self.hear(role, GroupBody::Reserved(reserved.clone()));
        }
    }
}

fn to_both(what: &'static str) -> Vec<Done> {
    PARITIES.iter().map(|role| Done::Sends(*role, what)).collect()
}

#[test]
fn it_serves_when_both_parities_have_acknowledged_a_frame() {
    let mut stage = Stage::new();
    assert_eq!(stage.done(), to_both("Hello"));
    let welcome = Welcome { term: Term(1), received: Seq(0), wall: UnixSeconds(0) };
    assert_eq!(stage.hear(PARITIES[0], GroupBody::Welcome(welcome.clone())), []);
    assert_eq!(stage.flush(), [Done::Sends(PARITIES[0], "Frame")], "its Ack is the lease");
    assert_eq!(stage.ack(PARITIES[0], 0), []);
    assert!(!stage.may_serve());
    stage.hear(PARITIES[1], GroupBody::Welcome(welcome));
    assert_eq!(stage.flush(), [Done::Sends(PARITIES[1], "Frame")]);
    stage.ack(PARITIES[1], 0);
    assert!(stage.may_serve());
    stage.now += stage.timing.read_lease_us;
    assert!(!stage.may_serve(), "a lease ends");
}

#[test]
fn a_write_asks_for_an_extent_and_is_answered_when_both_parities_have_it() {
    let mut stage = Stage::leased();
    assert_eq!(stage.set(7), (None, to_both("Reserve")));
    stage.grow();
    assert_eq!(stage.flush(), to_both("records"));
    assert_eq!(stage.ack(PARITIES[0], 1), []);
    let done = stage.ack(PARITIES[1], 1);
    assert!(matches!(&done[..], [Done::Replies(7, Outcome::Stored(_))]), "{done:?}");
    let (read, done) = stage.submit(8, Op::Get(Get::default()));
    assert!(matches!(read, Some(Outcome::Hit(view)) if view.value == "value"), "from the area");
    assert_eq!(done, []);
}

#[test]
fn an_extent_that_a_parity_refuses_fails_the_write() {
    let mut stage = Stage::leased();
    stage.set(7);
    let refused = Reserved { term: Term(1), run: 0, granted: false };
    let done = stage.hear(PARITIES[1], GroupBody::Reserved(refused));
    let full = Outcome::Failed(types::op::Failure::OutOfMemory);
    assert_eq!(done, [Done::Replies(7, full)]);
}

#[test]
fn an_answer_that_rests_on_a_record_waits_for_it() {
    let mut stage = Stage::leased();
    stage.set(7);
    stage.grow();
    let add = |stage: &mut Stage| {
        let store = Store {
            mode: StoreMode::Add,
            value: Bytes::new(),
            flags: 0,
            expiry: Expiry::Never,
            compare: None,
            version: None,
            invalidate: false,
            vivify: None,
        };
        stage.submit(8, Op::Store(store))
    };
    assert_eq!(add(&mut stage), (None, vec![]), "the key is there only once the set is committed");
    stage.flush();
    stage.ack(PARITIES[0], 1);
    let done = stage.ack(PARITIES[1], 1);
    assert!(matches!(&done[..], [Done::Replies(7, _), Done::Replies(8, Outcome::NotStored)]), "{done:?}");
}

#[test]
fn an_ack_of_what_was_never_sent_is_believed_by_nobody() {
    let mut stage = Stage::leased();
    let done = stage.ack(PARITIES[0], 9);
    let node = stage.parity_host(PARITIES[0]).node;
    assert_eq!(done, [Done::Accuses(node, Impossible::Received { received: Seq(9), sent: Seq(0) })]);
}

#[test]
fn one_silent_parity_is_complained_of_once_a_retry_time_out() {
    let mut stage = Stage::leased();
    stage.now += stage.timing.heartbeat_us;
    stage.tick();
    assert_eq!(stage.flush(), to_both("Frame"));
    stage.ack(PARITIES[0], 0);
    stage.now += stage.timing.stall_us;
    assert_eq!(stage.tick(), [Done::Reports("Stalled")]);
    assert_eq!(stage.tick(), []);
    stage.now += stage.timing.retry_us;
    assert!(stage.tick().contains(&Done::Reports("Stalled")));
}

#[test]
fn a_later_term_ends_the_lease_and_the_view_is_asked_for() {
    let mut stage = Stage::leased();
    let reject = GroupBody::Reject(wire::message::Reject { fence: Term(2) });
    assert_eq!(stage.hear(PARITIES[0], reject), [Done::Reports("FetchView")]);
    assert!(!stage.may_serve());
}

#[test]
fn a_primary_that_makes_way_says_so_once_keeps_still_and_goes_on_with_a_new_lease() {
    let mut stage = Stage::leased();
    let since = ViewVersion(stage.view.version.0 + 1);
    let question = Question { since, asked_at: Time(1), epoch: Epoch(1) };
    let ask =
        |stage: &mut Stage| stage.act(|primary, context| primary.hand_over(context, Term(1), question)).1;
    assert_eq!(ask(&mut stage), [], "it has no mirror");
    let mut view = stage.view.clone();
    view.version = since;
    let mirror = types::Learner { role: RoleIndex(0), host: host(3), since, whole: true };
    view.learners.push(mirror);
    stage.view = view.clone();
    stage.act(|primary, context| primary.adopt(context, &view));
    assert_eq!(ask(&mut stage), [Done::Reports("HandedOver")]);
    assert!(!stage.may_serve());
    assert_eq!(stage.tick(), [], "once a question");
    stage.now += stage.timing.read_lease_us;
    stage.tick();
    assert!(!stage.may_serve(), "the old lease is worth nothing");
    assert_eq!(stage.flush(), to_both("Frame"));
    PARITIES.iter().for_each(|role| drop(stage.ack(*role, 0)));
    assert!(stage.may_serve());
}

#[test]
fn a_deposed_primary_knows_the_outcome_of_no_open_write() {
    let mut stage = Stage::leased();
    stage.set(7);
    stage.grow();
    let primary = stage.primary.take().unwrap();
    let waiting = primary.step_down(&mut stage.context());
    assert!(waiting.is_empty());
    assert_eq!(stage.done(), [Done::Replies(7, Outcome::Failed(types::op::Failure::Unknown))]);
}
