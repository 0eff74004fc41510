//! The Prometheus text format, as much of it as is needed.

use std::fmt::{Display, Write};

/// Kinds of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows; its name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
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
        let word = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
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
        let mut line = self.name.to_owned();
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
