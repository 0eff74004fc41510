//! Network namespaces joined by a bridge.
//!
//! A namespace is a thread that has left the others' network and does what it is told: whatever it starts, threads and
//! processes, is in its network too. Namespaces have no names, so the kernel takes them away with the last of their
//! threads and processes.

use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::sched::{CloneFlags, unshare};

use super::rules::{Rule, script};

/// Where the clients and the harness are.
pub const HUB: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 254);
/// Where the coordinator is, or the first member of etcd.
pub const COORDINATOR: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);

/// Where member `member` of etcd is.
pub fn coordinator_address(member: u16) -> Ipv4Addr {
    address(2, member)
}

/// Where node `node` is.
pub fn node_address(node: u16) -> Ipv4Addr {
    address(0, node)
}

/// The address of the proxy that stands for node `node` while its links are bad: what is cut off from the node is cut off
/// from its proxy.
pub fn proxy_address(node: u16) -> Ipv4Addr {
    address(1, node)
}

fn address(net: u8, node: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, net, u8::try_from(node + 1).expect("fewer than 250 nodes"))
}

/// Why there can be no namespaces here; none if there can.
#[must_use]
pub fn unavailable() -> Option<String> {
    for (program, package) in [("ip", "iproute2"), ("nft", "nftables")] {
        if let Err(error) = Command::new(program).arg("-V").stdout(Stdio::null()).status() {
            return Some(format!("cannot run `{program}` of Debian's {package}: {error}"));
        }
    }
    let built = Namespace::start("probe").and_then(|probe| {
        probe.ip("link add probe0 type veth peer name probe1\n")?;
        probe.apply(&[Rule::LoseFrom(vec![HUB], 1)])
    });
    built.err().map(|error| format!("network namespaces do not work here (they need root): {error}"))
}

type Job = Box<dyn FnOnce() + Send>;

/// A network of its own.
pub struct Namespace {
    name: String,
    jobs: Sender<Job>,
    handle: File,
}

impl Namespace {
    /// An empty one.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(name: &str) -> Result<Self, String> {
        let (jobs, inbox) = channel::<Job>();
        let (ready, entered) = channel();
        thread::spawn(move || {
            let left = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
            let handle = left.and_then(|()| File::open("/proc/thread-self/ns/net"));
            let is_there = handle.is_ok();
            let _ = ready.send(handle);
            if is_there {
                inbox.iter().for_each(|job| job());
            }
        });
        let handle = entered.recv().map_err(|error| error.to_string())?;
        let handle = handle.map_err(|error| format!("cannot make a network namespace: {error}"))?;
        let namespace = Self { name: name.to_owned(), jobs, handle };
        namespace.ip("link set lo up\n")?;
        Ok(namespace)
    }

    /// Does `work` in this network, and waits for it.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = Box::new(move || drop(done.send(work())));
        self.jobs.send(job).expect("the namespace's thread waits for jobs");
        result.recv().expect("the job ends")
    }

    /// Runs `ip` with these lines.
    fn ip(&self, lines: &str) -> Result<(), String> {
        self.feed("ip", &["-batch", "-"], lines)
    }

    /// Makes `rules` the only ones.
    ///
    /// # Errors
    /// What `nft` says.
    pub fn apply(&self, rules: &[Rule]) -> Result<(), String> {
        self.feed("nft", &["-f", "-"], &script(rules))
    }

    fn feed(&self, program: &'static str, args: &'static [&'static str], input: &str) -> Result<(), String> {
        let text = input.to_owned();
        let result = self.run(move || feed(program, args, &text));
        result.map_err(|error| format!("{}: {program}: {error}", self.name))
    }

    /// A path that names this namespace while it lives.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd())
    }
}

