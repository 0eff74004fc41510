//! A coordinator that starts with nothing: it asks the nodes that register what they keep for the coordinators before it, and
//! goes on from the newest of that.
//!
//! It does so at once when all electors that come with the newest records have answered, or after two leases when most of each
//! set of them have ([`super::keeping`] and [`super::electors`] say why that is enough). Whoever answers keeps nothing for an older coordinator from then
//! on, so what is heard cannot be outdone behind its back. That holds also for who has answered and ended since, and nobody can ask it again: its answer
//! counts. A cluster forms only where nobody keeps anything.

use std::collections::{BTreeMap, BTreeSet};

use types::{ClusterId, Entry, Epoch, Forming, HostId, NodeId, Time};
use wire::message::{FromCoordinator, KeptRecords, Registration};
use wire::record::{MapHead, NodeRecord, Record};

use super::CoordinatorConfig;
use super::electors::lacking;
use super::state::ClusterState;
use crate::Now;

/// For how many leases a coordinator waits for all, before most are enough.
const PATIENCE_LEASES: u64 = 2;

/// How long it waits, in microseconds, before those that are silent count as fenced: by then every process has dialled again,
/// however short the lease is.
const REDIAL_US: u64 = 5_000_000;
/// Most witnesses of one name.
const NAMESAKES: usize = 4;

/// What a coordinator that started with nothing has heard so far.
pub(super) struct Gathering {
    since: Time,
    /// The first answer with records.
    heard_records: Option<Time>,
    /// When all were asked last: at first, or anew for a higher epoch. Nobody is passed over or fenced soon after that.
    asked: Time,
    witnesses: BTreeMap<HostId, Witness>,
    /// Processes that have ended meanwhile.
    ended: BTreeSet<NodeId>,
    /// Whether the newest records are enough, however few have answered; the others count as fenced.
    without_quorum: bool,
    /// Why records were not enough, as it was logged last.
    told: Option<String>,
    /// When it was last looked whether what has been heard is enough.
    looked: Option<Time>,
}

/// A process that has registered.
struct Witness {
    registration: Registration,
    last_heard: Time,
    /// None as long as it has not answered.
    answer: Option<Option<KeptRecords>>,
    /// It is known to have ended. Its answer stays what it is, and it is none of those to begin with.
    ended: bool,
}

impl Witness {
    /// Whether it has answered with records: they may be needed.
    fn has_records(&self) -> bool {
        matches!(self.answer, Some(Some(_)))
    }
}

/// What a coordinator that started with nothing waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// The cluster whose records were found; none if nobody has any.
    pub cluster: Option<ClusterId>,
    /// Nodes of that cluster that have answered.
    pub heard: Vec<NodeId>,
    /// Those that have not.
    pub missing: Vec<NodeId>,
    /// How many more of them have to answer, at least.
    pub lacking: usize,
}

/// What is to be done.
pub(super) enum Verdict {
    Wait(Gathered),
    /// Nobody keeps anything, and as many are here as the cluster is for.
    Form,
    Resume(KeptRecords),
}

/// Whom a coordinator that goes on begins with.
pub(super) struct Admitted {
    /// Processes that have ended meanwhile.
    pub ended: BTreeSet<NodeId>,
    /// Processes that have registered, the one first that was heard last.
    pub registrations: Vec<Registration>,
}

impl Gathering {
    /// Begins now. `without_quorum`: those that answer within five seconds and two leases are all that there are.
    pub(super) fn begin(now: Time, without_quorum: bool) -> Self {
        Self {
            since: now,
            heard_records: None,
            asked: now,
            witnesses: BTreeMap::new(),
            ended: BTreeSet::new(),
            without_quorum,
            told: None,
            looked: None,
        }
    }

    /// When it may be enough although nobody has said anything more. It is looked after every message.
    pub(super) fn due(&self, lease_us: u64) -> Time {
        let Some(looked) = self.looked else { return Time(0) };
        let patience_us = PATIENCE_LEASES * lease_us;
        let patient = self.heard_records.map(|at| at + patience_us);
        let times = [self.since + lease_us, self.since + REDIAL_US, self.asked + patience_us].into_iter();
        times.chain(patient).filter(|at| *at > looked).min().unwrap_or(Time::NEVER)
    }

