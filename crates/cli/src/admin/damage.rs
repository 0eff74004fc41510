//! What a scrub has found, from all parities together: what is wrong, where, and what to do.
//!
//! Every parity compares its own pages. Items with a wrong checksum name the data role that is wrong. Without such an item
//! the parities are: one of several that disagrees is wrong itself; if all do, it is bytes of the data that no item uses.

use std::collections::BTreeMap;

use serde::Serialize;
use server::{FindingStatus, WrongItem};
use types::{ClusterMap, GroupId, NodeId, RoleIndex};

/// Pages of a session: findings within it belong together.
const SESSION_PAGES: u32 = (types::RUN_BYTES / types::PAGE_BYTES) as u32;

/// One place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The group.
    group: GroupId,
    /// First of the pages that were compared together.
    first_page: u32,
    /// What is wrong.
    what: What,
    /// The parities that do not agree with the data.
    parities: Vec<RoleIndex>,
    /// Items that are wrong by their checksums.
    wrong_items: Vec<WrongItem>,
    /// The nodes that have what is wrong.
    nodes: Vec<NodeId>,
    /// Whether it has been corrected.
    corrected: bool,
    /// What to do.
    way_out: String,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Items at a primary; the parities have them as they should be.
    Items,
    /// Items, and the parities agree with them: they were wrong when they were written.
    ItemsEverywhere,
    /// Parities, and not all of the group's.
    Parity,
    /// All parities of the group, or bytes of the data that no item uses.
    AllParities,
}

/// What `findings` mean, place by place.
pub fn explain(map: &ClusterMap, findings: &[FindingStatus]) -> Vec<Damage> {
    let mut places: BTreeMap<(GroupId, u32), Vec<&FindingStatus>> = BTreeMap::new();
    for found in findings {
        let first = found.first_page - found.first_page % SESSION_PAGES;
        places.entry((found.group, first)).or_default().push(found);
    }
    places.into_iter().map(|((group, page), found)| place_of(map, group, page, &found)).collect()
}

