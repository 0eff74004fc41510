//! One real key, for making histories that are right: operations are executed one by one at moments of their own, and
//! clients see each as an interval around its moment, or never see it end.

use super::history::{Answer, Bytes, Moment, Op, Operation, Outcome};

/// What to do, when, and what becomes of it.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What.
    pub op: Op,
    /// The time of the invocation.
    pub begin: u64,
    /// From the invocation to the effect.
    pub delay: u64,
    /// From the effect to the answer.
    pub length: u64,
    /// What becomes of it.
    pub fate: Fate,
    /// Whether a read asks for the unique.
    pub with_cas: bool,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It takes effect and is answered.
    Answered,
    /// No answer, took effect.
    Silent,
    /// No answer, no effect.
    Lost,
}

/// The history of a correct server that holds one key, `k`. Uniques count from 1.
#[must_use]
pub fn history(drafts: &[Draft]) -> Vec<Operation> {
    let mut server = Server::default();
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_key(|index| drafts[*index].begin + drafts[*index].delay);
    order.into_iter().map(|index| server.play(index as u64, &drafts[index])).collect()
}

#[derive(Default)]
struct Server {
    item: Option<(Vec<u8>, u64)>,
    version: u64,
}

impl Server {
    /// Executes a draft unless it is lost, and tells what its client sees.
    fn play(&mut self, client: u64, draft: &Draft) -> Operation {
        let moment = |time| Moment { time, order: 0 };
        let outcome = (draft.fate != Fate::Lost).then(|| self.execute(&draft.op));
        let outcome = outcome.filter(|_| draft.fate == Fate::Answered).map(|outcome| match outcome {
            Outcome::Value { value, .. } if !draft.with_cas => Outcome::Value { value, cas: None },
            other => other,
        });
        let at = moment(draft.begin + draft.delay + draft.length);
        let answer = outcome.map(|outcome| Answer { at, outcome });
        Operation { client, key: "k".into(), op: draft.op.clone(), invoked: moment(draft.begin), answer }
    }

    fn store(&mut self, value: &[u8]) -> Outcome {
        self.version += 1;
        self.item = Some((value.to_vec(), self.version));
        Outcome::Stored
    }

    fn execute(&mut self, op: &Op) -> Outcome {
        let held = self.item.clone();
        match (op, held) {
            (Op::Get, Some((value, cas))) => Outcome::Value { value: Bytes(value), cas: Some(cas) },
            (Op::Set(value), _) | (Op::Add(value), None) | (Op::Replace(value), Some(_)) => {
                self.store(&value.0)
            }
            (Op::Add(_), Some(_)) | (Op::Replace(_) | Op::Append(_), None) => Outcome::NotStored,
            (Op::Append(suffix), Some((value, _))) => self.store(&[value, suffix.0.clone()].concat()),
            (Op::Cas { value, unique }, Some((_, cas))) if cas == *unique => self.store(&value.0),
            (Op::Cas { .. }, Some(_)) => Outcome::Exists,
            (Op::Delete, Some(_)) => {
                self.item = None;
                Outcome::Deleted
            }
            (Op::Touch, Some(_)) => Outcome::Touched,
            (Op::Flush, _) => {
                self.item = None;
                Outcome::Flushed
            }
            (Op::Incr(by), Some((value, _))) => self.count(&value, *by),
            (Op::Get | Op::Delete | Op::Touch | Op::Cas { .. } | Op::Incr(_), None) => Outcome::NotFound,
        }
    }

    fn count(&mut self, value: &[u8], by: u64) -> Outcome {
        let Some(number) = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()) else {
            return Outcome::NotNumber;
        };
        let sum = number.wrapping_add(by);
        self.store(sum.to_string().as_bytes());
        Outcome::Number(sum)
    }
}
