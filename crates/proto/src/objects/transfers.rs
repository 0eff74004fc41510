//! Values that are written and read here: by clients of this host, and by what makes values longer.
//!
//! Who writes or reads hears of it in one place, whoever it is: the driver, an extension, or a value that is written anew.

use bytes::Bytes;
use types::op::{Failure, Outcome};
use types::{GroupId, GroupView, HostId, KeyHash, MemberId, Time};
use wire::object::ObjectMessage;

use super::deposits::{self, Deposits, NewDeposit};
use super::extension::{Extensions, Heard};
use super::gather::{Gathers, NewGather, Progress};
use super::names::{Client, DepositId, GatherId, ObjectStats, StreamId, Told, UploadId};
use super::order::Order;
use super::rewrite::Rewrites;
use super::scope::Scope;
use super::upload::{Step, Uploads};
use super::wanted::Wanted;
use crate::Timing;
use crate::host::driver::{Action, NewUpload, Token};
use crate::queue::Queue;

/// See the module.
#[derive(Default)]
pub(crate) struct Transfers {
    pub(super) uploads: Uploads,
    pub(super) gathers: Gathers,
    pub(super) extensions: Extensions,
    pub(super) rewrites: Rewrites,
    deposits: Deposits,
    news: Queue<(Token, Told)>,
}

/// What waits for the driver.
#[inline]
pub(super) fn waiting(transfers: &Transfers) -> usize {
    transfers.news.len() + transfers.rewrites.waiting_steps()
}

impl Transfers {
    /// Whether nothing is written or read.
    pub(super) fn is_idle(&self) -> bool {
        let values = self.uploads.len() + self.gathers.len() + self.deposits.len();
        values == 0 && self.rewrites.is_empty()
    }

    /// What the driver is to hear next.
    pub(crate) fn poll_news(&mut self) -> Option<(Token, Told)> {
        self.news.pop_front()
    }

    /// What the driver is to do next for a value that is written anew.
    pub(crate) fn poll_step(&mut self) -> Option<Action> {
        self.rewrites.poll()
    }

    /// Goes on with what this host reads and writes of itself.
    pub(crate) fn go_on(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) {
        self.go_on_extending(scope, wanted);
        while self.go_on_rewriting(scope, wanted) {
            self.go_on_extending(scope, wanted);
        }
    }

    /// A group has another view.
    pub(super) fn adopt(&mut self, scope: &mut Scope<'_>, view: &GroupView, wanted: &mut Wanted) {
        for step in self.uploads.adopt(scope, view) {
            self.take_step(step, wanted);
        }
        if self.gathers.len() > 0 {
            self.reconsider_gathers(scope, wanted);
        }
    }

    /// The coordinator has said what the view of this group is, which was adopted if it is new.
    pub(crate) fn hear_view(&mut self, scope: &mut Scope<'_>, group: GroupId, wanted: &mut Wanted) {
        for progress in self.gathers.hear_view(scope, group) {
            self.take_progress(progress, wanted);
        }
    }

    /// What a holder says to who writes or reads.
    pub(super) fn handle(
        &mut self,
        scope: &mut Scope<'_>,
        from: HostId,
        message: ObjectMessage,
        wanted: &mut Wanted,
    ) {
        match message {
            ObjectMessage::Placed(placed) if deposits::is_one(placed.attempt) => {
                let heard = self.deposits.placed(&placed);
                self.tell_of_deposit(heard);
            }
            ObjectMessage::Refused(refused) if deposits::is_one(refused.attempt) => {
                let heard = self.deposits.refused(&refused);
                self.tell_of_deposit(heard);
            }
            ObjectMessage::Placed(placed) => {
                let step = self.uploads.placed(scope, from, &placed);
                self.take_step(step, wanted);
            }
            ObjectMessage::Refused(refused) => {
                let step = self.uploads.refused(scope, from, &refused);
                self.take_step(step, wanted);
            }
            ObjectMessage::Cell(cell) => {
                let progress = self.gathers.hear_cell(scope, from, cell);
                self.take_progress(progress, wanted);
            }
            ObjectMessage::Missing(missing) => {
                let progress = self.gathers.hear_missing(scope, from, &missing);
                self.take_progress(progress, wanted);
            }
            _ => {}
        }
    }

