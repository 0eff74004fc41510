//! What a primary has: its store, or an index on its way to being one.

use store::DataStore;

use super::takeover::Taking;

/// See the module.
pub(super) enum Phase {
    /// A stand-in that is still fetching its index.
    Taking(Box<Taking>),
    /// Everything but, on a stand-in, some pages.
    Serving(Box<DataStore>),
}

impl Phase {
    /// The store, once there is one.
    pub(super) fn store(&self) -> Option<&DataStore> {
        match self {
            Self::Serving(store) => Some(store),
            Self::Taking(_) => None,
        }
    }

    pub(super) fn store_mut(&mut self) -> Option<&mut DataStore> {
        match self {
            Self::Serving(store) => Some(store),
            Self::Taking(_) => None,
        }
    }

    /// The store of a primary that serves, or has a record on its way: only one with a store does.
    pub(super) fn serving(&self) -> &DataStore {
        self.store().expect("whoever asks has seen that this primary serves")
    }

    /// See [`Self::serving`].
    pub(super) fn serving_mut(&mut self) -> &mut DataStore {
        self.store_mut().expect("whoever asks has seen that this primary serves")
    }
}
