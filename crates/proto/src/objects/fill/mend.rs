//! One chunk that is got: copied from another holder of its role, or made of `k` chunks of other roles, row by row. A whole copy is got
//! part by part, as long as a chunk of the code each; and a part of it is what there is to copy for other data roles.
//!
//! A few rows are asked for at a time, a bite, when the window of this host's fills has room for it (`window`).
//!
//! What is made is kept only if its checksum is the one that the writer has named to everybody: a chunk that was made of wrong ones
//! must not pass for right.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use cluster::Protection;
use codec::{Coder, Plan};
use smallvec::{SmallVec, smallvec};
use store::{ChunkBuilder, ChunkHeader, ChunkPages, ChunkStore, Inserted};
use types::{CellAt, ChunkId, GroupView, HostId, MemberId, NodeId, RoleIndex, Stripe, Time, ViewVersion};
use wire::object::{Asked, Cell, Fetch, ListedChunk, Missing, ObjectMessage};

use super::bring::bring;
use super::window::{Came, Claim, Window};
use crate::Rules;
use crate::objects::scope::Scope;

/// Bytes of the cells of one bite, unless a row of them is longer.
const BITE_BYTES: u64 = 256 << 10;

/// Roles, and who holds them.
type Sources = SmallVec<[(usize, HostId); 8]>;

/// See the module.
pub(super) struct Mend {
    member: MemberId,
    listed: ListedChunk,
    stripe: Stripe,
    protection: Arc<Protection>,
    pages: ChunkPages,
    builder: ChunkBuilder,
    /// What is got now.
    part: Part,
    /// Whom it is made of now: roles, and where.
    sources: Sources,
    /// How it is made of these; none if it is copied.
    plan: Option<Plan>,
    /// Rows of the part that were asked for.
    asked: u32,
    /// Those of which something is still to come.
    bites: VecDeque<Bite>,
    /// What is still to come.
    claim: Claim,
    /// Cells of the chunk that are not complete yet, each of one of every source.
    rows: BTreeMap<u32, SmallVec<[Option<Bytes>; 8]>>,
    /// Who does not have it, and whether that was said under this view.
    missing: BTreeMap<(usize, HostId), bool>,
    asked_at: Time,
    waits_for: Wait,
}

/// What a chunk waits for before more of it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Nothing but the window.
    Nothing,
    /// There was no memory for it: it is tried again later.
    Room,
    /// Not everybody has said whether he has it: all are asked again later.
    Others,
    /// Everybody has said that it cannot be made: the owner knows whether it has to.
    Owner,
}

/// Rows that were asked for at once.
struct Bite {
    /// Behind the last of them, within the part.
    end: u32,
    asked_at: Time,
    bytes: u64,
}

/// Cells of a chunk that are a chunk of the code.
#[derive(Clone, Copy, Default)]
struct Part {
    /// Cells of the chunk before it.
    base: u32,
    /// Cells that its source keeps before it; 0 where there are several.
    first: u32,
}

/// What came of an attempt to ask for more.
pub(super) enum Attempt {
    /// For so many bytes of the chunk.
    Asked(u64),
    /// It cannot go on now.
    Held,
    /// Everybody has answered, and what there is is not enough: the owner is to be asked.
    Unsolvable(Asked),
}

impl Mend {
    /// None if there can be no such chunk.
    pub(super) fn new(
        member: MemberId,
        listed: ListedChunk,
        protection: Arc<Protection>,
        pages: &ChunkPages,
        window: &Window,
    ) -> Option<Self> {
        let stripe = listed.geometry.stripe(listed.chunk.stripe)?;
        Some(Self {
            member,
            stripe,
            protection,
            pages: pages.clone(),
            builder: ChunkBuilder::new(pages, stripe.cell_len, stripe.cells_of(member.role.0)),
            part: Part::default(),
            sources: SmallVec::new(),
            plan: None,
            asked: 0,
            bites: VecDeque::new(),
            claim: window.claim(),
            rows: BTreeMap::new(),
            missing: BTreeMap::new(),
            asked_at: Time(0),
            waits_for: Wait::Nothing,
            listed,
        })
    }

    pub(super) fn chunk(&self) -> ChunkId {
        self.listed.chunk
    }

