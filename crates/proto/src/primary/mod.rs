//! A primary: the member that serves a data role (group protocol, sections 2 to 5).
//!
//! The area and the index hold *committed* state only. What is decided and not yet committed lives in the log, with
//! the newest such state of each key in `keys`. Reads see the area; writes are decided against the newest state.
//!
//! One file per concern: `request` (a client's request), `execute` (what it means), `write` (records), `parities`
//! (sending, acks, leases, stalls), `evicted` and `history` (for those that come back), `commit`, `space` (extents and reclamation), `release` (extents that go back), `takeover` and `repair` (stand-ins),
//! `teach` (learners), `hand_over` (a role that moves), `wall` (when an item has expired).

mod commit;
mod evicted;
mod execute;
mod hand_over;
mod history;
mod log;
mod page_waiters;
mod parities;
mod release;
mod repair;
mod request;
mod space;
mod takeover;
mod teach;
mod versions;
mod wall;
mod write;

use bytes::Bytes;
use cluster::{FastMap, GroupView, HostId, MemberId, RoleStatus, Seq, Term, Time};
use store::{Budget, DataStore, StoreConfig};
use wire::op::{Failure, Outcome};

pub(crate) use execute::is_repeatable;
pub(crate) use request::Pending;

use crate::outbox::{Context, Sender};
use evicted::Evicted;
use hand_over::HandingOver;
use log::Log;
use parities::ParityPeer;
use release::Release;
use repair::Repair;
use request::Waiting;
use space::Growth;
use takeover::Taking;
use teach::LearnerPeer;
use wall::Wall;
use write::PendingKey;

/// See the module.
pub(crate) struct Primary {
    member: MemberId,
    term: Term,
    host: HostId,
    view: GroupView,
    phase: Phase,
    /// Not before this the former primary's lease has surely ended.
    serve_from: Time,
    log: Log,
    /// Newest committed record (ST).
    committed: Seq,
    parities: Vec<ParityPeer>,
    learners: Vec<LearnerPeer>,
    evicted: Vec<Evicted>,
    handing_over: Option<HandingOver>,
    /// Frames sent before this renew no lease.
    lease_from: Time,
    wall: Wall,
    taught_bytes: u64,
    expired_reads: u64,
    keys: FastMap<Bytes, PendingKey>,
    /// Newest uncommitted `Clear`.
    cleared: Option<Seq>,
    /// Newest uncommitted `FlushAt` of a client.
    scheduled: Option<Seq>,
    waiting: Waiting,
    growth: Growth,
    release: Option<Release>,
    repair: Repair,
    last_tick: Time,
    /// Whether `flush` has something to look at.
    dirty: bool,
    config: StoreConfig,
    budget: Budget,
}

/// What a primary has.
enum Phase {
    /// A stand-in that is still fetching its index.
    Taking(Box<Taking>),
    /// Everything but, on a stand-in, some pages.
    Serving(Box<DataStore>),
}

impl Primary {
    /// The first primary of a role's life: an empty area.
    pub(crate) fn first(
        context: &mut Context<'_>,
        member: MemberId,
        host: HostId,
        view: &GroupView,
        config: &StoreConfig,
        budget: &Budget,
    ) -> Result<Self, store::AreaError> {
        let store = DataStore::new(config.clone(), budget.clone())?;
        let phase = Phase::Serving(Box::new(store));
        let start = view.data_role(member.role).map_or(Seq(0), |role| role.first_seq());
        Ok(Self::assemble(context, member, host, view, (phase, start, Time(0)), (config, budget)))
    }

    fn assemble(
        context: &mut Context<'_>,
        member: MemberId,
        host: HostId,
        view: &GroupView,
        (phase, start, serve_from): (Phase, Seq, Time),
        (config, budget): (&StoreConfig, &Budget),
    ) -> Self {
        let role = view.data_role(member.role).expect("the caller found itself in this view");
        let mut primary = Self {
            member,
            term: role.term,
            host,
            view: view.clone(),
            phase,
            serve_from,
            log: Log::starting_after(start, budget.clone()),
            committed: start,
            parities: Vec::new(),
            learners: Vec::new(),
            evicted: Vec::new(),
            handing_over: None,
            lease_from: Time(0),
            wall: Wall::default(),
            taught_bytes: 0,
            expired_reads: 0,
            keys: FastMap::default(),
            cleared: None,
            scheduled: None,
            waiting: Waiting::default(),
            growth: Growth::default(),
            release: None,
            repair: Repair::default(),
            last_tick: context.now.time,
            dirty: false,
            config: config.clone(),
            budget: budget.clone(),
        };
        primary.parities =
            view.in_sync().map(|(role, host)| ParityPeer::new(role, host, start, context.now.time)).collect();
        primary.expect_the_missing_back(context.now.time);
        primary.adopt_learners(context.now.time);
        primary.greet_all(context);
        primary
    }

    pub(crate) fn member(&self) -> MemberId {
        self.member
    }

    pub(crate) fn term(&self) -> Term {
        self.term
    }

