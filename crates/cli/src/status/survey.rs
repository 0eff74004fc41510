//! A look at a whole cluster from outside: the newest map, what every node says at this moment, and how old all that is.

use std::collections::BTreeMap;
use std::time::Duration;

use client::{HttpError, fetch_json};
use cluster::health::{Age, Assessment, Health, Knowledge, Word};
use serde::{Deserialize, Serialize};
use server::{CoordinatorReport, GatheredReport, LostKeyStatus, NodeStatus};
use types::{ClusterMap, Forming, NodeId};

use super::nodes::{self, NodeReport};
use crate::endpoint::{Endpoint, without_map};
use crate::exit::Exit;
use crate::words;

/// What was found.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The newest map of all who answer.
    pub map: ClusterMap,
    /// All nodes of the map.
    pub nodes: Vec<NodeReport>,
    /// How long ago somebody who answers has heard a coordinator.
    pub age: Age,
    /// How well the cluster is.
    pub assessment: Assessment,
}

/// There is somebody, and no cluster that it knows.
#[derive(Clone, Debug, Serialize)]
pub struct Formless {
    /// `forming`, or `unknown` if no coordinator is heard.
    pub health: Health,
    /// Nodes that the cluster forms with, if a coordinator is heard.
    pub expected_nodes: Option<u16>,
    /// Those of them that are here.
    pub registered_nodes: Option<Vec<NodeId>>,
    /// Those that are not; empty where that may be any.
    pub missing_nodes: Option<Vec<NodeId>>,
    #[serde(skip)]
    forming: Option<Forming>,
    /// What a coordinator waits for that was started again with nothing.
    pub gathered: Option<GatheredReport>,
    /// Seconds since a coordinator was heard; none = never.
    pub coordinator_age_seconds: Option<f64>,
}

/// What a look may find.
pub enum Found {
    /// A cluster.
    Cluster(Box<Survey>),
    /// Processes that wait for one.
    Formless(Formless),
}

/// Who was asked first: a node, or a coordinator.
#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Node(Box<NodeStatus>),
    Coordinator(Box<CoordinatorReport>),
}

impl Source {
    /// Since when nobody presides, as far as it knows.
    fn coordinator_age_seconds(&self) -> Option<f64> {
        match self {
            Self::Node(status) => status.coordinator_age_seconds,
            Self::Coordinator(report) => Some(report.idle_seconds),
        }
    }

    fn lease_seconds(&self) -> f64 {
        match self {
            Self::Node(status) => status.lease_seconds,
            Self::Coordinator(report) => report.lease_seconds,
        }
    }
}

/// Asks `endpoint`, and then everybody side by side; each has `limit` to answer.
///
/// # Errors
/// `Unreachable` if nobody is there.
pub async fn look(endpoint: &Endpoint, limit: Duration) -> Result<Found, Exit> {
    let http = endpoint.find().await?;
    let (source, map) =
        tokio::join!(fetch_json::<Source>(http, "/status", limit), fetch_json(http, "/map", limit));
    match (map, source.ok()) {
        (Ok(map), source) => Ok(Found::Cluster(Box::new(Survey::of(map, source.as_ref(), limit).await))),
        // Somebody is there, and has no map.
        (Err(HttpError::Status { status: 503, .. }), Some(source)) => {
            Ok(Found::Formless(Formless::of(&source)))
        }
        (Err(error), _) => Err(without_map(&error)),
    }
}

impl Survey {
    async fn of(map: ClusterMap, source: Option<&Source>, limit: Duration) -> Self {
        let mut map = map;
        let own = match source {
            Some(Source::Node(status)) => Some(&**status),
            _ => None,
        };
        let mut nodes = nodes::ask_all(&map, own, limit).await;
        if let Some(newer) = newer_map(&map, &nodes, limit).await {
            // All once more: the newer map may have other nodes.
            nodes = nodes::ask_all(&newer, own, limit).await;
            map = newer;
        }
        let age = age(source, &nodes);
        let words: BTreeMap<NodeId, Word> = nodes.iter().map(|node| (node.node, node.word())).collect();
        let mut assessment = Knowledge { map: &map, age, nodes: &words }.assess();
        if nodes.iter().any(|node| !node.lost_keys.is_empty()) {
            // Of that the map says nothing: too few chunks of a value may be left where no role is lost.
            assessment.health = Health::Lost;
        }
        Self { map, nodes, age, assessment }
    }

    /// Keys whose values in chunks are lost, as far as the nodes that answer have found.
    pub fn lost_keys(&self) -> Vec<LostKeyStatus> {
        let mut all: Vec<LostKeyStatus> =
            self.nodes.iter().flat_map(|node| &node.lost_keys).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// Seconds since a coordinator was heard by anybody who answers; none = never.
    pub fn coordinator_age_seconds(&self) -> Option<f64> {
        self.age.coordinator_us.map(|us| Duration::from_micros(us).as_secs_f64())
    }

    /// What whoever reads a report should know of how old it is, and of what is missing.
    pub fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if !self.age.is_fresh() {
            caveats.push(format!("{}: what the map says may be as old", unheard(self.age)));
        }
        // Nobody expects an answer of a node that was given up.
        let silent = self.nodes.iter().filter(|node| node.alive && node.word() == Word::Silent);
        let silent: Vec<NodeId> = silent.map(|node| node.node).collect();
        if !silent.is_empty() {
            let (nodes, do_not) = (words::nodes(&silent), words::one_or(silent.len(), "does", "do"));
            caveats.push(format!(
                "{nodes} {do_not} not answer status: what would be said there is missing here"
            ));
        }
        caveats
    }
}

