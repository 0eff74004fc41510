//! What hosts ask other workers of their node: requests whose keys have moved to another pool, and values in chunks that are written there.

use proto::{Place, Submitted, Token, WriteNews, WriteStep};
use types::MemberId;
use types::op::{Outcome, Request};

use super::World;

/// Tokens of what hosts ask have this in them, and no others.
const ASKED: u64 = 1 << 63;
/// And this those of values that they have written.
const WRITTEN: u64 = 1 << 62;

/// The worker of a host's node that has the group of what a request is about: by what the host knows, for its key may have moved.
pub(super) fn worker_for(world: &World, host: usize, member: Option<MemberId>, request: &Request) -> usize {
    if member.is_some() || request.key.is_none() {
        return host;
    }
    let located =
        world.cluster.nodes.host(host).and_then(|machine| machine.locate(request.key_bytes()).member);
    let nodes = &world.cluster.nodes;
    located.map_or(host, |member| nodes.host_for(nodes.node_of(host), member.group))
}

/// A host has a worker of its node write a value.
pub(super) fn write(world: &mut World, host: usize, number: u64, shard: u16, step: WriteStep) {
    let hosts = world.cluster.nodes.hosts_on(world.cluster.nodes.node_of(host));
    let to = hosts.start + usize::from(shard);
    let token = Token([ASKED | WRITTEN | host as u64, number]);
    let upload = world.streams.written(token);
    let mut begun = None;
    let runs = world.cluster.nodes.drive(&world.stage, to, |machine, now| match (step, upload) {
        (WriteStep::Begin(place, new), _) => {
            begun = Some(machine.streams(now).begin_upload(token, place, *new));
        }
        (WriteStep::Feed(bytes), Some(upload)) => machine.streams(now).feed(upload, bytes),
        (WriteStep::Abandon, Some(upload)) => machine.streams(now).abandon_upload(upload),
        (_, None) => {}
    });
    match begun {
        Some(Ok(upload)) => world.streams.begin_writing(token, upload),
        Some(Err(failure)) => tell(world, token, WriteNews::Ended(Outcome::Failed(failure))),
        None => {}
    }
    if runs {
        world.after(to);
    }
    has_room(world, to, token);
}

/// An upload may take more: if it does, whoever has it written hears how much.
pub(super) fn has_room(world: &mut World, at: usize, token: Token) {
    let Some(upload) = world.streams.written(token) else { return };
    let mut room = 0;
    world.cluster.nodes.drive(&world.stage, at, |machine, now| {
        room = machine.streams(now).upload_wants(upload);
    });
    if room > 0 {
        tell(world, token, WriteNews::Room(room));
    }
}

/// Whether a host of its own node has it written.
pub(super) fn is_written(Token([asked, _]): Token) -> bool {
    asked & ASKED != 0 && asked & WRITTEN != 0
}

/// What has come of it: its host hears it.
pub(super) fn written(world: &mut World, token: Token, outcome: Outcome) {
    if world.streams.end_writing(token) {
        tell(world, token, WriteNews::Ended(outcome));
    }
}

fn tell(world: &mut World, Token([asked, number]): Token, news: WriteNews) {
    let host = (asked & !(ASKED | WRITTEN)) as usize;
    let runs = world.cluster.nodes.drive(&world.stage, host, |machine, now| {
        machine.streams(now).hear_written(number, news);
    });
    if runs {
        world.after(host);
    }
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
