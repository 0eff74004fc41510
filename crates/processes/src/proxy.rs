//! A TCP proxy that delays and corrupts, between nodes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rng::Rng;
use socket2::{Domain, Socket, Type};

/// What becomes of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// How long each of them takes.
    pub delay: Duration,
    /// One bit of about so many bytes is flipped; none if 0.
    pub flip_every: u64,
}

/// A port here, where what comes to it goes, and what becomes of it on the way.
pub type Way = (u16, SocketAddr, Effect);

/// A running proxy. Dropping it closes everything.
pub struct Proxy {
    shared: Arc<Shared>,
}

struct Shared {
    seed: u64,
    source: Ipv4Addr,
    stop: AtomicBool,
    flipped: Arc<AtomicU64>,
    connections: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
}

/// Pieces on the way in one direction.
const PIECES: usize = 256;
const PIECE_BYTES: usize = 16 * 1024;
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
const ACCEPT_EVERY: Duration = Duration::from_millis(5);

impl Proxy {
    /// Listens at `source` and carries what comes to where it belongs, where it shows up as `source`. Flipped bits are added to `flipped`.
    ///
    /// # Errors
    /// One line if it cannot listen.
    pub fn start(
        source: Ipv4Addr,
        ways: Vec<Way>,
        seed: u64,
        flipped: Arc<AtomicU64>,
    ) -> Result<Self, String> {
        let stop = AtomicBool::new(false);
        let (connections, open) = (AtomicU64::new(0), Mutex::default());
        let shared = Arc::new(Shared { seed, source, stop, flipped, connections, open });
        for (port, target, effect) in ways {
            let listener = TcpListener::bind((source, port)).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            let listener = listener.map_err(|error| format!("the proxy cannot listen: {error}"))?;
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&shared, &listener, target, effect));
        }
        Ok(Self { shared })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for stream in self.shared.open.lock().iter_mut().flat_map(|open| open.drain(..)) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener, target: SocketAddr, effect: Effect) {
    while !shared.stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((inner, _)) => {
                let shared = Arc::clone(shared);
                thread::spawn(move || {
                    if let Ok(outer) = dial(shared.source, target) {
                        carry(&shared, &inner, &outer, effect);
                    }
                });
            }
            Err(_) => thread::sleep(ACCEPT_EVERY),
        }
    }
}

/// A connection that comes from `source`.
fn dial(source: Ipv4Addr, target: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect_timeout(&target.into(), CONNECT_LIMIT)?;
    Ok(socket.into())
}

/// Both directions, until the first of them ends.
fn carry(shared: &Arc<Shared>, inner: &TcpStream, outer: &TcpStream, effect: Effect) {
    let streams = [inner, outer, inner, outer].map(TcpStream::try_clone);
    let [Ok(inner), Ok(outer), Ok(inner_again), Ok(outer_again)] = streams else { return };
    for stream in [&inner, &outer] {
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_nodelay(true);
        if let (Ok(mut open), Ok(stream)) = (shared.open.lock(), stream.try_clone()) {
            open.push(stream);
        }
    }
    // Dropped before these were in its list, the proxy has not closed them.
    if shared.stop.load(Ordering::Relaxed) {
        return;
    }
    let there = Arc::clone(shared);
    thread::spawn(move || one_way(&there, inner, outer, effect));
    one_way(shared, outer_again, inner_again, effect);
}

fn one_way(shared: &Arc<Shared>, mut from: TcpStream, to: TcpStream, effect: Effect) {
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut rng = Rng::new(shared.seed, number);
    let (pieces, waiting) = sync_channel::<(Instant, Vec<u8>)>(PIECES);
    let Ok(source) = from.try_clone() else { return };
    let writer = thread::spawn(move || write_late(&waiting, &source, to));
    let mut buffer = [0; PIECE_BYTES];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        let piece = &mut buffer[..len];
        if flip(piece, effect.flip_every, &mut rng) {
            shared.flipped.fetch_add(1, Ordering::Relaxed);
        }
        if pieces.send((Instant::now() + effect.delay, piece.to_vec())).is_err() {
            break;
        }
    }
    drop(pieces);
    let _ = writer.join();
}

/// Writes each piece when its time has come; then ends both streams.
fn write_late(pieces: &Receiver<(Instant, Vec<u8>)>, from: &TcpStream, mut to: TcpStream) {
    for (due, piece) in pieces {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Flips one bit of `piece`, once in `every` bytes; whether it did.
fn flip(piece: &mut [u8], every: u64, rng: &mut Rng) -> bool {
    if every == 0 || rng.below(every) >= piece.len() as u64 {
        return false;
    }
    let at = rng.index(piece.len());
    piece[at] ^= 1 << rng.below(8);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `sent` through a proxy to a listener; what arrives, and how long it took.
    fn through(effect: Effect, sent: &[u8]) -> (Vec<u8>, Duration, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let flipped = Arc::new(AtomicU64::new(0));
        let target = listener.local_addr().unwrap();
        let proxy =
            Proxy::start(Ipv4Addr::LOCALHOST, vec![(free, target, effect)], 1, Arc::clone(&flipped)).unwrap();
        let begun = Instant::now();
        let mut client = TcpStream::connect(("127.0.0.1", free)).unwrap();
        client.write_all(sent).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut arrived = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
        drop(proxy);
        (arrived, begun.elapsed(), flipped.load(Ordering::Relaxed))
    }

    #[test]
    fn bytes_arrive_late_and_whole() {
        let sent: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let delay = Duration::from_millis(30);
        let (arrived, took, flipped) = through(Effect { delay, flip_every: 0 }, &sent);
        assert_eq!((arrived == sent, flipped), (true, 0));
        assert!(took >= delay, "{took:?}");
    }

    #[test]
    fn bits_are_flipped_and_counted() {
        let sent = vec![0u8; 400_000];
        let (arrived, _, flipped) = through(Effect { delay: Duration::ZERO, flip_every: 20_000 }, &sent);
        let ones: u32 = arrived.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(arrived.len(), sent.len());
        assert!(flipped > 0 && u64::from(ones) == flipped, "{ones} bits, {flipped} counted");
    }
}
