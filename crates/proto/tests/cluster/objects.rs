//! Values in chunks: written, read, repaired and forgotten.

use bytes::Bytes;
use proto::{GatherId, Limits, NewGather, NewUpload, Submitted, Token, UploadId};
use store::{Budget, Eviction, StoreConfig};
use types::op::{Failure, Object, Op, Outcome, Request, Store, StoreMode};
use types::{AdminCommand, AdminRequest, ClusterId, NodeId, NodeLoad, Once};
use wire::message::ToCoordinator;

use super::{Cluster, Rules, Setup, get, host_id, key_of};

pub(super) const CHUNK_LEN: u32 = 64 * 1024;

/// Bytes that are the same nowhere.
pub(super) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

fn store(mode: StoreMode) -> Store {
    let (value, expiry) = (Bytes::new(), types::op::Expiry::Never);
    Store { mode, value, flags: 5, expiry, compare: None, version: None, invalidate: false, vivify: None }
}

impl Cluster {
    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token([self.next_token - 1, 0])
    }

    pub(super) fn begin_upload(
        &mut self,
        node: u16,
        key: &str,
        len: usize,
        mode: StoreMode,
    ) -> (Token, UploadId) {
        self.begin_upload_of(node, key, (len, CHUNK_LEN), mode)
    }

    fn begin_upload_of(
        &mut self,
        node: u16,
        key: &str,
        (len, chunk_len): (usize, u32),
        mode: StoreMode,
    ) -> (Token, UploadId) {
        self.begin_upload_once(node, key, (len, chunk_len), mode, None)
    }

    pub(super) fn begin_upload_once(
        &mut self,
        node: u16,
        key: &str,
        (len, chunk_len): (usize, u32),
        mode: StoreMode,
        once: Option<Once>,
    ) -> (Token, UploadId) {
        let store = store(mode);
        let layout = self.layout;
        let new = NewUpload { key: key_of(key), store, len: len as u64, chunk_len, layout, once, via: None };
        let (token, upload) = self.try_begin_upload(node, new);
        (token, upload.unwrap())
    }

    fn try_begin_upload(&mut self, node: u16, new: NewUpload) -> (Token, Result<UploadId, Failure>) {
        let (token, now) = (self.token(), self.clocks(NodeId(node)));
        let host = self.hosts.get_mut(&NodeId(node)).unwrap();
        let place = proto::locate_chunks(host, &new.key);
        (token, host.streams(now).begin_upload(token, place, new))
    }

    /// Begins a value of so many bytes and lets it be. Why it cannot begin, if it cannot.
    pub(super) fn refusal_of(&mut self, node: u16, key: &str, len: usize) -> Option<Failure> {
        let store = store(StoreMode::Set);
        let new = NewUpload {
            key: key_of(key),
            store,
            len: len as u64,
            chunk_len: CHUNK_LEN,
            layout: self.layout,
            once: None,
            via: None,
        };
        let (_, begun) = self.try_begin_upload(node, new);
        let now = self.clocks(NodeId(node));
        let host = self.hosts.get_mut(&NodeId(node)).unwrap();
        let refused = begun.map(|upload| host.streams(now).abandon_upload(upload)).err();
        self.settle();
        refused
    }

    /// Feeds as much of `value` as is taken; how much that was.
    pub(super) fn feed(&mut self, node: u16, upload: UploadId, value: &[u8], from: usize) -> usize {
        let mut at = from;
        loop {
            let now = self.clocks(NodeId(node));
            let host = self.hosts.get_mut(&NodeId(node)).unwrap();
            let wanted = host.streams(now).upload_wants(upload).min(value.len() - at);
            if wanted == 0 {
                return at;
            }
            host.streams(now).feed(upload, Bytes::copy_from_slice(&value[at..at + wanted]));
            at += wanted;
            self.settle();
        }
    }

    /// Feeds these bytes, which are no more than are taken.
    pub(super) fn feed_some(&mut self, node: u16, upload: UploadId, bytes: &[u8]) {
        let now = self.clocks(NodeId(node));
        let mut streams = self.hosts.get_mut(&NodeId(node)).unwrap().streams(now);
        assert!(streams.upload_wants(upload) >= bytes.len());
        streams.feed(upload, Bytes::copy_from_slice(bytes));
        self.settle();
    }

    pub(super) fn put(&mut self, node: u16, key: &str, value: &[u8]) -> Option<Outcome> {
        self.put_of(node, key, value, CHUNK_LEN)
    }

    /// The same in chunks of `chunk_len` bytes.
    pub(super) fn put_of(&mut self, node: u16, key: &str, value: &[u8], chunk_len: u32) -> Option<Outcome> {
        let (token, upload) = self.begin_upload_of(node, key, (value.len(), chunk_len), StoreMode::Set);
        self.settle();
        self.feed(node, upload, value, 0);
        self.answers.get(&token).cloned()
    }

    pub(super) fn object(&mut self, node: u16, key: &str) -> Option<Object> {
        match self.run(node, get(key)) {
            Some(Outcome::Hit(view)) => view.object.map(|object| *object),
            Some(Outcome::Miss) => None,
            other => panic!("get {key}: {other:?}"),
        }
    }

    pub(super) fn begin_gather(
        &mut self,
        node: u16,
        key: &str,
        range: std::ops::Range<u64>,
    ) -> (Token, GatherId) {
        let object = self.object(node, key).expect("it is there, in chunks");
        let (token, now) = (self.token(), self.clocks(NodeId(node)));
        let host = self.hosts.get_mut(&NodeId(node)).unwrap();
        let hash = host.locate(&key_of(key)).hash;
        let (start, end, by_graph) = (range.start, range.end, self.by_graph);
        let new = NewGather { key: key_of(key), object, start, end, changed: false, by_graph };
        let gather = host.streams(now).begin_gather(token, hash, new).unwrap();
        (token, gather)
    }

    /// Reads all of a value, or why it cannot be read.
    pub(super) fn read(&mut self, node: u16, key: &str) -> Result<Vec<u8>, Outcome> {
        let (token, gather) = self.begin_gather(node, key, 0..u64::MAX);
        self.read_on(node, token, gather)
    }

    /// Reads a part of a value.
    pub(super) fn read_part(
        &mut self,
        node: u16,
        key: &str,
        range: std::ops::Range<u64>,
    ) -> Result<Vec<u8>, Outcome> {
        let (token, gather) = self.begin_gather(node, key, range);
        self.read_on(node, token, gather)
    }

    fn read_on(&mut self, node: u16, token: Token, gather: GatherId) -> Result<Vec<u8>, Outcome> {
        let mut taken = 0;
        for _ in 0..10_000 {
            self.settle();
            if self.slow.is_some() {
                self.advance(10);
            }
            if let Some(outcome) = self.answers.get(&token) {
                return Err(outcome.clone());
            }
            let (bytes, whole) = self.parts.get(&token).cloned().unwrap_or_default();
            if whole {
                return Ok(bytes);
            }
            let now = self.clocks(NodeId(node));
            let host = self.hosts.get_mut(&NodeId(node)).unwrap();
            host.streams(now).gather_taken(gather, bytes.len() - taken);
            if taken == bytes.len() {
                self.advance(10);
            }
            taken = bytes.len();
        }
        panic!("the read does not end");
    }

    /// Chunks at all nodes.
    pub(super) fn chunk_count(&self) -> usize {
        self.hosts.values().flat_map(|host| host.chunks()).map(|(_, chunks)| chunks.count()).sum()
    }

    pub(super) fn tentative_bytes(&self) -> u64 {
        self.hosts.values().flat_map(|host| host.chunks()).map(|(_, chunks)| chunks.tentative_bytes()).sum()
    }

    /// The node that speaks for a key.
    pub(super) fn owner_of(&self, key: &str) -> NodeId {
        let member = self.hosts[&NodeId(0)].locate(&key_of(key)).member.unwrap();
        let view = self.coordinator.map().unwrap().group(member.group).unwrap();
        view.data_role(member.role).unwrap().primary.unwrap().node
    }
}

