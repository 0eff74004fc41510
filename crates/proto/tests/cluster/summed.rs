//! Parities that the holders of data chunks make of products (`EncodeBy::Tri`), and what becomes of them when products do not come.

use proto::{EncodeBy, GraphSettings, Limits, ObjectStats, Rules, Token, UploadId};
#[cfg(feature = "planted-bugs")]
use types::op::Failure;
use types::op::{Outcome, StoreMode};
use types::{GroupView, NodeId, ObjectLayout};
use wire::object::{Checked, Product};

use super::objects::noise;
use super::{Cluster, Setup};

fn setup(encode: EncodeBy) -> Setup {
    let graphs = GraphSettings { encode, ..GraphSettings::default() };
    Setup { graphs, ..Setup::default() }
}

fn by_tri(nodes: u16, profile: &str) -> Cluster {
    by_tri_under(Rules::all(), nodes, profile)
}

fn by_tri_under(rules: Rules, nodes: u16, profile: &str) -> Cluster {
    let mut cluster = Cluster::of(nodes, profile, &Setup { rules, ..setup(EncodeBy::Tri) });
    cluster.open();
    cluster
}

impl Cluster {
    /// All groups take chunks from now on, and nothing is there.
    fn open(&mut self) {
        for number in 0..40 {
            self.put(0, &format!("opens-{number}"), &noise(number, 70_000)).unwrap();
        }
        self.advance(1_500);
    }

    fn sums(&self) -> ObjectStats {
        let all = self.hosts.values().map(|host| host.stats().objects);
        all.fold(ObjectStats::default(), |sum, one| ObjectStats {
            summed_chunks: sum.summed_chunks + one.summed_chunks,
            unsummed_chunks: sum.unsummed_chunks + one.unsummed_chunks,
            wrong_sums: sum.wrong_sums + one.wrong_sums,
            sum_bytes: sum.sum_bytes + one.sum_bytes,
            ..sum
        })
    }

    /// How many parities holders have made while this was done, and how many were put after all.
    fn made_while<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> ((u64, u64), T) {
        let before = self.sums();
        let did = act(self);
        let after = self.sums();
        let made = after.summed_chunks - before.summed_chunks;
        ((made, after.unsummed_chunks - before.unsummed_chunks), did)
    }

    fn views_of(&mut self, key: &str) -> GroupView {
        let node = self.hosts.keys().next().unwrap().0;
        let group = self.object(node, key).unwrap().descriptor.group_of(0).unwrap();
        self.coordinator.map().unwrap().group(group).unwrap().clone()
    }

    /// What a value comes to within so many milliseconds.
    fn put_within(&mut self, ms: u64, key: &str, value: &[u8]) -> Option<Outcome> {
        let (token, upload) = self.begin_upload(0, key, value.len(), StoreMode::Set);
        self.settle();
        self.go_on_feeding(ms, token, upload, value, 0)
    }

    fn go_on_feeding(
        &mut self,
        ms: u64,
        token: Token,
        upload: UploadId,
        value: &[u8],
        from: usize,
    ) -> Option<Outcome> {
        let mut fed = from;
        for _ in 0..=ms / 10 {
            fed = self.feed(0, upload, value, fed);
            if let Some(outcome) = self.answers.get(&token) {
                return Some(outcome.clone());
            }
            self.advance(10);
        }
        None
    }

    /// The holders of as many data chunks as any of the codes can bear go, so that parities are read.
    fn is_read_from_parities(&mut self, key: &str, value: &[u8]) -> bool {
        let view = self.views_of(key);
        for role in view.holders.iter().take(view.m().min(view.k()).min(2)) {
            let node = role.whole.unwrap().host.node;
            self.kill(node.0);
        }
        self.advance(3_500);
        let reader = self.hosts.keys().next().unwrap().0;
        self.read(reader, key).is_ok_and(|read| read == value)
    }
}

fn is_stored(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Stored(_)))
}

