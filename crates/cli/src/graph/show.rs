//! `gestalt graph plan`: one graph, step by step.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use graph::{Edge, Input, Output, Place, Prediction, Primitive, Scheme, Shape, Span};
use serde::Serialize;

use super::args::{Asked, QuestionArgs};
use super::picture;
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};
use crate::units::Size;

const EXAMPLE: &str = "\
Examples:
  gestalt graph plan --code 'rs(6+3)' --lost 1 --scheme chain
  gestalt graph plan --code 'rs(10+4)' --lost 0,5 --to 20,21 --scheme ppr --svg graph.svg
  gestalt graph plan --encode --scheme tri -o json";

/// One graph: what is done where, and what goes between whom
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct PlanArgs {
    #[command(flatten)]
    question: QuestionArgs,
    /// How it is laid out: star, lrc, ppr, chain, tri or auto
    #[arg(long, default_value = "auto")]
    scheme: Scheme,
    /// Draws it, with rates on its edges
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Serialize)]
struct Report<'a> {
    what: String,
    scheme: Scheme,
    slice_bytes: u32,
    window: u8,
    depth: usize,
    prediction: Prediction,
    links: Vec<Link>,
    steps: Vec<StepLine<'a>>,
    edges: &'a [Edge],
}

#[derive(Serialize)]
struct Link {
    from: String,
    to: String,
    bytes: u64,
    /// Over the whole time, in Gbit/s.
    gbit_per_s: f64,
}

#[derive(Serialize)]
struct StepLine<'a> {
    at: String,
    primitive: &'static str,
    span: Span,
    inputs: &'a [Input],
    outputs: &'a [Output],
    matrix: &'a [u8],
}

/// Runs the command.
///
/// # Errors
/// `Usage` if there is no such graph, or the picture cannot be written.
pub fn run(args: &PlanArgs) -> Result<(), Exit> {
    let asked = args.question.read()?;
    let shape = asked.shape(args.scheme).map_err(Exit::usage)?;
    if let Some(path) = &args.svg {
        let drawn = picture::draw(&shape, &asked.what());
        fs::write(path, drawn).map_err(|error| Exit::usage(format!("{}: {error}", path.display())))?;
    }
    match args.output {
        Format::Json => print_json(&report(&asked, &shape)),
        Format::Table => print(&text(&asked, &shape)),
    }
    Ok(())
}

fn report<'a>(asked: &Asked, shape: &'a Shape) -> Report<'a> {
    let links = shape.bytes_per_link().into_iter().map(|((from, to), bytes)| Link {
        from: from.to_string(),
        to: to.to_string(),
        bytes,
        gbit_per_s: gbit_per_s(bytes, shape),
    });
    let steps = shape.steps.iter().map(|step| StepLine {
        at: step.at.to_string(),
        primitive: step.primitive().name(),
        span: step.span,
        inputs: &step.inputs,
        outputs: &step.outputs,
        matrix: &step.matrix,
    });
    Report {
        what: asked.what(),
        scheme: shape.scheme,
        slice_bytes: shape.slice_len,
        window: shape.window,
        depth: shape.depth(),
        prediction: shape.prediction,
        links: links.collect(),
        steps: steps.collect(),
        edges: &shape.edges,
    }
}

/// Over the whole time.
pub fn gbit_per_s(bytes: u64, shape: &Shape) -> f64 {
    if shape.prediction.us > 0.0 { bytes as f64 * 8e-3 / shape.prediction.us } else { 0.0 }
}

fn text(asked: &Asked, shape: &Shape) -> String {
    let mut text = format!(
        "{} by {}: {:.2}ms, depth {}, slices of {}, window {}\n\n",
        asked.what(),
        shape.scheme,
        shape.prediction.us / 1e3,
        shape.depth(),
        Size(shape.slice_len.into()),
        shape.window
    );
    let mut steps = Table::new(&["step", "at", "primitive", "bytes", "from", "gives"]);
    for (number, step) in shape.steps.iter().enumerate() {
        let from = step.inputs.iter().map(|input| match input {
            Input::Chunk(role) => format!("chunk {}", role.0),
            Input::Stream(edge) => format!("e{edge}"),
        });
        let gives = step.outputs.iter().enumerate().map(|(row, output)| match output {
            Output::Chunk(role) => format!("chunk {} = {}", role.0, factors(step.row(row))),
            Output::Stream(edge) => {
                let to = shape.edges.get(*edge as usize).and_then(|edge| shape.steps.get(edge.to as usize));
                let to = to.map_or(Place::Asker, |step| step.at);
                format!("e{edge} to {to} = {}", factors(step.row(row)))
            }
        });
        steps.row(vec![
            number.to_string(),
            step.at.to_string(),
            Primitive::name(step.primitive()).to_owned(),
            Size(step.span.len.into()).to_string(),
            from.collect::<Vec<_>>().join(" "),
            gives.collect::<Vec<_>>().join("; "),
        ]);
    }
    text.push_str(&steps.render());
    text
}

fn factors(row: &[u8]) -> String {
    let factors: Vec<String> = row.iter().map(ToString::to_string).collect();
    format!("({})", factors.join(" "))
}
