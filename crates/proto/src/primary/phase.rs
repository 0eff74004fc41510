//! What a primary has: its store, or an index on its way to being one.

use store::DataStore;
use types::Time;

use super::core::Core;
use super::parities::Parities;
use super::takeover::Taking;
use crate::Timing;
use crate::outbox::Context;

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

    /// Asks for the index, if this is a stand-in that lacks it.
    pub(super) fn retry_takeover(&mut self, context: &mut Context<'_>, core: &Core, parities: &Parities) {
        if let Self::Taking(taking) = self {
            taking.retry(context, core, parities);
        }
    }

    /// When the index is to be asked for again.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        match self {
            Self::Taking(taking) => taking.due(timing),
            Self::Serving(_) => Time::NEVER,
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
