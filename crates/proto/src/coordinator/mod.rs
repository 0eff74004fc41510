//! The coordinator: membership by leases, views by compare-and-swap, recovery of lost roles (protocol, section 4).
//!
//! All parts stand on `state`: the nodes, the map and its views, and what is to be done. `membership` forms the cluster and
//! notices who is lost (`admission`: who may be a node), `repairs` sees to what follows: `recovery` walks a lost data role from
//! fence to stand-in, `loss` judges what is lost for good. `complaints` finds out who is cut off from whom, `learners` has new
//! parities built and roles moved, `quotas` deals out what nodes may take, `conversions` ends
//! the moves of namespaces to other pools, `admin` does what operators ask, `decide` holds the choices that are pure functions of a
//! view. `records` says what has to be written down, `outbox` what waits for it, and `gathering` and `succession` how another
//! coordinator goes on from there. Off the data path: while the coordinator is away, nothing is reconfigured and everything
//! else goes on. `timers` has what each part waits for: a part says when it is due, and nothing polls.

mod admin;
#[cfg(test)]
mod admin_tests;
mod admission;
mod attention;
mod catalog;
mod complaints;
mod contract;
mod conversions;
mod decide;
mod electors;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod forming_tests;
mod gathering;
#[cfg(test)]
mod gathering_tests;
mod holders;
mod hosting;
mod inspect;
mod keeping;
mod learners;
mod look;
mod loss;
#[cfg(test)]
mod loss_tests;
mod membership;
mod nodes;
mod outbox;
#[cfg(test)]
mod place_tests;
mod quotas;
mod records;
mod recovery;
mod repairs;
mod state;
mod store_view;
mod succession;
#[cfg(test)]
mod succession_tests;
#[cfg(test)]
mod tests;
mod timers;
#[cfg(test)]
mod timers_tests;
mod view_index;

use std::collections::BTreeSet;

use types::{AdminCommand, AdminError, AdminReply, AdminRequest, HostId, MemberId, NodeId};
use wire::message::{FromCoordinator, KeptRecords, ToCoordinator};
use wire::record::Record;

use crate::timers::TimerTable;
use crate::{Impossible, Now};
use complaints::{Complaints, Stalled};
pub use contract::{CoordinatorAction, CoordinatorConfig, RecordKeeping};
use conversions::{Conversions, Converted};
pub use gathering::Gathered;
use gathering::{Gathering, Verdict};
use keeping::Keeping;
use learners::{CaughtUp, HandedOver, Learners};
use membership::Membership;
use quotas::Quotas;
use recovery::{Answer, FencedAnswer, SettledAnswer};
use repairs::{Repairs, Starved};
use state::ClusterState;
use succession::Found;
pub use succession::ResumeError;
use timers::TIMERS;

/// A coordinator: the embedded one, or one of several that follow each other.
pub struct Coordinator {
    state: ClusterState,
    membership: Membership,
    repairs: Repairs,
    complaints: Complaints,
    learners: Learners,
    quotas: Quotas,
    conversions: Conversions,
    /// Set while this coordinator does not know yet where to go on.
    gathering: Option<Gathering>,
    timers: TimerTable<TIMERS>,
}

impl Coordinator {
    /// A coordinator that waits for its nodes.
    #[must_use]
    pub fn new(config: CoordinatorConfig) -> Self {
        let mut coordinator = Self {
            state: ClusterState::new(config),
            membership: Membership::default(),
            repairs: Repairs::default(),
            complaints: Complaints::default(),
            learners: Learners::default(),
            quotas: Quotas::default(),
            conversions: Conversions::default(),
            gathering: None,
            timers: TimerTable::default(),
        };
        coordinator.arm();
        coordinator
    }

