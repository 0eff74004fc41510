//! The client.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client_core::{Body, Error, Estimates, Op, Operation, Stats};
use native::{About, Answer, Code, Places, Range};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use types::NodeId;
use types::op::{Direction, StoreMode};

use crate::options::{BadUri, Options, Store, micros};
use crate::reader::Reader;
use crate::scan::{Scan, Scanner};
use crate::shell::Shell;
use crate::sinks::{Answered, Whole};
use crate::upload::Upload;
use crate::value::{Stored, Value, stored};
use crate::writer::Writer;

/// How often all pages of [`Client::locate`] are asked for when the value is replaced meanwhile.
const LOCATE_ATTEMPTS: u32 = 8;

/// A client. To clone it costs nothing: all clones share their connections. The last one that is dropped closes them.
#[derive(Clone)]
pub struct Client {
    pub(crate) shell: Arc<Shell>,
    timeout: Duration,
}

impl Client {
    /// A client of the cluster that `uri` names, as [`Options`] reads it. It has the map when this returns.
    ///
    /// # Errors
    /// `uri` is none, or no node of it can be reached in time.
    pub async fn connect(uri: &str) -> Result<Self, ConnectError> {
        Self::with(&uri.parse()?).await
    }

    /// The same from options.
    ///
    /// # Errors
    /// No node can be reached in time.
    pub async fn with(options: &Options) -> Result<Self, ConnectError> {
        let client = Self::lazy(options);
        if client.shell.has_map(options.timeout).await { Ok(client) } else { Err(ConnectError::Unreachable) }
    }

    /// A client that reaches out when it is asked for something. To be called on a runtime.
    #[must_use]
    pub fn lazy(options: &Options) -> Self {
        let shell = Shell::start(options.config(), Handle::current());
        Self { shell: Arc::new(shell), timeout: options.timeout }
    }

