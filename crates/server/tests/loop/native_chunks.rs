//! Clients of the native protocol that read and put chunks themselves, and do not keep to it.

use std::time::Duration;

use bytes::Bytes;
use native::{
    Answer, Ask, BeginAsk, BegunChunks, Cells, Code, CommitAsk, FetchAsk, FoundChunks, FromClient,
    FromServer, GetAsk, MAX_PUTS, Piece, PutAsk, Reason, UnpinAsk, Window, Written,
};
use proto::Timing;
use server::ConnectionLimits;
use types::op::StoreMode;
use types::{ChunkId, GroupId, MemberId, RoleIndex, Stripe, checksum, checksum_combine};

use crate::harness::{Cluster, Plan, eventually, http_get};
use crate::native::{Native, noise, stripe};

/// Length of a value that lies in chunks of several rows.
const LEN: u64 = 400_000;

/// A cluster in which what nobody commits is soon asked about.
fn cluster(limits: ConnectionLimits) -> Cluster {
    let timing = Timing { object_deadline_us: 2_000_000, ask_us: 3_000_000, ..Plan::default().timing };
    let plan = Plan { timing, ..Plan::default() };
    let cluster = Cluster::of(&plan, |config| {
        config.memory_bytes = 256 << 20;
        config.limits = limits;
    });
    stripe(&cluster);
    cluster
}

fn begin(client: &mut Native, key: &str) -> BegunChunks {
    let begin = BeginAsk { mode: StoreMode::Set, compare: None, len: LEN };
    eventually("begun", || match client.call(key, Ask::Begin(begin)) {
        Answer::Begun(begun) => Ok(*begun),
        other => {
            // Who writes through a node opens the group for chunks.
            client.put(key, &noise(8, LEN as usize));
            client.code(key, Ask::Delete { compare: None });
            Err(format!("{other:?}"))
        }
    })
}

fn found(client: &mut Native, key: &str) -> FoundChunks {
    match client.call(key, Ask::Get(GetAsk { direct: true, window: 1 << 20, ..GetAsk::default() })) {
        Answer::Chunks(found) => *found,
        other => panic!("no chunks but {other:?}"),
    }
}

/// A chunk of the first stripe for data role 0, which says what its cells are, and the node where it belongs.
fn chunk(begun: &BegunChunks, seed: u64) -> (PutAsk, Vec<Bytes>, usize) {
    let chunks = &begun.chunks;
    let stripe: Stripe = chunks.geometry.stripe(0).expect("a stripe");
    let group = chunks.holders_of(0).expect("a group");
    let cells: Vec<Bytes> =
        (0..stripe.rows).map(|row| noise(seed + u64::from(row), stripe.cell_len as usize).into()).collect();
    let sums: Vec<u32> = cells.iter().map(|cell| checksum(cell)).collect();
    let sum = sums.iter().fold(0, |sum, next| checksum_combine(sum, *next, stripe.cell_len as usize));
    let mut trailer = vec![7; chunks.code.n()];
    trailer[0] = sum;
    let put = PutAsk {
        member: MemberId { group: group.group, role: RoleIndex(0) },
        view: group.view,
        chunk: ChunkId { object: chunks.object, stripe: 0 },
        geometry: chunks.geometry,
        checksums: sums,
        trailer,
    };
    (put, cells, usize::from(group.roles[0].whole.expect("a holder").0))
}

fn announce(client: &mut Native, key: &str, put: &PutAsk) -> u64 {
    client.ask(key, Ask::Put(Box::new(put.clone())))
}

/// What a chunk with these cells is answered with.
fn put(client: &mut Native, key: &str, put: &PutAsk, cells: &[Bytes]) -> Code {
    let id = announce(client, key, put);
    cells.iter().for_each(|cell| client.say(&FromClient::Piece(Piece { id, bytes: cell.clone() })));
    client.answer(id).code()
}

fn written(begun: &BegunChunks) -> Written {
    let chunks = &begun.chunks;
    Written { object: chunks.object, geometry: chunks.geometry, groups: chunks.groups.clone() }
}

fn commit(written: Written) -> Ask {
    let (checksum, mode, flags, ttl, compare) = (1, StoreMode::Set, 0, 0, None);
    Ask::Commit(Box::new(CommitAsk { written, checksum, mode, flags, ttl, compare }))
}

