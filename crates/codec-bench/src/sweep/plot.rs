//! A panel as SVG, with no fonts of this machine.

use std::fmt::Display;

use plotters::prelude::*;

use super::Panel;
use crate::CARD;
use crate::limits::Bound;

const SIZE: (u32, u32) = (960, 600);
/// Longest line of the caption.
const CAPTION_LEN: usize = 160;

/// One side's line.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The plot: x logarithmic if it spans more than a factor of ten, rates from 0 on.
///
/// # Errors
/// What `plotters` says.
pub fn svg(panel: &Panel, command: &str) -> Result<String, String> {
    let mut text = String::new();
    draw(panel, command, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(panel: &Panel, command: &str, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let series = series(panel);
    let all = || series.iter().flat_map(|series| &series.points);
    let low = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = all().map(|point| point.0).fold(0.0, f64::max);
    let top = all().map(|point| point.1).fold(0.0, f64::max) * 1.1;
    if !(low > 0.0 && top > 0.0) {
        return Err("there are no points".into());
    }
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, caption) = root.split_vertically(i32::try_from(SIZE.1)? - 24);
    let cut: String = command.chars().take(CAPTION_LEN).collect();
    caption.draw(&Text::new(cut, (10, 4), ("monospace", 12).into_font().color(&BLACK.mix(0.7))))?;
    let mut builder = ChartBuilder::on(&above);
    builder.margin(12).caption(&panel.title, ("sans-serif", 20)).x_label_area_size(40).y_label_area_size(56);
    // The two kinds of axes are different types.
    macro_rules! chart {
        ($x:expr) => {{
            let mut chart = builder.build_cartesian_2d($x, 0.0..top)?;
            chart
                .configure_mesh()
                .x_desc(panel.x_label)
                .y_desc("GB/s of data")
                .x_label_formatter(&|x| short(*x))
                .light_line_style(BLACK.mix(0.05))
                .draw()?;
            for (index, series) in series.iter().enumerate() {
                let color = Palette99::pick(index).to_rgba();
                let line =
                    LineSeries::new(series.points.iter().copied(), color.stroke_width(2)).point_size(3);
                let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
                chart.draw_series(line)?.label(&series.name).legend(key);
            }
            let mut legend = chart.configure_series_labels();
            legend.background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
        }};
    }
    if high > 10.0 * low {
        chart!((low..high).log_scale().base(2.0));
    } else {
        chart!(low - 0.1 * (high - low).max(1.0)..high + 0.1 * (high - low).max(1.0));
    }
    root.present()?;
    Ok(())
}

/// One line for each side and for the XOR of the sources, which no code can beat, in the order in which they first appear.
fn series(panel: &Panel) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut add = |name: String, x: f64, y: f64| match all.iter_mut().find(|series| series.name == name) {
        Some(series) => series.points.push((x, y)),
        None => all.push(Series { name, points: vec![(x, y)] }),
    };
    for point in &panel.points {
        for side in &point.case.sides {
            add(line_name(&side.name, side.peer.is_none()), point.x, side.gb_per_second.median);
            if let (Some(allowed), Some(place)) =
                (side.allowed_gb_per_second, side.name.split(' ').next_back())
            {
                add(format!("what copies allow, {place}"), point.x, allowed);
            }
        }
        for limit in point.case.limits.iter().filter(|limit| limit.name == Bound::Xor.name()) {
            add(limit.name.clone(), point.x, limit.gb_per_second.median);
        }
    }
    all
}

/// Of ours the family and the kernel, of a card also where the chunks are: the numbers of the code are on an axis or in the title, and the method follows from both.
fn line_name(name: &str, ours: bool) -> String {
    let mut words = name.split(' ');
    match (ours, words.next(), words.next()) {
        (true, Some(code), Some(kernel)) => {
            let family = code.split('(').next().unwrap_or(code);
            let place = words.next_back().filter(|_| kernel == CARD).map(|place| format!(" {place}"));
            format!("gestalt {family} {kernel}{}", place.unwrap_or_default())
        }
        _ => name.to_owned(),
    }
}

/// A number for an axis: `64Ki`, `128`.
fn short(x: f64) -> String {
    let whole = |x: f64, unit: &dyn Display| format!("{}{unit}", (x * 10.0).round() / 10.0);
    if x >= 1_048_576.0 {
        whole(x / 1_048_576.0, &"Mi")
    } else if x >= 1024.0 {
        whole(x / 1024.0, &"Ki")
    } else {
        whole(x, &"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_without_what_changes_along_them() {
        assert_eq!(line_name("rs(10+4) avx512-gfni matrix", true), "gestalt rs avx512-gfni");
        assert_eq!(line_name("rs(10+4) cuda compiled pinned", true), "gestalt rs cuda pinned");
        assert_eq!(line_name("ISA-L 2.31 (isal-sys)", false), "ISA-L 2.31 (isal-sys)");
    }

    #[test]
    fn axes_have_short_numbers() {
        assert_eq!([128.0, 65_536.0, 1_572_864.0].map(short), ["128", "64Ki", "1.5Mi"]);
    }

    #[test]
    fn a_panel_without_points_is_refused() {
        let panel = Panel { name: "x".into(), title: "x".into(), x_label: "x", points: vec![] };
        assert!(svg(&panel, "").unwrap_err().contains("no points"));
    }
}