#[test]
fn a_value_in_chunks_is_read_from_any_node() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    for (key, len) in [("one", 1), ("small", 1000), ("row", 196_608), ("odd", 1_000_003), ("long", 3_000_000)]
    {
        let value = noise(len as u64, len);
        let stored = cluster.put(1, key, &value);
        assert!(
            matches!(stored, Some(Outcome::Stored(ref view)) if view.value_len == len as u64),
            "{stored:?}"
        );
        for node in 0..5 {
            assert!(cluster.read(node, key).unwrap() == value, "{key} on {node}");
        }
    }
    cluster.advance(200);
    assert_eq!(cluster.tentative_bytes(), 0, "all is known to be committed");
}

#[test]
fn what_is_replaced_or_deleted_leaves_no_chunk() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    cluster.put(0, "key", &noise(1, 500_000)).unwrap();
    cluster.advance(100);
    let one = cluster.chunk_count();
    assert!(one > 0);
    cluster.put(2, "key", &noise(2, 500_000)).unwrap();
    cluster.advance(100);
    assert_eq!(cluster.chunk_count(), one, "the first one is gone");
    cluster.set(3, "key", b"short").unwrap();
    cluster.advance(100);
    assert_eq!(cluster.chunk_count(), 0);
    assert_eq!(cluster.get(4, "key"), Some(b"short".to_vec()));
}

#[test]
fn ranges_touch_what_they_need() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let value = noise(3, 1_000_000);
    cluster.put(0, "key", &value).unwrap();
    for range in [0..1, 0..1_000_000, 65_535..65_537, 999_999..1_000_000, 300_000..700_001] {
        let part = cluster.read_part(2, "key", range.clone()).unwrap();
        assert!(part == value[range.start as usize..range.end as usize], "{range:?}");
    }
}

