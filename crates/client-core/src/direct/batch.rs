//! Rows of a stripe that are asked for together: where the cells of each role stand, and who else is asked when one does not come.
//!
//! Of a row no more cells are wanted than have bytes that are read. What is lost of it is made here of as few others as the code allows, or, where
//! that would take more than one in its place, by a coding graph whose end a node is: that sends the bytes that are wanted, and no others.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use codec::Code;
use types::{CellAt, GroupId, Hedging, Stripe, Time};

use super::means::{LostBy, Means};
use super::stripe::mend;

/// Whoever is not heard for so many times what is slow is taken for silent.
const SILENT: u64 = 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Batch {
    pub number: u64,
    pub stripe: Stripe,
    /// The first row that has not been given out, and how many have been.
    pub first: u32,
    pub given: u32,
    pub group: GroupId,
    /// The data roles whose cells are wanted.
    roles: Range<usize>,
    /// By roles.
    sources: Vec<Source>,
    /// By rows that have not been given out, then roles.
    cells: Vec<Vec<Option<Bytes>>>,
    /// What a node has had made of cells of the only row: of each role no more than the bytes that are wanted.
    made: BTreeMap<usize, Bytes>,
    /// Whether a graph may make what is lost.
    by_graph: bool,
    asked_at: Time,
    /// How often it was looked at because it was late.
    turns: u32,
    /// Whether it is known how long it took.
    is_noted: bool,
}

/// Where the cells of a role stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Idle,
    Wanted,
    Asked,
    Here,
    /// It did not come, and a graph is to make what is wanted of it.
    Lost,
    Making,
    Made,
    Failed,
}

/// What a batch is of.
pub(super) struct Rows {
    pub stripe: Stripe,
    pub first: u32,
    pub count: u32,
    pub roles: Range<usize>,
}

impl Batch {
    pub(super) fn new((number, group): (u64, GroupId), rows: Rows, code: &Code, means: Means) -> Self {
        let Rows { stripe, first, count, roles } = rows;
        let mut sources = vec![Source::Idle; code.n()];
        sources[roles.clone()].fill(Source::Wanted);
        let cells = vec![vec![None; code.n()]; count as usize];
        let by_graph = means.lost_by == LostBy::Graph && count == 1;
        let (made, asked_at) = (BTreeMap::new(), means.now);
        let (given, turns, is_noted) = (0, 0, false);
        Self {
            number,
            stripe,
            first,
            given,
            group,
            roles,
            sources,
            cells,
            made,
            by_graph,
            asked_at,
            turns,
            is_noted,
        }
    }

    /// Bytes that it holds, or will.
    pub(super) fn len_bytes(&self) -> u64 {
        (self.cells.len() * self.roles.len()) as u64 * u64::from(self.stripe.cell_len)
    }

    /// All of its rows.
    pub(super) fn rows(&self) -> (u32, u32) {
        (self.first - self.given, self.given + self.cells.len() as u32)
    }

    /// Which row of the stripe the cell `row` of its first role is in, if it has not been given out.
    pub(super) fn row_at(&self, row: u32) -> Option<u32> {
        let row = row.checked_sub(self.given)?;
        self.cells.get(row as usize).map(|_| self.first + row)
    }

    /// A cell has come.
    pub(super) fn take(&mut self, role: u8, row: u32, bytes: Bytes) {
        // Of a row that has been given out nothing is wanted any more.
        let Some(row) = row.checked_sub(self.given) else { return };
        let place = self.cells.get_mut(row as usize).and_then(|row| row.get_mut(usize::from(role)));
        if let Some(place) = place.filter(|_| bytes.len() == self.stripe.cell_len as usize) {
            *place = Some(bytes);
        }
    }

    /// No more comes of a role.
    pub(super) fn has_come(&mut self, code: &Code, role: usize) {
        if self.cells.iter().all(|row| row[role].is_some()) {
            self.sources[role] = Source::Here;
        } else {
            self.fail(code, role);
        }
    }

    /// What is wanted of a lost cell has been made.
    pub(super) fn take_made(&mut self, role: usize, bytes: Bytes) {
        if self.sources.get(role) == Some(&Source::Making) && !self.cells.is_empty() {
            self.sources[role] = Source::Made;
            self.made.insert(role, bytes);
        }
    }

    /// It is not: others are asked, as if nobody made graphs.
    pub(super) fn is_not_made(&mut self, code: &Code, role: usize) {
        if self.sources.get(role) == Some(&Source::Making) {
            self.by_graph = false;
            self.fail(code, role);
        }
    }