    /// The coordinator that goes on from `records`, all that there are; the first of all if there are none. What the records
    /// say of the cluster (identity, profile, groups, workers) counts, and not `config`.
    ///
    /// # Errors
    /// The record that is missing, or that cannot be: then nothing may be done before an operator has seen to it.
    pub fn resume(
        config: CoordinatorConfig,
        records: impl IntoIterator<Item = Record>,
        now: Now,
    ) -> Result<Self, ResumeError> {
        let found = succession::find(records, config.groups)?;
        let mut coordinator = Self::new(config);
        coordinator.membership.attention_mut().begin(now.time);
        match found {
            Found::Nothing(None) => {}
            Found::Nothing(Some(version)) => coordinator.membership.form_above(version),
            Found::Cluster(records) => coordinator.go_on_from(now, *records)?,
        }
        coordinator.arm();
        Ok(coordinator)
    }

    /// A coordinator that knows nothing, and whose nodes may know more. `without_quorum`: an operator says that those that answer
    /// within five seconds and two leases are all that there are; the others count as fenced then.
    #[must_use]
    pub fn gather(config: CoordinatorConfig, now: Now, without_quorum: bool) -> Self {
        let mut coordinator = Self::new(config);
        coordinator.membership.attention_mut().begin(now.time);
        coordinator.gathering = Some(Gathering::begin(now.time, without_quorum));
        coordinator.arm();
        coordinator
    }

    /// A message of `from`. `Register` names the process; later messages on the connection come from the same.
    pub fn handle(&mut self, now: Now, from: HostId, message: ToCoordinator) {
        if self.has_resigned() {
            return;
        }
        let was_away = self.forgive_own_absence(now.time);
        let known = self.standing();
        let is_plain = matches!(message, ToCoordinator::Heartbeat { .. }) && !was_away;
        match self.gathering.is_some() {
            true => self.witness(now, from, message),
            false => self.preside(now, from, message),
        }
        self.reconsider(now);
        match is_plain && known == self.standing() {
            true => self.arm_after_heartbeat(now.time),
            false => self.arm(),
        }
        self.check_invariants();
    }

    /// What timers rest on that a heartbeat can change, but for how long its sender has been silent.
    fn standing(&self) -> (u64, bool, bool, bool) {
        let attention = self.membership.attention();
        (self.state.changes(), attention.decides(), attention.hears_few(), self.gathering.is_some())
    }

    /// Something was said, or is known: that may have been what was missing.
    fn reconsider(&mut self, now: Now) {
        match self.gathering.is_some() {
            true => self.decide_where_to_go_on(now),
            false => self.membership.note_heard(now, &self.state),
        }
    }

    /// A message while this coordinator knows nothing.
    fn witness(&mut self, now: Now, from: HostId, message: ToCoordinator) {
        let Some(gathering) = &mut self.gathering else { return };
        let state = &mut self.state;
        match message {
            ToCoordinator::Register(registration) => gathering.register(now, state, registration),
            ToCoordinator::Heartbeat { .. } => gathering.hear(now, state, from),
            ToCoordinator::Recalled { epoch, kept } => {
                gathering.handle_recalled(now, state, from, epoch, kept);
            }
            ToCoordinator::Admin { id, .. } => {
                state.send(from, FromCoordinator::Admin { id, reply: Err(AdminError::NotFormed) });
            }
            // To a coordinator that knew more.
            ToCoordinator::FetchView { .. }
            | ToCoordinator::Stalled { .. }
            | ToCoordinator::Repaired { .. }
            | ToCoordinator::Fenced { .. }
            | ToCoordinator::Settled { .. }
            | ToCoordinator::CaughtUp { .. }
            | ToCoordinator::GaveUp { .. }
            | ToCoordinator::HandedOver { .. }
            | ToCoordinator::Confirmed { .. }
            | ToCoordinator::Quotas(_)
            | ToCoordinator::Chunks(_)
            | ToCoordinator::Converted { .. }
            | ToCoordinator::Starved { .. }
            | ToCoordinator::Kept { .. } => {}
        }
    }

