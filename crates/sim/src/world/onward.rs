//! What hosts ask other workers of their node: requests whose keys have moved to another pool.

use proto::{Place, Submitted, Token};
use types::MemberId;
use types::op::{Outcome, Request};

use super::World;

/// Tokens of what hosts ask have this in them, and no others.
const ASKED: u64 = 1 << 63;

/// The worker of a host's node that has the group of what a request is about: by what the host knows, for its key may have moved.
pub(super) fn worker_for(world: &World, host: usize, member: Option<MemberId>, request: &Request) -> usize {
    let hosts = world.cluster.nodes.hosts_on(world.cluster.nodes.node_of(host));
    if hosts.len() == 1 || member.is_some() || request.key.is_none() {
        return host;
    }
    let located =
        world.cluster.nodes.host(host).and_then(|machine| machine.locate(request.key_bytes()).member);
    located.map_or(host, |member| hosts.start + usize::from(member.group.shard(hosts.len() as u16)))
}

/// A host asks whoever of its node has that group.
pub(super) fn ask(world: &mut World, host: usize, number: u64, place: Place, request: Box<Request>) {
    let node = world.cluster.nodes.node_of(host);
    let hosts = world.cluster.nodes.hosts_on(node);
    let shard = place.member.map_or(0, |member| member.group.shard(hosts.len() as u16));
    let to = hosts.start + usize::from(shard);
    let token = Token([ASKED | host as u64, number]);
    let mut submitted = None;
    let runs = world.cluster.nodes.drive(&world.stage, to, |machine, now| {
        submitted = Some(machine.submit(now, token, place, request));
    });
    if let Some(Submitted::Done(outcome)) = submitted {
        hear(world, token, &outcome);
    }
    if runs {
        world.after(to);
    }
}

/// Whether a host of its own node asks by this name.
pub(super) fn is_of_host(Token([asked, _]): Token) -> bool {
    asked & ASKED != 0
}

/// The answer to such a question: its host hears it.
pub(super) fn hear(world: &mut World, Token([asked, number]): Token, outcome: &Outcome) {
    let host = (asked & !ASKED) as usize;
    let runs = world.cluster.nodes.drive(&world.stage, host, |machine, now| {
        machine.following(now).hear(number, outcome.clone());
    });
    if runs {
        world.after(host);
    }
}
