//! What nodes believe of slow links between others is what these say, in the end: who has something else to say is heard, and what nobody
//! says any more is forgotten.

use proto::SaidLinks;

use crate::cluster::nodes::Nodes;
use crate::stage::Stage;

/// Whose word is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speakers {
    /// That of those who have ever said something.
    Heard,
    /// That of all: who has said nothing has no slow link.
    All,
}

/// What a host believes that another one does not say; none if all is as it should be.
pub(crate) fn misbelief(stage: &Stage, nodes: &Nodes, speakers: Speakers) -> Option<String> {
    let known: Vec<(usize, SaidLinks)> =
        (0..nodes.host_count()).filter_map(|host| said(stage, nodes, host)).collect();
    let per_node = nodes.hosts_on(0).len();
    for (listener, SaidLinks { believed, .. }) in &known {
        let is_heard = |(speaker, _): &&(usize, SaidLinks)| {
            speaker != listener && speaker % per_node == listener % per_node
        };
        for (speaker, SaidLinks { said, .. }) in known.iter().filter(is_heard) {
            let said = match (said, speakers) {
                (Some(said), _) => &said[..],
                (None, Speakers::All) => &[],
                (None, Speakers::Heard) => continue,
            };
            let (speaker, listener) = (nodes.id_of(*speaker), nodes.id_of(*listener));
            let believed = believed.get(&speaker.node).map_or(&[][..], Vec::as_slice);
            if believed != said {
                return Some(format!(
                    "{listener} believes {believed:?} of links to {speaker}, who says {said:?}"
                ));
            }
        }
    }
    None
}

fn said(stage: &Stage, nodes: &Nodes, host: usize) -> Option<(usize, SaidLinks)> {
    let node = nodes.node_of(host);
    let machine = nodes.host(host).filter(|_| nodes.is_up(node))?;
    Some((host, proto::said_links(machine, stage.read(&nodes[node].clock).time)))
}
