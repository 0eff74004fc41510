//! A value that is read bit by bit.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use client_core::{Done, Error, Op, RequestId};
use native::{Meta, Range};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{mpsc, oneshot};

use crate::client::Client;
use crate::shell::{Shell, Sink};
use crate::value::to_io;

/// A value, or a part of one, on its way. As many bytes of it are on their way as the client's window allows; the more are taken, the more
/// come. Dropped before its end it is cancelled.
pub struct Reader {
    shell: Arc<Shell>,
    id: RequestId,
    meta: Meta,
    len: u64,
    parts: mpsc::UnboundedReceiver<Result<Bytes, Error>>,
    current: Bytes,
    ended: bool,
}

/// What is known of a value, and how much of it comes; none if there is none.
type Found = Result<Option<(Meta, u64)>, Error>;

/// Tells a reader. Its channel is as long as a window.
struct Parts {
    head: Option<oneshot::Sender<Found>>,
    parts: mpsc::UnboundedSender<Result<Bytes, Error>>,
}

impl Sink for Parts {
    fn head(&mut self, meta: &Meta, len: u64) -> bool {
        self.head.take().is_some_and(|head| head.send(Ok(Some((*meta, len)))).is_ok())
    }

    fn data(&mut self, bytes: Bytes) -> usize {
        // Who has dropped the reader has cancelled it.
        let _ = self.parts.send(Ok(bytes));
        0
    }

    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let Self { head, parts } = *self;
        match (head, result) {
            (Some(head), Ok(_)) => drop(head.send(Ok(None))),
            (Some(head), Err(error)) => drop(head.send(Err(error))),
            (None, Ok(_)) => {}
            (None, Err(error)) => drop(parts.send(Err(error))),
        }
    }
}

impl Reader {
    pub(crate) async fn begin(
        client: &Client,
        key: Bytes,
        range: Option<Range>,
    ) -> Result<Option<Self>, Error> {
        let (head, found) = oneshot::channel();
        let (sender, parts) = mpsc::unbounded_channel();
        let sink = Box::new(Parts { head: Some(head), parts: sender });
        let id = client.shell.submit(client.operation(key, Op::Get { range, touch: None }), sink)?;
        let found = found.await.unwrap_or(Err(Error::Closed))?;
        let shell = Arc::clone(&client.shell);
        let reader = |(meta, len)| Self { shell, id, meta, len, parts, current: Bytes::new(), ended: false };
        Ok(found.map(reader))
    }

    /// What is known of the item.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How many bytes there are to be read in all.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next bytes, as they have come; none at the end.
    ///
    /// # Errors
    /// The rest could not be read.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if !self.current.is_empty() {
            let bytes = std::mem::take(&mut self.current);
            return Poll::Ready(Ok(Some(bytes)));
        }
        match ready!(self.parts.poll_recv(cx)) {
            Some(Ok(bytes)) => {
                self.shell.taken(self.id, bytes.len() as u64);
                Poll::Ready(Ok(Some(bytes)))
            }
            Some(Err(error)) => {
                self.ended = true;
                Poll::Ready(Err(error))
            }
            None => {
                self.ended = true;
                Poll::Ready(Ok(None))
            }
        }
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.current.is_empty() {
            match ready!(self.poll_next(cx)) {
                Ok(Some(bytes)) => self.current = bytes,
                Ok(None) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(to_io(error))),
            }
        }
        let len = self.current.len().min(into.remaining());
        into.put_slice(&self.current[..len]);
        self.current.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if !self.ended {
            self.shell.cancel(self.id);
        }
    }
}
