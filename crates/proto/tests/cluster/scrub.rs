//! Scrub of code words: a writer whose parities are of other data has summed them up rightly, and is found all the same.

use std::sync::Arc;

use codec::{Accelerator, Code, Coder, Plan, Work};
use proto::{Host, Rules, WrongStripe, lost_keys, wrong_keys, wrong_stripes};
use types::{AdminCommand, AdminRequest, OnFinding, ScrubProgress};

use super::objects::noise;
use super::{Cluster, Setup, key_of};

/// Where the first byte of a row's first cell is odd, its parities are those of other data.
#[derive(Debug)]
struct Liar;

impl Accelerator for Liar {
    fn encode(&self, code: &Code, data: &[&[u8]], parity: &mut [&mut [u8]]) -> bool {
        let is_lie = data[0][0] % 2 == 1;
        if is_lie {
            let other: Vec<u8> = data[0].iter().map(|byte| byte ^ 0x10).collect();
            let data: Vec<&[u8]> = std::iter::once(&other[..]).chain(data[1..].iter().copied()).collect();
            code.encode(&data, parity).unwrap();
        }
        is_lie
    }

    fn reconstruct(&self, _: &Plan, _: &[&[u8]], _: &mut [&mut [u8]]) -> bool {
        false
    }

    fn combine(&self, _: &[u8], _: &[&[u8]], _: &mut [&mut [u8]]) -> bool {
        false
    }

    fn work(&self) -> Work {
        Work::default()
    }

    fn name(&self) -> String {
        "liar".to_owned()
    }
}

/// A cluster whose node 1 lies.
fn lying(rules: Rules) -> Cluster {
    let coder = |node| if node == 1 { Coder::with(Arc::new(Liar)) } else { Coder::default() };
    Cluster::of(7, "rs(3+2)", &Setup { rules, coder, ..Setup::default() })
}

/// A value whose lies are known: so many rows of each stripe, of one row each, begin with an odd byte.
fn value(seed: u64, stripes: usize, is_odd: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut value = noise(seed, stripes * 3 * (64 << 10));
    for stripe in 0..stripes {
        let first = &mut value[stripe * 3 * (64 << 10)];
        *first = *first & 0xfe | u8::from(is_odd(stripe));
    }
    value
}

/// Has everything compared: what all nodes together have done, and what they name.
fn scrub(cluster: &mut Cluster) -> (ScrubProgress, Vec<WrongStripe>) {
    let command = AdminCommand::StartScrub { finding: OnFinding::Report, bytes_per_second: 0 };
    let now = cluster.now;
    cluster.coordinator.administer(now, &AdminRequest { expect: None, command }).unwrap();
    cluster.settle();
    let generation = cluster.coordinator.map().unwrap().layout.scrub.generation;
    for _ in 0..3_000 {
        cluster.advance(10);
        let all = cluster.hosts.values().map(Host::scrub_progress);
        let sum = all.reduce(ScrubProgress::plus).unwrap();
        if sum.generation == generation && sum.left_pages == 0 {
            let mut wrong: Vec<_> = cluster.hosts.values().flat_map(wrong_stripes).copied().collect();
            wrong.sort_unstable_by_key(|stripe| (stripe.key_hash, stripe.chunk.stripe));
            return (sum, wrong);
        }
    }
    panic!("the scrub does not end");
}

fn stripes_of(wrong: &[WrongStripe], cluster: &Cluster, key: &str) -> Vec<u32> {
    let hash = cluster.hosts.values().next().unwrap().locate(&key_of(key)).hash;
    wrong.iter().filter(|stripe| stripe.key_hash == hash).map(|stripe| stripe.chunk.stripe).collect()
}

