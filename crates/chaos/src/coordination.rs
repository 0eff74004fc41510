//! Who coordinates, and how nodes are told.

use std::path::{Path, PathBuf};

use processes::namespaces::Process;

use crate::network::{COORDINATOR, COORDINATOR_PORT, ETCD_PORT, Network, coordinator_address, node_address};
use crate::options::{Coordinator, Options};
use crate::pages::HTTP_PORT;

/// Port of etcd for other members.
const ETCD_PEER_PORT: u16 = 2380;

/// The processes in the coordinators' namespaces: one, or as many as etcd has members.
pub struct Coordination {
    kind: Coordinator,
    program: PathBuf,
    processes: Vec<(Process, Vec<String>)>,
}

impl Coordination {
    /// Starts them.
    ///
    /// # Errors
    /// One line.
    pub fn start(options: &Options, network: &Network, program: &Path, dir: &Path) -> Result<Self, String> {
        let kind = options.coordinator;
        let process = |name: String, args| (Process::new(name, dir), args);
        let member = |member| process(format!("etcd {member}"), etcd(member, options.etcd_members, dir));
        let (program, processes) = match kind {
            Coordinator::Embedded => {
                (program.to_owned(), vec![process("coordinator".to_owned(), embedded(options))])
            }
            Coordinator::Etcd => (PathBuf::from("setpriv"), (0..options.etcd_members).map(member).collect()),
        };
        let mut coordination = Self { kind, program, processes };
        coordination.start_again(network)?;
        Ok(coordination)
    }

    /// Starts them, again with their data if they have any.
    ///
    /// # Errors
    /// One line.
    pub fn start_again(&mut self, network: &Network) -> Result<(), String> {
        (0..self.processes.len()).try_for_each(|member| self.start_member(network, member))
    }

    /// Starts one of them.
    ///
    /// # Errors
    /// One line.
    pub fn start_member(&mut self, network: &Network, member: usize) -> Result<(), String> {
        let (process, args) = &mut self.processes[member];
        process.start(&network.coordinators[member], &self.program, args)
    }

    /// What node `node` is told about it.
    pub fn flags(&self, node: u16, options: &Options) -> Vec<String> {
        match self.kind {
            Coordinator::Embedded => {
                vec![format!("--coordinator=embedded://{COORDINATOR}:{COORDINATOR_PORT}")]
            }
            Coordinator::Etcd => vec![
                format!("--coordinator=etcd://{}", authorities(node, options)),
                format!("--listen={}:{COORDINATOR_PORT}", node_address(node)),
                format!("--nodes={}", options.nodes),
                format!("--profile={}", options.profile),
            ],
        }
    }

    /// All of them.
    pub fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        self.processes.iter_mut().map(|(process, _)| process)
    }

    /// One of them.
    pub fn process(&mut self, member: usize) -> &mut Process {
        &mut self.processes[member].0
    }
}

/// etcd's members in the order in which `node` asks them: each of them is the first one of some nodes.
fn authorities(node: u16, options: &Options) -> String {
    let count = options.etcd_members;
    let members = (0..count).map(|place| coordinator_address((node + place) % count));
    members.map(|address| format!("{address}:{ETCD_PORT}")).collect::<Vec<_>>().join(",")
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

/// One member of so many. It cannot watch its parent, so the kernel has to.
fn etcd(member: u16, members: u16, dir: &Path) -> Vec<String> {
    let peer = |member| format!("http://{}:{ETCD_PEER_PORT}", coordinator_address(member));
    let all: Vec<String> = (0..members).map(|member| format!("m{member}={}", peer(member))).collect();
    let (client, peer) = (format!("http://{}:{ETCD_PORT}", coordinator_address(member)), peer(member));
    [
        "--pdeathsig=KILL",
        "etcd",
        &format!("--name=m{member}"),
        &format!("--data-dir={}", dir.join(format!("etcd-{member}")).display()),
        &format!("--listen-client-urls={client}"),
        &format!("--advertise-client-urls={client}"),
        &format!("--listen-peer-urls={peer}"),
        &format!("--initial-advertise-peer-urls={peer}"),
        &format!("--initial-cluster={}", all.join(",")),
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