#[test]
fn two_lost_nodes_are_decoded_and_their_chunks_come_back() {
    let mut cluster = Cluster::new(7, "rs(3+2)");
    let value = noise(4, 1_500_000);
    cluster.put(0, "key", &value).unwrap();
    cluster.advance(100);
    let all = cluster.chunk_count();
    cluster.kill(1);
    cluster.kill(3);
    cluster.advance(3500);
    assert!(cluster.read(0, "key").unwrap() == value);
    cluster.advance(5000);
    assert!(cluster.read(2, "key").unwrap() == value);
    let map = cluster.coordinator.map().unwrap();
    let opened = map.groups.iter().filter(|view| view.takes_chunks());
    for view in opened {
        let is_whole =
            view.holders.iter().all(|holders| holders.whole.is_some() && holders.filling.is_none());
        assert!(is_whole, "{view:?}");
    }
    assert_eq!(cluster.chunk_count(), all, "as many as before");
    // Two more, and it is still there.
    cluster.kill(2);
    cluster.kill(4);
    cluster.advance(3500);
    assert!(cluster.read(0, "key").unwrap() == value);
}

#[test]
fn a_client_that_goes_leaves_nothing() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let value = noise(5, 900_000);
    let (_, upload) = cluster.begin_upload(0, "key", value.len(), StoreMode::Set);
    cluster.settle();
    cluster.feed(0, upload, &value[..700_000], 0);
    let now = cluster.clocks(NodeId(0));
    cluster.hosts.get_mut(&NodeId(0)).unwrap().streams(now).abandon_upload(upload);
    cluster.settle();
    assert!(cluster.chunk_count() > 0);
    cluster.advance(125_000);
    assert_eq!(cluster.chunk_count(), 0, "whoever has chunks has asked");
    assert!(cluster.object(1, "key").is_none());
}

#[test]
fn a_condition_that_cannot_hold_is_told_at_once() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let (token, _) = cluster.begin_upload(0, "key", 500_000, StoreMode::Replace);
    cluster.settle();
    assert_eq!(cluster.answers.get(&token), Some(&Outcome::NotStored));
    cluster.set(0, "key", b"there").unwrap();
    let (token, _) = cluster.begin_upload(0, "key", 500_000, StoreMode::Add);
    cluster.settle();
    assert_eq!(cluster.answers.get(&token), Some(&Outcome::NotStored));
}

#[test]
fn what_is_read_stays_while_it_is_replaced() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let value = noise(6, 6_000_000);
    cluster.put(0, "key", &value).unwrap();
    let (token, gather) = cluster.begin_gather(3, "key", 0..u64::MAX);
    cluster.settle();
    cluster.put(1, "key", &noise(7, 400_000)).unwrap();
    cluster.advance(2000);
    assert!(cluster.read_on(3, token, gather).unwrap() == value);
    cluster.advance(1000);
    let left = cluster.chunk_count();
    cluster.set(1, "key", b"").unwrap();
    cluster.advance(1000);
    assert!(left > 0);
    assert_eq!(cluster.chunk_count(), 0);
}

#[test]
fn an_upload_outlives_its_owner() {
    let mut cluster = Cluster::new(7, "rs(3+2)");
    let value = noise(8, 700_000);
    let owner = cluster.owner_of("key");
    let writer = (0..7).find(|node| *node != owner.0).unwrap();
    cluster.put(writer, "key", &value).unwrap();
    let (token, upload) = cluster.begin_upload(writer, "key", 900_000, StoreMode::Set);
    cluster.settle();
    cluster.feed(writer, upload, &value, 0);
    cluster.kill(owner.0);
    cluster.advance(4000);
    assert!(cluster.read(writer, "key").unwrap() == value, "what was committed is what is read");
    let whole = [value, noise(9, 200_000)].concat();
    cluster.feed(writer, upload, &whole, 700_000);
    cluster.advance(1000);
    let stored = cluster.answers.get(&token);
    assert!(matches!(stored, Some(Outcome::Stored(_))), "{stored:?}");
    assert!(cluster.read(writer, "key").unwrap() == whole);
    cluster.advance(130_000);
    assert_eq!(cluster.tentative_bytes(), 0, "whoever has chunks under the old name has asked");
    assert!(cluster.read(writer, "key").unwrap() == whole);
    // Under its new name it is as well protected as anything.
    let other = (0..7).find(|node| ![owner.0, writer].contains(node)).unwrap();
    cluster.kill(other);
    cluster.advance(100);
    assert!(cluster.read(writer, "key").unwrap() == whole);
}

