//! Values that are not held in memory: written from a source, read into a sink, piece by piece.
//!
//! There is no limit for the whole of it. Each step, such as a piece that is taken, may take as long as an operation of a
//! [`ClientConfig`](crate::ClientConfig) (`deadline`).

use std::future::Future;
use std::io::{self, SeekFrom};
use std::net::SocketAddr;
use std::time::Duration;

use faces::memcache::FailureCode;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::client::{Client, Refusal, refusal_of};
use crate::reply::{Parsed, Reply, parse, parse_value_line};
use crate::{ClientError, HttpError, request};

/// How often a transfer is begun anew after bytes have moved.
const MAX_RESTARTS: u8 = 3;
/// How long a node that has taken no more is listened to.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Bytes of a piece.
const PIECE_BYTES: usize = 256 << 10;
/// Longest line of an answer.
const MAX_LINE_BYTES: u64 = 2048;
const END: &[u8] = b"\r\nEND\r\n";

/// A value that was read into a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Client flags.
    pub flags: u32,
    /// Its length.
    pub bytes: u64,
}

/// How an attempt ended that did not succeed.
enum Failed {
    /// Nothing was done: the next node may be asked.
    NothingDone(ClientError),
    Final(ClientError),
}

impl Client {
    /// Writes `key` with the `len` bytes that `source` begins with; once this returns, the write survives what the profile promises.
    /// `progress` hears how many bytes are gone. A node that fails before it has all of them has done nothing: then the next one gets
    /// them from the beginning.
    ///
    /// # Errors
    /// `Io` if the source fails or is too short; otherwise as [`Client::set`].
    pub async fn set_from<S: AsyncRead + AsyncSeek + Unpin>(
        &mut self,
        key: &[u8],
        (source, len): (&mut S, u64),
        flags: u32,
        exptime: i64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        let mut header = Vec::new();
        request::set_header(&mut header, key, len, flags, exptime);
        let step = self.step();
        let mut patience = Patience::of(step);
        loop {
            for address in self.candidates(key).await? {
                source.seek(SeekFrom::Start(0)).await?;
                let mut moved = 0;
                let mut note = |done| {
                    moved = done;
                    progress(done);
                };
                let upload = Upload { address, step, header: &header, len };
                match upload.run(source, &mut note).await {
                    Err(Failed::NothingDone(error)) => patience.lose(moved, error)?,
                    Err(Failed::Final(error)) => return Err(error),
                    Ok(()) => return Ok(()),
                }
            }
            patience.check()?;
            self.look_again().await;
        }
    }

    /// Reads `key` into `sink`; nothing if it is not there. `progress` hears how many bytes of how many have come. What broke off in the
    /// middle is an error, with a part of the value in the sink.
    ///
    /// # Errors
    /// `Io` if the sink fails; otherwise as [`Client::get`].
    pub async fn get_into<S: AsyncWrite + Unpin>(
        &mut self,
        key: &[u8],
        sink: &mut S,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Transferred>, ClientError> {
        let mut line = Vec::new();
        request::get(&mut line, key);
        let step = self.step();
        let mut patience = Patience::of(step);
        loop {
            for address in self.candidates(key).await? {
                match download((address, step), &line, sink, progress).await {
                    Err(Failed::NothingDone(error)) => patience.lose(0, error)?,
                    Err(Failed::Final(error)) => return Err(error),
                    Ok(found) => return Ok(found),
                }
            }
            patience.check()?;
            self.look_again().await;
        }
    }
}

/// For how long, and how often, a transfer is begun anew.
struct Patience {
    step: Duration,
    until: Instant,
    restarts: u8,
    last: Option<ClientError>,
}

impl Patience {
    fn of(step: Duration) -> Self {
        Self { step, until: Instant::now() + step, restarts: MAX_RESTARTS, last: None }
    }

    /// An attempt has ended in nothing, after it had `moved` so many bytes.
    fn lose(&mut self, moved: u64, error: ClientError) -> Result<(), ClientError> {
        if moved > 0 {
            let Some(left) = self.restarts.checked_sub(1) else { return Err(error) };
            self.restarts = left;
            self.until = Instant::now() + self.step;
        }
        self.last = Some(error);
        Ok(())
    }

    /// All nodes have been tried.
    fn check(&mut self) -> Result<(), ClientError> {
        if Instant::now() < self.until {
            return Ok(());
        }
        Err(self.last.take().unwrap_or(ClientError::Map(HttpError::NoSource)))
    }
}

/// One attempt to write at one node.
struct Upload<'a> {
    address: SocketAddr,
    step: Duration,
    header: &'a [u8],
    len: u64,
}

