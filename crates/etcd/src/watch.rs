//! Hearing of changes.

use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use crate::client::{Repeat, with_token};
use crate::kv::end_of;
use crate::messages::{Event, WatchCreateRequest, WatchKind, WatchRequest, WatchResponse};
use crate::{Client, Entry, Error};

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was written.
    Put(Entry),
    /// It has gone, at this revision: removed, or its lease has ended.
    Gone {
        /// Which.
        key: Vec<u8>,
        /// When.
        revision: i64,
    },
}

/// Changes under a prefix, in order. Bounded by the stream's flow control: who does not read is not sent more.
#[derive(Debug)]
pub struct Watch {
    answers: Streaming<WatchResponse>,
    /// The asking side: the watch ends with it.
    _open: mpsc::Sender<WatchRequest>,
}

impl Client {
    /// All changes from `revision` on of keys that begin with `prefix`.
    ///
    /// # Errors
    /// If no member answers.
    pub async fn watch(&self, prefix: &[u8], revision: i64) -> Result<Watch, Error> {
        let create =
            WatchCreateRequest { key: prefix.to_vec(), range_end: end_of(prefix), start_revision: revision };
        self.ask(Repeat::Always, async |mut grpc, token| {
            let (open, questions) = mpsc::channel(1);
            let question = WatchRequest { kind: Some(WatchKind::Create(create.clone())) };
            open.try_send(question).map_err(|error| Status::internal(error.to_string()))?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let answers = grpc.streaming(with_token(Questions(questions), token), path, codec).await?;
            Ok(Watch { answers: answers.into_inner(), _open: open })
        })
        .await
    }
}

impl Watch {
    /// The next changes; may be none. Nothing is lost if the call is given up.
    ///
    /// # Errors
    /// [`Error::Compacted`], or if the watch has ended: then what has happened since has to be read anew.
    pub async fn next(&mut self) -> Result<Vec<Change>, Error> {
        let ended =
            |reason: &str| Error::Unanswered { endpoint: "watch".to_owned(), reason: reason.to_owned() };
        let answer = match self.answers.next().await {
            Some(Ok(answer)) => answer,
            Some(Err(status)) => return Err(Error::from_status("watch", &status)),
            None => return Err(ended("closed")),
        };
        match answer {
            WatchResponse { compact_revision: revision @ 1.., .. } => Err(Error::Compacted(revision)),
            WatchResponse { canceled: true, cancel_reason, .. } => Err(Error::Refused(cancel_reason)),
            WatchResponse { events, .. } => Ok(events.into_iter().filter_map(change).collect()),
        }
    }
}

fn change(event: Event) -> Option<Change> {
    const PUT: i32 = 0;
    let kv = event.kv?;
    Some(match event.kind {
        PUT => Change::Put(kv.into()),
        _ => Change::Gone { key: kv.key, revision: kv.mod_revision },
    })
}

/// The asking side of a watch as a stream.
struct Questions(mpsc::Receiver<WatchRequest>);

impl Stream for Questions {
    type Item = WatchRequest;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<WatchRequest>> {
        self.0.poll_recv(context)
    }
}
