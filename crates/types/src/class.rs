//! Size classes: into how many slots a span of runs is cut (docs/format.md, "Area, runs, classes").
//!
//! A span is one run of 64 KiB, for slots of up to 16 KiB and for whole fractions of a run, or eight runs. It holds `n` slots
//! of a span's length divided by `n`, rounded down to whole address units. Sizes grow by about 6 % a class where the unit
//! allows, so an item wastes 3 % of its slot on average; beyond a run by a third at most. Items for which not even three slots
//! fit into eight runs take whole runs that follow each other.

use crate::{ADDR_UNIT_BYTES, RUN_BYTES, RunClass};

/// Slots of the smallest class.
pub const MIN_SLOT_BYTES: usize = 48;
/// Runs of a span that is more than one run; it begins at a multiple of as many.
pub const SPAN_RUNS: u32 = 8;

/// About these ratios lie between the slot counts of neighbouring classes of one run, and of eight.
const GROWTH_PERCENT: usize = 6;
const SPAN_GROWTH_PERCENT: usize = 10;
/// Fewest slots in eight runs.
const MIN_SPAN_SLOTS: usize = 3;
/// Up to this size a single run is cut finely enough.
const MAX_FINE_BYTES: usize = 16 * 1024;
const SPAN_BYTES: usize = SPAN_RUNS as usize * RUN_BYTES;
const MAX_SLOT_BYTES: usize = slot_size(SPAN_BYTES, MIN_SPAN_SLOTS);
const MAX_SLOT_UNITS: usize = MAX_SLOT_BYTES / ADDR_UNIT_BYTES;
const MAX_CLASSES: usize = 128;

/// How many classes there are; their numbers are `1 ..= CLASS_COUNT`, by ascending slot size.
pub const CLASS_COUNT: usize = CLASSES.count;

const _: () = assert!(CLASS_COUNT < RunClass::SPAN_CONTINUED.0 as usize);

/// How a class cuts its spans.
#[derive(Clone, Copy)]
struct Cut {
    slot_bytes: u32,
    slots: u16,
    /// Runs of a span.
    runs: u8,
}

const NO_CUT: Cut = Cut { slot_bytes: 0, slots: 0, runs: 0 };

struct Classes {
    count: usize,
    /// By class number; nothing for class 0.
    cuts: [Cut; MAX_CLASSES],
}

static CLASS_TABLE: Classes = CLASSES;
static CLASS_BY_UNITS: [u8; MAX_SLOT_UNITS + 1] = class_by_units();
const CLASSES: Classes = classes();

const fn slot_size(span_bytes: usize, slots: usize) -> usize {
    span_bytes / slots / ADDR_UNIT_BYTES * ADDR_UNIT_BYTES
}

/// The largest number of slots that gives the same size, and from there on as many more as the growth wants.
const fn next_slots(span_bytes: usize, slots: usize, growth_percent: usize) -> usize {
    let slots = span_bytes / slot_size(span_bytes, slots);
    let grown = slots * (100 + growth_percent) / 100;
    if grown > slots { grown } else { slots + 1 }
}

/// The cuts from large slots to small ones, then turned around.
const fn classes() -> Classes {
    let mut descending = [NO_CUT; MAX_CLASSES];
    let (mut count, mut in_run, mut in_span) = (0, 1, MIN_SPAN_SLOTS);
    loop {
        let (size, spanned) = (slot_size(RUN_BYTES, in_run), slot_size(SPAN_BYTES, in_span));
        if spanned > MAX_FINE_BYTES && spanned > size {
            // What a single run can be cut into as well is left to it.
            if !in_span.is_multiple_of(SPAN_RUNS as usize) {
                let (slot_bytes, slots, runs) = (spanned as u32, in_span as u16, SPAN_RUNS as u8);
                descending[count] = Cut { slot_bytes, slots, runs };
                count += 1;
            }
            in_span = next_slots(SPAN_BYTES, in_span, SPAN_GROWTH_PERCENT);
        } else if size >= MIN_SLOT_BYTES {
            let (slot_bytes, slots) = (size as u32, (RUN_BYTES / size) as u16);
            descending[count] = Cut { slot_bytes, slots, runs: 1 };
            count += 1;
            in_run = next_slots(RUN_BYTES, in_run, GROWTH_PERCENT);
        } else {
            break;
        }
    }
    let mut table = Classes { count, cuts: [NO_CUT; MAX_CLASSES] };
    let mut class = 1;
    while class <= count {
        table.cuts[class] = descending[count - class];
        class += 1;
    }
    table
}

const fn class_by_units() -> [u8; MAX_SLOT_UNITS + 1] {
    let mut table = [0; MAX_SLOT_UNITS + 1];
    let (mut units, mut class) = (0, 1);
    while units <= MAX_SLOT_UNITS {
        if units * ADDR_UNIT_BYTES > CLASSES.cuts[class].slot_bytes as usize {
            class += 1;
        }
        table[units] = class as u8;
        units += 1;
    }
    table
}