    /// An owner has answered.
    pub(crate) fn hear_owner(
        &mut self,
        scope: &mut Scope<'_>,
        stream: StreamId,
        outcome: Outcome,
        wanted: &mut Wanted,
    ) {
        match stream {
            StreamId::Upload(upload) => {
                let step = self.uploads.hear_owner(scope, upload, outcome);
                self.take_step(step, wanted);
            }
            StreamId::Renewal(upload, term) => {
                let step = self.uploads.hear_renewal(upload, term, &outcome);
                self.take_step(step, wanted);
            }
            StreamId::Gather(gather) => {
                let progress = self.gathers.hear_owner(scope, gather, &outcome);
                self.take_progress(progress, wanted);
            }
            StreamId::Extension(id) => self.extensions.hear(id, Heard::Owner(outcome)),
        }
    }

    /// A link to `peer` is up.
    pub(super) fn link_up(&mut self, scope: &mut Scope<'_>, peer: HostId) {
        self.uploads.link_up(scope, peer);
        self.gathers.link_up(peer);
    }

    /// What was on its way from `peer` is lost.
    pub(super) fn lose_link(&mut self, scope: &mut Scope<'_>, peer: HostId, wanted: &mut Wanted) {
        for progress in self.gathers.lose_link(scope, peer) {
            self.take_progress(progress, wanted);
        }
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) {
        let (now, timing) = (scope.now.time, scope.timing());
        for step in self.uploads.tick(scope) {
            self.take_step(step, wanted);
        }
        if self.gathers.due(&timing) <= now {
            self.reconsider_gathers(scope, wanted);
        }
        for heard in self.deposits.tick(now, &timing) {
            self.tell_of_deposit(heard);
        }
        if self.extensions.due(&timing) <= now {
            self.tick_extensions(scope, wanted);
        }
        if self.rewrites.due(&timing) <= now {
            self.tick_rewrites(scope, wanted);
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let values = self.uploads.due(timing).min(self.gathers.due(timing));
        values.min(self.extensions.due(timing)).min(self.deposits.due(timing)).min(self.rewrites.due(timing))
    }

    /// The next part of a lost chunk that a graph may make for a reader here.
    pub(super) fn next_order(
        &mut self,
        scope: &mut Scope<'_>,
        may: bool,
        wanted: &mut Wanted,
    ) -> Option<Order> {
        let (order, progress) = self.gathers.next_order(scope, may)?;
        self.take_progress(progress, wanted);
        order
    }

    /// Readers hear what has become of such parts; false if there is nothing to hear.
    pub(super) fn hear_made(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) -> bool {
        let heard = self.gathers.hear_made(scope);
        let any = heard.is_some();
        heard.into_iter().for_each(|progress| self.take_progress(progress, wanted));
        any
    }

    fn reconsider_gathers(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) {
        for progress in self.gathers.reconsider(scope) {
            self.take_progress(progress, wanted);
        }
    }

    pub(super) fn take_step(&mut self, step: Step, wanted: &mut Wanted) {
        wanted.requests.extend(step.request);
        let woken: Vec<Client> = self.uploads.wake();
        let room = woken.into_iter().map(|client| (client, Told::Room));
        let ended = step.ended.map(|(client, outcome)| (client, Told::Ended(outcome)));
        room.chain(ended).for_each(|(client, told)| self.tell(client, told, Heard::Upload));
    }

    pub(super) fn take_progress(&mut self, progress: Progress, wanted: &mut Wanted) {
        wanted.requests.extend(progress.request);
        progress.news.into_iter().for_each(|(client, told)| self.tell(client, told, Heard::Gather));
    }

    fn tell_of_deposit(&mut self, heard: deposits::Heard) {
        heard.into_iter().for_each(|(client, told)| self.tell(client, told, Heard::Upload));
    }

    fn tell(&mut self, client: Client, told: Told, of: fn(Told) -> Heard) {
        match client {
            Client::Driver(token) => self.news.push_back((token, told)),
            Client::Extension(id) => self.extensions.hear(id, of(told)),
            Client::Rewrite(id) => self.rewrites.hear_read(id, told),
        }
    }

    /// What has to hold.
    pub(crate) fn check_invariants(&self) {
        self.uploads.check_invariants();
    }

    /// Bytes that are held for values on their way.
    pub(super) fn memory_bytes(&self) -> usize {
        let values = self.uploads.memory_bytes() + self.gathers.memory_bytes();
        let inside = self.extensions.memory_bytes() + self.rewrites.memory_bytes();
        values + inside + self.deposits.memory_bytes()
    }

    /// How many values are written and read.
    pub(super) fn count(&self, stats: &mut ObjectStats) {
        (stats.uploads, stats.gathers) = (self.uploads.len() as u64, self.gathers.len() as u64);
        stats.deposits = self.deposits.len() as u64;
        self.uploads.count(stats);
        stats.rewritten_values = self.rewrites.written();
        stats.hedged_cells = self.gathers.hedged_cells();
    }
}

/// For clients of this host.
impl Transfers {
    /// A value is to be written.
    pub(crate) fn begin_upload(
        &mut self,
        scope: &Scope<'_>,
        token: Token,
        owner: (MemberId, KeyHash),
        new: NewUpload,
        wanted: &mut Wanted,
    ) -> Result<UploadId, Failure> {
        let (upload, request) = self.uploads.begin(scope, Client::Driver(token), owner, new)?;
        wanted.requests.push(request);
        Ok(upload)
    }

