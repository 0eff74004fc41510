//! One or several: what is counted and named in what people read.

use types::NodeId;

/// `node 3`, `nodes 1, 2`.
pub fn nodes(nodes: &[NodeId]) -> String {
    let ids: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
    format!("{} {}", one_or(nodes.len(), "node", "nodes"), ids.join(", "))
}

/// `1 role`, `2 roles`.
pub fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", one_or(number, one, several))
}

/// The same of what may be very many.
pub fn count_u64(number: u64, one: &str, several: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), one, several)
}

/// The word for so many.
pub fn one_or<'a>(number: usize, one: &'a str, several: &'a str) -> &'a str {
    if number == 1 { one } else { several }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        assert_eq!(nodes(&[NodeId(3)]), "node 3");
        assert_eq!(nodes(&[NodeId(1), NodeId(2)]), "nodes 1, 2");
        assert_eq!(
            (count(1, "loss", "losses"), count(0, "loss", "losses")),
            ("1 loss".into(), "0 losses".into())
        );
    }
}
