//! Crowds that take every place of a listener and ask for nothing: who asks is served nevertheless, and soon.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use server::{ConnectionLimits, Node, NodeConfig};
use types::NodeId;

use crate::harness::{Client, Cluster, Plan, coordinator, http_get, wait_until_ready};

/// How long an honest client may have to wait.
const SOON: Duration = Duration::from_secs(20);
/// Between two bytes of a slow client.
const NOW_AND_THEN: Duration = Duration::from_millis(50);
/// More than the listeners of http and of nodes have places.
const MANY: usize = 160;

/// What the members of a crowd do.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Nothing.
    Silent,
    /// They send one byte of a request now and then.
    Slow,
    /// They send half a request and say that nothing more will come.
    HalfOpen,
}

const MANNERS: [Manner; 3] = [Manner::Silent, Manner::Slow, Manner::HalfOpen];

/// Connections that stay.
struct Crowd {
    sockets: Vec<TcpStream>,
    slow: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Crowd {
    /// `count` connections to `addr`, each in the middle of `request`.
    fn gather(manner: Manner, count: usize, addr: SocketAddr, request: &'static [u8]) -> Self {
        let sockets: Vec<TcpStream> =
            (0..count).map(|_| TcpStream::connect(addr).expect("a listener")).collect();
        let mut crowd = Self { sockets, slow: None };
        match manner {
            Manner::Silent => (),
            Manner::Slow => crowd.dribble(request),
            Manner::HalfOpen => crowd.stop_half_way(&request[..request.len() / 2]),
        }
        crowd
    }

    fn dribble(&mut self, request: &'static [u8]) {
        let over = Arc::new(AtomicBool::new(false));
        let mut sockets: Vec<TcpStream> =
            self.sockets.iter().map(|socket| socket.try_clone().expect("a descriptor")).collect();
        let told = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            for byte in request.iter().cycle() {
                for socket in &mut sockets {
                    // Many have been closed.
                    let _ = socket.write(&[*byte]);
                }
                std::thread::park_timeout(NOW_AND_THEN);
                if told.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        self.slow = Some((over, thread));
    }

    fn stop_half_way(&mut self, half: &[u8]) {
        for socket in &mut self.sockets {
            let _ = socket.write_all(half);
            let _ = socket.shutdown(Shutdown::Write);
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.slow.take() {
            over.store(true, Ordering::Relaxed);
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// What `ask` says, which must not take long.
#[track_caller]
fn soon<T>(manner: Manner, ask: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let answer = ask();
    assert!(start.elapsed() < SOON, "{manner:?}: {:?}", start.elapsed());
    answer
}

/// Whether a newcomer that asks at once is answered. While the crowd still arrives it may have to give way before it was heard.
fn is_served(addr: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(addr).expect("the node listens");
    let mut answer = [0; 4];
    let asked = stream.write_all(b"mn\r\n");
    asked.and_then(|()| stream.read_exact(&mut answer)).is_ok() && &answer == b"MN\r\n"
}

fn single(max_connections: usize) -> Cluster {
    let plan = Plan { nodes: 1, profile: "none", groups: 1, ..Plan::default() };
    let limits = ConnectionLimits { max_connections, ..ConnectionLimits::default() };
    Cluster::of(&plan, |config| config.limits = limits)
}

#[test]
fn a_crowd_at_the_memcached_face_keeps_nobody_out_who_sends_commands() {
    const PLACES: usize = 32;
    let cluster = single(PLACES);
    let addr = cluster.nodes[0].addresses().memcached;
    let request = b"get aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let mut regular = cluster.client(0);
    regular.ask("mn\r\n", "MN\r\n");
    for manner in MANNERS {
        let _crowd = Crowd::gather(manner, 2 * PLACES, addr, request);
        soon(manner, || while !is_served(addr) {});
        // Who has sent a command before keeps his place.
        soon(manner, || regular.ask("mn\r\n", "MN\r\n"));
    }
}

const PAGE: &[u8] =
    b"GET /healthz HTTP/1.1\r\nHost: test\r\nX-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn a_crowd_at_the_http_of_a_node_keeps_nobody_from_its_pages() {
    let cluster = single(32);
    let addr = cluster.nodes[0].addresses().http;
    for manner in MANNERS {
        let _crowd = Crowd::gather(manner, MANY, addr, PAGE);
        assert_eq!(soon(manner, || http_get(addr, "/healthz")), (200, "ok\n".to_owned()), "{manner:?}");
    }
}

#[test]
fn a_crowd_at_the_http_of_the_coordinator_keeps_nobody_from_its_pages() {
    let coordinator = coordinator(&Plan::default());
    let addr = coordinator.http_addr().expect("as planned");
    for manner in MANNERS {
        let _crowd = Crowd::gather(manner, MANY, addr, PAGE);
        assert_eq!(soon(manner, || http_get(addr, "/healthz")), (200, "ok\n".to_owned()), "{manner:?}");
    }
}

/// What a frame begins with.
const FRAME: &[u8] = b"GSTL\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn crowds_at_the_ports_for_nodes_keep_no_node_out() {
    for manner in MANNERS {
        let plan = Plan { nodes: 2, profile: "rs(1+1)", groups: 2, ..Plan::default() };
        let coordinator = coordinator(&plan);
        let start = |id| {
            let mut config = NodeConfig::local(NodeId(id), coordinator.address());
            config.timing = plan.timing;
            Node::start(config).expect("a free port and a thread")
        };
        let _at_the_coordinator = Crowd::gather(manner, MANY, coordinator.addr(), FRAME);
        // The node with the lower id dials the other.
        let dialled = start(1);
        let _at_the_node = Crowd::gather(manner, MANY, dialled.addresses().peer, FRAME);
        let dials = start(0);
        soon(manner, || {
            wait_until_ready(dialled.addresses().http);
            wait_until_ready(dials.addresses().http);
            let mut client = Client::connect(dials.addresses().memcached);
            for key in 0..4 {
                client.ask(format!("set key{key} 0 0 1\r\nx\r\n"), "STORED\r\n");
            }
        });
    }
}
