//! The rules of coding graphs (docs/graphs.md): those of the crate `graph`, of which these two show in what a host has reserved.

use super::{Bug, Rules};

impl Rules {
    /// Which rules of executors and askers hold.
    pub(crate) fn graphs(self) -> graph::Rules {
        if !self.prevent(Bug::GraphWithoutRoom) {
            graph::Rules::without(graph::Bug::TakesWithoutRoom)
        } else if !self.prevent(Bug::ReadersRoomTaken) {
            graph::Rules::without(graph::Bug::NoReserve)
        } else {
            graph::Rules::all()
        }
    }
}
