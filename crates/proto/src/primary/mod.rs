//! A primary: the member that serves a data role (group protocol, sections 2 to 5).
//!
//! The area and the index hold *committed* state only. What is decided and not yet committed lives in the stream. Reads see the
//! area; writes are decided against the newest state.
//!
//! Each part keeps its own fields, takes what it needs of the others as arguments, and gives back what has to happen
//! elsewhere. This file routes: an event goes down to the parts that it concerns.
//!
//! | part | what it keeps |
//! | --- | --- |
//! | `core` | who this is: member, term, view |
//! | `phase` | the store, or an index on its way (`takeover`) |
//! | `stream` | records on their way, and what keys will be by them |
//! | `parities` | what each parity has; the lease |
//! | `absentees` | parities that may come back |
//! | `lessons` | learners, and what they know already |
//! | `space`, `release`, `yielding` | how the area grows and is emptied; extents that go back, also for chunks |
//! | `repair` | sessions for absent pages |
//! | `hand_over` | a role that moves |
//! | `waiting` | requests that wait |
//! | `wall` | when an item has expired |
//! | `objects` | ids of objects that may be committed, and who reads them |
//! | `sessions` | writes that are done once |
//! | `charges` | what namespaces with a quota take of the node's shares |
//! | `departures`, `arrivals` | items that are given to another pool, and those that come of one; `moving` is about requests of such keys |
//!
//! `timers` says what is done when time has passed, `request` is what becomes of a client's request, `execute` what it means, `commit` when it is acknowledged.

mod absentees;
mod arrivals;
mod charges;
mod commit;
mod core;
mod departures;
mod events;
mod execute;
mod hand_over;
mod info;
mod lessons;
mod moving;
mod objects;
mod parities;
mod phase;
mod quick;
mod release;
mod repair;
mod request;
mod scan;
mod sessions;
mod space;
mod stream;
mod takeover;
mod timers;
mod waiting;
mod wall;
mod yielding;

#[cfg(test)]
mod tests;

use store::DataStore;
use types::{GroupView, HostId, MemberId, RoleStatus, Seq, Term, Time, UnixSeconds};
use wire::object::{Asked, Cold, Harm};

pub(crate) use self::core::Core;
pub(crate) use execute::is_repeatable;
pub(crate) use hand_over::Question;
pub(crate) use info::PrimaryCounts;
pub use info::PrimaryInfo;
use info::{PrimaryMemory, PrimaryStats};
pub use quick::{QuickRead, Seen};
pub(crate) use waiting::Pending;

use crate::outbox::{Context, Means};
use crate::parity::Parity;
use crate::timers::TimerTable;
use absentees::Absentees;
use arrivals::Arrivals;
use charges::Charges;
use departures::Departures;
use hand_over::HandOver;
use lessons::{Lessons, Required};
pub use objects::LostKey;
use objects::OwnedObjects;
use parities::Parities;
use phase::Phase;
use release::Release;
use repair::{Repair, Site};
use sessions::Sessions;
use space::Space;
use stream::SendStream;
use takeover::Taking;
use timers::TIMERS;
pub(crate) use timers::Touched;
use waiting::Waiting;
use wall::Wall;
pub(crate) use yielding::make_way;

/// See the module.
pub(crate) struct Primary {
    core: Core,
    phase: Phase,
    stream: SendStream,
    parities: Parities,
    absentees: Absentees,
    lessons: Lessons,
    space: Space,
    release: Release,
    repair: Repair,
    hand_over: HandOver,
    waiting: Waiting,
    wall: Wall,
    charges: Charges,
    objects: OwnedObjects,
    sessions: Sessions,
    departures: Departures,
    arrivals: Arrivals,
    /// Not before this the former primary's lease has surely ended.
    serve_from: Time,
    /// When what is done now and then was done last.
    kept_up: Time,
    timers: TimerTable<TIMERS>,
    /// Whether the timers may have to be set anew.
    touched: Touched,
    expired_reads: u64,
    /// Times that there was no room for a write.
    refused_writes: u64,
}

