//! What lies in one lost chunk, made for a reader by a coding graph: others add up what they have on the way, and little comes in here.
//!
//! An order is for rows that follow each other in the chunk. Whatever becomes of it, the rows go on: by what was made, or cell by cell.
//! Nobody knows a checksum of a part of a chunk: what is made is right for every source was compared with its own, and every slice.

use bytes::Bytes;
use graph::Part;
use types::{ChunkId, RoleIndex};

use super::row::{Place, Row};
use super::{Gather, Gathers, Progress};
use crate::objects::names::GatherId;
use crate::objects::order::{Made, Order, Purpose, Whose};
use crate::objects::scope::Scope;

/// An order is for no more than this part of what is kept for readers' graphs: for several at once, and for what flows.
const SHARE: u64 = 8;

impl Gathers {
    /// Rows of a read may be left to graphs now.
    pub(super) fn note_lacking(&mut self, id: GatherId) {
        let lacks = |gather: &Gather| gather.rows.iter().any(|row| row.lost().is_some());
        if self.all.get(&id).is_some_and(lacks) {
            self.lacking.insert(id);
        }
    }

    /// Whether some read waits to be told whether a graph makes what it lacks.
    pub(in crate::objects) fn has_lost_cells(&self) -> bool {
        !self.lacking.is_empty()
    }

    /// The next part of a lost chunk that is to be made. If nothing more `may` be, the reader goes on without; so it does with what is too long.
    /// None if no read lacks anything.
    pub(in crate::objects) fn next_order(
        &mut self,
        scope: &mut Scope<'_>,
        may: bool,
    ) -> Option<(Option<Order>, Progress)> {
        let id = self.lacking.pop_first()?;
        let most = scope.limits().graph_reader_bytes / SHARE;
        let Some(gather) = self.all.get_mut(&id) else { return Some((None, Progress::default())) };
        let order = may.then(|| gather.take_order(id, self.orders + 1, most)).flatten();
        if order.is_some() {
            self.orders += 1;
            self.note_lacking(id);
            return Some((order, Progress::default()));
        }
        gather.go_without_graphs(|row| row.lost().is_some());
        Some((None, self.go_on(scope, id)))
    }

    /// Whether a read waits for what this order makes.
    pub(in crate::objects) fn awaits(&self, id: GatherId, order: u64) -> bool {
        self.all.get(&id).is_some_and(|gather| gather.rows.iter().any(|row| is_of(row, order)))
    }

    /// An order has ended: [`Self::hear_made`] tells the reader.
    pub(in crate::objects) fn keep_made(&mut self, id: GatherId, made: Made) {
        self.made.push_back((id, made));
    }

    /// A reader hears what has become of an order; none if none has ended.
    pub(in crate::objects) fn hear_made(&mut self, scope: &mut Scope<'_>) -> Option<Progress> {
        let (id, made) = self.made.pop_front()?;
        let order = made.purpose.number;
        if let Some(gather) = self.all.get_mut(&id) {
            match made.bytes.and_then(|bytes| bytes.into_values().next()) {
                Some(bytes) => gather.take_made(order, &bytes),
                None if scope.rules().graphs().readers_go_on_without() => {
                    gather.go_without_graphs(|row| is_of(row, order));
                }
                None => {}
            }
        }
        Some(self.go_on(scope, id))
    }
}

impl Gather {
    /// The first lost rows that follow each other in a chunk, if one of them is not too long.
    fn take_order(&mut self, id: GatherId, number: u64, most_bytes: u64) -> Option<Order> {
        let first = self.rows.iter().position(|row| row.lost().is_some())?;
        let (stripe, group, cell) =
            (self.rows[first].stripe(), self.rows[first].group(), self.rows[first].lost()?);
        let mut rows = 0;
        for row in self.rows.iter_mut().skip(first) {
            let follows = row.stripe().index == stripe.index
                && row.lost().is_some_and(|it| it.role == cell.role && it.row == cell.row + rows);
            if !follows || u64::from(rows + 1) * u64::from(stripe.cell_len) > most_bytes {
                break;
            }
            row.leave_to(Place { order: number, start: (rows * stripe.cell_len) as usize });
            rows += 1;
        }
        let chunk = ChunkId { object: self.descriptor.id, stripe: stripe.index };
        let part = Part { chunk, offset: cell.row * stripe.cell_len, len: rows * stripe.cell_len };
        (rows > 0).then(|| Order {
            purpose: Purpose { whose: Whose::Reader(id), number },
            group,
            wanted: vec![RoleIndex(cell.role)],
            strand: vec![part],
            sums: Vec::new(),
        })
    }

    /// Deals what was made to the rows that it is for.
    fn take_made(&mut self, order: u64, bytes: &Bytes) {
        self.rows.iter_mut().for_each(|row| row.take_made(order, bytes));
    }

    fn go_without_graphs(&mut self, is_meant: impl Fn(&Row) -> bool) {
        let code = self.protection.code();
        self.rows.iter_mut().filter(|row| is_meant(row)).for_each(|row| row.go_without_graph(code));
    }
}

fn is_of(row: &Row, order: u64) -> bool {
    row.place().is_some_and(|place| place.order == order)
}
