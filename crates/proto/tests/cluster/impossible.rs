//! Numbers that no peer can have by the rules: they are not believed, they cost the link, and they are counted. After that the
//! peer is one like any other.

use proto::Impossible;
use smallvec::smallvec;
use types::op::Failure;
use types::{
    Addr, Cohort, Epoch, GroupId, IndexHash, IndexOp, NamespaceId, PageRange, RoleIndex, Seq, Term,
    ViewVersion,
};
use wire::message::*;

use super::*;

const GROUP: GroupId = GroupId(0);
const DATA: RoleIndex = RoleIndex(0);
const PARITY: RoleIndex = RoleIndex(3);

/// A group of a loaded cluster: its first data role's primary, and its first parity.
struct Group {
    cluster: Cluster,
    view: ViewVersion,
    primary: HostId,
    parity: HostId,
}

impl Group {
    fn new() -> Self {
        let mut cluster = Cluster::new(5, "rs(3+2)");
        load(&mut cluster, 60, 0, 0);
        let view = cluster.coordinator.map().unwrap().group(GROUP).unwrap().clone();
        let (primary, parity) = (view.data[0].primary.unwrap(), view.parity[0].unwrap());
        Self { cluster, view: view.version, primary, parity }
    }

    /// What `to` thinks of `message`.
    fn verdict(&mut self, from: HostId, to: HostId, message: PeerMessage) -> Option<Impossible> {
        let now = self.cluster.now;
        let host = self.cluster.hosts.get_mut(&to.node).unwrap();
        host.handle_peer(now, from, message);
        let actions = std::iter::from_fn(|| host.poll_action());
        let closes = actions.filter_map(|action| match action {
            Action::Close { peer, why } => Some((peer, why)),
            _ => None,
        });
        let closes: Vec<(HostId, Impossible)> = closes.collect();
        assert!(closes.iter().all(|(peer, _)| *peer == from) && closes.len() <= 1, "{closes:?}");
        closes.first().map(|(_, why)| *why)
    }

    fn parity_says(&mut self, body: GroupBody) -> Option<Impossible> {
        let message = GroupMessage { group: GROUP, view: self.view, from: PARITY, to: DATA, body };
        self.verdict(self.parity, self.primary, PeerMessage::Group(message))
    }

    fn primary_says(&mut self, body: GroupBody) -> Option<Impossible> {
        let message = GroupMessage { group: GROUP, view: self.view, from: DATA, to: PARITY, body };
        self.verdict(self.primary, self.parity, PeerMessage::Group(message))
    }

    fn committed(&self) -> Seq {
        let mut primaries = self.cluster.hosts[&self.primary.node].primaries();
        primaries.find(|p| p.member.group == GROUP && p.member.role == DATA).unwrap().committed
    }

    /// Another link between the two, after which everything is as it was.
    fn relink_and_check(&mut self) {
        let now = self.cluster.now;
        let (primary, parity) = (self.primary, self.parity);
        for (here, there) in [(primary, parity), (parity, primary)] {
            let host = self.cluster.hosts.get_mut(&here.node).unwrap();
            host.link_down(now, there);
            host.link_up(now, there);
        }
        self.cluster.settle();
        load(&mut self.cluster, 60, 1, 1);
        check(&mut self.cluster, 60, 1, 2);
    }
}

/// Whether this is the verdict that a message deserves.
type Expected = fn(&Impossible) -> bool;

const FAR: Seq = Seq(1 << 40);
const LATE: Time = Time(1 << 60);

fn ack(received: Seq, echo: Time) -> GroupBody {
    GroupBody::Ack(Ack { term: Term(1), received, echo })
}

fn frame(committed: Seq, records: Vec<Record>) -> GroupBody {
    GroupBody::Frame(Frame {
        term: Term(1),
        sent_at: Time(0),
        wall: types::UnixSeconds(0),
        committed,
        records,
    })
}

fn open(pages: PageRange, committed: Seq) -> GroupBody {
    let session = SessionId { role: DATA, term: Term(1), number: 1 };
    GroupBody::Open(Open { session, pages, committed })
}