impl Primary {
    /// The first primary of a role's life: an empty area.
    pub(crate) fn first(
        context: &mut Context<'_>,
        member: MemberId,
        host: HostId,
        view: &GroupView,
        means: Means<'_>,
    ) -> Result<Self, store::AreaError> {
        let core = Core::new(member, host, view, means);
        let store = DataStore::new(means.config.clone(), means.budget.clone())?;
        let start = view.data_role(member.role).map_or(Seq(0), |role| role.first_seq());
        Ok(Self::assemble(context, core, Phase::Serving(Box::new(store)), start, Time(0)))
    }

    /// A stand-in for `member`, which `view` appoints; if its mirror is here, with everything that the mirror has.
    pub(crate) fn stand_in(
        context: &mut Context<'_>,
        member: MemberId,
        host: HostId,
        view: &GroupView,
        mirror: Option<Parity>,
        means: Means<'_>,
    ) -> Option<Self> {
        let RoleStatus::Rebuilding { start, wait_us } = view.data_role(member.role)?.status else {
            return None;
        };
        let core = Core::new(member, host, view, means);
        let serve_from = context.now.time + context.rules.waits_for_old_lease(wait_us);
        let (phase, wall) = match mirror.and_then(|mirror| store_of(&core, mirror, start)) {
            Some((store, wall)) => (Phase::Serving(Box::new(store)), wall),
            None => (Phase::Taking(Box::new(Taking::new(means.budget))), UnixSeconds(0)),
        };
        let mut primary = Self::assemble(context, core, phase, start, serve_from);
        primary.wall.never_below(wall);
        primary.phase.retry_takeover(context, &primary.core, &primary.parities);
        // Who was the mirror lacks nothing, and this says so at once.
        primary.go_on_repairing(context);
        Some(primary)
    }

    fn assemble(context: &mut Context<'_>, core: Core, phase: Phase, start: Seq, serve_from: Time) -> Self {
        let now = context.now.time;
        let (mut parities, mut absentees) = (Parities::new(&core, start, now), Absentees::default());
        let mut lessons = Lessons::default();
        absentees.expect_all(&core, start, now);
        lessons.adopt(&core, now);
        parities.greet_all(context, &core, start);
        Self {
            phase,
            stream: SendStream::starting_after(start, core.budget().clone()),
            parities,
            absentees,
            lessons,
            space: Space::default(),
            release: Release::default(),
            repair: Repair::default(),
            hand_over: HandOver::default(),
            waiting: Waiting::default(),
            wall: Wall::new(core.rules()),
            charges: Charges::default(),
            objects: OwnedObjects::of_new_term(context),
            sessions: Sessions::default(),
            departures: Departures::default(),
            arrivals: Arrivals::default(),
            serve_from,
            kept_up: now,
            timers: TimerTable::default(),
            touched: Touched::ByEvents,
            expired_reads: 0,
            refused_writes: 0,
            core,
        }
    }

    /// Who this is.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// The store, once there is one.
    pub(crate) fn store(&self) -> Option<&DataStore> {
        self.phase.store()
    }

