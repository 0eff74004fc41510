//! What the simulator knows of the streams of all data roles, from what it sees sent and recorded.
//!
//! Whatever members send is held against it, and so is every new view; the checks hold against it what members have in memory.

pub(crate) mod stream;

use cluster::Protection;
use types::{
    ClusterMap, DataRole, GroupId, GroupView, HostId, Learner, MemberId, RoleIndex, RoleStatus, Seq, Term,
    ViewVersion,
};
use wire::message::{GroupBody, GroupMessage, LearnPart, PeerMessage};

use crate::options::Options;
use crate::stage::Stage;
use crate::stage::book::{Book, Suspect};
use crate::stage::brief::Brief;
use stream::{Broken, Part, Stream};

/// The shadows of all data roles.
pub(crate) struct Shadow {
    /// By group and data role.
    streams: Vec<Stream>,
    /// Newest version of each group's view.
    versions: Vec<ViewVersion>,
    protection: Protection,
}

/// A group that breaks a rule.
struct Offence {
    group: GroupId,
    what: String,
}

/// What is new in the map.
#[derive(Default)]
pub(crate) struct News {
    /// Roles that begin anew.
    pub begun: Vec<MemberId>,
    /// What must not be: the last of it.
    offence: Option<Offence>,
}

impl News {
    /// What must not be is told.
    pub(crate) fn tell(self, book: &mut Book) {
        if let Some(Offence { group, what }) = self.offence {
            book.fail("takeover", Some(Suspect::Group(group)), what);
        }
    }
}

impl Shadow {
    /// Of a cluster in which nothing was written yet.
    pub(crate) fn new(options: &Options) -> Self {
        let streams = (0..options.groups * options.k).map(|_| Stream::new(options.m)).collect();
        Self { streams, versions: vec![ViewVersion(0); options.groups], protection: options.protection() }
    }

    /// Groups come with their pools, all of which have the same code.
    fn reach(&mut self, group: GroupId) {
        let groups = group.0 as usize + 1;
        let profile = self.protection.profile();
        if self.versions.len() < groups {
            self.versions.resize(groups, ViewVersion(0));
            self.streams.resize_with(groups * profile.k(), || Stream::new(profile.m()));
        }
    }

    /// The stream of a data role.
    pub(crate) fn stream(&self, member: MemberId) -> &Stream {
        &self.streams[self.position(member)]
    }

    /// The same, also of a group that was made and removed within one step of the coordinator, which no recorded map has.
    pub(crate) fn stream_mut(&mut self, member: MemberId) -> &mut Stream {
        self.reach(member.group);
        let position = self.position(member);
        &mut self.streams[position]
    }

    fn position(&self, member: MemberId) -> usize {
        member.group.0 as usize * self.protection.profile().k() + usize::from(member.role.0)
    }

    /// The number of whoever takes a stream, as role `role`: its row, or, of the role's mirror, `m`.
    fn taker(&self, role: RoleIndex) -> usize {
        usize::from(role.0)
            .checked_sub(self.protection.profile().k())
            .unwrap_or(self.protection.profile().m())
    }

    // --- what is sent ---

    /// Holds what a peer sends against the shadow of its stream.
    pub(crate) fn sent(
        &mut self,
        book: &mut Book,
        map: Option<&ClusterMap>,
        from: HostId,
        message: &PeerMessage,
    ) {
        let PeerMessage::Group(message) = message else { return };
        let held = match &message.body {
            GroupBody::Frame(_) => self.sent_frame(map, from, message),
            GroupBody::Ack(ack) => self.confirmed(from, message, ack.term, ack.received),
            GroupBody::Welcome(welcome) => self.confirmed(from, message, welcome.term, welcome.received),
            GroupBody::Residual(residual) => {
                book.stats.residuals += 1;
                book.stats.repair_bytes += residual.bytes.len() as u64;
                Ok(())
            }
            GroupBody::Page(page) => {
                book.stats.repair_bytes += page.bytes.as_ref().map_or(0, |bytes| bytes.len()) as u64;
                Ok(())
            }
            GroupBody::LearnHello(_) | GroupBody::Learn(_) | GroupBody::Learned(_) => {
                self.sent_lesson(from, message)
            }
            _ => Ok(()),
        };
        if let Err(what) = held {
            let what = format!("{}/{}: {what}", message.group, message.from);
            book.fail("stream", Some(Suspect::Group(message.group)), what);
        }
    }

