//! A node's settings. Each is one field of [`NodeSettings`]: a flag of `gestalt serve`, a variable `GESTALT_...` and a key of the config
//! file, all of the same name.
//!
//! Flag beats variable beats file beats default. A key that is not known is an error, never ignored.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Arg, Args, Command};
use serde::Deserialize;
use types::Profile;

use crate::clients::longest_value;
use crate::exit::Exit;
use crate::listeners::{ClientListener, listeners};
use crate::settings::{CodingPlace, EncodeBy, Eviction, GraphExecution, OnLoss, RepairBy, Scheduling};
use crate::units::{Size, address, duration, from_text, host};

/// A structure of what may be given, in more than one place.
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $settings:ident { $($(#[$about_field:meta])* pub $field:ident: $type:ty,)* }
    ) => {
        $(#[$about])*
        pub struct $settings { $($(#[$about_field])* pub $field: $type,)* }

        impl $settings {
            /// With what `others` say where these say nothing.
            pub fn or(self, others: Self) -> Self {
                Self { $($field: self.$field.or(others.$field),)* }
            }

            /// The fields that say something.
            fn given(&self) -> Vec<&'static str> {
                let all = [$((stringify!($field), self.$field != <$type>::default()),)*];
                all.into_iter().filter_map(|(field, is_given)| is_given.then_some(field)).collect()
            }
        }
    };
}

/// A switch is given if it is on.
trait Switch {
    fn or(self, other: Self) -> Self;
}

impl Switch for bool {
    fn or(self, other: Self) -> Self {
        self || other
    }
}

const ADVERTISED: &str = "Where others reach this node, if not where it listens (0.0.0.0, NAT, containers)";
const WITH_ETCD: &str = "With --coordinator etcd://...";

settings! {
    /// What may be said of a node. What is not said has a default, or there is none.
    #[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct NodeSettings {
        /// Id of the node, 0 to the number of nodes less one
        #[arg(long, env = "GESTALT_NODE")]
        pub node: Option<u16>,
        /// The cluster that the node is meant for; another one is refused. With embedded://... its id (`gestalt status -o json`
        /// names it), with etcd://... the name under which it lives in etcd [default: gestalt]
        #[arg(long, env = "GESTALT_CLUSTER")]
        pub cluster: Option<String>,
        /// The protection that the node is meant for, for example rs(3+2); a cluster with another one is refused
        #[arg(long, env = "GESTALT_PROFILE")]
        pub profile: Option<Profile>,
        /// Where the coordinator is: embedded://HOST:PORT, or the etcd over which it is elected: etcd://HOST:PORT[,HOST:PORT...]
        #[arg(long, env = "GESTALT_COORDINATOR")]
        pub coordinator: Option<String>,
        /// Where memcached clients connect: an address alone is for the default namespace, and there is one such; ADDR=NAMESPACE is
        /// for clients of that namespace, and may be given several times [default: 127.0.0.1:11211 for the default namespace]
        #[arg(long, env = "GESTALT_MEMCACHED", value_name = "ADDR[=NAMESPACE]", value_delimiter = ',')]
        #[serde(deserialize_with = "listeners")]
        pub memcached: Option<Vec<ClientListener>>,
        /// Where clients of the native protocol connect [default: nowhere]
        #[arg(long, env = "GESTALT_NATIVE", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub native: Option<SocketAddr>,
        /// Clients of the native protocol may ask which keys there are (gestalt kv scan): the port does not know yet who asks
        #[arg(long, env = "GESTALT_NATIVE_SCANS", value_parser = FalseyValueParser::new())]
        pub native_scans: bool,
        /// Where other nodes connect; port 0 is any free one [default: 127.0.0.1:0]
        #[arg(long, env = "GESTALT_PEER", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub peer: Option<SocketAddr>,
        /// Where status and metrics are [default: port 9181 of all addresses, and of the loopback alone if --peer is]
        #[arg(long, env = "GESTALT_HTTP", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub http: Option<SocketAddr>,

        /// The host that others are told for all listeners that are not on the loopback; their ports stay
        #[arg(long, env = "GESTALT_ADVERTISE", help_heading = ADVERTISED, value_name = "HOST", value_parser = host)]
        #[serde(deserialize_with = "from_text")]
        pub advertise: Option<IpAddr>,
        /// For --memcached alone, with its port
        #[arg(long, env = "GESTALT_ADVERTISE_MEMCACHED", help_heading = ADVERTISED, value_name = "HOST:PORT", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub advertise_memcached: Option<SocketAddr>,
        /// For --peer alone, with its port
        #[arg(long, env = "GESTALT_ADVERTISE_PEER", help_heading = ADVERTISED, value_name = "HOST:PORT", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub advertise_peer: Option<SocketAddr>,
        /// For --http alone, with its port
        #[arg(long, env = "GESTALT_ADVERTISE_HTTP", help_heading = ADVERTISED, value_name = "HOST:PORT", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub advertise_http: Option<SocketAddr>,
        /// For --native alone, with its port
        #[arg(long, env = "GESTALT_ADVERTISE_NATIVE", help_heading = ADVERTISED, value_name = "HOST:PORT", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub advertise_native: Option<SocketAddr>,
        /// For --listen alone, with its port
        #[arg(long, env = "GESTALT_ADVERTISE_LISTEN", help_heading = ADVERTISED, value_name = "HOST:PORT", value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub advertise_listen: Option<SocketAddr>,

        /// Hard cap on everything the node holds [default: 1GiB]
        #[arg(long, env = "GESTALT_MEMORY")]
        #[serde(deserialize_with = "from_text")]
        pub memory: Option<Size>,
        /// Worker threads, the same number on every node [default: the cores of this machine]
        #[arg(long, env = "GESTALT_WORKERS", value_parser = clap::value_parser!(u16).range(1..=256))]
        pub workers: Option<u16>,
        /// What to do when memory is full [default: clock]
        #[arg(long, env = "GESTALT_EVICT", value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub evict: Option<Eviction>,
        /// How the system schedules the workers [default: batch]
        #[arg(long, env = "GESTALT_SCHEDULING", value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub scheduling: Option<Scheduling>,
        /// How chunks of long values that a node lacks are made of others [default: cells]
        #[arg(long, env = "GESTALT_REPAIR_BY", value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub repair_by: Option<RepairBy>,
        /// How what lies in a chunk that is not there is made of others for a reader [default: cells]
        #[arg(long, env = "GESTALT_READ_LOST_BY", value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub read_lost_by: Option<RepairBy>,
        /// Who makes the parities of long values that clients of this node write [default: node]
        #[arg(long, env = "GESTALT_ENCODE_BY", value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub encode_by: Option<EncodeBy>,
        /// How the steps of coding graphs work [default: coherent]
        #[arg(long, env = "GESTALT_GRAPHS", value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub graphs: Option<GraphExecution>,
        /// Where the codes of long values are computed [default: processor]
        #[arg(long, env = "GESTALT_CODING_PLACE", value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub coding_place: Option<CodingPlace>,
        /// What a MiB that goes from one zone to another costs where the model chooses between coding graphs, in microseconds: at 8400
        /// it is as dear as one more that the busiest link of 1 Gbit/s has to carry [default: 0]
        #[arg(long, env = "GESTALT_ZONE_PRICE", value_parser = clap::value_parser!(u32).range(..=1_000_000_000))]
        pub zone_price: Option<u32>,
        /// Failure domain, for example a rack
        #[arg(long, env = "GESTALT_ZONE")]
        pub zone: Option<String>,
        /// Silence after which a node counts as lost, the same on every node [default: 1s]. Leases at etcd last as long, but 2s
        /// at least
        #[arg(long, env = "GESTALT_LEASE", value_parser = duration)]
        #[serde(deserialize_with = "from_text")]
        pub lease: Option<Duration>,
        /// Most connections of memcached clients at a node; one more takes the place of one that has sent no command, or is
        /// turned away [default: 4096]
        #[arg(long, env = "GESTALT_MAX_CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        pub max_connections: Option<u32>,
        /// Longest value that is taken from a client, up to 1TiB, in namespaces that cut long values into chunks (`gestalt namespace
        /// set --striped-above`); in others it is memcached's 1MiB [default: 1GiB]
        #[arg(long, env = "GESTALT_MAX_VALUE", value_name = "SIZE", value_parser = longest_value)]
        #[serde(deserialize_with = "from_text")]
        pub max_value: Option<Size>,
        /// A long value that is being written is given up when nothing more of it has come for so long; at least a lease [default: 30
        /// leases]
        #[arg(long, env = "GESTALT_WRITE_TIMEOUT", value_name = "TIME", value_parser = duration)]
        #[serde(deserialize_with = "from_text")]
        pub write_timeout: Option<Duration>,
        /// Chunks of which nobody has said for so long what has become of them are asked about; at least a lease [default: 60 leases]
        #[arg(long, env = "GESTALT_ASK_INTERVAL", value_name = "TIME", value_parser = duration)]
        #[serde(deserialize_with = "from_text")]
        pub ask_interval: Option<Duration>,
        /// Answers flush_all with an error, as memcached -F does
        #[arg(long, env = "GESTALT_DISABLE_FLUSH_ALL", value_parser = FalseyValueParser::new())]
        pub disable_flush_all: bool,

        /// How many nodes form the cluster, if this is the first [default: 5]
        #[arg(long, env = "GESTALT_NODES", help_heading = WITH_ETCD, value_parser = clap::value_parser!(u16).range(1..=1000))]
        pub nodes: Option<u16>,
        /// Coding groups in all, if this is the first node [default: so many that a node has 40 roles, or 8 for each worker]
        #[arg(long, env = "GESTALT_GROUPS", help_heading = WITH_ETCD, value_parser = clap::value_parser!(u32).range(1..=16_384))]
        pub groups: Option<u32>,
        /// What becomes of data when more is lost than the profile makes up for, if this is the first node; `gestalt lost policy`
        /// changes it later [default: error]
        #[arg(long, env = "GESTALT_ON_LOSS", help_heading = WITH_ETCD, value_enum)]
        #[serde(deserialize_with = "from_text")]
        pub on_loss: Option<OnLoss>,
        /// Where nodes connect while this one has the coordinator [default: the address of --peer, any free port]
        #[arg(long, env = "GESTALT_LISTEN", help_heading = WITH_ETCD, value_parser = address)]
        #[serde(deserialize_with = "from_text")]
        pub listen: Option<SocketAddr>,
        /// PEM file with the authority that has signed etcd's certificate; with it the connection is encrypted
        #[arg(long, env = "GESTALT_ETCD_CA", help_heading = WITH_ETCD, value_name = "FILE")]
        pub etcd_ca: Option<PathBuf>,
        /// PEM file with this node's own certificate, if etcd asks for one
        #[arg(long, env = "GESTALT_ETCD_CERT", help_heading = WITH_ETCD, value_name = "FILE")]
        pub etcd_cert: Option<PathBuf>,
        /// PEM file with its key
        #[arg(long, env = "GESTALT_ETCD_KEY", help_heading = WITH_ETCD, value_name = "FILE")]
        pub etcd_key: Option<PathBuf>,
        /// Name to log in with, if etcd asks for one
        #[arg(long, env = "GESTALT_ETCD_USER", help_heading = WITH_ETCD, value_name = "NAME")]
        pub etcd_user: Option<String>,
        /// File with its password
        #[arg(long, env = "GESTALT_ETCD_PASSWORD_FILE", help_heading = WITH_ETCD, value_name = "FILE")]
        pub etcd_password_file: Option<PathBuf>,
    }
}

impl NodeSettings {
    /// Reads `path`.
    ///
    /// # Errors
    /// `Usage` with the file, the line, the key and what to write instead.
    pub fn read(path: &Path) -> Result<Self, Exit> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| Exit::Usage(format!("{name}: {error}")))?;
        Self::parse(&text).map_err(|reason| Exit::Usage(format!("{name}: {reason}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let at = |error: &toml::de::Error| Place::of(error, text);
        let file = toml::Deserializer::parse(text)
            .map_err(|error| format!("line {}: {}", at(&error).line, one_line(&error)))?;
        let settings = Self::deserialize(file).map_err(|error| {
            let Place { line, key } = at(&error);
            format!("line {line}: {}", explain(key, &one_line(&error)))
        })?;
        settings.check_ranges()?;
        Ok(settings)
    }

    /// Numbers of a file have the ranges of their flags.
    fn check_ranges(&self) -> Result<(), String> {
        let numbers = [
            ("workers", self.workers.map(u32::from)),
            ("max-connections", self.max_connections),
            ("nodes", self.nodes.map(u32::from)),
            ("groups", self.groups),
        ];
        // The flags' own parser judges them, so that there is one list of ranges.
        let flags = numbers.iter().filter_map(|(key, number)| Some(format!("--{key}={}", (*number)?)));
        let flags = flags.chain(self.max_value.map(|Size(bytes)| format!("--max-value={bytes}")));
        let parsed =
            Self::augment_args(Command::new("serve").no_binary_name(true)).try_get_matches_from(flags);
        let reason = |error: clap::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        parsed.map(drop).map_err(|error| reason(error).trim_start_matches("error: ").to_owned())
    }

    /// The first flag that is given and counts with etcd only.
    pub fn first_for_etcd(&self) -> Option<String> {
        let given = self.given();
        let is_for_etcd = |arg: &Arg| arg.get_help_heading() == Some(WITH_ETCD);
        let mut found = arguments().into_iter().filter(is_for_etcd);
        found.find(|arg| given.contains(&arg.get_id().as_str()))?.get_long().map(|flag| format!("--{flag}"))
    }
}

fn arguments() -> Vec<Arg> {
    NodeSettings::augment_args(Command::new("serve")).get_arguments().cloned().collect()
}

/// Where an error is. Keys are not nested here, so that each has a line.
struct Place<'a> {
    line: usize,
    key: &'a str,
}

impl<'a> Place<'a> {
    fn of(error: &toml::de::Error, text: &'a str) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let index = before.matches('\n').count();
        let key = text.lines().nth(index).and_then(|line| line.split('=').next()).unwrap_or_default();
        Self { line: index + 1, key: key.trim().trim_matches(['"', '\'']) }
    }
}

fn one_line(error: &toml::de::Error) -> String {
    error.message().replace('\n', " ")
}

/// What serde says of a key, in our words where they say more.
fn explain(key: &str, message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown field `") {
        return unknown(rest.split('`').next().unwrap_or_default());
    }
    let wanted = match message.rsplit_once(", expected ") {
        Some((_, "u16")) => "a number from 0 to 65535",
        Some((_, "u32")) => "a number from 0 to 4294967295",
        Some((_, "a boolean")) => "true or false",
        Some(_) => "a string in quotes",
        None if message.starts_with("a string") => message,
        None => return format!("key '{key}': {message}"),
    };
    format!("key '{key}' must be {wanted}")
}

fn unknown(key: &str) -> String {
    let arguments = arguments();
    let mut known: Vec<&str> = arguments.iter().filter_map(Arg::get_long).collect();
    known.sort_unstable();
    let nearest = known.iter().map(|known| (strsim::jaro_winkler(key, known), known));
    match nearest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        // Below that a guess would lead astray.
        Some((likeness, known)) if likeness > 0.7 => format!("unknown key '{key}': did you mean '{known}'?"),
        _ => format!("unknown key '{key}': known are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_is_read() {
        let file = NodeSettings::parse(
            "node = 3\ncoordinator = \"embedded://127.0.0.1:9179\"\nmemory = \"64GiB\"\nlease = \"500ms\"\nhttp = \"9183\"\nevict = \"none\"",
        );
        let file = file.unwrap();
        assert_eq!(file.node, Some(3));
        assert_eq!(file.memory, Some(Size(64 << 30)));
        assert_eq!(file.lease, Some(Duration::from_millis(500)));
        assert_eq!(file.http.unwrap().to_string(), "127.0.0.1:9183");
        assert_eq!((file.evict, file.scheduling), (Some(Eviction::None), None));
    }

    #[test]
    fn what_others_are_told_is_read() {
        let file = NodeSettings::parse("advertise = \"203.0.113.5\"\nadvertise-peer = \"203.0.113.5:40178\"");
        let file = file.unwrap();
        assert_eq!(file.advertise.unwrap().to_string(), "203.0.113.5");
        assert_eq!((file.advertise_peer.unwrap().port(), file.advertise_memcached), (40178, None));
    }

    #[test]
    fn every_key_is_called_like_its_flag_and_every_flag_has_a_key() {
        let mut keys = Vec::new();
        for argument in arguments() {
            let key = argument.get_long().unwrap();
            keys.push(key.replace('-', "_"));
            let error = NodeSettings::parse(&format!("{key} = {{}}")).unwrap_err();
            assert!(error.starts_with(&format!("line 1: key '{key}' must be ")), "{error}");
        }
        assert_eq!(
            keys,
            arguments().iter().map(|argument| argument.get_id().to_string()).collect::<Vec<_>>()
        );
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_nearest() {
        assert_eq!(
            NodeSettings::parse("node = 1\nmemroy = \"1GiB\""),
            Err("line 2: unknown key 'memroy': did you mean 'memory'?".into())
        );
        assert_eq!(
            NodeSettings::parse("coordinater = \"\"").unwrap_err().split("mean ").nth(1),
            Some("'coordinator'?")
        );
        assert!(
            NodeSettings::parse("xyzzy = 1").unwrap_err().contains("known are advertise, advertise-http")
        );
        assert!(NodeSettings::parse("[xyzzy]").unwrap_err().starts_with("line 1: unknown key 'xyzzy'"));
    }

    #[test]
    fn wrong_types_and_values_name_the_key() {
        for (text, part) in [
            ("node = \"three\"", "key 'node' must be a number"),
            ("node = 70000", "key 'node' must be a number"),
            ("groups = -1", "key 'groups' must be a number"),
            ("disable-flush-all = 1", "key 'disable-flush-all' must be true or false"),
            ("memory = 5", "key 'memory' must be a string"),
            ("etcd-ca = 5", "key 'etcd-ca' must be a string"),
            ("\n\nmemory = \"5 apples\"", "line 3: key 'memory': '5 apples' is not a size"),
            ("profile = \"rs(3+)\"", "key 'profile': profile 'rs(3+)' is not understood"),
            ("evict = \"all\"", "key 'evict': 'all' is not one of clock, none"),
            ("workers = 0", "invalid value '0' for '--workers <WORKERS>': 0 is not in 1..=256"),
            ("max-connections = 0", "'--max-connections"),
            ("max-value = \"2TiB\"", "a value may have 1 byte to 1TiB"),
            ("node = 1\nnode = 2", "line 2"),
            ("node = = 1", "line 1"),
        ] {
            let error = NodeSettings::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn what_is_given_counts_before_what_the_others_say() {
        let flags = NodeSettings { workers: Some(3), disable_flush_all: true, ..Default::default() };
        let file = NodeSettings { workers: Some(5), nodes: Some(7), ..Default::default() };
        let both = flags.or(file);
        assert_eq!((both.workers, both.nodes, both.disable_flush_all), (Some(3), Some(7), true));
        assert_eq!(both.given(), ["workers", "disable_flush_all", "nodes"]);
        assert_eq!(both.first_for_etcd().as_deref(), Some("--nodes"));
        assert_eq!(NodeSettings::default().first_for_etcd(), None);
    }
}