    /// What it waits for.
    pub(super) fn gathered(&self, epoch: Epoch) -> Gathered {
        self.newest(epoch).map(|(kept, head)| self.census(kept, head)).unwrap_or_default()
    }

    /// A process registers: it is asked what it keeps.
    pub(super) fn register(&mut self, now: Now, state: &mut ClusterState, registration: Registration) {
        let host = registration.info.host;
        let promised = registration.promised;
        let witness = Witness { registration, last_heard: now.time, answer: None, ended: false };
        self.add(witness, state.lease_us());
        let mut asked = Vec::new();
        if promised >= state.epoch() {
            // What others have answered to an epoch that is not the newest binds them to nothing, unless they have ended.
            state.begin_after(promised);
            for (host, witness) in self.witnesses.iter_mut().filter(|(_, witness)| !witness.ended) {
                witness.answer = None;
                asked.push(*host);
            }
            self.asked = now.time;
        } else {
            asked.push(host);
        }
        let epoch = state.epoch();
        asked.into_iter().for_each(|host| state.send(host, FromCoordinator::Recall { epoch }));
    }

    /// A process that has registered here lives.
    pub(super) fn hear(&mut self, now: Now, state: &mut ClusterState, from: HostId) {
        let epoch = state.epoch();
        let Some(witness) = self.witnesses.get_mut(&from) else { return };
        witness.last_heard = now.time;
        let answer = match witness.answer.is_some() {
            false => FromCoordinator::Recall { epoch },
            true => self.forming(now.time, state).map_or(FromCoordinator::Waiting, FromCoordinator::Forming),
        };
        state.send(from, answer);
    }

    /// A process says what it keeps.
    pub(super) fn handle_recalled(
        &mut self,
        now: Now,
        state: &ClusterState,
        from: HostId,
        epoch: Epoch,
        kept: Option<KeptRecords>,
    ) {
        let Some(witness) = self.witnesses.get_mut(&from) else { return };
        witness.last_heard = now.time;
        // What was answered to a former epoch binds to nothing.
        if epoch != state.epoch() {
            return;
        }
        if kept.is_some() {
            self.heard_records.get_or_insert(now.time);
        }
        witness.answer = Some(kept);
    }

    /// The process of `node` has ended.
    pub(super) fn note_ended(&mut self, node: NodeId) {
        self.ended.insert(node);
        self.witnesses.retain(|host, witness| host.node != node || witness.has_records());
        let of_node = self.witnesses.iter_mut().filter(|(host, _)| host.node == node);
        of_node.for_each(|(_, witness)| witness.ended = true);
    }

    /// Those that ended meanwhile, and then those that have registered, for they may have come after them. Of two with one name
    /// the one is first that was heard last; who was not heard for long may be heard again, over the connection that it has.
    pub(super) fn admit(self) -> Admitted {
        let mut witnesses: Vec<Witness> = self.witnesses.into_values().filter(|it| !it.ended).collect();
        witnesses.sort_by_key(|witness| std::cmp::Reverse(witness.last_heard));
        let registrations = witnesses.into_iter().map(|witness| witness.registration).collect();
        Admitted { ended: self.ended, registrations }
    }

    /// Says what is missing, or why no cluster forms.
    pub(super) fn say_why_it_waits(&mut self, gathered: &Gathered) {
        match gathered.cluster {
            Some(cluster) => self.say(format!(
                "records of {cluster} found; heard of its nodes: {}; missing: {}; at least {} more have to answer",
                names(&gathered.heard),
                names(&gathered.missing),
                gathered.lacking
            )),
            None => self.say_who_holds(),
        }
    }

    /// Why no cluster forms, if it is for processes that have registered with records and say nothing of them.
    fn say_who_holds(&mut self) {
        let silent = |witness: &&Witness| witness.registration.holds.is_some() && witness.answer.is_none();
        let silent = self.witnesses.values().filter(silent).map(|it| it.registration.info.host.node);
        let silent: Vec<NodeId> = silent.collect();
        if !silent.is_empty() {
            let names = names(&silent);
            self.say(format!(
                "no cluster is formed: {names} registered with records of one, and has not said which"
            ));
        }
    }

