//! Lines by length of values and by number of clients, both axes logarithmic.

use plotters::prelude::*;

use super::cells::{CROWD, Side, USUAL, Work};
use super::document::{Document, Figures, Measured};

const SIZE: (u32, u32) = (960, 480);

struct Plot {
    title: String,
    x_label: &'static str,
    y_label: &'static str,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// All plots for which there are figures, with the names of their files.
pub fn all(document: &Document) -> Result<Vec<(&'static str, String)>, String> {
    let plots = [
        ("native-latency-get.svg", by_size(document, Work::Get, true)),
        ("native-latency-set.svg", by_size(document, Work::Set, true)),
        ("native-rate-get.svg", by_size(document, Work::Get, false)),
        ("native-rate-set.svg", by_size(document, Work::Set, false)),
        ("native-clients.svg", by_clients(document)),
    ];
    let drawable = plots.into_iter().filter(|(_, plot)| plot.lines.iter().any(|(_, line)| line.len() > 1));
    drawable.map(|(name, plot)| Ok((name, svg(&plot)?))).collect()
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

fn svg(plot: &Plot) -> Result<String, String> {
    let mut text = String::new();
    draw(plot, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(plot: &Plot, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let points = || plot.lines.iter().flat_map(|(_, line)| line);
    let span = |pick: fn(&(f64, f64)) -> f64| {
        let (least, most) = points()
            .map(pick)
            .fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
        (least / 1.3..most * 1.3).log_scale()
    };
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut builder = ChartBuilder::on(&root);
    builder.margin(12).caption(&plot.title, ("sans-serif", 18)).x_label_area_size(40).y_label_area_size(72);
    let mut chart = builder.build_cartesian_2d(span(|point| point.0), span(|point| point.1))?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(plot.x_label).y_desc(plot.y_label).light_line_style(BLACK.mix(0.05)).draw()?;
    for (at, (name, line)) in plot.lines.iter().enumerate() {
        let color = Palette99::pick(at).to_rgba();
        let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
        let series = LineSeries::new(line.iter().copied(), color.stroke_width(2));
        chart.draw_series(series)?.label(name).legend(key);
    }
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft);
    legend.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    root.present()?;
    Ok(())
}
