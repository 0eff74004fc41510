//! What YCSB prints at its end: lines of a section, a name and a value.

use std::collections::BTreeMap;

/// The percentiles that YCSB is asked for.
pub(super) const PERCENTILES: &str = "50,99,99.9";

/// What came of a load or a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Operations a second of all threads together, connecting included.
    pub ops_per_second: f64,
    /// From the first thread's start to the last one's end.
    pub run_time_ms: f64,
    /// By name: `INSERT`, `READ`, `UPDATE`, and `VERIFY` where reads were compared.
    pub operations: BTreeMap<String, Operation>,
}

/// One kind of operation. Times are microseconds, of those that succeeded; 0 if none did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Mean.
    pub mean_us: f64,
    /// Half took no longer.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1000.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// How many ended how: `OK`, `NOT_FOUND`, `ERROR`, or the name of what was thrown.
    pub returned: BTreeMap<String, u64>,
}

impl Operation {
    /// How many there were, however they ended.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.returned.values().sum()
    }

    /// How many did not succeed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.count() - self.returned.get("OK").copied().unwrap_or(0)
    }
}

impl Report {
    /// How many operations did not succeed, wrong values included.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.operations.values().map(Operation::failed).sum()
    }

    /// # Errors
    /// It is no report, or no operation has ended.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut report = Self::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ", ");
            let (Some(section), Some(name), Some(value)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let Some(section) = section.strip_prefix('[').and_then(|section| section.strip_suffix(']'))
            else {
                continue;
            };
            let value: f64 =
                value.trim().parse().map_err(|_| format!("YCSB printed a strange line: {line}"))?;
            // The mean of nothing is not a number there.
            report.take(section, name, if value.is_nan() { 0.0 } else { value });
        }
        if report.operations.is_empty() {
            return Err("YCSB has carried out no operation: is the server there?".to_owned());
        }
        Ok(report)
    }

    fn take(&mut self, section: &str, name: &str, value: f64) {
        match (section, name) {
            ("OVERALL", "Throughput(ops/sec)") => self.ops_per_second = value,
            ("OVERALL", "RunTime(ms)") => self.run_time_ms = value,
            ("INSERT" | "READ" | "UPDATE" | "VERIFY", name) => {
                self.operations.entry(section.to_owned()).or_default().take(name, value);
            }
            _ => (),
        }
    }
}

impl Operation {
    fn take(&mut self, name: &str, value: f64) {
        match name {
            "AverageLatency(us)" => self.mean_us = value,
            "50thPercentileLatency(us)" => self.p50_us = value,
            "99thPercentileLatency(us)" => self.p99_us = value,
            "99.9PercentileLatency(us)" => self.p999_us = value,
            "MaxLatency(us)" => self.max_us = value,
            _ => {
                if let Some(outcome) = name.strip_prefix("Return=") {
                    self.returned.insert(outcome.to_owned(), value as u64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
[OVERALL], RunTime(ms), 847
[OVERALL], Throughput(ops/sec), 5903.18772136954
[TOTAL_GC_TIME_%], Time(%), 1.4167650531286895
[READ], Operations, 2539
[READ], AverageLatency(us), 481.3867664434817
[READ], MinLatency(us), 18
[READ], MaxLatency(us), 18943
[READ], 50thPercentileLatency(us), 233
[READ], 99thPercentileLatency(us), 4847
[READ], 99.9PercentileLatency(us), 8487
[READ], Return=OK, 2539
[READ], Return=NOT_FOUND, 3
[CLEANUP], Operations, 4
[VERIFY], AverageLatency(us), NaN
[VERIFY], Return=UNEXPECTED_STATE, 929
";

    #[test]
    fn what_ycsb_prints_is_read() {
        let report = Report::parse(PRINTED).unwrap();
        assert_eq!((report.run_time_ms, report.ops_per_second.round()), (847.0, 5903.0));
        assert_eq!(report.operations.len(), 2);
        let read = &report.operations["READ"];
        assert_eq!((read.count(), read.failed(), report.failed()), (2542, 3, 932));
        assert_eq!(report.operations["VERIFY"].mean_us, 0.0);
        assert_eq!((read.p50_us, read.p99_us, read.p999_us, read.max_us), (233.0, 4847.0, 8487.0, 18943.0));
    }

    #[test]
    fn a_run_without_operations_is_an_error() {
        let nothing =
            "[OVERALL], RunTime(ms), 5\n[OVERALL], Throughput(ops/sec), 0.0\n[CLEANUP], Operations, 4\n";
        assert!(Report::parse(nothing).unwrap_err().contains("no operation"));
        assert!(Report::parse("").is_err());
    }
}
