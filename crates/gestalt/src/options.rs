//! How a client is made, and how a value is stored.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use client_core::{Coding, Config, LostBy};
use thiserror::Error;
use types::Name;
use types::op::StoreMode;

/// Where a native listener is if the address says nothing of a port.
const DEFAULT_PORT: u16 = 11311;

/// What a client is made with. As text:
/// `gestalt://host:port[,host:port...]/namespace?timeout=10s&window=1048576&encode=auto&decode=auto&lost=star`.
///
/// ```
/// let options: gestalt::Options = "gestalt://10.0.0.1:11311,10.0.0.2:11311/sessions?timeout=500ms".parse()?;
/// assert_eq!(options.seeds.len(), 2);
/// assert!("gestalt://10.0.0.1/Sessions".parse::<gestalt::Options>().is_err());
/// # Ok::<(), gestalt::BadUri>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Some nodes of the cluster: it says where the others are.
    pub seeds: Vec<SocketAddr>,
    /// Values are read through this node as long as it can be reached, not through those that keys belong to: for a task beside a node, which
    /// reads what lies there ([`Client::locate`](crate::Client::locate)).
    pub beside: Option<SocketAddr>,
    /// Whose keys the client is about.
    pub namespace: Name,
    /// How long a request may take, and the making of the client.
    pub timeout: Duration,
    /// Most bytes of one value that are on their way and have not been taken.
    pub window: u32,
    /// Most requests at a time.
    pub max_requests: usize,
    /// Who codes long values that are written.
    pub encode: Coding,
    /// Who puts together those that are read.
    pub decode: Coding,
    /// How what lies in a lost chunk gets here.
    pub lost_by: LostBy,
}

/// Text that says not how to make a client.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "'{uri}': {reason}: write gestalt://HOST:PORT[,HOST:PORT...][/NAMESPACE][?timeout=10s&window=BYTES&encode=auto&decode=auto&lost=star]"
)]
pub struct BadUri {
    uri: String,
    reason: String,
}

impl Default for Options {
    fn default() -> Self {
        let config = Config::default();
        Self {
            seeds: Vec::new(),
            beside: None,
            namespace: config.namespace,
            timeout: Duration::from_micros(config.timeout_us),
            window: config.window,
            max_requests: config.max_requests,
            encode: config.encode,
            decode: config.decode,
            lost_by: config.lost_by,
        }
    }
}

impl Options {
    /// What the core is made with. For bindings: it may change with every version.
    #[doc(hidden)]
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            seeds: self.seeds.clone(),
            beside: self.beside,
            namespace: self.namespace.clone(),
            timeout_us: micros(self.timeout),
            window: self.window.max(1),
            max_requests: self.max_requests.max(1),
            encode: self.encode,
            decode: self.decode,
            lost_by: self.lost_by,
            ..Config::default()
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "timeout" => self.timeout = duration(value).ok_or_else(|| format!("'{value}' is no time"))?,
            "window" => {
                self.window = value.parse().map_err(|_| format!("'{value}' is no number of bytes"))?
            }
            "beside" => self.beside = Some(value.parse().map_err(|_| format!("'{value}' is no address"))?),
            "encode" => self.encode = coding(value)?,
            "decode" => self.decode = coding(value)?,
            "lost" => self.lost_by = lost_by(value)?,
            _ => return Err(format!("there is no option '{name}'")),
        }
        Ok(())
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn coding(text: &str) -> Result<Coding, String> {
    match text {
        "client" => Ok(Coding::Client),
        "server" => Ok(Coding::Server),
        "auto" => Ok(Coding::Auto),
        _ => Err(format!("'{text}' is not client, server or auto")),
    }
}

fn lost_by(text: &str) -> Result<LostBy, String> {
    match text {
        "star" => Ok(LostBy::Star),
        "graph" => Ok(LostBy::Graph),
        _ => Err(format!("'{text}' is not star or graph")),
    }
}

/// `500ms` or `10s`.
fn duration(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(millis) => millis.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s')?.parse().ok().map(Duration::from_secs),
    }
}