#[test]
fn an_ack_of_what_was_never_sent_is_not_believed_and_costs_the_link() {
    let mut group = Group::new();
    let committed = group.committed();
    let why = group.parity_says(ack(FAR, Time(0)));
    assert!(matches!(why, Some(Impossible::Received { received: FAR, .. })), "{why:?}");
    let stats = group.cluster.hosts[&group.primary.node].stats();
    assert_eq!(stats.impossible_messages, 1);
    // Nothing more of it is believed, neither that nor anything else.
    assert_eq!(group.parity_says(ack(FAR, Time(0))), None);
    assert_eq!(group.parity_says(ack(committed.next(), Time(0))), None);
    assert_eq!(group.committed(), committed);
    group.relink_and_check();
}

#[test]
fn what_a_parity_cannot_have_costs_it_the_link() {
    let cases: [(GroupBody, Expected); 4] = [
        (ack(Seq(1), LATE), |why| matches!(why, Impossible::Echo { echo: LATE, .. })),
        (GroupBody::Welcome(Welcome { term: Term(1), received: FAR, wall: types::UnixSeconds(0) }), |why| {
            matches!(why, Impossible::Received { .. })
        }),
        (
            GroupBody::Welcome(Welcome { term: Term(1), received: Seq(0), wall: types::UnixSeconds(0) }),
            |why| matches!(why, Impossible::Forgotten { received: Seq(0), .. }),
        ),
        (ack(FAR, LATE), |why| matches!(why, Impossible::Received { .. })),
    ];
    for (body, expected) in cases {
        let mut group = Group::new();
        let why = group.parity_says(body);
        assert!(why.as_ref().is_some_and(expected), "{why:?}");
        group.relink_and_check();
    }
}

#[test]
fn what_a_primary_cannot_have_costs_it_the_link() {
    let next = Group::new().committed().next();
    let op = |op| Record { seq: next, writes: smallvec![], ops: smallvec![op] };
    let write = |addr: u32| {
        let write = Write::new(Addr(addr), Bytes::from_static(b"delta"));
        Record { seq: next, writes: smallvec![write], ops: smallvec![] }
    };
    let wild = IndexOp::Insert { hash: IndexHash(1), addr: Addr(u32::MAX), cohort: Cohort::default() };
    let cases: [(GroupBody, Expected); 8] = [
        (GroupBody::Hello(Hello { term: Term(1), committed: FAR }), is_committed),
        (frame(FAR, vec![]), is_committed),
        (frame(next.next(), vec![op(IndexOp::Flush { namespace: NamespaceId::DEFAULT })]), is_committed),
        (frame(Seq(0), vec![op(wild)]), |why| matches!(why, Impossible::Place { .. })),
        (frame(Seq(0), vec![write(u32::MAX)]), |why| matches!(why, Impossible::Place { .. })),
        (frame(Seq(0), vec![write(7 << 17)]), |why| matches!(why, Impossible::Place { .. })),
        (open(PageRange { first: 0, count: 1 }, FAR), is_committed),
        (open(PageRange { first: 1 << 22, count: 1 }, Seq(1)), |why| *why == Impossible::Pages),
    ];
    for (body, expected) in cases {
        let mut group = Group::new();
        let why = group.primary_says(body.clone());
        assert!(why.as_ref().is_some_and(expected), "{body:?}: {why:?}");
        group.relink_and_check();
    }
}

fn is_committed(why: &Impossible) -> bool {
    matches!(why, Impossible::Committed { .. })
}

