//! What members will need: the bytes that a budget is charged for so many items, by the rules by which areas, indexes and
//! tables grow.
//!
//! Holds for items that were written once. What is deleted and written again leaves gaps, which are filled before anything
//! grows; how many there are depends on the order.

use types::class::{class_of, runs_of_large, slot_bytes, slots_in_span, span_of};
use types::{RUN_BYTES, RUNS_PER_EXTENT, RunClass};

use crate::alloc::Allocator;
pub use crate::growing::dealt;
use crate::index::GrownIndex;
use crate::{Area, Replica};

/// Items of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Header, key and value of each.
    pub item_bytes: usize,
    /// How many.
    pub items: u64,
}

/// What a data role comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleForecast {
    /// Runs of its area that are in use, from the first one on.
    pub runs: u32,
    /// Bytes of the slots in which its items lie.
    pub slot_bytes: u64,
    /// The index: at its primary, and as much again at each parity.
    pub index_bytes: u64,
    /// Classes of runs and pages that were written: at its primary, and as much again at each parity.
    pub table_bytes: u64,
    /// State and last access of each slot, and which are free: at its primary alone.
    pub slot_state_bytes: u64,
}

/// Foretells. Making one tries an index out, which takes a millisecond.
#[derive(Debug)]
pub struct Forecast {
    index: GrownIndex,
}

impl Default for Forecast {
    fn default() -> Self {
        Self { index: GrownIndex::new() }
    }
}

impl Forecast {
    /// For a role with all of these items.
    #[must_use]
    pub fn role(&self, portions: &[Portion]) -> RoleForecast {
        let (mut runs, mut slots, mut slot_bytes, mut items) = (0u64, 0u64, 0u64, 0u64);
        for portion in portions {
            let cut = Cut::of(portion.item_bytes);
            let spans = portion.items.div_ceil(cut.slots);
            runs += spans * cut.runs;
            slots += spans * cut.slots;
            slot_bytes += portion.items * cut.slot_bytes;
            items += portion.items;
        }
        // An area ends below what 32 bits count; whoever asks for more sees so by the bytes.
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        RoleForecast {
            runs,
            slot_bytes,
            index_bytes: self.index.bytes(items as usize) as u64,
            table_bytes: Replica::grown_table_bytes(runs) as u64,
            slot_state_bytes: Allocator::grown_bytes(runs, slots as usize) as u64,
        }
    }
}

impl RoleForecast {
    /// What is charged for its area.
    #[must_use]
    pub fn area_bytes(&self) -> u64 {
        area_bytes(self.runs)
    }

    /// What is charged for its area at whoever has it from another primary: of a first extent as much as is in use, and no step more.
    #[must_use]
    pub fn inherited_area_bytes(&self) -> u64 {
        if self.runs > RUNS_PER_EXTENT {
            return self.area_bytes();
        }
        u64::from(self.runs) * RUN_BYTES as u64
    }
}

/// What is charged for an area, a data role's or a parity's, of which the first `runs` runs are in use.
#[must_use]
pub fn area_bytes(runs: u32) -> u64 {
    Area::grown_bytes(runs) as u64
}

/// How spans are cut for items of one length.
struct Cut {
    runs: u64,
    slots: u64,
    slot_bytes: u64,
}

impl Cut {
    fn of(item_bytes: usize) -> Self {
        match class_of(item_bytes) {
            RunClass::LARGE => {
                let runs = u64::from(runs_of_large(item_bytes));
                Self { runs, slots: 1, slot_bytes: runs * RUN_BYTES as u64 }
            }
            class => Self {
                runs: u64::from(span_of(class)),
                slots: slots_in_span(class) as u64,
                slot_bytes: slot_bytes(class) as u64,
            },
        }
    }
}
