//! Values in chunks, seen from the host: where their messages go, and what clients ask for.

use bytes::Bytes;
use store::Category;
use types::op::{Failure, Outcome};
use types::{ChunkId, Geometry, GroupId, GroupView, HostId, KeyHash, MemberId};
use wire::graph::GraphMessage;
use wire::object::{Ask, Checked, Evict, ObjectMessage, Verdict, Verdicts};

use super::Host;
use super::driver::{Action, Place, Token, WriteNews};
use crate::Now;
use crate::objects::names::{DepositId, GatherId, OwnerRequest, StreamId, Told, UploadId};
use crate::objects::{NewDeposit, NewGather, NewUpload, Objects, Scope, Wanted, groups_for};
use crate::outbox::{Context, ReplyTo};
use crate::primary::{self, Pending, Primary};

/// What a host does about values in chunks, at one moment.
pub struct Streams<'a> {
    host: &'a mut Host,
    now: Now,
}

impl Host {
    /// For clients that write or read values in chunks.
    pub fn streams(&mut self, now: Now) -> Streams<'_> {
        Streams { host: self, now }
    }
}

impl Streams<'_> {
    /// Values in chunks that clients of this host write or read, what is kept here of them, and what is to become of it.
    fn with_objects<T>(&mut self, act: impl FnOnce(&mut Objects, &mut Scope<'_>, &mut Wanted) -> T) -> T {
        let mut wanted = Wanted::default();
        let mut scope = Scope { now: self.now, around: &mut self.host.around, views: &self.host.views };
        self.host.objects.heed_requests(&scope, self.host.stats.requests());
        let done = act(&mut self.host.objects, &mut scope, &mut wanted);
        self.host.objects.transfers().go_on(&mut scope, &mut wanted);
        while self.host.objects.go_on_reading(&mut scope, &mut wanted) {
            self.host.objects.transfers().go_on(&mut scope, &mut wanted);
        }
        self.host.objects.touch();
        self.ask_owners(wanted);
        if self.host.objects.take_question_for_room() {
            self.make_way();
        }
        done
    }

    /// Chunks have no room and less than their share of the memory: items are to make way.
    fn make_way(&mut self) {
        // Whose parities alone are here, that is asked where it is: those hosts are short of room, too.
        let mut makes_way = self.host.around.config().budget.used(Category::Area) == 0;
        let ask = |primary: &mut Primary, context: &mut Context<'_>| {
            makes_way |= primary::make_way(primary, context)
        };
        self.host.members.primaries_mut().for_each(&mut self.host.around, self.now, ask);
        self.host.objects.note_items(self.now.time, makes_way);
    }

    fn ask_owners(&mut self, wanted: Wanted) {
        for OwnerRequest { stream, owner, hash, request } in wanted.requests {
            let reply = stream.map_or(ReplyTo::Nobody, ReplyTo::Stream);
            self.ask_owner(owner, reply, hash, request);
        }
        for pending in wanted.given_back {
            self.host.route_anew(self.now, None, pending);
        }
    }

    fn ask_owner(&mut self, owner: MemberId, reply: ReplyTo, hash: KeyHash, request: types::op::Request) {
        let deadline = self.now.time + self.host.around.config().timing.request_deadline_us;
        let pending = Pending { reply, hash, request: request.into(), deadline };
        self.host.route_anew(self.now, Some(owner), pending);
    }

    /// A client's value of many bytes for what is at `place`. Its bytes follow ([`Self::feed`]), no more in one piece than are
    /// wanted ([`Self::upload_wants`]); [`crate::Action::Room`] says when more are. [`crate::Action::Reply`] ends it.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub fn begin_upload(&mut self, token: Token, place: Place, new: NewUpload) -> Result<UploadId, Failure> {
        let comes_again = new.once.is_some_and(|once| once.again);
        let begun = self.try_begin_upload(token, place, new);
        // It may have been done when it came before.
        begun.map_err(|failure| if comes_again { Failure::Unknown } else { failure })
    }

    fn try_begin_upload(&mut self, token: Token, place: Place, new: NewUpload) -> Result<UploadId, Failure> {
        if let Some(refusal) = place.refusal {
            return Err(refusal);
        }
        let owner = (place.member.ok_or(Failure::Unavailable)?, place.hash);
        let begun = self.with_objects(|objects, scope, wanted| {
            objects.transfers().begin_upload(scope, token, owner, new, wanted)
        });
        self.host.carry_out(self.now);
        begun
    }

    /// How many bytes of its value an upload takes in one piece now: none before it says that there is room.
    pub fn upload_wants(&mut self, upload: UploadId) -> usize {
        self.host.objects.touch();
        self.host.objects.transfers().upload_wants(upload)
    }

    /// The next bytes of an upload's value.
    pub fn feed(&mut self, upload: UploadId, bytes: Bytes) {
        self.with_objects(|objects, scope, wanted| objects.transfers().feed(scope, upload, bytes, wanted));
        self.host.carry_out(self.now);
    }

    /// The client of an upload is gone.
    pub fn abandon_upload(&mut self, upload: UploadId) {
        self.with_objects(|objects, _, wanted| objects.transfers().abandon_upload(upload, wanted));
        self.host.carry_out(self.now);
    }

    /// A client reads a value in chunks. Its bytes come in order ([`crate::Action::Part`]) up to [`crate::Action::Whole`], or a
    /// [`crate::Action::Reply`] with a failure.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub fn begin_gather(&mut self, token: Token, hash: KeyHash, new: NewGather) -> Result<GatherId, Failure> {
        let begun = self.with_objects(|objects, scope, wanted| {
            objects.transfers().begin_gather(scope, token, hash, new, wanted)
        });
        self.host.carry_out(self.now);
        begun
    }

    /// The client has taken so many bytes of a value that it reads.
    pub fn gather_taken(&mut self, gather: GatherId, bytes: usize) {
        self.with_objects(|objects, scope, wanted| {
            objects.transfers().gather_taken(scope, gather, bytes, wanted)
        });
        self.host.carry_out(self.now);
    }

    /// The client reads no further.
    pub fn abandon_gather(&mut self, gather: GatherId) {
        self.with_objects(|objects, _, wanted| objects.transfers().abandon_gather(gather, wanted));
        self.host.carry_out(self.now);
    }

    /// What has come of a step of a value that this host has written ([`Action::Write`]).
    pub fn hear_written(&mut self, number: u64, news: WriteNews) {
        self.with_objects(|objects, _, _| objects.transfers().hear_written(number, news));
        self.host.carry_out(self.now);
    }

    /// Rows of a chunk that this host keeps, of the value whose key has this hash: as many as `most_bytes` hold, at least one. None if
    /// they are not here.
    pub fn read_chunk(
        &mut self,
        key_hash: KeyHash,
        whose: (MemberId, ChunkId),
        rows: (u32, u32),
        most_bytes: u32,
    ) -> Option<Vec<Checked>> {
        let (member, chunk) = whose;
        let mut read = None;
        self.with_objects(|objects, scope, _| {
            objects.with(member, |holder| read = holder.read(scope, key_hash, chunk, rows, most_bytes));
        });
        self.host.carry_out(self.now);
        read
    }

    /// A client puts a chunk here, cell by cell ([`Self::feed_deposit`]). [`crate::Action::Reply`] ends it: with `Noted`, or why it is not
    /// kept; `WrongPrimary` is said of one that belongs elsewhere.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub fn begin_deposit(&mut self, token: Token, new: NewDeposit) -> Result<DepositId, Failure> {
        self.with_objects(|objects, scope, _| objects.transfers().begin_deposit(scope, token, new))
    }

    /// The next cell of a chunk that a client puts.
    pub fn feed_deposit(&mut self, id: DepositId, cell: Bytes) {
        self.with_objects(|objects, scope, _| objects.transfers().feed_deposit(scope, id, cell));
        self.host.carry_out(self.now);
    }

    /// The client does not go on with it.
    pub fn abandon_deposit(&mut self, id: DepositId) {
        self.with_objects(|objects, scope, _| {
            let (from, member) = (scope.around.host(), objects.transfers().abandon_deposit(id));
            if let Some(member) = member {
                objects.with(member, |holder| holder.drop_arriving(from, id.0));
            }
        });
    }

    /// The groups that a value of such a key would lie in.
    pub fn groups_for(&mut self, owner: MemberId, hash: KeyHash, geometry: Geometry) -> Vec<GroupId> {
        self.with_objects(|_, scope, _| groups_for(scope, owner, hash, geometry))
    }

    pub(super) fn dispatch(&mut self, from: HostId, message: ObjectMessage) {
        match message {
            ObjectMessage::Ask(ask) => self.handle_ask(from, ask),
            ObjectMessage::Evict(evict) => self.handle_evict(&evict),
            message => {
                self.with_objects(|objects, scope, wanted| objects.handle(scope, from, message, wanted));
            }
        }
    }

    pub(super) fn dispatch_graph(&mut self, from: HostId, message: GraphMessage) {
        self.with_objects(|objects, scope, _| objects.handle_graph(scope, from, message));
    }

    /// A holder asks what has become of objects of an owner that this host may speak for.
    fn handle_ask(&mut self, from: HostId, ask: Ask) {
        let Ask { owner, member, objects, found } = ask;
        let mut known = None;
        let answer = |primary: &mut Primary, context: &mut Context<'_>| {
            primary::note_harm(primary, &objects, found);
            known = primary::verdicts(primary, context, &objects);
        };
        self.host.members.primaries_mut().with(&mut self.host.around, self.now, owner, answer);
        if let Some((term, known)) = known {
            let (mut verdicts, mut moved) = (known.verdicts, known.moved);
            // What is committed is not spoken of again before it is dead, and that is told to those that the view here names. So
            // whoever is not among them learns it under the view that they know, or are no holder by.
            if !self.is_named(member, from) {
                verdicts.retain(|(_, verdict)| *verdict != Verdict::Committed);
                moved.clear();
                self.host.fetch_view(self.now, member.group);
            }
            let answer = ObjectMessage::Verdicts(Verdicts { owner, term, member, verdicts, moved });
            self.host.around.out().send(from.node, answer.into());
        }
    }

    /// Whether the view that is known here names `host` for the chunks of `member`.
    fn is_named(&self, member: MemberId, host: HostId) -> bool {
        let view = self.host.views.group(member.group);
        view.is_some_and(|view| view.holders_of(member.role).iter().any(|holder| holder.host == host))
    }

    /// A holder is short of room.
    fn handle_evict(&mut self, evict: &Evict) {
        let Evict { owner, objects } = evict;
        let act =
            |primary: &mut Primary, context: &mut Context<'_>| primary::evict(primary, context, objects);
        self.host.members.primaries_mut().with(&mut self.host.around, self.now, *owner, act);
    }

    /// Measures the links to all other nodes, by so many bytes of each; false if that is under way. [`crate::probe_report`] says what has
    /// come of it.
    pub fn probe_links(&mut self, bytes: u64) -> bool {
        let is_begun = self.with_objects(|objects, scope, _| objects.probe_links(scope, bytes));
        self.host.carry_out(self.now);
        is_begun
    }

    /// Namespaces may have other quotas.
    pub(super) fn heed_quotas(&mut self) {
        self.with_objects(|objects, scope, _| objects.heed_quotas(scope));
    }

    /// The node's shares of quotas are other ones.
    pub(super) fn keep_to_shares(&mut self) {
        self.with_objects(|objects, scope, _| objects.keep_to_shares(scope));
    }

    pub(super) fn adopt(&mut self, view: &GroupView) {
        if self.host.is_of_this_shard(view.group) && (view.takes_chunks() || !self.host.objects.is_idle()) {
            self.with_objects(|objects, scope, wanted| objects.adopt(scope, view, wanted));
        }
    }

    /// The coordinator has answered what the view of a group is.
    pub(super) fn hear_view(&mut self, group: GroupId) {
        self.with_objects(|objects, scope, wanted| objects.transfers().hear_view(scope, group, wanted));
    }

    /// Groups are no more, and nor are their chunks.
    pub(super) fn dismiss_gone(&mut self) {
        self.with_objects(|objects, scope, _| objects.dismiss_gone(scope));
    }

    pub(super) fn link_up(&mut self, peer: HostId) {
        self.with_objects(|objects, scope, wanted| objects.link_up(scope, peer, wanted));
    }

    pub(super) fn link_down(&mut self, peer: HostId) {
        self.with_objects(|objects, scope, wanted| objects.lose_link(scope, peer, wanted));
    }

    pub(super) fn tick(&mut self) {
        self.with_objects(|objects, scope, wanted| objects.tick(scope, wanted));
    }

    pub(super) fn scrub(&mut self) {
        self.with_objects(|objects, scope, _| objects.scrub(scope));
    }

    /// What owners and uploads of this host have for each other; whether there was anything.
    pub(super) fn exchange(&mut self) -> bool {
        let mut any = false;
        while let Some(errand) = self.host.around.out().errands.pop_front() {
            self.with_objects(|objects, scope, _| objects.take_errand(scope, errand));
        }
        while let Some((pending, owner)) = self.host.around.out().extensions.pop_front() {
            any = true;
            self.with_objects(|objects, scope, _| objects.transfers().extend(scope, pending, owner));
        }
        while let Some(new) = self.host.around.out().rewrites.pop_front() {
            any = true;
            self.with_objects(|objects, scope, _| objects.transfers().rewrite(scope, new));
        }
        for group in std::mem::take(&mut self.host.around.out().views_wanted) {
            self.host.fetch_view(self.now, group);
        }
        while let Some((stream, outcome)) = self.host.around.out().to_streams.pop_front() {
            any = true;
            self.hear_owner(stream, outcome);
        }
        any
    }

    fn hear_owner(&mut self, stream: StreamId, outcome: Outcome) {
        self.with_objects(|objects, scope, wanted| {
            objects.transfers().hear_owner(scope, stream, outcome, wanted)
        });
    }
}

impl From<(Token, Told)> for Action {
    fn from((token, told): (Token, Told)) -> Self {
        match told {
            Told::Room => Self::Room { token },
            Told::Part(bytes) => Self::Part { token, bytes },
            Told::Whole => Self::Whole { token },
            Told::Ended(outcome) => Self::Reply { token, outcome },
        }
    }
}
