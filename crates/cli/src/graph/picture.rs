//! A graph as SVG: processes in columns by their depth, links with bytes and rates.

use std::collections::BTreeMap;
use std::fmt::Write;

use graph::{Place, Shape};

use super::show::gbit_per_s;
use crate::units::Size;

const BOX: (f64, f64) = (92.0, 30.0);
const COLUMN: f64 = 210.0;
const ROW: f64 = 58.0;
const MARGIN: f64 = 40.0;
/// With more links than this, only the widest are labelled.
const MAX_LABELS: usize = 60;

/// The whole document.
pub fn draw(shape: &Shape, what: &str) -> String {
    let at = positions(shape);
    let width = at.values().map(|(x, _)| *x).fold(0.0, f64::max) + BOX.0 + MARGIN;
    let height = at.values().map(|(_, y)| *y).fold(0.0, f64::max) + BOX.1 + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"6\" refX=\"8\" refY=\"3\" orient=\"auto\"><path d=\"M0,0 L8,3 L0,6 z\"/></marker></defs>\n\
         <text x=\"{MARGIN}\" y=\"20\" font-size=\"13\">{} by {}: {:.2} ms</text>\n",
        escaped(what),
        shape.scheme,
        shape.prediction.us / 1e3
    );
    let links = shape.bytes_per_link();
    let is_labelled = links.len() <= MAX_LABELS;
    for ((from, to), bytes) in &links {
        link(&mut svg, at[from], at[to], *bytes, is_labelled.then(|| gbit_per_s(*bytes, shape)));
    }
    for (place, (x, y)) in &at {
        let (middle, line) = (x + BOX.0 / 2.0, y + BOX.1 / 2.0 + 4.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"#eef3fa\" stroke=\"#33507a\"/>\
             <text x=\"{middle:.0}\" y=\"{line:.0}\" text-anchor=\"middle\">{place}</text>",
            BOX.0, BOX.1
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The upper left corner of each place: as deep as its last step.
fn positions(shape: &Shape) -> BTreeMap<Place, (f64, f64)> {
    let depths = shape.depths();
    let mut deepest: BTreeMap<Place, usize> = BTreeMap::new();
    for (step, depth) in shape.steps.iter().zip(&depths) {
        let most = deepest.entry(step.at).or_default();
        *most = (*most).max(*depth);
    }
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let mut place = |(place, column): (Place, usize)| {
        let row = rows.entry(column).or_default();
        let y = MARGIN + *row as f64 * ROW + (column % 2) as f64 * ROW / 2.0;
        *row += 1;
        (place, (MARGIN + column as f64 * COLUMN, y))
    };
    deepest.into_iter().map(&mut place).collect()
}

fn link(svg: &mut String, from: (f64, f64), to: (f64, f64), bytes: u64, rate: Option<f64>) {
    let forward = to.0 > from.0;
    let (x1, x2) = if forward { (from.0 + BOX.0, to.0) } else { (from.0 + BOX.0 / 2.0, to.0 + BOX.0 / 2.0) };
    let (y1, y2) = (from.1 + BOX.1 / 2.0, to.1 + BOX.1 / 2.0);
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.0}\" y1=\"{y1:.0}\" x2=\"{x2:.0}\" y2=\"{y2:.0}\" stroke=\"#777\" marker-end=\"url(#a)\"/>"
    );
    if let Some(rate) = rate {
        let (x, y) = (x1 + (x2 - x1) * 0.35, y1 + (y2 - y1) * 0.35 - 3.0);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"#444\" font-size=\"9\">{} {rate:.2} Gbit/s</text>",
            Size(bytes)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