    /// Says why it does not go on, once.
    pub(super) fn say(&mut self, text: String) {
        if self.told.as_ref() != Some(&text) {
            tracing::warn!("{text}");
            self.told = Some(text);
        }
    }

    /// The coordinator was away for `late` microseconds: nobody's silence counts for that time.
    pub(super) fn forgive(&mut self, late: u64) {
        self.since = self.since + late;
        self.asked = self.asked + late;
        self.heard_records = self.heard_records.map(|at| at + late);
        self.witnesses.values_mut().for_each(|witness| witness.last_heard = witness.last_heard + late);
    }

    #[cfg(test)]
    pub(super) fn witness_count(&self) -> usize {
        self.witnesses.len()
    }

    /// A process has registered. Of those that had its name before, those are kept that live, or have answered with records:
    /// they may be needed. There is a most of them.
    fn add(&mut self, witness: Witness, lease: u64) {
        let host = witness.registration.info.host;
        let lives = |known: &Witness| witness.last_heard.since(known.last_heard) < lease;
        self.witnesses.retain(|other, known| {
            other.node != host.node || lives(known) && !known.ended || known.has_records()
        });
        self.witnesses.insert(host, witness);
        let namesakes = self.witnesses.iter().filter(|(other, _)| other.node == host.node && **other != host);
        let namesakes: Vec<(Time, HostId)> =
            namesakes.map(|(other, known)| (known.last_heard, *other)).collect();
        // A node that is restarted again and again must not fill the memory.
        if namesakes.len() >= NAMESAKES
            && let Some((_, oldest)) = namesakes.into_iter().min()
        {
            self.witnesses.remove(&oldest);
        }
    }

    /// Goes on if enough has been heard.
    pub(super) fn verdict(&mut self, now: Time, state: &ClusterState) -> Verdict {
        self.looked = Some(now);
        let (epoch, config) = (state.epoch(), state.config());
        let lease = config.timing.node_lease_us;
        let Some((kept, head)) = self.newest(epoch) else { return self.verdict_of_none(now, config) };
        let gathered = self.census(kept, head);
        let patient = self.heard_records.is_some_and(|at| now.since(at) < PATIENCE_LEASES * lease);
        // All who may know something newer; or more than half of each set, of whom one would know it.
        let have_answered = gathered.missing.is_empty() || !patient && gathered.lacking == 0;
        let enough = config.rules.going_on_needs_electors(have_answered);
        let have_had_time = !patient && now.since(self.asked) >= PATIENCE_LEASES * lease;
        let another = || self.better_heard(epoch, &gathered).filter(|_| have_had_time);
        match enough {
            true => Verdict::Resume(kept.clone()),
            // The newest may be a stranger's, and the others of its cluster will never answer here.
            false if let Some(kept) = another() => Verdict::Resume(kept.clone()),
            false if self.without_quorum && have_had_time && !self.may_be_dialling(now) => {
                Verdict::Resume(self.without_the_silent(kept))
            }
            false => Verdict::Wait(gathered),
        }
    }

    /// Whether processes may live that have not found this coordinator yet.
    fn may_be_dialling(&self, now: Time) -> bool {
        now.since(self.since) < REDIAL_US
    }

    /// As if an operator had fenced all that have not answered.
    fn without_the_silent(&self, kept: &KeptRecords) -> KeptRecords {
        let has_answered = |host: &HostId| self.has_answered(host);
        let electors = vec![self.witnesses.keys().copied().filter(has_answered).collect()];
        let mut records = kept.records.clone();
        for record in &mut records {
            let Record::Node(NodeRecord { node, .. }) = record else { continue };
            if !has_answered(&node.info.host) {
                tracing::warn!(host = %node.info.host, "has not answered: counts as fenced");
                (node.fenced, node.info.alive) = (true, false);
            }
        }
        KeptRecords { electors, records, ..kept.clone() }
    }

    fn has_answered(&self, host: &HostId) -> bool {
        self.witnesses.get(host).is_some_and(|witness| witness.answer.is_some())
    }

