//! The smart client: one operation at a time, straight to the node that serves the key.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use faces::memcache::{Again, Effect, FailureCode};
use tokio::time::{Instant, sleep, timeout_at};
use types::ClusterMap;

use crate::reply::Reply;
use crate::{ClientError, Connection, HttpError, Location, Router, request};

/// Time-outs of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// For a whole operation: fetching the map, connecting, and all attempts.
    pub deadline: Duration,
    /// For one attempt at one node.
    pub attempt: Duration,
    /// Between attempts, after every node was tried.
    pub pause: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            attempt: Duration::from_secs(5),
            pause: Duration::from_millis(20),
        }
    }
}

/// A value as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Client flags.
    pub flags: u32,
    /// The bytes.
    pub bytes: Bytes,
}

/// What a delete found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The key was there.
    Removed,
    /// It was not.
    NotFound,
}

/// A client with its map and one connection per node. For more at once, make more of them.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    sources: Vec<SocketAddr>,
    /// None before the first operation has fetched the map.
    router: Option<Router>,
    connections: BTreeMap<SocketAddr, Connection>,
}

/// An owned reply, so that the connection may be given up while it is looked at.
#[derive(Debug)]
enum Answer {
    Value(Value),
    Miss,
    Stored,
    Deleted,
    NotFound,
}

/// What to send, and whether it may be sent twice.
struct Attempt<'a> {
    key: &'a [u8],
    bytes: Vec<u8>,
    repeat: Repeat,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Harmless,
    Harmful,
}

impl Client {
    /// A client that will fetch the map from `sources`, the HTTP addresses of nodes or of the coordinator.
    #[must_use]
    pub fn new(sources: &[SocketAddr], config: ClientConfig) -> Self {
        Self { config, sources: sources.to_vec(), router: None, connections: BTreeMap::new() }
    }

    /// A client that has fetched the map.
    ///
    /// # Errors
    /// `Map` if none of the sources has one.
    pub async fn connect(sources: &[SocketAddr], config: ClientConfig) -> Result<Self, ClientError> {
        let mut client = Self::new(sources, config);
        client.route(client.deadline()).await?;
        Ok(client)
    }

    /// The map, as it was fetched last.
    ///
    /// # Errors
    /// `Map` if none could be had.
    pub async fn map(&mut self) -> Result<&ClusterMap, ClientError> {
        Ok(self.route(self.deadline()).await?.map())
    }

    /// Where `key` lies.
    ///
    /// # Errors
    /// `Map` if no map could be had.
    pub async fn locate(&mut self, key: &[u8]) -> Result<Location, ClientError> {
        Ok(self.route(self.deadline()).await?.locate(key))
    }

    /// Reads `key`.
    ///
    /// # Errors
    /// `Unreachable` if no node answers in time, `Server` if the data is lost, `Request` for a bad key.
    pub async fn get(&mut self, key: &[u8]) -> Result<Option<Value>, ClientError> {
        let mut bytes = Vec::with_capacity(key.len() + 8);
        request::get(&mut bytes, key);
        match self.run(Attempt { key, bytes, repeat: Repeat::Harmless }).await? {
            Answer::Value(value) => Ok(Some(value)),
            Answer::Miss => Ok(None),
            _ => Err(ClientError::Protocol("not an answer to get")),
        }
    }

