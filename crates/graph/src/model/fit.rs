//! Parameters from what was measured: time as `alpha * bytes + beta`, by least squares (INEC, section III.B).

use serde::Serialize;

/// A moving estimate of a line: each sample counts for less than the next one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// By what older samples are multiplied when one more comes, above 0 and at most 1.
    keep: f64,
    weight: f64,
    bytes: f64,
    us: f64,
    bytes_squared: f64,
    bytes_us: f64,
}

impl Fit {
    /// Of all samples alike.
    #[must_use]
    pub fn of_all() -> Self {
        Self::moving(1.0)
    }

    /// In which a sample counts `keep` times as much as the next one.
    #[must_use]
    pub fn moving(keep: f64) -> Self {
        debug_assert!(keep > 0.0 && keep <= 1.0);
        Self { keep, weight: 0.0, bytes: 0.0, us: 0.0, bytes_squared: 0.0, bytes_us: 0.0 }
    }

    /// `bytes` took `us` microseconds.
    pub fn add(&mut self, bytes: f64, us: f64) {
        for sum in
            [&mut self.weight, &mut self.bytes, &mut self.us, &mut self.bytes_squared, &mut self.bytes_us]
        {
            *sum *= self.keep;
        }
        self.weight += 1.0;
        self.bytes += bytes;
        self.us += us;
        self.bytes_squared += bytes * bytes;
        self.bytes_us += bytes * us;
    }

    /// Microseconds a byte, and microseconds whatever the length; none while all samples are of one length.
    #[must_use]
    pub fn line(&self) -> Option<(f64, f64)> {
        let spread = self.weight * self.bytes_squared - self.bytes * self.bytes;
        if spread <= self.bytes_squared * 1e-9 {
            return None;
        }
        let alpha = (self.weight * self.bytes_us - self.bytes * self.us) / spread;
        Some((alpha, (self.us - alpha * self.bytes) / self.weight))
    }

    /// Bytes and microseconds of a sample in the mean; none before there is one.
    #[must_use]
    pub fn mean(&self) -> Option<(f64, f64)> {
        (self.weight > 0.0).then(|| (self.bytes / self.weight, self.us / self.weight))
    }

    /// Bytes a second, if longer transfers took longer.
    #[must_use]
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.line().filter(|(alpha, _)| *alpha > 0.0).map(|(alpha, _)| 1e6 / alpha)
    }

    /// Microseconds whatever the length, not below 0.
    #[must_use]
    pub fn latency_us(&self) -> Option<f64> {
        self.line().map(|(_, beta)| beta.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_from_points_around_it() {
        let mut fit = Fit::of_all();
        for (step, noise) in (1u32..40).zip([0.5, -0.5, 0.25, -0.25].into_iter().cycle()) {
            let bytes = f64::from(step) * 1000.0;
            fit.add(bytes, 50.0 + bytes / 125.0 + noise);
        }
        let (rate, latency) = (fit.bytes_per_s().unwrap(), fit.latency_us().unwrap());
        assert!((rate / 125e6 - 1.0).abs() < 0.01 && (latency - 50.0).abs() < 0.5, "{rate} {latency}");
    }

    #[test]
    fn an_estimate_follows_a_link_that_has_become_slow() {
        let mut fit = Fit::moving(0.9);
        for slow in [1.0, 10.0] {
            for step in 1..60 {
                let bytes = f64::from(step % 7 + 1) * 10_000.0;
                fit.add(bytes, 20.0 + slow * bytes / 1000.0);
            }
        }
        assert!((fit.bytes_per_s().unwrap() / 1e8 - 1.0).abs() < 0.05, "{fit:?}");
    }

    #[test]
    fn lengths_that_are_all_alike_say_nothing_of_bandwidth() {
        let mut fit = Fit::of_all();
        (0..5).for_each(|_| fit.add(4096.0, 70.0));
        assert_eq!((fit.line(), Fit::of_all().line()), (None, None));
        assert_eq!((fit.mean(), Fit::of_all().mean()), (Some((4096.0, 70.0)), None));
    }
}
