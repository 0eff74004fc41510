//! What a cluster is formed with: recorded by its first leader, and what every node has to agree with.

use proto::{CoordinatorConfig, RecordKeeping, Rules, Timing};
use serde::{Deserialize, Serialize};
use types::{ClusterId, LossPolicy, Profile};

use super::config::{ElectedConfig, Founding};
use crate::Coordination;
use crate::NodeConfig;

/// See the module. A small JSON document, for people to read too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    format: u32,
    pub cluster: u64,
    pub profile: Profile,
    nodes: u16,
    workers: u16,
    groups: u32,
    lease_us: u64,
    /// At first; operators may change it later, in the layout.
    #[serde(default)]
    on_loss: LossPolicy,
}

/// Version of the document.
const FORMAT: u32 = 1;
const DEFAULT_NODES: u16 = 5;
const MAX_GROUPS: u32 = 16_384;

impl Settings {
    /// What a cluster is formed with by a node that has been started with `config`.
    pub(crate) fn found(config: &NodeConfig, elected: &ElectedConfig) -> Result<Self, String> {
        let profile = config.profile.or_else(|| Profile::rs(3, 2).ok()).ok_or("no profile")?;
        let nodes = elected.founding.nodes.unwrap_or(DEFAULT_NODES);
        let groups = elected
            .founding
            .groups
            .unwrap_or_else(|| cluster::groups_for(profile, usize::from(nodes), config.workers));
        let settings = Self {
            format: FORMAT,
            cluster: elected.founding.cluster.0,
            profile,
            nodes,
            workers: config.workers,
            groups,
            lease_us: config.timing.node_lease_us,
            on_loss: elected.founding.on_loss.unwrap_or_default(),
        };
        settings.check()?;
        Ok(settings)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// From what was found.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let settings: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), String> {
        let (format, needed) = (self.format, self.profile.n());
        if format != FORMAT {
            return Err(format!("format {format}, this version reads {FORMAT}"));
        }
        if usize::from(self.nodes) < needed {
            let (profile, nodes) = (self.profile, self.nodes);
            return Err(format!(
                "profile {profile} needs {needed} nodes, there are {nodes}: give --nodes {needed} or a smaller --profile"
            ));
        }
        let whole = self.workers > 0 && (1..=MAX_GROUPS).contains(&self.groups) && self.lease_us >= 1000;
        if whole { Ok(()) } else { Err("workers, groups or lease out of bounds".to_owned()) }
    }

    /// What a node that was started with `config` expects and does not find here.
    pub(crate) fn unmet(&self, config: &NodeConfig) -> Option<String> {
        let Coordination::Elected(elected) = &config.coordinator else { return None };
        // The rest are wishes of the one that forms it, and no node has to repeat them.
        let Founding { nodes, groups, .. } = elected.founding;
        let lease = |us: u64| humane(us);
        let differs = [
            differs("--profile", config.profile, self.profile),
            differs("--nodes", nodes, self.nodes),
            differs("--groups", groups, self.groups),
            differs("--workers", Some(config.workers), self.workers),
            differs("--lease", Some(lease(config.timing.node_lease_us)), lease(self.lease_us)),
        ];
        let first = differs.into_iter().flatten().next()?;
        Some(format!("{first}: cluster '{}' was formed so, and all its nodes have to agree", elected.name))
    }

    /// What the state machine is made from.
    pub(crate) fn coordinator(&self) -> CoordinatorConfig {
        CoordinatorConfig {
            cluster: ClusterId(self.cluster),
            profile: self.profile,
            nodes: self.nodes,
            shards: self.workers,
            groups: self.groups,
            timing: Timing::from_lease(self.lease_us),
            rules: Rules::all(),
            records: RecordKeeping::Stored,
            on_loss: self.on_loss,
        }
    }
}

fn differs<T: PartialEq + std::fmt::Display>(flag: &str, own: Option<T>, recorded: T) -> Option<String> {
    let own = own.filter(|own| *own != recorded)?;
    Some(format!("this node has {flag} {own}, the cluster has {recorded}"))
}

fn humane(us: u64) -> String {
    if us.is_multiple_of(1_000_000) { format!("{}s", us / 1_000_000) } else { format!("{}ms", us / 1000) }
}

#[cfg(test)]
mod tests {
    use types::NodeId;

    use super::*;

    fn config(nodes: Option<u16>, groups: Option<u32>) -> NodeConfig {
        let elected = ElectedConfig {
            etcd: etcd::Config::plain("etcd://127.0.0.1:1".parse().unwrap()),
            name: "gestalt".to_owned(),
            listen: "127.0.0.1:0".parse().unwrap(),
            founding: Founding { cluster: ClusterId(9), nodes, groups, on_loss: None },
        };
        NodeConfig::with(NodeId(0), Coordination::Elected(Box::new(elected)))
    }

    fn found(config: &NodeConfig) -> Result<Settings, String> {
        let Coordination::Elected(elected) = &config.coordinator else { panic!("not elected") };
        Settings::found(config, elected)
    }

    #[test]
    fn settings_are_read_as_written_and_garbage_is_none() {
        let settings = found(&config(Some(7), None)).unwrap();
        assert_eq!((settings.nodes, settings.groups), (7, 56));
        let bytes = settings.encode();
        assert_eq!(Settings::decode(&bytes), Ok(settings));
        for (from, to) in
            [("\"format\": 1", "\"format\": 2"), ("\"nodes\": 7", "\"nodes\": 4"), ("groups", "goups")]
        {
            let garbled = String::from_utf8(bytes.clone()).unwrap().replace(from, to);
            assert!(Settings::decode(garbled.as_bytes()).is_err(), "{to}");
        }
        assert!(Settings::decode(b"").is_err());
        assert!(found(&config(Some(4), None)).unwrap_err().starts_with("profile rs(3+2) needs 5 nodes"));
    }

    #[test]
    fn a_node_that_was_started_otherwise_is_told_what_differs() {
        let settings = found(&config(None, None)).unwrap();
        assert_eq!(settings.unmet(&config(None, None)), None);
        assert_eq!(settings.unmet(&config(Some(5), Some(40))), None);
        let unmet = settings.unmet(&config(Some(6), None)).unwrap();
        assert!(unmet.starts_with("this node has --nodes 6, the cluster has 5"), "{unmet}");
        let mut other = config(None, None);
        other.timing = Timing::from_lease(500_000);
        assert!(settings.unmet(&other).unwrap().contains("--lease 500ms, the cluster has 1s"));
    }
}
