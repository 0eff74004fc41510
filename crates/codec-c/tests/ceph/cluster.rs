//! A small cluster of real Ceph daemons on the loopback: a monitor, a manager and some OSDs that keep everything in memory.
//!
//! No authentication, no root's folders: all files are in a temporary directory. Plugins are loaded from a folder of the caller's.
//! Dropping a [`Cluster`] kills its daemons.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longest wait for anything: the machine may be busy.
const LIMIT: Duration = Duration::from_secs(180);
/// Longest that one command may take, as `timeout` takes it.
const COMMAND_LIMIT: &str = "60";

pub struct Cluster {
    dir: TempDir,
    daemons: BTreeMap<String, Child>,
}

impl Cluster {
    /// Starts one with `osds` OSDs, and waits until all are up.
    pub fn start(plugins: &Path, osds: usize) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut cluster = Self { dir, daemons: BTreeMap::new() };
        let (monitor, fsid) = (format!("[v2:127.0.0.1:{}/0]", free_port()), uuid());
        fs::write(cluster.path("ceph.conf"), cluster.settings(plugins, &monitor, &fsid)).expect("a file");
        fs::write(cluster.path("keyring"), "").expect("a file");
        let map = cluster.path("monmap");
        let map = map.to_str().expect("a path of text");
        cluster.done("monmaptool", &["--create", "--fsid", &fsid, "--addv", "a", &monitor, map]);
        cluster.done("ceph-mon", &["--mkfs", "-i", "a", "--monmap", map]);
        cluster.daemon("mon", "a");
        cluster.ceph(&["status"]);
        cluster.daemon("mgr", "a");
        (0..osds).for_each(|osd| cluster.new_osd(osd));
        cluster.wait("all OSDs up", |cluster| {
            cluster.json(&["osd", "stat"])["num_up_osds"].as_u64() == Some(osds as u64)
        });
        cluster
    }

    fn settings(&self, plugins: &Path, monitor: &str, fsid: &str) -> String {
        let (dir, plugins) = (self.dir.path().display(), plugins.display());
        format!(
            "[global]\nfsid = {fsid}\nmon_host = {monitor}\npublic_addr = 127.0.0.1\n\
             auth_cluster_required = none\nauth_service_required = none\nauth_client_required = none\n\
             erasure_code_dir = {plugins}\nrun_dir = {dir}\nadmin_socket = {dir}/$name.asok\n\
             log_file = {dir}/$name.log\nkeyring = {dir}/keyring\ncrash_dir = {dir}\n\
             mon_data = {dir}/mon\nmgr_data = {dir}/mgr\nosd_data = {dir}/osd$id\n\
             osd_objectstore = memstore\nmemstore_device_bytes = 536870912\nosd_fast_shutdown = false\n\
             osd_pool_default_pg_autoscale_mode = off\nosd_crush_chooseleaf_type = 0\n\
             mon_allow_pool_delete = true\nmon_data_avail_warn = 1\nmon_data_avail_crit = 0\n\
             osd_heartbeat_interval = 2\nosd_heartbeat_grace = 8\nosd_scrub_sleep = 0\n\
             osd_recovery_sleep_hdd = 0\nosd_recovery_sleep_ssd = 0\nosd_recovery_sleep_hybrid = 0\nosd_recovery_max_active = 16\nosd_max_backfills = 8\nmgr_initial_modules =\nmon_osd_down_out_interval = 600\n"
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file in the cluster's folder, for commands.
    pub fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("a path of text").to_owned()
    }

    fn daemon(&mut self, kind: &str, id: &str) {
        let name = format!("{kind}.{id}");
        let log = File::create(self.path(&format!("{name}.err"))).expect("a file");
        let program = format!("ceph-{kind}");
        let mut command = Command::new(&program);
        command.args(["-f", "-i", id]).env("CEPH_CONF", self.path("ceph.conf")).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        self.daemons.insert(name, child);
    }

    /// An OSD with nothing in it; in place of an earlier one of this number, if there was one.
    pub fn new_osd(&mut self, osd: usize) {
        let (id, fsid) = (osd.to_string(), uuid());
        let folder = self.path(&format!("osd{id}"));
        if folder.exists() {
            self.ceph(&["osd", "destroy", &id, "--yes-i-really-mean-it"]);
            fs::remove_dir_all(&folder).expect("its folder can be removed");
        }
        fs::create_dir(&folder).expect("a folder");
        self.ceph(&["osd", "new", &fsid, &id]);
        self.done("ceph-osd", &["-i", &id, "--mkfs", "--osd-uuid", &fsid]);
        self.daemon("osd", &id);
    }

    /// The processes of OSDs.
    pub fn osds(&self) -> impl Iterator<Item = &Child> {
        self.daemons.iter().filter(|(name, _)| name.starts_with("osd.")).map(|(_, child)| child)
    }

    /// Kills an OSD, and waits until the monitor has noticed. What it kept is gone.
    pub fn kill_osds(&mut self, osds: &[usize]) {
        for osd in osds {
            let mut child = self.daemons.remove(&format!("osd.{osd}")).expect("an OSD that runs");
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
        let left = self.osds().count() as u64;
        self.wait("the dead are down", |cluster| {
            cluster.json(&["osd", "stat"])["num_up_osds"].as_u64() == Some(left)
        });
    }

    /// Ends all OSDs, which write down what they have, and starts them anew.
    pub fn restart_osds(&mut self) {
        let names: Vec<String> =
            self.daemons.keys().filter(|name| name.starts_with("osd.")).cloned().collect();
        let before = self.json(&["osd", "dump"])["epoch"].as_u64();
        let mut children: Vec<Child> = names.iter().filter_map(|name| self.daemons.remove(name)).collect();
        for child in &children {
            self.done("kill", &[&child.id().to_string()]);
        }
        children.iter_mut().for_each(|child| drop(child.wait()));
        for name in &names {
            self.daemon("osd", name.trim_start_matches("osd."));
        }
        let count = names.len() as u64;
        self.wait("all OSDs up again", |cluster| {
            let dump = cluster.json(&["osd", "stat"]);
            dump["num_up_osds"].as_u64() == Some(count) && dump["epoch"].as_u64() > before
        });
    }

    /// Runs `ceph`, whose output is returned.
    pub fn ceph(&self, args: &[&str]) -> String {
        self.done("ceph", &[&["--connect-timeout", "30"], args].concat())
    }

    /// Runs `ceph`, which is to refuse: what it says.
    pub fn refusal(&self, args: &[&str]) -> String {
        let output = self.output("ceph", &[&["--connect-timeout", "30"], args].concat());
        assert!(!output.status.success(), "`ceph {}` was not refused", args.join(" "));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// What `ceph` says, as data.
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.ceph(&[args, &["-f", "json"]].concat());
        serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Runs `rados`.
    pub fn rados(&self, pool: &str, args: &[&str]) -> String {
        self.done("rados", &[&["-p", pool], args].concat())
    }

    fn done(&self, program: &str, args: &[&str]) -> String {
        let output = self.output(program, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{program} {}` failed: {said}", args.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn output(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args([COMMAND_LIMIT, program]).args(args).env("CEPH_CONF", self.path("ceph.conf"));
        command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// Waits until something holds.
    pub fn wait(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited too long for {what}\n{}", self.ceph(&["status"]));
            thread::sleep(Duration::from_millis(300));
        }
    }

    /// Waits until all placement groups are active and clean.
    pub fn wait_until_clean(&self) {
        self.wait("active and clean placement groups", |cluster| {
            let stat = cluster.json(&["status"]);
            let groups = &stat["pgmap"];
            let states = groups["pgs_by_state"].as_array().cloned().unwrap_or_default();
            let clean = states.iter().filter(|state| {
                let name = state["state_name"].as_str().unwrap_or_default();
                name.starts_with("active+clean")
            });
            let clean: u64 = clean.filter_map(|state| state["count"].as_u64()).sum();
            clean > 0 && groups["num_pgs"].as_u64() == Some(clean)
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.daemons.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn uuid() -> String {
    fs::read_to_string("/proc/sys/kernel/random/uuid").expect("Linux has it").trim().to_owned()
}

/// A port that nobody has at the moment, below those that the kernel gives to connections.
fn free_port() -> u16 {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).expect("below 10,000");
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..32_000).find(is_free).expect("a free port")
}
