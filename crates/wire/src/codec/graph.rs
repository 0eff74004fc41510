//! Messages of coding graphs.

use super::{BadBody, Entry, Reader, Wire, Writer, wire_choice, wire_enum, wire_newtypes, wire_struct};
use crate::graph::{
    AskCredit, Asker, Cancel, Class, Credit, Edge, Execution, GraphMessage, MAX_DEGREE, MAX_EDGES,
    MAX_HALF_DOUBLINGS, MAX_PARTS, MAX_SLICE_BYTES, MAX_SLICES, MAX_SLOW_LINKS, MAX_STEPS, News, Part, Port,
    Probe, Progress, Report, Run, Seat, Seats, Slice, SlowLink, SlowLinks, Start, Step, Wait, Why,
};

wire_newtypes!(Asker);

wire_choice!(GraphMessage {
    0 => Start { 0: body },
    1 => Slice { 0: body },
    2 => Credit { 0: body },
    3 => AskCredit { 0: body },
    4 => Cancel { 0: body },
    5 => Probe { 0: body },
    6 => Report { 0: body },
    7 => SlowLinks { 0: body },
});

wire_struct!(Run { asker, number });
wire_enum!(Seat { 0 => Node {}, 1 => Asker {} });
wire_struct!(Seats { from, to });
wire_struct!(Start {
    run,
    group,
    view,
    deadline_us,
    slice_len,
    window,
    class,
    execution,
    strand,
    steps,
    edges
});
wire_enum!(Class { 0 => Reader {}, 1 => Repair {} });
wire_enum!(Execution { 0 => Coherent {}, 1 => Incoherent {} });
wire_struct!(Part { chunk, offset, len });
wire_struct!(Step { at, start, len, inputs, outputs, matrix } if is_rectangle);
wire_enum!(Port { 0 => Chunk { 0: role }, 1 => Stream { 0: edge } });
wire_struct!(Edge { from, to });
wire_struct!(Slice { run, seats, edge, index, slice } if is_slice);
wire_struct!(Credit { run, seats, edge, below } if is_credit);
wire_struct!(AskCredit { run, seats, edge } if |ask: &AskCredit| is_edge(ask.edge));
wire_struct!(Cancel { run });
wire_struct!(Probe { run });
wire_struct!(Report { run, news } if is_report);
wire_struct!(SlowLinks { slow } if are_in_order);
wire_struct!(SlowLink { from, half_doublings } if is_slow);
wire_enum!(News { 0 => Done {}, 1 => Failed { 0: why }, 2 => Progress { 0: steps } });
wire_enum!(Why {
    0 => NoRoom {},
    1 => Again {},
    2 => UnknownNode {},
    3 => Missing { role: role, view: view },
    4 => Rotten { role: role },
    5 => BadSlice { edge: edge },
    6 => Cut { edge: edge },
    7 => Deadline {},
    8 => NotKept {},
});
wire_struct!(Progress { step, done, wait } if is_progress);
wire_enum!(Wait { 0 => Nothing {}, 1 => Slice { 0: edge }, 2 => Credit { 0: edge } });

fn is_edge(edge: u32) -> bool {
    (edge as usize) < MAX_EDGES
}

/// Whether it can be a slice of any graph.
fn is_slice(slice: &Slice) -> bool {
    let len = slice.slice.bytes.len();
    is_edge(slice.edge) && slice.index < MAX_SLICES && (1..=MAX_SLICE_BYTES).contains(&len)
}

/// A credit allows something.
fn is_credit(credit: &Credit) -> bool {
    is_edge(credit.edge) && (1..=MAX_SLICES).contains(&credit.below)
}

/// Each once, by node.
fn are_in_order(links: &SlowLinks) -> bool {
    links.slow.is_sorted_by(|one, other| one.from < other.from)
}

fn is_slow(link: &SlowLink) -> bool {
    (1..=MAX_HALF_DOUBLINGS).contains(&link.half_doublings)
}

fn is_report(report: &Report) -> bool {
    match &report.news {
        News::Failed(Why::BadSlice { edge } | Why::Cut { edge }) => is_edge(*edge),
        News::Failed(_) | News::Done | News::Progress(_) => true,
    }
}

fn is_progress(progress: &Progress) -> bool {
    let is_wait = match progress.wait {
        Wait::Nothing => true,
        Wait::Slice(edge) | Wait::Credit(edge) => is_edge(edge),
    };
    (progress.step as usize) < MAX_STEPS && progress.done <= MAX_SLICES && is_wait
}

/// Whether the matrix has a coefficient for each pair of an output and an input.
fn is_rectangle(step: &Step) -> bool {
    step.matrix.len() == step.inputs.len() * step.outputs.len()
}

impl Entry for SlowLink {
    const MAX_COUNT: u32 = MAX_SLOW_LINKS as u32;
}

impl Entry for Part {
    const MAX_COUNT: u32 = MAX_PARTS as u32;
}

impl Entry for Step {
    const MAX_COUNT: u32 = MAX_STEPS as u32;
}

impl Entry for Edge {
    const MAX_COUNT: u32 = MAX_EDGES as u32;
}

impl Entry for Port {
    const MAX_COUNT: u32 = MAX_DEGREE as u32;
}

impl Entry for Progress {
    const MAX_COUNT: u32 = MAX_STEPS as u32;
}
