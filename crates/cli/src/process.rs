//! What the operating system knows of processes: their CPU time, who listens on a port, and whose child this one is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

/// User and system time that all threads of `pid` have used; none if there is no such process.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    clock_gettime(clock).ok().map(Duration::from)
}

/// CPU time of all `pids` together; those that have ended count nothing.
pub fn cpu_time_of_all(pids: &[u32]) -> Duration {
    pids.iter().filter_map(|&pid| cpu_time(pid)).sum()
}

/// The processes on this machine that listen on one of `addresses`, ascending.
pub fn listening_on(addresses: &[SocketAddr]) -> Vec<u32> {
    let ports: BTreeSet<u16> =
        // Other addresses may be those of other machines.
        addresses.iter().filter(|a| a.ip().is_loopback()).map(SocketAddr::port).collect();
    let inodes = listening_inodes(&ports);
    // Else all processes of the machine would be looked through for nothing.
    if inodes.is_empty() {
        return Vec::new();
    }
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found: BTreeSet<u32> = pids.filter(|&pid| holds_any(pid, &inodes)).collect();
    found.into_iter().collect()
}

/// Inodes of the sockets that listen on `ports`.
fn listening_inodes(ports: &BTreeSet<u16>) -> BTreeMap<String, u16> {
    const LISTEN: &str = "0A";
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        let listens = *fields.get(3)? == LISTEN && ports.contains(&port);
        listens.then(|| Some((format!("socket:[{}]", fields.get(9)?), port)))?
    };
    lines.filter_map(socket).collect()
}

fn holds_any(pid: u32, inodes: &BTreeMap<String, u16>) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| target.to_str().is_some_and(|target| inodes.contains_key(target)))
}

/// Asks the kernel to kill this process when its parent ends, however that ends.
///
/// # Errors
/// `Usage` if the parent has ended already.
pub fn die_with(parent: i32) -> Result<(), Exit> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(Exit::usage)?;
    // A parent that ended before the kernel was asked sends no signal any more.
    if nix::unistd::getppid().as_raw() != parent {
        return Err(Exit::usage("the process that started this one has ended"));
    }
    Ok(())
}

/// Returns when this process is told to stop: by SIGTERM or SIGINT, from now on.
///
/// # Errors
/// `Usage` if the system does not tell of signals.
pub fn told_to_stop() -> Result<impl Future<Output = ()>, Exit> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Exit::usage)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Exit::usage)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(listening_on(&[listener.local_addr().unwrap()]), [std::process::id()]);
    }

    #[test]
    fn processes_have_cpu_time_and_others_have_none() {
        assert!(cpu_time(std::process::id()).is_some());
        assert!(cpu_time(u32::MAX).is_none());
    }
}
