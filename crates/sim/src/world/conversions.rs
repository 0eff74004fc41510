//! Namespaces move from pool to pool while clients are at work: what operators do, and what hosts ask other workers for it.

use proto::{Place, Submitted, Token};
use types::op::{Outcome, Request};
use types::{AdminCommand, CatalogChange, Name, Namespace, PolicyChange, Striped};

use super::World;
use crate::stage::queue::Event;

/// Tokens of what hosts ask have this in them, and no others.
const ASKED: u64 = 1 << 63;

/// An operator has a namespace move to the other pool, or stand still on its way, or go on.
pub(super) fn next(world: &mut World) {
    let change = draw(world);
    world.reign().operate(AdminCommand::Catalog(change));
    later(world);
}

/// The next time, for as long as clients go on.
pub(super) fn later(world: &mut World) {
    let every_us = world.stage.options.convert_every_us;
    if every_us > 0 && !world.clients.have_stopped() {
        world.stage.after(every_us, Event::Convert);
    }
}

fn other() -> Name {
    "other".parse().expect("a name")
}

/// The pool that they move to and from, of the same code and with one group more than the first one.
fn create_pool(world: &World) -> CatalogChange {
    let groups = Some(world.stage.options.groups as u32 + 1);
    CatalogChange::CreatePool { name: other(), profile: world.stage.options.profile(), groups }
}

fn draw(world: &mut World) -> CatalogChange {
    let (which, what) = (world.stage.rng.faults.below(64) as usize, world.stage.rng.faults.below(4));
    let create = create_pool(world);
    let Some(catalog) = world.cluster.map().map(|map| &map.catalog) else { return create };
    let Ok(pool) = catalog.pool_named(&other()) else { return create };
    let asked = |known: &&Namespace| known.name.to_string() != "passing";
    let asked: Vec<&Namespace> = catalog.namespaces.iter().filter(asked).collect();
    let known = asked[which % asked.len()];
    let name = known.name.clone();
    if known.policy.objects.striped_above.is_some() {
        let change = PolicyChange { striped: Some(Striped::Never), ..PolicyChange::default() };
        return CatalogChange::SetPolicy { name, change };
    }
    match known.conversion {
        None if known.pool == pool.id => CatalogChange::ConvertNamespace { name, to: Name::default_name() },
        None => CatalogChange::ConvertNamespace { name, to: other() },
        Some(conversion) => CatalogChange::PauseConversion { name, paused: what == 0 && !conversion.paused },
    }
}

/// No conversion stands still any more.
pub(crate) fn resume_all(world: &mut World) {
    let Some(map) = world.cluster.map() else { return };
    let paused = |known: &&Namespace| known.conversion.is_some_and(|conversion| conversion.paused);
    let names: Vec<Name> =
        map.catalog.namespaces.iter().filter(paused).map(|known| known.name.clone()).collect();
    for name in names {
        world.reign().operate(AdminCommand::Catalog(CatalogChange::PauseConversion { name, paused: false }));
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

/// Whether this is the answer to such a question: then its host hears it.
pub(super) fn hear(world: &mut World, Token([asked, number]): Token, outcome: &Outcome) -> bool {
    if asked & ASKED == 0 {
        return false;
    }
    let host = (asked & !ASKED) as usize;
    if world.cluster.nodes.drive(&world.stage, host, |machine, now| {
        machine.hear_onward(now, number, outcome.clone());
    }) {
        world.after(host);
    }
    true
}