    /// What is inside, for those who look.
    pub(crate) fn info(&self) -> PrimaryInfo<'_> {
        PrimaryInfo {
            member: self.core.member(),
            term: self.core.term(),
            committed: self.stream.committed(),
            last: self.stream.last(),
            store: self.store(),
            uncommitted: self.stream.uncommitted().collect(),
            waiting: self.waiting.len(),
        }
    }

    pub(crate) fn stats(&self) -> PrimaryStats {
        let untaught = |store| self.lessons.untaught_bytes(store, &self.stream);
        let counts = PrimaryCounts {
            removed: self.space.removed(),
            expired_reads: self.expired_reads,
            refused_writes: self.refused_writes,
            released_extents: self.release.released(),
            rebuilt_bytes: self.repair.repaired_bytes() + self.lessons.taught_bytes(),
        };
        PrimaryStats {
            counts,
            uncommitted_records: self.stream.len() as u64,
            waiting_requests: self.waiting.len() as u64,
            untaught_bytes: self.store().map_or(0, untaught),
            open_ids: self.objects.open_count() as u64,
            pins: self.objects.pin_count() as u64,
            client_sessions: self.store().map_or(0, |store| store.replica().sessions().len() as u64),
            write_results: self.store().map_or(0, |store| store.replica().sessions().result_count() as u64),
        }
    }

    pub(crate) fn memory(&self) -> PrimaryMemory {
        PrimaryMemory {
            log_bytes: self.stream.log_memory_bytes(),
            repair_bytes: self.repair.memory_bytes(),
            queue_bytes: self.waiting.memory_bytes()
                + self.stream.keys_memory_bytes()
                + self.objects.memory_bytes()
                + self.sessions.memory_bytes()
                + self.departures.memory_bytes()
                + self.arrivals.memory_bytes(),
        }
    }

    /// For tests of what notices.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn damage(&mut self, byte: usize, mask: u8) {
        if let Some(store) = self.phase.store_mut() {
            store.damage(byte, mask);
        }
    }

    /// What holds after every event.
    pub(crate) fn check_invariants(&self) {
        self.stream.check_invariants();
        let has_learned = |peer| self.lessons.has_ended(peer);
        self.parities.check_invariants(&self.core, &self.stream, has_learned);
        self.lessons.check_invariants(&self.parities);
        self.hand_over.check_invariants(&self.core);
        self.release.check_invariants(&self.stream);
        self.wall.check_invariants();
        self.objects.check_invariants();
        self.sessions.check_invariants();
        self.departures.check_invariants();
        assert!(self.stream.is_empty() || self.store().is_some(), "only a store's changes are on their way");
        let lacks_pages = self.store().is_none_or(|store| store.absent_count() > 0);
        assert!(!lacks_pages || self.core.is_rebuilding(), "only a stand-in lacks pages");
        if let Some(store) = self.store() {
            store.check_sums();
            self.charges.check_invariants(store.replica().cohorts());
        }
    }

    /// Deposed: open writes have an unknown outcome; requests that have not begun go back to be routed anew.
    pub(crate) fn step_down(self, context: &mut Context<'_>) -> Vec<Pending> {
        self.stream.abandon(context);
        self.waiting.take_all()
    }

    /// Sends what is due; `arm` must follow. Called once per batch of events.
    pub(crate) fn flush(&mut self, context: &mut Context<'_>) {
        if !self.stream.take_stirred() {
            return;
        }
        self.touch(Touched::ByTraffic);
        // First, for it may log wipes, which go out with everything else.
        self.go_on_releasing(context);
        let wall = self.wall.send(context.now.unix);
        self.lessons.teach(context, &self.core, &self.stream, self.phase.store(), wall);
        // Without parities there is nobody to wait for. What begins because of that is for the next batch: a sweep would go on to
        // its end here.
        if self.parities.is_empty() {
            self.advance(context);
        }
        // After all commits, so that the Frames tell of them.
        self.parities.send_frames(context, &self.core, &self.stream, &mut self.wall);
        // After the Frames, which may need what goes now. What a parity has applied counts, and not what it has: should
        // it be evicted, it goes on from there.
        let applied = self.parities.applied_by_all().into_iter();
        let wanted = applied.chain(self.absentees.applied_by_all()).min();
        self.stream.trim_history(context.limits, wanted);
    }

    fn report_ended_lessons(&mut self, context: &mut Context<'_>) {
        let required = Required::of(&self.stream, &self.wall);
        self.lessons.report_ended(context, &self.core, &self.parities, required);
    }

    fn release_if_due(&mut self, context: &mut Context<'_>) {
        if self.store().is_some_and(|store| self.release.is_due(context, &self.core, store)) {
            self.begin_release(context);
        }
    }

    /// Begins to give an extent back, unless one is on its way; whether one is then, and nothing holds it up.
    fn begin_release(&mut self, context: &mut Context<'_>) -> bool {
        let undisturbed = self.is_undisturbed();
        if undisturbed && self.may_serve(context.now.time, context.timing) {
            self.release.begin(self.phase.serving_mut(), &mut self.stream);
        }
        undisturbed && self.release.is_under_way()
    }

    /// Whether nobody learns, or may want to, what the role has.
    fn is_undisturbed(&self) -> bool {
        // They hear of the extents at the end of a lesson: one that went meanwhile they might have again.
        self.lessons.is_empty() && self.absentees.is_empty() && !self.core.is_rebuilding()
    }

    /// Logs the next wipes; gives the extent up once all are applied everywhere.
    fn go_on_releasing(&mut self, context: &mut Context<'_>) {
        let undisturbed = self.is_undisturbed();
        let Some(store) = self.phase.store_mut() else { return };
        // Wipes that have begun go on in any case: they are records like any other.
        self.release.wipe(context, store, &mut self.stream);
        let now = context.now.time;
        if undisturbed && self.release.give_up(now, &self.core, store, &self.stream, &mut self.parities) {
            self.retry_waiting(context);
            self.release_if_due(context);
            yielding::go_on(self, context);
        }
    }

    /// Where sessions can be opened now, if anywhere.
    fn repair_at_site(&mut self) -> Option<(&mut Repair, Site<'_>)> {
        let store = self.phase.store()?;
        let site = Site::if_ready(&self.core, &self.stream, store, !self.parities.is_empty())?;
        Some((&mut self.repair, site))
    }

    /// Opens sessions for the pages that requests wait for, and for the background sweep.
    fn go_on_repairing(&mut self, context: &mut Context<'_>) {
        if !self.core.is_rebuilding() {
            return;
        }
        let Some(store) = self.phase.store() else { return };
        let site = Site::if_ready(&self.core, &self.stream, store, !self.parities.is_empty());
        if let Some(site) = site {
            self.repair.demand_waiting(context, site, self.waiting.for_pages());
            self.repair.sweep(context, site);
        }
        // Also when no parity is left to ask: then the coordinator decides whether the role is lost.
        self.repair.report_if_whole(context, &self.core, store);
    }
}

