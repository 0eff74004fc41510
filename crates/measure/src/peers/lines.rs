//! Lines: throughput and p99 while nodes are killed.

use plotters::prelude::*;

use crate::peers::document::{Document, Failure, Stretch};

const SIZE: (u32, u32) = (960, 640);
/// Lowest p99 that is told apart, in milliseconds.
const LEAST_MS: f64 = 0.1;

/// One plot for each fault, with the names of their files.
pub fn all(document: &Document) -> Result<Vec<(String, String)>, String> {
    let mut faults: Vec<(&str, usize)> = Vec::new();
    for failure in &document.failures {
        if !faults.contains(&(&failure.how, failure.nodes)) {
            faults.push((&failure.how, failure.nodes));
        }
    }
    let plot = |(how, nodes): (&str, usize)| {
        let of = |failure: &&Failure| failure.how == how && failure.nodes == nodes;
        let failures: Vec<&Failure> = document.failures.iter().filter(of).collect();
        let mut text = String::new();
        draw(document, &failures, &mut text).map_err(|error| error.to_string())?;
        Ok((format!("peers-{how}-{nodes}.svg"), text))
    };
    faults.into_iter().map(plot).collect()
}

fn draw(
    document: &Document,
    failures: &[&Failure],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(50.percent_height());
    let title = failures.first().map_or(String::new(), |failure| {
        format!(
            "half reads, half writes of 1 KiB, 48 connections; {} of 5 nodes {} at 0",
            failure.nodes, failure.how
        )
    });
    let kops = |stretch: &Stretch| stretch.operations_per_second / 1000.0;
    let all = |pick: fn(&Stretch) -> f64| {
        failures.iter().flat_map(|failure| &failure.timeline).map(pick).fold(0.0, f64::max)
    };
    let span = span(failures);
    {
        let mut builder = ChartBuilder::on(&above);
        builder.margin(12).caption(title, ("sans-serif", 18)).x_label_area_size(24).y_label_area_size(64);
        let mut chart = builder.build_cartesian_2d(span.clone(), 0.0..all(kops) * 1.1)?;
        let mut mesh = chart.configure_mesh();
        mesh.y_desc("thousand operations a second").light_line_style(BLACK.mix(0.05)).draw()?;
        for (index, failure) in failures.iter().enumerate() {
            let color = Palette99::pick(index).to_rgba();
            let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
            let line = LineSeries::new(points(failure, kops), color.stroke_width(1));
            chart.draw_series(line)?.label(document.name(failure.side)).legend(key);
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::LowerRight);
        legend.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    }
    let p99 = |stretch: &Stretch| (stretch.p99_us / 1000.0).max(LEAST_MS);
    let mut builder = ChartBuilder::on(&below);
    builder.margin(12).x_label_area_size(40).y_label_area_size(64);
    let mut chart = builder.build_cartesian_2d(span, (LEAST_MS..all(p99) * 2.0).log_scale())?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("seconds").y_desc("p99 in ms").light_line_style(BLACK.mix(0.05)).draw()?;
    for (index, failure) in failures.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        chart.draw_series(LineSeries::new(points(failure, p99), color.stroke_width(1)))?;
    }
    root.present()?;
    Ok(())
}

/// Seconds from the fault, and what `pick` says of them.
fn points<'a>(failure: &'a Failure, pick: fn(&Stretch) -> f64) -> impl Iterator<Item = (f64, f64)> + 'a {
    failure.timeline.iter().map(move |stretch| (stretch.until_s - failure.at_s, pick(stretch)))
}

fn span(failures: &[&Failure]) -> std::ops::Range<f64> {
    let times = || failures.iter().flat_map(|failure| points(failure, |_| 0.0)).map(|point| point.0);
    times().fold(0.0, f64::min)..times().fold(1.0, f64::max)
}