#[test]
fn an_upload_outlives_one_owner_after_another_and_leaves_nothing_when_it_is_given_up() {
    let mut cluster = Cluster::new(9, "rs(3+2)");
    let value = noise(12, 900_000);
    let writer = (0..9).find(|node| NodeId(*node) != cluster.owner_of("key")).unwrap();
    let (token, upload) = cluster.begin_upload(writer, "key", value.len(), StoreMode::Set);
    cluster.settle();
    let mut fed = 0;
    for part in [300_000, 600_000] {
        fed = cluster.feed(writer, upload, &value[..part], fed);
        let owner = cluster.owner_of("key");
        if owner != NodeId(writer) {
            cluster.kill(owner.0);
        }
        cluster.advance(6000);
    }
    assert_eq!(cluster.answers.get(&token), None);
    let now = cluster.clocks(NodeId(writer));
    cluster.hosts.get_mut(&NodeId(writer)).unwrap().streams(now).abandon_upload(upload);
    cluster.settle();
    assert!(cluster.chunk_count() > 0);
    cluster.advance(160_000);
    assert_eq!(cluster.chunk_count(), 0, "whoever has chunks under any of the names has asked");
}

#[test]
fn who_takes_nothing_is_given_one_window_and_goes_on_where_he_stood() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let value = noise(11, 8_000_000);
    cluster.put(0, "key", &value).unwrap();
    let (token, gather) = cluster.begin_gather(3, "key", 0..u64::MAX);
    cluster.settle();
    // Longer than any request may take.
    cluster.advance(20_000);
    let given = cluster.parts[&token].0.len();
    assert!(given > 0 && given <= proto::Limits::default().gather_bytes, "{given}");
    assert!(cluster.read_on(3, token, gather).unwrap() == value);
}

#[test]
fn slow_readers_share_a_part_of_the_memory_however_many_they_are() {
    let store = StoreConfig { cluster: ClusterId(7), area_limit_bytes: 1 << 20, eviction: Eviction::None };
    let mut cluster = Cluster::with_memory(5, "rs(3+2)", &store, |_| Budget::new(64 << 20));
    let value = noise(1, 3_000_000);
    cluster.put(0, "key", &value).unwrap();
    let reads: Vec<_> = (0..40).map(|_| cluster.begin_gather(2, "key", 0..u64::MAX)).collect();
    cluster.settle();
    cluster.advance(100);
    let held = cluster.hosts[&NodeId(2)].stats().objects.buffer_bytes;
    // An eighth of it, and a row of each. At two MiB each it would be 80 MiB.
    let most = (8 << 20) + 40 * 3 * u64::from(CHUNK_LEN);
    assert!((1..=most).contains(&held), "{held} bytes, {most} at most");
    for (token, gather) in reads {
        assert!(cluster.read_on(2, token, gather).unwrap() == value);
    }
}

/// Five nodes of rs(3+2) that have room for few long values.
fn small(eviction: Eviction) -> Cluster {
    let store = StoreConfig { cluster: ClusterId(7), area_limit_bytes: 1 << 20, eviction };
    Cluster::with_memory(5, "rs(3+2)", &store, |_| Budget::new(16 << 20))
}

#[test]
fn values_that_find_no_room_in_any_group_leave_nothing() {
    let store = StoreConfig { cluster: ClusterId(7), area_limit_bytes: 1 << 20, eviction: Eviction::None };
    // Groups have some of the nodes each: a value that finds no room goes from one to another.
    let budget = |node: u16| Budget::new(u64::from(12 + 2 * node) << 20);
    let mut cluster = Cluster::with_memory(8, "rs(3+2)", &store, budget);
    let mut refused = 0;
    for number in 0..400u64 {
        let len = 20_000 + (number as usize * 37_777) % 400_000;
        let stored = cluster.put(number as u16 % 5, &format!("key-{number}"), &noise(number, len));
        if stored == Some(Outcome::Failed(Failure::OutOfMemory)) {
            refused += 1;
            cluster.advance(1_000);
            assert_eq!(cluster.tentative_bytes(), 0, "after {number}, of {len} bytes");
        }
        if refused == 40 {
            return;
        }
    }
    panic!("{refused} were refused");
}

#[test]
fn cold_values_make_way_for_new_ones_and_what_is_read_stays() {
    let mut cluster = small(Eviction::Clock);
    let value = |number: u64| noise(number, 900_000);
    for number in 0..100 {
        cluster.now.unix.0 += 10;
        let stored = cluster.put((number % 5) as u16, &format!("key-{number}"), &value(number));
        assert!(matches!(stored, Some(Outcome::Stored(_))), "{number}: {stored:?}");
        cluster.advance(100);
        assert_eq!(cluster.read(1, "key-0"), Ok(value(0)), "after {number}");
    }
    let left = (0..100).filter(|number| cluster.object(0, &format!("key-{number}")).is_some()).count();
    assert!((20..60).contains(&left), "{left} of 100 values are left");
    assert_eq!(cluster.read(2, "key-99"), Ok(value(99)));
    // Short values have room of their own.
    for number in 0..100 {
        let stored = cluster.set(0, &format!("short-{number}"), b"value");
        assert!(matches!(stored, Some(Outcome::Stored(_))), "{number}: {stored:?}");
    }
}