#[test]
fn holders_make_the_parities_of_values_of_all_lengths_and_layouts() {
    for layout in [ObjectLayout::Spread, ObjectLayout::Wide, ObjectLayout::Copy] {
        for (nodes, profile) in [(8, "rs(3+2)"), (10, "rs(6+3)"), (9, "lrc(4,2,1)"), (4, "rs(1+2)")] {
            let mut cluster = by_tri(nodes, profile);
            cluster.layout = layout;
            for len in [1, 1_000, 196_608, 1_000_003] {
                let value = noise(len as u64, len);
                let ((made, not_made), stored) = cluster.made_while(|cluster| cluster.put(1, "key", &value));
                assert!(is_stored(stored.as_ref()), "{profile} {layout:?} {len}: {stored:?}");
                assert!(made > 0 && not_made == 0, "{profile} {layout:?} {len}: {made}, {not_made} not");
            }
            assert_eq!(cluster.sums().sum_bytes, 0, "{profile} {layout:?}");
            assert!(
                cluster.is_read_from_parities("key", &noise(1_000_003, 1_000_003)),
                "{profile} {layout:?}"
            );
        }
    }
}

/// Bytes that a node sends for each byte of a value that its client writes, and of which it keeps nothing.
fn sent_for_each_byte(nodes: u16, profile: &str, encode: EncodeBy, layout: ObjectLayout) -> f64 {
    sent_by(nodes, profile, encode, layout, None)
}

/// The same where it keeps the chunk of some role.
fn sent_by(nodes: u16, profile: &str, encode: EncodeBy, layout: ObjectLayout, role: Option<usize>) -> f64 {
    sent_in(Cluster::of(nodes, profile, &setup(encode)), layout, role)
}

fn sent_in(mut cluster: Cluster, layout: ObjectLayout, role: Option<usize>) -> f64 {
    cluster.layout = layout;
    cluster.open();
    let value = noise(9, 6 << 20);
    cluster.put(0, "key", &value).unwrap();
    let view = cluster.views_of("key");
    let keeps = |node: &NodeId| view.all_holders().any(|(_, holder)| holder.host.node == *node);
    let bystander = || cluster.hosts.keys().copied().find(|node| !keeps(node)).unwrap();
    let writer = role.map_or_else(bystander, |role| view.holders[role].whole.unwrap().host.node);
    cluster.metered = Some((writer, 0));
    // One stripe, so all of it goes to this group.
    let stored = cluster.put_of(writer.0, "key", &value, 2 << 20);
    assert!(is_stored(stored.as_ref()), "{stored:?}");
    cluster.metered.unwrap().1 as f64 / value.len() as f64
}

#[test]
fn the_writer_s_links_carry_the_value_once() {
    for (nodes, profile) in [(8, "rs(3+2)"), (12, "rs(6+3)")] {
        for layout in [ObjectLayout::Spread, ObjectLayout::Wide] {
            let sent = sent_for_each_byte(nodes, profile, EncodeBy::Tri, layout);
            assert!((1.0..=1.01).contains(&sent), "{profile} {layout:?}: {sent}");
        }
    }
    for role in 0..5 {
        let sent = sent_by(8, "rs(3+2)", EncodeBy::Tri, ObjectLayout::Spread, Some(role));
        assert!(sent <= 1.05, "who keeps the chunk of role {role}: {sent}");
    }
    let sent = sent_for_each_byte(8, "rs(3+2)", EncodeBy::Node, ObjectLayout::Spread);
    assert!((5.0 / 3.0..1.7).contains(&sent), "by the node: {sent}");
}

#[test]
fn where_it_is_chosen_the_first_value_goes_as_the_model_says() {
    let sent = sent_for_each_byte(8, "rs(3+2)", EncodeBy::Auto, ObjectLayout::Spread);
    assert!((1.0..=1.01).contains(&sent), "over links of 1 Gbit/s: {sent}");
    let none = sent_for_each_byte(8, "none", EncodeBy::Auto, ObjectLayout::Spread);
    assert!((1.0..=1.01).contains(&none), "without parities: {none}");
}

#[test]
fn what_products_cost_between_zones_is_part_of_the_choice() {
    let sent = |zone_price_us, zone: fn(u16) -> &'static str| {
        let graphs = GraphSettings { encode: EncodeBy::Auto, zone_price_us, ..GraphSettings::default() };
        let cluster = Cluster::of(8, "rs(3+2)", &Setup { graphs, zone, ..Setup::default() });
        sent_in(cluster, ObjectLayout::Spread, None)
    };
    let halves = |node| if node % 2 == 0 { "a" } else { "b" };
    assert!(sent(0, halves) <= 1.01, "they cost nothing");
    assert!(sent(1_000_000, |_| "a") <= 1.01, "there are none");
    assert!(sent(1_000_000, halves) >= 5.0 / 3.0, "holders would send each other more than the writer saves");
}

