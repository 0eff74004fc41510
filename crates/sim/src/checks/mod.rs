//! What members must hold in memory: the expensive invariants, at random moments.
//!
//! - order: a parity's log is contiguous; what is committed has been received by every parity in sync.
//! - algebra: a parity's page is the weighted sum of the shadows of all data roles, each as of what the parity has
//!   applied of it; a primary's page is its shadow as of what it has committed. Garbage included.
//! - index: replicas that have applied the same records are equal, the primary's among them.
//! - durability: after the loss of any choice of members that the code can bear, the pages and the items of the lost
//!   roles are decoded from the actual memory of the survivors, and held against the shadow and the clients' history.
//! - bounds: budgets and queues.
//! - map: who has a version of it has all of it.
//! - quotas: what namespaces take.
//! - counters: what a process counts does not fall.
//! - chunks: whoever is whole has all of them.
//! - hearsay: in the end nodes believe of slow links what those say who have them.
//! - rest: in the end everything is whole, and agrees.
//!
//! Whoever checks borrows what it looks at, and writes into the book.

mod bounds;
mod chunks;
mod counters;
mod decode;
mod hearsay;
mod look;
mod maps;
mod quotas;
mod rest;

use cluster::Protection;
use rng::Rng;
use types::{GroupId, GroupView, MemberId, PAGE_BYTES, RoleIndex, Seq};

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::cluster::inspect::{Members, Primary};
use crate::cluster::nodes::Nodes;
use crate::options::Options;
use crate::shadow::Shadow;
use crate::shadow::stream::Page;
use crate::stage::Stage;
use crate::stage::book::{Book, Suspect};
use crate::stage::report::Stats;
use counters::Counters;
use look::{Extent, Look};

pub(crate) use hearsay::{Speakers, misbelief};
pub(crate) use rest::AtRest;

/// When the inside of members is looked at.
pub(crate) struct Checks {
    /// The event after which it is next.
    next_at: u64,
    /// A story has damaged memory: what a scrub finds is no broken rule, and the expensive checks would say the same.
    damaged: bool,
    counters: Counters,
}

impl Checks {
    pub(crate) fn new(options: &Options) -> Self {
        let next_at = if options.check_every == 0 { u64::MAX } else { options.check_every };
        Self { next_at, damaged: false, counters: Counters::default() }
    }

    /// Whether it is time to look, if there is anything to look at.
    pub(crate) fn are_due(&mut self, stage: &mut Stage) -> bool {
        let events = stage.book.stats.events;
        if events < self.next_at || self.damaged {
            return false;
        }
        self.next_at = events + 1 + stage.rng.checks.below(2 * stage.options.check_every);
        true
    }

    /// Looks at what processes count.
    pub(crate) fn count(&mut self, book: &mut Book, nodes: &Nodes) {
        self.counters.check(book, nodes);
    }

    /// Memory was damaged, or is sound again.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn are_damaged(&mut self, damaged: bool) {
        self.damaged = damaged;
    }

    /// A scrub finds nothing.
    pub(crate) fn scrub(&self, book: &mut Book, nodes: &Nodes, host: usize) {
        if self.damaged {
            return;
        }
        if let Some(found) = nodes.host(host).and_then(|machine| machine.scrub_findings().next()) {
            let what = format!("{}: a scrub finds damage: {found:?}", nodes.id_of(host));
            book.fail("scrub", Some(Suspect::Group(found.parity.group)), what);
        }
    }
}

/// Whoever looks into members.
pub(crate) struct Onlooker<'a> {
    pub stage: &'a mut Stage,
    pub cluster: &'a Cluster,
    pub clients: &'a Clients,
    pub shadow: &'a mut Shadow,
}

