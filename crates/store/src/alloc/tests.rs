use super::*;
use types::class::class_of;

/// A fixed sequence that looks random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
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
    allocator.activate(Reach::whole(1));
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
        allocator.check_invariants();
        match step {
            3000 => allocator.activate(Reach::whole(0)),
            4000 => allocator.deactivate(1),
            4500 => allocator.activate(Reach::whole(1)),
            _ => {}
        }
    }
    for (addr, _) in pending.into_iter().chain(live) {
        allocator.free(addr, None);
    }
    allocator.check_invariants();
    assert_eq!(allocator.totals(), Totals::default());
    assert_eq!(budget.total_used(), allocator.memory_bytes() as u64);
    drop(allocator);
    assert_eq!(budget.total_used(), 0);
}

#[test]
fn the_fullest_run_is_filled_first() {
    let mut allocator = Allocator::new(Budget::new(1 << 30));
    allocator.activate(Reach::whole(0));
    let len = 8192;
    let addrs: Vec<Addr> = (0..24).filter_map(|_| allocate(&mut allocator, len)).collect();
    addrs.iter().for_each(|addr| allocator.commit(*addr, len, 0, UnixSeconds(1)));
    // Run 0 keeps 2 of 8 items, run 1 keeps 7, run 2 is full.
    addrs[2..8].iter().chain(&addrs[8..9]).for_each(|addr| allocator.free(*addr, Some(len)));
    assert_eq!(allocate(&mut allocator, len).map(|addr| addr.byte() / RUN_BYTES), Some(1));
    assert_eq!(allocate(&mut allocator, len).map(|addr| addr.byte() / RUN_BYTES), Some(0));
}

/// Two items of 3000 bytes, and a run that nothing is in.
fn small() -> Allocator {
    let mut allocator = Allocator::new(Budget::new(1 << 30));
    allocator.activate(Reach::whole(0));
    for _ in 0..2 {
        let addr = allocate(&mut allocator, 3000).unwrap();
        allocator.commit(addr, 3000, 0, UnixSeconds(1));
    }
    allocator.check_invariants();
    allocator
}

#[test]
#[should_panic(expected = "the sums are those of the runs")]
fn an_item_that_is_counted_twice_is_noticed() {
    let mut allocator = small();
    allocator.totals.live += 1;
    allocator.check_invariants();
}

#[test]
#[should_panic(expected = "in the pool")]
fn a_free_run_that_is_not_in_the_pool_is_noticed() {
    let mut allocator = small();
    allocator.pool.remove(7);
    allocator.check_invariants();
}

#[test]
#[should_panic(expected = "in its list")]
fn a_run_with_room_that_is_in_no_list_is_noticed() {
    let mut allocator = small();
    allocator.lists.unlink(&mut allocator.runs, 0);
    allocator.check_invariants();
}

#[test]
#[should_panic(expected = "what is claimed is live")]
fn more_claims_than_items_are_noticed_in_the_sums() {
    let mut allocator = small();
    allocator.totals.claimed = 3;
    allocator.check_sums();
}
