//! Values in chunks: what a host does for them beside its members (docs/objects.md).
//!
//! Each part keeps its own fields, takes what it needs of the others as arguments, and gives back what has to happen elsewhere.
//! This file routes.
//!
//! | part | what it keeps |
//! | --- | --- |
//! | `early` | cells for roles that this host is to hold, before it knows that |
//! | `holder` | the chunks of one role: `arriving` cell by cell, and whole; what they are asked for |
//! | `shares`, `sums` | products of cells that are put here, for holders of parities; and cells of parities that are added up of those |
//! | `inquiry` | what a holder asks owners, and what becomes of their answers |
//! | `fill` | how a holder gets the chunks that it lacks |
//! | `meter` | how fast other nodes are, by what is fetched of them |
//! | `graphs` | coding graphs: steps that are here, and what is asked for here |
//! | `pressure` | where room is short: which chunks owners are asked to evict |
//! | `scrub` | which chunks were compared with their checksums, and with the others of their stripe |
//! | `courier` | what owners want holders to hear |
//! | `transfers` | values that clients and owners of this host write and read, by the next five |
//! | `deposits` | chunks that clients put themselves |
//! | `upload` | a value that is written: rows are coded, cells are put |
//! | `gather` | a value that is read: cells are fetched, rows decoded |
//! | `extension` | append and prepend to a value in chunks: it is read, and written anew |
//! | `rewrite` | values that move to another pool: each is read, and written anew there |

mod arriving;
mod courier;
mod deposits;
mod early;
mod extension;
mod fill;
mod gather;
mod graphs;
mod holder;
mod holders;
mod inquiry;
mod meter;
pub(crate) mod names;
mod order;
mod pressure;
mod probe;
mod rewrite;
mod scope;
mod scrub;
mod shares;
mod sums;
mod transfers;
mod upload;
mod wanted;

use std::collections::BTreeMap;

use store::{ChunkPages, QuotaShortage};
use types::{
    GroupView, HostId, MemberId, NamespaceId, NodeId, RoleIndex, ScrubProgress, ScrubSettings, Time,
};
use wire::graph::GraphMessage;
use wire::object::{
    Free, Heard, Lend, ObjectMessage, Put, PutAs, PutShared, Recall, Refusal, Refused, Shares, is_of_repair,
};

use crate::Timing;
use crate::pace::Pace;
use courier::Courier;
pub use deposits::NewDeposit;
use early::{Early, EarlyCell};
use fill::{Came, Window};
pub use gather::NewGather;
use graphs::Graphs;
pub use graphs::{GraphStats, OrderStats, ReadStats, SaidLinks};

pub use crate::host::driver::NewUpload;
use holder::{Holder, Short};
pub(crate) use holders::Holders;
pub(crate) use meter::Meter;
pub use meter::SeenLink;
pub(crate) use names::NewRewrite;
use names::{Errand, ObjectStats};
use order::{Made, Purpose, Whose};
use pressure::Pressure;
use probe::{LinkProbe, is_of_probe};
pub use probe::{ProbeReport, Probed};
pub(crate) use scope::Scope;
use scrub::ChunkScrub;
pub use scrub::WrongStripe;
use sums::{Summed, Sums};
use transfers::Transfers;
pub(crate) use upload::groups_for;
pub(crate) use wanted::Wanted;

/// Where a namespace is at its quota, chunks go for so many like the one that there was no room for.
const CHUNKS_AHEAD: u64 = 4;
/// How often some of the pages that nobody uses are given back to the system.
const TRIM_EVERY_US: u64 = 100_000;

/// See the module.
#[derive(Default)]
pub(crate) struct Objects {
    /// Once the first chunk is kept here.
    pages: Option<ChunkPages>,
    holders: Holders,
    early: Early,
    sums: Sums,
    /// Of the holders' fills.
    window: Window,
    /// Whose fill has asked last.
    asked_last: Option<MemberId>,
    /// Requests of clients that were counted when this was looked at last.
    requests: u64,
    graphs: Graphs,
    pressure: Pressure,
    scrub: ChunkScrub,
    probe: LinkProbe,
    courier: Courier,
    transfers: Transfers,
    /// When idle pages are looked at next.
    trim_at: Time,
    /// When something is to be done, as it was found; none = something has changed since.
    due: Option<Time>,
    /// When it is looked at next whether namespaces still take more than they may here; none if none did.
    shares_at: Option<Time>,
}