fn feed(program: &str, args: &[&str], input: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let written = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() && written.is_ok() {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

/// The namespaces of a cluster, and the one in the middle to which they are joined.
pub struct Network {
    /// The harness, the clients and the proxies.
    pub hub: Namespace,
    /// The coordinator, or the members of etcd.
    pub coordinators: Vec<Namespace>,
    /// The nodes.
    pub nodes: Vec<Namespace>,
}

impl Network {
    /// Builds it for so many nodes, and so many processes that coordinate or are members of etcd.
    ///
    /// # Errors
    /// What the system says.
    pub fn build(nodes: u16, coordinators: u16) -> Result<Self, String> {
        let hub = Namespace::start("hub")?;
        hub.ip(&format!("link add br0 type bridge\naddr add {HUB}/16 dev br0\nlink set br0 up\n"))?;
        let coordinator =
            |id| join(&hub, &format!("coordinator {id}"), &format!("c{id}"), coordinator_address(id));
        let coordinators = (0..coordinators).map(coordinator).collect::<Result<_, _>>()?;
        let node = |id| {
            hub.ip(&format!("addr add {}/16 dev br0\n", proxy_address(id)))?;
            join(&hub, &format!("node {id}"), &format!("n{id}"), node_address(id))
        };
        let nodes = (0..nodes).map(node).collect::<Result<_, _>>()?;
        Ok(Self { hub, coordinators, nodes })
    }
}

/// Machines of any addresses, all on one wire.
pub struct Machines {
    machines: Vec<(Ipv4Addr, Namespace)>,
    /// The wire.
    _hub: Namespace,
}

impl Machines {
    /// One for each of `addresses`, which are on one network of 16 bits.
    ///
    /// # Errors
    /// What the system says.
    pub fn build(addresses: &[Ipv4Addr]) -> Result<Self, String> {
        let hub = Namespace::start("wire")?;
        hub.ip("link add br0 type bridge\nlink set br0 up\n")?;
        let machine = |(id, address): (usize, &Ipv4Addr)| {
            join(&hub, &address.to_string(), &format!("m{id}"), *address)
                .map(|namespace| (*address, namespace))
        };
        let machines = addresses.iter().enumerate().map(machine).collect::<Result<_, _>>()?;
        Ok(Self { machines, _hub: hub })
    }

    /// The one at `address`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn at(&self, address: Ipv4Addr) -> &Namespace {
        let found = self.machines.iter().find(|(at, _)| *at == address);
        &found.unwrap_or_else(|| panic!("there is no machine at {address}")).1
    }
}

fn join(hub: &Namespace, name: &str, port: &str, address: Ipv4Addr) -> Result<Namespace, String> {
    let namespace = Namespace::start(name)?;
    let path = namespace.path();
    hub.ip(&format!(
        "link add {port} type veth peer name eth0 netns {path}\nlink set {port} master br0\nlink set {port} up\n"
    ))?;
    namespace.ip(&format!("addr add {address}/16 dev eth0\nlink set eth0 up\n"))?;
    Ok(namespace)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    const PORT: u16 = 4000;

    /// Whether a connection from one namespace to a port in another can be opened.
    fn connects(from: &Namespace, to: Ipv4Addr) -> bool {
        let limit = Duration::from_millis(300);
        from.run(move || TcpStream::connect_timeout(&(to, PORT).into(), limit).is_ok())
    }

    #[test]
    fn rules_cut_and_redirect_and_leave_the_rest_alone() {
        if let Some(why) = unavailable() {
            println!("skipped: {why}");
            return;
        }
        let network = Network::build(3, 1).unwrap();
        let [zero, one, two] = &network.nodes[..] else { panic!("three nodes") };
        let listen = |at: &Namespace| at.run(|| TcpListener::bind(("0.0.0.0", PORT)).unwrap());
        let listener = listen(one);
        let (there, elsewhere) = (node_address(1), node_address(2));
        for from in [zero, two, &network.hub] {
            // The kernel takes a moment to bring a new link up.
            assert!((0..20).any(|_| connects(from, there)), "{} does not reach node 1", from.name);
        }

        one.apply(&[Rule::DropFrom(vec![node_address(0)])]).unwrap();
        assert!(!connects(zero, there) && connects(two, there) && connects(&network.hub, there));

        one.apply(&[Rule::DropTo(vec![node_address(2)])]).unwrap();
        assert!(connects(zero, there) && !connects(two, there));

        one.apply(&[]).unwrap();
        assert!(!connects(zero, elsewhere), "nobody listens there");
        zero.apply(&[Rule::Redirect { from: (elsewhere, PORT), to: (there, PORT) }]).unwrap();
        assert!(connects(zero, elsewhere) && connects(two, there));

        zero.apply(&[]).unwrap();
        assert!(one.apply(&[Rule::LoseFrom(Vec::new(), 1)]).is_err(), "nft says what it does not like");
        drop(listener);
    }
}
