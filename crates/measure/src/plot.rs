//! Lines in a plane whose axes are logarithmic, as an SVG.

use plotters::prelude::*;

const SIZE: (u32, u32) = (960, 480);

/// A plot of named lines.
pub(crate) struct Plot {
    pub title: String,
    pub x_label: &'static str,
    pub y_label: &'static str,
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl Plot {
    /// Whether there is anything to draw.
    pub(crate) fn has_lines(&self) -> bool {
        self.lines.iter().any(|(_, line)| line.len() > 1)
    }

    /// The text of the SVG.
    ///
    /// # Errors
    /// What the library says.
    pub(crate) fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        draw(self, &mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }
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
