//! What this machine has: memory, cores, free ports.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::thread::available_parallelism;

use crate::exit::Exit;
use crate::process;
use crate::units::Size;

/// Memory that processes here may use: the machine's, or the container's if that is less.
pub fn memory() -> Option<Size> {
    let total = total_memory();
    let limit = container_limit();
    total.into_iter().chain(limit).min().map(Size)
}

fn total_memory() -> Option<u64> {
    let table = fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The limit of the control group at the root of this container, version 2 or 1.
fn container_limit() -> Option<u64> {
    let paths = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    // `max` is no number, and no limit.
    paths.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// Cores that this process may use.
pub fn cores() -> u16 {
    available_parallelism().map_or(1, |cores| u16::try_from(cores.get()).unwrap_or(u16::MAX))
}

/// That nothing listens on any of `addresses`.
///
/// # Errors
/// `Usage` with the ports in use, who has them, and the flags that choose others.
pub fn check_free(addresses: &[SocketAddr], flags: &str) -> Result<(), Exit> {
    let mut seen = BTreeMap::new();
    for address in addresses {
        if seen.insert(*address, ()).is_some() {
            return Err(Exit::Usage(format!(
                "port {} is asked for twice: choose others with {flags}",
                address.port()
            )));
        }
    }
    let taken: Vec<String> = addresses.iter().filter_map(|address| describe_taken(*address)).collect();
    if taken.is_empty() {
        return Ok(());
    }
    Err(Exit::Usage(format!("{}: stop it, or choose other ports with {flags}", taken.join(", "))))
}

fn describe_taken(address: SocketAddr) -> Option<String> {
    let error = TcpListener::bind(address).err()?;
    if error.kind() != std::io::ErrorKind::AddrInUse {
        return Some(format!("cannot listen on {address} ({error})"));
    }
    let owners = process::listening_on(&[address]);
    let owner = owners.first().map_or_else(String::new, |pid| format!(" by process {pid}"));
    Some(format!("port {} is in use{owner}", address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_cores() {
        assert!(memory().unwrap() > Size(64 << 20));
        assert!(cores() > 0);
    }

    #[test]
    fn a_port_in_use_is_named_with_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let text = check_free(&[address], "--port").unwrap_err().to_string();
        let pid = std::process::id();
        assert!(text.starts_with(&format!("port {} is in use by process {pid}", address.port())), "{text}");
        assert!(check_free(&[address, address], "--port").unwrap_err().to_string().contains("twice"));
    }
}
