//! Links are measured on purpose while clients are at work.

use super::World;
use crate::stage::queue::Event;

/// Some host measures its links to all other nodes. By turns, so that nothing is drawn for it.
pub(super) fn next(world: &mut World) {
    let turn = world.now().checked_div(every_us(world)).unwrap_or(0) as usize;
    world.probe(turn % world.cluster.nodes.host_count().max(1));
    later(world);
}

/// The next one, for as long as clients go on.
pub(super) fn later(world: &mut World) {
    let every_us = every_us(world);
    if every_us > 0 && !world.clients.have_stopped() {
        world.stage.after(every_us, Event::Probe);
    }
}

fn every_us(world: &World) -> u64 {
    world.stage.options.objects.map_or(0, |objects| objects.probe_every_us)
}