    /// The same client with another time-out for its requests.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { shell: Arc::clone(&self.shell), timeout }
    }

    pub(crate) fn operation(&self, key: impl Into<Bytes>, op: Op) -> Operation {
        Operation { key: key.into(), op, timeout_us: Some(micros(self.timeout)) }
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Value>, Error> {
        self.read(key, None, None).await
    }

    /// A part of the value of `key`: what there is of it.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn get_range(&self, key: impl Into<Bytes>, range: Range) -> Result<Option<Value>, Error> {
        self.read(key, Some(range), None).await
    }

    /// The value of `key`, which is to live for `ttl` seconds from now on; 0 = for ever.
    ///
    /// # Errors
    /// It could not be read; it may live longer all the same.
    pub async fn get_and_touch(&self, key: impl Into<Bytes>, ttl: u32) -> Result<Option<Value>, Error> {
        self.read(key, None, Some(ttl)).await
    }

    async fn read(
        &self,
        key: impl Into<Bytes>,
        range: Option<Range>,
        touch: Option<u32>,
    ) -> Result<Option<Value>, Error> {
        let (sender, receiver) = oneshot::channel();
        let operation = self.operation(key, Op::Get { range, touch });
        let id = self.shell.submit(operation, Box::new(Whole::new(sender)))?;
        let guard = CancelOnDrop { shell: &self.shell, id };
        let value = receiver.await.unwrap_or(Err(Error::Closed));
        std::mem::forget(guard);
        value
    }

    /// The values of several keys, asked for at the same time.
    ///
    /// # Errors
    /// One of them could not be read: the first of these.
    pub async fn get_many<K: Into<Bytes>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Value>>, Error> {
        let ask = |key: K| {
            let (sender, receiver) = oneshot::channel();
            let operation = self.operation(key, Op::Get { range: None, touch: None });
            self.shell.submit(operation, Box::new(Whole::new(sender))).map(|_| receiver)
        };
        let asked = keys.into_iter().map(ask).collect::<Result<Vec<_>, Error>>()?;
        let mut values = Vec::with_capacity(asked.len());
        for receiver in asked {
            values.push(receiver.await.unwrap_or(Err(Error::Closed))?);
        }
        Ok(values)
    }

    /// Stores a value: its version.
    ///
    /// # Errors
    /// It was not stored, or nobody knows.
    pub async fn set(&self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Result<u64, Error> {
        match self.store(key, value, Store::default()).await? {
            Stored::Version(version) => Ok(version),
            // A set has no condition.
            Stored::No | Stored::Other | Stored::Missing => Err(Error::Code(Code::NotStored)),
        }
    }

    /// Stores a value as `store` says.
    ///
    /// # Errors
    /// It was not stored, for another reason than its condition, or nobody knows.
    pub async fn store(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        store: Store,
    ) -> Result<Stored, Error> {
        let Store { mode, flags, ttl, compare } = store;
        let body = Body::Here(value.into());
        stored(self.call(key, Op::Store { mode, body, flags, ttl, compare }).await?)
    }

    /// Stores a value where there is none.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub async fn add(&self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Result<Stored, Error> {
        self.store(key, value, Store { mode: StoreMode::Add, ..Store::default() }).await
    }

    /// Stores a value in the place of one of this version.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub async fn cas(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        version: u64,
    ) -> Result<Stored, Error> {
        self.store(key, value, Store { compare: Some(version), ..Store::default() }).await
    }

    /// A value of `len` bytes that is given bit by bit, all of them within the client's [time-out](Self::within).
    ///
    /// # Errors
    /// Nothing was asked.
    pub fn upload(&self, key: impl Into<Bytes>, len: u64, store: Store) -> Result<Upload, Error> {
        let Store { mode, flags, ttl, compare } = store;
        let op = Op::Store { mode, body: Body::Fed(len), flags, ttl, compare };
        Upload::begin(&self.shell, self.operation(key, op), len)
    }

    /// The same as an [`AsyncWrite`](tokio::io::AsyncWrite), for `tokio::io::copy` and whatever else writes to streams.
    ///
    /// # Errors
    /// Nothing was asked.
    pub fn writer(&self, key: impl Into<Bytes>, len: u64, store: Store) -> Result<Writer, Error> {
        self.upload(key, len, store).map(Writer::over)
    }

    /// The value of `key`, or a part of it, to be read bit by bit: an [`AsyncRead`](tokio::io::AsyncRead).
    ///
    /// # Errors
    /// It could not be read.
    pub async fn reader(&self, key: impl Into<Bytes>, range: Option<Range>) -> Result<Option<Reader>, Error> {
        Reader::begin(self, key.into(), range).await
    }

    /// Removes `key`: whether it was there.
    ///
    /// # Errors
    /// It was not removed, or nobody knows.
    pub async fn delete(&self, key: impl Into<Bytes>) -> Result<bool, Error> {
        Ok(self.call(key, Op::Delete { compare: None }).await?.code() == Code::Deleted)
    }

    /// Adds `delta` to the number of `key`, or takes it off: the number; none if there is none.
    ///
    /// # Errors
    /// It was not changed, or nobody knows.
    pub async fn add_number(&self, key: impl Into<Bytes>, delta: i64) -> Result<Option<u64>, Error> {
        let direction = if delta < 0 { Direction::Decrement } else { Direction::Increment };
        let op = Op::Arith { direction, delta: delta.unsigned_abs(), initial: None };
        match self.call(key, op).await? {
            Answer::Number(number, _) => Ok(Some(number)),
            _ => Ok(None),
        }
    }

    /// Lets `key` live for `ttl` seconds from now on, 0 = for ever: whether it is there.
    ///
    /// # Errors
    /// It was not touched, or nobody knows.
    pub async fn touch(&self, key: impl Into<Bytes>, ttl: u32) -> Result<bool, Error> {
        Ok(self.call(key, Op::Touch { ttl }).await?.code() == Code::Touched)
    }

    /// What is known of `key`.
    ///
    /// # Errors
    /// It could not be asked.
    pub async fn stat(&self, key: impl Into<Bytes>) -> Result<Option<About>, Error> {
        match self.call(key, Op::Stat).await? {
            Answer::About(about) => Ok(Some(about)),
            _ => Ok(None),
        }
    }

    /// What the client has done by itself about long values: those that it has coded, and those that went through a node after all.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shell.stats()
    }

    /// What the client has found out about its uplink, its coding, and how long values take that are coded here and by nodes: by that it
    /// chooses where [`Coding::Auto`](crate::Coding) lets it.
    #[must_use]
    pub fn estimates(&self) -> Estimates {
        self.shell.estimates()
    }

    /// Where the bytes of `key` lie, all of them: one request for every 512 stripes of the value.
    ///
    /// # Errors
    /// It could not be asked; `Changed` if the value was replaced again and again meanwhile, and `TooOld` if its node knows no more than
    /// the first page.
    pub async fn locate(&self, key: impl Into<Bytes>) -> Result<Places, Error> {
        let key = key.into();
        for _ in 0..LOCATE_ATTEMPTS {
            if let Some(places) = self.locate_all(&key).await? {
                return Ok(places);
            }
        }
        Err(Error::Changed)
    }

    /// None if the value was replaced meanwhile.
    async fn locate_all(&self, key: &Bytes) -> Result<Option<Places>, Error> {
        let mut places = self.locate_from(key.clone(), 0).await?;
        while let Some(from) = places.next_page() {
            if !places.join(self.locate_from(key.clone(), from).await?) {
                return Ok(None);
            }
        }
        Ok(Some(places))
    }

    /// Where the bytes of `key` lie from the stripe on that has the byte `from`: a page of at most 512 stripes, behind which
    /// [`Places::next_page`] is.
    ///
    /// # Errors
    /// It could not be asked; `TooOld` if its node only knows the page from 0 on.
    pub async fn locate_from(&self, key: impl Into<Bytes>, from: u64) -> Result<Places, Error> {
        match self.call(key, Op::Locate { from }).await? {
            Answer::Places(places) => Ok(places),
            other => Err(Error::Code(other.code())),
        }
    }

    /// The nodes that live, and where they take this protocol, as far as is known now.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<NodeId, SocketAddr> {
        self.shell.nodes()
    }

    /// Which keys there are, where nodes allow that (`--native-scans`). It goes on through all that happens to nodes meanwhile.
    ///
    /// ```no_run
    /// # async fn example(client: gestalt::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut users = client.scan(gestalt::Scan::of("user:"));
    /// while let Some(key) = users.next().await? {
    ///     println!("{}", key.escape_ascii());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn scan(&self, scan: Scan) -> Scanner {
        Scanner::begin(Arc::clone(&self.shell), self.timeout, scan)
    }

    async fn call(&self, key: impl Into<Bytes>, op: Op) -> Result<Answer, Error> {
        let (sender, receiver) = oneshot::channel();
        self.shell.submit(self.operation(key, op), Box::new(Answered(sender)))?;
        // Not cancelled when the caller is dropped: what was asked is done, or not, all the same.
        receiver.await.unwrap_or(Err(Error::Closed))
    }
}

/// Who does not wait for a value any more does not want its bytes.
struct CancelOnDrop<'a> {
    shell: &'a Shell,
    id: client_core::RequestId,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.shell.cancel(self.id);
    }
}

/// Why there is no client.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConnectError {
    /// The text is not one of a client.
    #[error(transparent)]
    Uri(#[from] BadUri),
    /// No node has answered with a map.
    #[error(
        "no node of the cluster could be reached in time: is it running, and is this the address of its native listener?"
    )]
    Unreachable,
}
