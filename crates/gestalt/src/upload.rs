//! A value that is given bit by bit.

use std::sync::Arc;

use bytes::Bytes;
use client_core::{Body, Done, Error, Op, RequestId};
use native::Answer;
use tokio::sync::{Notify, oneshot};

use crate::client::Client;
use crate::options::Store;
use crate::shell::{Shell, Sink};
use crate::value::{Stored, stored};

/// A value on its way to the cluster. Dropped before its end nothing is stored.
pub struct Upload {
    shell: Arc<Shell>,
    id: RequestId,
    len: u64,
    left: u64,
    wants: Arc<Notify>,
    outcome: Outcome,
}

/// What has become of it.
enum Outcome {
    Awaited(oneshot::Receiver<Result<Answer, Error>>),
    Here(Result<Answer, Error>),
    Taken,
}

struct Fed {
    wants: Arc<Notify>,
    outcome: oneshot::Sender<Result<Answer, Error>>,
}

impl Sink for Fed {
    fn wants(&mut self) {
        self.wants.notify_one();
    }

    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let answer = result.map(|done| match done {
            Done::Answer(answer) => answer,
            // Nothing was to be read.
            Done::Value | Done::Keys(..) => Answer::Just(native::Code::Unknown),
        });
        let _ = self.outcome.send(answer);
        self.wants.notify_one();
    }
}

impl Upload {
    pub(crate) fn begin(client: &Client, key: Bytes, len: u64, store: Store) -> Result<Self, Error> {
        let Store { mode, flags, ttl, compare } = store;
        let body = if len == 0 { Body::Here(Bytes::new()) } else { Body::Fed(len) };
        let op = Op::Store { mode, body, flags, ttl, compare };
        let (sender, outcome) = oneshot::channel();
        let wants = Arc::new(Notify::new());
        let sink = Box::new(Fed { wants: Arc::clone(&wants), outcome: sender });
        let id = client.shell.submit(client.operation(key, op), sink)?;
        let (shell, outcome) = (Arc::clone(&client.shell), Outcome::Awaited(outcome));
        Ok(Self { shell, id, len, left: len, wants, outcome })
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
        // The first time it is said at once; then whenever there is room again, and at the end.
        self.wants.notified().await;
        if let Outcome::Awaited(outcome) = &mut self.outcome
            && let Ok(known) = outcome.try_recv()
        {
            self.outcome = Outcome::Here(known);
        }
        match &self.outcome {
            Outcome::Awaited(_) => self.shell.feed(self.id, bytes),
            Outcome::Here(Err(error)) => return Err(*error),
            // It was answered before its end, and nobody wants the rest.
            Outcome::Here(Ok(_)) | Outcome::Taken => self.wants.notify_one(),
        }
        Ok(())
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
        match std::mem::replace(&mut self.outcome, Outcome::Taken) {
            Outcome::Awaited(outcome) => stored(outcome.await.unwrap_or(Err(Error::Closed))?),
            Outcome::Here(known) => stored(known?),
            Outcome::Taken => Err(Error::Closed),
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if matches!(self.outcome, Outcome::Awaited(_)) {
            self.shell.cancel(self.id);
        }
    }
}