impl Formless {
    fn of(source: &Source) -> Self {
        let age = age(Some(source), &[]);
        let (forming, gathered) = match source {
            Source::Node(status) => (status.forming.clone(), None),
            Source::Coordinator(report) => (report.forming.clone(), report.gathered.clone()),
        };
        Self {
            // It knows of a cluster, so none is forming.
            health: if gathered.is_some() { Health::Unknown } else { Health::without_map(age) },
            expected_nodes: forming.as_ref().map(|forming| forming.expected),
            registered_nodes: forming.as_ref().map(|forming| forming.here.clone()),
            missing_nodes: forming.as_ref().map(Forming::missing),
            forming,
            gathered,
            coordinator_age_seconds: source.coordinator_age_seconds(),
        }
    }

    /// In one line, with what to do.
    pub fn explain(&self) -> String {
        if let Some(gathered) = &self.gathered {
            return explain_gathered(gathered);
        }
        match (self.health, &self.forming) {
            (Health::Forming, Some(forming)) if forming.lacking() == 0 => {
                format!("the cluster has not formed yet: {forming}: it does within a lease")
            }
            (Health::Forming, Some(forming)) => {
                format!("the cluster has not formed yet: {forming}: start what is missing, or see why it does not come")
            }
            (Health::Forming, None) => "the cluster has not formed yet: start the nodes that are missing".to_owned(),
            _ => "unknown: this node knows of no cluster and hears no coordinator: bring the coordinator back, or ask \
                  another node"
                .to_owned(),
        }
    }
}

fn explain_gathered(gathered: &GatheredReport) -> String {
    let GatheredReport { cluster, missing, lacking, .. } = gathered;
    let missing = words::nodes(missing);
    match lacking {
        0 => format!(
            "unknown: the coordinator was started again, and waits up to two leases for {missing} of {cluster}"
        ),
        _ => format!(
            "unknown: the coordinator was started again, and goes on with {cluster} when {lacking} more of its nodes answer: reach \
             {missing}, or see --without-quorum of `gestalt coordinator` if their processes are gone (one that was started anew knows \
             nothing of it)"
        ),
    }
}

/// The map of whoever has a newer one than `map`.
async fn newer_map(map: &ClusterMap, nodes: &[NodeReport], limit: Duration) -> Option<ClusterMap> {
    let versions = map.groups.iter().map(|view| view.version.0).sum();
    let known = nodes::MapRank { cluster: map.cluster.0, map: map.version, views: versions };
    let same = nodes.iter().filter_map(|node| Some((node.map_rank?, node.http)));
    // Where a node of ours was, one of another cluster may answer by now.
    let (_, http) = same.filter(|(rank, _)| rank.cluster == known.cluster && *rank > known).max()?;
    fetch_json(http, "/map", limit).await.ok()
}

/// Of all who answer the one counts that has heard a coordinator last.
fn age(source: Option<&Source>, nodes: &[NodeReport]) -> Age {
    let source_age = source.and_then(Source::coordinator_age_seconds);
    let ages = nodes.iter().filter_map(|node| node.coordinator_age_seconds).chain(source_age);
    let micros = |seconds: f64| {
        let age = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        u64::try_from(age.as_micros()).unwrap_or(u64::MAX)
    };
    let lease =
        source.map(Source::lease_seconds).or_else(|| nodes.iter().find_map(|node| node.lease_seconds));
    // Where nobody tells a lease nothing counts as fresh.
    Age { coordinator_us: ages.map(micros).min(), lease_us: micros(lease.unwrap_or(0.0)) }
}

/// That nobody presides, and since when.
pub fn unheard(age: Age) -> String {
    match age.coordinator_us {
        Some(us) => {
            let age = Duration::from_millis(us / 1000);
            format!("no coordinator has been heard for {}", humantime::format_duration(age))
        }
        None => "nobody who answers has ever heard a coordinator".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use types::ClusterId;

    use super::*;

    #[test]
    fn a_coordinator_that_was_started_again_says_who_is_missing() {
        let missing = vec![NodeId(2), NodeId(4)];
        let gathered = GatheredReport { cluster: ClusterId(7), heard: vec![NodeId(0)], missing, lacking: 1 };
        let text = explain_gathered(&gathered);
        assert!(text.contains("1 more") && text.contains("nodes 2, 4"), "{text}");
        let text = explain_gathered(&GatheredReport { lacking: 0, ..gathered });
        assert!(text.contains("two leases"), "{text}");
    }
}
