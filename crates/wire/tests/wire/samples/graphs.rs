//! What travels about coding graphs.

use wire::graph::*;

use super::{Gen, Sample};

newtypes!(Asker);

structs! {
    Run { asker, number }
    Seats { from, to }
    Start { run, group, view, deadline_us, slice_len, window, class, execution, strand, steps, edges }
    Part { chunk, offset, len }
    Edge { from, to }
    Slice { run, seats, edge, index, slice }
    Credit { run, seats, edge, below }
    AskCredit { run, seats, edge }
    Cancel { run }
    Probe { run }
    Report { run, news }
    Progress { step, done, wait }
}

choices! {
    GraphMessage {
        0 Start { 0 } 1 Slice { 0 } 2 Credit { 0 } 3 AskCredit { 0 } 4 Cancel { 0 } 5 Probe { 0 } 6 Report { 0 }
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

/// A matrix of outputs by inputs.
impl Sample for Step {
    fn sample(from: &mut Gen) -> Self {
        let (inputs, outputs): (Vec<Port>, Vec<Port>) = (from.of(), from.of());
        let matrix = from.bytes(inputs.len() * outputs.len()).into();
        Self { at: from.of(), start: from.of(), len: from.of(), inputs, outputs, matrix }
    }
}