    pub(super) fn into_listed(self) -> ListedChunk {
        self.listed
    }

    /// Bytes of the chunk.
    pub(super) fn len_bytes(&self) -> u64 {
        self.stripe.len_of(self.member.role.0)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let cells = self.rows.values().flatten().flatten().map(Bytes::len).sum::<usize>();
        cells + self.builder.allocated_bytes()
    }

    /// When it was asked for, or heard of, last; none if nothing but the window keeps it.
    pub(super) fn waits_since(&self) -> Option<Time> {
        let is_waiting = self.waits_for != Wait::Nothing || !self.bites.is_empty();
        is_waiting.then_some(self.asked_at)
    }

    /// What it has asked for and not got.
    pub(super) fn claimed_bytes(&self) -> u64 {
        self.claim.bytes()
    }

    /// Whether it would ask for more.
    pub(super) fn wants_more(&self) -> bool {
        self.waits_for == Wait::Nothing && self.asked < self.stripe.rows && !self.is_whole()
    }

    /// Whether all of it is here.
    pub(super) fn is_whole(&self) -> bool {
        self.builder.rows_there() == self.builder.rows()
    }

    /// Whether there was no memory for it.
    pub(super) fn lacks_room(&self) -> bool {
        self.waits_for == Wait::Room
    }

    /// Whether everybody has said that it cannot be made.
    pub(super) fn is_unsolvable(&self) -> bool {
        self.waits_for == Wait::Owner
    }

    /// The group has another view. Others may have it by now; what comes from those who are still its holders goes on coming.
    pub(super) fn adopt(&mut self, rules: Rules, view: &GroupView) {
        let holds = |source: &(usize, HostId)| {
            view.all_holders().any(|(role, holder)| (usize::from(role.0), holder.host) == *source)
        };
        if self.waits_for == Wait::Nothing && self.sources.iter().all(holds) {
            self.missing.clear();
        } else {
            self.reconsider(rules);
        }
    }

    /// Others may have it by now.
    fn reconsider(&mut self, rules: Rules) {
        self.missing.clear();
        self.begin_anew(rules);
    }

    /// Whoever was asked has said nothing for long, which is no answer: all are asked anew.
    pub(super) fn ask_again(&mut self, rules: Rules) {
        if !rules.objects().silence_is_lacking() {
            return self.reconsider(rules);
        }
        let next = self.rows.get(&self.builder.rows_there());
        let is_silent = |at: &usize| next.is_none_or(|cells| cells[*at].is_none());
        let silent: Vec<usize> = (0..self.sources.len()).filter(is_silent).collect();
        self.missing.extend(silent.into_iter().map(|at| (self.sources[at], true)));
        self.begin_anew(rules);
    }

    fn begin_anew(&mut self, rules: Rules) {
        self.end_part(rules);
        let cells = self.stripe.cells_of(self.member.role.0);
        self.builder = ChunkBuilder::new(&self.pages, self.stripe.cell_len, cells);
        self.waits_for = Wait::Nothing;
    }

    /// The next part, or the same again, may be made of others.
    fn end_part(&mut self, rules: Rules) {
        self.sources.clear();
        self.rows.clear();
        self.bites.clear();
        self.claim.clear(rules);
        (self.plan, self.asked) = (None, 0);
    }

    /// Asks for some more rows of it. To be called if it wants more.
    pub(super) fn ask(&mut self, scope: &mut Scope<'_>, number: u64) -> Attempt {
        if self.sources.is_empty() {
            // What there is no room for is not sent for: it is tried again later.
            if self.pages.room() + (self.builder.allocated_bytes() as u64) < self.len_bytes() {
                (self.waits_for, self.asked_at) = (Wait::Room, scope.now.time);
                return Attempt::Held;
            }
            match self.choose(scope) {
                Some((part, sources, plan)) => (self.part, self.sources, self.plan) = (part, sources, plan),
                None => return self.judge(scope),
            }
        }
        self.asked_at = scope.now.time;
        Attempt::Asked(self.fetch(scope, number))
    }