    pub(crate) fn committed(&self) -> Seq {
        self.committed
    }

    pub(crate) fn last(&self) -> Seq {
        self.log.last()
    }

    /// The store, once there is one.
    pub(crate) fn store(&self) -> Option<&DataStore> {
        match &self.phase {
            Phase::Serving(store) => Some(store),
            Phase::Taking(_) => None,
        }
    }

    fn store_mut(&mut self) -> Option<&mut DataStore> {
        match &mut self.phase {
            Phase::Serving(store) => Some(store),
            Phase::Taking(_) => None,
        }
    }

    /// Records not yet committed, oldest first.
    pub(crate) fn uncommitted(&self) -> impl Iterator<Item = &wire::message::Record> {
        self.log.records_after(self.committed)
    }

    pub(crate) fn log_len(&self) -> usize {
        self.log.len()
    }

    pub(crate) fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    /// Memory of the records that are kept.
    pub(crate) fn log_memory_bytes(&self) -> usize {
        self.log.memory_bytes()
    }

    /// Memory of the pages that sessions have brought.
    pub(crate) fn repair_memory_bytes(&self) -> usize {
        self.repair.memory_bytes()
    }

    /// Memory of the requests that wait, and of the table of keys with uncommitted records.
    pub(crate) fn queue_memory_bytes(&self) -> usize {
        self.waiting.memory_bytes() + self.keys.capacity() * (size_of::<(Bytes, PendingKey)>() + 1)
    }

    /// Items removed so far: to make room, and because they had expired.
    pub(crate) fn removed(&self) -> (u64, u64) {
        (self.growth.evicted, self.growth.expired)
    }

    /// How many of either nobody had read.
    pub(crate) fn removed_unread(&self) -> (u64, u64) {
        (self.growth.evicted_unread, self.growth.expired_unread)
    }

    /// Reads so far that met an item which had expired.
    pub(crate) fn expired_reads(&self) -> u64 {
        self.expired_reads
    }

    /// Writes refused so far for want of room.
    pub(crate) fn refused_writes(&self) -> u64 {
        self.growth.refused
    }

    /// Extents given back so far.
    pub(crate) fn released_extents(&self) -> u64 {
        self.growth.released
    }

    /// For tests of what notices.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn damage(&mut self, byte: usize, mask: u8) {
        if let Some(store) = self.store_mut() {
            store.damage(byte, mask);
        }
    }

    fn sender(&self) -> Sender {
        Sender { group: self.member.group, role: self.member.role, view: self.view.version }
    }

    fn is_rebuilding(&self) -> bool {
        matches!(self.view.data_role(self.member.role).map(|r| r.status), Some(RoleStatus::Rebuilding { .. }))
    }

    /// Whether `view` still has this member as the primary of this term.
    pub(crate) fn is_named_by(&self, view: &GroupView) -> bool {
        view.data_role(self.member.role)
            .is_some_and(|role| role.primary == Some(self.host) && role.term == self.term)
    }

    /// A newer view that still names this member: parities that left are no longer waited for, sessions start anew.
    pub(crate) fn adopt(&mut self, context: &mut Context<'_>, view: &GroupView) {
        debug_assert!(self.is_named_by(view) && view.version > self.view.version);
        self.view = view.clone();
        self.adopt_learners(context.now.time);
        self.reconsider_hand_over(context.now.time);
        self.part_with_parities(context.now.time);
        self.repair.forget_sessions();
        self.advance(context);
        self.settle_growth(context);
        self.retry_takeover(context);
        self.retry_waiting(context);
        self.demand_waiting(context);
        self.sweep(context);
    }

    /// Deposed: open writes have an unknown outcome; requests that have not begun go back to be routed anew.
    pub(crate) fn step_down(mut self, context: &mut Context<'_>) -> Vec<Pending> {
        while let Some(entry) = self.log.pop() {
            for (reply, _) in entry.answers {
                context.reply(reply, Outcome::Failed(Failure::Unknown));
            }
        }
        self.waiting.take_all()
    }

    /// Timers.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) {
        self.last_tick = context.now.time;
        self.tick_parities(context);
        self.tick_evicted(context);
        self.report_ended_lessons(context);
        self.complain_of_learners(context);
        self.tick_hand_over(context);
        self.tick_space(context);
        self.tick_release(context);
        self.retry_takeover(context);
        self.tick_repair(context);
        self.tick_flush(context);
        self.expire_waiting(context);
        self.expire_logged(context);
        self.retry_waiting(context);
    }

    /// When `tick` has something to do, at the latest.
    pub(crate) fn next_deadline(&self, timing: &crate::Timing) -> Time {
        let mut next = self.parities_deadline(timing);
        if self.serve_from > self.last_tick {
            next = next.min(self.serve_from);
        }
        if let Some(handing_over) = &self.handing_over {
            next = next.min(handing_over.until());
        }
        if !self.waiting.is_empty() || self.repair.is_active() || self.is_rebuilding() || self.is_teaching() {
            next = next.min(self.last_tick + timing.retry_us / 8);
        }
        next
    }
}
