//! Bytes and time to the last node, by the number of nodes.

use plotters::prelude::*;

use super::document::{Change, Measured};

const SIZE: (u32, u32) = (960, 720);

pub(super) fn draw(all: &[Measured]) -> Result<String, String> {
    let mut text = String::new();
    draw_into(all, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw_into(all: &[Measured], text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(50.percent_height());
    curves(&above, all, "bytes sent, one change", "bytes", |change| change.sent_bytes as f64)?;
    curves(&below, all, "from the event to the last node", "milliseconds", |change| change.last_us / 1e3)?;
    root.present()?;
    Ok(())
}

fn curves(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    all: &[Measured],
    title: &str,
    unit: &str,
    pick: fn(&Change) -> f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let values = || all.iter().flat_map(|one| &one.changes).map(pick).filter(|value| *value > 0.0);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let nodes = || all.iter().map(|one| f64::from(one.nodes));
    let span = (nodes().fold(f64::MAX, f64::min)..nodes().fold(1.0, f64::max) * 1.1).log_scale();
    let mut builder = ChartBuilder::on(area);
    builder.margin(12).caption(title, ("sans-serif", 18)).x_label_area_size(40).y_label_area_size(80);
    let mut chart = builder.build_cartesian_2d(span, (least / 1.5..most * 1.5).log_scale())?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("nodes").y_desc(unit).light_line_style(BLACK.mix(0.05)).draw()?;
    let count = all.first().map_or(0, |one| one.changes.len());
    for at in 0..count {
        let color = Palette99::pick(at).to_rgba();
        let points = all.iter().map(|one| (f64::from(one.nodes), pick(&one.changes[at])));
        let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
        let line = LineSeries::new(points, color.stroke_width(2));
        chart.draw_series(line)?.label(&all[0].changes[at].what).legend(key);
    }
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft);
    legend.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    Ok(())
}
