//! Dealing out quotas (docs/pools.md, "Quotas"): what each node's primaries and holders of chunks may take of them.
//!
//! What the books say is never less than what is true: a node that has been given something may have used it already, and one that
//! has been asked for something back has it until it says otherwise. So the sum of all shares is never more than the quota. What roles
//! bring with them when they move is in nobody's books before both ends have spoken: until everyone who serves a role or keeps its chunks
//! has heard of the newest primaries and holders, and said what it takes since, nobody is given anything.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use types::{ClusterMap, Epoch, Grant, HostId, NamespaceId, QuotaReport, QuotaUse, RoleStatus, Round};
use wire::message::FromCoordinator;

use super::state::ClusterState;

/// Heartbeats after which a round that was not heard is taken for lost.
const PATIENCE: u32 = 10;

/// See the module.
#[derive(Default)]
pub(super) struct Quotas {
    books: BTreeMap<HostId, Book>,
    totals: Totals,
    /// The primaries and holders that the books are about.
    served: Served,
    /// The change of the map that they are of.
    seen: Option<u64>,
    /// Who has not said yet what it takes since these are the primaries.
    awaited: BTreeSet<HostId>,
    /// Whether there may be books of processes that have nothing any more.
    is_cluttered: bool,
}

/// What is known of one node.
#[derive(Default)]
struct Book {
    /// As it has said last.
    uses: BTreeMap<NamespaceId, QuotaUse>,
    /// What it was given since.
    on_its_way: BTreeMap<NamespaceId, u64>,
    /// The newest round that it was sent, and that it has heard.
    sent: u64,
    heard: u64,
    /// The first round after the newest primaries and holders were known.
    since: u64,
    /// Heartbeats since it was sent something.
    waited: u32,
}

/// The sums over all nodes.
#[derive(Default)]
struct Totals(BTreeMap<NamespaceId, Total>);

/// Wider than what a node can say: whatever was counted can be taken off again.
#[derive(Clone, Copy, Default)]
struct Total {
    /// What they may take at most.
    bound: u128,
    used: u128,
    roles: u128,
}

/// Who serves data roles, and whose chunks count.
#[derive(Default, PartialEq, Eq)]
struct Served {
    hosts: BTreeSet<HostId>,
    /// Whether all are served that are not lost.
    is_whole: bool,
    /// Of all roles, their primaries and holders, and of the quotas.
    digest: u64,
}

impl Quotas {
    /// A node lives: if it has to say something of quotas, it is told of it.
    pub(super) fn remind(&mut self, state: &mut ClusterState, host: HostId) {
        if !self.look(state) || !self.awaited.contains(&host) {
            return;
        }
        let book = self.books.entry(host).or_default();
        book.waited += 1;
        // What it has been sent may be on its way, or lost with a connection.
        if book.sent < book.since || book.waited >= PATIENCE {
            book.send(state, host, Vec::new());
        }
    }

    /// A node says what it takes.
    pub(super) fn handle_report(&mut self, state: &mut ClusterState, host: HostId, report: QuotaReport) {
        if !self.look(state) {
            return;
        }
        let mut book = self.books.remove(&host).unwrap_or_default();
        self.totals.forget(&book);
        book.note(report, state.epoch());
        self.totals.count(&book);
        if book.heard >= book.since {
            self.awaited.remove(&host);
        }
        self.tidy_up(state);
        self.deal(state, host, &mut book);
        self.books.insert(host, book);
    }

    fn deal(&mut self, state: &mut ClusterState, host: HostId, book: &mut Book) {
        let (is_late, is_lost) = (book.heard < book.sent, book.waited >= PATIENCE);
        // One round after the other: so it is known what the node can have.
        if is_late && !is_lost {
            return;
        }
        let grant = |known| self.grant(state, book, known);
        let grants: Vec<Grant> = book.uses.values().filter_map(grant).collect();
        if is_late || !grants.is_empty() {
            self.totals.forget(book);
            book.send(state, host, grants);
            self.totals.count(book);
        }
    }

    /// Takes in what has changed of the map; whether there are quotas.
    fn look(&mut self, state: &ClusterState) -> bool {
        if self.seen != Some(state.changes()) {
            self.seen = Some(state.changes());
            let served = state.map().map(Served::of).unwrap_or_default();
            if served != self.served {
                self.served = served;
                self.begin_anew();
            }
        }
        !self.served.hosts.is_empty()
    }

    /// There are other primaries or holders, or other quotas: everybody has to say anew what it takes.
    fn begin_anew(&mut self) {
        for host in &self.served.hosts {
            self.books.entry(*host).or_default();
        }
        for book in self.books.values_mut() {
            book.since = book.sent + 1;
        }
        (self.awaited, self.is_cluttered) = (self.served.hosts.clone(), true);
        if self.served.hosts.is_empty() {
            self.totals = Totals::default();
            // Their rounds go on: a node takes none twice.
            self.books.values_mut().for_each(Book::clear);
        }
    }

    /// What processes had that have ended is nobody's, once it is known what others have taken over from them.
    fn tidy_up(&mut self, state: &ClusterState) {
        if !self.is_cluttered || !self.is_settled(state) {
            return;
        }
        self.is_cluttered = false;
        let may_live = |host: &HostId| state.nodes().get(*host).is_some_and(|node| !node.is_gone());
        let is_over = |host: &HostId, _: &mut Book| !self.served.hosts.contains(host) && !may_live(host);
        for (_, book) in self.books.extract_if(.., is_over) {
            self.totals.forget(&book);
        }
    }