fn none_arrive(_: u32, _: &Product) -> Vec<Product> {
    Vec::new()
}

fn all_arrive_twice(_: u32, product: &Product) -> Vec<Product> {
    vec![product.clone(), product.clone()]
}

fn one_is_another(number: u32, product: &Product) -> Vec<Product> {
    if number != 1 {
        return vec![product.clone()];
    }
    let mut bytes = product.cell.bytes.to_vec();
    bytes[0] ^= 1;
    vec![Product { cell: Checked::new(bytes.into()), ..product.clone() }]
}

#[test]
fn what_holders_do_not_make_the_writer_puts() {
    let mut cluster = by_tri(8, "rs(3+2)");
    cluster.wires.products = Some(none_arrive);
    let value = noise(1, 500_000);
    let (made, stored) = cluster.made_while(|cluster| cluster.put_within(5_000, "key", &value));
    assert!(is_stored(stored.as_ref()), "{stored:?}");
    assert_eq!(made.0, 0);
    assert!(made.1 > 0);
    assert!(cluster.is_read_from_parities("key", &value));
    assert_eq!(cluster.sums().sum_bytes, 0);
}

#[cfg(feature = "planted-bugs")]
#[test]
fn a_writer_that_waits_for_holders_is_much_later() {
    let is_stored_within = |rules, ms| {
        let mut cluster = by_tri_under(rules, 8, "rs(3+2)");
        cluster.wires.products = Some(none_arrive);
        is_stored(cluster.put_within(ms, "key", &noise(1, 150_000)).as_ref())
    };
    assert!(is_stored_within(Rules::all(), 1_500));
    assert!(!is_stored_within(Rules::without(proto::Bug::SumsNeverGiveWay), 4_500));
}

#[test]
fn products_that_come_twice_are_added_once() {
    let mut cluster = by_tri(8, "rs(3+2)");
    cluster.wires.products = Some(all_arrive_twice);
    let value = noise(1, 1_000_000);
    let ((made, not_made), _) = cluster.made_while(|cluster| cluster.put(0, "key", &value).unwrap());
    assert!(made > 0 && not_made == 0, "{made}, {not_made} not");
    assert_eq!(cluster.sums().wrong_sums, 0);
    assert!(cluster.is_read_from_parities("key", &value));
    cluster.advance(6_000);
    assert_eq!(cluster.sums().sum_bytes, 0, "what nobody waits for goes");
}

#[test]
fn a_sum_that_is_not_what_was_named_is_not_kept() {
    let mut cluster = by_tri(8, "rs(3+2)");
    cluster.wires.products = Some(one_is_another);
    let value = noise(2, 500_000);
    let ((_, not_made), stored) = cluster.made_while(|cluster| cluster.put(0, "key", &value));
    assert!(is_stored(stored.as_ref()), "at once: {stored:?}");
    assert_eq!((not_made, cluster.sums().wrong_sums), (1, 1));
    assert!(cluster.is_read_from_parities("key", &value));
}

/// What a value comes to without a rule, and how many sums were wrong.
#[cfg(feature = "planted-bugs")]
fn without_rule(bug: proto::Bug, products: fn(u32, &Product) -> Vec<Product>) -> (Option<Outcome>, u64) {
    let mut cluster = by_tri_under(Rules::without(bug), 8, "rs(3+2)");
    cluster.wires.products = Some(products);
    let stored = cluster.put_within(3_000, "key", &noise(2, 190_000));
    (stored, cluster.sums().wrong_sums)
}

