//! Values in chunks, seen from the host: where their messages go, and what clients ask for.

use bytes::Bytes;
use types::op::{Failure, Outcome};
use types::{GroupView, HostId, KeyHash, MemberId};
use wire::object::{Ask, ObjectMessage, Verdicts};

use super::Host;
use super::driver::{Place, Token};
use crate::Now;
use crate::objects::{
    GatherId, NewGather, NewUpload, Objects, OwnerRequest, Scope, StreamId, UploadId, Wanted,
};
use crate::outbox::{Context, ReplyTo};
use crate::primary::{Pending, Primary};

impl Host {
    /// Values in chunks that clients of this host write or read, what is kept here of them, and what is to become of it.
    fn with_objects<T>(
        &mut self,
        now: Now,
        act: impl FnOnce(&mut Objects, &mut Scope<'_>, &mut Wanted) -> T,
    ) -> T {
        let mut wanted = Wanted::default();
        let mut scope = Scope { now, around: &mut self.around, views: &self.views };
        let done = act(&mut self.objects, &mut scope, &mut wanted);
        self.ask_owners(now, wanted);
        done
    }

    fn ask_owners(&mut self, now: Now, wanted: Wanted) {
        for OwnerRequest { stream, owner, hash, request } in wanted.requests {
            let reply = stream.map_or(ReplyTo::Nobody, ReplyTo::Stream);
            self.ask_owner(now, owner, reply, hash, request);
        }
    }

    fn ask_owner(
        &mut self,
        now: Now,
        owner: MemberId,
        reply: ReplyTo,
        hash: KeyHash,
        request: types::op::Request,
    ) {
        let deadline = now.time + self.around.config().timing.request_deadline_us;
        let pending = Pending { reply, hash, request, deadline };
        self.route_anew(now, Some(owner), pending);
    }

    /// A client's value of many bytes for what is at `place`. Its bytes follow ([`Self::feed`]), no more in one piece than are
    /// wanted ([`Self::upload_wants`]); [`crate::Action::Room`] says when more are. [`crate::Action::Reply`] ends it.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub fn begin_upload(
        &mut self,
        now: Now,
        token: Token,
        place: Place,
        new: NewUpload,
    ) -> Result<UploadId, Failure> {
        if let Some(refusal) = place.refusal {
            return Err(refusal);
        }
        let owner = (place.member.ok_or(Failure::Unavailable)?, place.hash);
        let begun = self.with_objects(now, |objects, scope, wanted| {
            objects.begin_upload(scope, token, owner, new, wanted)
        });
        self.carry_out(now);
        begun
    }

    /// How many bytes of its value an upload takes in one piece now: none before it says that there is room.
    pub fn upload_wants(&mut self, upload: UploadId) -> usize {
        self.objects.upload_wants(upload)
    }

    /// The next bytes of an upload's value.
    pub fn feed(&mut self, now: Now, upload: UploadId, bytes: Bytes) {
        self.with_objects(now, |objects, scope, wanted| objects.feed(scope, upload, bytes, wanted));
        self.carry_out(now);
    }

    /// The client of an upload is gone.
    pub fn abandon_upload(&mut self, now: Now, upload: UploadId) {
        self.with_objects(now, |objects, _, wanted| objects.abandon_upload(upload, wanted));
        self.carry_out(now);
    }

    /// A client reads a value in chunks. Its bytes come in order ([`crate::Action::Part`]) up to [`crate::Action::Whole`], or a
    /// [`crate::Action::Reply`] with a failure.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub fn begin_gather(
        &mut self,
        now: Now,
        token: Token,
        hash: KeyHash,
        new: NewGather,
    ) -> Result<GatherId, Failure> {
        let begun = self.with_objects(now, |objects, scope, wanted| {
            objects.begin_gather(scope, token, hash, new, wanted)
        });
        self.carry_out(now);
        begun
    }

    /// The client has taken so many bytes of a value that it reads.
    pub fn gather_taken(&mut self, now: Now, gather: GatherId, bytes: usize) {
        self.with_objects(now, |objects, scope, wanted| objects.gather_taken(scope, gather, bytes, wanted));
        self.carry_out(now);
    }

    /// The client reads no further.
    pub fn abandon_gather(&mut self, now: Now, gather: GatherId) {
        self.with_objects(now, |objects, _, wanted| objects.abandon_gather(gather, wanted));
        self.carry_out(now);
    }

    pub(super) fn dispatch_object(&mut self, now: Now, from: HostId, message: ObjectMessage) {
        match message {
            ObjectMessage::Ask(ask) => self.handle_ask(now, from, ask),
            message => {
                self.with_objects(now, |objects, scope, wanted| objects.handle(scope, from, message, wanted));
            }
        }
    }

    /// A holder asks what has become of objects of an owner that this host may speak for.
    fn handle_ask(&mut self, now: Now, from: HostId, ask: Ask) {
        let Ask { owner, member, objects } = ask;
        let mut verdicts = None;
        let answer = |primary: &mut Primary, _: &mut Context<'_>| {
            verdicts = primary.verdicts(&objects);
        };
        self.members.primaries_mut().with(&mut self.around, now, owner, answer);
        if let Some((term, verdicts)) = verdicts {
            let answer = ObjectMessage::Verdicts(Verdicts { owner, term, member, verdicts });
            self.around.out().send(from.node, answer.into());
        }
    }

    pub(super) fn adopt_holders(&mut self, now: Now, view: &GroupView) {
        if self.is_of_this_shard(view.group) && (view.takes_chunks() || !self.objects.is_idle()) {
            self.with_objects(now, |objects, scope, wanted| objects.adopt(scope, view, wanted));
        }
    }

    pub(super) fn objects_link_up(&mut self, now: Now, peer: HostId) {
        self.with_objects(now, |objects, scope, wanted| objects.link_up(scope, peer, wanted));
    }

    pub(super) fn objects_link_down(&mut self, now: Now, peer: HostId) {
        self.with_objects(now, |objects, scope, wanted| objects.lose_link(scope, peer, wanted));
    }

    pub(super) fn tick_objects(&mut self, now: Now) {
        self.with_objects(now, |objects, scope, wanted| objects.tick(scope, wanted));
    }

    /// What owners and uploads of this host have for each other; whether there was anything.
    pub(super) fn exchange_objects(&mut self, now: Now) -> bool {
        let mut any = false;
        while let Some(errand) = self.around.out().errands.pop_front() {
            self.with_objects(now, |objects, scope, _| objects.take_errand(scope, errand));
        }
        for group in std::mem::take(&mut self.around.out().views_wanted) {
            self.fetch_view(now, group);
        }
        while let Some((stream, outcome)) = self.around.out().to_streams.pop_front() {
            any = true;
            self.hear_owner(now, stream, outcome);
        }
        any
    }

    fn hear_owner(&mut self, now: Now, stream: StreamId, outcome: Outcome) {
        self.with_objects(now, |objects, scope, wanted| objects.hear_owner(scope, stream, outcome, wanted));
    }
}
