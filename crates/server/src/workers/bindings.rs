//! The namespaces that listeners are bound to: by name, for one may be made, or removed and made again, while clients are here.

use std::cell::{Cell, RefCell};

use types::{ClusterMap, Name, NamespaceId};

/// Which of a node's bound listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding(pub u16);

/// See the module.
#[derive(Debug)]
pub(crate) struct Bindings {
    names: Vec<Name>,
    /// What they are by the map of this version.
    numbers: RefCell<Vec<NamespaceId>>,
    version: Cell<Option<u64>>,
}

impl Bindings {
    /// Of listeners that are bound to `names`, in this order.
    pub(crate) fn of(names: impl Iterator<Item = Name>) -> Self {
        Self { names: names.collect(), numbers: RefCell::default(), version: Cell::new(None) }
    }

    /// The number of the namespace of `binding` by `map`; one that nobody has if it has none of this name.
    pub(crate) fn resolve(&self, binding: Binding, map: Option<&ClusterMap>) -> NamespaceId {
        let Some(map) = map else { return NamespaceId::MAX };
        if self.version.replace(Some(map.version)) != Some(map.version) {
            let number =
                |name: &Name| map.catalog.namespace_named(name).map_or(NamespaceId::MAX, |known| known.id);
            self.numbers.replace(self.names.iter().map(number).collect());
        }
        self.numbers.borrow().get(usize::from(binding.0)).copied().unwrap_or(NamespaceId::MAX)
    }
}