    /// A role's cells do not come: a graph makes them, or as few others are asked as it takes beside those that are here or may yet come, or
    /// all if that is not enough.
    pub(super) fn fail(&mut self, code: &Code, role: usize) {
        self.sources[role] = Source::Failed;
        let comes = |source: Source| matches!(source, Source::Here | Source::Asked | Source::Wanted);
        let more = self.helpers(code, comes);
        let costs_more = more.as_ref().is_none_or(|more| more.len() > 1);
        let has_bytes = self.roles.contains(&role) && place_of(self.stripe, self.first, role).1 > 0;
        if self.by_graph && costs_more && has_bytes {
            self.sources[role] = Source::Lost;
            return;
        }
        match more {
            Some(more) => more.into_iter().for_each(|role| self.sources[role] = Source::Wanted),
            None => self.want_all(),
        }
    }

    /// The fewest that are to be asked besides so that what is wanted can be made, of them and of what `is_there`; none if it cannot.
    fn helpers(&self, code: &Code, is_there: impl Fn(Source) -> bool) -> Option<Vec<usize>> {
        let cost = |source: Source| match source {
            source if is_there(source) => Some(0),
            Source::Idle => Some(1),
            _ => None,
        };
        let all = self.sources.iter().enumerate();
        let available: Vec<(usize, u32)> =
            all.filter_map(|(role, source)| Some((role, cost(*source)?))).collect();
        let is_left_to_graphs =
            |source: Source| matches!(source, Source::Lost | Source::Making | Source::Made);
        let is_missing = |role: &usize| {
            let source = self.sources[*role];
            !is_there(source) && !is_left_to_graphs(source)
        };
        let wanted: Vec<usize> = self.roles.clone().filter(is_missing).collect();
        let reads = code.cheapest_reads(&available, &wanted).ok()?;
        Some(reads.into_iter().filter(|role| self.sources[*role] == Source::Idle).collect())
    }

    fn want_all(&mut self) {
        let idle = self.sources.iter_mut().filter(|source| **source == Source::Idle);
        idle.for_each(|source| *source = Source::Wanted);
    }

    /// The next role that is to be asked for its cells: it counts as asked from now on.
    pub(super) fn next_wanted(&mut self, now: Time) -> Option<usize> {
        self.next_of(Source::Wanted, Source::Asked, now)
    }

    /// The next one of which a node is to have made what is wanted.
    pub(super) fn next_lost(&mut self, now: Time) -> Option<usize> {
        self.next_of(Source::Lost, Source::Making, now)
    }

    fn next_of(&mut self, before: Source, after: Source, now: Time) -> Option<usize> {
        let role = self.sources.iter().position(|source| *source == before)?;
        (self.sources[role], self.asked_at) = (after, now);
        Some(role)
    }

    /// It is late: first as few others are asked as make what is missing, if they `may` be, then all of them. Whether there is anybody left
    /// from whom something may come.
    pub(super) fn is_late(&mut self, code: &Code, hedging: &mut Hedging) -> bool {
        self.turns += 1;
        match self.turns {
            // Graphs take longer than to ask for cells, and whoever asked for these besides would not have needed one.
            1 if self.sources.contains(&Source::Making) => {}
            1 => {
                let more = self.helpers(code, |source| source == Source::Here).unwrap_or_default();
                let cells = more.len() * self.cells.len();
                if hedging.take(cells, self.stripe.cell_len) {
                    more.into_iter().for_each(|role| self.sources[role] = Source::Wanted);
                }
            }
            2 => self.fail_silent(),
            _ => return false,
        }
        true
    }

    fn fail_silent(&mut self) {
        let is_silent =
            |source: &&mut Source| matches!(source, Source::Asked | Source::Making | Source::Lost);
        self.sources.iter_mut().filter(is_silent).for_each(|source| *source = Source::Failed);
        self.by_graph = false;
        self.want_all();
    }

    pub(super) fn is_here(&self) -> bool {
        self.sources[self.roles.clone()].iter().all(|source| matches!(source, Source::Here | Source::Made))
    }

    pub(super) fn due(&self, means: Means, hedging: &Hedging) -> Time {
        let most_us = means.hedge_us;
        self.asked_at + if self.turns == 0 { hedging.patience_us(most_us) } else { most_us * SILENT }
    }

