//! The coordinator: membership by leases, views by compare-and-swap, recovery of lost roles (protocol, section 4).
//!
//! `membership` forms the cluster and notices who is lost, `complaints` finds out who is cut off from whom, `recovery` walks a
//! lost data role from fence to stand-in, `loss` sees to what is lost for good, `learners` has new parities built, `admin` does what operators ask, `decide` holds
//! the choices that are pure functions of a view. `records` says what has to be written down, and `succession` how another
//! coordinator goes on from there. Off the data path: while the coordinator is away, nothing is reconfigured and everything
//! else goes on.

mod admin;
#[cfg(test)]
mod admin_tests;
mod attention;
mod complaints;
mod decide;
mod electors;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod forming_tests;
mod gathering;
#[cfg(test)]
mod gathering_tests;
mod keeping;
mod learners;
mod loss;
#[cfg(test)]
mod loss_tests;
mod membership;
mod nodes;
#[cfg(test)]
mod place_tests;
mod records;
mod recovery;
mod store_view;
mod succession;
#[cfg(test)]
mod succession_tests;

use std::collections::{BTreeMap, VecDeque};

use cluster::{
    ClusterId, ClusterMap, Epoch, Forming, GroupId, GroupView, HostId, LossPolicy, MemberId, NodeId,
    NodeInfo, NodeLoad, Profile, Time, ViewVersion,
};
use wire::message::{FromCoordinator, ToCoordinator};
use wire::record::Record;

use crate::{Impossible, Now, Timing};
use attention::Attention;
use complaints::Complaint;
pub use gathering::Gathered;
use gathering::Gathering;
use keeping::{Keeping, Processes};
use learners::Learners;
use loss::Losses;
use nodes::{NodeState, Nodes};
use records::view_record;
use recovery::{Answer, Recovery};
use store_view::StoreView;
pub use succession::ResumeError;

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct CoordinatorConfig {
    /// Identity of the cluster to form.
    pub cluster: ClusterId,
    /// Protection of all groups.
    pub profile: Profile,
    /// How many nodes must register before the cluster forms.
    pub nodes: u16,
    /// Workers a node.
    pub shards: u16,
    /// Groups in all.
    pub groups: u32,
    /// Time-outs, the same as the nodes'.
    pub timing: Timing,
    /// Where its records are.
    pub records: RecordKeeping,
    /// What becomes of lost data roles, unless operators say otherwise later.
    pub on_loss: LossPolicy,
}

/// Where a coordinator's records outlive it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordKeeping {
    /// In a store that the driver writes to: it says when a [`CoordinatorAction::Record`] is written by going on.
    #[default]
    Stored,
    /// With the nodes, which are sent them: a [`CoordinatorAction::Record`] says that it is in force already.
    Kept,
}

/// What the driver has to do, in this order.
///
/// Whatever comes after a `Record` may be done only when that record is known to be written, the answer of
/// [`Coordinator::administer`] included: what nobody has recorded nobody may have been told. Records are written in order; one
/// that cannot be written ends this coordinator, and nothing that comes after it may be done. Where the nodes keep them
/// ([`RecordKeeping::Kept`]) the driver passes over them.
#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorAction {
    /// Send to a node; drop it if it is not connected.
    Send {
        /// The process.
        to: HostId,
        /// The message.
        message: FromCoordinator,
    },
    /// Close the connection of this process: it has sent what cannot be. Waits for no record.
    Close {
        /// The process.
        peer: HostId,
        /// What it has sent.
        why: Impossible,
    },
    /// Write this down, under [`Record::key`].
    Record(Record),
    /// This coordinator decides nothing any more: it is cut off from most nodes, or another one has followed it. The next one
    /// may do better.
    Resign,
}

/// A coordinator: the embedded one, or one of several that follow each other.
pub struct Coordinator {
    config: CoordinatorConfig,
    /// Which one this is; nodes obey no older one.
    epoch: Epoch,
    /// Processes that have registered, in their newest incarnation.
    nodes: Nodes,
    /// None until the cluster has formed.
    map: Option<ClusterMap>,
    /// When that was; none if another coordinator formed it.
    formed: Option<Time>,
    /// Lost data roles on their way to a stand-in.
    recoveries: BTreeMap<MemberId, Recovery>,
    actions: VecDeque<CoordinatorAction>,
    attention: Attention,
    learners: Learners,
    /// Groups beyond repair unless living stand-ins turn out to be whole, and since when.
    doubtful: BTreeMap<GroupId, Time>,
    losses: Losses,
    /// Primaries that complained, and may be cut off themselves.
    complaints: BTreeMap<MemberId, Complaint>,
    /// The lowest version with which views may be formed: above what a coordinator left that died before it had formed all.
    first_version: ViewVersion,
    store: StoreView,
    resigned: bool,
    keeping: Keeping,
    /// Who does not have to keep a view that is on its way to be recorded.
    spared: BTreeMap<(GroupId, ViewVersion), Vec<HostId>>,
    /// What need not wait for a record.
    ready: VecDeque<CoordinatorAction>,
    /// Set while this coordinator does not know yet where to go on.
    gathering: Option<Gathering>,
}

