//! Messages in a few words, for traces, and in a few numbers, for digests.

use std::fmt;

use types::ChunkId;
use types::op::{Failure, Op, Outcome};
use wire::graph::{GraphMessage, News, Run, SlowLink};
use wire::message::{FromCoordinator, GroupBody, GroupMessage, LearnPart, PeerMessage, ToCoordinator};
use wire::object::ObjectMessage;

use rng::scatter;

/// A running digest of everything that happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    pub(crate) fn mix(&mut self, number: u64) {
        self.0 = scatter(self.0.rotate_left(5) ^ number);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What identifies a peer message well enough to tell two runs apart.
pub(crate) fn number_of(message: &PeerMessage) -> u64 {
    match message {
        PeerMessage::Forward(forward) => forward.id << 8 | 1,
        PeerMessage::Answer(answer) => answer.id << 8 | 2,
        PeerMessage::Object(message) => object_number(message),
        PeerMessage::Graph(message) => graph_number(message),
        PeerMessage::Group(message) => {
            let (kind, number) = body_number(&message.body);
            let ends = u64::from(message.from.0) << 8 | u64::from(message.to.0);
            number << 24 ^ u64::from(message.group.0) << 40 ^ message.view.0 << 48 ^ ends << 8 ^ kind
        }
    }
}

/// What identifies a message about chunks.
fn object_number(message: &ObjectMessage) -> u64 {
    let of_chunk =
        |chunk: &ChunkId, number: u64| chunk.object.number << 32 ^ u64::from(chunk.stripe) ^ number << 20;
    match message {
        ObjectMessage::Put(b) => 30 ^ of_chunk(&b.chunk, b.attempt) << 8 ^ u64::from(b.row) << 56,
        ObjectMessage::Placed(b) => 31 ^ of_chunk(&b.chunk, b.attempt) << 8,
        ObjectMessage::Refused(b) => 32 ^ of_chunk(&b.chunk, b.attempt) << 8,
        ObjectMessage::Keep(b) => 33 ^ b.number << 8 ^ (b.objects.len() as u64) << 48,
        ObjectMessage::Free(b) => 34 ^ b.number << 8 ^ (b.objects.len() as u64) << 48,
        ObjectMessage::Recall(b) => 43 ^ b.number << 8,
        ObjectMessage::Heard(b) => 35 ^ b.number << 8,
        ObjectMessage::Ask(b) => 36 ^ (b.objects.len() as u64) << 8 ^ u64::from(b.owner.group.0) << 32,
        ObjectMessage::Verdicts(b) => 37 ^ (b.verdicts.len() as u64) << 8 ^ u64::from(b.term.0) << 32,
        ObjectMessage::Fetch(b) => 38 ^ of_chunk(&b.chunk, b.number) << 8 ^ u64::from(b.first) << 56,
        ObjectMessage::Cell(b) => 39 ^ of_chunk(&b.chunk, b.number) << 8 ^ u64::from(b.row) << 56,
        ObjectMessage::Missing(b) => 40 ^ of_chunk(&b.chunk, b.number) << 8,
        ObjectMessage::List(b) => 41 ^ b.number << 8,
        ObjectMessage::Listed(b) => 42 ^ b.number << 8 ^ (b.chunks.len() as u64) << 48,
        ObjectMessage::PutAs(b) => 52 ^ of_chunk(&b.chunk, b.attempt) << 8,
        ObjectMessage::PutShared(b) => {
            53 ^ of_chunk(&b.put.chunk, b.put.attempt) << 8 ^ u64::from(b.put.row) << 56
        }
        ObjectMessage::PutSum(b) => 54 ^ of_chunk(&b.chunk, b.attempt) << 8 ^ u64::from(b.row) << 56,
        ObjectMessage::Product(b) => {
            let part = u64::from(b.of.0) << 4 ^ u64::from(b.row);
            55 ^ b.attempt << 8 ^ u64::from(b.writer.node.0) << 40 ^ part << 56
        }
        ObjectMessage::Lend(b) => {
            let tries = b.shares.iter().fold(0, |sum, share| sum ^ share.attempt);
            56 ^ tries << 8 ^ u64::from(b.row) << 56
        }
        ObjectMessage::Evict(b) => 44 ^ (b.objects.len() as u64) << 48,
    }
}