    /// Writes `key`; once this returns, the write survives what the profile promises.
    ///
    /// # Errors
    /// `Unknown` if the connection broke with the write in flight, otherwise as for `get`.
    pub async fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        exptime: i64,
    ) -> Result<(), ClientError> {
        let mut bytes = Vec::with_capacity(key.len() + value.len() + 40);
        request::set(&mut bytes, key, value, flags, exptime);
        match self.run(Attempt { key, bytes, repeat: Repeat::Harmful }).await? {
            Answer::Stored => Ok(()),
            _ => Err(ClientError::Protocol("not an answer to set")),
        }
    }

    /// Removes `key`.
    ///
    /// # Errors
    /// As for `set`.
    pub async fn delete(&mut self, key: &[u8]) -> Result<Deleted, ClientError> {
        let mut bytes = Vec::with_capacity(key.len() + 10);
        request::delete(&mut bytes, key);
        match self.run(Attempt { key, bytes, repeat: Repeat::Harmful }).await? {
            Answer::Deleted => Ok(Deleted::Removed),
            Answer::NotFound => Ok(Deleted::NotFound),
            _ => Err(ClientError::Protocol("not an answer to delete")),
        }
    }

    /// How long a step of a transfer may take.
    pub(crate) fn step(&self) -> Duration {
        self.config.deadline
    }

    /// The nodes to ask about `key`, the primary's first.
    ///
    /// # Errors
    /// `Request` for a bad key, `Map` if no map could be had.
    pub async fn candidates(&mut self, key: &[u8]) -> Result<Vec<SocketAddr>, ClientError> {
        if !request::is_valid_key(key) {
            return Err(bad_key());
        }
        Ok(self.route(self.deadline()).await?.candidates(key))
    }

    /// All have been tried: a stand-in needs a moment, and so does the map that names it.
    pub(crate) async fn look_again(&mut self) {
        sleep(self.config.pause).await;
        if let Some(router) = &mut self.router {
            let _ = router.refresh(self.config.attempt).await;
        }
    }

    /// When an operation ends that begins now.
    fn deadline(&self) -> Instant {
        Instant::now() + self.config.deadline
    }

    /// The map, fetched if there is none yet.
    async fn route(&mut self, deadline: Instant) -> Result<&Router, ClientError> {
        let router = match self.router.take() {
            Some(router) => router,
            None => Router::fetch(&self.sources, left(deadline)).await?,
        };
        Ok(self.router.insert(router))
    }

    /// Tries node after node, the primary first, refreshing the map in between, until the deadline.
    async fn run(&mut self, attempt: Attempt<'_>) -> Result<Answer, ClientError> {
        if !request::is_valid_key(attempt.key) {
            return Err(bad_key());
        }
        let deadline = self.deadline();
        let mut last = ClientError::Map(HttpError::NoSource);
        loop {
            for address in self.route(deadline).await?.candidates(attempt.key) {
                // Any node forwards, so the next one may reach whoever serves the key.
                match self.try_at(address, &attempt, deadline).await {
                    Err(error @ (ClientError::Unreachable { .. } | ClientError::Io(_))) => last = error,
                    answered => return answered,
                }
                if left(deadline).is_zero() {
                    return Err(last);
                }
            }
            // All have been tried: a stand-in needs a moment, and so does the map that names it.
            sleep(self.config.pause.min(left(deadline))).await;
            if let Some(router) = &mut self.router {
                let _ = router.refresh(self.config.attempt.min(left(deadline))).await;
            }
            if left(deadline).is_zero() {
                return Err(last);
            }
        }
    }

    /// One attempt at one node. `Unreachable` and `Io` mean that nothing was done or that doing it again is harmless.
    async fn try_at(
        &mut self,
        address: SocketAddr,
        attempt: &Attempt<'_>,
        deadline: Instant,
    ) -> Result<Answer, ClientError> {
        let limit = self.config.attempt.min(left(deadline));
        // For both, connecting and the answer.
        let until = Instant::now() + limit;
        let unreachable = |reason: String| ClientError::Unreachable { last: address, reason };
        // Out of the table as long as it is in use: given up half-way, it would be out of step with its answers.
        let mut connection = match self.connections.remove(&address) {
            Some(connection) => connection,
            None => match timeout_at(until, Connection::open(address)).await {
                Ok(opened) => opened.map_err(|error| unreachable(error.to_string()))?,
                Err(_) => return Err(unreachable(format!("no connection in {limit:?}"))),
            },
        };
        let result = timeout_at(until, exchange(&mut connection, &attempt.bytes)).await;
        let broken = match result {
            Ok(Ok(answer)) => {
                self.connections.insert(address, connection);
                return Ok(answer);
            }
            Ok(Err(error @ (ClientError::Server { .. } | ClientError::Request(_)))) => {
                self.connections.insert(address, connection);
                match refusal_of(&error) {
                    Refusal::Final => return Err(error),
                    Refusal::NothingDone => return Err(unreachable(error.to_string())),
                    Refusal::Unknown => error.to_string(),
                }
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer in {limit:?}"),
        };
        match attempt.repeat {
            Repeat::Harmless => Err(unreachable(broken)),
            Repeat::Harmful => Err(ClientError::Unknown(format!("{address}: {broken}"))),
        }
    }
}

fn bad_key() -> ClientError {
    ClientError::Request("a key is 1 to 250 bytes without blanks or control characters".into())
}

/// What is left of an operation's time.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// What a refusal says about the request.
pub(crate) enum Refusal {
    /// It cannot be done.
    Final,
    /// It was not done, and may be tried again.
    NothingDone,
    /// It may or may not have been done.
    Unknown,
}

/// By the code alone. A failure that this client does not know may be anything.
pub(crate) fn refusal_of(error: &ClientError) -> Refusal {
    let ClientError::Server { code, .. } = error else { return Refusal::Final };
    match code.map(|code| (code.effect(), code.again())) {
        Some((Effect::NotDone, Again::Pointless)) => Refusal::Final,
        Some((Effect::NotDone, Again::Worthwhile)) => Refusal::NothingDone,
        Some((Effect::MaybeDone, _)) | None => Refusal::Unknown,
    }
}

async fn exchange(connection: &mut Connection, bytes: &[u8]) -> Result<Answer, ClientError> {
    connection.requests().extend_from_slice(bytes);
    connection.flush().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match connection.reply().await? {
        Reply::Value { flags, value, .. } => {
            Ok(Answer::Value(Value { flags, bytes: Bytes::copy_from_slice(value) }))
        }
        Reply::Miss => Ok(Answer::Miss),
        Reply::Stored => Ok(Answer::Stored),
        Reply::Deleted => Ok(Answer::Deleted),
        Reply::NotFound => Ok(Answer::NotFound),
        Reply::ServerError(reason) => {
            Err(ClientError::Server { code: FailureCode::parse(reason), words: text(reason) })
        }
        Reply::ClientError(reason) => Err(ClientError::Request(text(reason))),
        Reply::Error => Err(ClientError::Request("the server did not understand it".into())),
        _ => Err(ClientError::Protocol("an answer to another request")),
    }
}
