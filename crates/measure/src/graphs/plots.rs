//! Lines by length of a chunk and by number of nodes.

use super::document::{Cell, Document, Encoded};
use crate::plot::Plot;

/// The code whose figures are drawn; those of the others are in the tables.
const CODE: &str = "rs(6+3)";

/// A plot with the name of its file.
pub(super) struct Named {
    pub name: String,
    pub plot: Plot,
}

/// All of them for which there are figures.
pub(super) fn all(document: &Document) -> Vec<Named> {
    let repairs = [1.0, 10.0, 100.0].map(|gbit| Named {
        name: format!("graphs-repair-{gbit}.svg"),
        plot: by_length(
            document,
            format!("one lost chunk of {CODE} at {gbit} Gbit/s"),
            "microseconds",
            gbit,
            |cell| cell.us,
        ),
    });
    let incoherent = Named {
        name: "graphs-incoherent-10.svg".to_owned(),
        plot: by_length(
            document,
            format!("one lost chunk of {CODE} at 10 Gbit/s, incoherently"),
            "times of coherently",
            10.0,
            |cell| cell.incoherent_us / cell.us,
        ),
    };
    let fills = [1.0, 10.0]
        .map(|gbit| Named { name: format!("graphs-fill-{gbit}.svg"), plot: by_nodes(document, gbit) });
    let rate = |len: u32, us: f64| f64::from(len) / us;
    let bandwidth = Named {
        name: "graphs-repair-bandwidth-10.svg".to_owned(),
        plot: by_length(
            document,
            format!("bandwidth of one lost chunk of {CODE} at 10 Gbit/s"),
            "MB a second",
            10.0,
            |cell| f64::from(cell.len) / cell.us,
        ),
    };
    let stripes = [
        Named {
            name: "graphs-encode-10.svg".to_owned(),
            plot: of_stripes(document, "a new stripe of", "microseconds", |one| one.us),
        },
        Named {
            name: "graphs-encode-bandwidth-10.svg".to_owned(),
            plot: of_stripes(document, "bandwidth of a new stripe of", "MB of a chunk a second", |one| {
                rate(one.len, one.us)
            }),
        },
    ];
    repairs
        .into_iter()
        .chain([incoherent, bandwidth])
        .chain(stripes)
        .chain(fills)
        .filter(|named| named.plot.has_lines())
        .collect()
}

fn by_length(
    document: &Document,
    title: String,
    y_label: &'static str,
    gbit: f64,
    figure: fn(&Cell) -> f64,
) -> Plot {
    let of = |cell: &&Cell| cell.code == CODE && cell.gbit == gbit;
    let points = document.cells.iter().filter(of);
    let lines = by_scheme(points.map(|cell| (&cell.scheme, (f64::from(cell.len), figure(cell)))));
    Plot { title, x_label: "bytes of the chunk", y_label, lines }
}

fn of_stripes(
    document: &Document,
    what: &str,
    y_label: &'static str,
    figure: impl Fn(&Encoded) -> f64,
) -> Plot {
    let of = |one: &&Encoded| one.code == CODE && one.gbit == 10.0;
    let points = document.encoded.iter().filter(of);
    let lines = by_scheme(points.map(|one| (&one.scheme, (f64::from(one.len), figure(one)))));
    Plot { title: format!("{what} {CODE} at 10 Gbit/s"), x_label: "bytes of the chunk", y_label, lines }
}

fn by_nodes(document: &Document, gbit: f64) -> Plot {
    let points = document.filled.iter().filter(|filled| filled.gbit == gbit);
    let lines = by_scheme(points.map(|filled| (&filled.scheme, (f64::from(filled.nodes), filled.mib_per_s))));
    Plot {
        title: format!("a holder of {CODE} that is filled at {gbit} Gbit/s"),
        x_label: "nodes",
        y_label: "MiB a second",
        lines,
    }
}

/// A line for each scheme, in the order in which they come.
fn by_scheme<'a>(points: impl Iterator<Item = (&'a String, (f64, f64))>) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (scheme, point) in points {
        match lines.iter_mut().find(|(known, _)| known == scheme) {
            Some((_, line)) => line.push(point),
            None => lines.push((scheme.clone(), vec![point])),
        }
    }
    lines
}
