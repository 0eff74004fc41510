//! One run of a read, cells of one row: as they come, and who else is asked where one does not.

use bytes::Bytes;
use codec::{Code, Coder};
use smallvec::{SmallVec, smallvec};
use types::{CellAt, GroupId, GroupView, Holder, HostId, RoleIndex, Run, Stripe, Time};
use wire::object::Missing;

/// See the module.
pub(super) struct Row {
    stripe: Stripe,
    run: Run,
    group: GroupId,
    cells: SmallVec<[Source; 8]>,
    wanted_at: Time,
    asked_at: Time,
    /// Whether who keeps a copy is asked, and not those who keep the cells of the run.
    by_copy: bool,
    /// Whether others than those of the run are asked.
    degraded: bool,
    /// Whether it was slow.
    hedged: bool,
    /// Whether a graph may make what is lost.
    by_graph: bool,
}

/// What is to be asked of whom.
pub(super) struct Wanted {
    pub role: RoleIndex,
    pub host: HostId,
    /// Which one of those that it keeps.
    pub cell: u32,
}

/// Where the cell of one role stands.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Idle,
    Wanted,
    /// Of whom: what anybody else says of it is no answer.
    Asked(Holder),
    Here(Bytes),
    /// It did not come, and a graph may make it.
    Lost(Answer),
    /// It did not come, and is being made.
    Making(Place, Answer),
    /// It did not come.
    Failed(Answer),
}

/// Where in what a graph makes a cell is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the order.
    pub order: u64,
    /// Bytes before it.
    pub start: usize,
}

/// Why a cell does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Who should have it has not; under another view that may be another one.
    Missing(Holder),
    /// Who was asked may still get it, or knows of another view.
    NotWhole,
    /// Nobody holds this role's chunks.
    NoHolder,
    /// Nothing was heard.
    Silent,
}

impl Row {
    /// A run whose cells are wanted.
    pub(super) fn new(
        stripe: Stripe,
        run: Run,
        group: GroupId,
        code: &Code,
        now: Time,
        by_graph: bool,
    ) -> Self {
        let mut cells: SmallVec<[Source; 8]> = smallvec![Source::Idle; code.n()];
        cells[run.roles()].fill(Source::Wanted);
        let (wanted_at, asked_at, degraded, hedged) = (now, now, false, false);
        // Of what the first role keeps the copy is all there is.
        let by_copy = stripe.has_copy(0) && run.first != 0;
        // Who wants more of a row needs most of the others anyway.
        let by_graph = by_graph && run.count == 1;
        Self { stripe, run, group, cells, wanted_at, asked_at, by_copy, degraded, hedged, by_graph }
    }

    pub(super) fn stripe(&self) -> Stripe {
        self.stripe
    }

    pub(super) fn index(&self) -> u32 {
        self.run.row
    }

    pub(super) fn group(&self) -> GroupId {
        self.group
    }

    /// Bytes of the value before it.
    pub(super) fn start(&self) -> u64 {
        self.stripe.start + self.stripe.offset(self.run.start())
    }

    /// Bytes of its cells.
    pub(super) fn len_bytes(&self) -> usize {
        usize::from(self.run.count) * self.stripe.cell_len as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let here = |source: &&Source| matches!(source, Source::Here(_));
        self.cells.iter().filter(here).count() * self.stripe.cell_len as usize
    }

    /// Since when it is wanted.
    pub(super) fn wanted_at(&self) -> Time {
        self.wanted_at
    }

    /// When something is to be done because it is not whole: first when it is slow, then when whoever is asked is taken for silent.
    pub(super) fn late_at(&self, slow_us: u64, silent_us: u64) -> Time {
        if self.data().is_some() || self.is_left_to_graphs() {
            return Time::NEVER;
        }
        self.asked_at + if self.hedged { silent_us } else { slow_us.min(silent_us) }
    }

