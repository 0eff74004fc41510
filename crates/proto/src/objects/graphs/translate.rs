//! Graphs as they travel, and as they run. What has come is checked here before anybody believes it.

use bytes::Bytes;
use graph::{
    AskerId, Class, Draft, Edge, Execution, Graph, Input, Output, Part, Place, Progress, Report, RunId, Span,
    Step, Wait, Why,
};
use types::{NodeId, RoleIndex};
use wire::graph as sent;

const _: () = assert!(sent::MAX_STEPS == graph::limits::MAX_STEPS);
const _: () = assert!(sent::MAX_EDGES == graph::limits::MAX_EDGES);
const _: () = assert!(sent::MAX_DEGREE == graph::limits::MAX_DEGREE);
const _: () = assert!(sent::MAX_PARTS == graph::limits::MAX_PARTS);
const _: () = assert!(sent::MAX_SLICE_BYTES == graph::limits::MAX_SLICE_BYTES as usize);
const _: () = assert!(sent::MAX_SLICES == graph::limits::MAX_STRAND_BYTES / graph::limits::MIN_SLICE_BYTES);

/// The run of this name.
pub(super) fn run_of(run: sent::Run) -> RunId {
    RunId { asker: AskerId(run.asker.0), number: run.number }
}

/// The name of a run.
pub(super) fn name_of(run: RunId) -> sent::Run {
    sent::Run { asker: sent::Asker(run.asker.0), number: run.number }
}

/// Where the asker of a run is.
pub(super) fn node_of(run: RunId) -> NodeId {
    sent::Asker(run.asker.0).node()
}

/// The graph that has come; none if it is none, lets anybody but its asker write chunks, or names roles that its group, of `roles` of
/// them, does not have.
pub(super) fn graph_of(start: sent::Start, roles: usize) -> Option<Graph> {
    let graph = draft_of(start).check().ok()?;
    let is_role = |role: RoleIndex| usize::from(role.0) < roles;
    let is_input = |input: &Input| match *input {
        Input::Chunk(role) => is_role(role),
        Input::Stream(_) => true,
    };
    let is_output = |at: Place, output: &Output| match *output {
        Output::Chunk(role) => at == Place::Asker && is_role(role),
        Output::Stream(_) => true,
    };
    let is_step = |step: &Step| {
        step.inputs.iter().all(is_input) && step.outputs.iter().all(|output| is_output(step.at, output))
    };
    graph.steps.iter().all(is_step).then_some(graph)
}

fn draft_of(start: sent::Start) -> Draft {
    let sent::Start { run, group, view, deadline_us, slice_len, window, .. } = start;
    Draft {
        run: run_of(run),
        group,
        view,
        deadline_us,
        slice_len,
        window,
        class: match start.class {
            sent::Class::Reader => Class::Reader,
            sent::Class::Repair => Class::Repair,
        },
        execution: match start.execution {
            sent::Execution::Coherent => Execution::Coherent,
            sent::Execution::Incoherent => Execution::Incoherent,
        },
        strand: start.strand.into_iter().map(part_of).collect(),
        steps: start.steps.into_iter().map(step_of).collect(),
        edges: start.edges.into_iter().map(|edge| Edge { from: edge.from, to: edge.to }).collect(),
    }
}

fn part_of(part: sent::Part) -> Part {
    let sent::Part { chunk, offset, len } = part;
    Part { chunk, offset, len }
}

fn step_of(step: sent::Step) -> Step {
    let sent::Step { at, start, len, inputs, outputs, matrix } = step;
    let input = |port| match port {
        sent::Port::Chunk(role) => Input::Chunk(role),
        sent::Port::Stream(edge) => Input::Stream(edge),
    };
    let output = |port| match port {
        sent::Port::Chunk(role) => Output::Chunk(role),
        sent::Port::Stream(edge) => Output::Stream(edge),
    };
    Step {
        at: at.map_or(Place::Asker, Place::Node),
        span: Span { start, len },
        inputs: inputs.into_iter().map(input).collect(),
        outputs: outputs.into_iter().map(output).collect(),
        matrix: matrix[..].into(),
    }
}