impl Objects {
    /// Whether nothing was ever to be done.
    pub(crate) fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.transfers.is_idle()
    }

    /// Values that are written and read here. What changes when something is due is followed by [`Self::touch`].
    pub(crate) fn transfers(&mut self) -> &mut Transfers {
        &mut self.transfers
    }

    /// Those of the roles that are kept here.
    pub(crate) fn holders(&self) -> &Holders {
        &self.holders
    }

    /// Makes this host's holders of a group what the view says they are.
    pub(crate) fn adopt(&mut self, scope: &mut Scope<'_>, view: &GroupView, wanted: &mut Wanted) {
        let here = scope.here();
        for (role, _) in view.all_holders().filter(|(_, holder)| holder.host == here) {
            self.appoint(scope, MemberId { group: view.group, role });
        }
        let rules = scope.rules();
        let is_relieved = |holder: &Holder| holder.is_relieved(rules, view, here);
        let goes = |member: MemberId, holder: &Holder| member.group == view.group && is_relieved(holder);
        self.holders.retain(|member, holder| !goes(member, holder));
        let roles =
            (0..view.holders.len()).map(|role| MemberId { group: view.group, role: RoleIndex(role as u8) });
        // Before anything comes that counts.
        roles.clone().for_each(|member| self.with(member, |holder| holder.heed_quotas(scope)));
        for (from, cell) in self.early.take(view.group) {
            self.handle(scope, from, cell.into_message(), wanted);
        }
        roles.for_each(|member| self.with(member, |holder| holder.adopt(scope, view)));
        self.transfers.adopt(scope, view, wanted);
        self.cancel_moot_orders(scope);
        self.go_on_filling(scope);
    }

    fn appoint(&mut self, scope: &Scope<'_>, member: MemberId) {
        if self.holders.get(member).is_some() {
            return;
        }
        if self.pages.is_none() {
            match ChunkPages::new(scope.budget()) {
                Ok(pages) => self.pages = Some(pages),
                Err(error) => return tracing::error!(%member, %error, "no address space for chunks"),
            }
        }
        if let Some(pages) = &self.pages {
            self.holders.insert(member, Holder::new(member, pages));
        }
    }

    /// Groups are no more, and nor are their chunks.
    pub(crate) fn dismiss_gone(&mut self, scope: &mut Scope<'_>) {
        let is_left = |group| scope.views.map().is_some_and(|map| map.group(group).is_some());
        self.holders.retain(|member, _| is_left(member.group));
        self.cancel_moot_orders(scope);
    }

    /// What no holder here waits for is not made on.
    fn cancel_moot_orders(&mut self, scope: &mut Scope<'_>) {
        if scope.rules().graphs().moot_orders_end() {
            let is_moot = |purpose: Purpose| !is_awaited(&self.holders, &self.transfers, purpose);
            self.graphs.cancel(scope, &self.holders, is_moot);
        }
    }

    /// Clients have made so many requests of this host, of whatever kind.
    pub(crate) fn heed_requests(&mut self, scope: &Scope<'_>, requests: u64) {
        if std::mem::replace(&mut self.requests, requests) != requests {
            self.note_client(scope);
        }
    }

    fn note_client(&mut self, scope: &Scope<'_>) {
        self.window.note_client(scope.now.time, &scope.timing(), scope.rules());
    }

    /// A message of `from`; not one for an owner.
    pub(crate) fn handle(
        &mut self,
        scope: &mut Scope<'_>,
        from: HostId,
        message: ObjectMessage,
        wanted: &mut Wanted,
    ) {
        if is_of_client(&message) {
            self.note_client(scope);
        }
        match &message {
            ObjectMessage::Cell(cell) => {
                scope.around.meter_mut().came(scope.now.time, from.node, cell);
                self.graphs.measured(scope.now.time, &scope.timing());
            }
            ObjectMessage::Missing(_) => scope.around.meter_mut().forget_question(from.node),
            _ => {}
        }
        self.route(scope, from, message, wanted);
        self.go_on_filling(scope);
    }

    fn route(&mut self, scope: &mut Scope<'_>, from: HostId, message: ObjectMessage, wanted: &mut Wanted) {
        match message {
            ObjectMessage::Cell(cell) if is_of_probe(cell.number) => {
                self.probe.hear_cell(scope, from, &cell);
            }
            ObjectMessage::Listed(listed) if is_of_probe(listed.number) => {
                self.probe.hear_list(scope, from, listed);
            }
            ObjectMessage::Missing(missing) if is_of_probe(missing.number) => {
                self.probe.hear_missing(scope, from, &missing);
            }
            ObjectMessage::Cell(cell) if scrub::is_of_scrub(cell.number) => {
                self.scrub.hear_cell(from, cell);
            }
            ObjectMessage::Missing(missing) if scrub::is_of_scrub(missing.number) => {
                self.scrub.hear_missing(from, &missing);
            }
            other => self.route_others(scope, from, other, wanted),
        }
    }

    fn route_others(
        &mut self,
        scope: &mut Scope<'_>,
        from: HostId,
        message: ObjectMessage,
        wanted: &mut Wanted,
    ) {
        if let Some(member) = fill_of(&message) {
            let mut came = None;
            self.with(member, |holder| came = holder.hear_fill(scope, from, message));
            return self.note_came(scope, came);
        }
        match message {
            ObjectMessage::Put(put) => self.put(scope, from, put),
            ObjectMessage::PutAs(put) => self.put_as(scope, from, put),
            ObjectMessage::PutShared(shared) => self.put_shared(scope, from, *shared),
            ObjectMessage::Lend(lend) => self.multiply(scope, from, lend),
            ObjectMessage::PutSum(put) => {
                let summed = self.sums.name(scope, from, put);
                self.take_summed(scope, summed);
            }
            ObjectMessage::Product(product) => {
                let summed = self.sums.add(scope, from, &product);
                self.take_summed(scope, summed);
            }
            ObjectMessage::Keep(keep) => {
                self.with(keep.member, |holder| holder.keep(scope.rules(), &keep));
            }
            ObjectMessage::Free(free) => {
                self.with(free.member, |holder| holder.free(scope.rules(), &free));
                // Also who has nothing of it: else it would be told again and again.
                let Free { owner, term, member, number, .. } = free;
                scope.send(from, ObjectMessage::Heard(Heard { owner, term, member, number }));
            }
            ObjectMessage::Recall(recall) => {
                self.holders.values_mut().for_each(|holder| holder.ask_anew_about(recall.owner));
                let Recall { owner, term, number } = recall;
                scope.send(from, ObjectMessage::Heard(Heard { owner, term, member: owner, number }));
            }
            ObjectMessage::Fetch(fetch) => match self.holders.get_mut(fetch.member) {
                Some(holder) => holder.fetch(scope, from, &fetch),
                None => holder::miss(scope, from, &fetch),
            },
            ObjectMessage::List(list) => self.with(list.member, |holder| holder.list(scope, from, &list)),
            ObjectMessage::Verdicts(verdicts) => {
                self.with(verdicts.member, |holder| holder.hear(scope, &verdicts));
            }
            ObjectMessage::Heard(heard) => self.courier.heard(scope.now.time, &scope.timing(), from, heard),
            ObjectMessage::Placed(_)
            | ObjectMessage::Refused(_)
            | ObjectMessage::Cell(_)
            | ObjectMessage::Missing(_) => self.transfers.handle(scope, from, message, wanted),
            ObjectMessage::Listed(_) | ObjectMessage::Ask(_) | ObjectMessage::Evict(_) => {}
        }
    }

    /// A message of a coding graph.
    pub(crate) fn handle_graph(&mut self, scope: &mut Scope<'_>, from: HostId, message: GraphMessage) {
        self.graphs.handle(scope, &self.holders, from, message);
        self.go_on_filling(scope);
    }

    /// Goes on with what holders lack.
    fn go_on_filling(&mut self, scope: &mut Scope<'_>) {
        self.go_on_with_graphs(scope);
        self.ask_for_cells(scope);
    }

    /// Lets the holders' fills ask in turn, as far as clients leave room for it and operators want it.
    fn ask_for_cells(&mut self, scope: &mut Scope<'_>) {
        let now = scope.now.time;
        self.holders.settle(&scope.timing());
        while self.window.is_open(now)
            && let Some(member) = self.next_to_ask()
            && scope.around.pace_mut().allows(now)
        {
            self.asked_last = Some(member);
            let Some(holder) = self.holders.get_mut(member) else { return };
            if let Some(bytes) = holder.ask_for_cells(scope, &self.window) {
                scope.around.pace_mut().spend(bytes as usize);
            }
        }
    }

    /// The next of those whose fills would ask for cells.
    fn next_to_ask(&self) -> Option<MemberId> {
        let mut all = self.holders.lacking_behind(self.asked_last);
        all.find(|(_, holder)| holder.fill().wants_cells()).map(|(member, _)| member)
    }

    fn note_came(&mut self, scope: &Scope<'_>, came: Option<Came>) {
        if let Some(came) = came {
            self.window.note(scope.now.time, came, &scope.timing());
        }
    }

    /// Begins the graphs that somebody here wants, and hands over what has been made by others, until nothing is left.
    fn go_on_with_graphs(&mut self, scope: &mut Scope<'_>) {
        loop {
            for (member, chunk) in self.graphs.take_rotten() {
                self.with(member, |holder| holder.give_up(scope, chunk));
            }
            self.holders.settle(&scope.timing());
            if let Some(order) = self.next_order(scope) {
                scope.around.pace_mut().spend(order.len() as usize);
                self.graphs.begin(scope, &self.holders, order);
            } else if let Some(made) = self.graphs.poll_made() {
                self.hand_over(scope, made);
            } else {
                return;
            }
        }
    }

    fn hand_over(&mut self, scope: &mut Scope<'_>, made: Made) {
        let member = match made.purpose.whose {
            Whose::Holder(member) => member,
            Whose::Reader(gather) => return self.transfers.gathers.keep_made(gather, made),
        };
        let mut came = None;
        self.with(member, |holder| came = holder.hear_made(scope, made));
        if let Some(came) = came {
            self.window.note_graph(scope.now.time, came, &scope.timing());
        }
    }

    /// Has made by graphs what readers here lack, as far as they may, and gives them what was; false if there is nothing to do.
    pub(crate) fn go_on_reading(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) -> bool {
        let lacks = self.transfers.gathers.has_lost_cells();
        if lacks {
            let may = self.graphs.takes_reads();
            if let Some(order) = self.transfers.next_order(scope, may, wanted) {
                self.graphs.begin(scope, &self.holders, order);
            }
            self.go_on_with_graphs(scope);
        }
        let hears = self.transfers.hear_made(scope, wanted);
        self.cancel_moot_reads(scope);
        lacks || hears
    }

    /// What no reader waits for any more is not made on.
    fn cancel_moot_reads(&mut self, scope: &mut Scope<'_>) {
        let gathers = &self.transfers.gathers;
        let is_moot = |purpose: Purpose| match purpose.whose {
            Whose::Holder(_) => false,
            Whose::Reader(gather) => !gathers.awaits(gather, purpose.number),
        };
        if self.graphs.purposes().any(is_moot) {
            self.graphs.cancel(scope, &self.holders, is_moot);
        }
    }

    /// What a graph is to make next, as far as clients leave room for it and operators want it.
    fn next_order(&mut self, scope: &mut Scope<'_>) -> Option<order::Order> {
        let (now, most_bytes) = (scope.now.time, scope.graph_bytes()?);
        let may_begin =
            self.wants_graphs() && self.window.is_open(now) && scope.around.pace_mut().allows(now);
        let window = &self.window;
        let mut take = |holder: &mut Holder| holder.take_order(now, most_bytes, window);
        may_begin.then(|| self.holders.find_of_lacking(&mut take)).flatten()
    }

    /// Whether more is to be made by graphs, and there may be more graphs.
    fn wants_graphs(&self) -> bool {
        self.graphs.takes_more()
            && self.holders.lacking_behind(None).any(|(_, holder)| holder.fill().wants_graphs())
    }

    /// A cell of a chunk.
    fn put(&mut self, scope: &mut Scope<'_>, from: HostId, put: Put) {
        let (member, name) = (put.member, (put.chunk, put.attempt));
        if let Some(superseded) = self.sums.take_superseded(from, &put) {
            self.with(member, |holder| holder.drop_arriving(from, superseded));
        }
        let Some(holder) = self.holders.get_mut(member) else {
            return self.put_early(scope, from, PutShared { put, shares: Shares::new() });
        };
        let short = holder.put(scope, from, put).err();
        self.relieve(scope);
        let Some(short) = short else { return };
        let is_hopeful = match short {
            Short::Room => self.pressure.is_being_relieved(),
            // There will be something of it in a moment.
            Short::Share { why: QuotaShortage::Undealt, .. } => true,
            Short::Share { namespace, bytes, why: QuotaShortage::Spent } => {
                self.make_way(scope, namespace, bytes)
            }
        };
        if let Some(holder) = self.holders.get(member) {
            let why = if is_hopeful { Refusal::Crowded } else { Refusal::NoRoom };
            holder.refuse(scope, from, name, why);
        }
    }

    /// A cell of a chunk, of which holders of parities are to have products.
    fn put_shared(&mut self, scope: &mut Scope<'_>, from: HostId, shared: PutShared) {
        if self.holders.get(shared.put.member).is_none() {
            return self.put_early(scope, from, shared);
        }
        if let Some(lend) = shares::lent_of(&shared) {
            self.multiply(scope, from, lend);
        }
        self.put(scope, from, shared.put);
    }

    /// Holders of parities are to have products of a cell: they are known by the view that the writer has, or a newer one.
    fn multiply(&mut self, scope: &mut Scope<'_>, from: HostId, lend: Lend) {
        let group = lend.member.group;
        let is_early = scope.view(group).is_some_and(|view| lend.view > view.version);
        if scope.rules().graphs().does_lent_cell_wait(is_early) {
            scope.want_view(group);
            return self.early.keep(scope.limits().early_bytes, from, EarlyCell::Lent(lend));
        }
        shares::give(scope, from, &lend);
    }

    /// Cells of parities that were added up are put; of others nothing more comes.
    fn take_summed(&mut self, scope: &mut Scope<'_>, summed: Summed) {
        summed.whole.into_iter().for_each(|(writer, put)| self.put(scope, writer, put));
        for (writer, refused) in summed.ended {
            self.with(refused.member, |holder| holder.drop_arriving(writer, refused.attempt));
            scope.send(writer, ObjectMessage::Refused(refused));
        }
    }

    /// A chunk that is to have another name, too.
    fn put_as(&mut self, scope: &mut Scope<'_>, from: HostId, put: PutAs) {
        let PutAs { member, view, chunk, attempt, .. } = put;
        if let Some(holder) = self.holders.get_mut(member) {
            return holder.put_as(scope, from, put);
        }
        let Some(known) = scope.view(member.group).map(|view| view.version) else { return };
        if view > known {
            scope.want_view(member.group);
        }
        // It is told again soon.
        let why = if view > known { Refusal::Absent } else { Refusal::View(known) };
        scope.send(from, ObjectMessage::Refused(Refused { member, chunk, attempt, why }));
    }

    /// Where room is short, some chunks are to go, or items.
    fn relieve(&mut self, scope: &mut Scope<'_>) {
        if let Some(pages) = &self.pages {
            self.pressure.relieve_all(scope, &mut self.holders, pages);
        }
    }

    /// Whether items are to make way for chunks: the data roles of this host are to be asked.
    pub(crate) fn take_question_for_room(&mut self) -> bool {
        self.pressure.take_question()
    }

    /// Whether they do.
    pub(crate) fn note_items(&mut self, now: Time, make_way: bool) {
        if let Some(pages) = &self.pages {
            self.pressure.note_items(now, pages, make_way);
        }
    }

    /// A namespace is at its quota: some of its chunks are to go for one of so many bytes, and a few more for the next ones. Whether any can.
    fn make_way(&mut self, scope: &mut Scope<'_>, namespace: NamespaceId, bytes: u64) -> bool {
        let has_some = self.holders.values().any(|holder| holder.chunks().taken_by(namespace) > 0);
        if !has_some || !scope.may_evict(namespace) {
            return false;
        }
        let missing = bytes.saturating_mul(CHUNKS_AHEAD);
        self.pressure.relieve(scope, &mut self.holders, Some(namespace), missing);
        true
    }

    /// Namespaces may have other quotas.
    pub(crate) fn heed_quotas(&mut self, scope: &Scope<'_>) {
        self.holders.values_mut().for_each(|holder| holder.heed_quotas(scope));
        self.pressure.forget(|namespace| scope.is_gone(namespace));
    }

    /// Shares may have become smaller: where chunks may go for that they do, a few at a time.
    pub(crate) fn keep_to_shares(&mut self, scope: &mut Scope<'_>) {
        let mut excess: BTreeMap<NamespaceId, u64> = BTreeMap::new();
        for (namespace, bytes) in self.holders.values().flat_map(|holder| holder.chunks().excess()) {
            if bytes > 0 {
                *excess.entry(namespace).or_default() += bytes;
            }
        }
        self.shares_at = (!excess.is_empty()).then(|| scope.now.time + scope.timing().retry_us);
        for (namespace, bytes) in excess {
            if scope.may_evict(namespace) {
                self.pressure.relieve(scope, &mut self.holders, Some(namespace), bytes);
            }
        }
    }

    /// A cell for a role that this host does not hold, as far as it knows.
    fn put_early(&mut self, scope: &mut Scope<'_>, from: HostId, shared: PutShared) {
        let put = &shared.put;
        let Some(known) = scope.view(put.member.group).map(|view| view.version) else { return };
        if put.view > known {
            scope.want_view(put.member.group);
            return self.early.keep(scope.limits().early_bytes, from, EarlyCell::Put(shared));
        }
        let Put { member, chunk, attempt, .. } = shared.put;
        let why = Refusal::View(known);
        scope.send(from, ObjectMessage::Refused(Refused { member, chunk, attempt, why }));
    }

    /// Something for one of the roles that are kept here, if it is.
    pub(crate) fn with(&mut self, member: MemberId, act: impl FnOnce(&mut Holder)) {
        if let Some(holder) = self.holders.get_mut(member) {
            act(holder);
        }
    }

    /// What an owner here wants holders to hear.
    pub(crate) fn take_errand(&mut self, scope: &Scope<'_>, errand: Errand) {
        self.courier.take(scope.now.time, &scope.timing(), scope.views, errand);
    }

    /// A link to `peer` is up.
    pub(crate) fn link_up(&mut self, scope: &mut Scope<'_>, peer: HostId, wanted: &mut Wanted) {
        self.lose_link(scope, peer, wanted);
        self.graphs.link_up(scope.now.time, &scope.timing(), peer);
        self.transfers.link_up(scope, peer);
    }

    /// A link to `peer` is down, or another one now: what was on its way is lost.
    pub(crate) fn lose_link(&mut self, scope: &mut Scope<'_>, peer: HostId, wanted: &mut Wanted) {
        scope.around.meter_mut().forget_question(peer.node);
        self.courier.link_broken(scope.now.time, &scope.timing(), peer);
        self.early.forget(peer);
        self.sums.forget(peer);
        let rules = scope.rules();
        self.holders.values_mut().for_each(|holder| holder.link_broken(rules, peer));
        self.transfers.lose_link(scope, peer, wanted);
        self.graphs.lose_link(scope, &self.holders, peer);
        self.probe.lose_link(scope, peer);
        self.go_on_filling(scope);
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) {
        self.holders.settle(&scope.timing());
        for member in self.holders.due_at(scope.now.time) {
            self.with(member, |holder| holder.tick(scope));
        }
        if self.lacks_room() {
            self.relieve(scope);
        }
        if self.shares_at.is_some_and(|at| at <= scope.now.time) {
            self.keep_to_shares(scope);
        }
        let (now, timing) = (scope.now.time, scope.timing());
        self.courier.go_on(now, &timing, scope.views, scope.around.out());
        self.transfers.tick(scope, wanted);
        if self.graphs.due() <= now {
            self.graphs.tick(scope, &self.holders);
        }
        self.probe.tick(scope);
        let late = self.sums.tick(now, &timing);
        self.take_summed(scope, late);
        self.go_on_filling(scope);
        self.trim(now);
    }

    /// Measures the links to all other nodes, by so many bytes of each; false if that is under way.
    pub(crate) fn probe_links(&mut self, scope: &mut Scope<'_>, bytes: u64) -> bool {
        self.probe.begin(scope, bytes)
    }

    /// What has come of that.
    pub(crate) fn probe_report(&self) -> ProbeReport {
        self.probe.report()
    }

    /// Compares some more chunks with their checksums.
    pub(crate) fn scrub(&mut self, scope: &mut Scope<'_>) {
        self.scrub.go_on(scope, &mut self.holders);
        self.go_on_filling(scope);
    }

    /// When [`Self::scrub`] has something to do.
    pub(crate) fn scrub_due(&self, pace: &Pace, timing: &Timing, now: Time) -> Time {
        self.scrub.due(pace, timing, now)
    }

    /// Stripes that the newest scrub has found to be no code words.
    pub(crate) fn wrong_stripes(&self) -> &[WrongStripe] {
        self.scrub.wrong()
    }

    /// How far the newest scrub has come with chunks.
    pub(crate) fn scrub_progress(&self, settings: ScrubSettings) -> ScrubProgress {
        self.scrub.progress(settings, self.holders.values().map(|holder| holder.chunks().bytes()).sum())
    }

    /// Pages of chunks compared, and chunks found wrong, by all scrubs.
    pub(crate) fn scrub_totals(&self) -> (u64, u64) {
        self.scrub.totals()
    }

    /// Gives some of the pages that nobody has used for a while back to the system.
    fn trim(&mut self, now: Time) {
        let Some(pages) = &self.pages else { return };
        self.pressure.tick(now, pages);
        if now >= self.trim_at {
            pages.trim();
            self.trim_at = now + TRIM_EVERY_US;
        }
    }

    /// Something may be due at another time than before.
    pub(crate) fn touch(&mut self) {
        self.due = None;
    }

    /// When [`Self::tick`] has something to do, or sooner. Most of it is looked for after a [`Self::touch`] alone: whoever serves no
    /// long values now pays nothing for them.
    pub(crate) fn due(&mut self, timing: &Timing, pace: &Pace) -> Time {
        self.holders.settle(timing);
        let known = self.due.unwrap_or_else(|| self.find_due(timing, pace));
        debug_assert!(known <= self.find_due(timing, pace), "nothing is due sooner than is known");
        self.due = Some(known);
        // Others who share the budget make pages idle, too.
        let keeps_idle = self.pages.as_ref().is_some_and(ChunkPages::keeps_idle);
        if keeps_idle { known.min(self.trim_at) } else { known }
    }

    fn find_due(&self, timing: &Timing, pace: &Pace) -> Time {
        let wants_more = self.next_to_ask().is_some() || self.wants_graphs();
        let fills = wants_more.then(|| self.window.opens_at().max(pace.resumes_at(Time(0))));
        let holders = self.holders.due();
        let parts = self.courier.due(timing).min(self.transfers.due(timing)).min(self.graphs.due());
        let parts = parts.min(self.sums.due(timing));
        let parts =
            parts.min(self.probe.due(timing)).min(self.pressure.claims_until().unwrap_or(Time::NEVER));
        holders.min(parts).min(fills.unwrap_or(Time::NEVER)).min(self.shares_at.unwrap_or(Time::NEVER))
    }

    /// Bytes that are held for values on their way, for fills, and for what owners want to be said.
    pub(crate) fn memory_bytes(&self) -> usize {
        let fills: usize = self.holders.values().map(|holder| holder.fill().memory_bytes()).sum();
        let graphs = self.graphs.memory_bytes();
        self.transfers.memory_bytes()
            + self.courier.memory_bytes()
            + self.early.memory_bytes()
            + self.sums.memory_bytes()
            + self.scrub.memory_bytes()
            + self.probe.memory_bytes()
            + fills
            + graphs
    }

    /// What has to hold.
    pub(crate) fn check_invariants(&self, timing: &Timing) {
        self.transfers.check_invariants();
        self.holders.check_invariants(timing);
        self.graphs.check_invariants();
        self.sums.check_invariants();
        self.window.check_invariants(self.holders.values().map(|holder| holder.fill().claimed_bytes()).sum());
        let moot =
            self.graphs.purposes().find(|purpose| !is_awaited(&self.holders, &self.transfers, *purpose));
        assert!(moot.is_none(), "chunks are made that nobody here waits for: {moot:?}");
    }

    /// Whether there is no room for chunks that are to be got.
    pub(crate) fn lacks_room(&self) -> bool {
        self.holders.lacking_behind(None).any(|(_, holder)| holder.fill().lacks_room())
    }

    /// Bytes of the pages of chunks, whole or not.
    pub(crate) fn page_bytes(&self) -> usize {
        self.pages.as_ref().map_or(0, ChunkPages::used_bytes)
    }

    /// Bytes of pages that no chunk is in and that have memory.
    pub(crate) fn free_page_bytes(&self) -> usize {
        self.pages.as_ref().map_or(0, ChunkPages::unused_bytes)
    }

    /// What is made here by coding graphs.
    pub(crate) fn graphs(&self) -> &Graphs {
        &self.graphs
    }

    /// Nodes that are not in the map any more say nothing of links.
    pub(crate) fn retain_nodes(&mut self, is_there: impl Fn(NodeId) -> bool) {
        self.graphs.retain_nodes(is_there);
    }

    /// What is here, without what owners know.
    pub(crate) fn stats(&self) -> ObjectStats {
        let mut stats =
            ObjectStats { buffer_bytes: self.transfers.memory_bytes() as u64, ..ObjectStats::default() };
        (stats.fill_window_bytes, stats.fill_asked_bytes) = (self.window.bytes(), self.window.in_flight());
        self.transfers.count(&mut stats);
        self.sums.count(&mut stats);
        self.holders.values().for_each(|holder| holder.count(&mut stats));
        stats
    }
}

