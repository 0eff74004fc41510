//! The elected coordinator, as all nodes that answer see it together.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use types::NodeId;

use super::nodes::NodeReport;
use crate::words;

/// How the election goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Elected {
    /// The node that presides; none if no node says so.
    pub node: Option<NodeId>,
    /// What is wrong, and the nodes that say so.
    pub troubles: BTreeMap<String, Vec<NodeId>>,
}

impl Elected {
    /// From what the nodes say; none if they have another kind of coordinator.
    pub fn of(nodes: &[NodeReport]) -> Option<Self> {
        let mut all = Self::default();
        let mut is_elected = false;
        for (node, etcd) in nodes.iter().filter_map(|node| Some((node.node, node.etcd.as_ref()?))) {
            is_elected = true;
            if etcd.presides {
                all.node = Some(node);
            }
            let reason = etcd.trouble.as_deref().unwrap_or("no answer");
            let trouble = match etcd.unreachable_since {
                Some(since) => Some(format!("etcd unreachable since {}: {reason}", time(since))),
                None => etcd.trouble.clone(),
            };
            if let Some(trouble) = trouble {
                all.troubles.entry(trouble).or_default().push(node);
            }
        }
        is_elected.then_some(all)
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = match self.node {
            Some(node) => format!("coordinator: node {}, elected over etcd\n", node.0),
            None if self.troubles.is_empty() => "coordinator: none yet, an election is on\n".to_owned(),
            None => String::new(),
        };
        for (trouble, nodes) in &self.troubles {
            text.push_str(&format!("coordinator: {trouble} ({})\n", words::nodes(nodes)));
        }
        if self.node.is_none() && !self.troubles.is_empty() {
            text.push_str(
                "nobody presides: reads and writes go on, but nothing is reconfigured until this is over\n",
            );
        }
        text
    }
}

fn time(since: u32) -> String {
    let at: SystemTime = UNIX_EPOCH + Duration::from_secs(since.into());
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_told_once_with_the_nodes_that_have_them() {
        let troubles =
            BTreeMap::from([("etcd unreachable since noon: why".to_owned(), vec![NodeId(0), NodeId(2)])]);
        let text = Elected { node: None, troubles: troubles.clone() }.text();
        assert!(
            text.starts_with("coordinator: etcd unreachable since noon: why (nodes 0, 2)\nnobody presides"),
            "{text}"
        );
        let text = Elected { node: Some(NodeId(1)), troubles }.text();
        assert!(
            text.starts_with("coordinator: node 1, elected over etcd\n") && !text.contains("nobody"),
            "{text}"
        );
        assert_eq!(Elected::of(&[]), None);
    }
}
