//! One client and its thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use gestalt::raw::{Scanner, Shell};
use nix::sys::signal::SigSet;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::codes::{Failure, Status};
use crate::structs;

/// The connection is made when something is asked.
pub(crate) const LAZY: u32 = 1;
/// Buffers of writes are compared at their end with what they were.
pub(crate) const CHECK_BUFFERS: u32 = 2;

/// See the module.
pub(crate) struct Client {
    pub shell: Arc<Shell>,
    runtime: Handle,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: Arc<Notify>,
    /// Whether buffers of writes are compared.
    pub checks: bool,
    /// Requests that have not been released.
    held: AtomicUsize,
    most: usize,
    /// Of requests that name none.
    timeout: Duration,
}

impl Client {
    /// One that has the map, unless it is to be lazy.
    pub(crate) fn connect(uri: &str, asked: &structs::Options) -> Result<Arc<Self>, Failure> {
        if asked.set & !(LAZY | CHECK_BUFFERS) != 0 {
            return Err(Failure::of(Status::Argument, "an unknown bit of the options is set"));
        }
        let bad = |error: gestalt::BadUri| Failure::of(Status::Uri, error.to_string());
        let mut options: gestalt::Options = uri.parse().map_err(bad)?;
        if asked.timeout_ms > 0 {
            options.timeout = Duration::from_millis(asked.timeout_ms);
        }
        if asked.window > 0 {
            options.window = asked.window;
        }
        if asked.max_requests > 0 {
            options.max_requests = asked.max_requests as usize;
        }
        let client = Arc::new(Self::start(&options, asked.set & CHECK_BUFFERS != 0)?);
        let has_map = || client.runtime.block_on(client.shell.has_map(options.timeout));
        if asked.set & LAZY != 0 || has_map() {
            return Ok(client);
        }
        client.close();
        Err(Failure::of(
            Status::Unreachable,
            format!("{uri}: is the cluster running, and is this the address of a native listener?"),
        ))
    }

    fn start(options: &gestalt::Options, checks: bool) -> Result<Self, Failure> {
        let system = |error: std::io::Error| Failure::of(Status::System, error.to_string());
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(system)?;
        let handle = runtime.handle().clone();
        let stop = Arc::new(Notify::new());
        let until = Arc::clone(&stop);
        let run = move || {
            // Signals are the program's own business; that nobody reads a socket any more is heard as an error.
            let _ = SigSet::all().thread_block();
            runtime.block_on(until.notified());
        };
        let thread = thread::Builder::new().name("gestalt".to_owned()).spawn(run).map_err(system)?;
        Ok(Self {
            shell: Arc::new(Shell::start(options.config(), handle.clone())),
            timeout: options.timeout,
            runtime: handle,
            thread: Mutex::new(Some(thread)),
            stop,
            checks: checks || cfg!(debug_assertions),
            held: AtomicUsize::new(0),
            most: options.max_requests,
        })
    }

    /// A scan of the keys that begin with `prefix`.
    pub(crate) fn scan(&self, prefix: Bytes) -> Scanner {
        Scanner::begin(Arc::clone(&self.shell), self.timeout, gestalt::Scan::of(prefix))
    }

    /// One more request is held.
    pub(crate) fn hold(&self) -> Result<(), Failure> {
        let one_more = |held| (held < self.most).then_some(held + 1);
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(()),
            Err(_) => Err(Status::Full.into()),
        }
    }

    /// One less.
    pub(crate) fn let_go(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends everything that is not over. When this returns the thread is gone.
    pub(crate) fn close(&self) {
        self.shell.close();
        self.stop.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
