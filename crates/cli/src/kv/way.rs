//! How values are moved: over the native protocol where a node speaks it, else over memcached's.
//!
//! Either way what goes wrong is a [`ClientError`], and keys are those that clients of memcached can spell, so that all can read them.

use std::io::{self, SeekFrom};
use std::net::SocketAddr;
use std::time::Duration;

use client::{Client, ClientConfig, ClientError, Deleted, FailureCode, Transferred};
use gestalt::{Bytes, Code, Error, Options, Places, Scan, Scanner, Store};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Why nobody says which keys there are.
const SCANS_OFF: &str = "the nodes do not say which keys there are: start them with --native-scans (`gestalt local` and `gestalt serve`)";

/// How often a value is sent anew after some of it has left.
const MAX_RESTARTS: u8 = 3;
/// Bytes of a piece of a file.
const PIECE_BYTES: usize = 256 << 10;
/// For a whole transfer; each step of it has its own limit.
const TRANSFER: Duration = Duration::from_secs(60 * 60);

/// See the module.
pub(super) struct Way {
    /// It also has the map.
    pub memcached: Client,
    native: Option<Native>,
}

/// What is known of an item beside its value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct About {
    /// Client flags.
    pub flags: u32,
    /// Seconds to live; 0 = as long as the namespace says.
    pub ttl: u32,
}

impl Way {
    /// The native one, if the map has a node that lives and speaks it.
    ///
    /// # Errors
    /// There is no map.
    pub(super) async fn find(source: SocketAddr, config: ClientConfig) -> Result<Self, ClientError> {
        let step = config.deadline;
        let mut memcached = Client::new(&[source], config);
        let alive = memcached.map().await?.nodes.iter().filter(|node| node.alive);
        let native = Native::of(alive.filter_map(|node| node.native).collect(), step);
        Ok(Self { memcached, native })
    }

    pub(super) async fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, ClientError> {
        match &self.native {
            None => Ok(self.memcached.get(key).await?.map(|value| value.bytes)),
            Some(native) => {
                check(&mut self.memcached, key).await?;
                native.get(key).await
            }
        }
    }

    pub(super) async fn set(&mut self, key: &[u8], value: Bytes, about: About) -> Result<(), ClientError> {
        match &self.native {
            None => self.memcached.set(key, &value, about.flags, about.ttl.into()).await,
            Some(native) => {
                check(&mut self.memcached, key).await?;
                native.set(key, value, about).await
            }
        }
    }

    /// Where the bytes of a value lie; none where no node speaks the native protocol.
    pub(super) async fn places(&mut self, key: &[u8]) -> Result<Option<Places>, ClientError> {
        let Some(native) = &self.native else { return Ok(None) };
        check(&mut self.memcached, key).await?;
        let found = native.client.locate(key.to_vec()).await;
        found.map(Some).map_err(|error| native.explained(error, Asked::Read))
    }

    /// The keys that there are; none where no node speaks the native protocol.
    pub(super) fn scan(&self, prefix: &[u8]) -> Option<Scanner> {
        Some(self.native.as_ref()?.client.scan(Scan::of(prefix.to_vec())))
    }

    /// What has become of a scan, in words.
    pub(super) fn scan_failed(&self, error: Error) -> ClientError {
        match (&self.native, error) {
            (_, Error::Code(Code::ScansOff)) => ClientError::Request(SCANS_OFF.to_owned()),
            (Some(native), error) => native.explained(error, Asked::Read),
            (None, error) => ClientError::Request(error.to_string()),
        }
    }

    pub(super) async fn delete(&mut self, key: &[u8]) -> Result<Deleted, ClientError> {
        match &self.native {
            None => self.memcached.delete(key).await,
            Some(native) => {
                check(&mut self.memcached, key).await?;
                native.delete(key).await
            }
        }
    }

    /// As [`Client::set_from`].
    pub(super) async fn set_from<S: AsyncRead + AsyncSeek + Unpin>(
        &mut self,
        key: &[u8],
        (source, len): (&mut S, u64),
        about: About,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        match &self.native {
            None => {
                let exptime = about.ttl.into();
                self.memcached.set_from(key, (source, len), about.flags, exptime, progress).await
            }
            Some(native) => {
                check(&mut self.memcached, key).await?;
                native.set_from(key, (source, len), about, progress).await
            }
        }
    }

    /// As [`Client::get_into`].
    pub(super) async fn get_into<S: AsyncWrite + Unpin>(
        &mut self,
        key: &[u8],
        sink: &mut S,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Transferred>, ClientError> {
        match &self.native {
            None => self.memcached.get_into(key, sink, progress).await,
            Some(native) => {
                check(&mut self.memcached, key).await?;
                native.get_into(key, sink, progress).await
            }
        }
    }
}

/// Whether `key` is one for all clients.
async fn check(client: &mut Client, key: &[u8]) -> Result<(), ClientError> {
    client.candidates(key).await.map(drop)
}

/// The native protocol.
struct Native {
    client: gestalt::Client,
    /// One of the nodes, to be named.
    node: SocketAddr,
    /// For a request, and for a step of a transfer.
    step: Duration,
}

/// What was asked: of a read nobody wonders whether it was done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Read,
    Write,
}