impl FromStr for Options {
    type Err = BadUri;

    fn from_str(uri: &str) -> Result<Self, BadUri> {
        parse(uri).map_err(|reason| BadUri { uri: uri.to_owned(), reason })
    }
}

fn parse(uri: &str) -> Result<Options, String> {
    let rest = uri.strip_prefix("gestalt://").ok_or("it does not begin with gestalt://")?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (hosts, name) = rest.split_once('/').unwrap_or((rest, ""));
    let mut options = Options { seeds: seeds(hosts)?, ..Options::default() };
    if !name.is_empty() {
        options.namespace = name.parse().map_err(|bad: types::BadName| bad.to_string())?;
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("'{pair}' is no option"))?;
        options.set(name, value)?;
    }
    Ok(options)
}

/// The addresses of all hosts that have one: a name that is not known now is like a node that is not there.
fn seeds(hosts: &str) -> Result<Vec<SocketAddr>, String> {
    let (mut seeds, mut unknown) = (Vec::new(), None);
    for host in hosts.split(',').filter(|host| !host.is_empty()) {
        match resolve(host) {
            Ok(found) => seeds.extend(found),
            Err(reason) => unknown = Some(reason),
        }
    }
    if seeds.is_empty() { Err(unknown.unwrap_or_else(|| "it names no node".to_owned())) } else { Ok(seeds) }
}

fn resolve(host: &str) -> Result<Vec<SocketAddr>, String> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let found = if has_port { host.to_socket_addrs() } else { (host, DEFAULT_PORT).to_socket_addrs() };
    found.map(Iterator::collect).map_err(|error| format!("{host}: {error}"))
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Under which condition.
    pub mode: StoreMode,
    /// Opaque to the cluster, and given back with the value.
    pub flags: u32,
    /// How many seconds it lives; 0 = as long as its namespace says.
    pub ttl: u32,
    /// Only in the place of this version.
    pub compare: Option<u64>,
}

impl Default for Store {
    fn default() -> Self {
        Self { mode: StoreMode::Set, flags: 0, ttl: 0, compare: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_strict() {
        let options: Options = "gestalt://127.0.0.1:1,[::1]:2/a?timeout=250ms&window=9".parse().unwrap();
        assert_eq!(options.seeds, ["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()]);
        assert_eq!((options.namespace.as_str(), options.timeout.as_millis(), options.window), ("a", 250, 9));
        let coded: Options = "gestalt://127.0.0.1?encode=client&decode=server".parse().unwrap();
        assert_eq!((coded.encode, coded.decode), (Coding::Client, Coding::Server));
        let made: Options = "gestalt://127.0.0.1?lost=graph".parse().unwrap();
        assert_eq!((made.lost_by, coded.lost_by), (LostBy::Graph, LostBy::Star));
        let plain: Options = "gestalt://127.0.0.1".parse().unwrap();
        assert_eq!((plain.seeds[0].port(), plain.namespace.as_str()), (DEFAULT_PORT, "default"));
        let half: Options = "gestalt://a..b,127.0.0.1:1".parse().unwrap();
        assert_eq!(half.seeds, ["127.0.0.1:1".parse().unwrap()], "one that has no address is left out");
        let beside: Options = "gestalt://127.0.0.1?beside=[::1]:7".parse().unwrap();
        assert_eq!(beside.beside, Some("[::1]:7".parse().unwrap()));
        let bad = [
            "gestalt://127.0.0.1?beside=here",
            "",
            "http://a",
            "gestalt://",
            "gestalt://a..b",
            "gestalt:///n",
            "gestalt://127.0.0.1/No",
            "gestalt://127.0.0.1?x=1",
            "gestalt://127.0.0.1?lost=cells",
        ];
        for uri in bad.into_iter().chain(["gestalt://127.0.0.1?timeout=1h", "gestalt://127.0.0.1?window"]) {
            let coded = format!("{uri}?encode=both");
            assert!(coded.parse::<Options>().is_err(), "{coded}");
            assert!(uri.parse::<Options>().unwrap_err().to_string().contains("write gestalt://"), "{uri}");
        }
    }
}