    /// Where nobody keeps anything a cluster may form: after a lease, for those that do may be on their way.
    fn verdict_of_none(&self, now: Time, config: &CoordinatorConfig) -> Verdict {
        let lease = config.timing.node_lease_us;
        let due = now.since(self.since) >= lease;
        if due && self.nobody_holds() && self.founders(now, lease).len() >= usize::from(config.nodes) {
            Verdict::Form
        } else {
            Verdict::Wait(Gathered::default())
        }
    }

    /// Those that a cluster forms of, if by all that was answered there is none yet.
    pub(super) fn forming(&self, now: Time, state: &ClusterState) -> Option<Forming> {
        let is_new = self.newest(state.epoch()).is_none() && self.nobody_holds();
        let here = || self.founders(now, state.lease_us()).into_iter().collect();
        is_new.then(|| Forming { expected: state.config().nodes, here: here() })
    }

    /// Those that a cluster may form of.
    fn founders(&self, now: Time, lease: u64) -> BTreeSet<NodeId> {
        let is_founder = |witness: &&Witness| {
            // Who has not answered yet may keep something.
            let fresh = witness.registration.holds.is_none() && matches!(witness.answer, Some(None));
            fresh
                && witness.registration.expect.entry == Entry::Founder
                && now.since(witness.last_heard) < lease
        };
        let founders = self.witnesses.values().filter(is_founder);
        founders.map(|witness| witness.registration.info.host.node).collect()
    }

    /// Whether nobody has registered as a node of a cluster that there is.
    fn nobody_holds(&self) -> bool {
        self.witnesses.values().all(|witness| witness.ended || witness.registration.holds.is_none())
    }

    /// The newest records that anybody keeps.
    fn newest(&self, epoch: Epoch) -> Option<(&KeptRecords, &MapHead)> {
        self.recalled(epoch).max_by_key(|(kept, _)| (kept.epoch, kept.position))
    }

    /// The records that were answered.
    fn recalled(&self, epoch: Epoch) -> impl Iterator<Item = (&KeptRecords, &MapHead)> {
        let kept = self.witnesses.values().filter_map(|witness| witness.answer.as_ref()?.as_ref());
        let kept = kept.filter(|kept| !kept.electors.is_empty());
        let with_head = kept.filter_map(|kept| Some((kept, head_of(&kept.records)?)));
        // Nobody can have kept anything of this very coordinator, or of a later one.
        with_head.filter(move |(kept, _)| kept.epoch < epoch)
    }

    /// Records of another cluster than the newest ones, if those are a stranger's: of them more processes have answered, and
    /// enough.
    fn better_heard(&self, epoch: Epoch, newest: &Gathered) -> Option<&KeptRecords> {
        let of_others = self.recalled(epoch).filter(|(_, head)| Some(head.cluster) != newest.cluster);
        let are_enough = |(kept, head): &(&KeptRecords, &MapHead)| {
            let gathered = self.census(kept, head);
            gathered.lacking == 0 && gathered.heard.len() > newest.heard.len()
        };
        of_others.filter(are_enough).map(|(kept, _)| kept).max_by_key(|kept| (kept.epoch, kept.position))
    }

    /// Who of those that have to has answered.
    fn census(&self, kept: &KeptRecords, head: &MapHead) -> Gathered {
        let has_answered = |host: &HostId| self.has_answered(host);
        let all: BTreeSet<HostId> = kept.electors.iter().flatten().copied().collect();
        let (heard, missing): (Vec<HostId>, Vec<HostId>) = all.into_iter().partition(has_answered);
        let nodes = |hosts: &[HostId]| hosts.iter().map(|host| host.node).collect();
        let lacking = kept.electors.iter().map(|electors| lacking(electors, has_answered)).max();
        Gathered {
            cluster: Some(head.cluster),
            heard: nodes(&heard),
            missing: nodes(&missing),
            lacking: lacking.unwrap_or_default(),
        }
    }
}

fn names(nodes: &[NodeId]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn head_of(records: &[Record]) -> Option<&MapHead> {
    records.iter().find_map(|record| match record {
        Record::Head(head) => Some(head),
        Record::View(_) | Record::Node(_) => None,
    })
}
