//! The rules of coding graphs (docs/graphs.md): those of the crate `graph` that show at a host, and those of whoever has chunks made.

use super::{Bug, Rules};

/// Each bug of a host that is one of its executor.
const OF_EXECUTORS: [(Bug, graph::Bug); 8] = [
    (Bug::GraphWithoutRoom, graph::Bug::TakesWithoutRoom),
    (Bug::ReadersRoomTaken, graph::Bug::NoReserve),
    (Bug::GraphRunsMix, graph::Bug::RunsMix),
    (Bug::GraphSliceTwice, graph::Bug::SliceTwice),
    (Bug::GraphSliceUnchecked, graph::Bug::SumUnchecked),
    (Bug::GraphKeepsHalf, graph::Bug::KeepsHalf),
    (Bug::GraphCreditsUnbounded, graph::Bug::CreditWithoutMemory),
    (Bug::GraphOutlivesDeadline, graph::Bug::DeadlineIgnored),
];

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct GraphRules(Rules);

impl Rules {
    /// Those of coding graphs.
    pub(crate) fn graphs(self) -> GraphRules {
        GraphRules(self)
    }
}

impl GraphRules {
    /// Which rules of executors and askers hold.
    pub(crate) fn of_executors(self) -> graph::Rules {
        let left_out = OF_EXECUTORS.iter().find(|(bug, _)| !self.0.prevent(*bug));
        left_out.map_or_else(graph::Rules::all, |(_, bug)| graph::Rules::without(*bug))
    }

    /// A graph ends here when its asker is gone.
    pub(crate) fn runs_end_with_their_askers(self) -> bool {
        self.0.prevent(Bug::GraphOutlivesAsker)
    }

    /// What nobody here waits for under a newer view is not made on.
    pub(crate) fn moot_orders_end(self) -> bool {
        self.0.prevent(Bug::GraphOutlivesHolder)
    }

    /// A reader fetches cells of what a graph has not made for it.
    pub(crate) fn readers_go_on_without(self) -> bool {
        self.0.prevent(Bug::GraphLeavesReader)
    }

    /// Fills go round nodes that hold them up.
    pub(crate) fn slow_links_are_gone_round(self) -> bool {
        self.0.prevent(Bug::SlowLinksWaitedFor)
    }

    /// What nobody has said for long of links between others is not believed any more.
    pub(crate) fn is_hearsay_believed(self, is_fresh: bool) -> bool {
        is_fresh || !self.0.prevent(Bug::OldHearsayBelieved)
    }

    /// Who has no slow link any more says so.
    pub(crate) fn well_links_are_told(self) -> bool {
        self.0.prevent(Bug::WellLinksUntold)
    }

    /// What is lent waits for the view that its writer has.
    pub(crate) fn does_lent_cell_wait(self, is_early: bool) -> bool {
        is_early && self.0.prevent(Bug::LentCellGoesAhead)
    }

    /// Cells are compared with their checksums before a step reads them.
    pub(crate) fn sources_are_verified(self) -> bool {
        self.0.prevent(Bug::RottenSourceRead)
    }

    /// A cell of a parity is complete when the products of all data roles have come that the parity covers; both are sets, a bit for each.
    pub(crate) fn is_sum_complete(self, come: u32, covered: u32) -> bool {
        let missing = (covered & !come).count_ones();
        missing == 0 || missing == 1 && !self.0.prevent(Bug::SumLacksProduct)
    }

    /// Products of one try to put a chunk are added up, under the writer's number for it.
    pub(crate) fn try_of_products(self, attempt: u64) -> u64 {
        if self.0.prevent(Bug::ProductsOfTriesMix) { attempt } else { 0 }
    }

    /// A product that is in the sum already, for its holder got the cell twice, is not added again.
    pub(crate) fn is_product_known(self, is_in_sum: bool) -> bool {
        is_in_sum && self.0.prevent(Bug::ProductAddedTwice)
    }

    /// A sum is kept if it is what the writer has named.
    pub(crate) fn is_sum_kept(self, is_right: bool) -> bool {
        is_right || !self.0.prevent(Bug::WrongSumKept)
    }

    /// What holders do not make in time their writer puts.
    pub(crate) fn sums_give_way(self) -> bool {
        self.0.prevent(Bug::SumsNeverGiveWay)
    }
}