    /// The next part, whom it can be made of by what is known of who has it, and how.
    fn choose(&self, scope: &Scope<'_>) -> Option<(Part, Sources, Option<Plan>)> {
        let view = scope.view(self.member.group)?;
        let own = usize::from(self.member.role.0);
        let here = scope.here();
        let may_have =
            |source: &(usize, HostId)| *source != (own, here) && !self.missing.contains_key(source);
        let all: Vec<(usize, HostId)> = view
            .all_holders()
            .map(|(role, holder)| (usize::from(role.0), holder.host))
            .filter(may_have)
            .collect();
        let of = |role: &usize| all.iter().find(|(known, _)| known == role).copied();
        let (base, stripe) = (self.builder.rows_there(), self.stripe);
        let part = stripe.kept_cell(self.member.role.0, base).role;
        let is_copy = stripe.has_copy(self.member.role.0);
        let role = usize::from(if is_copy { scope.rules().objects().part_of_copy(part) } else { part });
        let one = |first, source| Some((Part { base, first }, smallvec![source], None));
        if let Some(same) = of(&own) {
            return one(base, same);
        }
        if let Some(chunk) = of(&role) {
            return one(0, chunk);
        }
        if let Some(copy) = of(&0).filter(|_| stripe.has_copy(0) && role < usize::from(stripe.k)) {
            return one(stripe.cell_in_copy(CellAt { row: 0, role: role as u8 }), copy);
        }
        let fast = without_slow(scope, &all);
        // Who is slow is asked where the others do not suffice.
        let plan_of = |present: &[(usize, HostId)]| {
            let roles = distinct(present.iter().map(|(role, _)| *role).collect());
            self.protection.code().plan(&roles, &[role])
        };
        let (plan, all) = match plan_of(&fast) {
            Ok(plan) => (plan, fast),
            Err(_) => (plan_of(&all).ok()?, all),
        };
        let of = |role: &usize| all.iter().find(|(known, _)| known == role).copied();
        let part = Part { base, first: 0 };
        let sources = plan.sources().iter().map(of).collect::<Option<_>>()?;
        Some((part, sources, Some(plan)))
    }

    /// Asks for the next bite; bytes of the chunk that it is.
    fn fetch(&mut self, scope: &mut Scope<'_>, number: u64) -> u64 {
        let row_bytes = u64::from(self.stripe.cell_len) * self.sources.len() as u64;
        let rows = u32::try_from(BITE_BYTES / row_bytes.max(1)).unwrap_or(u32::MAX).max(1);
        let count = rows.min(self.stripe.rows - self.asked);
        for (role, host) in &self.sources {
            let member = MemberId { group: self.member.group, role: RoleIndex(*role as u8) };
            let (chunk, first) = (self.listed.chunk, self.part.first + self.asked);
            scope.send(*host, ObjectMessage::Fetch(Fetch { number, member, chunk, first, count }));
        }
        self.asked += count;
        let bytes = row_bytes * u64::from(count);
        self.claim.add(bytes);
        self.bites.push_back(Bite { end: self.asked, asked_at: scope.now.time, bytes });
        u64::from(count) * u64::from(self.stripe.cell_len)
    }

    /// It cannot be made: for good only if everybody has said so under this view.
    fn judge(&mut self, scope: &Scope<'_>) -> Attempt {
        self.asked_at = scope.now.time;
        let is_sure = self.missing.values().all(|counts| *counts);
        self.waits_for = if is_sure { Wait::Owner } else { Wait::Others };
        if !is_sure {
            return Attempt::Held;
        }
        let ListedChunk { chunk, key_hash, .. } = self.listed;
        Attempt::Unsolvable(Asked { object: chunk.object, key_hash })
    }

