//! What travels about coding graphs.

use wire::graph::*;
use wire::object::Checked;

use super::{Gen, Sample};

newtypes!(Asker);

structs! {
    Run { asker, number }
    Seats { from, to }
    Start { run, group, view, deadline_us, slice_len, window, class, execution, strand, steps, edges }
    Part { chunk, offset, len }
    Edge { from, to }
    Cancel { run }
    Probe { run }
}

choices! {
    GraphMessage {
        0 Start { 0 } 1 Slice { 0 } 2 Credit { 0 } 3 AskCredit { 0 } 4 Cancel { 0 } 5 Probe { 0 } 6 Report { 0 }
        7 SlowLinks { 0 }
    }
    Seat { 0 Node {} 1 Asker {} }
    Class { 0 Reader {} 1 Repair {} }
    Execution { 0 Coherent {} 1 Incoherent {} }
    Port { 0 Chunk { 0 } 1 Stream { 0 } }
    News { 0 Done {} 1 Failed { 0 } 2 Progress { 0 } }
    Why {
        0 NoRoom {} 1 Again {} 2 UnknownNode {} 3 Missing { role, view } 4 Rotten { role } 5 BadSlice { edge } 6 Cut { edge }
        7 Deadline {} 8 NotKept {}
    }
    Wait { 0 Nothing {} 1 Slice { 0 } 2 Credit { 0 } }
}

/// Each node once.
impl Sample for SlowLinks {
    fn sample(from: &mut Gen) -> Self {
        let mut slow: Vec<SlowLink> = from.of();
        slow.sort_by_key(|link| link.from);
        slow.dedup_by_key(|link| link.from);
        Self { slow }
    }
}

impl Sample for SlowLink {
    fn sample(from: &mut Gen) -> Self {
        Self { from: from.of(), half_doublings: 1 + from.below(u64::from(MAX_HALF_DOUBLINGS)) as u8 }
    }
}

/// A matrix of outputs by inputs.
impl Sample for Step {
    fn sample(from: &mut Gen) -> Self {
        let (inputs, outputs): (Vec<Port>, Vec<Port>) = (from.of(), from.of());
        let matrix = from.bytes(inputs.len() * outputs.len()).into();
        Self { at: from.of(), start: from.of(), len: from.of(), inputs, outputs, matrix }
    }
}

/// Brings a number within a bound.
fn below(number: &mut u32, bound: u32) {
    *number %= bound;
}

fn edge(number: &mut u32) {
    below(number, MAX_EDGES as u32);
}

impl Sample for Slice {
    fn sample(from: &mut Gen) -> Self {
        let (run, seats, mut edge_of, mut index, mut slice): (_, _, _, _, Checked) =
            (from.of(), from.of(), from.of(), from.of(), from.of());
        edge(&mut edge_of);
        below(&mut index, MAX_SLICES);
        if slice.bytes.is_empty() {
            slice = Checked::new(from.bytes(1).into());
        }
        Self { run, seats, edge: edge_of, index, slice }
    }
}

impl Sample for Credit {
    fn sample(from: &mut Gen) -> Self {
        let mut credit = Self { run: from.of(), seats: from.of(), edge: from.of(), below: from.of() };
        edge(&mut credit.edge);
        below(&mut credit.below, MAX_SLICES);
        credit.below += 1;
        credit
    }
}

impl Sample for AskCredit {
    fn sample(from: &mut Gen) -> Self {
        let mut ask = Self { run: from.of(), seats: from.of(), edge: from.of() };
        edge(&mut ask.edge);
        ask
    }
}

impl Sample for Report {
    fn sample(from: &mut Gen) -> Self {
        let mut report = Self { run: from.of(), news: from.of() };
        if let News::Failed(Why::BadSlice { edge: of } | Why::Cut { edge: of }) = &mut report.news {
            edge(of);
        }
        report
    }
}

impl Sample for Progress {
    fn sample(from: &mut Gen) -> Self {
        let mut progress = Self { step: from.of(), done: from.of(), wait: from.of() };
        below(&mut progress.step, MAX_STEPS as u32);
        below(&mut progress.done, MAX_SLICES + 1);
        if let Wait::Slice(of) | Wait::Credit(of) = &mut progress.wait {
            edge(of);
        }
        progress
    }
}
