//! Operators' requests that wait for the coordinator's answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;
use types::AdminReply;

use crate::limits::ADMIN_REQUESTS;

/// Requests that wait for the coordinator's answer.
#[derive(Debug, Default)]
pub(crate) struct Desk(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last: u64,
    waiting: BTreeMap<u64, oneshot::Sender<AdminReply>>,
}

impl Desk {
    /// A place for one more request; none if too many wait.
    pub(crate) fn open(&self) -> Option<(Ticket<'_>, oneshot::Receiver<AdminReply>)> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.waiting.len() >= ADMIN_REQUESTS {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        open.last += 1;
        let id = open.last;
        open.waiting.insert(id, sender);
        Some((Ticket { desk: self, id }, receiver))
    }

    /// The coordinator has answered.
    pub(crate) fn answer(&self, id: u64, reply: AdminReply) {
        if let Some(waiting) = self.close(id) {
            let _ = waiting.send(reply);
        }
    }

    fn close(&self, id: u64) -> Option<oneshot::Sender<AdminReply>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&id)
    }
}

/// The place of a request, given back also where its client does not wait for the answer.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    desk: &'a Desk,
    pub id: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        drop(self.desk.close(self.id));
    }
}

#[cfg(test)]
mod tests {
    use types::AdminError;

    use super::*;

    #[test]
    fn requests_beyond_the_bound_are_refused_and_answers_find_theirs() {
        let desk = Desk::default();
        let mut open: Vec<_> = (0..ADMIN_REQUESTS).map(|_| desk.open().unwrap()).collect();
        assert!(desk.open().is_none());
        let (ticket, mut receiver) = open.pop().unwrap();
        desk.answer(ticket.id, Err(AdminError::NotFormed));
        desk.answer(ticket.id, Err(AdminError::NotFormed));
        assert_eq!(receiver.try_recv().unwrap(), Err(AdminError::NotFormed));
        open.push(desk.open().expect("one place is free"));
        assert!(desk.open().is_none());
        // Their clients have gone away without waiting.
        open.clear();
        assert!((0..ADMIN_REQUESTS).map(|_| desk.open()).collect::<Vec<_>>().iter().all(Option::is_some));
    }
}
