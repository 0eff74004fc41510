//! One scan: the keys of a client's namespace, one after the other.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use bytes::Bytes;
use gestalt::raw::Scanner;
use tokio::sync::Mutex;

use crate::client::Client;
use crate::codes::{Failure, Status};

/// See the module. Who asks for a key while another one waits for one gets the next.
pub(crate) struct Scan(Mutex<Scanner>);

impl Scan {
    /// Nothing is asked before the first key is.
    pub(crate) fn begin(client: &Client, prefix: Bytes) -> Self {
        Self(Mutex::new(client.scan(prefix)))
    }

    /// The next key, none at the end. `Pending` if it has not come by then: nothing is lost.
    pub(crate) fn next(&self, until: Option<Instant>) -> Result<Option<Bytes>, Failure> {
        let come = wait_for(async { self.0.lock().await.next().await }, until);
        Ok(come.ok_or(Status::Pending)??)
    }
}

struct Waiting(Thread);

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread, whatever becomes of the client's; none if it takes longer.
fn wait_for<T>(what: impl Future<Output = T>, until: Option<Instant>) -> Option<T> {
    let mut what = pin!(what);
    let waker = Waker::from(Arc::new(Waiting(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(come) = what.as_mut().poll(&mut context) {
            return Some(come);
        }
        match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(left) if left.is_zero() => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}
