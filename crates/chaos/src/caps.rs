//! Limits from outside on the memory of the nodes' processes: a control group for each, or the system's limit for data where
//! there can be none.
//!
//! A process that needs more than its control group has is killed by the kernel. One that needs more than its limit for data
//! gets an error from the system, and must cope or end.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use clap::ValueEnum;

/// By what means memory is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CapBy {
    /// A control group, version 2 or 1, if one can be made; else as `Rlimit`.
    #[default]
    Any,
    /// `RLIMIT_DATA`.
    Rlimit,
}

/// Memory that a process gets beyond what it has when it is squeezed.
const MORE_BYTES: u64 = 32 << 10;
/// Tries to find out what that is.
const TRIES: u32 = 12;
/// Control groups are removed once their last process has gone, which takes the kernel a moment.
const REMOVAL: (u32, Duration) = (50, Duration::from_millis(10));

/// Limits of all nodes' processes.
pub struct Caps {
    bytes: u64,
    means: Means,
}

enum Means {
    Groups { version: Version, dirs: Vec<PathBuf> },
    Rlimit,
}

/// Of the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    /// The file with the limit.
    fn limit(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            Self::V2 => "memory.max",
        }
    }

    /// The file with what is used.
    fn usage(self) -> &'static str {
        match self {
            Self::V1 => "memory.usage_in_bytes",
            Self::V2 => "memory.current",
        }
    }

    /// The file with the most that was used.
    fn peak(self) -> &'static str {
        match self {
            Self::V1 => "memory.max_usage_in_bytes",
            Self::V2 => "memory.peak",
        }
    }

    /// The file with a line `oom_kill N`.
    fn kills(self) -> &'static str {
        match self {
            Self::V1 => "memory.oom_control",
            Self::V2 => "memory.events",
        }
    }
}

impl Caps {
    /// Limits of `bytes` for each of so many nodes.
    #[must_use]
    pub fn new(bytes: u64, by: CapBy, nodes: u16) -> Self {
        let groups = || groups(bytes, nodes);
        let means = if by == CapBy::Rlimit { None } else { groups() };
        Self { bytes, means: means.unwrap_or(Means::Rlimit) }
    }

    /// The program and the first arguments that start `program` under `node`'s limit.
    pub fn wrap(&self, node: u16, program: &Path) -> (PathBuf, Vec<String>) {
        let program = program.display().to_string();
        let args = match &self.means {
            Means::Groups { dirs, .. } => {
                let procs = dirs[usize::from(node)].join("cgroup.procs").display().to_string();
                // The shell joins the group and turns into the program, which so is under
                // the limit from its first byte on.
                ["-c", "echo $$ > \"$0\" && exec \"$@\"", &procs, &program].map(str::to_owned)
            }
            Means::Rlimit => {
                let kib = (self.bytes >> 10).to_string();
                // The soft limit, which can be raised again.
                ["-c", "ulimit -S -d \"$0\" && exec \"$@\"", &kib, &program].map(str::to_owned)
            }
        };
        (PathBuf::from("/bin/sh"), args.into())
    }

    /// Puts a process that runs under `node`'s limit: what it has from before may not count.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn take_in(&self, node: u16, pid: u32) -> Result<(), String> {
        match &self.means {
            Means::Groups { dirs, .. } => set(&dirs[usize::from(node)].join("cgroup.procs"), pid.into()),
            Means::Rlimit => set_data_limit(pid, self.bytes),
        }
    }

    /// Leaves `node`'s process little more memory than it has.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn squeeze(&self, node: u16, pid: u32) -> Result<(), String> {
        match &self.means {
            Means::Groups { version, dirs } => squeeze(*version, &dirs[usize::from(node)]),
            Means::Rlimit => {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                set_data_limit(pid, data_bytes(&status).unwrap_or(0) + MORE_BYTES)
            }
        }
    }

    /// Gives `node`'s process, if it runs, its share again.
    ///
    /// # Errors
    /// One line if the system refuses.
    pub fn release(&self, node: u16, pid: Option<u32>) -> Result<(), String> {
        match (&self.means, pid) {
            (Means::Groups { version, dirs }, _) => {
                set(&dirs[usize::from(node)].join(version.limit()), self.bytes)
            }
            (Means::Rlimit, Some(pid)) => set_data_limit(pid, self.bytes),
            (Means::Rlimit, None) => Ok(()),
        }
    }

    /// What the kernel tells in the end: the most that one of the processes has had, and how many it has killed.
    #[must_use]
    pub fn account(&self) -> String {
        let Means::Groups { version, dirs } = &self.means else { return String::new() };
        let read = |dir: &PathBuf, file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default();
        let peaks = dirs.iter().filter_map(|dir| read(dir, version.peak()).trim().parse::<u64>().ok());
        let kills = dirs.iter().filter_map(|dir| field(&read(dir, version.kills()), "oom_kill "));
        let (peak, kills) = (peaks.max().unwrap_or(0) >> 20, kills.sum::<u64>());
        format!(", {peak} MiB at most, {kills} killed by the kernel")
    }
}

impl fmt::Display for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let means = match self.means {
            Means::Groups { version: Version::V1, .. } => "control groups (version 1)",
            Means::Groups { version: Version::V2, .. } => "control groups (version 2)",
            Means::Rlimit => "RLIMIT_DATA",
        };
        write!(f, "{} MiB for each node by {means}", self.bytes >> 20)
    }
}

