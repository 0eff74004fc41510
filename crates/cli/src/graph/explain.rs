//! `gestalt graph explain`: the model's parameters, what it says of each scheme, and which one it would choose.

use clap::Args;
use graph::{Links, Prediction, Scheme, Shape};
use serde::Serialize;

use super::args::{Asked, QuestionArgs};
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};
use crate::units::Size;

const EXAMPLE: &str = "\
Examples:
  gestalt graph explain --code 'rs(10+4)' --lost 3
  gestalt graph explain --code 'lrc(12,2,2)' --lost 0,1 --repair
  gestalt graph explain --encode --gbit 10 --chunk 256KiB -o json";

/// What each scheme would cost, by the model, and which one `auto` takes
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ExplainArgs {
    #[command(flatten)]
    question: QuestionArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Nodes with values of their own that are listed; JSON has all.
const MAX_NODES: usize = 20;

#[derive(Serialize)]
struct Report<'a> {
    what: String,
    chosen: Scheme,
    why: String,
    schemes: Vec<Line>,
    links: &'a Links,
}

#[derive(Serialize)]
struct Line {
    scheme: Scheme,
    /// None where there is no such graph.
    prediction: Option<Prediction>,
    slice_bytes: u32,
    window: u8,
    depth: usize,
    bytes: u64,
    cost: f64,
    refused: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// `Usage` if there is no such code or too much is lost.
pub fn run(args: &ExplainArgs) -> Result<(), Exit> {
    let asked = args.question.read()?;
    let chosen = asked.shape(Scheme::Auto).map_err(Exit::usage)?;
    let schemes: Vec<Line> = asked.schemes().iter().map(|scheme| line(&asked, *scheme)).collect();
    let why = why(&asked, &chosen, &schemes);
    let report = Report { what: asked.what(), chosen: chosen.scheme, why, schemes, links: &asked.links };
    match args.output {
        Format::Json => print_json(&report),
        Format::Table => print(&text(&report)),
    }
    Ok(())
}

fn line(asked: &Asked, scheme: Scheme) -> Line {
    match asked.shape(scheme) {
        Ok(shape) => Line {
            scheme,
            prediction: Some(shape.prediction),
            slice_bytes: shape.slice_len,
            window: shape.window,
            depth: shape.depth(),
            bytes: shape.bytes_per_link().values().sum(),
            cost: asked.aim.cost(&shape.prediction),
            refused: None,
        },
        Err(error) => {
            let refused = Some(error.to_string());
            Line {
                scheme,
                prediction: None,
                slice_bytes: 0,
                window: 0,
                depth: 0,
                bytes: 0,
                cost: f64::MAX,
                refused,
            }
        }
    }
}

fn why(asked: &Asked, chosen: &Shape, schemes: &[Line]) -> String {
    let mut others: Vec<&Line> = schemes.iter().filter(|line| line.scheme != chosen.scheme).collect();
    others.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    let cost = asked.aim.cost(&chosen.prediction);
    let what = if asked.aim.busiest > 0.0 { "the least of the busiest link" } else { "the earliest end" };
    match others.first().filter(|next| next.prediction.is_some()) {
        Some(next) => format!("{what}: {} would cost {:.2} times that", next.scheme, next.cost / cost),
        None => what.to_owned(),
    }
}

fn text(report: &Report<'_>) -> String {
    let links = report.links;
    let end = links.others;
    let mut text = format!("{}\n\n", report.what);
    text.push_str(&format!(
        "links: up {:.2} Gbit/s, down {:.2} Gbit/s, {} us one way, {} nodes with values of their own\n",
        end.up_bytes_per_s / 125e6,
        end.down_bytes_per_s / 125e6,
        2.0 * end.latency_us,
        links.nodes.len()
    ));
    text.push_str(&format!(
        "processes: {:.1} GB/s of products, {:.1} GB/s summed up and copied, {} us a slice\n\n",
        links.products_per_s / 1e9,
        links.touch_bytes_per_s / 1e9,
        links.slice_us
    ));
    for (node, end) in links.nodes.iter().take(MAX_NODES) {
        text.push_str(&format!(
            "node-{node}: up {:.2} Gbit/s, down {:.2} Gbit/s, {} us one way\n",
            end.up_bytes_per_s / 125e6,
            end.down_bytes_per_s / 125e6,
            2.0 * end.latency_us
        ));
    }
    let mut table = Table::new(&[
        "scheme",
        "time",
        "until first",
        "busiest link",
        "moved",
        "depth",
        "slice",
        "window",
        "zones",
    ]);
    for line in &report.schemes {
        table.row(row(line, report.chosen));
    }
    text.push_str(&table.render());
    text.push_str(&format!("\nchosen: {}, {}\n", report.chosen, report.why));
    text
}

fn row(line: &Line, chosen: Scheme) -> Vec<String> {
    let mark = if line.scheme == chosen { "*" } else { "" };
    let name = format!("{}{mark}", line.scheme);
    let Some(prediction) = &line.prediction else {
        let none = || "-".to_owned();
        return vec![name, none(), none(), none(), none(), none(), none(), none(), none()];
    };
    vec![
        name,
        ms(prediction.us),
        ms(prediction.fill_us),
        ms(prediction.busiest_us),
        Size(line.bytes).to_string(),
        line.depth.to_string(),
        Size(line.slice_bytes.into()).to_string(),
        line.window.to_string(),
        Size(prediction.zone_bytes).to_string(),
    ]
}

fn ms(us: f64) -> String {
    format!("{:.2}ms", us / 1e3)
}