impl Coordinator {
    /// A coordinator that waits for its nodes.
    #[must_use]
    pub fn new(config: CoordinatorConfig) -> Self {
        Self {
            config,
            epoch: Epoch::default().next(),
            nodes: Nodes::default(),
            map: None,
            formed: None,
            recoveries: BTreeMap::new(),
            actions: VecDeque::new(),
            attention: Attention::default(),
            learners: Learners::default(),
            doubtful: BTreeMap::new(),
            losses: Losses::default(),
            complaints: BTreeMap::new(),
            first_version: ViewVersion::default(),
            store: StoreView::default(),
            resigned: false,
            keeping: Keeping::default(),
            spared: BTreeMap::new(),
            ready: VecDeque::new(),
            gathering: None,
        }
    }

    /// A message of `from`. `Register` names the process; later messages on the connection come from the same.
    pub fn handle(&mut self, now: Now, from: HostId, message: ToCoordinator) {
        if self.resigned {
            return;
        }
        self.forgive_own_absence(now.time);
        if self.gathering.is_some() {
            return self.handle_witness(now, from, message);
        }
        if let ToCoordinator::Register(registration) = message {
            return self.register(now, registration);
        }
        if let ToCoordinator::Kept { position, epoch } = message {
            // Says that somebody keeps records, and nothing of whether all workers run, as a heartbeat does.
            if epoch == self.epoch {
                self.handle_kept(from, position);
            }
            return;
        }
        if !self.hear(now, from) || message.epoch().is_some_and(|asked| asked != self.epoch) {
            return;
        }
        if let Err(why) = check_numbers(now, &message) {
            return self.close(from, why);
        }
        match message {
            // Taken above.
            ToCoordinator::Register(_) | ToCoordinator::Kept { .. } => {}
            ToCoordinator::Heartbeat { map, load, .. } => self.handle_heartbeat(from, map, load),
            ToCoordinator::FetchView { group } => self.send_view(from, group),
            ToCoordinator::Stalled { group, role, term, view, silent } => {
                self.handle_stalled(now, from, MemberId { group, role }, (term, view), &silent);
            }
            ToCoordinator::Repaired { group, role, term } => {
                self.handle_repaired(from, MemberId { group, role }, term)
            }
            ToCoordinator::Fenced { group, role, term, parity, received, quiet_us, .. } => {
                let answer = Answer { received, quiet_us };
                self.handle_fenced(now, from, MemberId { group, role }, term, (parity, answer));
            }
            ToCoordinator::Settled { group, role, term, parity, .. } => {
                self.handle_settled(now, from, MemberId { group, role }, term, parity);
            }
            ToCoordinator::CaughtUp { group, role, term, learner, lesson } => {
                self.handle_caught_up(now, from, MemberId { group, role }, term, (learner, lesson));
            }
            ToCoordinator::GaveUp { group, learner, since } => {
                self.handle_gave_up(now, from, MemberId { group, role: learner }, since);
            }
            ToCoordinator::HandedOver { group, role, term, since, asked_at, .. } => {
                self.handle_handed_over(now, from, MemberId { group, role }, term, (since, asked_at));
            }
            ToCoordinator::Confirmed { group, view, .. } => self.handle_confirmed(from, group, view),
            ToCoordinator::Admin { id, request } => {
                let reply = self.administer(now, &request);
                self.send(from, FromCoordinator::Admin { id, reply });
            }
            // Of when this coordinator did not know yet where to go on.
            ToCoordinator::Recalled { .. } => {}
        }
    }

    /// `peer` has sent what cannot be.
    fn close(&mut self, peer: HostId, why: Impossible) {
        tracing::error!(%peer, %why, "a node has sent what cannot be");
        self.actions.push_back(CoordinatorAction::Close { peer, why });
    }

    /// Timers. To be called at `next_deadline`, or more often.
    pub fn tick(&mut self, now: Now) {
        self.forgive_own_absence(now.time);
        self.attention.note_tick(now.time);
        if self.gathering.is_some() {
            return self.decide_where_to_go_on(now);
        }
        self.resign_if_cut_off(now.time);
        if self.resigned {
            return;
        }
        self.expire_leases(now);
        self.judge_the_doubtful(now);
        self.retry_recoveries(now);
        self.ask_for_hand_overs(now);
        self.begin_accepted_roles(now);
        self.appoint_learners(now);
    }