/// What identifies a message of a graph.
fn graph_number(message: &GraphMessage) -> u64 {
    let of = |kind: u64, run: &Run, number: u32| kind ^ run.number << 8 ^ u64::from(number) << 40;
    match message {
        GraphMessage::Start(b) => of(45, &b.run, b.slice_len),
        GraphMessage::Slice(b) => of(46, &b.run, b.edge << 12 ^ b.index),
        GraphMessage::Credit(b) => of(47, &b.run, b.edge << 12 ^ b.below),
        GraphMessage::AskCredit(b) => of(48, &b.run, b.edge),
        GraphMessage::Cancel(b) => of(49, &b.run, 0),
        GraphMessage::Probe(b) => of(50, &b.run, 0),
        GraphMessage::Report(b) => of(51, &b.run, u32::from(matches!(b.news, News::Done))),
        GraphMessage::SlowLinks(b) => {
            let link = |sum: u64, link: &SlowLink| {
                sum.rotate_left(9) ^ u64::from(link.half_doublings) << 16 ^ u64::from(link.from.0)
            };
            57 ^ b.slow.iter().fold(0, link) << 8
        }
    }
}

fn body_number(body: &GroupBody) -> (u64, u64) {
    match body {
        GroupBody::Hello(b) => (3, b.committed.0),
        GroupBody::Welcome(b) => (4, b.received.0),
        GroupBody::Frame(b) => {
            // Lengths stand for contents: to go over all bytes of all records would be dear.
            let bytes: usize = b.records.iter().flat_map(|r| &r.writes).map(|w| w.delta.len()).sum();
            let first = b.records.first().map_or(0, |r| r.seq.0);
            (
                5,
                b.committed.0
                    ^ first << 12
                    ^ (b.records.len() as u64) << 24
                    ^ (bytes as u64) << 32
                    ^ b.sent_at.0,
            )
        }
        GroupBody::Ack(b) => (6, b.received.0 ^ b.echo.0 << 16),
        GroupBody::Reject(b) => (7, u64::from(b.fence.0)),
        GroupBody::Reserve(b) => (8, u64::from(b.run)),
        GroupBody::Reserved(b) => (9, u64::from(b.run) << 1 | u64::from(b.granted)),
        GroupBody::FetchIndex(b) => (10, u64::from(b.part)),
        GroupBody::IndexPart(b) => (11, u64::from(b.part) ^ (b.bytes.len() as u64) << 16),
        GroupBody::Open(b) => (12, b.session.number ^ b.committed.0 << 16),
        GroupBody::Opened(b) => (13, b.session.number),
        GroupBody::Read(b) => (14, b.session.number ^ u64::from(b.pages.first) << 16),
        GroupBody::Page(b) => {
            (15, b.session.number ^ b.committed.0 << 16 ^ u64::from(b.bytes.is_some()) << 60)
        }
        GroupBody::Residual(b) => (16, b.session.number ^ (b.lost.len() as u64) << 60),
        GroupBody::Abort(b) => (17, b.session.number),
        GroupBody::LearnHello(b) => (18, u64::from(b.lesson.attempt) << 32 ^ b.lesson.since.0),
        GroupBody::Learn(b) => (19, u64::from(b.number) ^ u64::from(b.lesson.attempt) << 32 ^ b.tag.0 << 40),
        GroupBody::Learned(b) => (20, u64::from(b.number) ^ u64::from(b.lesson.attempt) << 32),
    }
}

