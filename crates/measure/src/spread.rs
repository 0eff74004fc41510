//! Median and spread of a few rounds.

use serde::{Deserialize, Serialize};

/// Least, median and most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    /// Of all finite values; zeros if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else { return Self::default() };
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        // Four digits are more than there is.
        let [median, least, most] = [median, least, most].map(rounded);
        Self { median, least, most }
    }
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_middle_counts() {
        assert_eq!(Spread::of([3.0, 1.0, f64::NAN, 2.0]), Spread { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(Spread::of([1.0, 2.0]).median, 1.5);
        assert_eq!(Spread::of([]), Spread::default());
        assert_eq!(Spread::of([123_456.0]).median, 123_500.0);
    }
}