#[test]
fn a_term_that_the_senders_view_cannot_have_costs_the_link() {
    let hello = |term| GroupBody::Hello(Hello { term: Term(term), committed: Seq(0) });
    let message = |view: u64, from: RoleIndex, term| {
        let view = ViewVersion(view);
        PeerMessage::Group(GroupMessage { group: GROUP, view, from, to: PARITY, body: hello(term) })
    };
    let is_term = |why: Option<Impossible>| matches!(why, Some(Impossible::Term { .. }));
    let mut group = Group::new();
    let (view, primary, parity) = (group.view.0, group.primary, group.parity);
    // A view that this node has not heard of may have begun one more term for each change, and no more.
    assert_eq!(group.verdict(primary, parity, message(view + 3, DATA, 4)), None);
    for (view, role, term) in
        [(view, DATA, 2), (view, DATA, u32::MAX / 2), (view + 3, DATA, 5), (view, RoleIndex(4), 1)]
    {
        let mut group = Group::new();
        assert!(is_term(group.verdict(primary, parity, message(view, role, term))), "{view} {term}");
        group.relink_and_check();
    }
    // In one view a role has one primary.
    let other = group.cluster.hosts.keys().find(|node| ![primary.node, parity.node].contains(node));
    let other = host_id(other.unwrap().0);
    assert!(is_term(group.verdict(other, parity, message(view, DATA, 1))));
}

#[test]
fn an_answer_to_what_was_never_asked_costs_the_link() {
    let mut group = Group::new();
    let (primary, parity) = (group.primary, group.parity);
    let answer = |id| PeerMessage::Answer(Answer { id, outcome: Outcome::Miss });
    // One that comes too late is nobody's fault.
    assert_eq!(group.verdict(parity, host_id(0), answer(0)), None);
    let id = u64::MAX;
    assert_eq!(group.verdict(parity, primary, answer(id)), Some(Impossible::Answer { id }));
    group.relink_and_check();
}

/// Six nodes of 3+2, one of which dies: stand-ins take over, and learners learn.
#[test]
fn a_lie_in_the_middle_of_a_recovery_costs_the_link_and_no_data() {
    let lies: [(Lie, Expected); 7] = [
        (|body| alter_index(body, |part| part.bytes = Bytes::from_static(b"no replica")), is_index),
        (|body| alter_index(body, |part| (part.bytes, part.last) = (Bytes::new(), false)), is_index),
        (|body| alter_page(body, |bytes| bytes.slice(1..)), is_pages),
        (|body| alter_residual(body, |residual| residual.lost.clear()), is_pages),
        (|body| alter_residual(body, |residual| residual.bytes = Bytes::new()), is_pages),
        (|body| alter_hello(body), |why| matches!(why, Impossible::Applied { applied: FAR, .. })),
        (|body| alter_learned(body), |why| matches!(why, Impossible::Part { number: u32::MAX, .. })),
    ];
    for (number, (lie, expected)) in lies.into_iter().enumerate() {
        let mut cluster = Cluster::new(6, "rs(3+2)");
        load(&mut cluster, 120, 0, 0);
        cluster.lie = Some(lie);
        cluster.kill(5);
        cluster.advance(4000);
        assert!(cluster.verdict.as_ref().is_some_and(expected), "lie {number}: {:?}", cluster.verdict);
        check(&mut cluster, 120, 0, 1);
        load(&mut cluster, 120, 1, 2);
        cluster.advance(2000);
        let map = cluster.coordinator.map().unwrap();
        assert!(
            map.groups.iter().all(|view| view.parity.iter().all(Option::is_some)),
            "lie {number}: {map:?}"
        );
        check(&mut cluster, 120, 1, 3);
    }
}

fn is_index(why: &Impossible) -> bool {
    *why == Impossible::Index
}

fn is_pages(why: &Impossible) -> bool {
    *why == Impossible::Pages
}

fn alter_index(body: &mut GroupBody, alter: fn(&mut IndexPart)) -> bool {
    let GroupBody::IndexPart(part) = body else { return false };
    alter(part);
    true
}

fn alter_page(body: &mut GroupBody, alter: fn(&Bytes) -> Bytes) -> bool {
    let GroupBody::Page(page) = body else { return false };
    let Some(bytes) = &mut page.bytes else { return false };
    *bytes = alter(bytes);
    true
}

fn alter_residual(body: &mut GroupBody, alter: fn(&mut Residual)) -> bool {
    let GroupBody::Residual(residual) = body else { return false };
    alter(residual);
    true
}

fn alter_hello(body: &mut GroupBody) -> bool {
    let GroupBody::LearnHello(hello) = body else { return false };
    hello.applied = Some(FAR);
    true
}

