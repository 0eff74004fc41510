//! What namespaces drop and redirect because of a fault.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use processes::namespaces::Rule;

use crate::fault::{Fault, From};
use crate::network::{COORDINATOR, COORDINATOR_PORT, ETCD_PORT, PEER_PORT, node_address, proxy_address};
use crate::options::{Coordinator, Options};

/// Port of a proxy for the coordinator.
const PROXY_PORT: u16 = 20_000;
/// This plus `i` is its port for node `i`.
const PROXY_PEER_PORT: u16 = PROXY_PORT + 1;
/// This plus `i` is its port for the coordinator on node `i`.
const PROXY_ELECTED_PORT: u16 = PROXY_PORT + 1000;
/// This plus `i` is its port for member `i` of etcd.
const PROXY_ETCD_PORT: u16 = PROXY_PORT + 2000;

/// Rules of each node's namespace.
pub type Rules = BTreeMap<u16, Vec<Rule>>;

/// Where packets of these nodes may come from: themselves, and their proxies.
pub fn addresses(nodes: impl IntoIterator<Item = u16>) -> Vec<Ipv4Addr> {
    nodes.into_iter().flat_map(|node| [node_address(node), proxy_address(node)]).collect()
}

/// What each node's namespace drops because of `fault`.
pub fn drops(fault: &Fault, options: &Options) -> Rules {
    let others = |of: &[u16]| addresses((0..options.nodes).filter(|node| !of.contains(node)));
    let everyone = |of: u16| [others(&[of]), options.coordinators()].concat();
    let one = |node: u16, rule: Rule| BTreeMap::from([(node, vec![rule])]);
    match fault {
        Fault::CutOff(cut, from) => {
            let away = match from {
                From::Everyone => [others(cut), options.coordinators()].concat(),
                From::Nodes => others(cut),
                From::Coordinator => options.coordinators(),
            };
            let both = vec![Rule::DropFrom(away.clone()), Rule::DropTo(away)];
            cut.iter().map(|node| (*node, both.clone())).collect()
        }
        Fault::Deaf(node) => one(*node, Rule::DropFrom(everyone(*node))),
        Fault::Mute(node) => one(*node, Rule::DropTo(everyone(*node))),
        Fault::OneWay { from, to } => one(*to, Rule::DropFrom(addresses([*from]))),
        Fault::Lose(node, percent) => one(*node, Rule::LoseFrom(everyone(*node), *percent)),
        _ => BTreeMap::new(),
    }
}

/// A link: who dials whom, and what port of the proxy is for it.
struct Link {
    by: u16,
    to: (Ipv4Addr, u16),
    port: u16,
}

/// The proxy's ports, with what is behind each, that carry all links of a node, and the rules that lead there.
pub fn through_proxy(node: u16, options: &Options) -> (Vec<(u16, SocketAddr)>, Rules) {
    let links = links(node, options);
    let mut targets: Vec<(u16, SocketAddr)> = links.iter().map(|link| (link.port, link.to.into())).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut rules = Rules::new();
    for Link { by, to, port } in links {
        let redirect = Rule::Redirect { from: to, to: (proxy_address(node), port) };
        rules.entry(by).or_default().push(redirect);
        // What is connected does not pass the proxy. Reset from both ends, it is dialled anew, and does.
        if by != node {
            rules.entry(node).or_default().push(Rule::ResetFrom(node_address(by), to.1));
        }
    }
    (targets, rules)
}

/// All links of `node`. Nodes dial those with higher numbers, and whoever coordinates.
fn links(node: u16, options: &Options) -> Vec<Link> {
    let peer = |by: u16, to: u16| Link { by, to: (node_address(to), PEER_PORT), port: PROXY_PEER_PORT + to };
    let elected = |by: u16, to: u16| Link {
        by,
        to: (node_address(to), COORDINATOR_PORT),
        port: PROXY_ELECTED_PORT + to,
    };
    let etcd = |(port, at)| Link { by: node, to: (at, ETCD_PORT), port };
    let (below, above) = (0..node, node + 1..options.nodes);
    let mut links: Vec<Link> = above.clone().map(|other| peer(node, other)).collect();
    links.extend(below.clone().map(|other| peer(other, node)));
    match options.coordinator {
        Coordinator::Embedded => {
            links.push(Link { by: node, to: (COORDINATOR, COORDINATOR_PORT), port: PROXY_PORT });
        }
        Coordinator::Etcd => {
            links.extend((PROXY_ETCD_PORT..).zip(options.coordinators()).map(etcd));
            links.extend(below.chain(above).flat_map(|other| [elected(node, other), elected(other, node)]));
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::coordinator_address;

    fn three(coordinator: Coordinator, etcd_members: u16) -> Options {
        Options { nodes: 3, coordinator, etcd_members, ..Options::default() }
    }

    #[test]
    fn a_cut_drops_the_other_side_and_its_proxies_and_nothing_else() {
        let options = three(Coordinator::Embedded, 1);
        let rules = drops(&Fault::CutOff(vec![0, 1], From::Nodes), &options);
        assert_eq!(rules.keys().collect::<Vec<_>>(), [&0, &1]);
        let away = vec![node_address(2), proxy_address(2)];
        assert_eq!(rules[&0], [Rule::DropFrom(away.clone()), Rule::DropTo(away)]);
        let rules = drops(&Fault::CutOff(vec![2], From::Coordinator), &options);
        assert_eq!(rules[&2][0], Rule::DropFrom(vec![COORDINATOR]));
        let rules = drops(&Fault::CutOff(vec![2], From::Coordinator), &three(Coordinator::Etcd, 2));
        assert_eq!(rules[&2][0], Rule::DropFrom(vec![COORDINATOR, coordinator_address(1)]));
    }

    #[test]
    fn one_direction_is_dropped_where_it_arrives() {
        let rules = drops(&Fault::OneWay { from: 2, to: 0 }, &three(Coordinator::Embedded, 1));
        assert_eq!(rules, BTreeMap::from([(0, vec![Rule::DropFrom(addresses([2]))])]));
    }

    #[test]
    fn every_link_of_a_node_goes_through_its_proxy_and_no_other() {
        let (targets, rules) = through_proxy(1, &three(Coordinator::Embedded, 1));
        let ports: Vec<u16> = targets.iter().map(|(port, _)| *port).collect();
        assert_eq!(ports, [PROXY_PORT, PROXY_PEER_PORT + 1, PROXY_PEER_PORT + 2]);
        assert_eq!(rules.keys().collect::<Vec<_>>(), [&0, &1], "node 2 dials nobody");
        assert!(rules[&1].contains(&Rule::ResetFrom(node_address(0), PEER_PORT)));
        let (targets, rules) = through_proxy(1, &three(Coordinator::Etcd, 2));
        let behind = |port: u16| targets.iter().find(|(of, _)| *of == port).map(|(_, to)| *to);
        for member in 0..2 {
            let etcd = (coordinator_address(member), ETCD_PORT);
            assert_eq!(behind(PROXY_ETCD_PORT + member), Some(etcd.into()));
        }
        for node in 0..3 {
            assert_eq!(
                behind(PROXY_ELECTED_PORT + node),
                Some((node_address(node), COORDINATOR_PORT).into()),
                "any node may preside"
            );
        }
        let to = |node: u16| Rule::Redirect {
            from: (node_address(node), COORDINATOR_PORT),
            to: (proxy_address(1), PROXY_ELECTED_PORT + node),
        };
        assert!(rules[&2].contains(&to(1)) && rules[&1].contains(&to(2)) && !rules[&0].contains(&to(2)));
    }
}