#[test]
fn long_chunks_wait_until_there_is_room_for_all_of_their_cells() {
    let mut cluster = small(Eviction::Clock);
    let value = |number: u64| noise(number, 4_000_000);
    for number in 0..30 {
        cluster.now.unix.0 += 10;
        let (node, key) = ((number % 5) as u16, format!("key-{number}"));
        let (token, upload) = cluster.begin_upload_of(node, &key, (4_000_000, 1 << 20), StoreMode::Set);
        cluster.settle();
        let mut at = 0;
        for _ in 0..1_000 {
            at = cluster.feed(node, upload, &value(number), at);
            if cluster.answers.contains_key(&token) {
                break;
            }
            cluster.advance(100);
        }
        let stored = cluster.answers.get(&token).cloned();
        assert!(matches!(stored, Some(Outcome::Stored(_))), "{number}: {stored:?}");
        assert!(cluster.read(2, &key) == Ok(value(number)), "{number}");
        // Holders hear that it is committed.
        cluster.advance(100);
    }
}

#[test]
fn where_nothing_may_be_evicted_a_full_node_refuses_at_once() {
    let mut cluster = small(Eviction::None);
    let mut stored = 0;
    loop {
        let outcome = cluster.put(0, &format!("key-{stored}"), &noise(stored, 900_000));
        if outcome == Some(Outcome::Failed(Failure::OutOfMemory)) {
            break;
        }
        assert!(matches!(outcome, Some(Outcome::Stored(_))), "{outcome:?}");
        stored += 1;
    }
    assert!(stored >= 20, "{stored} values fit");
    for number in 0..stored {
        assert_eq!(cluster.read(1, &format!("key-{number}")), Ok(noise(number, 900_000)));
    }
    // Room that is made is of use.
    assert_eq!(cluster.run(2, super::starved::delete("key-3")), Some(Outcome::Deleted));
    cluster.advance(1_000);
    let outcome = cluster.put(0, "after", &noise(1, 900_000));
    assert!(matches!(outcome, Some(Outcome::Stored(_))), "{outcome:?}");
}

fn extension(mode: StoreMode, key: &str, piece: &[u8], compare: Option<u64>) -> Request {
    let store = Store { value: Bytes::copy_from_slice(piece), compare, flags: 9, ..store(mode) };
    Request::on(key_of(key), Op::Store(store))
}

#[test]
fn append_and_prepend_make_a_value_in_chunks_longer() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let mut value = noise(1, 1_500_000);
    cluster.put(0, "key", &value).unwrap();
    for (node, mode, piece) in [
        (1, StoreMode::Append, noise(2, 100_000)),
        (2, StoreMode::Prepend, noise(3, 300_000)),
        (3, StoreMode::Append, Vec::new()),
        (4, StoreMode::Append, b"x".to_vec()),
    ] {
        let outcome = cluster.run(node, extension(mode, "key", &piece, None));
        let Some(Outcome::Stored(view)) = outcome else { panic!("{outcome:?}") };
        value = if mode == StoreMode::Append { [value, piece].concat() } else { [piece, value].concat() };
        assert_eq!((view.value_len, view.flags), (value.len() as u64, 5), "the flags stay");
        assert!(cluster.read(node, "key").unwrap() == value);
    }
    let version = match cluster.run(0, get("key")) {
        Some(Outcome::Hit(view)) => view.version,
        other => panic!("{other:?}"),
    };
    let other = Some(version + 1);
    assert_eq!(cluster.run(0, extension(StoreMode::Append, "key", b"y", other)), Some(Outcome::Exists));
    assert_eq!(cluster.run(0, extension(StoreMode::Append, "none", b"y", None)), Some(Outcome::NotStored));
    let stored = cluster.run(1, extension(StoreMode::Append, "key", b"y", Some(version)));
    assert!(matches!(stored, Some(Outcome::Stored(_))), "{stored:?}");
    value.push(b'y');
    assert!(cluster.read(2, "key").unwrap() == value);
    cluster.advance(100);
    assert_eq!((cluster.tentative_bytes(), cluster.chunk_count() % 5), (0, 0));
}

/// Values of which only one can be stored: tentative bytes, and chunks, once that is known to all.
fn left_of_refused(rules: Rules) -> (u64, usize) {
    let mut cluster = Cluster::of(5, "rs(3+2)", &Setup { rules, ..Setup::default() });
    let value = noise(1, 400_000);
    let uploads: Vec<_> =
        (0..5).map(|node| cluster.begin_upload(node, "key", value.len(), StoreMode::Add)).collect();
    cluster.settle();
    for (node, (_, upload)) in uploads.iter().enumerate() {
        cluster.feed(node as u16, *upload, &value, 0);
    }
    let stored = uploads.iter().map(|(token, _)| cluster.answers[token].clone());
    assert_eq!(stored.filter(|outcome| *outcome == Outcome::NotStored).count(), 4);
    cluster.advance(500);
    (cluster.tentative_bytes(), cluster.chunk_count())
}

