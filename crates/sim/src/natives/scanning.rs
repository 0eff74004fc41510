//! A scan of a process: by the very walk that clients use.

use std::collections::BTreeMap;

use bytes::Bytes;
use client_core::{Done, Error, Op, Operation, RequestId, ScanOp, Step, Walk};
use native::Code;

use crate::clients::Watch;

/// See the module.
pub(crate) struct Scanning {
    walk: Walk,
    /// What had to be there when it began.
    pub watch: Watch,
    /// Keys that have come.
    pub seen: Vec<Bytes>,
    /// Which data role each request is about.
    asked: BTreeMap<RequestId, u32>,
    page_keys: u16,
}

/// What has come of a page.
pub(crate) enum Came {
    /// It goes on.
    More,
    /// That was all.
    All,
    /// Nothing comes of the scan.
    Nothing,
    /// Nothing comes of it, for a reason that there cannot be.
    Wrong(Error),
}

impl Scanning {
    pub(crate) fn new(watch: Watch, page_keys: u16, at_once: usize) -> Self {
        Self { walk: Walk::new(at_once), watch, seen: Vec::new(), asked: BTreeMap::new(), page_keys }
    }

    /// What is to be asked now.
    pub(crate) fn ask(&mut self) -> Option<(u32, Operation)> {
        let Step { role, from } = self.walk.ask()?;
        let scan = ScanOp { role, from, prefix: Bytes::new(), keys: self.page_keys, bytes: 1 << 14 };
        Some((role, Operation { key: Bytes::new(), op: Op::Scan(scan), timeout_us: None }))
    }

    /// It is asked under this number.
    pub(crate) fn asked(&mut self, id: RequestId, role: u32) {
        self.asked.insert(id, role);
    }

    /// Whether this is one of its requests.
    pub(crate) fn waits_for(&self, id: RequestId) -> bool {
        self.asked.contains_key(&id)
    }

    /// Requests that nobody waits for from now on.
    pub(crate) fn into_asked(self) -> impl Iterator<Item = RequestId> {
        self.asked.into_keys()
    }

    /// A request has ended.
    pub(crate) fn come(&mut self, id: RequestId, result: Result<Done, Error>) -> Came {
        let Some(role) = self.asked.remove(&id) else { return Came::More };
        match result {
            Ok(Done::Keys(page, roles)) => {
                self.seen.extend(page.keys);
                self.walk.come(role, page.next, roles);
                if self.walk.is_over() { Came::All } else { Came::More }
            }
            // A seed damages no memory, has few keys, and allows scans.
            Err(error @ Error::Code(Code::Corrupt | Code::TooLarge | Code::ScansOff)) => Came::Wrong(error),
            Err(_) => Came::Nothing,
            Ok(_) => Came::Wrong(Error::Unknown),
        }
    }
}
