//! Bars: one group for each workload or size, one bar for each side.

use plotters::prelude::*;

use crate::peers::cells::{Cell, Distribution, Workload, size};
use crate::peers::document::{Document, Figures};
use crate::peers::side::Side;

const SIZE: (u32, u32) = (960, 480);

/// One plot: names of the groups, and for each side a value in each group, if there is one.
struct Plot {
    title: String,
    y_label: &'static str,
    groups: Vec<String>,
    sides: Vec<(String, Vec<Option<f64>>)>,
}

/// All plots for which there are figures, with the names of their files.
pub fn all(document: &Document) -> Result<Vec<(String, String)>, String> {
    let ops: fn(&Figures) -> f64 = |figures| figures.kops.median;
    let cpu: fn(&Figures) -> f64 = |figures| figures.cpu_us.median;
    let p50: fn(&Figures) -> f64 = |figures| figures.p50_us.median;
    let plots = [
        ("peers-ops-depth-1.svg", by_workload(document, 48, 1, "thousand operations a second", ops)),
        ("peers-ops-depth-16.svg", by_workload(document, 48, 16, "thousand operations a second", ops)),
        ("peers-cpu-depth-1.svg", by_workload(document, 48, 1, "µs of server CPU per operation", cpu)),
        ("peers-cpu-depth-16.svg", by_workload(document, 48, 16, "µs of server CPU per operation", cpu)),
        ("peers-latency-one-connection.svg", by_workload(document, 1, 1, "median latency in µs", p50)),
        ("peers-memory.svg", memory(document)),
    ];
    plots
        .into_iter()
        .filter(|(_, plot)| !plot.sides.is_empty())
        .map(|(name, plot)| Ok((name.to_owned(), svg(&plot)?)))
        .collect()
}

/// Values of 1 KiB, all keys alike.
fn by_workload(
    document: &Document,
    connections: u16,
    depth: u16,
    y_label: &'static str,
    pick: fn(&Figures) -> f64,
) -> Plot {
    let workloads = [Workload::C, Workload::B, Workload::A, Workload::Set];
    let figures = |side: Side, workload| {
        let cell = Cell { value: 1024, connections, depth, distribution: Distribution::Uniform, workload };
        document.cell(&cell)?.sides.get(&side).map(pick)
    };
    let sides = document.names.iter().map(|(&side, name)| {
        (name.clone(), workloads.iter().map(|&workload| figures(side, workload)).collect::<Vec<_>>())
    });
    Plot {
        title: format!("values of 1 KiB, {connections} connections, depth {depth}"),
        y_label,
        groups: workloads.iter().map(|workload| workload.title().to_owned()).collect(),
        sides: sides.filter(|(_, values)| values.iter().any(Option::is_some)).collect(),
    }
}

fn memory(document: &Document) -> Plot {
    let per_byte = |side: &Side| {
        let of = |memory: &crate::peers::document::Memory| {
            memory.bytes.get(side).map(|bytes| bytes / f64::from(memory.value))
        };
        document.memory.iter().map(of).collect::<Vec<_>>()
    };
    let sides = document.names.iter().filter(|(side, _)| **side != Side::Wait);
    let sides = sides.map(|(side, name)| (name.clone(), per_byte(side)));
    Plot {
        title: "resident memory of all processes".to_owned(),
        y_label: "resident bytes per byte of value",
        groups: document.memory.iter().map(|memory| size(memory.value)).collect(),
        sides: sides.filter(|(_, values)| values.iter().any(Option::is_some)).collect(),
    }
}

fn svg(plot: &Plot) -> Result<String, String> {
    let mut text = String::new();
    draw(plot, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(plot: &Plot, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let values = plot.sides.iter().flat_map(|(_, values)| values).flatten();
    let top = values.copied().fold(0.0, f64::max) * 1.1;
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut builder = ChartBuilder::on(&root);
    builder.margin(12).caption(&plot.title, ("sans-serif", 18)).x_label_area_size(30).y_label_area_size(64);
    let groups = plot.groups.len() as f64;
    let mut chart = builder.build_cartesian_2d(0.0..groups, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_desc(plot.y_label)
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    // A fifth of each group is the gap to the next.
    let width = 0.8 / plot.sides.len() as f64;
    for (index, (name, values)) in plot.sides.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let bar = |(group, value): (usize, &Option<f64>)| {
            let left = group as f64 + 0.1 + index as f64 * width;
            value.map(|value| Rectangle::new([(left, 0.0), (left + 0.9 * width, value)], color.filled()))
        };
        let key = move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled());
        chart.draw_series(values.iter().enumerate().filter_map(bar))?.label(name).legend(key);
    }
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft);
    legend.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    for (group, name) in plot.groups.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(group as f64 + 0.5, 0.0));
        let style = ("sans-serif", 14).into_font().color(&BLACK);
        let centred = style.pos(plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Center,
            plotters::style::text_anchor::VPos::Top,
        ));
        root.draw(&Text::new(name.clone(), (x, y + 8), centred))?;
    }
    root.present()?;
    Ok(())
}