/// A graph to be sent.
pub(super) fn start_of(graph: &Graph) -> sent::Start {
    let Draft { run, group, view, deadline_us, slice_len, window, .. } = **graph;
    sent::Start {
        run: name_of(run),
        group,
        view,
        deadline_us,
        slice_len,
        window,
        class: match graph.class {
            Class::Reader => sent::Class::Reader,
            Class::Repair => sent::Class::Repair,
        },
        execution: match graph.execution {
            Execution::Coherent => sent::Execution::Coherent,
            Execution::Incoherent => sent::Execution::Incoherent,
        },
        strand: graph.strand.iter().map(sent_part).collect(),
        steps: graph.steps.iter().map(sent_step).collect(),
        edges: graph.edges.iter().map(|edge| sent::Edge { from: edge.from, to: edge.to }).collect(),
    }
}

fn sent_part(part: &Part) -> sent::Part {
    let Part { chunk, offset, len } = *part;
    sent::Part { chunk, offset, len }
}

fn sent_step(step: &Step) -> sent::Step {
    let input = |input: &Input| match *input {
        Input::Chunk(role) => sent::Port::Chunk(role),
        Input::Stream(edge) => sent::Port::Stream(edge),
    };
    let output = |output: &Output| match *output {
        Output::Chunk(role) => sent::Port::Chunk(role),
        Output::Stream(edge) => sent::Port::Stream(edge),
    };
    sent::Step {
        at: match step.at {
            Place::Node(node) => Some(node),
            Place::Asker => None,
        },
        start: step.span.start,
        len: step.span.len,
        inputs: step.inputs.iter().map(input).collect(),
        outputs: step.outputs.iter().map(output).collect(),
        matrix: Bytes::copy_from_slice(&step.matrix),
    }
}

/// What an asker was told.
pub(super) fn report_of(news: sent::News) -> Report {
    match news {
        sent::News::Done => Report::Done,
        sent::News::Failed(why) => Report::Failed(why_of(why)),
        sent::News::Progress(steps) => Report::Progress(steps.into_iter().map(progress_of).collect()),
    }
}

fn why_of(why: sent::Why) -> Why {
    match why {
        sent::Why::NoRoom => Why::NoRoom,
        sent::Why::Again => Why::Again,
        sent::Why::UnknownNode => Why::UnknownNode,
        sent::Why::Missing { role, view } => Why::Missing { role, view },
        sent::Why::Rotten { role } => Why::Rotten { role },
        sent::Why::BadSlice { edge } => Why::BadSlice { edge },
        sent::Why::Cut { edge } => Why::Cut { edge },
        sent::Why::Deadline => Why::Deadline,
        sent::Why::NotKept => Why::NotKept,
    }
}

fn progress_of(progress: sent::Progress) -> Progress {
    let sent::Progress { step, done, wait } = progress;
    let wait = match wait {
        sent::Wait::Nothing => Wait::Nothing,
        sent::Wait::Slice(edge) => Wait::Slice(edge),
        sent::Wait::Credit(edge) => Wait::Credit(edge),
    };
    Progress { step, done, wait }
}

/// What an asker is to be told.
pub(super) fn news_of(report: Report) -> sent::News {
    match report {
        Report::Done => sent::News::Done,
        Report::Failed(why) => sent::News::Failed(sent_why(why)),
        Report::Progress(steps) => sent::News::Progress(steps.into_iter().map(sent_progress).collect()),
    }
}

fn sent_why(why: Why) -> sent::Why {
    match why {
        Why::NoRoom => sent::Why::NoRoom,
        Why::Again => sent::Why::Again,
        Why::UnknownNode => sent::Why::UnknownNode,
        Why::Missing { role, view } => sent::Why::Missing { role, view },
        Why::Rotten { role } => sent::Why::Rotten { role },
        Why::BadSlice { edge } => sent::Why::BadSlice { edge },
        Why::Cut { edge } => sent::Why::Cut { edge },
        Why::Deadline => sent::Why::Deadline,
        Why::NotKept => sent::Why::NotKept,
    }
}

fn sent_progress(progress: Progress) -> sent::Progress {
    let Progress { step, done, wait } = progress;
    let wait = match wait {
        Wait::Nothing => sent::Wait::Nothing,
        Wait::Slice(edge) => sent::Wait::Slice(edge),
        Wait::Credit(edge) => sent::Wait::Credit(edge),
    };
    sent::Progress { step, done, wait }
}
