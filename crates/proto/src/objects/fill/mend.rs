//! One chunk that is got: copied from another holder of its role, or made of `k` chunks of other roles, row by row. A whole copy is got
//! part by part, as long as a chunk of the code each; and a part of it is what there is to copy for other data roles.
//!
//! What is made is kept only if its checksum is the one that the writer has named to everybody: a chunk that was made of wrong ones
//! must not pass for right.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cluster::Protection;
use codec::Coder;
use smallvec::{SmallVec, smallvec};
use store::{ChunkBuilder, ChunkHeader, ChunkPages, ChunkStore, Inserted};
use types::{CellAt, ChunkId, HostId, MemberId, RoleIndex, Stripe, Time, ViewVersion};
use wire::object::{Asked, Cell, Fetch, ListedChunk, Missing, ObjectMessage};

use super::bring::bring;
use crate::Rules;
use crate::objects::scope::Scope;

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
    /// Cells of the chunk that are not complete yet, each of one of every source.
    rows: BTreeMap<u32, SmallVec<[Option<Bytes>; 8]>>,
    /// Who does not have it, and whether that was said under this view.
    missing: BTreeMap<(usize, HostId), bool>,
    asked_at: Time,
    unsolvable: bool,
    /// There was no memory for it: it is tried again later.
    no_room: bool,
}

/// Cells of a chunk that are a chunk of the code.
#[derive(Clone, Copy, Default)]
struct Part {
    /// Of which role of the code.
    role: usize,
    /// Cells of the chunk before it.
    base: u32,
    /// Cells that its source keeps before it; 0 where there are several.
    first: u32,
    /// Whether the cells of its source are those that are wanted.
    is_there: bool,
}

/// How far it is.
pub(super) enum State {
    Waiting,
    Whole,
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
            rows: BTreeMap::new(),
            missing: BTreeMap::new(),
            asked_at: Time(0),
            unsolvable: false,
            no_room: false,
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

    pub(super) fn asked_at(&self) -> Time {
        self.asked_at
    }

    /// Whether there was no memory for it.
    pub(super) fn lacks_room(&self) -> bool {
        self.no_room
    }

    /// Whether everybody has said that it cannot be made.
    pub(super) fn is_unsolvable(&self) -> bool {
        self.unsolvable
    }

    /// Others may have it by now.
    pub(super) fn reconsider(&mut self) {
        self.missing.clear();
        self.begin_anew();
    }

    /// Whoever was asked has said nothing for long, which is no answer: all are asked anew.
    pub(super) fn ask_again(&mut self, rules: Rules) {
        if !rules.objects().silence_is_lacking() {
            return self.reconsider();
        }
        let next = self.rows.get(&self.builder.rows_there());
        let is_silent = |at: &usize| next.is_none_or(|cells| cells[*at].is_none());
        let silent: Vec<usize> = (0..self.sources.len()).filter(is_silent).collect();
        self.missing.extend(silent.into_iter().map(|at| (self.sources[at], true)));
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.sources.clear();
        self.rows.clear();
        let cells = self.stripe.cells_of(self.member.role.0);
        self.builder = ChunkBuilder::new(&self.pages, self.stripe.cell_len, cells);
        (self.unsolvable, self.no_room) = (false, false);
    }

