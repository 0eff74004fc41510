//! A node's config file: one small strict TOML document.
//!
//! Every key has a flag of the same name and an environment variable `GESTALT_…`; flag beats environment beats file
//! beats default. A key that is not known is an error, never ignored.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use toml::{Table, Value};
use types::{Profile, ProfileError};

use crate::exit::Exit;
use crate::units::{self, Size};

/// What a file may say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFile {
    /// Id of the node.
    pub node: Option<u16>,
    /// Where the coordinator is.
    pub coordinator: Option<String>,
    /// The cluster that the node is meant for: its id, or with etcd its name.
    pub cluster: Option<String>,
    /// The protection that the node is meant for.
    pub profile: Option<Profile>,
    /// Where memcached clients connect.
    pub memcached: Option<SocketAddr>,
    /// Where other nodes connect.
    pub peer: Option<SocketAddr>,
    /// Where status and metrics are.
    pub http: Option<SocketAddr>,
    /// The address of this machine that others are told.
    pub advertise: Option<IpAddr>,
    /// Where memcached clients reach it, if not where it listens.
    pub advertise_memcached: Option<SocketAddr>,
    /// The same for other nodes.
    pub advertise_peer: Option<SocketAddr>,
    /// The same for status and metrics.
    pub advertise_http: Option<SocketAddr>,
    /// The same for nodes, while this one has the coordinator.
    pub advertise_listen: Option<SocketAddr>,
    /// Cap on everything the node holds.
    pub memory: Option<Size>,
    /// Worker threads.
    pub workers: Option<u16>,
    /// What to do when memory is full.
    pub evict: Option<String>,
    /// How the system schedules the workers.
    pub scheduling: Option<String>,
    /// Most connections of memcached clients.
    pub max_connections: Option<u32>,
    /// Whether flush_all is answered with an error.
    pub disable_flush_all: Option<bool>,
    /// Failure domain.
    pub zone: Option<String>,
    /// Silence after which a node counts as lost.
    pub lease: Option<Duration>,
    /// How many nodes form the cluster.
    pub nodes: Option<u16>,
    /// Coding groups in all.
    pub groups: Option<u32>,
    /// What becomes of lost data.
    pub on_loss: Option<String>,
    /// Where nodes connect while this one has the coordinator.
    pub listen: Option<SocketAddr>,
    /// File with the authority that has signed etcd's certificate.
    pub etcd_ca: Option<String>,
    /// File with the node's own certificate.
    pub etcd_cert: Option<String>,
    /// File with its key.
    pub etcd_key: Option<String>,
    /// Name to log in to etcd with.
    pub etcd_user: Option<String>,
    /// File with its password.
    pub etcd_password_file: Option<String>,
}

const KNOWN: [&str; 29] = [
    "advertise",
    "advertise-http",
    "advertise-listen",
    "advertise-memcached",
    "advertise-peer",
    "cluster",
    "coordinator",
    "disable-flush-all",
    "etcd-ca",
    "etcd-cert",
    "etcd-key",
    "etcd-password-file",
    "etcd-user",
    "evict",
    "groups",
    "http",
    "lease",
    "listen",
    "max-connections",
    "memcached",
    "memory",
    "node",
    "nodes",
    "on-loss",
    "peer",
    "profile",
    "scheduling",
    "workers",
    "zone",
];

impl NodeFile {
    /// Reads `path`.
    ///
    /// # Errors
    /// `Usage` with the file, the key and what to write instead.
    pub fn read(path: &Path) -> Result<Self, Exit> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| Exit::Usage(format!("{name}: {error}")))?;
        Self::parse(&text).map_err(|reason| Exit::Usage(format!("{name}: {reason}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| one_line(&error, text))?;
        if let Some(key) = table.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Err(unknown(key));
        }
        Ok(Self {
            node: number(&table, "node")?,
            coordinator: string(&table, "coordinator", Ok)?,
            cluster: string(&table, "cluster", Ok)?,
            profile: string(&table, "profile", |text| {
                text.parse().map_err(|error: ProfileError| error.to_string())
            })?,
            memcached: string(&table, "memcached", |text| units::address(&text))?,
            peer: string(&table, "peer", |text| units::address(&text))?,
            http: string(&table, "http", |text| units::address(&text))?,
            advertise: string(&table, "advertise", |text| units::host(&text))?,
            advertise_memcached: string(&table, "advertise-memcached", |text| units::address(&text))?,
            advertise_peer: string(&table, "advertise-peer", |text| units::address(&text))?,
            advertise_http: string(&table, "advertise-http", |text| units::address(&text))?,
            advertise_listen: string(&table, "advertise-listen", |text| units::address(&text))?,
            memory: string(&table, "memory", |text| text.parse())?,
            workers: number(&table, "workers")?,
            evict: string(&table, "evict", Ok)?,
            scheduling: string(&table, "scheduling", Ok)?,
            max_connections: number(&table, "max-connections")?.map(u32::from),
            disable_flush_all: truth(&table, "disable-flush-all")?,
            zone: string(&table, "zone", Ok)?,
            lease: string(&table, "lease", |text| units::duration(&text))?,
            nodes: number(&table, "nodes")?,
            groups: number(&table, "groups")?.map(u32::from),
            on_loss: string(&table, "on-loss", Ok)?,
            listen: string(&table, "listen", |text| units::address(&text))?,
            etcd_ca: string(&table, "etcd-ca", Ok)?,
            etcd_cert: string(&table, "etcd-cert", Ok)?,
            etcd_key: string(&table, "etcd-key", Ok)?,
            etcd_user: string(&table, "etcd-user", Ok)?,
            etcd_password_file: string(&table, "etcd-password-file", Ok)?,
        })
    }
}

fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    format!("line {line}: {}", error.message().replace('\n', " "))
}

fn unknown(key: &str) -> String {
    let nearest = KNOWN.into_iter().map(|known| (strsim::jaro_winkler(key, known), known));
    match nearest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, known)) if likeness > 0.7 => format!("unknown key '{key}': did you mean '{known}'?"),
        _ => format!("unknown key '{key}': known are {}", KNOWN.join(", ")),
    }
}

fn number(table: &Table, key: &str) -> Result<Option<u16>, String> {
    let Some(value) = table.get(key) else { return Ok(None) };
    let number = value.as_integer().and_then(|number| u16::try_from(number).ok());
    number.map(Some).ok_or_else(|| format!("key '{key}' must be a number from 0 to 65535"))
}

fn truth(table: &Table, key: &str) -> Result<Option<bool>, String> {
    let Some(value) = table.get(key) else { return Ok(None) };
    value.as_bool().map(Some).ok_or_else(|| format!("key '{key}' must be true or false"))
}

fn string<T>(
    table: &Table,
    key: &str,
    read: impl Fn(String) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => {
            read(text.clone()).map(Some).map_err(|reason| format!("key '{key}': {reason}"))
        }
        Some(_) => Err(format!("key '{key}' must be a string in quotes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_is_read() {
        let file = NodeFile::parse(
            "node = 3\ncoordinator = \"embedded://127.0.0.1:9179\"\nmemory = \"64GiB\"\nlease = \"500ms\"\nhttp = \"9183\"",
        );
        let file = file.unwrap();
        assert_eq!(file.node, Some(3));
        assert_eq!(file.memory, Some(Size(64 << 30)));
        assert_eq!(file.lease, Some(Duration::from_millis(500)));
        assert_eq!(file.http.unwrap().to_string(), "127.0.0.1:9183");
    }

    #[test]
    fn what_others_are_told_is_read() {
        let file = NodeFile::parse("advertise = \"203.0.113.5\"\nadvertise-peer = \"203.0.113.5:40178\"");
        let file = file.unwrap();
        assert_eq!(file.advertise.unwrap().to_string(), "203.0.113.5");
        assert_eq!((file.advertise_peer.unwrap().port(), file.advertise_memcached), (40178, None));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_nearest() {
        assert_eq!(
            NodeFile::parse("memroy = \"1GiB\""),
            Err("unknown key 'memroy': did you mean 'memory'?".into())
        );
        assert_eq!(
            NodeFile::parse("coordinater = \"\"").unwrap_err().split("mean ").nth(1),
            Some("'coordinator'?")
        );
        assert!(NodeFile::parse("xyzzy = 1").unwrap_err().contains("known are advertise, advertise-http"));
    }

    #[test]
    fn wrong_types_and_values_name_the_key() {
        for (text, part) in [
            ("node = \"three\"", "key 'node' must be a number"),
            ("node = 70000", "key 'node' must be a number"),
            ("disable-flush-all = 1", "key 'disable-flush-all' must be true or false"),
            ("memory = 5", "key 'memory' must be a string"),
            ("memory = \"5 apples\"", "key 'memory': '5 apples' is not a size"),
            ("node = 1\nnode = 2", "line 2"),
            ("node = = 1", "line 1"),
        ] {
            let error = NodeFile::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains('\n'));
        }
    }
}