    /// For how long it is waited for, in microseconds.
    pub(super) fn silent_us(means: Means) -> u64 {
        means.hedge_us * SILENT
    }

    /// How long it took to come, once, when all of its rows can be made of what has come.
    pub(super) fn note_enough(&mut self, code: &Code, now: Time) -> Option<u64> {
        if self.is_noted || !self.cells.iter().all(|row| self.has_enough(code, row)) {
            return None;
        }
        self.is_noted = true;
        Some(now.since(self.asked_at))
    }

    fn has_enough(&self, code: &Code, row: &[Option<Bytes>]) -> bool {
        self.has_all(row) || row.iter().flatten().count() >= code.k()
    }

    /// Whether all that is wanted of a row is here.
    fn has_all(&self, row: &[Option<Bytes>]) -> bool {
        self.roles.clone().all(|role| row[role].is_some() || self.made.contains_key(&role))
    }

    /// Whether so many do not have it that the rest cannot make it.
    pub(super) fn is_lost(&self, code: &Code) -> bool {
        let is_there =
            |source: Source| !matches!(source, Source::Failed | Source::Lost | Source::Making | Source::Made);
        let left: Vec<usize> = (0..code.n()).filter(|role| is_there(self.sources[*role])).collect();
        let gone: Vec<usize> =
            self.roles.clone().filter(|role| self.sources[*role] == Source::Failed).collect();
        !gone.is_empty() && code.plan(&left, &gone).is_err()
    }

    /// Whether all rows have been given out.
    pub(super) fn is_over(&self) -> bool {
        self.cells.is_empty()
    }

    /// Makes what is missing of the next row of what is here, if that is enough; whether anything was made. None if it is not.
    pub(super) fn mend_row(&mut self, code: &Code) -> Option<bool> {
        let row = self.cells.first()?;
        if self.has_all(row) {
            return Some(false);
        }
        // What nobody is asked for any more will not be more.
        let comes = |source: &Source| matches!(source, Source::Wanted | Source::Asked);
        if row.iter().flatten().count() < code.k() && self.sources.iter().any(comes) {
            return None;
        }
        let missing = |role: &usize| row[*role].is_none() && !self.made.contains_key(role);
        let wanted: Vec<usize> = self.roles.clone().filter(missing).collect();
        mend(code, self.cells.first_mut()?, &wanted)
    }

    /// The cells of the next row that are wanted, with which byte of the value each begins, and how many of its bytes are the value's. Of what was made
    /// there are only the bytes that are wanted.
    pub(super) fn give_row(&mut self) -> Vec<Given> {
        if self.cells.is_empty() {
            return Vec::new();
        }
        let mut row = self.cells.remove(0);
        let index = self.first;
        self.first += 1;
        self.given += 1;
        let given = self.roles.clone().map(|role| {
            let (from, filled) = place_of(self.stripe, index, role);
            match row[role].take() {
                Some(cell) => Given { from, filled, bytes: cell, is_cut: false },
                None => {
                    Given { from, filled, bytes: self.made.remove(&role).unwrap_or_default(), is_cut: true }
                }
            }
        });
        given.collect()
    }
}

/// What is given out of a cell.
pub(super) struct Given {
    /// With which byte of the value the cell begins.
    pub from: u64,
    /// How many of its bytes are the value's.
    pub filled: u64,
    pub bytes: Bytes,
    /// Whether these are the wanted bytes alone.
    pub is_cut: bool,
}

/// With which byte of the value the cell of a data role in a row begins, and how many bytes of the value are in it.
pub(super) fn place_of(stripe: Stripe, row: u32, role: usize) -> (u64, u64) {
    let filled = |role: usize| u64::from(stripe.filled(CellAt { row, role: role as u8 }));
    let from = stripe.start + u64::from(row) * stripe.row_len() + (0..role).map(filled).sum::<u64>();
    (from, filled(role))
}

/// The data roles whose cells in a row have bytes of the value from `start` to `end`. Behind its last byte there are none to be told apart.
pub(super) fn roles_of(stripe: Stripe, row: u32, (start, end): (u64, u64), value_len: u64) -> Range<usize> {
    let all = 0..usize::from(stripe.k);
    let places = || all.clone().map(|role| place_of(stripe, row, role));
    let first = places().take_while(|(from, filled)| from + filled <= start).count();
    let last = if end >= value_len { all.end } else { places().take_while(|(from, _)| *from < end).count() };
    first.min(all.end - 1)..last.max(first + 1).min(all.end)
}