    /// Somebody takes longer than usual: as many others are asked as it takes to make what is missing, if they `may` be.
    pub(super) fn hedge_if_slow(
        &mut self,
        code: &Code,
        now: Time,
        slow_us: u64,
        may: impl FnOnce(usize, u32) -> bool,
    ) {
        if self.hedged
            || self.data().is_some()
            || self.is_left_to_graphs()
            || now.since(self.asked_at) < slow_us
        {
            return;
        }
        (self.hedged, self.by_graph) = (true, false);
        if self.by_copy {
            // One cell, as what is not here yet.
            return if may(1, self.stripe.cell_len) {
                self.leave_copy()
            };
        }
        let more = self.helpers(code, |source| matches!(source, Source::Here(_)));
        if let Some(more) = more.filter(|more| may(more.len(), self.stripe.cell_len)) {
            self.degraded = true;
            self.ask(more);
        }
    }

    /// Who is to be asked for what, once.
    pub(super) fn take_wanted(
        &mut self,
        code: &Code,
        now: Time,
        view: &GroupView,
        is_up: impl Fn(HostId) -> bool,
    ) -> SmallVec<[Wanted; 8]> {
        let mut asked = SmallVec::new();
        while let Some(at) = self.cells.iter().position(|source| *source == Source::Wanted) {
            let cell = CellAt { row: self.run.row, role: at as u8 };
            let (role, cell) =
                if self.by_copy { (0, self.stripe.cell_in_copy(cell)) } else { (cell.role, cell.row) };
            let role = RoleIndex(role);
            match view.holders_of(role).iter().next() {
                Some(holder) if !is_up(holder.host) => self.fail(code, at, Answer::Silent),
                Some(holder) => {
                    self.cells[at] = Source::Asked(holder);
                    asked.push(Wanted { role, host: holder.host, cell });
                }
                None => self.fail(code, at, Answer::NoHolder),
            }
        }
        if !asked.is_empty() {
            self.asked_at = now;
        }
        asked
    }

    /// A cell has come.
    pub(super) fn take(&mut self, role: RoleIndex, bytes: Bytes, code: &Code, coder: &Coder) {
        if bytes.len() != self.stripe.cell_len as usize {
            return;
        }
        // It may have been asked for another run of the row.
        if let Some(source) = self.cells.get_mut(usize::from(role.0)).filter(|cell| **cell != Source::Idle) {
            *source = Source::Here(bytes);
        }
        if self.degraded {
            self.decode(code, coder);
        }
    }

    /// `from` has not got a cell: others are asked. That is final if it is whole for this role under the view that is known here
    /// (`is_known`), and not what it has said as an earlier holder.
    pub(super) fn miss(&mut self, code: &Code, from: HostId, missing: &Missing, is_known: bool) {
        let at = if self.by_copy { self.run.first } else { missing.member.role.0 };
        let at = usize::from(at);
        if let Some(Source::Asked(holder)) = self.cells.get(at)
            && holder.host == from
        {
            let is_final = missing.whole && is_known && missing.view >= holder.since;
            let answer = if is_final { Answer::Missing(*holder) } else { Answer::NotWhole };
            self.fail(code, at, answer);
        }
    }

    /// What was asked of this host will not come.
    pub(super) fn lose(&mut self, code: &Code, host: HostId) {
        for at in 0..self.cells.len() {
            if matches!(&self.cells[at], Source::Asked(holder) if holder.host == host) {
                self.fail(code, at, Answer::Silent);
            }
        }
    }

    /// It takes too long: whoever is silent is asked again, and all others too. Who has it not is asked again as another holder.
    pub(super) fn reconsider(&mut self, now: Time, patience_us: u64, view: Option<&GroupView>) {
        if self.data().is_some() || self.is_left_to_graphs() || now.since(self.asked_at) < patience_us {
            return;
        }
        self.by_graph = false;
        for (role, source) in self.cells.iter_mut().enumerate() {
            let is_named = |holder: &Holder| is_whole(view, role, holder);
            match source {
                Source::Failed(Answer::Missing(holder)) if is_named(holder) => {}
                Source::Asked(_) | Source::Failed(_) => *source = Source::Wanted,
                Source::Idle | Source::Wanted | Source::Here(_) | Source::Lost(_) | Source::Making(..) => {}
            }
        }
        (self.asked_at, self.by_copy) = (now, false);
        self.degraded = true;
        self.ask(self.idle());
    }

    /// Whoever keeps the cells of the run is asked, as if there were no copy.
    fn leave_copy(&mut self) {
        self.by_copy = false;
        self.cells[self.run.roles()].fill(Source::Wanted);
    }

