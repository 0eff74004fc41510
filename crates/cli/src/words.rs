//! One or several: what is counted and named in what people read.

use std::fmt::Display;

use types::{Name, NodeId, PoolSlots};

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

/// `0-1092`, `0-1092 of pool hot`.
pub fn slot_range(PoolSlots { pool, slots }: &PoolSlots) -> String {
    let range = format!("{}-{}", slots.first.0, slots.last.0);
    if *pool == Name::default_name() { range } else { format!("{range} of pool {pool}") }
}

/// All of them, or a line where there are none.
pub fn some<T: Display>(all: &[T]) -> String {
    if all.is_empty() {
        return "-".to_owned();
    }
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
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