    /// How many bytes an upload takes in one piece now.
    pub(crate) fn upload_wants(&mut self, upload: UploadId) -> usize {
        self.uploads.wanted(upload)
    }

    /// The next bytes of an upload.
    pub(crate) fn feed(
        &mut self,
        scope: &mut Scope<'_>,
        upload: UploadId,
        bytes: Bytes,
        wanted: &mut Wanted,
    ) {
        self.uploads.feed(scope, upload, bytes);
        let step = self.uploads.go_on(scope, upload);
        self.take_step(step, wanted);
    }

    /// Nobody wants it any more.
    pub(crate) fn abandon_upload(&mut self, upload: UploadId, wanted: &mut Wanted) {
        let request = self.uploads.abandon(upload);
        self.take_step(Step { ended: None, request }, wanted);
    }

    /// A value is to be read.
    pub(crate) fn begin_gather(
        &mut self,
        scope: &mut Scope<'_>,
        token: Token,
        hash: KeyHash,
        new: NewGather,
        wanted: &mut Wanted,
    ) -> Result<GatherId, Failure> {
        let id = self.gathers.begin(scope, Client::Driver(token), hash, new)?;
        let progress = self.gathers.go_on(scope, id);
        self.take_progress(progress, wanted);
        Ok(id)
    }

    /// A reader has taken so many bytes.
    pub(crate) fn gather_taken(
        &mut self,
        scope: &mut Scope<'_>,
        id: GatherId,
        bytes: usize,
        wanted: &mut Wanted,
    ) {
        self.gathers.taken(id, bytes);
        let progress = self.gathers.go_on(scope, id);
        self.take_progress(progress, wanted);
    }

    /// Nobody reads any more.
    pub(crate) fn abandon_gather(&mut self, id: GatherId, wanted: &mut Wanted) {
        wanted.requests.extend(self.gathers.abandon(id));
    }

    /// A chunk is to be put here.
    pub(crate) fn begin_deposit(
        &mut self,
        scope: &Scope<'_>,
        token: Token,
        new: NewDeposit,
    ) -> Result<DepositId, Failure> {
        self.deposits.begin(scope, token, new)
    }

    /// Its next cell.
    pub(crate) fn feed_deposit(&mut self, scope: &mut Scope<'_>, id: DepositId, cell: Bytes) {
        let heard = self.deposits.feed(scope, id, cell);
        self.tell_of_deposit(heard);
    }

    /// Nobody puts it any more; of whose chunk cells may have come.
    pub(crate) fn abandon_deposit(&mut self, id: DepositId) -> Option<MemberId> {
        self.deposits.abandon(id)
    }
}
