//! Who should be where, and how well a cluster is: placement, the planner of moves, and health.
//!
//! Pure functions of plain data, without behaviour over time: nothing here sends or waits.

mod codes;
pub mod health;
mod placement;
mod plan;
mod protection;
mod room;
mod stop;

pub use codes::{Codes, PoolProtection, worst_off};
pub use placement::{PlacementError, groups_for, place, place_in_zones, place_pool};
pub use plan::{
    MAX_PREVIEW_MOVES, Move, PlacementWarning, PlanLimits, PlanNode, Reason, RoleCounts, RoleTally,
    choose_stand_in, choose_successor, next_moves, plan, warnings,
};
pub use protection::{Losses, Protection};
pub use room::room_for_missing;
pub use stop::stop_report;
