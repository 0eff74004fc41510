use super::*;
use types::class::{CLASS_COUNT, class_of};

/// A fixed sequence that looks random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// What the module's comment promises.
fn check(allocator: &Allocator) {
    let mut listed = vec![false; allocator.runs.len()];
    for class in (1..=CLASS_COUNT as u8).map(RunClass) {
        let mut free_slots = 0;
        for at in allocator.lists.fullest_first(&allocator.runs, class) {
            assert!(!std::mem::replace(&mut listed[at as usize], true), "run {at} is in two lists");
            free_slots += allocator.runs[at as usize].free_slots();
        }
        assert_eq!(allocator.lists.free_slots(class), free_slots);
    }
    let (mut totals, mut words, mut spans_of) = (Totals::default(), 0, [0; 256]);
    for (at, run) in (0..).zip(&allocator.runs) {
        let count = |state| run.slots.iter().filter(|slot| slot.state() == state).count();
        let (pending, claimed) = (count(SlotState::Pending), count(SlotState::Claimed));
        let live = count(SlotState::Live) + claimed;
        assert_eq!((usize::from(run.pending), run.live()), (pending, live));
        let partly = live + pending > 0 && run.free_slots() > 0;
        let active = allocator.is_active(at);
        assert_eq!(listed[at as usize], active && partly && run.hold == Hold::None);
        let free = run.class == RunClass::FREE;
        assert_eq!(allocator.pool.contains(at), active && free && run.hold != Hold::Window);
        let continued = [RunClass::LARGE_CONTINUED, RunClass::SPAN_CONTINUED].contains(&run.class);
        assert!(free || continued || live + pending > 0, "run {at} is not retired");
        assert!(!continued || allocator.head_of(at) < at && run.slots.is_empty(), "run {at} has no head");
        spans_of[usize::from(run.class.0)] += u32::from(run.span > 0);
        totals.live += live;
        totals.pending += pending;
        totals.claimed += claimed;
        totals.claimed_bytes += claimed * allocator.slot_bytes(at);
        totals.slot_bytes += (live + pending) * allocator.slot_bytes(at);
        totals.item_bytes += run.item_bytes as usize;
        words += run.heap_bytes();
    }
    assert_eq!((allocator.totals, allocator.slot_words_bytes), (totals, words));
    assert_eq!(*allocator.spans_of, spans_of);
}

fn allocate(allocator: &mut Allocator, len: usize) -> Option<Addr> {
    let class = class_of(len);
    let slot = if class == RunClass::LARGE {
        let span = types::class::runs_of_large(len);
        let first = allocator.pool.first_stretch(span)?;
        allocator.open_large(first, span)
    } else {
        let free = allocator.pool.first_aligned(types::class::span_of(class));
        allocator.take(class).or_else(|| allocator.open(free?, class))
    };
    slot.map(|slot| allocator.addr(slot))
}

#[test]
fn lists_pool_and_sums_stay_right_whatever_happens() {
    let budget = Budget::new(1 << 30);
    let mut allocator = Allocator::new(budget.clone());
    let mut dice = Dice(1);
    let mut pending: Vec<(Addr, usize)> = vec![];
    let mut live: Vec<(Addr, usize)> = vec![];
    allocator.activate(1);
    for step in 0..6000 {
        match dice.below(12) {
            0..5 => {
                let len = [100, 3000, 20_000, 33_000, 70_000, 180_000][dice.below(6)] + dice.below(500);
                pending.extend(allocate(&mut allocator, len).map(|addr| (addr, len)));
            }
            5..8 if !pending.is_empty() => {
                let (addr, len) = pending.swap_remove(dice.below(pending.len()));
                allocator.commit(addr, len, 0, UnixSeconds(1));
                live.push((addr, len));
            }
            8 if !pending.is_empty() => {
                let (addr, _) = pending.swap_remove(dice.below(pending.len()));
                allocator.free(addr, None);
            }
            9 if !live.is_empty() => {
                let (addr, len) = live.swap_remove(dice.below(live.len()));
                allocator.free(addr, Some(len));
            }
            10 if !live.is_empty() => {
                let (addr, _) = live[dice.below(live.len())];
                if dice.below(2) == 0 {
                    allocator.claim(addr);
                } else {
                    allocator.unclaim(addr);
                }
            }
            _ if step % 1000 == 999 => {
                allocator.clear();
                live.clear();
            }
            _ => {
                let at = 16 + dice.below(16) as u32;
                allocator
                    .set_hold(at, [Hold::None, Hold::None, Hold::Compacting, Hold::Window][dice.below(4)]);
            }
        }
        check(&allocator);
        match step {
            3000 => allocator.activate(0),
            4000 => allocator.deactivate(1),
            4500 => allocator.activate(1),
            _ => {}
        }
    }
    for (addr, _) in pending.into_iter().chain(live) {
        allocator.free(addr, None);
    }
    check(&allocator);
    assert_eq!(allocator.totals(), Totals::default());
    assert_eq!(budget.total_used(), allocator.memory_bytes() as u64);
    drop(allocator);
    assert_eq!(budget.total_used(), 0);
}

#[test]
fn the_fullest_run_is_filled_first() {
    let mut allocator = Allocator::new(Budget::new(1 << 30));
    allocator.activate(0);
    let len = 8192;
    let addrs: Vec<Addr> = (0..24).filter_map(|_| allocate(&mut allocator, len)).collect();
    addrs.iter().for_each(|addr| allocator.commit(*addr, len, 0, UnixSeconds(1)));
    // Run 0 keeps 2 of 8 items, run 1 keeps 7, run 2 is full.
    addrs[2..8].iter().chain(&addrs[8..9]).for_each(|addr| allocator.free(*addr, Some(len)));
    assert_eq!(allocate(&mut allocator, len).map(|addr| addr.byte() / RUN_BYTES), Some(1));
    assert_eq!(allocate(&mut allocator, len).map(|addr| addr.byte() / RUN_BYTES), Some(0));
}