    /// A message to one that knows where it is.
    fn preside(&mut self, now: Now, from: HostId, message: ToCoordinator) {
        let state = &mut self.state;
        if let ToCoordinator::Register(registration) = message {
            return self.membership.register(now, state, &mut self.repairs, registration);
        }
        if let ToCoordinator::Kept { position, epoch } = message {
            // Says that somebody keeps records, and nothing of whether all workers run, as a heartbeat does.
            if epoch == state.epoch() {
                self.note_kept(from, position);
            }
            return;
        }
        // Before the epoch is looked at: whoever answers a former coordinator lives all the same.
        let is_heard = membership::hear(now, state, from);
        if !is_heard || message.epoch().is_some_and(|asked| asked != state.epoch()) {
            return;
        }
        match check_numbers(now, &message) {
            Err(why) => state.close(from, why),
            Ok(()) => self.route(now, from, message),
        }
    }

    /// To the part whose it is.
    fn route(&mut self, now: Now, from: HostId, message: ToCoordinator) {
        let (state, repairs, learners) = (&mut self.state, &mut self.repairs, &mut self.learners);
        match message {
            // Taken before.
            ToCoordinator::Register(_) | ToCoordinator::Kept { .. } => {}
            // Of when this coordinator did not know yet where to go on.
            ToCoordinator::Recalled { .. } => {}
            ToCoordinator::Heartbeat { map, load, .. } => {
                let forming = self.forming();
                self.membership.handle_heartbeat(&mut self.state, from, load, map, forming);
                self.quotas.remind(&mut self.state, from);
            }
            ToCoordinator::Quotas(report) => self.quotas.handle_report(state, from, report),
            ToCoordinator::FetchView { group } => state.send_view(from, group),
            ToCoordinator::Chunks(report) => holders::handle(state, from, report),
            ToCoordinator::Converted { member, namespace, number } => {
                self.conversions.handle(state, from, Converted { member, namespace, number });
            }
            ToCoordinator::Stalled { group, role, term, view, silent } => {
                let stalled = Stalled { member: MemberId { group, role }, term, view, silent };
                self.handle_stalled(now, from, &stalled);
            }
            ToCoordinator::Repaired { group, role, term } => {
                learners::handle_repaired(state, from, MemberId { group, role }, term);
            }
            ToCoordinator::Starved { group, role, term, bytes } => {
                let starved = Starved { member: MemberId { group, role }, term, bytes };
                repairs.handle_starved(now, state, from, &starved);
            }
            ToCoordinator::Fenced { group, role, term, parity, received, quiet_us, .. } => {
                let (member, answer) = (MemberId { group, role }, Answer { received, quiet_us });
                self.handle_fenced(now, from, &FencedAnswer { member, term, parity, answer });
            }
            ToCoordinator::Settled { group, role, term, parity, .. } => {
                let answer = SettledAnswer { member: MemberId { group, role }, term, parity };
                repairs.recoveries_mut().handle_settled(now, state, from, &answer);
            }
            ToCoordinator::CaughtUp { group, role, term, learner, lesson } => {
                let caught_up = CaughtUp { member: MemberId { group, role }, term, learner, lesson };
                learners.handle_caught_up(now, state, from, &caught_up);
            }
            ToCoordinator::GaveUp { group, learner, since } => {
                learners::handle_gave_up(now, state, from, MemberId { group, role: learner }, since);
            }
            ToCoordinator::HandedOver { group, role, term, since, asked_at, .. } => {
                let handed_over = HandedOver { member: MemberId { group, role }, term, since, asked_at };
                learners.handle_handed_over(now, state, repairs, from, &handed_over);
            }
            ToCoordinator::Confirmed { group, view, .. } => {
                repairs.losses_mut().handle_confirmed(from, group, view);
            }
            ToCoordinator::Admin { id, request } => {
                let reply = self.administer(now, &request);
                // Before the operator is: who then asks a node finds that it has been told.
                self.state.tell(None);
                self.state.send(from, FromCoordinator::Admin { id, reply });
            }
        }
    }

    fn note_kept(&mut self, from: HostId, position: u64) {
        if let Err(why) = self.state.outbox_mut().keeping_mut().note_kept(from, position) {
            self.state.close(from, why);
        }
    }

