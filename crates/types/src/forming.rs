//! A cluster that has not formed yet: who is here, and who is missing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// What a coordinator says while it waits for the nodes that its cluster forms with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forming {
    /// With how many nodes it forms.
    pub expected: u16,
    /// Those of them that are here, ascending.
    pub here: Vec<NodeId>,
}

impl Forming {
    /// How many are missing.
    #[must_use]
    pub fn lacking(&self) -> usize {
        usize::from(self.expected).saturating_sub(self.here.len())
    }

    /// Which: those of the first `expected` ids that are not here. Empty where ids beyond them are, for then it may be any.
    #[must_use]
    pub fn missing(&self) -> Vec<NodeId> {
        if self.here.iter().any(|node| node.0 >= self.expected) {
            return Vec::new();
        }
        (0..self.expected).map(NodeId).filter(|node| !self.here.contains(node)).collect()
    }
}

impl fmt::Display for Forming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (here, expected) = (self.here.len(), self.expected);
        if self.lacking() == 0 {
            return write!(f, "all {expected} nodes that it forms with are here");
        }
        write!(f, "{here} of {expected} nodes {} here", if here == 1 { "is" } else { "are" })?;
        if here > 0 {
            write!(f, " ({})", nodes(&self.here))?;
        }
        match self.missing().as_slice() {
            [] => write!(f, ", {} missing", self.lacking()),
            missing => write!(f, ", missing: {}", nodes(missing)),
        }
    }
}

/// Most that are named in one line.
const NAMED: usize = 16;

/// `node 3`, `nodes 1, 2`.
fn nodes(nodes: &[NodeId]) -> String {
    let ids: Vec<String> = nodes.iter().take(NAMED).map(|node| node.0.to_string()).collect();
    let more = if nodes.len() > NAMED { ", …" } else { "" };
    format!("{} {}{more}", if nodes.len() == 1 { "node" } else { "nodes" }, ids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forming(expected: u16, here: &[u16]) -> Forming {
        Forming { expected, here: here.iter().copied().map(NodeId).collect() }
    }

    #[test]
    fn those_who_are_here_and_those_who_are_missing_are_named() {
        assert_eq!(
            forming(5, &[0, 3]).to_string(),
            "2 of 5 nodes are here (nodes 0, 3), missing: nodes 1, 2, 4"
        );
        assert_eq!(forming(2, &[1]).to_string(), "1 of 2 nodes is here (node 1), missing: node 0");
        assert_eq!(forming(2, &[]).to_string(), "0 of 2 nodes are here, missing: nodes 0, 1");
    }

    #[test]
    fn nobody_is_missing_where_enough_are_here() {
        let all = "all 2 nodes that it forms with are here";
        assert_eq!([forming(2, &[0, 1]).to_string(), forming(2, &[0, 1, 2]).to_string()], [all, all]);
    }

    #[test]
    fn nobody_is_named_as_missing_who_need_not_come() {
        let other = forming(3, &[0, 7]);
        assert!(other.missing().is_empty() && other.lacking() == 1);
        assert_eq!(other.to_string(), "2 of 3 nodes are here (nodes 0, 7), 1 missing");
    }

    #[test]
    fn a_long_list_is_cut_off() {
        let text = forming(100, &[0]).to_string();
        assert!(
            text.ends_with("missing: nodes 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, …"),
            "{text}"
        );
    }
}
