//! Wall clocks that differ from node to node, and that step: what was told expired stays expired.

use super::*;

/// The Unix second from which on the items of these stories cannot be read.
const EXPIRY: u32 = 1_000_010;

fn set_until(key: &str, expiry: u32) -> Request {
    let mut request = set(key, b"value");
    if let Op::Store(store) = &mut request.op {
        store.expiry = Expiry::At(UnixSeconds(expiry));
    }
    request
}

fn touch(key: &str) -> Request {
    let op = Op::Touch(Expiry::Never);
    Request {
        key: types::op::Key::new(Bytes::copy_from_slice(key.as_bytes())).ok(),
        op,
        once: None,
        via: None,
    }
}

impl Cluster {
    /// The node that serves `key`.
    pub(crate) fn primary_of(&self, key: &str) -> u16 {
        let map = self.coordinator.map().unwrap();
        let hash = types::KeyHash::of(map.cluster, key.as_bytes());
        map.primary_of(map.default_pool().member_of(hash)).unwrap().node.0
    }

    /// Two keys that expire, one that does not, and the node that serves all three, whose clock is then `ahead`. No time passes, so the
    /// search for expired items has not removed them.
    fn with_expiring(ahead: u32) -> (Self, [String; 2], u16) {
        let mut cluster = Self::new(5, "rs(3+2)");
        let node = cluster.primary_of("key");
        let names = (0..).map(|i| format!("key-{i}")).filter(|name| cluster.primary_of(name) == node);
        let keys: Vec<String> = names.take(2).collect();
        for key in &keys {
            cluster.run(node, set_until(key, EXPIRY)).unwrap();
        }
        cluster.set(node, "key", b"stays");
        cluster.ahead.insert(NodeId(node), ahead);
        (cluster, keys.try_into().unwrap(), node)
    }
}

#[test]
fn an_item_that_has_expired_does_not_come_back_at_a_stand_in_whose_clock_is_slower() {
    let (mut cluster, [read, touched], node) = Cluster::with_expiring(60);
    let other = (node + 1) % 5;
    assert_eq!(cluster.get(other, &read), None);
    assert_eq!(cluster.run(other, touch(&touched)), Some(Outcome::NotFound));
    cluster.kill(node);
    cluster.advance(3500);
    for key in [&read, &touched] {
        assert_eq!(cluster.get(other, key), None);
        assert_eq!(cluster.run(other, touch(key)), Some(Outcome::NotFound));
    }
    assert_eq!(cluster.get(other, "key"), Some(b"stays".to_vec()));
}

#[test]
fn an_item_that_has_expired_does_not_come_back_when_the_clock_steps_back() {
    let (mut cluster, [read, touched], node) = Cluster::with_expiring(60);
    assert_eq!(cluster.get(node, &read), None);
    cluster.ahead.clear();
    assert_eq!(cluster.get(node, &read), None);
    assert_eq!(cluster.run(node, touch(&touched)), Some(Outcome::NotFound));
    assert_eq!(cluster.get(node, "key"), Some(b"stays".to_vec()));
}

#[test]
fn an_item_is_expired_only_once_the_parities_know_the_second() {
    let (mut cluster, [key, _], node) = Cluster::with_expiring(0);
    assert_eq!(cluster.get(node, &key), Some(b"value".to_vec()));
    // A second passes; nothing has been sent since.
    cluster.now.unix = UnixSeconds(EXPIRY);
    let host = cluster.hosts.get_mut(&NodeId(node)).unwrap();
    let begun = host.submit(cluster.now, Token([1000, 0]), host.locate(key.as_bytes()), get(&key));
    assert_eq!(begun, Submitted::Pending, "it asks the parities first");
    cluster.settle();
    assert_eq!(cluster.answers.get(&Token([1000, 0])), Some(&Outcome::Miss), "one exchange is enough");
    assert_eq!(cluster.get(node, &key), None);
}
