//! Rings and memory are full: clients wait or are refused, nothing is dropped and nothing breaks.

use sim::{Memory, Options, Story};
use types::op::{Failure, Outcome};

#[test]
fn a_full_ring_makes_requests_wait_and_drops_none() {
    let mut options = Options::quiet(2, 1, 3);
    options.limits.log_records = 4;
    options.limits.frame_records = 2;
    let mut story = Story::with(options);
    let (primary, parity) = (story.primary(0), story.parity(0));
    story.wire(parity, primary).hold();
    let keys: Vec<usize> = (0..20).map(|n| story.key(0, n)).collect();
    let asked: Vec<_> = keys.iter().map(|key| story.begin_set(*key, "x")).collect();
    story.run(2_000);
    assert!(asked.iter().all(|asked| story.answer(*asked).is_none()));
    story.wire(parity, primary).release();
    story.run_until("all are committed", |story| asked.iter().all(|asked| story.stored(*asked)));
    story.end();
}

#[test]
fn a_full_queue_of_waiting_requests_refuses_as_busy_and_does_nothing() {
    let mut options = Options::quiet(2, 1, 3);
    options.limits.log_records = 2;
    options.limits.parked_requests = 3;
    let mut story = Story::with(options);
    let (primary, parity) = (story.primary(0), story.parity(0));
    story.wire(parity, primary).hold();
    let asked: Vec<_> = (0..10)
        .map(|n| {
            let key = story.key(0, n);
            story.begin_set(key, "x")
        })
        .collect();
    story.run(2_000);
    let busy =
        asked.iter().filter(|asked| story.answer(**asked) == Some(&Outcome::Failed(Failure::Busy))).count();
    assert!(busy > 0, "somebody was refused");
    story.wire(parity, primary).release();
    story.run_until("all end", |story| asked.iter().all(|asked| story.answer(*asked).is_some()));
    story.end();
}

fn tiny(evict: bool) -> Story {
    let mut options = Options::quiet(2, 1, 4);
    options.memory = Memory { node_bytes: 64 << 20, area_extents: 2, evict };
    options.text_keys = 200;
    Story::with(options)
}

#[test]
fn a_full_store_that_may_not_evict_says_so_and_keeps_what_it_has() {
    let mut story = tiny(false);
    let value = vec![7; 60_000];
    let mut stored = Vec::new();
    let mut refused = 0;
    for n in 0..60 {
        let key = story.key(0, n);
        let node = story.primary(0);
        let asked = story.ask(node, key, sim::story::set(&value));
        match story.wait_for(asked) {
            Outcome::Stored(_) => stored.push(key),
            Outcome::Failed(Failure::OutOfMemory) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(refused > 0 && stored.len() > 15, "{} stored, {refused} refused", stored.len());
    for key in stored {
        assert!(story.get(key).is_some());
    }
    story.kill(story.primary(0));
    story.until_full(0);
    story.end();
}

#[test]
fn a_full_cache_evicts_through_its_stream_so_that_a_stand_in_agrees() {
    let mut story = tiny(true);
    let value = vec![7; 60_000];
    for n in 0..90 {
        let key = story.key(0, n);
        story.set_bytes(key, &value);
    }
    story.kill(story.primary(0));
    story.until_full(0);
    for n in 0..90 {
        let key = story.key(0, n);
        story.get(key);
    }
    story.end();
}

#[test]
fn space_comes_back_when_values_change_their_size() {
    let mut story = tiny(false);
    for round in 0..6 {
        let value = vec![round as u8; [100, 3_000, 40_000][round % 3]];
        for n in 0..25 {
            let key = story.key(0, n);
            story.set_bytes(key, &value);
        }
        for n in 0..25 {
            let key = story.key(0, n);
            story.delete(key);
        }
        story.calm_down();
    }
    story.end();
}
