//! Values in chunks, as clients send and read them: bit by bit, over real sockets.

use std::net::Shutdown;
use std::thread::park_timeout;
use std::time::Duration;

use proto::Timing;
use server::NodeConfig;

use crate::harness::{Client, Cluster, PATIENCE, Plan, eventually, http_get};
use crate::operators::order;

/// Longer values lie in chunks.
const ABOVE: usize = 64 << 10;
pub const MIB: usize = 1 << 20;

/// Bytes that are the same nowhere.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| word()).collect();
    bytes.truncate(len);
    bytes
}

fn striped(plan: &Plan) -> Cluster {
    striped_with(plan, 1 << 30)
}

/// A cluster that cuts long values of the default namespace into chunks, and takes those up to `max_value`.
fn striped_with(plan: &Plan, max_value: u64) -> Cluster {
    striped_as(plan, |config| config.limits.max_value_bytes = max_value)
}

/// The same, each node as `change` has it.
pub fn striped_as(plan: &Plan, change: impl Fn(&mut NodeConfig)) -> Cluster {
    let cluster = Cluster::of(plan, |config| {
        config.memory_bytes = 256 << 20;
        config.limits.max_value_bytes = 1 << 30;
        config.limits.half_sent = Duration::from_millis(500);
        change(config);
    });
    set_policy(&cluster, &format!(r#"{{"striped":{{"above":{ABOVE}}},"chunk_bytes":262144}}"#));
    // Each worker hears of it for itself.
    let value = noise(1, MIB);
    for node in (0..cluster.nodes.len()).flat_map(|node| vec![node; 2 * usize::from(plan.workers)]) {
        let client = &mut cluster.client(node);
        eventually("striped", || {
            put(client, "probe", &value);
            client.expect("STORED\r\n");
            client.send("me probe\r\n");
            let line = client.line();
            if line.contains(" chunk=262144 ") { Ok(()) } else { Err(line) }
        });
    }
    cluster
}

/// Changes the policy of the default namespace.
fn set_policy(cluster: &Cluster, change: &str) {
    let body =
        format!(r#"{{"command":{{"catalog":{{"set_policy":{{"name":"default","change":{change}}}}}}}}}"#);
    let (code, answer) = order(cluster.nodes[0].addresses().http, &body);
    assert_eq!(code, 200, "{answer}");
}

fn two_workers() -> Plan {
    Plan { workers: 2, groups: 10, ..Plan::default() }
}

fn set(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("set {key} 7 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

pub fn put(client: &mut Client, key: &str, value: &[u8]) {
    client.send(set(key, value));
}

/// The next thing that `client` hears must be this value.
#[track_caller]
fn expect_value(client: &mut Client, key: &str, value: &[u8]) {
    client.expect(format!("VALUE {key} 7 {}\r\n", value.len()));
    assert!(client.bytes(value.len()) == value, "{key} is another value");
    client.expect("\r\n");
}

#[track_caller]
pub fn expect_get(client: &mut Client, key: &str, value: &[u8]) {
    client.send(format!("get {key}\r\n"));
    expect_value(client, key, value);
    client.expect("END\r\n");
}

/// Sum over the nodes of what their pages say.
pub fn metric(cluster: &Cluster, name: &str) -> u64 {
    let of = |page: String| -> u64 {
        let lines = page.lines().filter_map(|line| line.strip_prefix(&format!("{name} ")));
        lines.map(|value| value.parse::<f64>().expect("a number") as u64).sum()
    };
    cluster.nodes.iter().map(|node| of(http_get(node.addresses().http, "/metrics").1)).sum()
}

fn wait_until_gone(cluster: &Cluster, names: &[impl AsRef<str>]) {
    eventually("gone", || {
        let left: Vec<String> = names
            .iter()
            .map(|name| name.as_ref())
            .map(|name| (name, metric(cluster, name)))
            .filter(|(_, value)| *value > 0)
            .map(|known| format!("{known:?}"))
            .collect();
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    });
}

fn values_of_every_length_come_back(plan: &Plan) {
    let cluster = striped(plan);
    let lens = [1, ABOVE, ABOVE + 1, 3 * ABOVE, MIB, 1_000_003, 3 * MIB + 5, 20 * MIB];
    for (at, len) in lens.into_iter().enumerate() {
        // Several keys of each, so that some are of groups of the other worker.
        for key in (0..3).map(|number| format!("key-{len}-{number}")) {
            let value = noise(at as u64, len);
            let client = &mut cluster.client(at % 5);
            put(client, &key, &value);
            client.expect("STORED\r\n");
            expect_get(client, &key, &value);
            expect_get(&mut cluster.client((at + 2) % 5), &key, &value);
            if len == 20 * MIB {
                client.ask(format!("delete {key}\r\n"), "DELETED\r\n");
            }
        }
    }
    wait_until_gone(&cluster, &["gestalt_object_uploads", "gestalt_object_gathers"]);
}

#[test]
fn values_of_every_length_come_back_byte_for_byte() {
    values_of_every_length_come_back(&Plan::default());
}

#[test]
fn values_come_back_across_workers() {
    values_of_every_length_come_back(&two_workers());
}

#[test]
fn every_storage_command_streams() {
    let cluster = striped(&Plan::default());
    let client = &mut cluster.client(1);
    let (one, two) = (noise(1, 200_000), noise(2, 300_000));
    let send = |client: &mut Client, head: &str, value: &[u8]| {
        client.send([head.as_bytes(), value, b"\r\n"].concat());
    };
    send(client, "replace k 7 0 200000\r\n", &one);
    client.expect("NOT_STORED\r\n");
    send(client, "add k 7 0 200000\r\n", &one);
    client.expect("STORED\r\n");
    send(client, "add k 7 0 300000\r\n", &two);
    client.ask("mn\r\n", "NOT_STORED\r\nMN\r\n");
    expect_get(client, "k", &one);
    send(client, "replace k 7 0 300000\r\n", &two);
    client.expect("STORED\r\n");
    client.send("gets k\r\n");
    let head = client.line();
    let version = head.strip_prefix("VALUE k 7 300000 ").expect("with its version").to_owned();
    assert!(client.bytes(300_000) == two);
    client.expect("\r\nEND\r\n");
    send(client, &format!("cas k 7 0 200000 {version}\r\n"), &one);
    client.expect("STORED\r\n");
    send(client, &format!("cas k 7 0 200000 {version}\r\n"), &one);
    client.expect("EXISTS\r\n");
    send(client, "set k 7 0 300000 noreply\r\n", &two);
    expect_get(client, "k", &two);
    send(client, "ms k 200000 F7 q\r\n", &one);
    send(client, "ms k 200000 ME s c\r\n", &two[..200_000]);
    client.send("mg k v s k Oxy\r\n");
    client.expect("NS s200000 c0\r\nVA 200000 s200000 kk Oxy\r\n");
    assert!(client.bytes(200_000) == one);
    client.expect("\r\n");
    client.ask("mg k s f\r\n", "HD s200000 f7\r\n");
    client.send("gat 100 k\r\n");
    expect_value(client, "k", &one);
    client.ask("touch k 0\r\nincr k 1\r\n", "END\r\nTOUCHED\r\n");
    client.expect("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    client.ask("delete k\r\nget k\r\nmg k v\r\n", "DELETED\r\nEND\r\nEN\r\n");
    client.expect_quiet();
}

/// What `mg` says with these flags behind the key.
fn meta(client: &mut Client, key: &str, flags: &str) -> String {
    client.send(format!("mg {key} {flags}\r\n"));
    client.line()
}

fn values_in_chunks_are_made_longer(plan: &Plan) {
    let cluster = striped(plan);
    // Several keys, so that some are of groups of the other worker, and most of other nodes.
    for (at, key) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let client = &mut cluster.client(at);
        let (mut value, piece) = (noise(1, 300_000), noise(2, 70_000));
        client.send([format!("set {key} 7 1000 300000\r\n").as_bytes(), &value, b"\r\n"].concat());
        client.expect("STORED\r\n");
        let version = meta(client, key, "c");
        // Neither the flags nor the expiry that come with it count.
        client.send([format!("append {key} 1 5 70000\r\n").as_bytes(), &piece, b"\r\n"].concat());
        client.expect("STORED\r\n");
        value.extend_from_slice(&piece);
        assert_ne!(meta(client, key, "c"), version, "{key} has a new version");
        expect_get(client, key, &value);
        client.ask(format!("prepend {key} 0 0 2\r\nab\r\n"), "STORED\r\n");
        client.send(format!("ms {key} 2 MA T1 s\r\nyz\r\nms {key} 1 MP q\r\n_\r\nmn\r\n"));
        client.expect("HD s370004\r\nMN\r\n");
        value = [b"_ab", &value[..], b"yz"].concat();
        expect_get(&mut cluster.client(at + 1), key, &value);
        let (head, left) = (meta(client, key, "s f"), meta(client, key, "t"));
        assert_eq!(head, "HD s370005 f7");
        let left: u32 = left.strip_prefix("HD t").and_then(|left| left.parse().ok()).expect("an expiry");
        assert!((900..=1000).contains(&left), "{left}");
        let version = meta(client, key, "c").strip_prefix("HD c").expect("a version").to_owned();
        client.ask(format!("ms {key} 1 MA C1\r\nx\r\n"), "EX\r\n");
        client.ask(format!("ms {key} 1 MA C{version}\r\nx\r\n"), "HD\r\n");
        value.push(b'x');
        expect_get(client, key, &value);
        client.ask(format!("append no-{key} 0 0 1\r\nx\r\n"), "NOT_STORED\r\n");
        client.ask(format!("ms no-{key} 1 MA N0\r\nx\r\nget no-{key}\r\n"), "HD\r\n");
        client.expect(format!("VALUE no-{key} 0 1\r\nx\r\nEND\r\n"));
        client.expect_quiet();
    }
    wait_until_gone(&cluster, &["uploads", "gathers", "pins"].map(|name| format!("gestalt_object_{name}")));
}

#[test]
fn values_in_chunks_are_made_longer_and_keep_flags_and_expiry() {
    values_in_chunks_are_made_longer(&Plan::default());
}

#[test]
fn values_in_chunks_are_made_longer_across_workers() {
    values_in_chunks_are_made_longer(&two_workers());
}

#[test]
fn what_would_grow_beyond_the_longest_value_stays_as_it_is() {
    let cluster = striped_with(&Plan::default(), 2 << 20);
    let client = &mut cluster.client(2);
    let mut value = noise(3, 2 * MIB - 1);
    put(client, "k", &value);
    client.expect("STORED\r\n");
    for command in ["append k 0 0 2", "prepend k 0 0 2", "ms k 2 MA", "ms k 2 MP"] {
        client.ask(format!("{command}\r\nxy\r\n"), "SERVER_ERROR object too large for cache\r\n");
    }
    expect_get(client, "k", &value);
    client.ask("append k 0 0 1\r\nx\r\n", "STORED\r\n");
    value.push(b'x');
    expect_get(client, "k", &value);
    client.ask("append k 0 0 1\r\nx\r\n", "SERVER_ERROR object too large for cache\r\n");
    wait_until_gone(&cluster, &["uploads", "gathers", "pins"].map(|name| format!("gestalt_object_{name}")));
}

#[test]
fn an_item_that_becomes_too_long_for_one_goes_into_chunks() {
    let cluster = striped(&Plan::default());
    let client = &mut cluster.client(0);
    client.ask("delete probe\r\n", "DELETED\r\n");
    let (piece, mut value) = (noise(4, ABOVE - 100), Vec::new());
    client.ask("set k 7 0 0\r\n\r\n", "STORED\r\n");
    while value.len() <= MIB {
        client.send([format!("append k 0 0 {}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat());
        client.expect("STORED\r\n");
        value.extend_from_slice(&piece);
    }
    expect_get(client, "k", &value);
    assert!(metric(&cluster, "gestalt_object_chunks") > 0);
}

#[test]
fn what_follows_a_streamed_value_is_answered_behind_it() {
    for plan in [Plan::default(), two_workers()] {
        let cluster = striped(&plan);
        let client = &mut cluster.client(0);
        let (one, two) = (noise(3, 500_000), noise(4, 2 * MIB));
        let commands = [
            &b"set small 7 0 3\r\nabc\r\n"[..],
            &set("one", &one),
            b"get small\r\n",
            &set("two", &two),
            b"get one nothing small two one\r\nmn\r\nset one 7 0 1\r\nx\r\nget one two\r\n",
        ];
        client.send(commands.concat());
        client.expect("STORED\r\nSTORED\r\nVALUE small 7 3\r\nabc\r\nEND\r\nSTORED\r\n");
        expect_value(client, "one", &one);
        expect_value(client, "small", b"abc");
        expect_value(client, "two", &two);
        expect_value(client, "one", &one);
        client.expect("END\r\nMN\r\nSTORED\r\n");
        expect_value(client, "one", b"x");
        expect_value(client, "two", &two);
        client.expect("END\r\n");
        client.expect_quiet();
    }
}

#[test]
fn a_value_with_a_wrong_end_is_not_stored() {
    // An id that comes when its upload is gone already stays open for so long.
    let timing = Timing { object_deadline_us: 2_000_000, ..Plan::default().timing };
    for plan in [Plan { timing, ..Plan::default() }, Plan { timing, ..two_workers() }] {
        let cluster = striped(&plan);
        let client = &mut cluster.client(2);
        for key in ["a", "b", "c"] {
            let value = noise(5, 300_000);
            put(client, key, b"before");
            client.expect("STORED\r\n");
            client.send([format!("set {key} 7 0 300000\r\n").as_bytes(), &value, b"xyget a\r\n"].concat());
            client.expect("CLIENT_ERROR bad data chunk\r\n");
            client.expect("VALUE a 7 6\r\nbefore\r\nEND\r\n");
            expect_get(client, key, b"before");
        }
        wait_until_gone(&cluster, &["gestalt_object_uploads", "gestalt_object_open_ids"]);
    }
}

#[test]
fn a_value_that_is_too_long_is_swallowed_as_ever() {
    let cluster = striped_with(&Plan::default(), 2 << 20);
    let client = &mut cluster.client(3);
    put(client, "long", b"before");
    client.expect("STORED\r\n");
    put(client, "long", &noise(6, 2 * MIB + 1));
    client.expect("SERVER_ERROR object too large for cache\r\n");
    // As memcached has it: no old value stays that its client believes overwritten.
    client.ask("get long\r\n", "END\r\n");
    put(client, "long", &noise(6, 2 * MIB));
    client.expect("STORED\r\n");
    client.send([&b"append long 0 0 2097153\r\n"[..], &noise(6, 2 * MIB + 1), b"\r\nmn\r\n"].concat());
    client.expect("SERVER_ERROR object too large for cache\r\nMN\r\n");
    client.expect_quiet();
}

#[test]
fn a_client_that_goes_in_the_middle_leaves_nothing() {
    let timing = Timing { object_deadline_us: 2_000_000, ask_us: 3_000_000, ..Plan::default().timing };
    for plan in [Plan { timing, ..Plan::default() }, Plan { timing, ..two_workers() }] {
        let cluster = striped(&plan);
        let value = noise(7, 3 * MIB);
        for key in ["a", "b", "c", "d"] {
            let client = &mut cluster.client(4);
            client.send(&set(key, &value)[..2 * MIB]);
        }
        let client = &mut cluster.client(4);
        client.send(&set("e", &value)[..2 * MIB]);
        client.stream.shutdown(Shutdown::Write).expect("a live connection");
        client.expect_closed();
        cluster.client(1).ask("delete probe\r\nget a b c d e\r\n", "DELETED\r\nEND\r\n");
        let names = ["uploads", "open_ids", "tentative_bytes", "arriving_bytes", "chunks", "buffer_bytes"];
        wait_until_gone(&cluster, &names.map(|name| format!("gestalt_object_{name}")));
    }
}

#[test]
fn a_client_that_stops_sending_is_closed_and_leaves_nothing() {
    let timing = Timing { object_deadline_us: 2_000_000, ..Plan::default().timing };
    let long = 10 * PATIENCE;
    let cluster = striped_as(&Plan { timing, ..Plan::default() }, |config| config.limits.half_sent = long);
    let client = &mut cluster.client(0);
    client.send(&set("k", &noise(8, MIB))[..300_000]);
    client.expect_closed();
    cluster.client(0).ask("get k\r\n", "END\r\n");
    wait_until_gone(&cluster, &["gestalt_object_uploads", "gestalt_object_open_ids"]);
}

#[test]
fn a_client_that_reads_slowly_gets_everything_and_holds_little() {
    for plan in [Plan::default(), two_workers()] {
        let cluster = striped(&plan);
        let value = noise(9, 24 * MIB);
        let client = &mut cluster.client(1);
        put(client, "slow", &value);
        client.expect("STORED\r\n");
        client.send("get slow\r\n");
        client.expect(format!("VALUE slow 7 {}\r\n", value.len()));
        for part in value.chunks(MIB) {
            park_timeout(Duration::from_millis(30));
            assert!(client.bytes(part.len()) == part);
            let held = metric(&cluster, "gestalt_object_buffer_bytes")
                + metric(&cluster, "gestalt_client_buffer_bytes");
            // A window of 2 MiB at the holders' links, at the gatherer and at the connection, and a full output. Where holders are
            // slow the parities' cells of the window come as well, and the two figures are of two moments: a window may be in both.
            assert!(held < 12 << 20, "{held} bytes are held");
        }
        client.expect("\r\nEND\r\n");
        client.expect_quiet();
    }
}

#[test]
fn a_reader_that_goes_leaves_nothing() {
    for plan in [Plan::default(), two_workers()] {
        let cluster = striped(&plan);
        let value = noise(10, 24 * MIB);
        put(&mut cluster.client(1), "k", &value);
        eventually("stored", || {
            let client = &mut cluster.client(1);
            client.send("mg k s\r\n");
            let line = client.line();
            if line == format!("HD s{}", value.len()) { Ok(()) } else { Err(line) }
        });
        for node in 0..5 {
            let client = &mut cluster.client(node);
            client.send("get k\r\n");
            client.bytes(1000);
        }
        wait_until_gone(&cluster, &["gestalt_object_gathers", "gestalt_object_pins"]);
    }
}

#[test]
fn values_lie_whole_where_a_namespace_says_so() {
    let cluster = Cluster::start();
    let client = &mut cluster.client(0);
    set_policy(&cluster, r#"{"striped":"never"}"#);
    eventually("refused", || {
        put(client, "k", &noise(11, MIB));
        let line = client.line();
        if line == "SERVER_ERROR object too large for cache" { Ok(()) } else { Err(line) }
    });
    client.ask("set k 0 0 4294967296\r\n", "CLIENT_ERROR bad command line format\r\n");
    client.expect_quiet();
}

#[test]
fn a_namespace_that_becomes_full_in_the_middle_of_a_value_takes_nothing_of_it() {
    const FULL: &str = "SERVER_ERROR out of memory storing object";
    let timing = Timing { object_deadline_us: 2_000_000, ask_us: 3_000_000, ..Plan::default().timing };
    for plan in [Plan { timing, ..Plan::default() }, Plan { timing, ..two_workers() }] {
        let cluster = striped(&plan);
        let client = &mut cluster.client(0);
        // Parities included: seven values of a MiB, and shares of nodes that may not be used up.
        set_policy(&cluster, r#"{"quota_bytes":12582912,"evict":"keep"}"#);
        let answer = |client: &mut Client, key: &str, len: usize| {
            put(client, key, &noise(len as u64, len));
            client.line()
        };
        // What is beyond all of it is refused whatever is free: so each worker is known to have heard of it.
        for key in ["a", "b", "c", "d", "e", "f"] {
            eventually("limited", || match answer(client, key, 8 * MIB) {
                line if line == FULL => Ok(()),
                line => Err(line),
            });
        }
        client.send("delete a\r\ndelete b\r\ndelete c\r\ndelete d\r\ndelete e\r\ndelete f\r\n");
        (0..6).for_each(|_| drop(client.line()));
        // What came before that brought its part of the share with it.
        eventually("shared out", || {
            match metric(&cluster, "gestalt_namespace_share_bytes{namespace=\"default\"}") {
                share if (1..=12_582_912 * 3 / 5).contains(&share) => Ok(()),
                share => Err(share.to_string()),
            }
        });
        let mut stored = 1_u64;
        eventually("full", || match answer(client, &format!("k{stored}"), MIB) {
            // Before the first one what was deleted may still be on its way out.
            line if line == FULL && stored > 1 => Ok(()),
            line => {
                stored += u64::from(line == "STORED");
                assert!(stored < 8, "{stored} values");
                Err(line)
            }
        });
        // Room for a stripe or two of it, and not for five.
        client.ask("delete k1\r\n", "DELETED\r\n");
        let names = ["uploads", "open_ids", "tentative_bytes", "arriving_bytes", "buffer_bytes"];
        let names = names.map(|name| format!("gestalt_object_{name}"));
        put(client, "long", b"short");
        client.expect("STORED\r\n");
        assert_eq!(answer(client, "long", 4 * MIB), FULL);
        wait_until_gone(&cluster, &names);
        // Two stripes of each value that is left.
        eventually("nothing of it is left", || match metric(&cluster, "gestalt_object_chunks") {
            chunks if chunks == 10 * (stored - 1) => Ok(()),
            chunks => Err(format!("{chunks} chunks of {} values", stored - 1)),
        });
        client.ask("get long\r\n", "VALUE long 7 5\r\nshort\r\nEND\r\n");
        client.send("flush_all\r\n");
        client.expect("OK\r\n");
        eventually("room", || match answer(client, "long", 4 * MIB) {
            line if line == "STORED" => Ok(()),
            line => Err(line),
        });
        expect_get(client, "long", &noise(4 << 20, 4 * MIB));
    }
}