/// How much that is written and read here waits for the driver.
#[inline]
pub(crate) fn waiting_actions(objects: &Objects) -> usize {
    transfers::waiting(&objects.transfers)
}

/// Whether a client waits for what is done about it.
fn is_of_client(message: &ObjectMessage) -> bool {
    match message {
        ObjectMessage::Put(_) | ObjectMessage::PutAs(_) | ObjectMessage::Placed(_) => true,
        ObjectMessage::PutShared(_) | ObjectMessage::PutSum(_) | ObjectMessage::Product(_) => true,
        ObjectMessage::Lend(_) => true,
        ObjectMessage::Fetch(fetch) => !is_of_repair(fetch.number),
        ObjectMessage::Cell(cell) => !is_of_repair(cell.number),
        _ => false,
    }
}

#[cfg(feature = "planted-bugs")]
impl Objects {
    /// Flips bits of a chunk; false if there is no such byte.
    pub(crate) fn damage(&mut self, member: MemberId, chunk: types::ChunkId, byte: usize, mask: u8) -> bool {
        self.holders.get_mut(member).is_some_and(|holder| holder.chunks_mut().damage(chunk, byte, mask))
    }
}

/// Whether somebody here waits for an order.
fn is_awaited(holders: &Holders, transfers: &Transfers, purpose: Purpose) -> bool {
    match purpose.whose {
        Whose::Holder(member) => holders.get(member).is_some_and(|holder| holder.awaits(purpose)),
        Whose::Reader(gather) => transfers.gathers.awaits(gather, purpose.number),
    }
}

/// Whose fill has asked for this, if one has.
fn fill_of(message: &ObjectMessage) -> Option<MemberId> {
    let (number, group) = match message {
        ObjectMessage::Cell(cell) => (cell.number, cell.member.group),
        ObjectMessage::Missing(missing) => (missing.number, missing.member.group),
        ObjectMessage::Listed(listed) => (listed.number, listed.member.group),
        _ => return None,
    };
    fill::role_of(number).map(|role| MemberId { group, role })
}