    /// A cell of a source. What has come with it of all that was asked for at once, if it is the last of that.
    pub(super) fn take(&mut self, scope: &Scope<'_>, cell: Cell) -> Option<Came> {
        let role = usize::from(cell.member.role.0);
        let at = self.sources.iter().position(|(source, _)| *source == role)?;
        let Part { base, first, .. } = self.part;
        let row = cell.row.wrapping_sub(first);
        let is_right = cell.chunk == self.listed.chunk
            && cell.cell.bytes.len() == self.stripe.cell_len as usize
            && row < self.asked
            && base + row >= self.builder.rows_there()
            && cell.cell.is_right();
        if !is_right {
            return None;
        }
        self.asked_at = scope.now.time;
        let count = self.sources.len();
        let cells = self.rows.entry(base + row).or_insert_with(|| smallvec![None; count]);
        if cells[at].replace(cell.cell.bytes).is_none() {
            self.claim.subtract(u64::from(self.stripe.cell_len));
        }
        while let Some(made) = self.next_row(scope.coder()) {
            if self.builder.push(&made).is_err() {
                self.begin_anew(scope.rules());
                self.waits_for = Wait::Room;
                return None;
            }
        }
        let there = self.builder.rows_there() - base;
        let bite = self.bites.pop_front_if(|bite| bite.end <= there);
        if there == self.stripe.rows {
            self.end_part(scope.rules());
        }
        bite.map(|bite| Came { took_us: scope.now.time.since(bite.asked_at), bytes: bite.bytes })
    }

    /// The next row of the chunk, if all that it is made of has come.
    fn next_row(&mut self, coder: &Coder) -> Option<Bytes> {
        let row = self.builder.rows_there();
        let is_complete = self.rows.get(&row)?.iter().all(Option::is_some);
        if !is_complete {
            return None;
        }
        let cells: SmallVec<[Bytes; 8]> = self.rows.remove(&row)?.into_iter().flatten().collect();
        let Some(plan) = &self.plan else { return cells.into_iter().next() };
        // They are in the plan's order.
        let sources: SmallVec<[&[u8]; 16]> = cells.iter().map(|cell| &cell[..]).collect();
        let mut made = vec![0; self.stripe.cell_len as usize];
        coder.reconstruct(plan, &sources, &mut [&mut made]).ok()?;
        Some(made.into())
    }

    /// `from` has not got it. It counts if it was said under the view of `since` or a later one. During a move two hosts hold a role:
    /// what the one says, perhaps late, must not be taken for the other's answer.
    pub(super) fn miss(&mut self, rules: Rules, from: HostId, missing: &Missing, since: ViewVersion) {
        let source = (usize::from(missing.member.role.0), from);
        if self.sources.contains(&source) {
            self.missing.insert(source, rules.objects().is_lacking(missing.view, since));
            self.begin_anew(rules);
        }
    }

    /// What was asked of `peer` will not come.
    pub(super) fn lose(&mut self, rules: Rules, peer: HostId) {
        if let Some(source) = self.sources.iter().find(|(_, host)| *host == peer).copied() {
            self.missing.insert(source, false);
            self.begin_anew(rules);
        }
    }

    /// It is whole: kept if it is what the writer has put.
    pub(super) fn keep_in(self, scope: &Scope<'_>, chunks: &mut ChunkStore) {
        let ListedChunk { chunk, key_hash, geometry, trailer, kept } = self.listed;
        let Ok(built) = self.builder.finish() else { return };
        let (received_at, last_access) = (scope.now.time, scope.now.unix);
        let trailer = trailer.iter().copied().collect();
        let header = ChunkHeader { key_hash, geometry, trailer, received_at, last_access };
        if bring(scope, chunks, chunk, header, built) == Some(Inserted::Wrong) {
            return tracing::error!(member = %self.member, %chunk, "what was made of others is not this chunk");
        }
        if kept {
            chunks.keep(chunk);
        }
    }
}

/// Those from whom cells do not come more slowly than from most.
fn without_slow(scope: &Scope<'_>, all: &[(usize, HostId)]) -> Vec<(usize, HostId)> {
    if !scope.rules().graphs().slow_links_are_gone_round() {
        return all.to_vec();
    }
    let slow: Vec<NodeId> = scope.around.meter().slow_lately(scope.now.time).map(|(node, _)| node).collect();
    all.iter().filter(|(_, host)| !slow.contains(&host.node)).copied().collect()
}

fn distinct(mut roles: Vec<usize>) -> Vec<usize> {
    roles.sort_unstable();
    roles.dedup();
    roles
}

#[cfg(test)]
mod tests {
    use store::Budget;
    use types::{
        Geometry, GroupId, Holder, Holders, Incarnation, KeyHash, NamespaceId, NodeId, ObjectId,
        ObjectLayout, Term,
    };

    use super::*;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn member(role: u8) -> MemberId {
        MemberId { group: GroupId(0), role: RoleIndex(role) }
    }

