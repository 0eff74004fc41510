//! What processes say of themselves.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::Value;
use types::{ClusterMap, NamespaceId};

/// Port of every process' pages.
pub const HTTP_PORT: u16 = 9180;
/// Longest wait for a page of a process that may be stopped.
const LIMIT: Duration = Duration::from_millis(400);

/// A page of a process, if it answers well and in time. The calling thread must be in the hub.
pub fn fetch(address: Ipv4Addr, path: &str) -> Option<String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(LIMIT)).build();
    let agent = ureq::Agent::new_with_config(config);
    let mut answer = agent.get(format!("http://{address}:{HTTP_PORT}{path}")).call().ok()?;
    answer.body_mut().read_to_string().ok()
}

/// The map that is such a page.
pub fn map(page: &str) -> Option<ClusterMap> {
    serde_json::from_str(page).ok()
}

/// The newest of these maps, with the newest views of all.
pub fn newest(known: Vec<ClusterMap>) -> Option<ClusterMap> {
    let mut newest = known.iter().max_by_key(|map| map.version)?.clone();
    for view in known.into_iter().flat_map(|map| map.groups) {
        newest.adopt(view);
    }
    Some(newest)
}

/// Whether a node with such a status presides.
pub fn presides(status: &str) -> bool {
    serde_json::from_str(status).is_ok_and(|status: Value| status["etcd"]["presides"] == true)
}

/// How many items of these namespaces a node with such a status has.
pub fn items_of(status: &str, namespaces: &BTreeSet<NamespaceId>) -> u64 {
    let status: Value = serde_json::from_str(status).unwrap_or_default();
    let known = status["namespaces"].as_array().into_iter().flatten();
    let is_one = |of: &&Value| namespaces.iter().any(|id| of["namespace"] == id.0);
    known.filter(is_one).filter_map(|of| of["items"].as_u64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_those_of_the_namespaces_that_are_asked_for() {
        let status = r#"{"namespaces":[{"namespace":0,"items":7},{"namespace":3,"items":2},{"namespace":4,"items":1}]}"#;
        assert_eq!(items_of(status, &BTreeSet::from([NamespaceId(3), NamespaceId(4), NamespaceId(5)])), 3);
        assert_eq!(items_of("{}", &BTreeSet::from([NamespaceId(0)])), 0);
    }
}
