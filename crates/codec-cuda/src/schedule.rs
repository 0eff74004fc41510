//! Sums of several rows over the same terms, with what they share computed once.
//!
//! A card adds three words in one instruction. So a sum of three terms that two rows share saves one, and a sum of two terms pays
//! from three rows on. The best one is taken first, again and again [Paar 1997, for two terms].

use std::fmt::Write;

/// Most terms of all rows together for which threes are looked for: there are many of them.
const MAX_TERMS_FOR_THREES: usize = 1200;

/// In place of a third term.
const NONE: usize = usize::MAX;

/// Sums, in the order in which they are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    inputs: usize,
    /// Sums of two or three terms; the first one is term number `inputs`.
    shared: Vec<Vec<usize>>,
    /// The terms of each row, ascending.
    rows: Vec<Vec<usize>>,
}

impl Schedule {
    /// For rows of terms below `inputs`.
    pub(crate) fn of(inputs: usize, rows: Vec<Vec<usize>>) -> Self {
        let threes = rows.iter().map(Vec::len).sum::<usize>() <= MAX_TERMS_FOR_THREES;
        let mut schedule = Self { inputs, shared: Vec::new(), rows };
        while let Some(sum) = schedule.best(threes) {
            schedule.share(sum);
        }
        schedule
    }

    /// The sum that saves most, if there is one that saves anything.
    fn best(&self, threes: bool) -> Option<Vec<usize>> {
        let mut candidates: Vec<[usize; 3]> = Vec::new();
        for row in &self.rows {
            for (i, a) in row.iter().enumerate() {
                for (j, b) in row.iter().enumerate().skip(i + 1) {
                    candidates.push([*a, *b, NONE]);
                    candidates.extend(row.iter().skip(j + 1).filter(|_| threes).map(|c| [*a, *b, *c]));
                }
            }
        }
        candidates.sort_unstable();
        let uses = candidates.chunk_by(|a, b| a == b).map(|same| (same[0], same.len()));
        // In half instructions: a row has two terms fewer for a three, one for a two; the sum itself is one instruction.
        let gain = |(terms, uses): &([usize; 3], usize)| {
            let each = if terms[2] == NONE { 1 } else { 2 };
            (uses * each).saturating_sub(2)
        };
        let all = uses.filter(|entry| gain(entry) > 0);
        // The lowest terms among equals: the same text for the same matrix.
        let (terms, _) = all.max_by_key(|entry| (gain(entry), std::cmp::Reverse(entry.0)))?;
        Some(terms.into_iter().filter(|term| *term != NONE).collect())
    }

    fn share(&mut self, sum: Vec<usize>) {
        let term = self.inputs + self.shared.len();
        for row in &mut self.rows {
            if sum.iter().all(|part| row.binary_search(part).is_ok()) {
                row.retain(|part| !sum.contains(part));
                row.push(term);
            }
        }
        self.shared.push(sum);
    }

    /// Instructions that add up to three words.
    pub(crate) fn additions(&self) -> usize {
        self.shared.len() + self.rows.iter().map(|row| row.len() / 2).sum::<usize>()
    }

    /// Definitions of all shared sums, `t0` and so on; inputs are `x[0]` and so on.
    pub(crate) fn write_shared(&self, text: &mut String) {
        for (number, sum) in self.shared.iter().enumerate() {
            let _ = writeln!(text, "        const u32 t{number} = {};", self.terms(sum));
        }
    }

    /// The sum of row `row`; nothing for a row without terms.
    pub(crate) fn row(&self, row: usize) -> Option<String> {
        let terms = &self.rows[row];
        (!terms.is_empty()).then(|| self.terms(terms))
    }

    fn terms(&self, terms: &[usize]) -> String {
        let name = |term: &usize| match term.checked_sub(self.inputs) {
            None => format!("x[{term}]"),
            Some(shared) => format!("t{shared}"),
        };
        terms.iter().map(name).collect::<Vec<_>>().join(" ^ ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of all rows.
    fn values(schedule: &Schedule, inputs: &[u32]) -> Vec<u32> {
        let mut terms = inputs.to_vec();
        for sum in &schedule.shared {
            terms.push(sum.iter().fold(0, |all, term| all ^ terms[*term]));
        }
        schedule.rows.iter().map(|row| row.iter().fold(0, |all, term| all ^ terms[*term])).collect()
    }

    #[test]
    fn what_two_rows_share_is_added_once() {
        let schedule = Schedule::of(5, vec![vec![0, 1, 2, 3], vec![0, 1, 2, 4], vec![3]]);
        assert_eq!((schedule.shared.len(), schedule.additions()), (1, 3));
        let mut text = String::new();
        schedule.write_shared(&mut text);
        assert_eq!(text.trim(), "const u32 t0 = x[0] ^ x[1] ^ x[2];");
        assert_eq!(schedule.row(0), Some("x[3] ^ t0".to_owned()));
        assert_eq!(Schedule::of(3, vec![vec![]]).row(0), None);
    }

    #[test]
    fn nothing_is_shared_where_that_saves_nothing() {
        let rows = vec![vec![0, 1, 2], vec![0, 1, 3]];
        assert_eq!(Schedule::of(4, rows.clone()), Schedule { inputs: 4, shared: vec![], rows });
    }

    proptest! {
        #[test]
        fn sums_are_right_and_cost_no_more(masks in proptest::collection::vec(any::<u16>(), 1..40)) {
            let rows: Vec<Vec<usize>> =
                masks.iter().map(|mask| (0..16).filter(|bit| mask >> bit & 1 == 1).collect()).collect();
            let schedule = Schedule::of(16, rows.clone());
            let plain = Schedule { inputs: 16, shared: vec![], rows };
            let inputs: Vec<u32> = (0..16).map(|bit| 1 << bit).collect();
            prop_assert_eq!(values(&schedule, &inputs), values(&plain, &inputs));
            prop_assert!(schedule.additions() <= plain.additions());
        }
    }
}