impl Drop for Caps {
    fn drop(&mut self) {
        let Means::Groups { dirs, .. } = &self.means else { return };
        for dir in dirs {
            let _ = (0..REMOVAL.0).find(|_| {
                let is_gone = fs::remove_dir(dir).is_ok();
                is_gone || {
                    sleep(REMOVAL.1);
                    false
                }
            });
        }
    }
}

/// A control group for each node below one where that works.
fn groups(bytes: u64, nodes: u16) -> Option<Means> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let places = places(&read("/proc/self/mounts"), &read("/proc/self/cgroup"));
    places.into_iter().find_map(|(version, parent)| {
        let name = |node| parent.join(format!("chaos-{}-{node}", std::process::id()));
        let dirs: Vec<PathBuf> = (0..nodes).map(name).collect();
        let made = dirs.iter().try_for_each(|dir| make(version, &parent, dir, bytes));
        if made.is_err() {
            dirs.iter().for_each(|dir| drop(fs::remove_dir(dir)));
        }
        made.ok().map(|()| Means::Groups { version, dirs })
    })
}

fn make(version: Version, parent: &Path, dir: &Path, bytes: u64) -> Result<(), String> {
    fs::create_dir(dir).map_err(|error| error.to_string())?;
    let limit = dir.join(version.limit());
    // A group of version 2 has these files only once its parent hands the controller down.
    if version == Version::V2 && !limit.exists() {
        let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
    }
    set(&limit, bytes)?;
    // Else it would be swapped out, and never be killed. Not every system has the file.
    let _ = fs::write(dir.join("memory.swap.max"), "0");
    Ok(())
}

/// Where control groups might be made: below this process' own, or at the top.
fn places(mounts: &str, own: &str) -> Vec<(Version, PathBuf)> {
    let place = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let (top, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let (version, controller) = match kind {
            "cgroup" if options.split(',').any(|option| option == "memory") => (Version::V1, "memory"),
            "cgroup2" => (Version::V2, ""),
            _ => return None,
        };
        let path = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|name| name == controller).then_some(path)
        });
        let below = path.map(|path| Path::new(top).join(path.trim_start_matches('/')));
        Some(below.into_iter().chain([PathBuf::from(top)]).map(move |path| (version, path)))
    };
    mounts.lines().filter_map(place).flatten().collect()
}

/// Version 1 refuses a limit below what is used; what is used may grow meanwhile.
fn squeeze(version: Version, dir: &Path) -> Result<(), String> {
    let usage = || -> Result<u64, String> {
        let text = fs::read_to_string(dir.join(version.usage())).map_err(|error| error.to_string())?;
        text.trim().parse().map_err(|_| format!("no figure: {text}"))
    };
    let limit = dir.join(version.limit());
    for doubling in 0..TRIES {
        if set(&limit, usage()? + (MORE_BYTES << doubling)).is_ok() {
            return Ok(());
        }
    }
    set(&limit, usage()? + (MORE_BYTES << TRIES))
}

fn set(file: &Path, value: u64) -> Result<(), String> {
    let written =
        if file.exists() { fs::write(file, value.to_string()) } else { Err(io::ErrorKind::NotFound.into()) };
    written.map_err(|error| format!("{}: {error}", file.display()))
}

fn set_data_limit(pid: u32, bytes: u64) -> Result<(), String> {
    let flags = [format!("--pid={pid}"), format!("--data={bytes}:")];
    let status = Command::new("prlimit").args(flags).status();
    match status.map_err(|error| format!("prlimit: {error}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("prlimit: {status}")),
    }
}

/// `VmData` in bytes, which is what the limit for data is about.
fn data_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_are_looked_for_below_ones_own_and_at_the_top() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = places(mounts, "4:memory:/a/b\n1:cpu:/c\n0::/d\n");
        let expected = [
            (Version::V1, "/sys/fs/cgroup/memory/a/b"),
            (Version::V1, "/sys/fs/cgroup/memory"),
            (Version::V2, "/sys/fs/cgroup/unified/d"),
            (Version::V2, "/sys/fs/cgroup/unified"),
        ];
        assert_eq!(found, expected.map(|(version, path)| (version, PathBuf::from(path))));
        assert_eq!(places("proc /proc proc rw 0 0\n", ""), []);
    }

    #[test]
    fn figures_are_read_from_their_files() {
        assert_eq!(field("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill "), Some(3));
        assert_eq!(data_bytes("VmSize:\t 9 kB\nVmData:\t   12 kB\n"), Some(12 << 10));
    }

    #[test]
    fn a_process_is_told_no_or_killed_when_it_needs_more() {
        for by in [CapBy::Any, CapBy::Rlimit] {
            let caps = Caps::new(64 << 20, by, 1);
            println!("{caps}");
            let ended = |mib: usize| {
                let (program, mut args) = caps.wrap(0, Path::new("/bin/sh"));
                // The shell keeps what it reads.
                args.extend(["-c".to_owned(), format!("x=$(head -c {} /dev/zero | tr '\\0' x)", mib << 20)]);
                Command::new(program).args(args).status().expect("there is a shell").success()
            };
            assert!(ended(1), "{caps}");
            assert!(!ended(200), "{caps}");
        }
    }
}