fn place_of(map: &ClusterMap, group: GroupId, first_page: u32, found: &[&FindingStatus]) -> Damage {
    let mut wrong_items: Vec<WrongItem> = found.iter().flat_map(|one| one.wrong_items.clone()).collect();
    wrong_items.sort_unstable();
    wrong_items.dedup();
    let mut parities: Vec<RoleIndex> = found.iter().filter(|one| one.differs).map(|one| one.parity).collect();
    parities.sort_unstable();
    parities.dedup();
    let in_sync = map.group(group).map_or(0, |view| view.in_sync().count());
    let what = match (wrong_items.is_empty(), parities.len()) {
        (false, 0) => What::ItemsEverywhere,
        (false, _) => What::Items,
        (true, differing) if differing < in_sync => What::Parity,
        (true, _) => What::AllParities,
    };
    let roles: Vec<RoleIndex> = if wrong_items.is_empty() {
        parities.clone()
    } else {
        wrong_items.iter().map(|item| item.role).collect()
    };
    let mut nodes: Vec<NodeId> = roles.iter().filter_map(|role| host_of(map, group, *role)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let corrected = found.iter().all(|one| one.corrected);
    let way_out = if corrected { String::new() } else { way_out(what, &nodes) };
    Damage { group, first_page, what, parities, wrong_items, nodes, corrected, way_out }
}

fn host_of(map: &ClusterMap, group: GroupId, role: RoleIndex) -> Option<NodeId> {
    let view = map.group(group)?;
    let primary = view.data_role(role).and_then(|data| data.primary);
    primary.or_else(|| view.parity_host(role)).map(|host| host.node)
}

fn way_out(what: What, nodes: &[NodeId]) -> String {
    let node = nodes.first().map_or(0, |node| node.0);
    match what {
        What::Items => format!(
            "`gestalt node can-stop {node}`, then restart that node's process: its roles are decoded anew from the other \
             members, which have these items as they should be (a drain would take the damage along)"
        ),
        What::ItemsEverywhere => "set or delete these items: no member has them as they should be".to_owned(),
        What::Parity | What::AllParities => {
            "`gestalt scrub start --repair` corrects the parity where all items that it covers are right"
                .to_owned()
        }
    }
}

impl Damage {
    /// A line or two.
    pub fn text(&self) -> String {
        let Self { group, first_page, .. } = self;
        let list = |names: Vec<String>| names.join(", ");
        let parities = list(self.parities.iter().map(ToString::to_string).collect());
        let nodes = list(self.nodes.iter().map(ToString::to_string).collect());
        let items = list(
            self.wrong_items.iter().map(|item| format!("{} at byte {}", item.role, item.byte)).collect(),
        );
        let what = match self.what {
            What::Items => format!("items are wrong on {nodes}: {items}"),
            What::ItemsEverywhere => format!("items are wrong at all members: {items}"),
            What::Parity => format!("parity {parities} on {nodes} is wrong"),
            What::AllParities => {
                format!("parity {parities} on {nodes} and bytes that no item uses do not agree")
            }
        };
        let end = if self.corrected { "; corrected".to_owned() } else { format!("\n  {}", self.way_out) };
        format!("{group}, pages {first_page} to {}: {what}{end}\n", first_page + SESSION_PAGES - 1)
    }
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, HostId, Incarnation, Profile};

    use super::*;

    fn map() -> ClusterMap {
        let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
        let hosts: Vec<_> = (0..5).map(host).collect();
        let profile = Profile::rs(3, 2).unwrap();
        let groups = place(profile, &hosts, 1).unwrap();
        let (layout, nodes) = (Default::default(), vec![]);
        ClusterMap {
            cluster: ClusterId(1),
            version: 1,
            catalog: types::Catalog::first(profile, 1),
            shards: 1,
            layout,
            nodes,
            groups,
        }
    }

    fn found(parity: u8, first_page: u32, items: &[u8], differs: bool) -> FindingStatus {
        let item = |role: &u8| WrongItem { role: RoleIndex(*role), byte: 64 };
        let wrong_items = items.iter().map(item).collect();
        let (group, parity) = (GroupId(0), RoleIndex(parity));
        FindingStatus { group, parity, first_page, pages: 1, differs, corrected: false, wrong_items }
    }

    #[test]
    fn parities_together_tell_what_one_alone_does_not() {
        let map = map();
        let what = |findings: &[FindingStatus]| {
            explain(&map, findings).into_iter().map(|damage| damage.what).collect::<Vec<_>>()
        };
        assert_eq!(what(&[found(3, 5, &[], true)]), [What::Parity]);
        assert_eq!(what(&[found(3, 5, &[], true), found(4, 6, &[], true)]), [What::AllParities]);
        assert_eq!(what(&[found(3, 5, &[], true), found(4, 21, &[], true)]), [What::Parity, What::Parity]);
        assert_eq!(what(&[found(3, 5, &[1], true), found(4, 5, &[1], true)]), [What::Items]);
        assert_eq!(what(&[found(3, 0, &[1], false)]), [What::ItemsEverywhere]);
    }

    #[test]
    fn whoever_has_the_damage_is_named_with_the_way_out() {
        let map = map();
        let node = map.groups[0].data[1].primary.unwrap().node;
        let damage = explain(&map, &[found(3, 5, &[1], true), found(4, 5, &[1], true)]);
        let text = damage[0].text();
        assert!(
            text.starts_with(&format!(
                "group-0, pages 0 to 15: items are wrong on {node}: role-1 at byte 64\n"
            )),
            "{text}"
        );
        assert!(text.contains(&format!("gestalt node can-stop {}", node.0)), "{text}");
        let mut repaired = found(4, 5, &[], true);
        repaired.corrected = true;
        assert!(explain(&map, &[repaired])[0].text().ends_with("; corrected\n"));
    }
}
