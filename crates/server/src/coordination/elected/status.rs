//! What is known of etcd and of the election, for operators.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use types::NodeId;

use crate::clock::unix_seconds;

/// How a node sees etcd and the election.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdStatus {
    /// Name of the cluster.
    pub cluster_name: String,
    /// Where etcd is.
    pub endpoints: String,
    /// Whether etcd answers.
    pub reachable: bool,
    /// Since when it does not, in seconds since 1970.
    pub unreachable_since: Option<u32>,
    /// For how long it has not.
    pub unreachable_seconds: Option<u64>,
    /// What is wrong: why it is unreachable, or what has been found there.
    pub trouble: Option<String>,
    /// The key that holds no record, or one that cannot be: nobody presides over it.
    pub bad_key: Option<String>,
    /// The node that has the coordinator, as far as this one knows.
    pub leader: Option<NodeId>,
    /// Whether this node has it.
    pub presides: bool,
}

/// What the candidate tells, and others ask for.
#[derive(Debug)]
pub(crate) struct Election {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    status: EtcdStatus,
    since: Option<Instant>,
}

impl Election {
    /// Nobody has been reached yet.
    pub(crate) fn new(cluster_name: &str, endpoints: &etcd::Endpoints) -> Self {
        let status = EtcdStatus {
            cluster_name: cluster_name.to_owned(),
            endpoints: endpoints.to_string(),
            unreachable_since: Some(unix_seconds().0),
            trouble: Some("not reached yet".to_owned()),
            ..EtcdStatus::default()
        };
        Self { state: Mutex::new(State { status, since: Some(Instant::now()) }) }
    }

    pub(crate) fn status(&self) -> EtcdStatus {
        self.with(|state| EtcdStatus {
            unreachable_seconds: state.since.map(|since| since.elapsed().as_secs()),
            ..state.status.clone()
        })
    }

    /// etcd has answered.
    pub(crate) fn reached(&self) {
        self.with(|state| {
            let status = &mut state.status;
            if let Some(since) = state.since.take() {
                tracing::info!(endpoints = %status.endpoints, after = ?since.elapsed(), "etcd reached");
                status.trouble = None;
            }
            (status.reachable, status.unreachable_since) = (true, None);
        });
    }

    /// etcd has not answered, or not as it should.
    pub(crate) fn missed(&self, reason: &str) {
        self.with(|state| {
            let status = &mut state.status;
            let news = status.trouble.as_deref() != Some(reason);
            if state.since.is_none() || (news && !status.reachable) {
                tracing::warn!(endpoints = %status.endpoints, reason, "etcd unreachable: nothing is reconfigured until it is back");
            }
            state.since.get_or_insert_with(Instant::now);
            status.unreachable_since.get_or_insert_with(|| unix_seconds().0);
            (status.reachable, status.trouble, status.bad_key) = (false, Some(reason.to_owned()), None);
        });
    }

    /// What has been found in etcd: something that cannot be, or none of it any more.
    pub(crate) fn found(&self, bad: Option<&super::mirror::Bad>) {
        self.with(|state| {
            let status = &mut state.status;
            let key = bad.map(|bad| bad.key.clone());
            if let Some(bad) = bad.filter(|bad| status.bad_key.as_ref() != Some(&bad.key)) {
                tracing::error!(
                    key = bad.key,
                    why = bad.why,
                    "what etcd has under this key is ignored, and nobody presides over it"
                );
            }
            // While etcd is away that is what is to be told.
            if status.reachable && (bad.is_some() || status.bad_key.is_some()) {
                status.trouble = bad.map(|bad| format!("{}: {}", bad.key, bad.why));
            }
            status.bad_key = key;
        });
    }

    pub(crate) fn leads(&self, leader: Option<NodeId>) {
        self.with(|state| state.status.leader = leader);
    }

    pub(crate) fn presides(&self, presides: bool) {
        self.with(|state| state.status.presides = presides);
    }

    fn with<A>(&self, act: impl FnOnce(&mut State) -> A) -> A {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
