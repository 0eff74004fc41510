//! A real etcd on a free port, with its data in a temporary directory: started, hurt and stopped by tests.
//!
//! Debian's `etcd-server` and `etcd-client` are installed if they are not there. Whatever a test does, dropping an
//! [`EtcdServer`] ends its process.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::others::ensure_program;
use crate::ports::free_run;

const READY_LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for a page of a member that may be stopped.
const PAGE_LIMIT: Duration = Duration::from_secs(1);
/// Ports of a member: the first is for clients, and these are what is added to it for the others.
pub(crate) const PORTS: u16 = 3;
pub(crate) const PEER: u16 = 1;
const METRICS: u16 = 2;

/// One member.
#[derive(Debug)]
pub struct EtcdServer {
    process: Option<Child>,
    dir: TempDir,
    /// Clients, peers, and health.
    port: u16,
    name: String,
    /// Where other members look for it.
    advertised: String,
    /// It and the others, as `--initial-cluster` has them.
    cluster: String,
    tls: Option<TlsFiles>,
    login: Option<String>,
}

/// Certificates as files, for the server and for whoever talks to it.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The authority.
    pub ca: PathBuf,
    /// Certificate and key of both sides.
    pub certificate: PathBuf,
    /// See `certificate`.
    pub key: PathBuf,
}

impl EtcdServer {
    /// Starts one that is all of its cluster, and waits until it serves.
    ///
    /// # Errors
    /// One line if it cannot be installed or does not get ready.
    pub fn start(tls: Option<TlsFiles>) -> Result<Self, String> {
        let mut server = Self::prepare(tls)?;
        server.restart()?;
        Ok(server)
    }

    /// Ports and a directory, and no process yet.
    ///
    /// # Errors
    /// One line if it cannot be installed.
    pub fn prepare(tls: Option<TlsFiles>) -> Result<Self, String> {
        let port = free_run(PORTS)?;
        let advertised = url("http", port + PEER);
        let cluster = format!("only={advertised}");
        let mut only = Self::member("only", port, advertised, cluster)?;
        only.tls = tls;
        Ok(only)
    }

    /// One of several, with [`PORTS`] ports from `port` on; no process yet.
    pub(crate) fn member(name: &str, port: u16, advertised: String, cluster: String) -> Result<Self, String> {
        ensure_program("etcd", "etcd-server")?;
        ensure_program("etcdctl", "etcd-client")?;
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let name = name.to_owned();
        Ok(Self { process: None, dir, port, name, advertised, cluster, tls: None, login: None })
    }

    /// Starts it, again with the same data.
    ///
    /// # Errors
    /// One line if it does not get ready.
    pub fn restart(&mut self) -> Result<(), String> {
        self.spawn()?;
        self.wait_until_healthy()
    }

    /// The same without waiting; its process.
    pub(crate) fn spawn(&mut self) -> Result<u32, String> {
        self.kill();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let (client, peer) = (url(scheme, self.port), url("http", self.port + PEER));
        let log = File::create(self.dir.path().join("etcd.log")).map_err(|error| error.to_string())?;
        let mut command = Command::new("etcd");
        command
            .args(["--name", &self.name, "--data-dir"])
            .arg(self.dir.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &self.advertised])
            // What a killed process has written the kernel has, synced or not.
            .args(["--initial-cluster", &self.cluster, "--unsafe-no-fsync"])
            // Health on a port of its own, without certificates, whatever clients need.
            .args(["--listen-metrics-urls", &url("http", self.port + METRICS), "--logger", "zap"]);
        if let Some(TlsFiles { ca, certificate, key }) = &self.tls {
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(ca);
            command.arg("--cert-file").arg(certificate).arg("--key-file").arg(key);
        }
        let process = command.stdout(Stdio::null()).stderr(log).spawn();
        let process = process.map_err(|error| format!("cannot start etcd: {error}"))?;
        let id = process.id();
        self.process = Some(process);
        Ok(id)
    }

    pub(crate) fn wait_until_healthy(&self) -> Result<(), String> {
        let deadline = Instant::now() + READY_LIMIT;
        while self.page("health").is_none() {
            if Instant::now() > deadline {
                let log = std::fs::read_to_string(self.dir.path().join("etcd.log")).unwrap_or_default();
                return Err(format!("etcd did not get ready:\n{log}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn page(&self, path: &str) -> Option<String> {
        let page = format!("{}/{path}", url("http", self.port + METRICS));
        let config = ureq::Agent::config_builder().timeout_global(Some(PAGE_LIMIT)).build();
        let agent = ureq::Agent::new_with_config(config);
        agent.get(&page).call().ok()?.body_mut().read_to_string().ok()
    }

    /// Whether it leads the members, as far as it knows.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.says("etcd_server_is_leader 1")
    }

    /// Whether it knows of a member that leads.
    #[must_use]
    pub fn has_leader(&self) -> bool {
        self.says("etcd_server_has_leader 1")
    }

    fn says(&self, metric: &str) -> bool {
        self.page("metrics").is_some_and(|page| page.lines().any(|line| line == metric))
    }

    /// `host:port` for clients.
    #[must_use]
    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// As `--coordinator` has it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("etcd://{}", self.authority())
    }

    /// Sends `signal`, if it lives.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.process.as_ref().and_then(|process| i32::try_from(process.id()).ok()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Ends it, with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// From now on `etcdctl` logs in as `NAME:PASSWORD`.
    pub fn log_in_as(&mut self, login: &str) {
        self.login = Some(login.to_owned());
    }

    /// Runs `etcdctl` with `args` and standard input; what it prints.
    ///
    /// # Errors
    /// One line if it fails.
    pub fn ctl(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.authority()]);
        if let Some(TlsFiles { ca, certificate, key }) = &self.tls {
            let flags: [(&str, &Path); 3] = [("--cacert", ca), ("--cert", certificate), ("--key", key)];
            for (flag, file) in flags {
                command.arg(flag).arg(file);
            }
        }
        if let Some(login) = &self.login {
            command.args(["--user", login]);
        }
        let mut child = command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("etcdctl: {error}"))?;
        let mut stdin = child.stdin.take().expect("standard input is piped");
        stdin.write_all(input).map_err(|error| error.to_string())?;
        drop(stdin);
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(format!("etcdctl {args:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

pub(crate) fn url(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
    }
}