    /// A chunk of role 0 that is made of roles 1 and 2, on nodes 1 and 2.
    fn mend() -> Mend {
        let (owner, term, namespace) = (member(0), Term(1), NamespaceId::default());
        let chunk = ChunkId { object: ObjectId { owner, term, number: 1, salt: 1, namespace }, stripe: 0 };
        let geometry = Geometry { len: 1000, chunk_len: 65_536, k: 2, layout: ObjectLayout::Spread };
        let trailer = SmallVec::from_elem(0, 3);
        let listed = ListedChunk { chunk, key_hash: KeyHash(1), geometry, trailer, kept: true };
        let protection = Arc::new(Protection::of("rs(2+1)".parse().unwrap()));
        let pages = ChunkPages::new(Budget::new(1 << 20)).unwrap();
        let mut mend = Mend::new(member(0), listed, protection, &pages, &Window::default()).unwrap();
        mend.sources = smallvec![(1, host(1)), (2, host(2))];
        mend
    }

    /// Role `i` is that of node `nodes[i]`.
    fn view(nodes: [u16; 3]) -> GroupView {
        let whole = |node| Some(Holder { host: host(node), since: ViewVersion(1) });
        let holders = nodes.map(|node| Holders { whole: whole(node), filling: None }).to_vec();
        let (data, parity, learners, former) = Default::default();
        GroupView { group: GroupId(0), version: ViewVersion(5), data, parity, learners, former, holders }
    }

    fn missing(mend: &Mend, role: u8, view: u64) -> Missing {
        let view = ViewVersion(view);
        Missing { number: 1, member: member(role), chunk: mend.chunk(), view, whole: false }
    }

    #[test]
    fn what_the_other_holder_of_a_role_says_is_not_the_answer_of_the_asked_one() {
        // Node 3 gets the chunks of role 1 from node 1, was asked before it was known that node 1 has them, and answers late.
        let mut mend = mend();
        mend.miss(Rules::all(), host(3), &missing(&mend, 1, 5), ViewVersion(5));
        assert!(mend.missing.is_empty() && mend.sources.len() == 2);
        mend.miss(Rules::all(), host(1), &missing(&mend, 1, 5), ViewVersion(5));
        assert!(mend.missing[&(1, host(1))] && mend.sources.is_empty());
    }

    #[test]
    fn what_comes_from_holders_that_stay_is_not_asked_for_again_under_another_view() {
        let mut mend = mend();
        mend.asked = 1;
        mend.adopt(Rules::all(), &view([0, 1, 2]));
        assert_eq!((mend.asked, mend.sources.len()), (1, 2), "they are who they were");
        mend.adopt(Rules::all(), &view([0, 1, 3]));
        assert!(mend.asked == 0 && mend.sources.is_empty(), "role 2 is somebody else's");
    }

    #[test]
    fn who_waits_tries_again_under_another_view() {
        for wait in [Wait::Room, Wait::Others, Wait::Owner] {
            let mut mend = mend();
            (mend.asked, mend.waits_for) = (1, wait);
            mend.adopt(Rules::all(), &view([0, 1, 2]));
            assert!(mend.wants_more() && mend.sources.is_empty(), "{wait:?}");
        }
    }

    #[test]
    fn what_was_said_under_an_older_view_does_not_count() {
        let mut mend = mend();
        mend.miss(Rules::all(), host(2), &missing(&mend, 2, 4), ViewVersion(5));
        assert!(!mend.missing[&(2, host(2))]);
    }

    #[cfg(feature = "planted-bugs")]
    #[test]
    fn without_the_rule_what_was_said_before_the_fill_makes_a_chunk_unsolvable() {
        // Under view 4 role 2 had not got it yet; it was put there under view 5, after that was said.
        let unsolvable = |rules| {
            let mut mend = mend();
            mend.miss(rules, host(1), &missing(&mend, 1, 5), ViewVersion(5));
            mend.sources = smallvec![(2, host(2))];
            mend.miss(rules, host(2), &missing(&mend, 2, 4), ViewVersion(5));
            mend.missing.values().all(|counts| *counts)
        };
        assert!(!unsolvable(Rules::all()));
        assert!(unsolvable(Rules::without(crate::Bug::LackedUnderOldView)));
    }
}