    /// When `tick` has something to do, at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        self.attention.next_tick(self.tick_us())
    }

    /// How often the coordinator looks at its leases.
    fn tick_us(&self) -> u64 {
        self.config.timing.heartbeat_us / 4
    }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<CoordinatorAction> {
        if self.config.records == RecordKeeping::Stored {
            return self.actions.pop_front();
        }
        self.keep_records();
        self.ready.pop_front()
    }

    /// How many records this coordinator has made, and how many of them are in force, where the nodes keep them.
    #[must_use]
    pub fn kept(&self) -> (u64, u64) {
        self.keeping.positions()
    }

    /// How many processes it keeps something of.
    #[cfg(test)]
    fn known_processes(&self) -> usize {
        self.gathering.as_ref().map_or(self.keeping.keeper_count(), Gathering::witness_count)
    }

    /// The map, once the cluster has formed.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> {
        self.map.as_ref()
    }

    /// Who is here while it waits for the nodes that its cluster forms with; none if there is a cluster, or may be one.
    #[must_use]
    pub fn forming(&self) -> Option<Forming> {
        match (&self.map, &self.gathering) {
            (Some(_), _) => None,
            (None, Some(gathering)) => {
                let here = gathering.forms_with(self.attention.last_active()?, self.epoch, &self.config)?;
                Some(Forming { expected: self.config.nodes, here: here.into_iter().collect() })
            }
            (None, None) => {
                let here = self.nodes.founders().map(|host| host.node).collect();
                Some(Forming { expected: self.config.nodes, here })
            }
        }
    }

    /// What is known of the nodes that have registered.
    pub fn registered(&self) -> impl Iterator<Item = &NodeInfo> {
        self.nodes.iter().map(NodeState::info)
    }

    /// What the nodes said of themselves last.
    pub fn loads(&self) -> impl Iterator<Item = (NodeId, NodeLoad)> + '_ {
        self.nodes.iter().map(|node| (node.host().node, node.load()))
    }

    /// When each node was last heard; what this process itself has missed while it stood still is not counted.
    pub fn last_heard(&self) -> impl Iterator<Item = (NodeId, Time)> + '_ {
        self.nodes.iter().map(|node| (node.host().node, node.seen().last))
    }

    /// When it was last able to decide anything, by its own clock: it may hear too few nodes for that.
    #[must_use]
    pub fn presided(&self) -> Time {
        self.attention.presided()
    }

    fn send(&mut self, to: HostId, message: FromCoordinator) {
        self.actions.push_back(CoordinatorAction::Send { to, message });
    }

    fn broadcast(&mut self, message: &FromCoordinator) {
        for to in self.nodes.hosts() {
            self.send(to, message.clone());
        }
    }

    fn send_view(&mut self, to: HostId, group: GroupId) {
        if let Some(view) = self.view(group).cloned() {
            self.send(to, FromCoordinator::View(view));
        }
    }

    fn view(&self, group: GroupId) -> Option<&GroupView> {
        self.map.as_ref()?.group(group)
    }

    /// Compare-and-swap of a group's view: `change` is made if the version is still `expected`; it is recorded, and everyone
    /// is told.
    fn swap_view(
        &mut self,
        group: GroupId,
        expected: ViewVersion,
        change: impl FnOnce(&mut GroupView),
    ) -> bool {
        let Some(map) = &mut self.map else { return false };
        let Some(view) = map.groups.get_mut(group.0 as usize).filter(|view| view.version == expected) else {
            return false;
        };
        let before = view.clone();
        change(view);
        decide::call_off_unmirrored(view);
        self.learners.note_parities(group, &before.parity, view);
        view.version = expected.next();
        map.version += 1;
        let (view, map_version) = (view.clone(), map.version);
        self.spare_removed(&before, &view);
        self.record_then(Record::View(view_record(map_version, &view)), FromCoordinator::View(view));
        true
    }

    /// Swaps against whatever version is there: for changes that hold in any view.
    fn change_view(&mut self, group: GroupId, change: impl FnOnce(&mut GroupView)) {
        if let Some(version) = self.view(group).map(|view| view.version) {
            self.swap_view(group, version, change);
        }
    }

    /// A stand-in has all its pages.
    fn handle_repaired(&mut self, from: HostId, member: MemberId, term: cluster::Term) {
        let Some(view) = self.view(member.group) else { return };
        let due = view.data_role(member.role).is_some_and(|role| decide::may_become_full(role, from, term));
        if due {
            tracing::info!(%member, %term, "all pages present");
            self.change_view(member.group, |view| {
                view.data[usize::from(member.role.0)].status = cluster::RoleStatus::Full;
            });
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
        _ => Ok(()),
    }
}