    /// A cell does not come: as few others are asked as it takes beside those that are here or may yet come, or all if that is not enough.
    fn fail(&mut self, code: &Code, at: usize, answer: Answer) {
        if self.by_copy {
            return self.leave_copy();
        }
        if self.by_graph && at == usize::from(self.run.first) {
            return self.cells[at] = Source::Lost(answer);
        }
        self.cells[at] = Source::Failed(answer);
        let comes = |source: &Source| !matches!(source, Source::Idle | Source::Failed(_));
        let more = self.helpers(code, comes).unwrap_or_else(|| self.idle());
        self.degraded = true;
        self.ask(more);
    }

    /// The cell that it is for is lost, and nobody is asked for others: a graph makes it, or may.
    fn is_left_to_graphs(&self) -> bool {
        matches!(self.own(), Source::Lost(_) | Source::Making(..))
    }

    fn own(&self) -> &Source {
        &self.cells[usize::from(self.run.first)]
    }

    /// Which cell of which role a graph may make.
    pub(super) fn lost(&self) -> Option<CellAt> {
        matches!(self.own(), Source::Lost(_)).then_some(CellAt { row: self.run.row, role: self.run.first })
    }

    /// By which order it is being made, and where in it it will be.
    pub(super) fn place(&self) -> Option<Place> {
        match self.own() {
            Source::Making(place, _) => Some(*place),
            _ => None,
        }
    }

    /// An order is to make it.
    pub(super) fn leave_to(&mut self, place: Place) {
        if let Source::Lost(answer) = *self.own() {
            self.cells[usize::from(self.run.first)] = Source::Making(place, answer);
        }
    }

    /// An order has made this.
    pub(super) fn take_made(&mut self, order: u64, made: &Bytes) {
        let Some(place) = self.place().filter(|place| place.order == order) else { return };
        let end = place.start + self.stripe.cell_len as usize;
        if end <= made.len() {
            self.cells[usize::from(self.run.first)] = Source::Here(made.slice(place.start..end));
        }
    }

    /// No graph makes it: cells of others are asked for.
    pub(super) fn go_without_graph(&mut self, code: &Code) {
        if let Source::Lost(answer) | Source::Making(_, answer) = *self.own() {
            self.by_graph = false;
            self.fail(code, usize::from(self.run.first), answer);
        }
    }

    /// Those nobody has asked for.
    fn idle(&self) -> SmallVec<[usize; 8]> {
        (0..self.cells.len()).filter(|role| self.cells[*role] == Source::Idle).collect()
    }

    /// The fewest that are to be asked for besides so that the run can be made, of them and of what `is_there`; none if it cannot.
    fn helpers(&self, code: &Code, is_there: impl Fn(&Source) -> bool) -> Option<SmallVec<[usize; 8]>> {
        let cost = |source: &Source| match source {
            source if is_there(source) => Some(0),
            Source::Idle => Some(1),
            _ => None,
        };
        let all = self.cells.iter().enumerate();
        let available: Vec<(usize, u32)> =
            all.filter_map(|(role, source)| Some((role, cost(source)?))).collect();
        let wanted: Vec<usize> = self.run.roles().filter(|role| !is_there(&self.cells[*role])).collect();
        let reads = code.cheapest_reads(&available, &wanted).ok()?;
        Some(reads.into_iter().filter(|role| self.cells[*role] == Source::Idle).collect())
    }

    fn ask(&mut self, roles: SmallVec<[usize; 8]>) {
        roles.into_iter().for_each(|role| self.cells[role] = Source::Wanted);
    }

