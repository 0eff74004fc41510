//! Namespaces move from pool to pool while clients are at work: what operators do.

use types::{AdminCommand, Catalog, CatalogChange, Name, Namespace};

use super::reign::Reign;
use crate::options::Options;
use crate::stage::queue::Event;

impl Reign<'_> {
    /// An operator has a namespace move to the other pool, or stand still on its way, or go on.
    pub(crate) fn convert(&mut self) {
        if self.clients.have_stopped() {
            return;
        }
        let drawn = (self.stage.rng.faults.below(64) as usize, self.stage.rng.faults.below(4));
        let catalog = self.cluster.map().map(|map| &map.catalog);
        let change = change_of(&self.stage.options, catalog, drawn);
        self.operate(AdminCommand::Catalog(change));
        self.convert_later();
    }

    /// The next time, for as long as clients go on.
    pub(crate) fn convert_later(&mut self) {
        let every_us = self.stage.options.convert_every_us;
        if every_us > 0 && !self.clients.have_stopped() {
            self.stage.after(every_us, Event::Convert);
        }
    }

    /// No conversion stands still any more.
    pub(crate) fn resume_conversions(&mut self) {
        // What the coordinator has decided may not be recorded yet.
        let Some(map) = self.cluster.decided().or(self.cluster.map()) else { return };
        let paused = |known: &&Namespace| known.conversion.is_some_and(|conversion| conversion.paused);
        let names: Vec<Name> =
            map.catalog.namespaces.iter().filter(paused).map(|known| known.name.clone()).collect();
        for name in names {
            let change = CatalogChange::PauseConversion { name, paused: false };
            self.operate(AdminCommand::Catalog(change));
        }
    }
}

fn other() -> Name {
    "other".parse().expect("a name")
}

/// What an operator asks for. The pool that namespaces move to and from is of the same code as the first one, with one group more.
fn change_of(options: &Options, catalog: Option<&Catalog>, (which, what): (usize, u64)) -> CatalogChange {
    let groups = Some(options.groups as u32 + 1);
    let create = CatalogChange::CreatePool { name: other(), profile: options.profile(), groups };
    let Some(catalog) = catalog else { return create };
    let Ok(pool) = catalog.pool_named(&other()) else { return create };
    let asked: Vec<&Namespace> =
        catalog.namespaces.iter().filter(|known| known.name.to_string() != "passing").collect();
    let known = asked[which % asked.len()];
    let name = known.name.clone();
    match known.conversion {
        None if known.pool == pool.id => CatalogChange::ConvertNamespace { name, to: Name::default_name() },
        None => CatalogChange::ConvertNamespace { name, to: other() },
        // It turns back.
        Some(_) if what == 1 => match known.pool == pool.id {
            true => CatalogChange::ConvertNamespace { name, to: other() },
            false => CatalogChange::ConvertNamespace { name, to: Name::default_name() },
        },
        Some(conversion) => CatalogChange::PauseConversion { name, paused: what == 0 && !conversion.paused },
    }
}
