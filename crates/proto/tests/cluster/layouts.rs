//! Values in chunks by other layouts than `spread`: written, read whole and in part, decoded, filled and scrubbed.

use types::{MemberId, ObjectLayout, UnixSeconds};

use super::Cluster;
use super::objects::noise;

const LAYOUTS: [ObjectLayout; 2] = [ObjectLayout::Wide, ObjectLayout::Copy];
/// Some of one cell, one row, part of a row, several stripes.
const LENS: [usize; 7] = [1, 64, 1000, 196_608, 250_001, 1_000_003, 3_000_000];

fn cluster(nodes: u16, layout: ObjectLayout) -> Cluster {
    Cluster { layout, ..Cluster::new(nodes, "rs(3+2)") }
}

/// Values of all lengths, in chunks of up to four cells.
fn put_all(cluster: &mut Cluster) -> Vec<(String, Vec<u8>)> {
    let values: Vec<_> = LENS.iter().map(|len| (format!("key-{len}"), noise(*len as u64, *len))).collect();
    for (key, value) in &values {
        let stored = cluster.put_of(1, key, value, 4 << 16);
        assert!(matches!(stored, Some(types::op::Outcome::Stored(_))), "{key}: {stored:?}");
    }
    cluster.advance(200);
    values
}

fn has_all(cluster: &mut Cluster, values: &[(String, Vec<u8>)]) {
    for (key, value) in values {
        assert!(cluster.read(0, key).unwrap() == *value, "{key}");
    }
}

#[test]
fn a_value_comes_back_whole_and_in_part() {
    for layout in LAYOUTS {
        let mut cluster = cluster(5, layout);
        let values = put_all(&mut cluster);
        has_all(&mut cluster, &values);
        for (key, value) in &values {
            let len = value.len() as u64;
            for range in [0..1, len - 1..len, len / 3..len / 2 + 1, 65_535..65_537] {
                let range = range.start.min(len)..range.end.min(len);
                let part = cluster.read_part(2, key, range.clone()).unwrap();
                assert!(
                    part == value[range.start as usize..range.end as usize],
                    "{layout:?} {key} {range:?}"
                );
            }
        }
    }
}

#[test]
fn two_lost_nodes_are_decoded_and_their_chunks_come_back() {
    for layout in LAYOUTS {
        let mut cluster = cluster(7, layout);
        let values = put_all(&mut cluster);
        let all = cluster.chunk_count();
        cluster.kill(1);
        cluster.kill(3);
        cluster.advance(3_500);
        has_all(&mut cluster, &values);
        cluster.advance(8_000);
        assert_eq!(cluster.chunk_count(), all, "as many as before");
        // Two more: what was made is what the rest is made of now.
        cluster.kill(2);
        cluster.kill(4);
        cluster.advance(3_500);
        has_all(&mut cluster, &values);
    }
}

/// The roles whose chunks were read by clients since this time.
fn roles_read_since(cluster: &Cluster, since: UnixSeconds) -> Vec<u8> {
    let all = cluster.hosts.values().flat_map(|host| host.chunks());
    let of = |(member, chunks): (MemberId, &store::ChunkStore)| {
        let is_read = chunks.list_after(None, usize::MAX).any(|(_, entry)| entry.last_access() > since);
        is_read.then_some(member.role.0)
    };
    let mut roles: Vec<u8> = all.filter_map(of).collect();
    roles.sort_unstable();
    roles
}

#[test]
fn a_range_asks_only_those_who_keep_it() {
    for (layout, range, asked) in [
        // Each data role keeps 200,000 bytes and what rounding adds.
        (ObjectLayout::Wide, 10_000..190_000, vec![0]),
        (ObjectLayout::Wide, 190_000..250_000, vec![0, 1]),
        (ObjectLayout::Copy, 0..600_000, vec![0]),
        (ObjectLayout::Spread, 70_000..90_000, vec![1]),
        (ObjectLayout::Spread, 0..600_000, vec![0, 1, 2]),
    ] {
        let mut cluster = cluster(5, layout);
        let value = noise(5, 600_000);
        cluster.put_of(0, "key", &value, 4 << 16).unwrap();
        cluster.advance(200);
        let put_at = cluster.now.unix;
        cluster.now.unix = UnixSeconds(put_at.0 + 1_000);
        let part = cluster.read_part(0, "key", range.clone()).unwrap();
        assert!(part == value[range.start as usize..range.end as usize]);
        assert_eq!(roles_read_since(&cluster, put_at), asked, "{layout:?} {range:?}");
    }
}
