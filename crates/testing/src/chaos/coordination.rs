//! Who coordinates, and how nodes are told.

use std::path::{Path, PathBuf};

use super::network::{COORDINATOR, Network, node_address};
use super::options::{Coordinator, Options};
use super::pages::HTTP_PORT;
use super::process::Process;
use super::rules::{COORDINATOR_PORT, ETCD_PORT};

/// Port of etcd for other members, of which there are none.
const ETCD_PEER_PORT: u16 = 2380;

/// The process in the coordinator's namespace.
pub struct Coordination {
    kind: Coordinator,
    process: Process,
    program: PathBuf,
    args: Vec<String>,
}

impl Coordination {
    /// Starts it.
    ///
    /// # Errors
    /// One line.
    pub fn start(options: &Options, network: &Network, program: &Path, dir: &Path) -> Result<Self, String> {
        let kind = options.coordinator;
        let (name, program, args) = match kind {
            Coordinator::Embedded => ("coordinator", program.to_owned(), embedded(options)),
            Coordinator::Etcd => ("etcd", PathBuf::from("setpriv"), etcd(&dir.join("etcd"))),
        };
        let mut coordination = Self { kind, process: Process::new(name.to_owned(), dir), program, args };
        coordination.start_again(network)?;
        Ok(coordination)
    }

    /// Starts it, again with its data if it has any.
    ///
    /// # Errors
    /// One line.
    pub fn start_again(&mut self, network: &Network) -> Result<(), String> {
        self.process.start(&network.coordinator, &self.program, &self.args)
    }

    /// What node `node` is told about it.
    pub fn flags(&self, node: u16, options: &Options) -> Vec<String> {
        match self.kind {
            Coordinator::Embedded => {
                vec![format!("--coordinator=embedded://{COORDINATOR}:{COORDINATOR_PORT}")]
            }
            Coordinator::Etcd => vec![
                format!("--coordinator=etcd://{COORDINATOR}:{ETCD_PORT}"),
                format!("--listen={}:{COORDINATOR_PORT}", node_address(node)),
                format!("--nodes={}", options.nodes),
                format!("--profile={}", options.profile),
            ],
        }
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn embedded(options: &Options) -> Vec<String> {
    vec![
        "coordinator".to_owned(),
        format!("--listen={COORDINATOR}:{COORDINATOR_PORT}"),
        format!("--http={COORDINATOR}:{}", HTTP_PORT),
        format!("--nodes={}", options.nodes),
        format!("--profile={}", options.profile),
        "--workers=1".to_owned(),
        lease(options),
        parent(),
    ]
}

/// One member, all of its cluster. It cannot watch its parent, so the kernel has to.
fn etcd(dir: &Path) -> Vec<String> {
    let (client, peer) =
        (format!("http://{COORDINATOR}:{ETCD_PORT}"), format!("http://127.0.0.1:{ETCD_PEER_PORT}"));
    [
        "--pdeathsig=KILL",
        "etcd",
        "--name=only",
        &format!("--data-dir={}", dir.display()),
        &format!("--listen-client-urls={client}"),
        &format!("--advertise-client-urls={client}"),
        &format!("--listen-peer-urls={peer}"),
        &format!("--initial-advertise-peer-urls={peer}"),
        &format!("--initial-cluster=only={peer}"),
        // Killed processes lose nothing that they have written.
        "--unsafe-no-fsync",
        "--logger=zap",
    ]
    .map(str::to_owned)
    .into()
}

/// What nodes and the coordinator have for `--lease`.
pub fn lease(options: &Options) -> String {
    format!("--lease={}us", options.lease.as_micros())
}

/// Makes a process of ours end with this one.
pub fn parent() -> String {
    format!("--parent-pid={}", std::process::id())
}