    fn handle_stalled(&mut self, now: Now, from: HostId, stalled: &Stalled) {
        // Complaints from while the coordinator was away may be long outdated; a primary repeats what still holds.
        if self.membership.attention().awake_us(now.time) >= self.state.timing().retry_us {
            self.complaints.handle_stalled(now, &mut self.state, &mut self.repairs, from, stalled);
        }
    }

    /// A parity answers to F1; or to a question that was asked to see whether it lives, of a term that is served.
    fn handle_fenced(&mut self, now: Now, from: HostId, fenced: &FencedAnswer) {
        let (state, member) = (&mut self.state, fenced.member);
        // A role that is being recovered has no primary, so no answer is for both.
        if self.repairs.recoveries_mut().handle_fenced(now, state, from, fenced) {
            return;
        }
        let data = state.view(member.group).and_then(|view| view.data_role(member.role));
        if data.is_some_and(|role| role.primary.is_some() && role.term == fenced.term) {
            let parity = (fenced.parity, from);
            if let Some(host) = self.complaints.handle_proof_of_life(now, state, member, parity) {
                self.repairs.depose(now, state, host, member);
            }
        }
    }

    /// Does what an operator asks, or says why not.
    ///
    /// # Errors
    /// See [`AdminError`]; nothing has changed then.
    pub fn administer(&mut self, now: Now, request: &AdminRequest) -> AdminReply {
        self.forgive_own_absence(now.time);
        let reply = admin::administer(now, &mut self.state, &mut self.repairs, request);
        if reply.is_ok() {
            self.note_done(&request.command);
        }
        self.reconsider(now);
        self.arm();
        reply
    }

    /// An operator's command is done.
    fn note_done(&mut self, command: &AdminCommand) {
        match command {
            // The removed one must not come in again as one that is merely late.
            AdminCommand::Remove { .. } => self.membership.end_founding(),
            // They are of primaries that are none any more.
            AdminCommand::Reset => self.complaints.forget_all(),
            AdminCommand::Drain { .. }
            | AdminCommand::Undrain { .. }
            | AdminCommand::Fence { .. }
            | AdminCommand::CanStop { .. }
            | AdminCommand::PauseRepair
            | AdminCommand::ResumeRepair
            | AdminCommand::LimitRepair { .. }
            | AdminCommand::Apply { .. }
            | AdminCommand::StartScrub { .. }
            | AdminCommand::StopScrub
            | AdminCommand::AcceptLoss { .. }
            | AdminCommand::SetLossPolicy { .. } => {}
            // Groups may have gone with a pool.
            AdminCommand::Catalog(_) => self.forget_gone_groups(),
        }
    }

    /// Groups are no more: nothing of theirs is under way.
    fn forget_gone_groups(&mut self) {
        let state = &self.state;
        self.complaints.forget_gone(state);
        self.repairs.forget_gone(state);
        self.learners.forget_gone(state);
    }

    /// The process of `node` is known to have ended (its parent saw it).
    pub fn exited(&mut self, now: Now, node: NodeId) {
        if self.has_resigned() {
            return;
        }
        match &mut self.gathering {
            Some(gathering) => gathering.note_ended(node),
            None => membership::exited(now, &mut self.state, &mut self.repairs, node),
        }
        self.reconsider(now);
        self.arm();
        self.check_invariants();
    }

    /// The connection of `host` has ended at its side, as it does when a process ends: it is waited for no longer than for a while.
    pub fn parted(&mut self, host: HostId) {
        self.state.nodes_mut().part(host);
        self.arm();
    }

    /// Pools whose namespaces take values in chunks are made ready for them, before the first one comes.
    pub fn open_pools(&mut self) {
        if !self.has_resigned() && self.gathering.is_none() {
            holders::open_early(&mut self.state);
            self.arm();
        }
    }

    /// The processes that the store of the records shows as alive, by leases that they keep there themselves. To be told after
    /// every change. Where nobody says so, the coordinator never resigns.
    pub fn store_sees(&mut self, now: Now, alive: &BTreeSet<HostId>) {
        self.membership.store_sees(now, &self.state, alive);
        self.arm();
    }