    /// Whether it is known of all roles what they take.
    fn is_settled(&self, state: &ClusterState) -> bool {
        state.rules().shares_are_known(self.awaited.is_empty() && self.served.is_whole)
    }

    /// What a node is to be given, or to give back, of one quota: in the end each has what it uses, and of the rest a part that goes by
    /// the number of its roles.
    fn grant(&self, state: &ClusterState, book: &Book, known: &QuotaUse) -> Option<Grant> {
        let quota = state.map()?.catalog.data_quota(known.namespace)?;
        let total = self.totals.0.get(&known.namespace)?;
        let wanted = total.share_of(known, quota);
        let settled = self.is_settled(state);
        let left = u64::try_from(u128::from(quota).saturating_sub(total.bound)).unwrap_or(quota);
        let missing = wanted.saturating_sub(known.share_bytes);
        let more = missing.min(left);
        let less = known.share_bytes.saturating_sub(wanted);
        let bytes = if less > 0 { -clamped(less) } else { clamped(more) };
        // The first one also if it is nothing: whoever waits for it hears that there is nothing. But not before others have given back
        // what it is to have: it would refuse what the quota has room for.
        let is_news = if known.dealt { bytes != 0 } else { more >= missing / 2 };
        // Before that what some take is in the books of others as well.
        let may_be_given = settled && (bytes < 0 || book.on_its_way.is_empty());
        (is_news && may_be_given).then_some(Grant { namespace: known.namespace, bytes })
    }
}

impl Book {
    fn note(&mut self, report: QuotaReport, epoch: Epoch) {
        self.waited += 1;
        self.uses = report.uses.into_iter().map(|known| (known.namespace, known)).collect();
        // Of another coordinator's rounds it is not known what else was on its way.
        if report.heard.epoch == epoch {
            self.heard = report.heard.number.min(self.sent);
        }
        if self.heard == self.sent {
            self.on_its_way.clear();
        }
    }

    fn clear(&mut self) {
        self.uses.clear();
        self.on_its_way.clear();
    }

    /// What the node may take at most.
    fn bound(&self, known: &QuotaUse) -> u64 {
        let given = self.on_its_way.get(&known.namespace).copied().unwrap_or(0);
        known.used_bytes.max(known.share_bytes.saturating_add(given))
    }

    fn send(&mut self, state: &mut ClusterState, host: HostId, grants: Vec<Grant>) {
        for Grant { namespace, bytes } in &grants {
            if let Some(given) = u64::try_from(*bytes).ok().filter(|given| *given > 0) {
                *self.on_its_way.entry(*namespace).or_default() += given;
            }
        }
        (self.sent, self.waited) = (self.sent + 1, 0);
        let round = Round { epoch: state.epoch(), number: self.sent };
        state.send(host, FromCoordinator::Shares { round, grants });
    }
}

impl Totals {
    fn count(&mut self, book: &Book) {
        for known in book.uses.values() {
            let total = self.0.entry(known.namespace).or_default();
            total.used += u128::from(known.used_bytes);
            total.roles += u128::from(known.roles);
            total.bound += u128::from(book.bound(known));
        }
    }

    /// What was counted is so no more.
    fn forget(&mut self, book: &Book) {
        for known in book.uses.values() {
            let Some(total) = self.0.get_mut(&known.namespace) else { continue };
            total.used -= u128::from(known.used_bytes);
            total.roles -= u128::from(known.roles);
            total.bound -= u128::from(book.bound(known));
        }
    }
}

impl Total {
    /// What a node is to have in the end.
    fn share_of(&self, known: &QuotaUse, quota: u64) -> u64 {
        let free = u128::from(quota).saturating_sub(self.used);
        if free == 0 {
            // Everybody gives up as large a part of what it has.
            return part(known.used_bytes.into(), quota.into(), self.used.max(1));
        }
        let rest = part(free, known.roles.into(), self.roles.max(1));
        known.used_bytes.saturating_add(rest)
    }
}

impl Served {
    fn of(map: &ClusterMap) -> Self {
        let limited = |namespace: &types::Namespace| namespace.policy.quota_bytes > 0;
        if !map.catalog.namespaces.iter().any(limited) {
            return Self::default();
        }
        let mut digest = DefaultHasher::new();
        for namespace in map.catalog.namespaces.iter().filter(|known| limited(known)) {
            // In a conversion another code may count.
            let for_data = map.catalog.data_quota(namespace.id);
            (namespace.id, namespace.policy.quota_bytes, for_data).hash(&mut digest);
        }
        let (mut hosts, mut is_whole) = (BTreeSet::new(), true);
        for view in &map.groups {
            for (role, data) in view.data_roles() {
                (view.group, role, data.primary, data.term).hash(&mut digest);
                hosts.extend(data.primary);
                let has_nobody = matches!(data.status, RoleStatus::Fenced | RoleStatus::Orphan(_));
                is_whole &= !has_nobody;
            }
            // How many there are is how much each of them counts.
            for (role, holder) in view.counted_holders() {
                (view.group, role, holder.host, holder.since).hash(&mut digest);
                hosts.insert(holder.host);
            }
        }
        Self { hosts, is_whole, digest: digest.finish() }
    }
}

/// `a * b / c`, rounded down.
fn part(a: u128, b: u128, c: u128) -> u64 {
    u64::try_from(a.saturating_mul(b) / c).unwrap_or(u64::MAX)
}

fn clamped(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
