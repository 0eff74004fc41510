//! Reads at once: they say what the long way says, and leave to it what may take a record.

use proto::{QuickRead, Read};
use types::op::{Bump, Claim, Delete, ItemView};

use super::*;

/// As a client of the meta protocol asks.
fn claims(bump: Bump) -> Get {
    Get { claim: Claim::IfDue, bump, ..Get::default() }
}

impl Cluster {
    /// At once, by whoever has the key.
    fn read_at_once(&mut self, key: &str, get: &Get) -> (Read, Option<(ItemView, Vec<u8>)>) {
        let node = NodeId(self.primary_of(key));
        let now = self.clocks(node);
        let host = self.hosts.get_mut(&node).unwrap();
        let place = host.locate(key.as_bytes());
        let mut seen_here = None;
        let asked = QuickRead::of(key.as_bytes(), get).expect("it changes nothing");
        let read =
            host.read(now, place, asked, |seen| seen_here = Some((seen.view(), seen.item.value.to_vec())));
        (read, seen_here)
    }
}

#[test]
fn what_is_read_at_once_is_what_there_is_and_counts_as_read_unless_silently() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    cluster.set(0, "k", b"hello");
    let (read, seen) = cluster.read_at_once("k", &claims(Bump::Silent));
    let (view, value) = seen.unwrap();
    assert_eq!((read, &value[..], view.value_len, view.value.len()), (Read::Hit, &b"hello"[..], 5, 0));
    assert!(!view.fetched);
    let fetched = |cluster: &mut Cluster, bump| cluster.read_at_once("k", &claims(bump)).1.unwrap().0.fetched;
    assert!(!fetched(&mut cluster, Bump::Count), "a silent read leaves no trace");
    assert!(fetched(&mut cluster, Bump::Count));
    cluster.run(0, Request::on(key_of("k"), Op::Delete(Delete::default())));
    assert_eq!(cluster.read_at_once("k", &claims(Bump::Count)), (Read::Miss, None));
}

#[test]
fn of_a_stale_item_the_first_who_would_fetch_it_anew_is_told_by_a_record() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    cluster.set(0, "k", b"hello");
    let delete = Delete { invalidate: true, ..Delete::default() };
    cluster.run(0, Request::on(key_of("k"), Op::Delete(delete)));
    assert_eq!(cluster.read_at_once("k", &claims(Bump::Count)), (Read::Submit, None));
    let (read, seen) = cluster.read_at_once("k", &Get::default());
    assert!(read == Read::Hit && seen.unwrap().0.stale, "who claims nothing only reads");
    let win = |outcome: Option<Outcome>| match outcome {
        Some(Outcome::Hit(view)) => (view.win, view.win_sent, view.stale),
        other => panic!("{other:?}"),
    };
    let ask =
        |cluster: &mut Cluster| win(cluster.run(1, Request::on(key_of("k"), Op::Get(claims(Bump::Count)))));
    assert_eq!(ask(&mut cluster), (true, false, true));
    assert_eq!(ask(&mut cluster), (false, true, true));
}

#[test]
fn what_may_change_an_item_is_not_read_at_once() {
    let expiry = Some(Expiry::Never);
    for get in [
        Get { touch: expiry, ..Get::default() },
        Get { vivify: expiry, ..Get::default() },
        Get { recache_below_seconds: Some(5), ..Get::default() },
    ] {
        assert!(QuickRead::of(b"k", &get).is_none(), "{get:?}");
    }
}