#[test]
fn stripes_that_are_no_code_words_are_found_once_and_named() {
    let mut cluster = lying(Rules::all());
    cluster.put(1, "wrong", &value(1, 7, |stripe| stripe % 3 == 1)).unwrap();
    cluster.put(1, "lucky", &value(2, 3, |_| false)).unwrap();
    cluster.put(0, "right", &value(3, 7, |_| true)).unwrap();
    cluster.advance(200);
    let (progress, wrong) = scrub(&mut cluster);
    assert_eq!(stripes_of(&wrong, &cluster, "wrong"), [1, 4]);
    assert_eq!((wrong.len(), progress.mismatches, progress.corrected), (2, 2, 0), "{wrong:?}");
    assert!(wrong.iter().all(|stripe| (stripe.row, stripe.parity.0) == (0, 3)), "{wrong:?}");
    let named: Vec<&[u8]> =
        cluster.hosts.values().flat_map(wrong_keys).map(|known| known.key.client()).collect();
    assert_eq!(named, [b"wrong"]);
    assert_eq!(cluster.hosts.values().flat_map(lost_keys).count(), 0);
    // What is read stays what was written, as long as nothing has to be decoded.
    assert!(cluster.read(4, "wrong").unwrap() == value(1, 7, |stripe| stripe % 3 == 1));
    // Who writes it anew has put it right.
    cluster.put(0, "wrong", &value(1, 7, |_| true)).unwrap();
    cluster.advance(200);
    let (progress, wrong) = scrub(&mut cluster);
    assert_eq!((progress.mismatches, wrong.len()), (0, 0));
    assert_eq!(cluster.hosts.values().flat_map(wrong_keys).count(), 0);
}

#[test]
fn long_stripes_are_compared_window_by_window() {
    let mut cluster = lying(Rules::all());
    // 22 rows of a stripe, more than a window has; the first byte of the last row is odd.
    let (rows, row) = (22, 3 * (64 << 10));
    let mut value = noise(4, rows * row);
    (0..rows).for_each(|at| value[at * row] &= 0xfe);
    value[(rows - 1) * row] |= 1;
    cluster.put_of(1, "long", &value, 4 << 20).unwrap();
    cluster.advance(200);
    let (progress, wrong) = scrub(&mut cluster);
    assert_eq!((progress.mismatches, wrong.len()), (1, 1));
    assert_eq!(wrong[0].row, rows as u32 - 1);
}

#[test]
fn a_stripe_that_cannot_be_had_holds_no_scrub_up_and_is_compared_by_the_next_one() {
    let mut cluster = lying(Rules::all());
    cluster.put(1, "wrong", &value(1, 5, |_| true)).unwrap();
    cluster.advance(200);
    let member = cluster.hosts.values().next().unwrap().locate(&key_of("wrong")).member.unwrap();
    let holder = cluster.coordinator.map().unwrap().group(member.group).unwrap().holders_of(member.role);
    // Its links are there, and it says nothing.
    let silent = holder.whole.unwrap().host;
    let host = cluster.hosts.remove(&silent.node).unwrap();
    let command = AdminCommand::StartScrub { finding: OnFinding::Report, bytes_per_second: 0 };
    let now = cluster.now;
    cluster.coordinator.administer(now, &AdminRequest { expect: None, command }).unwrap();
    cluster.advance(100);
    cluster.hosts.insert(silent.node, host);
    let (_, wrong) = scrub(&mut cluster);
    assert_eq!(wrong.len(), 5, "{wrong:?}");
}

#[test]
fn in_all_layouts_lies_are_found_and_what_is_right_is() {
    for layout in [types::ObjectLayout::Wide, types::ObjectLayout::Copy] {
        let mut cluster = Cluster { layout, ..lying(Rules::all()) };
        cluster.put(1, "wrong", &value(1, 3, |stripe| stripe == 1)).unwrap();
        let long = value(2, 3, |_| false);
        cluster.put_of(0, "long", &long, 4 << 16).unwrap();
        cluster.advance(200);
        let (progress, wrong) = scrub(&mut cluster);
        assert_eq!((progress.mismatches, wrong.len()), (1, 1), "{layout:?}");
        assert_eq!(wrong[0].chunk.stripe, 1);
        assert!(cluster.read(3, "long").unwrap() == long);
    }
}

/// Without the rule, checksums alone are compared, and they are right.
#[cfg(feature = "planted-bugs")]
#[test]
fn a_scrub_of_checksums_only_does_not_find_it() {
    let mut cluster = lying(Rules::without(proto::Bug::ScrubOfChecksumsOnly));
    cluster.put(1, "wrong", &value(1, 7, |_| true)).unwrap();
    cluster.advance(200);
    let (progress, wrong) = scrub(&mut cluster);
    assert_eq!((progress.mismatches, wrong.len()), (0, 0));
    assert!(progress.checked_pages > 0);
}
