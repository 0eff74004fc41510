//! Lines by length of values and by number of clients, both axes logarithmic.

use super::cells::{CROWD, Side, USUAL, Work};
use super::document::{Document, Figures, Measured};
use crate::plot::Plot;

/// All plots for which there are figures, with the names of their files.
pub fn all(document: &Document) -> Result<Vec<(&'static str, String)>, String> {
    let plots = [
        ("native-latency-get.svg", by_size(document, Work::Get, true)),
        ("native-latency-set.svg", by_size(document, Work::Set, true)),
        ("native-rate-get.svg", by_size(document, Work::Get, false)),
        ("native-rate-set.svg", by_size(document, Work::Set, false)),
        ("native-clients.svg", by_clients(document)),
    ];
    let drawable = plots.into_iter().filter(|(_, plot)| plot.has_lines());
    drawable.map(|(name, plot)| Ok((name, plot.svg()?))).collect()
}

fn by_size(document: &Document, work: Work, blocks: bool) -> Plot {
    let of = |measured: &&Measured| {
        let cell = measured.cell;
        cell.clients == 1 && (cell.depth == 1) == blocks && cell.work == work
    };
    let cells: Vec<&Measured> = document.cells.iter().filter(of).collect();
    let pick: fn(&Figures) -> f64 =
        if blocks { |figures| figures.p50_us.median } else { |figures| figures.rate.median };
    let lines = Side::ALL.map(|side| {
        let point = |measured: &&Measured| {
            let figures = measured.sides.get(&side)?;
            Some((measured.cell.value as f64, pick(figures))).filter(|(_, value)| *value > 0.0)
        };
        (side.title().to_owned(), cells.iter().filter_map(point).collect::<Vec<_>>())
    });
    Plot {
        title: format!("{}, one client, {}", work.title(), if blocks { "blocking" } else { "non-blocking" }),
        x_label: "bytes of a value",
        y_label: if blocks { "p50, microseconds" } else { "megabytes a second" },
        lines: lines.into_iter().filter(|(_, line)| !line.is_empty()).collect(),
    }
}

/// GET and SET of each side.
fn by_clients(document: &Document) -> Plot {
    let line = |side: Side, work: Work| {
        let of = |measured: &&Measured| {
            let cell = measured.cell;
            cell.value == USUAL && cell.depth == 1 && cell.clients != CROWD && cell.work == work
        };
        let point = |measured: &Measured| {
            Some((f64::from(measured.cell.clients), measured.sides.get(&side)?.kops.median))
        };
        let points = document.cells.iter().filter(of).filter_map(point).filter(|(_, kops)| *kops > 0.0);
        (format!("{}, {}", work.title(), side.title()), points.collect::<Vec<_>>())
    };
    let all = [Work::Get, Work::Set].into_iter().flat_map(|work| Side::ALL.map(|side| line(side, work)));
    Plot {
        title: "values of 1 KiB, blocking".to_owned(),
        x_label: "clients",
        y_label: "thousand operations a second",
        lines: all.filter(|(_, line)| !line.is_empty()).collect(),
    }
}
