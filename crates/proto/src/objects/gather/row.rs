//! One row of a read: its cells as they come, and who else is asked where one does not.

use bytes::Bytes;
use codec::Code;
use smallvec::{SmallVec, smallvec};
use types::{GroupId, RoleIndex, Stripe, Time};

/// See the module.
pub(super) struct Row {
    stripe: Stripe,
    index: u32,
    group: GroupId,
    k: u8,
    cells: SmallVec<[Source; 8]>,
    asked_at: Time,
    /// Whether more than the data roles are asked.
    degraded: bool,
}

/// Where the cell of one role stands.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Idle,
    Wanted,
    Asked,
    Here(Bytes),
    /// It did not come.
    Failed(Answer),
}

/// Why a cell does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Who should have it has not.
    Missing,
    /// Who was asked may still get it.
    NotWhole,
    /// Nobody holds this role's chunks.
    NoHolder,
    /// Nothing was heard.
    Silent,
}

impl Row {
    /// A row whose data cells are wanted.
    pub(super) fn new(stripe: Stripe, index: u32, group: GroupId, code: &Code, now: Time) -> Self {
        let (k, n) = (code.k(), code.n());
        let mut cells: SmallVec<[Source; 8]> = smallvec![Source::Wanted; k];
        cells.resize(n, Source::Idle);
        Self { stripe, index, group, k: k as u8, cells, asked_at: now, degraded: false }
    }

    pub(super) fn stripe(&self) -> Stripe {
        self.stripe
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn group(&self) -> GroupId {
        self.group
    }

    /// Bytes of the value before it.
    pub(super) fn start(&self) -> u64 {
        self.stripe.start + u64::from(self.index) * self.stripe.row_len(self.k)
    }

    /// Bytes of its data cells.
    pub(super) fn len_bytes(&self) -> usize {
        self.stripe.row_len(self.k) as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let here = |source: &&Source| matches!(source, Source::Here(_));
        self.cells.iter().filter(here).count() * self.stripe.cell_len as usize
    }

    pub(super) fn asked_at(&self) -> Time {
        if self.data().is_some() { Time::NEVER } else { self.asked_at }
    }

    /// The roles that are to be asked, once.
    pub(super) fn take_wanted(&mut self, now: Time) -> SmallVec<[u8; 8]> {
        let mut roles = SmallVec::new();
        for (role, source) in self.cells.iter_mut().enumerate() {
            if *source == Source::Wanted {
                *source = Source::Asked;
                roles.push(role as u8);
            }
        }
        if !roles.is_empty() {
            self.asked_at = now;
        }
        roles
    }

    /// A cell has come.
    pub(super) fn take(&mut self, role: RoleIndex, bytes: Bytes, code: &Code) {
        if bytes.len() != self.stripe.cell_len as usize {
            return;
        }
        if let Some(source) = self.cells.get_mut(usize::from(role.0)) {
            *source = Source::Here(bytes);
        }
        if self.degraded {
            self.decode(code);
        }
    }

    /// A cell does not come: all others are asked.
    pub(super) fn note(&mut self, role: RoleIndex, answer: Answer) {
        if let Some(source) = self.cells.get_mut(usize::from(role.0))
            && !matches!(source, Source::Here(_))
        {
            *source = Source::Failed(answer);
            self.degrade();
        }
    }

    /// What was asked of this role will not come.
    pub(super) fn lose(&mut self, role: RoleIndex) {
        if self.cells.get(usize::from(role.0)) == Some(&Source::Asked) {
            self.note(role, Answer::Silent);
        }
    }

    /// It takes too long: whoever is silent is asked again, and all others too.
    pub(super) fn reconsider(&mut self, now: Time, patience_us: u64) {
        if self.data().is_some() || now.since(self.asked_at) < patience_us {
            return;
        }
        for source in &mut self.cells {
            match source {
                Source::Asked | Source::Failed(Answer::Silent | Answer::NotWhole | Answer::NoHolder) => {
                    *source = Source::Wanted;
                }
                Source::Idle | Source::Wanted | Source::Here(_) | Source::Failed(Answer::Missing) => {}
            }
        }
        self.asked_at = now;
        self.degrade();
    }

    fn degrade(&mut self) {
        self.degraded = true;
        self.cells
            .iter_mut()
            .filter(|source| **source == Source::Idle)
            .for_each(|source| *source = Source::Wanted);
    }

    /// Makes the data cells that are missing of those that are here, if they are enough.
    fn decode(&mut self, code: &Code) {
        let is_here = |source: &Source| matches!(source, Source::Here(_));
        let roles = 0..self.cells.len();
        let present: Vec<usize> = roles.filter(|role| is_here(&self.cells[*role])).collect();
        let wanted: Vec<usize> = (0..usize::from(self.k)).filter(|role| !present.contains(role)).collect();
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
        plan.run(&sources, &mut outputs).expect("cells of one length, as many as the plan has");
        drop(outputs);
        for (role, bytes) in wanted.into_iter().zip(made) {
            self.cells[role] = Source::Here(bytes.into());
        }
    }

    /// The data cells, if all are here, each with how many bytes of it are the value's.
    pub(super) fn data(&self) -> Option<impl Iterator<Item = (&Bytes, u32)>> {
        let data = &self.cells[..usize::from(self.k)];
        if !data.iter().all(|source| matches!(source, Source::Here(_))) {
            return None;
        }
        let cells = data.iter().enumerate().filter_map(|(role, source)| match source {
            Source::Here(bytes) => Some((bytes, self.stripe.filled(self.k, self.index, role as u8))),
            _ => None,
        });
        Some(cells)
    }

    /// Whether so many who should have a cell of it have none that the rest cannot be solved.
    pub(super) fn is_lost(&self, code: &Code) -> bool {
        let is_gone =
            |role: &usize| matches!(self.cells[*role], Source::Failed(Answer::Missing | Answer::NoHolder));
        let (mut gone, left): (Vec<usize>, Vec<usize>) = (0..self.cells.len()).partition(is_gone);
        gone.retain(|role| *role < usize::from(self.k));
        !gone.is_empty() && code.plan(&left, &gone).is_err()
    }
}
