//! Metrics as tables, and the Prometheus text format, as much of it as is needed.
//!
//! A row of a table is one metric: its kind, its name, its help, and how it is read, with its labels. A name ends with the unit
//! (`_bytes`, `_seconds`), as Prometheus wants it; that of a counter with `_total`. What workers count has its table beside the counters
//! themselves, in `workers::counters`; all others are in `http::metrics`.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

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

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One row: a metric that is read from an `S`.
pub(crate) struct Metric<S: ?Sized> {
    pub kind: Kind,
    pub name: &'static str,
    pub help: &'static str,
    pub read: fn(&S) -> Vec<Sample>,
}

impl<S: ?Sized> Metric<S> {
    pub(crate) const fn counter(name: &'static str, help: &'static str, read: fn(&S) -> Vec<Sample>) -> Self {
        Self { kind: Kind::Counter, name, help, read }
    }

    pub(crate) const fn gauge(name: &'static str, help: &'static str, read: fn(&S) -> Vec<Sample>) -> Self {
        Self { kind: Kind::Gauge, name, help, read }
    }

    pub(crate) const fn histogram(
        name: &'static str,
        help: &'static str,
        read: fn(&S) -> Vec<Sample>,
    ) -> Self {
        Self { kind: Kind::Histogram, name, help, read }
    }
}

/// Tables: `NAME of value: Type { kind name "Help." = how it is read from the value; ... }`. What is read is a number, a number or
/// none, or [`by`] a label.
macro_rules! metrics {
    ($($(#[$doc:meta])* $table:ident of $value:ident: $source:ty {
        $($kind:ident $name:ident $help:literal = $read:expr;)*
    })*) => {
        $($(#[$doc])*
        #[allow(unused_variables)] // a row may be a constant
        const $table: &[$crate::exposition::Metric<$source>] = &[
            $($crate::exposition::Metric::$kind(
                stringify!($name),
                $help,
                |$value| $crate::exposition::Reading::samples($read),
            ),)*
        ];)*
    };
}
pub(crate) use metrics;

/// Names and values of labels.
pub(crate) type Labels = Vec<Label>;

/// A label: its name, and what it says.
pub(crate) type Label = (&'static str, Cow<'static, str>);

/// One value of a metric.
pub(crate) struct Sample {
    pub labels: Labels,
    pub value: Value,
}

/// What was read.
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    Histogram(Box<Histogram>),
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Whole(number as u64)
    }
}

macro_rules! whole {
    ($($type:ty)*) => {
        $(impl From<$type> for Value {
            fn from(number: $type) -> Self {
                Self::Whole(number.into())
            }
        })*
    };
}
whole!(bool u16 u32 u64);

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<&Histogram> for Value {
    fn from(histogram: &Histogram) -> Self {
        Self::Histogram(Box::new(*histogram))
    }
}

/// What a row reads.
pub(crate) trait Reading {
    /// As samples.
    fn samples(self) -> Vec<Sample>;
}

impl<T: Into<Value>> Reading for T {
    fn samples(self) -> Vec<Sample> {
        vec![Sample { labels: Vec::new(), value: self.into() }]
    }
}

impl<T: Into<Value>> Reading for Option<T> {
    fn samples(self) -> Vec<Sample> {
        self.map_or_else(Vec::new, Reading::samples)
    }
}

impl Reading for Vec<Sample> {
    fn samples(self) -> Vec<Sample> {
        self
    }
}

/// A sample for each value of one label.
pub(crate) fn by<L: Into<Cow<'static, str>>, T: Into<Value>>(
    label: &'static str,
    values: impl IntoIterator<Item = (L, T)>,
) -> Vec<Sample> {
    let sample = |(text, value): (L, T)| Sample { labels: vec![(label, text.into())], value: value.into() };
    values.into_iter().map(sample).collect()
}

/// A page of metrics.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// All metrics of a table.
    pub(crate) fn table<S: ?Sized>(&mut self, table: &[Metric<S>], source: &S) {
        for Metric { kind, name, help, read } in table {
            debug_assert_eq!(*kind == Kind::Counter, name.ends_with("_total"), "{name}");
            debug_assert!(*kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
            let samples = read(source);
            // What cannot be told is left out. A histogram fills with what happens: that there is one can be told before.
            if samples.is_empty() && *kind != Kind::Histogram {
                continue;
            }
            self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {}", kind.name()));
            samples.iter().for_each(|sample| self.sample(name, sample));
        }
    }

    /// The page.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn sample(&mut self, name: &str, Sample { labels, value }: &Sample) {
        match value {
            Value::Whole(number) => self.line(format_args!("{name}{} {number}", Braces(labels))),
            Value::Real(number) => self.line(format_args!("{name}{} {number}", Braces(labels))),
            Value::Histogram(histogram) => self.histogram(name, labels, histogram),
        }
    }

    /// One histogram: its buckets, sum and count.
    fn histogram(&mut self, name: &str, labels: &[Label], histogram: &Histogram) {
        let bounds = histogram.cumulative().map(|(bound, count)| (bound.as_secs_f64().to_string(), count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), histogram.count())]) {
            let labels = [labels, &[("le", bound.into())]].concat();
            self.line(format_args!("{name}_bucket{} {count}", Braces(&labels)));
        }
        let labels = Braces(labels);
        self.line(format_args!("{name}_sum{labels} {}", histogram.sum().as_secs_f64()));
        self.line(format_args!("{name}_count{labels} {}", histogram.count()));
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a string takes everything");
    }
}

/// Labels as they are written; values are escaped.
struct Braces<'a>(&'a [Label]);

impl Display for Braces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (label, text)) in self.0.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(f, "{}{label}=\"{text}\"", if index == 0 { '{' } else { ',' })?;
        }
        if self.0.is_empty() { Ok(()) } else { f.write_char('}') }
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
        metrics! {
            TOOK of it: Histogram { histogram took_seconds "Took." = by("operation", [("get", it)]); }
        }
        let mut page = Exposition::default();
        page.table(TOOK, &histogram);
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

    metrics! {
        TABLE of it: Option<u64> {
            gauge gestalt_items "Items." = 3u64;
            gauge gestalt_left "Left out." = *it;
            counter gestalt_requests_total "Requests." = vec![
                Sample { labels: vec![("op", "get".into())], value: Value::Whole(1) },
                Sample { labels: vec![("op", "a\"b".into()), ("x", "y".into())], value: Value::Real(2.5) },
            ];
            histogram gestalt_took_seconds "Took." = Vec::new();
        }
    }

    #[test]
    fn metrics_and_samples_are_lines_and_what_cannot_be_told_is_none() {
        let mut page = Exposition::default();
        page.table(TABLE, &None);
        let text = page.finish();
        assert_eq!(
            text,
            "# HELP gestalt_items Items.\n# TYPE gestalt_items gauge\ngestalt_items 3\n\
             # HELP gestalt_requests_total Requests.\n# TYPE gestalt_requests_total counter\n\
             gestalt_requests_total{op=\"get\"} 1\ngestalt_requests_total{op=\"a\\\"b\",x=\"y\"} 2.5\n\
             # HELP gestalt_took_seconds Took.\n# TYPE gestalt_took_seconds histogram\n"
        );
    }
}