impl Upload<'_> {
    async fn run<S: AsyncRead + Unpin>(
        &self,
        source: &mut S,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Failed> {
        let mut stream = connect(self.address, self.step).await?;
        let sent = self.send(&mut stream, source, progress).await;
        if let Err(Failed::NothingDone(broken)) = sent {
            // A node that closes the connection has said why, if it could.
            return Err(match answer(&mut stream, self.step.min(LAST_WORDS)).await {
                Ok(Some(Refused(error))) => judged(self.address, error),
                _ => Failed::NothingDone(broken),
            });
        }
        sent?;
        let unknown =
            |reason: String| Failed::Final(ClientError::Unknown(format!("{}: {reason}", self.address)));
        match answer(&mut stream, self.step).await {
            Ok(None) => Ok(()),
            Ok(Some(Refused(error @ ClientError::Protocol(_)))) => Err(unknown(error.to_string())),
            Ok(Some(Refused(error))) => Err(judged(self.address, error)),
            Err(error) => Err(unknown(error.to_string())),
        }
    }

    async fn send<S: AsyncRead + Unpin>(
        &self,
        stream: &mut TcpStream,
        source: &mut S,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Failed> {
        let failed = |error: io::Error| Failed::NothingDone(unreachable(self.address, &error));
        write_all(stream, self.step, self.header).await.map_err(failed)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut sent = 0;
        while sent < self.len {
            let most = (self.len - sent).min(PIECE_BYTES as u64) as usize;
            let got = source.read(&mut piece[..most]).await.map_err(|error| Failed::Final(error.into()))?;
            if got == 0 {
                let reason = format!("the source ended after {sent} of {} bytes", self.len);
                return Err(Failed::Final(io::Error::new(io::ErrorKind::UnexpectedEof, reason).into()));
            }
            write_all(stream, self.step, &piece[..got]).await.map_err(failed)?;
            sent += got as u64;
            progress(sent);
        }
        write_all(stream, self.step, b"\r\n").await.map_err(failed)
    }
}

/// One attempt to read at one node.
async fn download<S: AsyncWrite + Unpin>(
    (address, step): (SocketAddr, Duration),
    request: &[u8],
    sink: &mut S,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<Transferred>, Failed> {
    let failed = |error: io::Error| Failed::NothingDone(unreachable(address, &error));
    let mut stream = connect(address, step).await?;
    write_all(&mut stream, step, request).await.map_err(failed)?;
    let mut stream = BufReader::with_capacity(PIECE_BYTES, stream);
    let line = within(step, read_line(&mut stream)).await.map_err(failed)?;
    let Some((flags, bytes)) = parse_value_line(&line) else {
        return match parse(&line) {
            Parsed::Complete(Reply::Miss, _) => Ok(None),
            Parsed::Complete(reply, _) => {
                let error = refusal(&reply);
                // A read has done nothing, whatever has become of it.
                Err(match refusal_of(&error) {
                    Refusal::Final => Failed::Final(error),
                    Refusal::NothingDone | Refusal::Unknown => Failed::NothingDone(error),
                })
            }
            _ => Err(Failed::Final(ClientError::Protocol("not an answer to get"))),
        };
    };
    let broken = |done: u64, error: &io::Error| {
        let reason = format!("the value broke off after {done} of {bytes} bytes: {error}");
        Failed::Final(ClientError::Unreachable { last: address, reason })
    };
    let mut done = 0;
    while done < bytes {
        let arrived = within(step, stream.fill_buf()).await.map_err(|error| broken(done, &error))?;
        let len = arrived.len().min(usize::try_from(bytes - done).unwrap_or(usize::MAX));
        if len == 0 {
            return Err(broken(done, &io::ErrorKind::UnexpectedEof.into()));
        }
        sink.write_all(&arrived[..len]).await.map_err(|error| Failed::Final(error.into()))?;
        stream.consume(len);
        done += len as u64;
        progress(done, bytes);
    }
    let mut end = [0; END.len()];
    within(step, stream.read_exact(&mut end)).await.map_err(|error| broken(done, &error))?;
    if end != END {
        return Err(Failed::Final(ClientError::Protocol("a value is not followed by END")));
    }
    sink.flush().await.map_err(|error| Failed::Final(error.into()))?;
    Ok(Some(Transferred { flags, bytes }))
}

/// What a node said instead of `STORED`.
struct Refused(ClientError);

/// The answer to a set: none if it is stored.
async fn answer(stream: &mut TcpStream, step: Duration) -> io::Result<Option<Refused>> {
    let line = within(step, read_line(&mut BufReader::new(stream))).await?;
    Ok(match parse(&line) {
        Parsed::Complete(Reply::Stored, _) => None,
        Parsed::Complete(reply, _) => Some(Refused(refusal(&reply))),
        _ => Some(Refused(ClientError::Protocol("not an answer to set"))),
    })
}

fn refusal(reply: &Reply<'_>) -> ClientError {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match *reply {
        Reply::ServerError(reason) => {
            ClientError::Server { code: FailureCode::parse(reason), words: text(reason) }
        }
        Reply::ClientError(reason) => ClientError::Request(text(reason)),
        Reply::Error => ClientError::Request("the server did not understand it".into()),
        _ => ClientError::Protocol("an answer to another request"),
    }
}

/// What a refusal means for the other nodes.
fn judged(address: SocketAddr, error: ClientError) -> Failed {
    match refusal_of(&error) {
        Refusal::Final => Failed::Final(error),
        Refusal::NothingDone => Failed::NothingDone(error),
        Refusal::Unknown => Failed::Final(ClientError::Unknown(format!("{address}: {error}"))),
    }
}

fn unreachable(last: SocketAddr, error: &io::Error) -> ClientError {
    ClientError::Unreachable { last, reason: error.to_string() }
}

async fn connect(address: SocketAddr, step: Duration) -> Result<TcpStream, Failed> {
    let opened = within(step, TcpStream::connect(address)).await;
    let stream = opened.map_err(|error| Failed::NothingDone(unreachable(address, &error)))?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// A line with its end, of bounded length.
async fn read_line<R: AsyncBufReadExt + Unpin>(stream: &mut R) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    stream.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
    if line.ends_with(b"\n") {
        return Ok(line);
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"))
}

/// A piece may take longer than a step, as long as it moves.
async fn write_all(stream: &mut TcpStream, step: Duration, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = within(step, stream.write(bytes)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

async fn within<T>(step: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("nothing moved for {step:?}"));
    timeout(step, work).await.unwrap_or_else(|_| Err(late()))
}
