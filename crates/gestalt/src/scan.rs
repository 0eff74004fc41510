//! Which keys there are.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use client_core::{Done, Error, Op, Operation, ScanOp, Step, Walk};
use futures_core::Stream;
use native::Code;
use tokio::sync::mpsc;
use types::{MAX_PAGE_KEYS, ScanPage};

use crate::options::micros;
use crate::shell::{Shell, Sink};

/// Data roles that are scanned side by side.
const ROLES_AT_ONCE: usize = 4;
/// Beyond so many bytes of keys a page gets no further one.
const PAGE_BYTES: u32 = 16 * 1024;

/// Which keys are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan {
    /// Those that begin with this; all, if it is empty.
    pub prefix: Bytes,
    /// How many one request may bring, from 1 to 256.
    pub page_keys: u16,
    /// How many data roles are asked side by side, at least one.
    pub at_once: usize,
}

impl Default for Scan {
    fn default() -> Self {
        Self { prefix: Bytes::new(), page_keys: MAX_PAGE_KEYS as u16, at_once: ROLES_AT_ONCE }
    }
}

impl Scan {
    /// Of keys that begin with `prefix`.
    pub fn of(prefix: impl Into<Bytes>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }
}

/// What has come of a page: of which data role, of how many.
type Come = (u32, Result<(Box<ScanPage>, u32), Error>);

/// Keys, as they come: a stream of them. In no order, each that is there from the beginning to the end at least once, some perhaps twice. Dropped
/// before its end it asks for no more.
pub struct Scanner {
    shell: Arc<Shell>,
    /// For each page.
    timeout_us: u64,
    scan: Scan,
    walk: Walk,
    keys: VecDeque<Bytes>,
    damaged: u64,
    /// As many may be in it as are asked for at once.
    come: mpsc::UnboundedReceiver<Come>,
    sender: mpsc::UnboundedSender<Come>,
    has_failed: bool,
}

/// Tells a scanner of a page.
struct Page {
    role: u32,
    sender: mpsc::UnboundedSender<Come>,
}

impl Sink for Page {
    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let page = result.and_then(|done| match done {
            Done::Keys(page, roles) => Ok((page, roles)),
            Done::Answer(answer) => Err(Error::Code(answer.code())),
            // No value was asked for.
            Done::Value => Err(Error::Unknown),
        });
        // Who has asked may have gone.
        let _ = self.sender.send((self.role, page));
    }
}

impl Scanner {
    /// One on a shell of which each page is to come within `timeout`. It is asked for when a key is.
    #[doc(hidden)]
    #[must_use]
    pub fn begin(shell: Arc<Shell>, timeout: Duration, scan: Scan) -> Self {
        let timeout_us = micros(timeout);
        let (sender, come) = mpsc::unbounded_channel();
        let walk = Walk::new(scan.at_once);
        Self {
            shell,
            timeout_us,
            scan,
            walk,
            keys: VecDeque::new(),
            damaged: 0,
            come,
            sender,
            has_failed: false,
        }
    }

    /// The next key; none at the end.
    ///
    /// # Errors
    /// As any read, if a page has not come by its deadline; `Code(ScansOff)` where nodes do not allow scans. Nothing more comes then.
    /// `Code(Corrupt)` at the end, once all keys have come, if there were [damaged](Self::damaged) ones.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| self.poll_key(cx)).await
    }

    /// How many items of the cluster were met so far that are damaged, so that nobody can say what their keys are, or whose.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// All of them.
    ///
    /// # Errors
    /// As with [`Self::next`].
    pub async fn collect(mut self) -> Result<Vec<Bytes>, Error> {
        let mut keys = Vec::new();
        while let Some(key) = self.next().await? {
            keys.push(key);
        }
        Ok(keys)
    }

    fn poll_key(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        loop {
            if let Some(key) = self.keys.pop_front() {
                return Poll::Ready(Ok(Some(key)));
            }
            if self.has_failed {
                return Poll::Ready(Ok(None));
            }
            if self.walk.is_over() {
                // Whoever believes to have all keys is told that he may not.
                self.has_failed = true;
                let is_whole = self.damaged == 0;
                return Poll::Ready(if is_whole { Ok(None) } else { Err(Error::Code(Code::Corrupt)) });
            }
            let come = match self.ask() {
                Ok(()) => ready!(self.come.poll_recv(cx)),
                Err(error) => Some((0, Err(error))),
            };
            match come {
                Some((role, Ok((page, roles)))) => {
                    self.walk.come(role, page.next, roles);
                    self.damaged += u64::from(page.damaged);
                    self.keys.extend(page.keys);
                }
                Some((_, Err(error))) => {
                    self.has_failed = true;
                    return Poll::Ready(Err(error));
                }
                // There is a sender here.
                None => return Poll::Ready(Err(Error::Closed)),
            }
        }
    }

    /// Asks for what is to be asked for next: only when all that has come is taken.
    fn ask(&mut self) -> Result<(), Error> {
        while let Some(Step { role, from }) = self.walk.ask() {
            let (prefix, keys) = (self.scan.prefix.clone(), self.scan.page_keys);
            let op = Op::Scan(ScanOp { role, from, prefix, keys, bytes: PAGE_BYTES });
            let sink = Page { role, sender: self.sender.clone() };
            let operation = Operation { key: Bytes::new(), op, timeout_us: Some(self.timeout_us) };
            self.shell.submit(operation, Box::new(sink))?;
        }
        Ok(())
    }
}

impl Stream for Scanner {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_key(cx).map(Result::transpose)
    }
}