impl Native {
    fn of(nodes: Vec<SocketAddr>, step: Duration) -> Option<Self> {
        let node = *nodes.first()?;
        let mut options = Options::default();
        (options.seeds, options.timeout) = (nodes, step);
        Some(Self { client: gestalt::Client::lazy(&options), node, step })
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ClientError> {
        let found = self.client.get(key.to_vec()).await;
        Ok(found.map_err(|error| self.explained(error, Asked::Read))?.map(|value| value.bytes))
    }

    async fn set(&self, key: &[u8], value: Bytes, about: About) -> Result<(), ClientError> {
        let stored = self.client.store(key.to_vec(), value, store(about)).await;
        stored.map(drop).map_err(|error| self.explained(error, Asked::Write))
    }

    async fn delete(&self, key: &[u8]) -> Result<Deleted, ClientError> {
        match self.client.delete(key.to_vec()).await {
            Ok(true) => Ok(Deleted::Removed),
            Ok(false) => Ok(Deleted::NotFound),
            Err(error) => Err(self.explained(error, Asked::Write)),
        }
    }

    async fn set_from<S: AsyncRead + AsyncSeek + Unpin>(
        &self,
        key: &[u8],
        (source, len): (&mut S, u64),
        about: About,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        let mut restarts = 0;
        loop {
            source.seek(SeekFrom::Start(0)).await?;
            match self.upload(key, (&mut *source, len), about, progress).await? {
                // What was sent is gone with its node, and nothing was done.
                Err(Error::Interrupted(_) | Error::Unreachable) if restarts < MAX_RESTARTS => restarts += 1,
                done => return done.map_err(|error| self.explained(error, Asked::Write)),
            }
        }
    }

    async fn upload<S: AsyncRead + Unpin>(
        &self,
        key: &[u8],
        (source, len): (&mut S, u64),
        about: About,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Result<(), Error>, ClientError> {
        let client = self.client.within(TRANSFER);
        let mut upload = match client.upload(key.to_vec(), len, store(about)) {
            Ok(upload) => upload,
            Err(error) => return Ok(Err(error)),
        };
        let mut sent = 0;
        while sent < len {
            let most = (len - sent).min(PIECE_BYTES as u64) as usize;
            let mut piece = vec![0; most];
            let got = source.read(&mut piece).await?;
            if got == 0 {
                let reason = format!("the source ended after {sent} of {len} bytes");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason).into());
            }
            piece.truncate(got);
            match timeout(self.step, upload.write(piece.into())).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Ok(Err(error)),
                Err(_) => return Err(self.stands_still()),
            }
            sent += got as u64;
            progress(sent);
        }
        match timeout(self.step, upload.finish()).await {
            Ok(done) => Ok(done.map(drop)),
            Err(_) => Ok(Err(Error::TimedOut)),
        }
    }

    async fn get_into<S: AsyncWrite + Unpin>(
        &self,
        key: &[u8],
        sink: &mut S,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Transferred>, ClientError> {
        let client = self.client.within(TRANSFER);
        let found = timeout(self.step, client.reader(key.to_vec(), None)).await;
        let found = found.map_err(|_| self.stands_still())?;
        let Some(mut reader) = found.map_err(|error| self.explained(error, Asked::Read))? else {
            return Ok(None);
        };
        let (flags, all) = (reader.meta().flags, reader.len());
        let mut done = 0;
        loop {
            let next = timeout(self.step, reader.next()).await.map_err(|_| self.stands_still())?;
            let Some(bytes) = next.map_err(|error| self.explained(error, Asked::Read))? else { break };
            sink.write_all(&bytes).await?;
            done += bytes.len() as u64;
            progress(done, all);
        }
        sink.flush().await?;
        Ok(Some(Transferred { flags, bytes: done }))
    }

    fn stands_still(&self) -> ClientError {
        ClientError::Unreachable { last: self.node, reason: format!("nothing has moved for {:?}", self.step) }
    }

    /// In the words of the other way.
    fn explained(&self, error: Error, asked: Asked) -> ClientError {
        let refused =
            |code: FailureCode| ClientError::Server { code: Some(code), words: code.as_str().to_owned() };
        match error {
            Error::Code(Code::TooLarge) | Error::TooLarge => refused(FailureCode::TooLarge),
            Error::Code(Code::OutOfMemory) => refused(FailureCode::OutOfMemory),
            Error::Code(Code::Lost) => refused(FailureCode::Lost),
            Error::Code(Code::Corrupt) => refused(FailureCode::Corrupt),
            Error::Code(Code::NoNamespace) | Error::NoNamespace => refused(FailureCode::NoNamespace),
            Error::BadKey => ClientError::Request(error.to_string()),
            error if asked == Asked::Write && !error.is_harmless() => ClientError::Unknown(error.to_string()),
            error => ClientError::Unreachable { last: self.node, reason: error.to_string() },
        }
    }
}

fn store(about: About) -> Store {
    Store { flags: about.flags, ttl: about.ttl, ..Store::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_is_said_as_the_other_way_says_it() {
        let nodes = vec![SocketAddr::from(([127, 0, 0, 1], 1))];
        let native = Native::of(nodes, Duration::from_secs(1)).expect("a node");
        let write = |error| native.explained(error, Asked::Write);
        assert!(matches!(
            write(Error::Code(Code::OutOfMemory)),
            ClientError::Server { code: Some(FailureCode::OutOfMemory), .. }
        ));
        assert!(matches!(write(Error::TimedOut), ClientError::Unknown(_)));
        assert!(
            matches!(write(Error::Code(Code::Busy)), ClientError::Unreachable { .. }),
            "nothing was done"
        );
        let read = native.explained(Error::TimedOut, Asked::Read);
        assert!(matches!(read, ClientError::Unreachable { .. }), "a read does nothing");
    }
}