fn alter_learned(body: &mut GroupBody) -> bool {
    let GroupBody::Learned(learned) = body else { return false };
    learned.number = u32::MAX;
    true
}

#[test]
fn what_a_node_cannot_tell_its_coordinator_costs_the_connection() {
    let mut group = Group::new();
    let (now, from) = (group.cluster.now, group.parity);
    let fenced = ToCoordinator::Fenced {
        group: GROUP,
        role: DATA,
        term: Term(1),
        parity: PARITY,
        received: Seq(1),
        applied: Seq(2),
        quiet_us: 0,
        epoch: Epoch(1),
    };
    let handed_over = ToCoordinator::HandedOver {
        group: GROUP,
        role: DATA,
        term: Term(1),
        since: ViewVersion(1),
        asked_at: LATE,
        epoch: Epoch(1),
    };
    for message in [fenced, handed_over] {
        group.cluster.coordinator.handle(now, from, message);
        let action = group.cluster.coordinator.poll_action();
        assert!(matches!(action, Some(CoordinatorAction::Close { peer, .. }) if peer == from), "{action:?}");
        assert_eq!(group.cluster.coordinator.poll_action(), None);
    }
}

/// A node that sends all of its clients' requests on, and hears nothing of them.
#[test]
fn requests_that_were_sent_on_are_bounded_and_what_is_beyond_is_busy() {
    let mut cluster = Cluster::with_limits(5, Limits { forwarded_requests: 7, ..Limits::default() });
    let now = cluster.now;
    let keys: Vec<String> = (0..200).map(|key| format!("key-{key}")).collect();
    let host = cluster.hosts.get_mut(&NodeId(0)).unwrap();
    let mut busy = 0;
    for (token, key) in (1000..).map(|n| Token([n, 0])).zip(&keys) {
        let place = host.locate(key.as_bytes());
        match host.submit(now, token, place, set(key, b"value")) {
            Submitted::Done(Outcome::Failed(Failure::Busy)) => busy += 1,
            Submitted::Done(other) => panic!("{other:?}"),
            Submitted::Pending => {}
        }
    }
    assert!(busy > 100, "{busy}");
    assert!(host.routed_requests() <= 7, "{}", host.routed_requests());
    cluster.settle();
    assert_eq!(cluster.hosts[&NodeId(0)].routed_requests(), 0);
    load(&mut cluster, 20, 1, 0);
}

/// A graph as a member asks for it: one chunk of role 1, by a star of the others, to the asker.
mod graphs {
    use wire::graph::*;

    use super::*;

    type Spoil = fn(&mut Start);

    fn run_of(asker: HostId) -> Run {
        Run { asker: Asker::of(asker), number: 1 }
    }

    fn step(at: Option<HostId>, inputs: Vec<Port>, outputs: Vec<Port>) -> Step {
        let matrix = vec![1; inputs.len() * outputs.len()].into();
        Step { at: at.map(|host| host.node), start: 0, len: 4096, inputs, outputs, matrix }
    }

    fn start(asker: HostId, helper: HostId, view: ViewVersion) -> Start {
        let owner = types::MemberId { group: GROUP, role: DATA };
        let object =
            types::ObjectId { owner, term: Term(1), number: 1, salt: 1, namespace: NamespaceId::DEFAULT };
        Start {
            run: run_of(asker),
            group: GROUP,
            view,
            deadline_us: 1_000_000,
            slice_len: 4096,
            window: 4,
            class: Class::Repair,
            execution: Execution::Coherent,
            strand: vec![Part { chunk: types::ChunkId { object, stripe: 0 }, offset: 0, len: 4096 }],
            steps: vec![
                step(Some(helper), vec![Port::Chunk(RoleIndex(0))], vec![Port::Stream(0)]),
                step(None, vec![Port::Stream(0)], vec![Port::Chunk(RoleIndex(1))]),
            ],
            edges: vec![Edge { from: 0, to: 1 }],
        }
    }