#[test]
fn chunks_of_values_that_are_not_stored_go_at_once() {
    assert_eq!(left_of_refused(Rules::all()), (0, 15));
}

#[test]
#[cfg(feature = "planted-bugs")]
fn chunks_that_wait_to_be_asked_about_are_seen() {
    let (tentative, chunks) = left_of_refused(Rules::without(proto::Bug::RefusedValueStays));
    assert!(tentative > 4 * 400_000 && chunks == 75, "{tentative} bytes in {chunks} chunks");
}

fn all_who_append_at_once_do(extensions: usize) {
    let mut cluster = Cluster::with_limits(5, Limits { extensions, ..Limits::default() });
    let value = noise(1, 400_000);
    cluster.put(0, "key", &value).unwrap();
    let mut tokens = Vec::new();
    for node in 0..4 {
        let (token, now) = (cluster.token(), cluster.clocks(NodeId(node)));
        let request = extension(StoreMode::Append, "key", &[b'a' + node as u8], None);
        let host = cluster.hosts.get_mut(&NodeId(node)).unwrap();
        let place = host.locate(request.key_bytes());
        assert_eq!(host.submit(now, token, place, request), Submitted::Pending);
        tokens.push(token);
    }
    // One after the other: whoever came second would have written it in vain.
    while cluster.deliver() {
        let uploads = cluster.hosts.values().map(|host| host.stats().objects.uploads).sum::<u64>();
        assert!(uploads <= 1, "{uploads} at once");
    }
    cluster.advance(1_000);
    for token in tokens {
        assert!(matches!(cluster.answers.get(&token), Some(Outcome::Stored(_))), "{:?}", cluster.answers);
    }
    let mut end = cluster.read(1, "key").unwrap().split_off(value.len());
    end.sort_unstable();
    assert_eq!(end, b"abcd");
}

#[test]
fn of_those_who_append_at_once_none_is_lost() {
    all_who_append_at_once_do(Limits::default().extensions);
}

#[test]
fn of_those_who_append_in_turn_none_is_lost() {
    all_who_append_at_once_do(1);
}

#[test]
fn uploads_share_a_bound_and_all_come_to_their_end() {
    let limits = Limits { upload_bytes: 500_000, ..Limits::default() };
    let mut cluster = Cluster::with_limits(5, limits);
    let value = noise(1, 2_000_000);
    let mut uploads: Vec<(Token, UploadId, usize)> = (0..8)
        .map(|number| cluster.begin_upload(0, &format!("key-{number}"), value.len(), StoreMode::Set))
        .map(|(token, upload)| (token, upload, 0))
        .collect();
    cluster.settle();
    let mut rounds = 0;
    while uploads.iter().any(|(token, ..)| !cluster.answers.contains_key(token)) {
        for (_, upload, at) in &mut uploads {
            // A little of each in turn, as clients send.
            let now = cluster.clocks(NodeId(0));
            let host = cluster.hosts.get_mut(&NodeId(0)).unwrap();
            let wanted = host.streams(now).upload_wants(*upload).min(10_000).min(value.len() - *at);
            if wanted > 0 {
                host.streams(now).feed(*upload, Bytes::copy_from_slice(&value[*at..*at + wanted]));
                *at += wanted;
            }
            let held = cluster.hosts[&NodeId(0)].stats().objects.buffer_bytes;
            // The first may hold two stripes whatever the others have.
            assert!(held < 500_000 + 2 * 5 * 70_000, "{held} bytes are held");
        }
        cluster.settle();
        rounds += 1;
        assert!(rounds < 10_000, "they come to an end");
    }
    for number in 0..8 {
        assert!(cluster.read(3, &format!("key-{number}")).unwrap() == value);
    }
}

#[test]
fn no_longer_value_comes_of_an_append_than_there_may_be() {
    let mut cluster = Cluster::with_limits(5, Limits { value_bytes: 400_000, ..Limits::default() });
    let mut value = noise(1, 399_999);
    cluster.put(0, "key", &value).unwrap();
    for mode in [StoreMode::Append, StoreMode::Prepend] {
        let refused = Some(Outcome::Failed(Failure::TooLarge));
        assert_eq!(cluster.run(1, extension(mode, "key", b"xy", None)), refused);
    }
    let stored = cluster.run(1, extension(StoreMode::Append, "key", b"x", None));
    assert!(matches!(stored, Some(Outcome::Stored(_))), "{stored:?}");
    value.push(b'x');
    assert!(cluster.read(2, "key").unwrap() == value);
    cluster.advance(100);
    let left = |host: &proto::Host| {
        let stats = host.stats().objects;
        stats.pins + stats.open_ids + stats.uploads + stats.gathers + stats.buffer_bytes
    };
    assert_eq!(cluster.hosts.values().map(left).sum::<u64>(), 0, "nothing is left of what was refused");
}