    /// Makes the data cells that are missing of those that are here, if they are enough.
    fn decode(&mut self, code: &Code, coder: &Coder) {
        let is_here = |source: &Source| matches!(source, Source::Here(_));
        let roles = 0..self.cells.len();
        let present: Vec<usize> = roles.filter(|role| is_here(&self.cells[*role])).collect();
        let wanted: Vec<usize> = self.run.roles().filter(|role| !present.contains(role)).collect();
        if wanted.is_empty() {
            return;
        }
        let Ok(plan) = code.plan(&present, &wanted) else { return };
        debug_assert_eq!(plan.outputs(), wanted, "what is wanted is made, in this order");
        let bytes_of = |role: &usize| match &self.cells[*role] {
            Source::Here(bytes) => bytes.clone(),
            _ => Bytes::new(),
        };
        let cells: SmallVec<[Bytes; 16]> = plan.sources().iter().map(bytes_of).collect();
        let sources: SmallVec<[&[u8]; 16]> = cells.iter().map(|cell| &cell[..]).collect();
        let mut made = vec![vec![0; self.stripe.cell_len as usize]; wanted.len()];
        let mut outputs: SmallVec<[&mut [u8]; 8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
        coder
            .reconstruct(&plan, &sources, &mut outputs)
            .expect("cells of one length, as many as the plan has");
        drop(outputs);
        for (role, bytes) in wanted.into_iter().zip(made) {
            self.cells[role] = Source::Here(bytes.into());
        }
    }

    /// The cells, if all are here, each with how many bytes of it are the value's.
    pub(super) fn data(&self) -> Option<impl Iterator<Item = (&Bytes, u32)>> {
        let cells = &self.cells[self.run.roles()];
        if !cells.iter().all(|source| matches!(source, Source::Here(_))) {
            return None;
        }
        let cells = cells.iter().zip(self.run.first..).filter_map(|(source, role)| match source {
            Source::Here(bytes) => Some((bytes, self.stripe.filled(CellAt { row: self.run.row, role }))),
            _ => None,
        });
        Some(cells)
    }

    /// Whether under this view so many who should have a cell of it have none that the rest cannot be solved.
    pub(super) fn is_lost(&self, code: &Code, view: Option<&GroupView>) -> bool {
        let is_gone = |role: &usize| match &self.cells[*role] {
            Source::Failed(Answer::Missing(holder)) => is_whole(view, *role, holder),
            Source::Failed(Answer::NoHolder) => {
                view.is_some_and(|view| view.holders_of(RoleIndex(*role as u8)).iter().next().is_none())
            }
            // Whoever is to get it makes it of what those have who are whole.
            Source::Failed(Answer::NotWhole) => {
                view.is_some_and(|view| view.holders_of(RoleIndex(*role as u8)).whole.is_none())
            }
            _ => false,
        };
        let (mut gone, left): (Vec<usize>, Vec<usize>) = (0..self.cells.len()).partition(is_gone);
        gone.retain(|role| self.run.roles().contains(role));
        !gone.is_empty() && code.plan(&left, &gone).is_err()
    }
}

/// Whether the view names this holder as the one that has all chunks of the role.
fn is_whole(view: Option<&GroupView>, role: usize, holder: &Holder) -> bool {
    view.is_some_and(|view| view.holders_of(RoleIndex(role as u8)).whole == Some(*holder))
}

#[cfg(test)]
mod tests {
    use types::{
        DataRole, Geometry, Holders, Incarnation, MemberId, NodeId, ObjectId, ObjectLayout, RoleStatus, Term,
        ViewVersion,
    };

    use super::*;

    const PATIENCE_US: u64 = 1_000;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn holder(node: u16, since: u64) -> Option<Holder> {
        Some(Holder { host: host(node), since: ViewVersion(since) })
    }

    /// Two data roles and a parity, role `r` whole on node `r` since view 1.
    fn view() -> GroupView {
        let data = |node| DataRole {
            primary: Some(host(node)),
            term: Term(1),
            origin: Term(1),
            status: RoleStatus::Full,
        };
        GroupView {
            group: GroupId(0),
            version: ViewVersion(1),
            data: vec![data(0), data(1)],
            parity: vec![Some(host(2))],
            learners: Vec::new(),
            former: Vec::new(),
            holders: (0..3).map(|node| Holders { whole: holder(node, 1), filling: None }).collect(),
        }
    }

    fn code() -> Code {
        Code::rs(2, 1).unwrap()
    }

    /// A row whose data roles were asked at time 0.
    fn asked(view: &GroupView) -> Row {
        let stripe =
            Geometry { len: 1000, chunk_len: 65_536, k: 2, layout: ObjectLayout::Spread }.stripe(0).unwrap();
        let run = stripe.run(0, u64::MAX).unwrap();
        let mut row = Row::new(stripe, run, GroupId(0), &code(), Time(0), false);
        let asked: Vec<u16> =
            row.take_wanted(&code(), Time(0), view, |_| true).iter().map(|it| it.host.node.0).collect();
        assert_eq!(asked, [0, 1]);
        row
    }