/// What has become of objects, for a holder that asks; none while this primary cannot know: another one may have replaced it, and freed
/// what is here.
pub(crate) fn verdicts(
    primary: &Primary,
    context: &Context<'_>,
    asked: &[Asked],
) -> Option<(Term, objects::Known)> {
    let now = context.now.time;
    if !context.rules.objects().owner_answers(primary.may_serve(now, context.timing)) {
        return None;
    }
    let Primary { core, phase, objects, .. } = primary;
    Some((core.term(), objects.verdicts(core, phase.store()?, now, asked)))
}

/// Somebody has found that of the chunks of these objects.
pub(crate) fn note_harm(primary: &mut Primary, found: &[Asked], harm: Harm) {
    let Primary { phase, objects, .. } = primary;
    if let Some(store) = phase.store() {
        objects.note_harm(store, found, harm);
    }
}

/// Keys whose values have too few chunks left, or wrong ones, as far as that was found.
pub(crate) fn harmed_keys(primary: &Primary) -> impl Iterator<Item = &LostKey> {
    primary.objects.harmed_keys()
}

/// A holder short of room names objects that were not read for long: those that may go are evicted.
pub(crate) fn evict(primary: &mut Primary, context: &mut Context<'_>, named: &[Cold]) {
    if !primary.may_serve(context.now.time, context.timing) {
        return;
    }
    let Primary { core, phase, objects, space, stream, wall, .. } = primary;
    let (store, wall) = (phase.serving_mut(), wall.at(context.now.unix));
    let victims = objects.victims(core.rules(), store, named);
    space.remove(context, store, stream, &victims, wall);
}

/// The store and the second of a mirror that is whole.
fn store_of(core: &Core, mirror: Parity, start: Seq) -> Option<(DataStore, UnixSeconds)> {
    let (area, replica, wall) = mirror.into_store(core.term(), start)?;
    match DataStore::from_mirror(core.config().clone(), core.budget().clone(), area, replica) {
        Ok(store) => Some((store, wall)),
        Err(error) => {
            tracing::error!(member = %core.member(), %error, "a mirror cannot be used; fetching the index");
            None
        }
    }
}
