//! The rules of coding graphs (docs/graphs.md): those of the crate `graph`.

use super::Rules;

impl Rules {
    /// Which rules of executors and askers hold.
    pub(crate) fn graphs(self) -> graph::Rules {
        graph::Rules::all()
    }
}