/// A cluster whose uploads have next to no memory, of which on each node one that was the first takes all, and the first of them on node 0
/// that has to wait.
fn with_one_upload_a_node(value: &[u8]) -> (Cluster, Vec<(Token, UploadId)>, (Token, UploadId)) {
    let mut cluster = Cluster::with_limits(5, Limits { upload_bytes: 1, ..Limits::default() });
    cluster.put(0, "key", value).unwrap();
    let first = (0..5)
        .map(|node| cluster.begin_upload(node, &format!("first-{node}"), value.len(), StoreMode::Set))
        .collect();
    cluster.settle();
    let waiting = cluster.begin_upload(0, "waiting", value.len(), StoreMode::Set);
    cluster.settle();
    assert_eq!(cluster.feed(0, waiting.1, value, 0), 0, "there is no room");
    (cluster, first, waiting)
}

#[test]
fn who_waits_for_memory_in_vain_is_told_so_and_the_first_goes_on() {
    let value = noise(1, 500_000);
    let (mut cluster, slow, (waiting, _)) = with_one_upload_a_node(&value);
    let owner = cluster.owner_of("key").0;
    let longer = cluster.begin(owner, extension(StoreMode::Append, "key", b"x", None));
    let mut at = 0;
    for _ in 0..=proto::Timing::default().request_deadline_us / 1_000_000 {
        for (node, (_, upload)) in (0..).zip(&slow) {
            // They send little, but something.
            cluster.feed_some(node, *upload, &value[at..at + 1000]);
        }
        at += 1000;
        cluster.advance(1_000);
    }
    let failed = Some(&Outcome::Failed(Failure::OutOfMemory));
    assert_eq!((cluster.answers.get(&waiting), cluster.answers.get(&longer)), (failed, failed));
    for (node, (token, upload)) in (0..).zip(slow) {
        assert_eq!(cluster.feed(node, upload, &value, at), value.len());
        assert!(matches!(cluster.answers.get(&token), Some(Outcome::Stored(_))), "{:?}", cluster.answers);
    }
    assert!(cluster.read(3, "key").unwrap() == value);
}

#[test]
fn who_sends_nothing_makes_way_for_those_who_wait_for_memory() {
    let value = noise(1, 500_000);
    let (mut cluster, still, (waiting, upload)) = with_one_upload_a_node(&value);
    cluster.feed_some(0, still[0].1, &value[..1000]);
    cluster.advance(proto::Timing::default().request_deadline_us / 1_000 * 3 / 4);
    let failed = Some(&Outcome::Failed(Failure::OutOfMemory));
    assert_eq!(cluster.answers.get(&still[0].0), failed, "others have waited for it");
    assert_eq!(cluster.answers.get(&still[1].0), None, "nobody waits there");
    assert_eq!(cluster.feed(0, upload, &value, 0), value.len());
    assert!(matches!(cluster.answers.get(&waiting), Some(Outcome::Stored(_))), "{:?}", cluster.answers);
    assert!(cluster.read(3, "waiting").unwrap() == value);
}

#[test]
fn a_value_that_a_holder_does_not_take_fails_and_waits_for_nobody_for_ever() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let (old, new) = (noise(6, 500_000), noise(7, 500_000));
    cluster.put(0, "key", &old).unwrap();
    let owner = cluster.owner_of("key").0;
    let silent = (1..5).find(|node| *node != owner).unwrap();
    let host = cluster.hosts.remove(&NodeId(silent)).unwrap();
    let (token, upload) = cluster.begin_upload(0, "key", new.len(), StoreMode::Set);
    cluster.settle();
    assert!(cluster.feed(0, upload, &new, 0) > 0);
    // The coordinator hears of the holder, and so leaves the view as it is.
    let map = cluster.hosts[&NodeId(0)].map().unwrap().version;
    let pass = |cluster: &mut Cluster, ms: u64| {
        for _ in 0..ms / 100 {
            let heartbeat =
                ToCoordinator::Heartbeat { host: host_id(silent), map, load: NodeLoad::default() };
            cluster.coordinator.handle(cluster.now, host_id(silent), heartbeat);
            cluster.advance(100);
        }
    };
    let deadline_ms = proto::Timing::default().request_deadline_us / 1_000;
    pass(&mut cluster, deadline_ms);
    assert_eq!(cluster.answers.get(&token), None, "what was lost on its way is put once more");
    pass(&mut cluster, 2 * deadline_ms);
    assert_eq!(cluster.answers.get(&token), Some(&Outcome::Failed(Failure::Unavailable)));
    cluster.hosts.insert(NodeId(silent), host);
    assert!(cluster.read(0, "key").unwrap() == old);
    cluster.advance(125_000);
    assert_eq!(cluster.tentative_bytes(), 0);
}

