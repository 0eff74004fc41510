//! What a scan has to bring: keys that are there from its beginning to its end, and none that are not there all the time.

use types::{NamespaceId, split_key};

use super::Clients;
use types::op::Op;

/// The keys of a namespace when a scan of them begins.
#[derive(Debug)]
pub(crate) struct Watch {
    namespace: NamespaceId,
    /// Calls that had begun by then.
    calls: usize,
    /// Keys that are there, whatever has become of calls that are under way.
    present: Vec<usize>,
    /// Keys that are not there, and that nothing under way can bring.
    absent: Vec<usize>,
}

/// The newest calls that may have made a key come or go: how many had begun before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    came: Option<usize>,
    went: Option<usize>,
}

impl Turns {
    /// A call begins.
    pub(super) fn note(&mut self, op: &Op, calls: usize) {
        match op {
            // A time to live may end meanwhile; what is stored under a condition, or without one, leaves a key that is there.
            Op::Store(store) if store.expiry == types::op::Expiry::Never => self.came = Some(calls),
            Op::Store(_) | Op::Arith(_) => (self.came, self.went) = (Some(calls), Some(calls)),
            Op::Delete(_) | Op::Flush(_) | Op::Touch(_) => self.went = Some(calls),
            Op::Get(get) if get.may_change() => self.went = Some(calls),
            Op::Get(_) | Op::Debug | Op::Object(_) | Op::Session | Op::Scan(_) | Op::Expect(_) => {}
        }
    }
}

impl Clients {
    /// A scan of the keys of `namespace` begins.
    pub(crate) fn watch(&self, namespace: NamespaceId) -> Watch {
        let keys = self.keys_in(namespace);
        let of = |test: fn(&crate::oracle::Oracle) -> bool| {
            keys.iter().copied().filter(|key| test(&self.oracles[*key])).collect()
        };
        let (present, absent) =
            (of(crate::oracle::Oracle::is_surely_there), of(crate::oracle::Oracle::is_surely_not_there));
        Watch { namespace, calls: self.calls.len(), present, absent }
    }

    /// The scan has ended with these keys, as their clients call them: what is wrong about that, if anything is.
    pub(crate) fn judge(&self, watch: &Watch, seen: &[bytes::Bytes]) -> Option<String> {
        let is_of =
            |key: &usize, client: &[u8]| split_key(&self.keys[*key].bytes) == (watch.namespace, client);
        let shown = |key: usize| self.keys[key].bytes.escape_ascii().to_string();
        for client in seen {
            let Some(key) = (0..self.keys.len()).find(|key| is_of(key, client)) else {
                return Some(format!("it brings \"{}\", which nobody has written", client.escape_ascii()));
            };
            let came = self.turns[key].came.is_some_and(|calls| calls >= watch.calls);
            if watch.absent.contains(&key) && !came {
                return Some(format!("it brings \"{}\", which has not been there since", shown(key)));
            }
        }
        let stayed = |key: &&usize| {
            self.turns[**key].went.is_none_or(|calls| calls < watch.calls)
                && self.oracles[**key].is_surely_there()
        };
        let was_seen = |key: &usize| seen.iter().any(|client| is_of(key, client));
        let missed = watch.present.iter().filter(stayed).find(|key| !was_seen(key));
        missed.map(|key| format!("it lacks \"{}\", which was there throughout", shown(*key)))
    }
}
