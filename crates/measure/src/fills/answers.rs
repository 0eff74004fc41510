//! What rows of enough runs say of two questions: whether `auto` is about as fast as the best way, and whether any scheme is slower coherently.

use super::rows::Filled;

/// Runs of which the median is an answer.
const ENOUGH: usize = 7;
/// What differs by less is alike.
const ALIKE: f64 = 1.01;
/// How much longer `auto` may take.
const NEAR: f64 = 1.10;

/// A paragraph; nothing if no row has enough runs.
pub(super) fn answers(all: &[Filled]) -> String {
    let rows: Vec<&Filled> = all.iter().filter(|row| row.runs >= ENOUGH).collect();
    let autos: Vec<f64> = ratios(
        &rows,
        |row| row.way == "auto",
        |auto, other| other.is_coherent() && auto.is_in_scene_of(other),
    )
    .map(|(_, ratio)| ratio)
    .collect();
    let coherent: Vec<(&Filled, f64)> = ratios(
        &rows,
        |row| row.is_coherent() && row.way != "auto",
        |row, other| !other.is_coherent() && row.way == other.way && row.is_in_scene_of(other),
    )
    .collect();
    if autos.is_empty() && coherent.is_empty() {
        return String::new();
    }
    let of_coherent = || coherent.iter().map(|(_, ratio)| *ratio);
    format!(
        "Of what was run {ENOUGH} times: `auto` takes at most {NEAR} times as long as the best way in {} of {} cells ({:.2} at most); coherently no longer than\n\
         incoherently, or less than a hundredth longer, are {} of {} (from {:.2} to {:.2} times as long){}.\n\n",
        autos.iter().filter(|ratio| **ratio <= NEAR).count(),
        autos.len(),
        most(autos.iter().copied()),
        of_coherent().filter(|ratio| *ratio < ALIKE).count(),
        coherent.len(),
        of_coherent().fold(f64::MAX, f64::min),
        most(of_coherent()),
        slower(&coherent),
    )
}

/// Names what is slower coherently.
fn slower(coherent: &[(&Filled, f64)]) -> String {
    let name = |(row, ratio): &(&Filled, f64)| {
        let Filled { way, code, chunk, mbit, .. } = row;
        format!("; {way} of {code} in chunks of {chunk} KiB at {mbit} Mbit/s takes {ratio:.2} times as long")
    };
    coherent.iter().filter(|(_, ratio)| *ratio >= ALIKE).map(name).collect()
}

/// How many times as long as the fastest of those that it is compared with each row takes.
fn ratios<'a>(
    rows: &'a [&'a Filled],
    is_meant: impl Fn(&Filled) -> bool,
    compares: impl Fn(&Filled, &Filled) -> bool,
) -> impl Iterator<Item = (&'a Filled, f64)> {
    rows.iter().copied().filter(move |row| is_meant(row)).filter_map(move |row| {
        let others = rows.iter().filter(|other| compares(row, other)).map(|other| other.per_byte());
        others.reduce(f64::min).map(|best| (row, row.per_byte() / best))
    })
}

fn most(ratios: impl Iterator<Item = f64>) -> f64 {
    ratios.fold(0.0, f64::max)
}

impl Filled {
    fn is_coherent(&self) -> bool {
        self.execution == "coherent"
    }

    fn is_in_scene_of(&self, other: &Self) -> bool {
        let scene = |row: &Self| (row.code.clone(), row.mbit, row.trouble, row.chunk);
        scene(self) == scene(other)
    }

    fn per_byte(&self) -> f64 {
        self.seconds[0] / self.bytes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fills::rows::Trouble;

    fn row(way: &str, execution: &str, seconds: f64, runs: usize) -> Filled {
        let (way, execution) = (way.to_owned(), execution.to_owned());
        let (code, mbit, trouble, chunk) = ("rs(3+2)".to_owned(), 100, Trouble::None, 1024);
        let (bytes, seconds, sent_bytes, cpu_seconds) = (1, [seconds; 3], 1, 0.0);
        Filled { code, mbit, trouble, runs, way, execution, chunk, bytes, seconds, sent_bytes, cpu_seconds }
    }

    #[test]
    fn rows_of_few_runs_answer_nothing_and_others_are_compared_with_the_best() {
        let rows = |runs| {
            [("chain", "coherent", 1.0), ("auto", "coherent", 1.2), ("chain", "incoherent", 2.0)]
                .map(|(way, execution, seconds)| row(way, execution, seconds, runs))
        };
        assert_eq!(answers(&rows(3)), "");
        let said = answers(&rows(7));
        assert!(said.contains("0 of 1 cells (1.20 at most)"), "{said}");
        assert!(said.contains("1 of 1 (from 0.50 to 0.50 times as long)."), "{said}");
    }

    #[test]
    fn what_is_slower_coherently_is_named() {
        let rows = [row("ppr", "coherent", 1.02, 7), row("ppr", "incoherent", 1.0, 7)];
        let said = answers(&rows);
        assert!(said.contains("0 of 1 (from 1.02"), "{said}");
        assert!(
            said.contains("; ppr of rs(3+2) in chunks of 1024 KiB at 100 Mbit/s takes 1.02 times"),
            "{said}"
        );
    }
}
