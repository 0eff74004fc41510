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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio::net::TcpListener;

    use super::*;

    const STEP: Duration = Duration::from_millis(300);
    /// More than sockets hold: who is killed is noticed before all of it is gone.
    const LEN: usize = 32_000_000;

    /// A node that takes `takes` bytes of what it is sent, says `says`, and closes the connection; if it says nothing, as one that is
    /// killed.
    async fn node(takes: usize, says: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut taken = vec![0; takes];
            let _ = stream.read_exact(&mut taken).await;
            let _ = stream.write_all(&says).await;
            // What it has not read would turn its last words into a reset.
            if !says.is_empty() {
                let _ = stream.shutdown().await;
                let _ = timeout(STEP, stream.read_to_end(&mut Vec::new())).await;
            }
        });
        address
    }

    /// How a set ends at a node that takes so much of it, and how many bytes it was told are gone.
    async fn set_at(takes: usize, says: &str) -> (Result<(), Failed>, u64) {
        let mut header = Vec::new();
        request::set_header(&mut header, b"k", LEN as u64, 0, 0);
        let address = node(takes.min(header.len() + LEN + 2), says.as_bytes().to_vec()).await;
        let upload = Upload { address, step: STEP, header: &header, len: LEN as u64 };
        let mut gone = 0;
        let done = upload.run(&mut Cursor::new(vec![7; LEN]), &mut |bytes| gone = bytes).await;
        (done, gone)
    }

    async fn get_at(says: Vec<u8>) -> (Result<Option<Transferred>, Failed>, Vec<u8>) {
        let address = node(7, says).await;
        let mut sink = Vec::new();
        let got = download((address, STEP), b"get k\r\n", &mut sink, &mut |_, _| {}).await;
        (got, sink)
    }

    #[tokio::test]
    async fn a_value_that_is_stored_was_sent_whole() {
        let (done, gone) = set_at(usize::MAX, "STORED\r\n").await;
        assert!(done.is_ok() && gone == LEN as u64);
    }

    #[tokio::test]
    async fn a_node_that_goes_in_the_middle_has_done_nothing_and_one_that_goes_at_the_end_may_have() {
        let (half, _) = set_at(1000, "").await;
        assert!(matches!(half, Err(Failed::NothingDone(ClientError::Unreachable { .. }))));
        let (whole, gone) = set_at(usize::MAX, "").await;
        assert!(matches!(whole, Err(Failed::Final(ClientError::Unknown(_)))) && gone == LEN as u64);
        let (odd, _) = set_at(usize::MAX, "OK\r\n").await;
        assert!(matches!(odd, Err(Failed::Final(ClientError::Unknown(_)))), "it may be in force");
    }

    #[tokio::test]
    async fn a_refusal_says_whether_others_are_to_be_asked() {
        let (full, _) = set_at(usize::MAX, "SERVER_ERROR out of memory storing object\r\n").await;
        let code = Some(FailureCode::OutOfMemory);
        assert!(matches!(full, Err(Failed::Final(ClientError::Server { code: said, .. })) if said == code));
        let (busy, _) = set_at(usize::MAX, "SERVER_ERROR busy\r\n").await;
        assert!(matches!(busy, Err(Failed::NothingDone(_))));
    }

    #[tokio::test]
    async fn a_source_that_ends_early_is_its_own_error() {
        let mut header = Vec::new();
        request::set_header(&mut header, b"k", 10, 0, 0);
        let address = node(header.len(), Vec::new()).await;
        let upload = Upload { address, step: STEP, header: &header, len: 10 };
        let short = upload.run(&mut Cursor::new(vec![7; 4]), &mut |_| {}).await;
        let Err(Failed::Final(ClientError::Io(error))) = short else { panic!("it is the source") };
        assert!(error.to_string().contains("after 4 of 10 bytes"), "{error}");
    }

    #[tokio::test]
    async fn a_value_comes_whole_or_says_how_far_it_came() {
        let (got, sink) = get_at(b"VALUE k 9 5\r\nhello\r\nEND\r\n".to_vec()).await;
        assert!(matches!(got, Ok(Some(Transferred { flags: 9, bytes: 5 }))) && sink == b"hello");
        let (got, _) = get_at(b"END\r\n".to_vec()).await;
        assert!(matches!(got, Ok(None)));
        let (got, _) = get_at(b"VALUE k 9 5\r\nhel".to_vec()).await;
        let Err(Failed::Final(error)) = got else { panic!("it broke off") };
        assert!(error.to_string().contains("after 3 of 5 bytes"), "{error}");
        let (got, _) = get_at(b"VALUE k 9 5\r\nhelloEND\r\n..".to_vec()).await;
        assert!(matches!(got, Err(Failed::Final(ClientError::Protocol(_)))));
    }

    #[tokio::test]
    async fn a_read_goes_on_at_the_next_node_unless_all_would_say_the_same() {
        for (says, is_final) in
            [("SERVER_ERROR lost\r\n", true), ("SERVER_ERROR unknown\r\n", false), ("", false)]
        {
            let (got, _) = get_at(says.as_bytes().to_vec()).await;
            assert_eq!(matches!(got, Err(Failed::Final(_))), is_final, "{says}");
        }
    }

    #[test]
    fn a_transfer_is_begun_anew_for_a_while_and_not_for_ever() {
        let error = || ClientError::Protocol("");
        let mut patience = Patience::of(Duration::from_secs(60));
        assert!((0..100).all(|_| patience.lose(0, error()).is_ok()) && patience.check().is_ok());
        let moved = (0..10).take_while(|_| patience.lose(1, error()).is_ok()).count();
        assert_eq!(moved, usize::from(MAX_RESTARTS));
        let mut none = Patience::of(Duration::ZERO);
        none.lose(0, error()).unwrap();
        assert!(none.check().is_err());
    }
}
