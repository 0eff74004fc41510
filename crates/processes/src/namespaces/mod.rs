//! Network namespaces joined by a bridge.
//!
//! A namespace is a thread that has left the others' network and does what it is told: whatever it starts, threads and
//! processes, is in its network too. Namespaces have no names, so the kernel takes them away with the last of their
//! threads and processes.
//!
//! Needs root (or CAP_SYS_ADMIN and CAP_NET_ADMIN), `ip` and `nft`.

mod process;
mod rules;

use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::sched::{CloneFlags, unshare};

use rules::script;

pub use process::Process;
pub use rules::Rule;

/// Why there can be no namespaces here; none if there can.
#[must_use]
pub fn unavailable() -> Option<String> {
    for (program, package) in [("ip", "iproute2"), ("nft", "nftables")] {
        if let Err(error) = Command::new(program).arg("-V").stdout(Stdio::null()).status() {
            return Some(format!("cannot run `{program}` of Debian's {package}: {error}"));
        }
    }
    // By all that is needed later: where namespaces can be made, links or rules may still be missing.
    let built = Namespace::start("probe").and_then(|probe| {
        probe.ip("link add probe0 type veth peer name probe1\n")?;
        probe.apply(&[Rule::LoseFrom(vec![Ipv4Addr::LOCALHOST], 1)])
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
            // Of this thread: the rest of the process is in the old network.
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

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
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
    ///
    /// # Errors
    /// What `ip` says.
    pub fn ip(&self, lines: &str) -> Result<(), String> {
        self.feed("ip", &["-batch", "-"], lines)
    }

    /// Runs `tc` with these lines.
    ///
    /// # Errors
    /// What `tc` says.
    pub fn tc(&self, lines: &str) -> Result<(), String> {
        self.feed("tc", &["-batch", "-"], lines)
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
    // The program reads to the end of its input.
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() && written.is_ok() {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

/// Machines of any addresses, all on one wire.
pub struct Machines {
    machines: Vec<(Ipv4Addr, Namespace)>,
    /// The wire.
    hub: Namespace,
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
        Ok(Self { machines, hub })
    }

    /// The one at `address`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn at(&self, address: Ipv4Addr) -> &Namespace {
        &self.machines[self.index(address)].1
    }

    /// Limits the link of the machine at `address` to so many Mbit/s in each direction. Needs `tc`.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// If there is no such machine.
    pub fn shape(&self, address: Ipv4Addr, mbit: u32) -> Result<(), String> {
        let index = self.index(address);
        // A burst is what comes between two ticks of the kernel, and one packet that is to be cut at least; half a megabyte waits.
        let burst = (mbit * 1000).max(128 << 10);
        let filter = |device: &str| {
            format!(
                "qdisc replace dev {device} root tbf rate {mbit}mbit burst {burst} limit {}\n",
                burst + (512 << 10)
            )
        };
        self.machines[index].1.tc(&filter("eth0"))?;
        self.hub.tc(&filter(&format!("m{index}")))
    }

    fn index(&self, address: Ipv4Addr) -> usize {
        let found = self.machines.iter().position(|(at, _)| *at == address);
        found.unwrap_or_else(|| panic!("there is no machine at {address}"))
    }
}

/// A namespace at `address` in a network of 16 bits, with a link to `port` of the bridge `br0` in `hub`.
///
/// # Errors
/// What the system says.
pub fn join(hub: &Namespace, name: &str, port: &str, address: Ipv4Addr) -> Result<Namespace, String> {
    let namespace = Namespace::start(name)?;
    let path = namespace.path();
    hub.ip(&format!(
        "link add {port} type veth peer name eth0 netns {path}\nlink set {port} master br0\nlink set {port} up\n"
    ))?;
    namespace.ip(&format!("addr add {address}/16 dev eth0\nlink set eth0 up\n"))?;
    Ok(namespace)
}