    fn sent_frame(
        &mut self,
        map: Option<&ClusterMap>,
        from: HostId,
        message: &GroupMessage,
    ) -> Result<(), Broken> {
        let GroupBody::Frame(frame) = &message.body else { return Ok(()) };
        let view = map.and_then(|map| map.group(message.group));
        // What a lost role's former primary still writes, with nobody or with former parities, ends with its life.
        let is_lost =
            |view: &&GroupView| view.data_role(message.from).is_some_and(|data| data.status.is_lost());
        let required: Vec<(usize, HostId)> = view
            .filter(|view| !is_lost(view))
            .into_iter()
            .flat_map(|view| self.protection.witnesses(view, message.from))
            .map(|(role, host)| (self.taker(role), host))
            .collect();
        let stream = self.stream_mut(MemberId { group: message.group, role: message.from });
        stream.sent(from, frame.term, frame.committed, &frame.records, required.into_iter())
    }

    fn sent_lesson(&mut self, from: HostId, message: &GroupMessage) -> Result<(), Broken> {
        let member = |role| MemberId { group: message.group, role };
        match &message.body {
            // A primary that says Gone teaches nothing: the learner asks anew.
            GroupBody::Learn(learn) if learn.part != LearnPart::Gone => {
                let parity = self.taker(message.to);
                let stream = self.stream_mut(member(message.from));
                let part = Part { lesson: learn.lesson, number: learn.number };
                stream.taught(parity, part, learn.tag);
            }
            GroupBody::LearnHello(_) => {
                let parity = self.taker(message.from);
                // Also of one that comes back: whatever it had received beyond what it applied is dropped.
                self.stream_mut(member(message.to)).forgotten(parity, from);
            }
            GroupBody::Learned(learned) => {
                let parity = self.taker(message.from);
                let stream = self.stream_mut(member(message.to));
                let part = Part { lesson: learned.lesson, number: learned.number };
                if let Some(tag) = stream.understood(parity, part) {
                    return self.confirmed(from, message, learned.term, tag);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn confirmed(
        &mut self,
        from: HostId,
        message: &GroupMessage,
        term: Term,
        received: Seq,
    ) -> Result<(), Broken> {
        let parity = self.taker(message.from);
        let stream = self.stream_mut(MemberId { group: message.group, role: message.to });
        stream.confirmed(parity, from, term, received)
    }

    // --- what is recorded ---

    /// Takes note of new views: ends streams where they say so.
    pub(crate) fn recorded(&mut self, stage: &mut Stage, map: &ClusterMap) -> News {
        let mut news = News::default();
        for view in &map.groups {
            self.reach(view.group);
            let known = std::mem::replace(&mut self.versions[view.group.0 as usize], view.version);
            if known != view.version {
                note_view(stage, view);
                news.offence = offence(&stage.options, known, view).or(news.offence);
                self.changed(&mut stage.book, view, &mut news);
            }
        }
        news
    }

    fn changed(&mut self, book: &mut Book, view: &GroupView, news: &mut News) {
        for (role, data) in view.data_roles() {
            let member = MemberId { group: view.group, role };
            let stream = self.stream_mut(member);
            if stream.first() < data.first_seq() {
                stream.begin_life(data.origin, data.first_seq());
                news.begun.push(member);
            }
            if let Err(what) = begin_term(book, stream, data) {
                let what = format!("{}/{role}: {what}", view.group);
                news.offence = Some(Offence { group: view.group, what });
            }
        }
    }
}

/// The coordinator has opened a term, if somebody stands in.
fn begin_term(book: &mut Book, stream: &mut Stream, data: &DataRole) -> Result<(), Broken> {
    let (RoleStatus::Orphan(start) | RoleStatus::Rebuilding { start, .. }) = data.status else {
        return Ok(());
    };
    if stream.term().0 < data.term {
        book.stats.takeovers += 1;
    }
    stream.begin_term(data.term, start)
}

fn note_view(stage: &mut Stage, view: &GroupView) {
    let is_exchange = |learner: &&Learner| {
        let is_second_step = view.data_role(learner.role).is_none() && view.roles_on(learner.host.node) > 1;
        is_second_step && learner.since == view.version
    };
    stage.book.stats.views += 1;
    stage.book.stats.exchanges += view.learners.iter().filter(is_exchange).count() as u64;
    note!(stage.book, "coordinator decides {}", Brief(view));
    stage.book.mix(view.version.0 ^ u64::from(view.group.0) << 32 ^ stage.now() << 8);
}

fn offence(options: &Options, known: ViewVersion, view: &GroupView) -> Option<Offence> {
    let group = view.group;
    if options.faults.beyond == 0 && view.data.iter().any(|role| role.status.is_lost()) {
        return Some(Offence {
            group,
            what: "roles are lost, though never more than m members were".to_owned(),
        });
    }
    let goes_back =
        || Offence { group, what: format!("the view goes back from {known} to {}", view.version) };
    (known > view.version).then(goes_back)
}
