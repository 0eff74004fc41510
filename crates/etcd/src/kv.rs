//! Keys and values: reading ranges, and transactions.

use crate::client::Repeat;
use crate::messages::{
    self, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest, RangeResponse, Request, RequestOp, Target,
    TxnRequest, TxnResponse,
};
use crate::{Client, Error, LeaseId};

/// Most operations of one transaction; etcd's own default (`--max-txn-ops`).
pub const MAX_TXN_OPS: usize = 128;
/// Keys of one answer.
const PAGE_KEYS: usize = 1024;
/// Keys of one range.
const MAX_KEYS: usize = 65_536;

/// A key, its value, and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub key: Vec<u8>,
    /// What was put.
    pub value: Vec<u8>,
    /// The revision at which it came into being; another one after each deletion.
    pub create_revision: i64,
    /// The revision of its last change.
    pub mod_revision: i64,
    /// The lease that it lives by.
    pub lease: Option<LeaseId>,
}

impl From<KeyValue> for Entry {
    fn from(kv: KeyValue) -> Self {
        let KeyValue { key, value, create_revision, mod_revision, lease } = kv;
        Self { key, value, create_revision, mod_revision, lease: (lease != 0).then_some(LeaseId(lease)) }
    }
}

/// Everything under a prefix, at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// By key, ascending.
    pub entries: Vec<Entry>,
    /// The revision of the whole store.
    pub revision: i64,
}

/// What must be true for a transaction to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key came into being at this revision; 0 = there is no such key.
    Created(Vec<u8>, i64),
    /// The key was last changed at this revision; 0 = there is no such key.
    Changed(Vec<u8>, i64),
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Write a key.
    Put {
        /// Its name.
        key: Vec<u8>,
        /// What it is to hold.
        value: Vec<u8>,
        /// The lease with which it vanishes.
        lease: Option<LeaseId>,
    },
    /// Remove a key.
    Delete(Vec<u8>),
}

/// If all of `compares` are true, do all of `ops`, at once. No key twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// Conditions.
    pub compares: Vec<Compare>,
    /// At most [`MAX_TXN_OPS`].
    pub ops: Vec<Op>,
}

/// What has become of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnOutcome {
    /// It is done; all its keys were changed at this revision.
    Done(i64),
    /// A condition does not hold: nothing is done.
    Failed,
}

impl Client {
    /// Everything whose key begins with `prefix`, as of now, or as of `revision`.
    ///
    /// # Errors
    /// If no member answers.
    pub async fn range(&self, prefix: &[u8]) -> Result<Range, Error> {
        let mut entries: Vec<Entry> = Vec::new();
        let (mut key, mut revision) = (prefix.to_vec(), 0);
        loop {
            let question = RangeRequest {
                key: key.clone(),
                range_end: end_of(prefix),
                limit: PAGE_KEYS as i64,
                revision,
            };
            let page: RangeResponse = self.unary("/etcdserverpb.KV/Range", question, Repeat::Always).await?;
            // All further pages as of the first one, so that together they are one moment.
            if revision == 0 {
                revision = page.header.map_or(0, |header| header.revision);
            }
            entries.extend(page.kvs.into_iter().map(Entry::from));
            match entries.last() {
                // The least key after the last one.
                Some(last) if page.more => key = [&last.key[..], &[0]].concat(),
                _ => return Ok(Range { entries, revision }),
            }
            if entries.len() > MAX_KEYS {
                return Err(Error::TooMany(MAX_KEYS));
            }
        }
    }

    /// Does `txn` or nothing.
    ///
    /// # Errors
    /// [`Error::Unanswered`] if it may have been done; any other if it was not.
    pub async fn txn(&self, txn: Txn) -> Result<TxnOutcome, Error> {
        let question = TxnRequest {
            compare: txn.compares.into_iter().map(compare).collect(),
            success: txn.ops.into_iter().map(operation).collect(),
        };
        let answer: TxnResponse = self.unary("/etcdserverpb.KV/Txn", question, Repeat::IfNotDone).await?;
        if !answer.succeeded {
            return Ok(TxnOutcome::Failed);
        }
        Ok(TxnOutcome::Done(answer.header.map_or(0, |header| header.revision)))
    }
}

fn compare(compare: Compare) -> messages::Compare {
    const EQUAL: i32 = 0;
    const CREATE: i32 = 1;
    const MOD: i32 = 2;
    let (target, key, union) = match compare {
        Compare::Created(key, revision) => (CREATE, key, Target::CreateRevision(revision)),
        Compare::Changed(key, revision) => (MOD, key, Target::ModRevision(revision)),
    };
    messages::Compare { result: EQUAL, target, key, target_union: Some(union) }
}

fn operation(op: Op) -> RequestOp {
    let request = match op {
        Op::Put { key, value, lease } => {
            Request::Put(PutRequest { key, value, lease: lease.map_or(0, |lease| lease.0) })
        }
        Op::Delete(key) => Request::DeleteRange(DeleteRangeRequest { key }),
    };
    RequestOp { request: Some(request) }
}

/// The first key after all that begin with `prefix`; `\0`, "to the very end", if there is none.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_before_the_next_prefix() {
        assert_eq!(end_of(b"/gestalt/a/"), b"/gestalt/a0");
        assert_eq!(end_of(&[7, 255, 255]), [8]);
        assert_eq!(end_of(&[255]), [0]);
    }
}