#[test]
fn who_is_slower_than_usual_is_not_waited_for() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    let value = noise(8, 500_000);
    cluster.put(0, "key", &value).unwrap();
    // Before that nothing is usual, and what reads cost nothing can be spent besides.
    for _ in 0..20 {
        assert!(cluster.read(0, "key").unwrap() == value);
    }
    let hedged = |cluster: &Cluster| cluster.hosts[&NodeId(0)].stats().objects.hedged_cells;
    assert_eq!(hedged(&cluster), 0);
    let owner = cluster.owner_of("key").0;
    let silent = (1..5).filter(|node| *node != owner).find(|node| {
        // One of those that have data: parities are not asked.
        let chunks = cluster.hosts[&NodeId(*node)].chunks();
        chunks.into_iter().any(|(member, chunks)| chunks.count() > 0 && member.role.0 < 3)
    });
    cluster.hosts.remove(&NodeId(silent.unwrap())).unwrap();
    let (token, _) = cluster.begin_gather(0, "key", 0..u64::MAX);
    cluster.settle();
    assert!(!cluster.parts.get(&token).is_some_and(|(_, whole)| *whole));
    let patience_ms = proto::Timing::default().hedge_us / 1_000;
    cluster.advance(patience_ms / 4);
    assert!(cluster.parts.get(&token).is_some_and(|(bytes, whole)| *whole && *bytes == value));
    assert!(hedged(&cluster) > 0);
}

#[test]
fn what_a_fill_reads_is_no_warmer_for_it() {
    // Chunk by chunk, as without memory for graphs.
    let mut cluster = Cluster::with_limits(6, Limits { graph_bytes: 0, ..Limits::default() });
    let value = noise(9, 500_000);
    cluster.put(0, "key", &value).unwrap();
    cluster.advance(100);
    let put_at = cluster.now.unix;
    cluster.now.unix = types::UnixSeconds(put_at.0 + 1_000);
    let warm = |cluster: &Cluster| {
        let all = cluster.hosts.values().flat_map(|host| host.chunks());
        let entries = all.flat_map(|(_, chunks)| chunks.list_after(None, usize::MAX).collect::<Vec<_>>());
        entries.filter(|(_, entry)| entry.last_access() > put_at).count()
    };
    let all = cluster.chunk_count();
    let count = |host: &proto::Host| host.chunks().map(|(_, chunks)| chunks.count()).sum::<usize>();
    let (node, lost) = cluster
        .hosts
        .iter()
        .map(|(node, host)| (node.0, count(host)))
        .find(|(node, count)| *node != 0 && *count > 0)
        .unwrap();
    cluster.kill(node);
    cluster.advance(10_000);
    assert_eq!((cluster.chunk_count(), warm(&cluster)), (all, lost), "those that were made anew");
    assert!(cluster.read(0, "key").unwrap() == value);
    assert!(warm(&cluster) > lost, "what a client reads is");
}

#[test]
fn chunks_that_are_got_from_others_keep_to_a_pause_and_a_rate() {
    let mut cluster = Cluster::with_limits(6, Limits { graph_bytes: 0, ..Limits::default() });
    let value = noise(9, 4_000_000);
    cluster.put(0, "key", &value).unwrap();
    cluster.advance(100);
    let lacking = |cluster: &Cluster| {
        cluster.hosts.values().map(|host| host.stats().objects.lacking_chunks).sum::<u64>()
    };
    let order = |cluster: &mut Cluster, command| {
        let request = AdminRequest { expect: None, command };
        cluster.coordinator.administer(cluster.now, &request).unwrap();
        cluster.settle();
    };
    let limit = |rate| AdminCommand::LimitRepair { bytes_per_second: Some(rate), memory_bytes: None };
    order(&mut cluster, AdminCommand::PauseRepair);
    let all = cluster.chunk_count();
    let has_chunks = |host: &proto::Host| host.chunks().any(|(_, chunks)| chunks.count() > 0);
    let lost = cluster.hosts.iter().find(|(node, host)| node.0 != 0 && has_chunks(host));
    let lost = lost.map(|(node, _)| node.0).unwrap();
    cluster.kill(lost);
    cluster.advance(6_000);
    assert!(cluster.chunk_count() < all && lacking(&cluster) > 0, "it waits");
    assert!(cluster.read(0, "key").unwrap() == value);
    order(&mut cluster, limit(32 << 10));
    order(&mut cluster, AdminCommand::ResumeRepair);
    cluster.advance(1_000);
    assert!(cluster.chunk_count() < all, "each node gets half a chunk a second");
    order(&mut cluster, limit(0));
    cluster.advance(2_000);
    assert_eq!((cluster.chunk_count(), lacking(&cluster)), (all, 0));
}
