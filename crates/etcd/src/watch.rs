//! Hearing of changes.
//!
//! A member that is cut off from the others goes on to answer watches, with what it knows. So a watch requires a leader, asks for
//! a sign of life when it has heard nothing for a while, and ends when its member has been left for another one: whoever
//! renews a lease finds out soonest that nobody stands behind a member.

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use crate::client::{Repeat, prepared};
use crate::kv::end_of;
use crate::messages::{
    Event, WatchCreateRequest, WatchKind, WatchProgressRequest, WatchRequest, WatchResponse,
};
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
    client: Client,
    /// Index of the member that tells.
    member: usize,
    /// Index of the member that is asked first.
    first: watch::Receiver<usize>,
    answers: Streaming<WatchResponse>,
    /// The asking side: the watch ends with it.
    questions: mpsc::Sender<WatchRequest>,
    /// When the member has last said anything.
    heard: Instant,
    /// Whether it has been asked for a sign of life since.
    is_asked: bool,
}

impl Client {
    /// All changes from `revision` on of keys that begin with `prefix`.
    ///
    /// # Errors
    /// If no member answers.
    pub async fn watch(&self, prefix: &[u8], revision: i64) -> Result<Watch, Error> {
        let create =
            WatchCreateRequest { key: prefix.to_vec(), range_end: end_of(prefix), start_revision: revision };
        self.ask(Repeat::Always, async |mut grpc, token, member| {
            let (questions, asked) = mpsc::channel(1);
            let question = WatchRequest { kind: Some(WatchKind::Create(create.clone())) };
            questions.try_send(question).map_err(|error| Status::internal(error.to_string()))?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let answers = grpc.streaming(prepared(Questions(asked), token), path, codec).await?;
            Ok(Watch {
                client: self.clone(),
                member,
                first: self.first(),
                answers: answers.into_inner(),
                questions,
                heard: Instant::now(),
                is_asked: false,
            })
        })
        .await
    }
}

impl Watch {
    /// The next changes. Nothing is lost if the call is given up.
    ///
    /// # Errors
    /// [`Error::Compacted`], or if the watch has ended: then what has happened since has to be read anew.
    pub async fn next(&mut self) -> Result<Vec<Change>, Error> {
        loop {
            let changes = self.hear().await.and_then(changes);
            if changes.as_ref().is_err_and(Error::is_outage) {
                self.client.pass_over(self.member);
            }
            // A sign of life, or that the watch stands.
            if changes.as_ref().is_ok_and(Vec::is_empty) {
                continue;
            }
            return changes;
        }
    }

    /// What the member says next.
    async fn hear(&mut self) -> Result<WatchResponse, Error> {
        let silence = self.client.silence();
        loop {
            let member = self.member;
            tokio::select! {
                // What has arrived counts before any time-out: a busy process may look late.
                biased;
                answer = self.answers.next() => {
                    (self.heard, self.is_asked) = (Instant::now(), false);
                    let status = match answer {
                        Some(Ok(answer)) => return Ok(answer),
                        Some(Err(status)) => status,
                        None => Status::unknown("the watch was closed"),
                    };
                    return Err(Error::from_status(self.client.authority(member), &status));
                }
                () = left(&mut self.first, member) => {
                    let endpoint = self.client.authority(member).to_owned();
                    let reason = "it has been left for another member".to_owned();
                    return Err(Error::Unanswered { endpoint, reason });
                }
                () = sleep_until(self.heard + silence / 2), if !self.is_asked => self.ask_for_a_sign(),
                () = sleep_until(self.heard + silence) => {
                    return Err(Error::timeout(self.client.authority(member), silence));
                }
            }
        }
    }

    /// The member answers at once, though nothing has changed.
    fn ask_for_a_sign(&mut self) {
        self.is_asked = true;
        let question = WatchRequest { kind: Some(WatchKind::Progress(WatchProgressRequest {})) };
        // If it cannot be sent, nothing comes.
        let _ = self.questions.try_send(question);
    }
}

/// Returns when `member` is no longer asked first.
async fn left(first: &mut watch::Receiver<usize>, member: usize) {
    let _ = first.wait_for(|first| *first != member).await;
}

fn changes(answer: WatchResponse) -> Result<Vec<Change>, Error> {
    match answer {
        WatchResponse { compact_revision: revision @ 1.., .. } => Err(Error::Compacted(revision)),
        WatchResponse { canceled: true, cancel_reason, .. } => Err(Error::Refused(cancel_reason)),
        WatchResponse { events, .. } => Ok(events.into_iter().filter_map(change).collect()),
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