#[inline]
fn cut(class: RunClass) -> &'static Cut {
    CLASS_TABLE.cuts.get(usize::from(class.0)).unwrap_or(&NO_CUT)
}

/// The class for an item of `len_bytes`: the smallest slot that holds it, [`RunClass::LARGE`] beyond all of them.
#[must_use]
pub fn class_of(len_bytes: usize) -> RunClass {
    let units = len_bytes.div_ceil(ADDR_UNIT_BYTES);
    CLASS_BY_UNITS.get(units).map_or(RunClass::LARGE, |class| RunClass(*class))
}

/// The class for an item of `len_bytes` where no span of eight runs is to be had: the smallest slot in a single run that
/// holds it, [`RunClass::LARGE`] beyond a run.
#[must_use]
pub fn class_in_one_run(len_bytes: usize) -> RunClass {
    let classes = class_of(len_bytes).0..=CLASS_COUNT as u8;
    classes.map(RunClass).find(|class| span_of(*class) == 1).unwrap_or(RunClass::LARGE)
}

/// Bytes of a slot of `class`; 0 if it is not a class of slots.
#[must_use]
#[inline]
pub fn slot_bytes(class: RunClass) -> usize {
    cut(class).slot_bytes as usize
}

/// Slots in a span of `class`; 0 if it is not a class of slots.
#[must_use]
pub fn slots_in_span(class: RunClass) -> usize {
    usize::from(cut(class).slots)
}

/// Runs in a span of `class`: 1 or [`SPAN_RUNS`]; 0 if it is not a class of slots.
#[must_use]
pub fn span_of(class: RunClass) -> u32 {
    u32::from(cut(class).runs)
}

/// Whether `class` cuts a span into slots, that is neither free nor part of a large item nor a further run nor unknown.
#[must_use]
#[inline]
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
        let beyond = sizes.iter().position(|size| *size > MAX_FINE_BYTES).unwrap();
        assert_eq!(sizes[beyond - 1], MAX_FINE_BYTES);
        assert_eq!(
            sizes[beyond..],
            [
                17472, 18720, 20160, 21840, 23824, 26208, 27592, 29120, 30840, 32768, 34952, 37448, 40328,
                43688, 47656, 52424, 58248, 65536, 74896, 87376, 104856, 131072, 174760
            ]
        );
        assert_eq!(CLASS_COUNT, 108);
    }

    #[test]
    fn an_item_gets_the_smallest_slot_that_holds_it() {
        for len in 0..=MAX_SLOT_BYTES {
            let class = class_of(len);
            assert!(slot_bytes(class) >= len, "{len}");
            assert!(class.0 == 1 || slot_bytes(RunClass(class.0 - 1)) < len, "{len}");
        }
        assert_eq!(class_of(MAX_SLOT_BYTES + 1), RunClass::LARGE);
        assert_eq!(class_of(usize::MAX), RunClass::LARGE);
    }

    #[test]
    fn without_spans_an_item_gets_the_smallest_slot_in_a_run() {
        for len in 0..=RUN_BYTES {
            let class = class_in_one_run(len);
            assert!(slot_bytes(class) >= len && span_of(class) == 1, "{len}");
            let smaller = (1..class.0).map(RunClass).rfind(|class| span_of(*class) == 1);
            assert!(smaller.is_none_or(|class| slot_bytes(class) < len), "{len}");
        }
        assert_eq!(class_in_one_run(RUN_BYTES + 1), RunClass::LARGE);
        assert_eq!(class_in_one_run(usize::MAX), RunClass::LARGE);
    }

    #[test]
    fn slots_fill_the_span_and_are_aligned() {
        for class in all() {
            let (size, count) = (slot_bytes(class), slots_in_span(class));
            let span = span_of(class) as usize * RUN_BYTES;
            assert!(size.is_multiple_of(ADDR_UNIT_BYTES) && size * count <= span);
            assert!(size * (count + 1) > span, "another slot of {size} bytes would fit");
            assert!(span - size * count < span / 16, "{size} x {count}");
        }
    }

    #[test]
    fn sizes_grow_by_little() {
        for class in all().skip(1) {
            let (before, size) = (slot_bytes(RunClass(class.0 - 1)), slot_bytes(class));
            let most = if size < RUN_BYTES / 17 {
                before / 15 + ADDR_UNIT_BYTES
            } else if (MAX_FINE_BYTES + 1..=RUN_BYTES).contains(&size) {
                before / 7
            } else {
                before / 3
            };
            assert!(before < size && size <= before + most, "{before} -> {size}");
        }
    }

    #[test]
    fn what_is_no_class_of_slots_has_none() {
        let others = [
            RunClass::FREE,
            RunClass::LARGE,
            RunClass::LARGE_CONTINUED,
            RunClass::SPAN_CONTINUED,
            RunClass(200),
        ];
        for class in others {
            assert_eq!((slot_bytes(class), slots_in_span(class), span_of(class)), (0, 0, 0));
            assert!(!is_slotted(class));
        }
    }
}
