//! A value that is given bit by bit.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use client_core::{Done, Error, Operation, RequestId};
use native::Answer;
use tokio::sync::{mpsc, oneshot};

use crate::shell::{Shell, Sink};
use crate::value::{Stored, stored};

/// A value on its way to the cluster. Dropped before its end nothing is stored.
pub struct Upload {
    shell: Arc<Shell>,
    id: RequestId,
    len: u64,
    left: u64,
    /// Says when more bytes may be given; ends with the request.
    room: mpsc::Receiver<()>,
    /// Whether it has been told that all bytes are there.
    ended: bool,
    outcome: Outcome,
}

/// What has become of it.
enum Outcome {
    Awaited(oneshot::Receiver<Result<Answer, Error>>),
    Here(Result<Answer, Error>),
    Taken,
}

struct Fed {
    room: mpsc::Sender<()>,
    outcome: oneshot::Sender<Result<Answer, Error>>,
}

impl Sink for Fed {
    fn wants(&mut self) {
        // If it is full that has been said, and not been heard yet.
        let _ = self.room.try_send(());
    }

    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let answer = result.map(|done| match done {
            Done::Answer(answer) => answer,
            // Nothing was to be read.
            Done::Value | Done::Keys(..) => Answer::Just(native::Code::Unknown),
        });
        // Only then `room` is dropped: who waits for that finds the outcome.
        let _ = self.outcome.send(answer);
    }
}

impl Upload {
    /// `operation` stores a value that is fed, of `len` bytes.
    pub(crate) fn begin(shell: &Arc<Shell>, operation: Operation, len: u64) -> Result<Self, Error> {
        let (sender, outcome) = oneshot::channel();
        let (wants, room) = mpsc::channel(1);
        let sink = Box::new(Fed { room: wants, outcome: sender });
        let id = shell.submit(operation, sink)?;
        let (shell, outcome) = (Arc::clone(shell), Outcome::Awaited(outcome));
        Ok(Self { shell, id, len, left: len, room, ended: false, outcome })
    }

    /// Gives the next bytes. Returns when more are wanted: so what waits in between has a bound.
    ///
    /// # Errors
    /// `TooLarge` if there are more than were announced; or what [`Self::finish`] would say, where the value has failed already: with
    /// [`Error::Interrupted`] nothing was done, and all of it may be given to another upload.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(Error::TooLarge)?;
        if bytes.is_empty() {
            return Ok(());
        }
        poll_fn(|cx| self.poll_room(cx)).await?;
        self.feed(bytes);
        Ok(())
    }

    /// Gives the next bytes, of which there are some and not more than are left, once there is room: [`Self::poll_room`] has said so.
    pub(crate) fn give(&mut self, bytes: Bytes) {
        self.left -= bytes.len() as u64;
        self.feed(bytes);
    }

    fn feed(&self, bytes: Bytes) {
        // If it was answered before its end nobody wants the rest.
        if matches!(self.outcome, Outcome::Awaited(_)) {
            self.shell.feed(self.id, bytes);
        }
    }

    /// Waits until more bytes are wanted, which is said once for all that are given then; or until it has ended.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let _ = ready!(self.room.poll_recv(cx));
        if let Outcome::Awaited(outcome) = &mut self.outcome
            && let Ok(known) = outcome.try_recv()
        {
            self.outcome = Outcome::Here(known);
        }
        match &self.outcome {
            Outcome::Here(Err(error)) => Poll::Ready(Err(*error)),
            Outcome::Awaited(_) | Outcome::Here(Ok(_)) | Outcome::Taken => Poll::Ready(Ok(())),
        }
    }

    /// How many bytes the value is to have.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// How many bytes have been given.
    #[must_use]
    pub fn given(&self) -> u64 {
        self.len - self.left
    }

    /// What became of the value, all of which must have been given.
    ///
    /// # Errors
    /// It was not stored, or nobody knows.
    pub async fn finish(mut self) -> Result<Stored, Error> {
        if self.left > 0 {
            // Dropping it cancels it.
            return Err(Error::Cancelled);
        }
        self.end();
        poll_fn(|cx| self.poll_outcome(cx)).await
    }

    /// All bytes have been given. Only a value without any has to be told so.
    pub(crate) fn end(&mut self) {
        if self.len == 0 && !std::mem::replace(&mut self.ended, true) {
            self.feed(Bytes::new());
        }
    }

    /// What became of the value; to be asked until it is known.
    pub(crate) fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stored, Error>> {
        let known = match &mut self.outcome {
            Outcome::Awaited(outcome) => ready!(Pin::new(outcome).poll(cx)).unwrap_or(Err(Error::Closed)),
            Outcome::Here(known) => known.clone(),
            Outcome::Taken => Err(Error::Closed),
        };
        self.outcome = Outcome::Taken;
        Poll::Ready(known.and_then(stored))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if matches!(self.outcome, Outcome::Awaited(_)) {
            self.shell.cancel(self.id);
        }
    }
}
