//! A whole cluster in this process, over real sockets on free ports, and clients that speak bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use proto::{CoordinatorConfig, RecordKeeping, Rules, Timing};
use server::{
    CoordinatorHandle, CoordinatorServer, CoordinatorServerConfig, CoordinatorStart, Node, NodeConfig,
    NodeHandle, NodeStatus,
};
use types::{ClusterId, NodeId, Profile};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a cluster is made of.
pub struct Plan {
    pub nodes: u16,
    pub profile: &'static str,
    pub workers: u16,
    pub groups: u32,
    pub timing: Timing,
}

impl Default for Plan {
    fn default() -> Self {
        Self { nodes: 5, profile: "rs(3+2)", workers: 1, groups: 5, timing: Timing::from_lease(4_000_000) }
    }
}

/// A running cluster.
pub struct Cluster {
    pub nodes: Vec<NodeHandle>,
    pub coordinator: CoordinatorHandle,
}

impl Cluster {
    /// Five nodes, rs(3+2).
    pub fn start() -> Self {
        Self::of(&Plan::default(), |_| ())
    }

    /// As planned, each node as `change` has it.
    pub fn of(plan: &Plan, change: impl Fn(&mut NodeConfig)) -> Self {
        let coordinator = coordinator(plan);
        let nodes = (0..plan.nodes).map(|id| {
            let mut config = NodeConfig::local(NodeId(id), coordinator.address());
            config.workers = plan.workers;
            config.timing = plan.timing;
            config.native_scans = true;
            change(&mut config);
            Node::start(config).expect("a free port and a thread")
        });
        let cluster = Self { nodes: nodes.collect(), coordinator };
        cluster.nodes.iter().for_each(|node| wait_until_ready(node.addresses().http));
        cluster
    }

    /// A connection to node `index`.
    pub fn client(&self, index: usize) -> Client {
        Client::connect(self.nodes[index].addresses().memcached)
    }

    /// What node `index` says of itself.
    pub fn status(&self, index: usize) -> NodeStatus {
        let (_, body) = http_get(self.nodes[index].addresses().http, "/status");
        serde_json::from_str(&body).expect("a status")
    }
}

/// A coordinator for `plan`.
pub fn coordinator(plan: &Plan) -> CoordinatorHandle {
    let any = "127.0.0.1:0".parse().expect("an address");
    let cluster = CoordinatorConfig {
        cluster: ClusterId(0x7e57),
        profile: plan.profile.parse::<Profile>().expect("a profile"),
        nodes: plan.nodes,
        shards: plan.workers,
        groups: plan.groups,
        timing: plan.timing,
        rules: Rules::all(),
        records: RecordKeeping::Kept,
        on_loss: types::LossPolicy::Error,
    };
    let start = CoordinatorStart::NewCluster;
    CoordinatorServer::start(CoordinatorServerConfig {
        listen: any,
        http: Some(any),
        cluster,
        start,
        processes: None,
    })
    .expect("a free port")
}

/// Polls `/readyz`.
pub fn wait_until_ready(http: SocketAddr) {
    eventually("ready", || {
        let (status, body) = http_get(http, "/readyz");
        if status == 200 { Ok(()) } else { Err(body) }
    });
}

/// Tries until it works, or patience ends.
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(reason) => assert!(start.elapsed() < PATIENCE, "not {what}: {reason}"),
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Status and body of a page.
pub fn http_get(addr: SocketAddr, path: &str) -> (u16, String) {
    let Ok(mut stream) = TcpStream::connect(addr) else { return (0, "refused".to_owned()) };
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    let request = format!("GET {path} HTTP/1.0\r\nHost: test\r\n\r\n");
    let mut text = String::new();
    if stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut text)).is_err() {
        return (0, "no answer".to_owned());
    }
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
}

/// A connection that speaks bytes.
pub struct Client {
    pub stream: TcpStream,
    /// What has been read and not been expected yet.
    input: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("a listener");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, input: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("a live connection");
    }

    /// The next bytes must be these.
    #[track_caller]
    pub fn expect(&mut self, text: impl AsRef<[u8]>) {
        let wanted = text.as_ref();
        while self.input.len() < wanted.len() && self.read() > 0 {}
        let got = &self.input[..wanted.len().min(self.input.len())];
        assert_eq!(printable(got), printable(wanted), "then: {}", printable(&self.input[got.len()..]));
        self.input.drain(..wanted.len());
    }

    /// Sends and expects.
    #[track_caller]
    pub fn ask(&mut self, request: impl AsRef<[u8]>, reply: impl AsRef<[u8]>) {
        self.send(request);
        self.expect(reply);
    }

    /// The next so many bytes.
    #[track_caller]
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        while self.input.len() < len {
            assert!(self.read() > 0, "closed after {} of {len} bytes", self.input.len());
        }
        let rest = self.input.split_off(len);
        std::mem::replace(&mut self.input, rest)
    }

    /// The next line, without its end.
    #[track_caller]
    pub fn line(&mut self) -> String {
        loop {
            if let Some(at) = self.input.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.input[..at]).into_owned();
                self.input.drain(..at + 2);
                return line;
            }
            assert!(self.read() > 0, "closed in the middle of a line");
        }
    }

    /// The node must close, having said nothing more.
    #[track_caller]
    pub fn expect_closed(&mut self) {
        while self.input.is_empty() && self.read() > 0 {}
        assert_eq!(printable(&self.input), "");
    }

    /// The connection must be alive and have nothing else to say.
    #[track_caller]
    pub fn expect_quiet(&mut self) {
        self.ask("mn\r\n", "MN\r\n");
        assert_eq!(printable(&self.input), "");
    }

    fn read(&mut self) -> usize {
        let mut chunk = [0; 65536];
        // A reset is a way to close.
        let len = match self.stream.read(&mut chunk) {
            Ok(len) => len,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("no answer: {error}; so far: {}", printable(&self.input)),
        };
        self.input.extend_from_slice(&chunk[..len]);
        len
    }
}

fn printable(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    if text.len() > 2000 { format!("{}...{} bytes", &text[..1000], bytes.len()) } else { text }
}