/// Nothing is left of what was begun and not committed.
pub(crate) fn nothing_is_left(cluster: &Cluster) {
    let gauges = ["tentative_bytes", "arriving_bytes", "open_ids", "deposits", "pins"];
    eventually("nothing is left", || {
        for node in &cluster.nodes {
            let (_, page) = http_get(node.addresses().http, "/metrics");
            for gauge in gauges {
                let line = format!("\ngestalt_object_{gauge} 0\n");
                if !page.contains(&line) {
                    return Err(format!("{gauge}: {page}"));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_chunk_is_kept_where_it_belongs_as_its_checksums_say_and_once() {
    let cluster = cluster(ConnectionLimits::default());
    let (mut client, _) = Native::connect(&cluster, 1);
    let begun = begin(&mut client, "film");
    let (ask, cells, node) = chunk(&begun, 1);
    let (mut holder, _) = Native::connect(&cluster, node);
    assert_eq!(put(&mut holder, "film", &ask, &cells), Code::Placed);
    assert_eq!(put(&mut holder, "film", &ask, &cells), Code::Placed, "the same once more");
    let (other, cells_of_other, _) = chunk(&begun, 100);
    assert_eq!(
        put(&mut holder, "film", &other, &cells_of_other),
        Code::Corrupt,
        "another one under its name"
    );
    let wrong = |change: &dyn Fn(&mut PutAsk)| {
        let mut ask = ask.clone();
        ask.chunk.object.salt += 1;
        change(&mut ask);
        ask
    };
    let elsewhere = |holder: &mut Native, change: &dyn Fn(&mut PutAsk)| {
        let ask = wrong(change);
        let id = announce(holder, "film", &ask);
        holder.answer(id).code()
    };
    assert_eq!(elsewhere(&mut holder, &|ask| ask.view = ask.view.next()), Code::Moved);
    assert_eq!(elsewhere(&mut holder, &|ask| ask.member.group = GroupId(1000)), Code::Moved);
    assert_eq!(elsewhere(&mut holder, &|ask| ask.member.role = RoleIndex(40)), Code::Moved);
    assert_eq!(elsewhere(&mut holder, &|ask| ask.chunk.object.owner.role = RoleIndex(4)), Code::Moved);
    let wider = |ask: &mut PutAsk| {
        ask.geometry.k = 4;
        ask.checksums.truncate(2);
    };
    assert_eq!(elsewhere(&mut holder, &wider), Code::Moved);
    assert_eq!(elsewhere(&mut holder, &|ask| ask.trailer = vec![1]), Code::Moved);
    let sums = wrong(&|ask| ask.checksums[0] += 1);
    assert_eq!(
        put(&mut holder, "film", &sums, &cells[..1]),
        Code::Corrupt,
        "another cell than was announced"
    );
    let trailer = wrong(&|ask| ask.trailer[0] += 1);
    assert_eq!(put(&mut holder, "film", &trailer, &cells), Code::Corrupt, "another chunk than was announced");
    let (mut nobody, _) = Native::connect(&cluster, (node + 1) % 5);
    let role = wrong(&|_| ());
    assert_eq!(put(&mut nobody, "film", &role, &cells), Code::Moved, "at a node that does not hold the role");
    // One without an owner's id is kept until its owner says that there is none.
    assert_eq!(put(&mut holder, "film", &wrong(&|_| ()), &cells), Code::Placed);
    let (mut liar, _) = Native::connect(&cluster, node);
    announce(&mut liar, "film", &wrong(&|ask| _ = ask.checksums.pop()));
    liar.expect_closing(Reason::Malformed);
    let id = announce(&mut holder, "film", &wrong(&|ask| ask.chunk.object.salt += 1));
    holder.say(&FromClient::Piece(Piece { id, bytes: cells[0].slice(1..) }));
    holder.expect_closing(Reason::TooManyBytes);
    nothing_is_left(&cluster);
}

#[test]
fn a_chunk_that_never_comes_keeps_nothing_and_nobody_waiting() {
    let limits = ConnectionLimits { half_sent: Duration::from_millis(500), ..Default::default() };
    let cluster = cluster(limits);
    let (mut client, _) = Native::connect(&cluster, 0);
    let begun = begin(&mut client, "film");
    let (ask, cells, node) = chunk(&begun, 1);
    let (mut holder, _) = Native::connect(&cluster, node);
    let many: Vec<u64> = (0..=MAX_PUTS).map(|_| announce(&mut holder, "film", &ask)).collect();
    assert_eq!(holder.answer(many[MAX_PUTS]).code(), Code::Busy);
    holder.say(&FromClient::Cancel(many[1]));
    assert_eq!(holder.answer(many[1]).code(), Code::Cancelled);
    holder.say(&FromClient::Piece(Piece { id: many[0], bytes: cells[0].clone() }));
    holder.say(&FromClient::Piece(Piece { id: many[1], bytes: cells[0].clone() }));
    assert_eq!(holder.code("film", Ask::Stat), Code::Miss);
    holder.expect_closing(Reason::HalfSent);
    nothing_is_left(&cluster);
}

#[test]
fn only_an_open_id_of_the_key_can_be_committed() {
    let cluster = cluster(ConnectionLimits::default());
    let (mut client, _) = Native::connect(&cluster, 2);
    let begun = begin(&mut client, "film");
    let mut other = written(&begun);
    other.object.salt += 1;
    assert_eq!(client.code("film", commit(other)), Code::NotOpen, "nobody has given it");
    let mut elsewhere = written(&begun);
    elsewhere.groups = vec![GroupId(1000)];
    assert_eq!(client.code("film", commit(elsewhere)), Code::NotDirect);
    let mut wider = written(&begun);
    wider.geometry.k = 2;
    assert_eq!(client.code("film", commit(wider)), Code::NotDirect);
    let mut owner = written(&begun);
    owner.object.owner.role = RoleIndex((owner.object.owner.role.0 + 1) % 3);
    assert_eq!(client.code("film", commit(owner)), Code::NotDirect);
    assert_eq!(client.code("film", Ask::Abandon(Box::new(written(&begun)))), Code::Noted);
    assert_eq!(client.code("film", commit(written(&begun))), Code::NotOpen, "it is not open any more");
    assert_eq!(client.code("film", Ask::Stat), Code::Miss);
    // Who commits what it has not put has a value that nobody can read, under its own key.
    let begun = begin(&mut client, "film");
    assert_eq!(client.code("film", commit(written(&begun))), Code::Stored);
    let (code, bytes) = client.read("film", None);
    assert!([Code::Lost, Code::Unavailable].contains(&code) && bytes.is_empty(), "{code:?}");
    assert_eq!(client.code("film", Ask::Delete { compare: None }), Code::Deleted);
    let short = BeginAsk { mode: StoreMode::Set, compare: None, len: 1000 };
    assert_eq!(client.code("film", Ask::Begin(short)), Code::NotDirect);
    let replace = BeginAsk { mode: StoreMode::Replace, compare: None, len: LEN };
    assert_eq!(client.code("film", Ask::Begin(replace)), Code::NotStored);
    nothing_is_left(&cluster);
}

#[test]
fn cells_are_there_for_who_knows_the_key_and_no_further_than_the_chunk() {
    let cluster = cluster(ConnectionLimits::default());
    let (mut client, _) = Native::connect(&cluster, 3);
    let value = noise(9, LEN as usize);
    assert_eq!(client.put("film", &value), Code::Stored);
    let found = found(&mut client, "film");
    let (stripe, group) = (found.chunks.geometry.stripe(0).unwrap(), found.chunks.holders_of(0).unwrap());
    let (mut holder, _) = Native::connect(&cluster, usize::from(group.roles[0].whole.unwrap().0));
    let fetch = FetchAsk {
        member: MemberId { group: group.group, role: RoleIndex(0) },
        chunk: ChunkId { object: found.chunks.object, stripe: 0 },
        first: 0,
        count: 1024,
        window: u32::MAX,
    };
    let id = holder.ask("film", Ask::Fetch(Box::new(fetch)));
    let Answer::Cells(Cells { cell_len, checksums }) = holder.answer(id) else { panic!("no cells") };
    assert_eq!((cell_len, checksums.len()), (stripe.cell_len, stripe.rows as usize));
    let (code, bytes) = holder.pieces(id, u64::from(cell_len) * u64::from(stripe.rows));
    assert_eq!(code, Code::Whole);
    assert!(bytes[..cell_len as usize] == value[..cell_len as usize]);
    let mut code = |key: &str, change: &dyn Fn(&mut FetchAsk)| {
        let mut fetch = fetch;
        change(&mut fetch);
        holder.code(key, Ask::Fetch(Box::new(fetch)))
    };
    assert_eq!(code("film", &|fetch| fetch.first = stripe.rows), Code::Miss);
    assert_eq!(code("film", &|fetch| fetch.chunk.stripe = 1), Code::Miss);
    assert_eq!(code("film", &|fetch| fetch.chunk.object.number += 1), Code::Miss);
    assert_eq!(code("film", &|fetch| fetch.member.group = GroupId(1000)), Code::Miss);
    assert_eq!(code("film", &|fetch| fetch.member.role = RoleIndex(50)), Code::Miss);
    assert_eq!(code("other", &|_| ()), Code::Miss, "the chunk is of another key");
    // Nothing is sent of a cell for which there is no window.
    let id = holder.ask("film", Ask::Fetch(Box::new(FetchAsk { window: 10, ..fetch })));
    holder.answer(id);
    assert_eq!(holder.code("film", Ask::Stat), Code::About);
    holder.say(&FromClient::Window(Window { id, bytes: cell_len }));
    assert!(matches!(holder.hear_of(id), FromServer::Piece(piece) if piece.bytes.len() == cell_len as usize));
    holder.say(&FromClient::Cancel(id));
    assert_eq!(holder.hear_of(id), FromServer::End(id, Code::Cancelled));
    let unpin = UnpinAsk { object: found.chunks.object, pin: found.pin.unwrap(), done: true };
    assert_eq!(client.code("film", Ask::Unpin(unpin)), Code::Noted);
    assert_eq!(client.code("film", Ask::Unpin(UnpinAsk { pin: 99, ..unpin })), Code::Noted, "nobody's");
    nothing_is_left(&cluster);
}