/// What identifies an outcome.
pub(crate) fn outcome_number(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Hit(view) => 1 ^ view.version << 4,
        Outcome::Miss => 2,
        Outcome::Stored(view) => 3 ^ view.version << 4,
        Outcome::NotStored => 4,
        Outcome::Exists => 5,
        Outcome::NotFound => 6,
        Outcome::Deleted => 7,
        Outcome::Touched(view) => 8 ^ view.version << 4,
        Outcome::Number(number, _) => 9 ^ number << 4,
        Outcome::Flushed => 10,
        Outcome::Begun(id) => 12 ^ id.number << 4,
        Outcome::Noted => 13,
        Outcome::Session(session) => 14 ^ session.0 << 4,
        Outcome::Keys(page) => 15 ^ (page.keys.len() as u64) << 4,
        Outcome::Failed(failure) => 11 ^ number_of_failure(*failure) << 4,
    }
}

/// A message as one line of a trace.
pub(crate) struct Brief<'a, M>(pub &'a M);

impl fmt::Display for Brief<'_, ObjectMessage> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ObjectMessage::Put(b) => {
                write!(f, "{} put {} row {} try {} in {}", b.member, b.chunk, b.row, b.attempt, b.view)
            }
            ObjectMessage::PutShared(b) => {
                let (put, shares) = (&b.put, &b.shares);
                let (member, chunk, row, attempt) = (put.member, put.chunk, put.row, put.attempt);
                write!(f, "{member} put {chunk} row {row} try {attempt} in {}, for {shares:?}", put.view)
            }
            ObjectMessage::Lend(b) => write!(f, "{} cell lent row {} for {:?}", b.member, b.row, b.shares),
            ObjectMessage::PutSum(b) => {
                write!(f, "{} sum {} row {} try {} in {}", b.member, b.chunk, b.row, b.attempt, b.view)
            }
            ObjectMessage::Product(b) => {
                write!(f, "{} product of {} row {} try {} of {}", b.member, b.of, b.row, b.attempt, b.writer)
            }
            ObjectMessage::Cell(b) => write!(f, "{} cell of {} row {}", b.member, b.chunk, b.row),
            ObjectMessage::Listed(b) => {
                write!(f, "{} listed {} chunks in {}, more: {}", b.member, b.chunks.len(), b.view, b.more)
            }
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Brief<'_, GraphMessage> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            GraphMessage::Start(b) => {
                let (steps, slice) = (b.steps.len(), b.slice_len);
                write!(f, "graph {:x}.{}: {steps} steps, slices of {slice}", b.run.asker.0, b.run.number)
            }
            GraphMessage::Slice(b) => {
                write!(f, "slice {} of edge {} of {:x}.{}", b.index, b.edge, b.run.asker.0, b.run.number)
            }
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Brief<'_, PeerMessage> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PeerMessage::Group(message) => Brief(message).fmt(f),
            PeerMessage::Forward(forward) => write!(
                f,
                "group-{}/role-{} forward {} of \"{}\": {}",
                forward.group.0,
                forward.role.0,
                forward.id,
                forward.request.key_bytes().escape_ascii(),
                brief_op(&forward.request.op)
            ),
            PeerMessage::Object(message) => Brief(&**message).fmt(f),
            PeerMessage::Graph(message) => Brief(&**message).fmt(f),
            PeerMessage::Answer(answer) => {
                write!(f, "answer {}: {}", answer.id, brief_outcome(&answer.outcome))
            }
        }
    }
}