    /// What the helper thinks of a graph that was spoiled on purpose.
    fn verdict(spoil: impl Fn(&mut Start)) -> Option<Impossible> {
        let mut group = Group::new();
        let (asker, helper) = (group.parity, group.primary);
        let mut start = start(asker, helper, group.view);
        spoil(&mut start);
        let message = GraphMessage::Start(Box::new(start));
        let verdict = group.verdict(asker, helper, PeerMessage::Graph(Box::new(message)));
        let load = group.cluster.hosts[&helper.node].graph_stats().load;
        assert_eq!((load.runs, load.reserved_bytes), (0, 0), "nothing is begun: the chunk is not there");
        if verdict.is_some() {
            group.relink_and_check();
        }
        verdict
    }

    #[test]
    fn graphs_that_are_none_cost_the_link() {
        let spoils: [(&str, Spoil); 20] = [
            ("somebody else's", |it| it.run.asker = Asker(it.run.asker.0 ^ 1)),
            ("a cycle", |it| it.edges[0] = Edge { from: 1, to: 0 }),
            ("an edge to itself", |it| it.edges[0].to = 0),
            ("an edge to nowhere", |it| it.edges[0].to = 9),
            ("an edge without ends", |it| it.edges.push(Edge { from: 0, to: 1 })),
            ("no steps", |it| (it.steps, it.edges) = (Vec::new(), Vec::new())),
            ("no chunks", |it| it.strand.clear()),
            ("a role that is read and is none", |it| it.steps[0].inputs[0] = Port::Chunk(RoleIndex(5))),
            ("a role that is made and is none", |it| it.steps[1].outputs[0] = Port::Chunk(RoleIndex(5))),
            ("a chunk that the helper writes", |it| {
                it.steps[0].outputs.push(Port::Chunk(RoleIndex(2)));
                it.steps[0].matrix = vec![1; 2].into();
            }),
            ("a table too long", |it| it.steps[0].matrix = vec![1; 2].into()),
            ("a table too short", |it| it.steps[0].matrix = Bytes::new()),
            ("coefficients of zero", |it| it.steps[0].matrix = vec![0].into()),
            ("a range beyond the chunk", |it| it.steps.iter_mut().for_each(|step| step.start = 1)),
            ("a range that wraps", |it| it.steps.iter_mut().for_each(|step| step.start = u32::MAX)),
            ("a part beyond any chunk", |it| it.strand[0].offset = u32::MAX),
            ("slices of nothing", |it| it.slice_len = 0),
            ("slices too long", |it| it.slice_len = (1 << 20) + 1),
            ("a window too wide", |it| it.window = 17),
            ("no end", |it| it.deadline_us = u64::MAX),
        ];
        for (what, spoil) in spoils {
            assert_eq!(verdict(spoil), Some(Impossible::Graph), "{what}");
        }
    }

    #[test]
    fn too_many_steps_and_edges_cost_the_link() {
        let many = |it: &mut Start| it.steps = vec![it.steps[0].clone(); MAX_STEPS + 1];
        assert_eq!(verdict(many), Some(Impossible::Graph));
        let many = |it: &mut Start| it.edges = vec![it.edges[0]; MAX_EDGES + 1];
        assert_eq!(verdict(many), Some(Impossible::Graph));
    }

    #[test]
    fn a_graph_as_it_should_be_is_believed() {
        assert_eq!(verdict(|_| {}), None);
    }

    #[test]
    fn who_is_no_asker_sends_nothing_as_one() {
        let mut group = Group::new();
        let (liar, helper) = (group.parity, group.primary);
        let run = run_of(helper);
        let seats = Seats { from: Seat::Asker, to: Seat::Node };
        let lies = [
            GraphMessage::Cancel(Cancel { run }),
            GraphMessage::Probe(Probe { run }),
            GraphMessage::Credit(Credit { run, seats, edge: 0, below: 1 }),
            GraphMessage::AskCredit(AskCredit { run, seats, edge: 0 }),
        ];
        for lie in lies {
            let verdict = group.verdict(liar, helper, PeerMessage::Graph(Box::new(lie.clone())));
            assert_eq!(verdict, Some(Impossible::Graph), "{lie:?}");
            group.relink_and_check();
        }
    }
}