impl Onlooker<'_> {
    /// Looks at one group, sampled.
    pub(crate) fn look_somewhere(&mut self) {
        if self.cluster.map().is_none() || self.clients.are_absent() {
            return;
        }
        let group = self.stage.rng.checks.index(self.stage.options.groups) as u32;
        self.look_at(GroupId(group), Extent::Sample);
        self.look_at_bounds();
    }

    /// Looks at all groups, at all that they hold.
    pub(crate) fn look_everywhere(&mut self) {
        for group in 0..self.stage.options.groups {
            self.look_at(GroupId(group as u32), Extent::Whole);
        }
        self.look_at_bounds();
    }

    fn look_at_bounds(&mut self) {
        bounds::check(self.stage, &self.cluster.nodes);
        if let Some(map) = self.cluster.map() {
            maps::check(&mut self.stage.book, map, &self.cluster.nodes);
            let clients = self.stage.options.clients;
            quotas::check(&mut self.stage.book, map, &self.cluster.nodes, clients);
            chunks::check(&mut self.stage.book, map, &self.cluster.nodes);
        }
    }

    fn look_at(&mut self, group: GroupId, extent: Extent) {
        let view = self.cluster.map().and_then(|map| map.group(group));
        if let Some(view) = view {
            self.relearn(view);
        }
        // A stream of its own for every look: how much one draws changes nothing of what comes later.
        let seed = self.stage.rng.checks.next();
        let (Some(view), Some(map)) = (view, self.cluster.map()) else { return };
        let mut look = Look {
            map,
            nodes: &self.cluster.nodes,
            clients: self.clients,
            shadow: self.shadow,
            unix: self.stage.most_unix(),
            view,
            members: Members::of(&self.cluster.nodes, view),
            protection: self.stage.options.protection(),
            keys_move: self.stage.options.convert_every_us > 0,
            extent,
            rng: Rng::new(seed, 0),
            stats: Stats::default(),
        };
        let verdict = look.all();
        let applied = look.applied_everywhere();
        self.stage.book.stats.add(&look.stats);
        for (role, seq) in applied.into_iter().enumerate() {
            self.shadow.stream_mut(member(group, role)).forget_before(seq);
        }
        if let Err((rule, what)) = verdict {
            self.stage.book.fail(rule, Some(Suspect::Group(group)), format!("{group}: {what}"));
        }
    }

    /// Where the shadow of a role has a gap, the primary's own area becomes the shadow, when nothing is under way.
    fn relearn(&mut self, view: &GroupView) {
        let protection = self.stage.options.protection();
        let members = Members::of(&self.cluster.nodes, view);
        for (role, seq) in members.reached().into_iter().enumerate() {
            self.shadow.stream_mut(member(view.group, role)).has_reached(seq);
        }
        for (role, primary) in members.data.iter().enumerate() {
            let stream = self.shadow.stream_mut(member(view.group, role));
            if let Some(primary) = primary.as_ref().filter(|_| stream.is_dark())
                && is_at_rest(&protection, &members, role, primary)
            {
                stream.relearn(primary.info.committed, touched_pages(primary).into_iter());
            }
        }
    }
}

/// Whether nothing of a role is under way. A page that is absent, or was surrendered, can teach nothing.
fn is_at_rest(protection: &Protection, members: &Members<'_>, role: usize, primary: &Primary<'_>) -> bool {
    // With a record under way the primary's page and the sums are of different states, and the
    // mistake would be learned as truth.
    let committed = primary.info.committed;
    let applied =
        |seq: Seq| members.parities_of(protection, role).all(|parity| parity.stream(role).applied == seq);
    committed == primary.info.last && applied(committed) && primary.store.absent_count() == 0
}

fn touched_pages(primary: &Primary<'_>) -> Vec<(u32, Box<Page>)> {
    let touched = primary.store.replica().touched().iter();
    let copy = |page| {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        primary.page(page, &mut bytes).map(|()| (page, bytes))
    };
    touched.filter_map(copy).collect()
}

fn member(group: GroupId, role: usize) -> MemberId {
    MemberId { group, role: RoleIndex(role as u8) }
}