impl fmt::Display for Brief<'_, GroupMessage> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.0;
        write!(
            f,
            "group-{} {} role-{} > role-{} ",
            message.group.0, message.view, message.from.0, message.to.0
        )?;
        match &message.body {
            GroupBody::Hello(b) => write!(f, "Hello {} committed {}", b.term, b.committed),
            GroupBody::Welcome(b) => write!(f, "Welcome {} received {}", b.term, b.received),
            GroupBody::Frame(b) => {
                write!(f, "Frame {} committed {}", b.term, b.committed)?;
                match (b.records.first(), b.records.last()) {
                    (Some(first), Some(last)) => write!(f, " records {}..={}", first.seq, last.seq)?,
                    _ => f.write_str(" empty")?,
                }
                for write in b.records.iter().flat_map(|record| &record.writes) {
                    write!(f, " {}+{}", write.addr, write.delta.len())?;
                }
                Ok(())
            }
            GroupBody::Ack(b) => write!(f, "Ack {} received {}", b.term, b.received),
            GroupBody::Reject(b) => write!(f, "Reject, fence {}", b.fence),
            GroupBody::Reserve(b) => write!(f, "Reserve {} up to run {}", b.term, b.run),
            GroupBody::Reserved(b) => write!(f, "Reserved {} up to run {} {}", b.term, b.run, b.granted),
            GroupBody::FetchIndex(b) => write!(f, "FetchIndex {} part {}", b.term, b.part),
            GroupBody::IndexPart(b) => {
                write!(f, "IndexPart {} part {} last {} ({} B)", b.term, b.part, b.last, b.bytes.len())
            }
            GroupBody::Open(b) => {
                let (first, count) = (b.pages.first, b.pages.count);
                write!(f, "Open {} pages {first}+{count} committed {}", b.session.number, b.committed)
            }
            GroupBody::Opened(b) => write!(f, "Opened {}", b.session.number),
            GroupBody::Read(b) => {
                let (first, count) = (b.pages.first, b.pages.count);
                write!(f, "Read {} pages {first}+{count} for {:?}", b.session.number, b.parities)
            }
            GroupBody::Page(b) => {
                let what = if b.bytes.is_some() { "bytes" } else { "absent" };
                write!(f, "Page {} {} at {} {what}", b.session.number, b.term, b.committed)
            }
            GroupBody::Residual(b) => write!(f, "Residual {} lost {:?}", b.session.number, b.lost),
            GroupBody::Abort(b) => write!(f, "Abort {}", b.session.number),
            GroupBody::LearnHello(b) => {
                write!(f, "LearnHello {} try {}", b.lesson.since, b.lesson.attempt)?;
                b.applied.map_or(Ok(()), |applied| write!(f, ", has applied {applied}"))
            }
            GroupBody::Learn(b) => {
                write!(
                    f,
                    "Learn {} try {} part {} {} at {}: ",
                    b.lesson.since, b.lesson.attempt, b.number, b.term, b.tag
                )?;
                match &b.part {
                    LearnPart::Begin { classes, .. } => write!(f, "begin, {} runs", classes.len()),
                    LearnPart::Run { run, pages, .. } => write!(f, "run {run} pages {pages:016b}"),
                    LearnPart::Segment { segment, entries } => {
                        write!(f, "segment {segment} ({} B)", entries.len())
                    }
                    LearnPart::End { runs } => write!(f, "end ({} B)", runs.len()),
                    LearnPart::Resume => write!(f, "resume"),
                    LearnPart::Gone => write!(f, "gone"),
                }
            }
            GroupBody::Learned(b) => {
                write!(f, "Learned try {} part {} {}", b.lesson.attempt, b.number, b.term)
            }
        }
    }
}

