//! The Prometheus text format, as much of it as is needed.

use std::fmt::{Display, Write};

use proto::Histogram;

/// Kinds of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows; its name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often what took how long, in seconds.
    Histogram,
}

/// A page of metrics.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family; its samples follow.
    pub(crate) fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> Family<'a> {
        debug_assert_eq!(kind == Kind::Counter, name.ends_with("_total"), "{name}");
        debug_assert!(kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {word}"));
        Family { page: self, name }
    }

    /// A family of one sample without labels.
    pub(crate) fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// The page.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a string takes everything");
    }
}

/// A family whose samples are being written.
pub(crate) struct Family<'a> {
    page: &'a mut Exposition,
    name: &'a str,
}

impl Family<'_> {
    /// One sample. Label values are escaped.
    pub(crate) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.suffixed("", labels, value)
    }

    /// One histogram: its buckets, sum and count.
    pub(crate) fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) -> &mut Self {
        let bounds = histogram.cumulative().map(|(bound, count)| (bound.as_secs_f64().to_string(), count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), histogram.count())]) {
            self.suffixed("_bucket", &[labels, &[("le", &bound)]].concat(), count);
        }
        self.suffixed("_sum", labels, histogram.sum().as_secs_f64());
        self.suffixed("_count", labels, histogram.count())
    }

    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let mut line = format!("{}{suffix}", self.name);
        for (index, (label, text)) in labels.iter().enumerate() {
            line.push(if index == 0 { '{' } else { ',' });
            line.push_str(label);
            line.push_str("=\"");
            line.push_str(&text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
            line.push('"');
        }
        if !labels.is_empty() {
            line.push('}');
        }
        self.page.line(format_args!("{line} {value}"));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_cumulative_buckets_a_sum_and_a_count() {
        let mut histogram = Histogram::default();
        histogram.record(10, 2);
        histogram.record(100_000_000, 1);
        let mut page = Exposition::default();
        page.family("took_seconds", Kind::Histogram, "Took.").histogram(&[("operation", "get")], &histogram);
        let text = page.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..4],
            [
                "# TYPE took_seconds histogram",
                "took_seconds_bucket{operation=\"get\",le=\"0.000008\"} 0",
                "took_seconds_bucket{operation=\"get\",le=\"0.000016\"} 2",
            ]
        );
        assert_eq!(
            lines[lines.len() - 4..],
            [
                "took_seconds_bucket{operation=\"get\",le=\"16.777216\"} 2",
                "took_seconds_bucket{operation=\"get\",le=\"+Inf\"} 3",
                "took_seconds_sum{operation=\"get\"} 100.00002",
                "took_seconds_count{operation=\"get\"} 3",
            ]
        );
    }

    #[test]
    fn families_and_samples_are_lines() {
        let mut page = Exposition::default();
        page.single("gestalt_items", Kind::Gauge, "Items.", 3);
        page.family("gestalt_requests_total", Kind::Counter, "Requests.")
            .sample(&[("op", "get")], 1)
            .sample(&[("op", "a\"b"), ("x", "y")], 2);
        let text = page.finish();
        assert_eq!(
            text,
            "# HELP gestalt_items Items.\n# TYPE gestalt_items gauge\ngestalt_items 3\n\
             # HELP gestalt_requests_total Requests.\n# TYPE gestalt_requests_total counter\n\
             gestalt_requests_total{op=\"get\"} 1\ngestalt_requests_total{op=\"a\\\"b\",x=\"y\"} 2\n"
        );
    }
}