    /// Asks whom it has not asked.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, number: u64) -> State {
        if self.builder.rows_there() == self.builder.rows() {
            return State::Whole;
        }
        if self.no_room || !self.sources.is_empty() {
            return State::Waiting;
        }
        // What there is no room for is not sent for: it is tried again later.
        self.no_room = self.pages.room() + (self.builder.allocated_bytes() as u64) < self.len_bytes();
        if self.no_room {
            self.asked_at = scope.now.time;
            return State::Waiting;
        }
        match self.choose(scope) {
            Some((part, sources)) => {
                (self.part, self.sources) = (part, sources);
                self.asked_at = scope.now.time;
                self.fetch(scope, number);
                State::Waiting
            }
            None => self.judge(scope),
        }
    }

    /// The next part, and whom it can be made of, by what is known of who has it.
    fn choose(&self, scope: &Scope<'_>) -> Option<(Part, Sources)> {
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
        let one = |first, source| Some((Part { role, base, first, is_there: true }, smallvec![source]));
        if let Some(same) = of(&own) {
            return one(base, same);
        }
        if let Some(chunk) = of(&role) {
            return one(0, chunk);
        }
        if let Some(copy) = of(&0).filter(|_| stripe.has_copy(0) && role < usize::from(stripe.k)) {
            return one(stripe.cell_in_copy(CellAt { row: 0, role: role as u8 }), copy);
        }
        let present: Vec<usize> = all.iter().map(|(role, _)| *role).collect();
        let plan = self.protection.code().plan(&distinct(present), &[role]).ok()?;
        let part = Part { role, base, first: 0, is_there: false };
        Some((part, plan.sources().iter().map(of).collect::<Option<_>>()?))
    }

    fn fetch(&self, scope: &mut Scope<'_>, number: u64) {
        for (role, host) in &self.sources {
            let member = MemberId { group: self.member.group, role: RoleIndex(*role as u8) };
            let (chunk, first, count) = (self.listed.chunk, self.part.first, self.stripe.rows);
            scope.send(*host, ObjectMessage::Fetch(Fetch { number, member, chunk, first, count }));
        }
    }

    /// It cannot be made: for good only if everybody has said so under this view.
    fn judge(&mut self, scope: &Scope<'_>) -> State {
        // The owner was asked already, and cannot say yet: it is asked again when all others have been.
        if self.unsolvable {
            return State::Waiting;
        }
        self.asked_at = scope.now.time;
        self.unsolvable = self.missing.values().all(|counts| *counts);
        if !self.unsolvable {
            return State::Waiting;
        }
        let ListedChunk { chunk, key_hash, .. } = self.listed;
        State::Unsolvable(Asked { object: chunk.object, key_hash })
    }

    /// A cell of a source.
    pub(super) fn take(&mut self, scope: &Scope<'_>, cell: Cell) {
        let role = usize::from(cell.member.role.0);
        let Some(at) = self.sources.iter().position(|(source, _)| *source == role) else { return };
        let Part { base, first, .. } = self.part;
        let row = cell.row.wrapping_sub(first);
        let is_right = cell.chunk == self.listed.chunk
            && cell.cell.bytes.len() == self.stripe.cell_len as usize
            && row < self.stripe.rows
            && base + row >= self.builder.rows_there()
            && cell.cell.is_right();
        if !is_right {
            return;
        }
        self.asked_at = scope.now.time;
        let count = self.sources.len();
        let cells = self.rows.entry(base + row).or_insert_with(|| smallvec![None; count]);
        cells[at] = Some(cell.cell.bytes);
        while let Some(made) = self.next_row(scope.coder()) {
            if self.builder.push(&made).is_err() {
                self.begin_anew();
                return self.no_room = true;
            }
        }
        if self.builder.rows_there() == base + self.stripe.rows {
            // The next part may be made of others.
            self.sources.clear();
            self.rows.clear();
        }
    }

    /// The next row of the chunk, if all that it is made of has come.
    fn next_row(&mut self, coder: &Coder) -> Option<Bytes> {
        let row = self.builder.rows_there();
        let is_complete = self.rows.get(&row)?.iter().all(Option::is_some);
        if !is_complete {
            return None;
        }
        let cells: SmallVec<[Bytes; 8]> = self.rows.remove(&row)?.into_iter().flatten().collect();
        let roles: Vec<usize> = self.sources.iter().map(|(role, _)| *role).collect();
        if self.part.is_there {
            return cells.into_iter().next();
        }
        let wanted = self.part.role;
        let plan = self.protection.code().plan(&roles, &[wanted]).ok()?;
        let of = |role: &usize| roles.iter().position(|known| known == role).map(|at| &cells[at][..]);
        let sources: SmallVec<[&[u8]; 16]> = plan.sources().iter().filter_map(of).collect();
        let mut made = vec![0; self.stripe.cell_len as usize];
        coder.reconstruct(&plan, &sources, &mut [&mut made]).ok()?;
        Some(made.into())
    }

    /// `from` has not got it. It counts if it was said under the view of `since` or a later one. During a move two hosts hold a role:
    /// what the one says, perhaps late, must not be taken for the other's answer.
    pub(super) fn miss(&mut self, rules: Rules, from: HostId, missing: &Missing, since: ViewVersion) {
        let source = (usize::from(missing.member.role.0), from);
        if self.sources.contains(&source) {
            self.missing.insert(source, rules.objects().is_lacking(missing.view, since));
            self.begin_anew();
        }
    }

    /// What was asked of `peer` will not come.
    pub(super) fn lose(&mut self, peer: HostId) {
        if let Some(source) = self.sources.iter().find(|(_, host)| *host == peer).copied() {
            self.missing.insert(source, false);
            self.begin_anew();
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

fn distinct(mut roles: Vec<usize>) -> Vec<usize> {
    roles.sort_unstable();
    roles.dedup();
    roles
}

#[cfg(test)]
mod tests {
    use store::Budget;
    use types::{Geometry, GroupId, Incarnation, KeyHash, NamespaceId, NodeId, ObjectId, ObjectLayout, Term};

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
        let mut mend = Mend::new(member(0), listed, protection, &pages).unwrap();
        mend.sources = smallvec![(1, host(1)), (2, host(2))];
        mend
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
