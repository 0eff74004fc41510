//! Rounds, and what is made of them.

use std::time::Duration;

use serde::Serialize;

use crate::BenchError;
use crate::memory::Memory;
use crate::side::Side;

/// How long and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Rounds. In each, all sides take their turn.
    pub rounds: usize,
    /// How long a turn is.
    pub turn: Duration,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 11, turn: Duration::from_millis(10) }
    }
}

/// Rates of several rounds, in GB/s (10^9 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Half are lower.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

impl Spread {
    /// Of at least one value.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        Self {
            median: (sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0,
            min: sorted[0],
            max: sorted[last],
        }
    }
}

/// The middle of `ours / theirs` in each round: what disturbs the machine for longer than a round disturbs both.
#[must_use]
pub fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let each: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    Spread::of(&each).median
}

/// GB/s of each side in each round, after one round that does not count. Each round begins with another side.
///
/// # Errors
/// The first error of a side.
pub fn alternate(
    sides: &mut [Box<dyn Side>],
    memory: &mut Memory,
    effort: Effort,
) -> Result<Vec<Vec<f64>>, BenchError> {
    for side in sides.iter_mut() {
        side.round(memory, effort.turn / 4)?;
    }
    let mut rates = vec![Vec::with_capacity(effort.rounds); sides.len()];
    for round in 0..effort.rounds {
        for turn in 0..sides.len() {
            let index = (round + turn) % sides.len();
            rates[index].push(sides[index].round(memory, effort.turn)? / 1e9);
        }
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::{Extent, Job, Op};

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of(&[5.0]), Spread { median: 5.0, min: 5.0, max: 5.0 });
    }

    #[test]
    fn a_ratio_compares_rounds_not_medians() {
        // The machine was half as fast in two of three rounds.
        assert_eq!(ratio(&[4.0, 2.0, 2.0], &[2.0, 1.0, 1.0]), 2.0);
        assert_eq!(ratio(&[4.0, 2.0, 8.0], &[2.0, 2.0, 1.0]), 2.0);
    }

    struct Recorder(char, Rc<RefCell<String>>);

    impl Side for Recorder {
        fn name(&self) -> String {
            self.0.to_string()
        }

        fn round(&mut self, _: &mut Memory, _: Duration) -> Result<f64, BenchError> {
            self.1.borrow_mut().push(self.0);
            Ok(f64::from(u32::from(self.0)) * 1e9)
        }
    }

    #[test]
    fn sides_take_turns_in_each_round_and_another_one_begins_each() {
        let log = Rc::new(RefCell::new(String::new()));
        let mut sides: Vec<Box<dyn Side>> = Vec::new();
        for name in ['a', 'b', 'c'] {
            sides.push(Box::new(Recorder(name, log.clone())));
        }
        let job = Job::new("3+2".parse().unwrap(), Op::Encode, Extent::Chunk(64), 3);
        let effort = Effort { rounds: 3, turn: Duration::ZERO };
        let rates = alternate(&mut sides, &mut Memory::new(&job, 3, 2), effort).unwrap();
        assert_eq!(*log.borrow(), "abc abc bca cab".replace(' ', ""));
        assert_eq!(rates, vec![vec![97.0; 3], vec![98.0; 3], vec![99.0; 3]]);
    }
}
