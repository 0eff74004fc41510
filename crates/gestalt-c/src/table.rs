//! Clients, requests, queues and scans by their numbers. A number is never used again, so a stale one leads nowhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client::Client;
use crate::codes::{Failure, Status};
use crate::fork;
use crate::queue::Queue;
use crate::request::Request;
use crate::scan::Scan;

/// Most clients, most queues and most scans of a process.
const MAX_EACH: usize = 4096;

/// See the module.
pub(crate) struct Table {
    last: u64,
    clients: BTreeMap<u64, Arc<Client>>,
    queues: BTreeMap<u64, Arc<Queue>>,
    requests: BTreeMap<u64, Arc<Request>>,
    scans: BTreeMap<u64, Arc<Scan>>,
}

static TABLE: Mutex<Table> = Mutex::new(Table::after(0));

/// The one of this process.
pub(crate) fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn none(what: &str, handle: u64) -> Failure {
    Failure::of(Status::Handle, format!("{what} {handle}"))
}

impl Table {
    /// An empty one, whose numbers come after this one.
    const fn after(last: u64) -> Self {
        Self {
            last,
            clients: BTreeMap::new(),
            queues: BTreeMap::new(),
            requests: BTreeMap::new(),
            scans: BTreeMap::new(),
        }
    }

    /// All numbers lead nowhere from now on. What they led to is left alone, for it belongs to threads that are not here.
    pub(crate) fn forsake(&mut self) {
        let last = self.last;
        std::mem::forget(std::mem::replace(self, Self::after(last)));
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn add_client(&mut self, client: Arc<Client>) -> Result<u64, Failure> {
        fork::heed();
        if self.clients.len() >= MAX_EACH {
            return Err(Failure::of(Status::Full, "clients"));
        }
        let handle = self.next();
        self.clients.insert(handle, client);
        Ok(handle)
    }

    pub(crate) fn add_queue(&mut self, queue: Arc<Queue>) -> Result<u64, Failure> {
        if self.queues.len() >= MAX_EACH {
            return Err(Failure::of(Status::Full, "queues"));
        }
        let handle = self.next();
        self.queues.insert(handle, queue);
        Ok(handle)
    }

    pub(crate) fn add_scan(&mut self, scan: Arc<Scan>) -> Result<u64, Failure> {
        if self.scans.len() >= MAX_EACH {
            return Err(Failure::of(Status::Full, "scans"));
        }
        let handle = self.next();
        self.scans.insert(handle, scan);
        Ok(handle)
    }

    /// A request under its number, before anything is asked: its end may be told at once.
    pub(crate) fn add_request(&mut self, make: impl FnOnce(u64) -> Request) -> Arc<Request> {
        let handle = self.next();
        let request = Arc::new(make(handle));
        self.requests.insert(handle, Arc::clone(&request));
        request
    }

    pub(crate) fn client(&self, handle: u64) -> Result<Arc<Client>, Failure> {
        self.clients.get(&handle).cloned().ok_or_else(|| none("client", handle))
    }

    pub(crate) fn queue(&self, handle: u64) -> Result<Arc<Queue>, Failure> {
        self.queues.get(&handle).cloned().ok_or_else(|| none("queue", handle))
    }

    pub(crate) fn request(&self, handle: u64) -> Result<Arc<Request>, Failure> {
        self.requests.get(&handle).cloned().ok_or_else(|| none("request", handle))
    }

    pub(crate) fn scan(&self, handle: u64) -> Result<Arc<Scan>, Failure> {
        self.scans.get(&handle).cloned().ok_or_else(|| none("scan", handle))
    }

    pub(crate) fn take_client(&mut self, handle: u64) -> Result<Arc<Client>, Failure> {
        self.clients.remove(&handle).ok_or_else(|| none("client", handle))
    }

    pub(crate) fn take_queue(&mut self, handle: u64) -> Result<Arc<Queue>, Failure> {
        self.queues.remove(&handle).ok_or_else(|| none("queue", handle))
    }

    pub(crate) fn take_request(&mut self, handle: u64) -> Result<Arc<Request>, Failure> {
        self.requests.remove(&handle).ok_or_else(|| none("request", handle))
    }

    pub(crate) fn take_scan(&mut self, handle: u64) -> Result<Arc<Scan>, Failure> {
        self.scans.remove(&handle).ok_or_else(|| none("scan", handle))
    }
}