    /// That the cell of this role is not there, said by who is whole under this view.
    fn missing(role: u8, view: u64) -> Missing {
        let member = MemberId { group: GroupId(0), role: RoleIndex(role) };
        let (term, namespace) = (Term(1), types::NamespaceId::default());
        let object = ObjectId { owner: member, term, number: 1, salt: 1, namespace };
        let chunk = types::ChunkId { object, stripe: 0 };
        Missing { number: 1, member, chunk, view: ViewVersion(view), whole: true }
    }

    #[test]
    fn what_others_than_the_asked_one_say_is_no_answer() {
        let view = view();
        let mut row = asked(&view);
        row.miss(&code(), host(3), &missing(0, 1), true);
        assert!(row.take_wanted(&code(), Time(1), &view, |_| true).is_empty(), "nobody else is asked for it");
    }

    #[test]
    fn a_row_is_lost_when_too_many_who_are_whole_have_not_got_it() {
        let view = view();
        let mut row = asked(&view);
        row.miss(&code(), host(0), &missing(0, 1), true);
        let wanted = row.take_wanted(&code(), Time(1), &view, |_| true);
        assert_eq!(wanted.iter().map(|it| (it.role, it.host)).collect::<Vec<_>>(), [(RoleIndex(2), host(2))]);
        assert!(!row.is_lost(&code(), Some(&view)));
        row.miss(&code(), host(2), &missing(2, 1), true);
        assert!(row.is_lost(&code(), Some(&view)));
    }

    #[test]
    fn a_row_is_lost_though_others_are_to_get_it_where_too_few_are_whole() {
        let mut view = view();
        view.holders[0] = Holders { whole: None, filling: holder(3, 2) };
        view.holders[2] = Holders { whole: None, filling: holder(4, 2) };
        let stripe =
            Geometry { len: 1000, chunk_len: 65_536, k: 2, layout: ObjectLayout::Spread }.stripe(0).unwrap();
        let run = stripe.run(0, u64::MAX).unwrap();
        let mut row = Row::new(stripe, run, GroupId(0), &code(), Time(0), false);
        row.take_wanted(&code(), Time(0), &view, |_| true);
        let lacks = |role| Missing { whole: false, ..missing(role, 1) };
        row.miss(&code(), host(3), &lacks(0), true);
        row.take_wanted(&code(), Time(1), &view, |_| true);
        assert!(!row.is_lost(&code(), Some(&view)), "the other one has not answered");
        row.miss(&code(), host(4), &lacks(2), true);
        assert!(row.is_lost(&code(), Some(&view)));
        view.holders[2].whole = holder(5, 3);
        assert!(!row.is_lost(&code(), Some(&view)), "somebody has it");
    }

    #[test]
    fn whoever_is_named_after_one_that_has_it_not_is_asked_in_its_place() {
        let mut view = view();
        let mut row = asked(&view);
        row.miss(&code(), host(0), &missing(0, 1), true);
        row.take_wanted(&code(), Time(1), &view, |_| true);
        row.miss(&code(), host(2), &missing(2, 1), true);
        view.holders[0].whole = holder(0, 2);
        assert!(!row.is_lost(&code(), Some(&view)), "the same host, filled anew, is another holder");
        row.reconsider(Time(2 * PATIENCE_US), PATIENCE_US, Some(&view));
        let wanted = row.take_wanted(&code(), Time(2 * PATIENCE_US), &view, |_| true);
        let wanted: Vec<_> = wanted.iter().map(|it| (it.role, it.host)).collect();
        assert!(wanted.contains(&(RoleIndex(0), host(0))) && !wanted.contains(&(RoleIndex(2), host(2))));
        // What it has said before it was that holder says nothing of it.
        row.miss(&code(), host(0), &missing(0, 1), true);
        assert!(!row.is_lost(&code(), Some(&view)));
    }

    #[test]
    fn under_a_view_that_is_not_known_here_nothing_is_lost() {
        let view = view();
        let mut row = asked(&view);
        for role in 0..2 {
            row.miss(&code(), host(role.into()), &missing(role, 2), false);
        }
        assert!(!row.is_lost(&code(), Some(&view)));
    }
}
