//! A real etcd of several members on this machine, of which one can be cut off from the others while clients reach all.
//!
//! Members find each other through ways of ours (`Ways`), which tell by the process at the other end who calls whom.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::etcd_server::{EtcdServer, PEER, PORTS, url};
use crate::ports::free_run;

const ACCEPT_EVERY: Duration = Duration::from_millis(5);
const PIECE_BYTES: usize = 16 * 1024;

/// Members, and the ways between them.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<EtcdServer>,
    ways: Arc<Ways>,
}

impl EtcdCluster {
    /// Starts so many members and waits until they serve.
    ///
    /// # Errors
    /// One line if etcd cannot be installed or does not get ready.
    pub fn start(count: u16) -> Result<Self, String> {
        let base = free_run(count * (PORTS + 1))?;
        let port = |member: u16| base + member * (PORTS + 1);
        let advertised = |member: u16| url("http", port(member) + PORTS);
        let name = |member: u16| format!("m{member}");
        let all: Vec<String> =
            (0..count).map(|member| format!("{}={}", name(member), advertised(member))).collect();
        let ways = Arc::new(Ways::default());
        let mut members = Vec::new();
        for member in 0..count {
            // Before any member starts: they call each other at once.
            Ways::open(&ways, usize::from(member), port(member) + PORTS, port(member) + PEER)?;
            let server = EtcdServer::member(&name(member), port(member), advertised(member), all.join(","))?;
            members.push(server);
        }
        for (member, server) in members.iter_mut().enumerate() {
            let process = server.spawn()?;
            ways.state().processes.push((member, process));
        }
        members.iter().try_for_each(EtcdServer::wait_until_healthy)?;
        Ok(Self { members, ways })
    }

    /// As `--coordinator` has it, in this order of members.
    #[must_use]
    pub fn url(&self, order: &[usize]) -> String {
        let authorities: Vec<String> = order.iter().map(|member| self.members[*member].authority()).collect();
        format!("etcd://{}", authorities.join(","))
    }

    /// The member that leads the others, if exactly one says so.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        let mut leaders = (0..self.members.len()).filter(|member| self.members[*member].leads());
        let first = leaders.next();
        if leaders.next().is_some() { None } else { first }
    }

    /// Whether `member` knows of one that leads; not if it does not answer.
    #[must_use]
    pub fn has_leader(&self, member: usize) -> bool {
        self.members[member].has_leader()
    }

    /// From now on `member` and the others do not hear each other.
    pub fn cut_off(&self, member: usize) {
        self.ways.state().cut = Some(member);
    }

    /// They hear each other again.
    pub fn join(&self) {
        let mut state = self.ways.state();
        let Some(member) = state.cut.take() else { return };
        // What was swallowed is missing on these.
        state.open.retain(|way| {
            let was_cut = way.ends.contains(&Some(member));
            if was_cut {
                let _ = way.stream.shutdown(Shutdown::Both);
            }
            !was_cut
        });
    }

    /// Sends `signal` to `member`.
    pub fn signal(&self, member: usize, signal: Signal) {
        self.members[member].signal(signal);
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        self.ways.stop.store(true, Ordering::Relaxed);
        for way in self.ways.state().open.drain(..) {
            let _ = way.stream.shutdown(Shutdown::Both);
        }
    }
}

/// What carries bytes from member to member.
#[derive(Debug, Default)]
struct Ways {
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The member that is cut off.
    cut: Option<usize>,
    /// Members' processes.
    processes: Vec<(usize, u32)>,
    open: Vec<Way>,
}

/// One side of a connection.
#[derive(Debug)]
struct Way {
    ends: Ends,
    stream: TcpStream,
}

/// Who calls, if that is known, and who is called.
type Ends = [Option<usize>; 2];

impl Ways {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cut(&self, ends: Ends) -> bool {
        let cut = self.state().cut;
        cut.is_some() && ends.contains(&cut)
    }

    /// Carries what comes to port `here` to port `there` of `member`.
    fn open(ways: &Arc<Self>, member: usize, here: u16, there: u16) -> Result<(), String> {
        let listener = TcpListener::bind(("127.0.0.1", here)).map_err(|error| error.to_string())?;
        // So that the thread looks up now and then, and can end.
        listener.set_nonblocking(true).map_err(|error| error.to_string())?;
        let ways = Arc::clone(ways);
        thread::spawn(move || {
            while !ways.stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((caller, _)) => ways.accept(&caller, member, there),
                    Err(_) => thread::sleep(ACCEPT_EVERY),
                }
            }
        });
        Ok(())
    }

    fn accept(self: &Arc<Self>, caller: &TcpStream, member: usize, there: u16) {
        let ends = [self.member_at(caller), Some(member)];
        let Ok(called) = TcpStream::connect(("127.0.0.1", there)) else { return };
        for (from, to) in [(caller, &called), (&called, caller)] {
            let _ = from.set_nonblocking(false);
            let _ = from.set_nodelay(true);
            let (Ok(kept), Ok(from), Ok(to)) = (from.try_clone(), from.try_clone(), to.try_clone()) else {
                return;
            };
            self.state().open.push(Way { ends, stream: kept });
            let ways = Arc::clone(self);
            thread::spawn(move || ways.carry(ends, from, to));
        }
    }

    /// One direction. What is sent while the way is cut vanishes, as it would between machines.
    fn carry(&self, ends: Ends, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; PIECE_BYTES];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            if !self.is_cut(ends) && to.write_all(&buffer[..len]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// The member whose process has the other end of `stream`.
    fn member_at(&self, stream: &TcpStream) -> Option<usize> {
        let socket = format!("socket:[{}]", inode(stream.peer_addr().ok()?.port())?);
        let processes = self.state().processes.clone();
        let has_it = |process: u32| {
            let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
            files.filter_map(|file| fs::read_link(file.path()).ok()).any(|link| link.as_os_str() == &*socket)
        };
        processes.into_iter().find(|(_, process)| has_it(*process)).map(|(member, _)| member)
    }
}

/// The kernel's number of the connected socket whose own port is `port`.
fn inode(port: u16) -> Option<String> {
    const LOCAL: usize = 1;
    const INODE: usize = 9;
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let own = format!(":{port:04X}");
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.get(LOCAL).is_some_and(|address| address.ends_with(&own)));
    // A port of the loopback's range is used once at a time.
    rows.find_map(|row| row.get(INODE).filter(|inode| **inode != "0").map(|inode| (*inode).to_owned()))
}
