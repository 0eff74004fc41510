//! Checking whole histories, and telling what is wrong with one.

use std::fmt;

use thiserror::Error;

use super::history::{Answer, Bytes, History, Moment, Op, Operation, Outcome};
use super::model::Model;
use super::search::{Known, Search, Verdict};

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps of the search for each key: about a microsecond and at most 100 bytes each. A history without violation
    /// usually needs about one for each operation.
    pub max_steps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 10_000_000 }
    }
}

/// Why a history did not pass.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// No order explains the answers.
    #[error("{0}")]
    Violation(Box<Violation>),
    /// The search was given up: too many operations at once, or too many unanswered ones that add up in too many ways.
    #[error(
        "key {key}: undecided after {max_steps} steps; record fewer concurrent or unanswered operations on a key"
    )]
    Undecided {
        /// Where.
        key: Bytes,
        /// The limit.
        max_steps: usize,
    },
}

/// The shortest prefix of a key's history that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key.
    pub key: Bytes,
    /// The operations of the prefix, by invocation. An answer that came after the prefix is left out.
    pub prefix: Vec<Operation>,
    /// Position in the prefix of the operation whose answer cannot be: without it, all is well.
    pub culprit: usize,
}

/// Checks that every key of `history` is linearizable.
///
/// # Errors
/// `Violation` of the first key (in byte order) that is not, or `Undecided`.
pub fn check(history: &History) -> Result<(), Failure> {
    check_within(history, Limits::default())
}

/// [`check`] with limits.
///
/// # Errors
/// As [`check`].
pub fn check_within(history: &History, limits: Limits) -> Result<(), Failure> {
    let mut undecided = Ok(());
    for (key, operations) in history.by_key() {
        match decide(operations.iter().map(|operation| (*operation, operation.answer.as_ref())), limits) {
            Verdict::Linearizable => {}
            // The search goes on: a violation at another key says more than a key that was given up.
            Verdict::Undecided => {
                undecided = Err(Failure::Undecided { key: key.clone(), max_steps: limits.max_steps });
            }
            Verdict::Violation => {
                return Err(Failure::Violation(Box::new(shortest(key, &operations, limits))));
            }
        }
    }
    undecided
}

/// Searches the operations of one key, each with the answer it has or is to be taken to have.
fn decide<'a>(
    operations: impl Iterator<Item = (&'a Operation, Option<&'a Answer>)> + Clone,
    limits: Limits,
) -> Verdict {
    let asked = |(operation, answer): (&'a Operation, Option<&'a Answer>)| -> (&'a Op, Option<&'a Outcome>) {
        (&operation.op, answer.map(|answer| &answer.outcome))
    };
    // From all operations at once: which values can be told apart depends on all that is ever read.
    let mut model = Model::new(operations.clone().map(asked));
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (operation, answer) in operations {
        let invoked = operation.invoked;
        match answer {
            Some(Answer { at, outcome }) => {
                let step = model.answered(&operation.op, outcome);
                known.push(Known { step, invoked, returned: *at });
            }
            None => unknown.extend(model.effect(&operation.op).map(|step| (step, invoked))),
        }
    }
    Search::new(&mut model, known, unknown).run(limits.max_steps)
}

/// The operations that were invoked before `end`, each with its answer if it came before the end.
fn prefix<'a>(
    operations: &'a [&'a Operation],
    end: Moment,
) -> impl Iterator<Item = (&'a Operation, Option<&'a Answer>)> + Clone {
    let begun = operations.iter().filter(move |operation| operation.invoked <= end);
    begun.map(move |operation| (*operation, operation.answer.as_ref().filter(|answer| answer.at <= end)))
}

/// Finds the first answer that makes `operations` a violation. Every prefix of a linearizable history is
/// linearizable, so a binary search over the answers finds it.
fn shortest(key: &Bytes, operations: &[&Operation], limits: Limits) -> Violation {
    let mut ends: Vec<Moment> =
        operations.iter().filter_map(|op| op.answer.as_ref()).map(|answer| answer.at).collect();
    ends.sort_unstable();
    let fails = |end: &Moment| matches!(decide(prefix(operations, *end), limits), Verdict::Violation);
    // A search that gives up counts as one that passes, so it may be that none fails.
    let end = ends[ends.partition_point(|end| !fails(end)).min(ends.len() - 1)];
    let taken =
        prefix(operations, end).map(|(op, answer)| Operation { answer: answer.cloned(), ..op.clone() });
    let mut taken: Vec<Operation> = taken.collect();
    taken.sort_by_key(|operation| operation.invoked);
    let last_answer =
        |operation: &Operation| operation.answer.as_ref().is_some_and(|answer| answer.at == end);
    Violation {
        key: key.clone(),
        culprit: taken.iter().position(last_answer).expect("the prefix ends with an answer"),
        prefix: taken,
    }
}

impl Violation {
    /// How many operations the text shows of those that began last, and of those that are about the same value.
    const SHOWN: usize = 20;

    /// The value that the culprit saw.
    fn seen(&self) -> Option<Bytes> {
        match self.prefix[self.culprit].answer.as_ref().map(|answer| &answer.outcome) {
            Some(Outcome::Value { value, .. }) => Some(value.clone()),
            _ => None,
        }
    }

    /// Positions of the operations to show: the last ones, and those that wrote or saw what the culprit saw.
    fn telling(&self) -> Vec<usize> {
        let seen = self.seen();
        let is_about = |operation: &Operation| {
            let written = match &operation.op {
                Op::Set(value) | Op::Add(value) | Op::Replace(value) | Op::Cas { value, .. } => Some(value),
                _ => None,
            };
            let read = match operation.answer.as_ref().map(|answer| &answer.outcome) {
                Some(Outcome::Value { value, .. }) => Some(value),
                _ => None,
            };
            seen.is_some() && (written == seen.as_ref() || read == seen.as_ref())
        };
        let recent = self.prefix.len().saturating_sub(Self::SHOWN);
        let older = (0..recent).filter(|index| is_about(&self.prefix[*index])).take(Self::SHOWN);
        older.chain(recent..self.prefix.len()).collect()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "key {} is not linearizable: nothing explains this answer", self.key)?;
        writeln!(f, "  {}", self.prefix[self.culprit])?;
        let telling = self.telling();
        writeln!(f, "operations on the key, {} of {}:", telling.len(), self.prefix.len())?;
        for index in telling {
            let sign = if index == self.culprit { '>' } else { ' ' };
            writeln!(f, "{sign} {}", self.prefix[index])?;
        }
        Ok(())
    }
}