impl fmt::Display for Brief<'_, ToCoordinator> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ToCoordinator::Register(registration) => write!(f, "Register {}", registration.info.host),
            ToCoordinator::Heartbeat { host, map, .. } => write!(f, "Heartbeat {host} map {map}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Brief<'_, FromCoordinator> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FromCoordinator::Map(map) => {
                let alive: Vec<String> =
                    map.nodes.iter().filter(|n| n.alive).map(|n| n.host.to_string()).collect();
                write!(f, "Map {}: alive {}", map.version, alive.join(" "))
            }
            FromCoordinator::Changes(changes) => {
                write!(f, "Changes {}..{}:", changes.since, changes.version)?;
                changes.nodes.iter().try_for_each(|node| write!(f, " {} alive {}", node.host, node.alive))?;
                changes.views.iter().try_for_each(|view| write!(f, " {}", Brief(view)))
            }
            FromCoordinator::View(view) => Brief(view).fmt(f),
            FromCoordinator::Keep { epoch, position, electors, whole, records } => {
                let (kind, count) = (if *whole { "all" } else { "with" }, records.len());
                let sizes: Vec<usize> = electors.iter().map(Vec::len).collect();
                write!(f, "Keep {epoch} up to {position}, {kind} {count} records, electors {sizes:?}")
            }
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Brief<'_, types::GroupView> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.0;
        write!(f, "View group-{} {}:", view.group.0, view.version)?;
        for role in &view.data {
            match role.primary {
                Some(host) => write!(f, " [{host} {} {:?}]", role.term, role.status)?,
                None => write!(f, " [none {} {:?}]", role.term, role.status)?,
            }
        }
        for parity in &view.parity {
            match parity {
                Some(host) => write!(f, " ({host})")?,
                None => write!(f, " (none)")?,
            }
        }
        for learner in &view.learners {
            let whole = if learner.whole { ", whole" } else { "" };
            write!(f, " <{} for {} since {}{whole}>", learner.host, learner.role, learner.since)?;
        }
        Ok(())
    }
}

/// The first bytes of a value, and its length.
pub(crate) fn brief_bytes(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(24)];
    let dots = if bytes.len() > shown.len() { "..." } else { "" };
    format!("\"{}{dots}\" ({} B)", shown.escape_ascii(), bytes.len())
}

/// The same of a failure.
fn number_of_failure(failure: Failure) -> u64 {
    const ALL: [Failure; 14] = [
        Failure::NotANumber,
        Failure::TooLarge,
        Failure::OutOfMemory,
        Failure::Busy,
        Failure::Unavailable,
        Failure::Lost,
        Failure::NoNamespace,
        Failure::Unknown,
        Failure::Corrupt,
        Failure::WrongPrimary,
        Failure::NotOpen,
        Failure::Replaced,
        Failure::NoSession,
        Failure::Expired,
    ];
    ALL.iter().position(|known| *known == failure).unwrap_or(ALL.len()) as u64
}

/// An operation in a few words.
pub(crate) fn brief_op(op: &Op) -> String {
    match op {
        Op::Get(get) if get.touch.is_some() => format!("gat {:?}", get.touch.unwrap_or_default()),
        Op::Get(_) => "get".to_owned(),
        Op::Store(store) => {
            let compare = store.compare.map(|unique| format!(" if {unique}")).unwrap_or_default();
            format!(
                "{:?} {} flags {} {:?}{compare}",
                store.mode,
                brief_bytes(&store.value),
                store.flags,
                store.expiry
            )
            .to_lowercase()
        }
        Op::Arith(arith) => format!("{:?} {}", arith.direction, arith.delta).to_lowercase(),
        Op::Delete(_) => "delete".to_owned(),
        Op::Touch(expiry) => format!("touch {expiry:?}"),
        Op::Flush(_) => "flush".to_owned(),
        Op::Debug => "debug".to_owned(),
        Op::Session => "session".to_owned(),
        Op::Scan(scan) => format!("{scan:?}").to_lowercase(),
        Op::Object(op) => format!("{op:?}").to_lowercase(),
        Op::Expect(expect) => format!("expect of {} as {} of {}", expect.from, expect.number, expect.term),
    }
}

/// An outcome in a few words.
pub(crate) fn brief_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Hit(view) => {
            format!("hit {} flags {} version {}", brief_bytes(&view.value), view.flags, view.version)
        }
        Outcome::Stored(view) => format!("stored, version {}", view.version),
        Outcome::Touched(view) => format!("touched, version {}", view.version),
        Outcome::Number(number, view) => format!("{number}, version {}", view.version),
        other => format!("{other:?}").to_lowercase(),
    }
}