    /// Begins to build `member` on `host`: a parity that is missing or that moves, or the mirror of a data role that moves.
    /// False, and nothing has changed, where that cannot begin now.
    pub fn appoint_learner(&mut self, member: MemberId, host: HostId) -> bool {
        let appointed = learners::appoint(&mut self.state, member, host);
        self.arm();
        appointed
    }

    /// Goes on if enough has been heard.
    fn decide_where_to_go_on(&mut self, now: Now) {
        let Some(gathering) = &mut self.gathering else { return };
        match gathering.verdict(now.time, &self.state) {
            Verdict::Wait(gathered) => gathering.say_why_it_waits(&gathered),
            Verdict::Form => {
                tracing::info!("nobody keeps records of a cluster: forming one");
                self.admit_witnesses(now);
            }
            Verdict::Resume(kept) => match self.go_on_from_kept(now, kept) {
                Ok(()) => self.admit_witnesses(now),
                Err(error) => {
                    // It goes on asking: another node may keep what is whole.
                    let why = format!("the records that nodes keep do not fit together: {error}");
                    self.gathering.iter_mut().for_each(|gathering| gathering.say(why.clone()));
                }
            },
        }
    }

    fn go_on_from_kept(&mut self, now: Now, kept: KeptRecords) -> Result<(), ResumeError> {
        let records = succession::find_kept(kept.records)?;
        self.state.adopt_keeping(Keeping::of_electors(kept.electors));
        self.go_on_from(now, records)
    }

    fn go_on_from(&mut self, now: Now, records: succession::Records) -> Result<(), ResumeError> {
        succession::take_over(now, &mut self.state, records)?;
        self.repairs.go_on(now, &mut self.state);
        Ok(())
    }

    /// Those that ended meanwhile do so now, and then those register that have.
    fn admit_witnesses(&mut self, now: Now) {
        let Some(gathering) = self.gathering.take() else { return };
        let admitted = gathering.admit();
        for node in admitted.ended {
            self.exited(now, node);
        }
        for registration in admitted.registrations {
            self.membership.register(now, &mut self.state, &mut self.repairs, registration);
        }
    }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<CoordinatorAction> {
        self.state.poll_action()
    }

    /// What holds after every event.
    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.state.check_invariants();
            self.repairs.check_invariants(&self.state);
            self.check_timers();
        }
    }
}

/// Whether the numbers of `message` can be, as far as one message shows. It answers this very coordinator.
fn check_numbers(now: Now, message: &ToCoordinator) -> Result<(), Impossible> {
    match *message {
        ToCoordinator::Fenced { applied, received, .. } if applied > received => {
            Err(Impossible::Fenced { applied, received })
        }
        ToCoordinator::HandedOver { asked_at, .. } if asked_at > now.time => {
            Err(Impossible::AskedAt { asked_at, now: now.time })
        }
        // By name from here on: a message with a number has to be judged, or somebody has to say why not.
        ToCoordinator::Fenced { .. } | ToCoordinator::HandedOver { .. } => Ok(()),
        // Its own part knows how many records there are.
        ToCoordinator::Kept { .. } => Ok(()),
        // Their numbers are added up, echoed, or compared with those of views and loads.
        ToCoordinator::Register(_)
        | ToCoordinator::Heartbeat { .. }
        | ToCoordinator::Quotas(_)
        | ToCoordinator::Chunks(_)
        | ToCoordinator::Converted { .. }
        | ToCoordinator::Starved { .. }
        | ToCoordinator::FetchView { .. }
        | ToCoordinator::Stalled { .. }
        | ToCoordinator::Repaired { .. }
        | ToCoordinator::Settled { .. }
        | ToCoordinator::CaughtUp { .. }
        | ToCoordinator::GaveUp { .. }
        | ToCoordinator::Admin { .. }
        | ToCoordinator::Recalled { .. }
        | ToCoordinator::Confirmed { .. } => Ok(()),
    }
}