#[cfg(feature = "planted-bugs")]
#[test]
fn without_the_rules_of_sums_they_are_wrong() {
    for (bug, products) in [
        (proto::Bug::ProductAddedTwice, all_arrive_twice as fn(u32, &Product) -> Vec<Product>),
        (proto::Bug::SumLacksProduct, |_, product| vec![product.clone()]),
    ] {
        let (stored, wrong) = without_rule(bug, products);
        assert!(is_stored(stored.as_ref()) && wrong > 0, "{bug:?}: {stored:?}, {wrong} wrong");
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn a_wrong_sum_that_is_kept_is_a_chunk_that_its_stripe_does_not_have() {
    let (stored, wrong) = without_rule(proto::Bug::WrongSumKept, one_is_another);
    assert_eq!(stored, Some(Outcome::Failed(Failure::Corrupt)), "the checksum of the chunk is another one");
    assert_eq!(wrong, 0, "nobody noticed before");
}

fn with_little_memory() -> Cluster {
    let limits = Limits { sum_bytes: 100_000, ..Limits::default() };
    let mut cluster = Cluster::of(8, "rs(3+2)", &Setup { limits, ..setup(EncodeBy::Tri) });
    cluster.open();
    cluster
}

#[test]
fn without_memory_for_products_the_writer_puts_at_once() {
    let mut cluster = with_little_memory();
    let value = noise(3, 3 << 20);
    let (made, stored) = cluster.made_while(|cluster| cluster.put_of(0, "key", &value, 1 << 20));
    assert!(is_stored(stored.as_ref()), "{stored:?}");
    assert_eq!(made, (0, 2));
    assert!(cluster.sums().sum_bytes <= 2 * 100_000);
    cluster.advance(6_000);
    assert_eq!(cluster.sums().sum_bytes, 0);
    assert!(cluster.is_read_from_parities("key", &value));
}

#[test]
fn chunks_that_nobody_has_memory_for_are_not_begun() {
    let mut cluster = with_little_memory();
    cluster.layout = ObjectLayout::Wide;
    let (made, _) =
        cluster.made_while(|cluster| cluster.put_of(0, "key", &noise(3, 3 << 20), 1 << 20).unwrap());
    assert_eq!(made, (0, 0));
}

/// A node goes when half of a value has come; which one, by its role. How many parities were put after all.
fn stored_though_one_goes(role: usize) -> u64 {
    let mut cluster = by_tri(8, "rs(3+2)");
    let value = noise(5, 1_500_000);
    cluster.put(0, "key", &value).unwrap();
    let view = cluster.views_of("key");
    let node = view.holders[role].whole.unwrap().host.node.0;
    if node == 0 {
        return 0;
    }
    let before = cluster.sums().unsummed_chunks;
    let len = value.len();
    let (token, upload) = cluster.begin_upload_once(0, "key", (len, 1 << 20), StoreMode::Set, None);
    cluster.settle();
    let half = cluster.feed(0, upload, &value[..len / 2], 0);
    cluster.kill(node);
    let stored = cluster.go_on_feeding(10_000, token, upload, &value, half);
    assert!(is_stored(stored.as_ref()), "{role}: {stored:?}");
    assert!(cluster.read(0, "key").unwrap() == value);
    let unsummed = cluster.sums().unsummed_chunks - before;
    cluster.advance(8_000);
    assert_eq!(cluster.sums().sum_bytes, 0);
    assert!(cluster.is_read_from_parities("key", &value), "{role}");
    unsummed
}

#[test]
fn a_holder_that_goes_meanwhile_loses_nothing() {
    let unsummed: u64 = (0..5).map(stored_though_one_goes).sum();
    assert!(unsummed > 0, "some were put after all");
}

/// Values that open their groups, by a node that knows the view of each before others do: how many parities holders have made, how many
/// the writer has put after all, and whether all of it was there at once.
fn opened_by_who_is_told_first(nodes: u16, profile: &str) -> ((u64, u64), bool) {
    let mut cluster = Cluster::of(nodes, profile, &setup(EncodeBy::Tri));
    cluster.told_first = Some(NodeId(0));
    cluster.made_while(|cluster| {
        let is_put = |number: u64| {
            let (key, value) = (format!("opens-{number}"), noise(number, 150_000));
            let is_in_time = is_stored(cluster.put_within(200, &key, &value).as_ref());
            is_in_time && cluster.read(1, &key).unwrap() == value
        };
        (0..20).map(is_put).filter(|is_put| !is_put).count() == 0
    })
}

#[test]
fn lent_cells_that_come_before_the_view_are_given_on_with_it() {
    for (nodes, profile) in [(5, "rs(3+2)"), (9, "rs(6+3)")] {
        let ((made, not_made), in_time) = opened_by_who_is_told_first(nodes, profile);
        assert!(in_time && made > 0 && not_made == 0, "{profile}: {made}, {not_made} not, {in_time}");
    }
}
