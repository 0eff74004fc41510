//! Size classes: into how many slots a 64 KiB run is cut (docs/format.md, "Area, runs, classes").
//!
//! A run of a class holds `n` slots of `65536 / n` bytes, rounded down to whole address units. Sizes grow by about 6 %
//! a class where the unit allows, so an item wastes 3 % of its slot on average. Items beyond a run take whole
//! runs that follow each other.

use crate::{ADDR_UNIT_BYTES, RUN_BYTES, RunClass};

/// Slots of the smallest class.
pub const MIN_SLOT_BYTES: usize = 48;

/// About this ratio lies between the slot counts of neighbouring classes.
const GROWTH_PERCENT: usize = 6;
const UNITS_PER_RUN: usize = RUN_BYTES / ADDR_UNIT_BYTES;
const MAX_CLASSES: usize = 128;

/// How many classes there are; their numbers are `1 ..= CLASS_COUNT`, by ascending slot size.
pub const CLASS_COUNT: usize = CLASSES.count;

const _: () = assert!(CLASS_COUNT < RunClass::LARGE.0 as usize);

struct Classes {
    count: usize,
    /// Slot size in bytes by class number; 0 for class 0.
    slot_bytes: [u32; MAX_CLASSES],
    /// Slots in a run by class number.
    slots: [u16; MAX_CLASSES],
}

static CLASS_TABLE: Classes = CLASSES;
static CLASS_BY_UNITS: [u8; UNITS_PER_RUN + 1] = class_by_units();
const CLASSES: Classes = classes();

const fn slot_size(slots: usize) -> usize {
    RUN_BYTES / slots / ADDR_UNIT_BYTES * ADDR_UNIT_BYTES
}

/// The slot sizes from large to small, then turned around.
const fn classes() -> Classes {
    let mut sizes = [0usize; MAX_CLASSES];
    let (mut count, mut slots) = (0, 1);
    while slot_size(slots) >= MIN_SLOT_BYTES {
        sizes[count] = slot_size(slots);
        count += 1;
        // The largest number of slots that still gives this size; the next class has more.
        slots = RUN_BYTES / slot_size(slots);
        let grown = slots * (100 + GROWTH_PERCENT) / 100;
        slots = if grown > slots { grown } else { slots + 1 };
    }
    let mut table = Classes { count, slot_bytes: [0; MAX_CLASSES], slots: [0; MAX_CLASSES] };
    let mut class = 1;
    while class <= count {
        let size = sizes[count - class];
        table.slot_bytes[class] = size as u32;
        table.slots[class] = (RUN_BYTES / size) as u16;
        class += 1;
    }
    table
}

const fn class_by_units() -> [u8; UNITS_PER_RUN + 1] {
    let mut table = [0; UNITS_PER_RUN + 1];
    let (mut units, mut class) = (0, 1);
    while units <= UNITS_PER_RUN {
        if units * ADDR_UNIT_BYTES > CLASSES.slot_bytes[class] as usize {
            class += 1;
        }
        table[units] = class as u8;
        units += 1;
    }
    table
}

/// The class for an item of `len_bytes`: the smallest slot that holds it, [`RunClass::LARGE`] beyond a run.
#[must_use]
pub fn class_of(len_bytes: usize) -> RunClass {
    let units = len_bytes.div_ceil(ADDR_UNIT_BYTES);
    CLASS_BY_UNITS.get(units).map_or(RunClass::LARGE, |class| RunClass(*class))
}

/// Bytes of a slot of `class`; 0 if it is not a class of slots.
#[must_use]
pub fn slot_bytes(class: RunClass) -> usize {
    CLASS_TABLE.slot_bytes.get(usize::from(class.0)).map_or(0, |bytes| *bytes as usize)
}

/// Slots in a run of `class`; 0 if it is not a class of slots.
#[must_use]
pub fn slots_in_run(class: RunClass) -> usize {
    CLASS_TABLE.slots.get(usize::from(class.0)).map_or(0, |slots| usize::from(*slots))
}

/// Whether `class` cuts a run into slots, that is neither free nor part of a large item nor unknown.
#[must_use]
pub fn is_slotted(class: RunClass) -> bool {
    (1..=CLASS_COUNT).contains(&usize::from(class.0))
}

/// Runs that an item of `len_bytes` takes if it is [`RunClass::LARGE`].
#[must_use]
pub fn runs_of_large(len_bytes: usize) -> u32 {
    len_bytes.div_ceil(RUN_BYTES) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = RunClass> {
        (1..=CLASS_COUNT as u8).map(RunClass)
    }

    #[test]
    fn classes_are_these() {
        let sizes: Vec<usize> = all().map(slot_bytes).collect();
        assert_eq!(sizes[..8], [48, 56, 64, 72, 80, 88, 96, 104]);
        assert_eq!(sizes[CLASS_COUNT - 4..], [16384, 21840, 32768, 65536]);
        assert_eq!(CLASS_COUNT, 88);
    }

    #[test]
    fn an_item_gets_the_smallest_slot_that_holds_it() {
        for len in 0..=RUN_BYTES {
            let class = class_of(len);
            assert!(slot_bytes(class) >= len, "{len}");
            assert!(class.0 == 1 || slot_bytes(RunClass(class.0 - 1)) < len, "{len}");
        }
        assert_eq!(class_of(RUN_BYTES + 1), RunClass::LARGE);
        assert_eq!(class_of(usize::MAX), RunClass::LARGE);
    }

    #[test]
    fn slots_fill_the_run_and_are_aligned() {
        for class in all() {
            let (size, count) = (slot_bytes(class), slots_in_run(class));
            assert!(size.is_multiple_of(ADDR_UNIT_BYTES) && size * count <= RUN_BYTES);
            assert!(size * (count + 1) > RUN_BYTES, "another slot of {size} bytes would fit");
            assert!(RUN_BYTES - size * count < RUN_BYTES / 16, "{size} x {count}");
        }
    }

    #[test]
    fn sizes_grow_by_six_percent_where_they_can() {
        for class in all().skip(1) {
            let (before, size) = (slot_bytes(RunClass(class.0 - 1)), slot_bytes(class));
            if size < RUN_BYTES / 17 {
                assert!(size <= before + before / 15 + ADDR_UNIT_BYTES, "{before} -> {size}");
            }
        }
    }

    #[test]
    fn what_is_no_class_of_slots_has_none() {
        for class in [RunClass::FREE, RunClass::LARGE, RunClass::LARGE_CONTINUED, RunClass(200)] {
            assert_eq!((slot_bytes(class), slots_in_run(class), is_slotted(class)), (0, 0, false));
        }
    }
}
