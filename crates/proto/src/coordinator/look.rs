//! When a part of a coordinator looked last at all that it has to do.
//!
//! What was due by then has been done, or cannot be done as things are. So a part is asked again at the next of its own times, or
//! as soon as views have changed or somebody has come: never only to find that it still has to wait.

use types::Time;

use super::state::ClusterState;

/// See the module.
#[derive(Clone, Copy, Default)]
pub(super) struct Look {
    at: Option<Time>,
    changes: u64,
}

impl Look {
    /// Everything is looked at now. To be taken before what is done about it, unless that needs no second look.
    pub(super) fn at(now: Time, state: &ClusterState) -> Self {
        Self { at: Some(now), changes: state.changes() }
    }

    /// When to look again, if it waits for `times`: at once where something has changed, or nobody has looked yet.
    pub(super) fn next(self, state: &ClusterState, times: impl IntoIterator<Item = Time>) -> Time {
        match self.at {
            Some(looked) if self.changes == state.changes() => {
                times.into_iter().filter(|at| *at > looked).min().unwrap_or(Time::NEVER)
            }
            Some(_) | None => Time(0),
        }
    }
}
