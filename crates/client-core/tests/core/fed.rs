//! Values that are fed to a client that codes: stripe by stripe, as their bytes come.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use client_core::{Body, ConnId, Done, Error, Event, Op, Operation, RequestId};
use native::{Answer, Ask, BegunChunks, Chunked, Code, PutAsk, Written};
use types::op::StoreMode;
use types::{ClientSession, Geometry, Once, checksum};

use crate::chunks::{chunked, object};
use crate::world::World;

/// Two stripes of two rows each, and one that is shorter.
const LEN: usize = 600_000;
const CHUNK: usize = 131_072;
const STRIPE: usize = 2 * CHUNK;
const FED: usize = 20_000;
/// For so long an id stays open, in milliseconds.
const OPEN_MS: u32 = 30_000;

fn value() -> Bytes {
    (0..LEN).map(|at| (at * 7 % 251) as u8).collect::<Vec<u8>>().into()
}

struct Upload {
    world: World,
    id: RequestId,
    fed: usize,
    /// How often more was wanted when something was fed the last time.
    heard: usize,
}

impl Upload {
    /// One that has an id.
    fn begin() -> Self {
        let mut world = World::coding();
        let (body, mode) = (Body::Fed(LEN as u64), StoreMode::Set);
        let op = Op::Store { mode, body, flags: 0, ttl: 0, compare: None };
        let operation = Operation { key: Bytes::from_static(b"k"), op, timeout_us: Some(600_000_000) };
        let id = world.core.submit(world.now, operation).unwrap();
        let (conn, wire, ask) = world.one();
        assert_eq!(ask, Ask::Session);
        world.answer(conn, wire, Answer::Session(ClientSession(4)));
        world.wait(0);
        let (conn, wire, ask) = world.one();
        assert!(matches!(ask, Ask::Begin(begin) if begin.len == LEN as u64), "a node is not asked");
        let geometry = Geometry { len: LEN as u64, chunk_len: CHUNK as u32, ..chunked().geometry };
        let chunks = Chunked { geometry, ..chunked() };
        world.answer(conn, wire, Answer::Begun(Box::new(BegunChunks { open_ms: OPEN_MS, chunks })));
        Self { world, id, fed: 0, heard: 0 }
    }

    fn wanted(&self) -> usize {
        self.world.events.iter().filter(|event| **event == Event::Wants(self.id)).count()
    }

    /// Gives what comes next, if that is wanted; whether it was.
    fn feed(&mut self) -> bool {
        let wanted = self.wanted();
        if wanted == self.heard || self.fed == LEN {
            return false;
        }
        self.heard = wanted;
        let next: Range<usize> = self.fed..LEN.min(self.fed + FED);
        self.fed = next.end;
        self.world.core.feed(self.world.now, self.id, value().slice(next));
        self.world.settle();
        true
    }

    fn asked(&mut self) -> Vec<(ConnId, u64, Option<Once>, Ask)> {
        let asked = self.world.asked().into_iter();
        asked.map(|(conn, wire, request)| (conn, wire, request.once, request.ask)).collect()
    }

    /// Feeds all of it, and acknowledges every chunk; what was asked in the end.
    fn all(&mut self) -> (ConnId, u64, Option<Once>, Ask) {
        loop {
            self.feed();
            for (conn, wire, once, ask) in self.asked() {
                match ask {
                    Ask::Put(_) => self.world.answer(conn, wire, Answer::Just(Code::Placed)),
                    ask => return (conn, wire, once, ask),
                }
            }
        }
    }
}

fn stripe_of((.., ask): &(ConnId, u64, Option<Once>, Ask)) -> Option<u32> {
    match ask {
        Ask::Put(put) => Some(put.chunk.stripe),
        _ => None,
    }
}

#[test]
fn a_value_that_takes_longer_than_its_id_is_open_is_coded_as_it_comes_and_its_id_renewed() {
    let mut upload = Upload::begin();
    let (mut renewals, mut chunks): (u64, BTreeMap<(u32, u8), Vec<u8>>) = (0, BTreeMap::new());
    let begun = upload.world.now;
    let commit = loop {
        upload.feed();
        upload.world.wait(1_500_000);
        let asked = upload.asked();
        let mut puts: BTreeMap<(ConnId, u64), Box<PutAsk>> = BTreeMap::new();
        let mut commit = None;
        for (conn, wire, _, ask) in asked {
            match ask {
                Ask::Put(put) => drop(puts.insert((conn, wire), put)),
                Ask::Renew(id) => {
                    assert_eq!(id, object());
                    renewals += 1;
                    upload.world.answer(conn, wire, Answer::Just(Code::Noted));
                }
                Ask::Commit(ask) => commit = Some((conn, wire, ask)),
                other => panic!("{other:?}"),
            }
        }
        let pieces = upload.world.heard.iter().flat_map(|(conn, heard)| heard.iter().map(|it| (*conn, it)));
        for (conn, piece) in pieces {
            let native::FromClient::Piece(piece) = piece else { continue };
            let Some(put) = puts.get(&(conn, piece.id)) else { continue };
            let chunk = chunks.entry((put.chunk.stripe, put.member.role.0)).or_default();
            chunk.extend_from_slice(&piece.bytes);
        }
        for ((conn, wire), put) in puts {
            let chunk = &chunks[&(put.chunk.stripe, put.member.role.0)];
            assert_eq!(put.trailer[usize::from(put.member.role.0)], checksum(chunk));
            upload.world.answer(conn, wire, Answer::Just(Code::Placed));
        }
        if let Some(commit) = commit {
            break commit;
        }
    };
    let took_ms = upload.world.now.since(begun) / 1000;
    assert!(
        took_ms > OPEN_MS.into() && renewals >= took_ms / u64::from(OPEN_MS) * 2,
        "{renewals} in {took_ms}"
    );
    let (conn, wire, commit) = commit;
    assert_eq!((commit.checksum, commit.written.object), (checksum(&value()), object()));
    assert_eq!(chunks.len(), 9, "three stripes of three roles");
    for stripe in 0..3 {
        let [one, other, sum] = [0, 1, 2].map(|role| &chunks[&(stripe, role)]);
        assert!(one.iter().zip(other).map(|(one, other)| one ^ other).eq(sum.iter().copied()));
    }
    assert_eq!(chunks[&(0, 1)][..10], value()[65_536..65_546], "the second cell of the first row");
    upload.world.answer(conn, wire, Answer::Stored(6));
    assert_eq!(upload.world.done(upload.id), Ok(Done::Answer(Answer::Stored(6))));
    assert_eq!((upload.world.core.stats().writes, upload.world.core.stats().gave_way), (1, 0));
}

#[test]
fn no_more_than_two_stripes_wait_for_their_holders() {
    let mut upload = Upload::begin();
    while upload.feed() {}
    assert!((2 * STRIPE..2 * STRIPE + 2 * FED).contains(&upload.fed), "{} were wanted", upload.fed);
    let puts = upload.asked();
    assert_eq!(puts.iter().filter_map(stripe_of).collect::<Vec<_>>(), [0, 0, 1, 1, 0, 1]);
    for (conn, wire, ..) in puts.iter().filter(|put| stripe_of(put) == Some(1)) {
        upload.world.answer(*conn, *wire, Answer::Just(Code::Placed));
    }
    while upload.feed() {}
    assert_eq!(upload.fed, LEN, "there is room for another one");
}

#[test]
fn what_a_holder_refuses_is_known_to_have_done_nothing_and_no_node_is_asked() {
    let mut upload = Upload::begin();
    let put = loop {
        assert!(upload.feed());
        if let Some(put) = upload.asked().pop() {
            break put;
        }
    };
    upload.world.answer(put.0, put.1, Answer::Just(Code::Moved));
    let error = upload.world.done(upload.id).unwrap_err();
    assert_eq!((error, error.is_harmless()), (Error::Interrupted(upload.fed as u64), true));
    let asked = upload.asked();
    let is_given_up = |ask: &Ask| matches!(ask, Ask::Abandon(written) if is_of(written));
    assert!(asked.iter().all(|(.., ask)| is_given_up(ask)) && !asked.is_empty(), "{asked:?}");
}

fn is_of(written: &Written) -> bool {
    written.object == object()
}

#[test]
fn a_commit_of_what_is_gone_is_asked_again_under_its_name() {
    let mut upload = Upload::begin();
    let (_, _, once, first) = upload.all();
    assert!(matches!(first, Ask::Commit(_)) && once.is_some_and(|once| !once.again));
    upload.world.lose(0);
    upload.world.welcome(1);
    let (conn, wire, again, second) = upload.asked().pop().expect("it is asked again");
    assert_eq!((second, again.map(|once| once.again)), (first, Some(true)));
    upload.world.answer(conn, wire, Answer::Stored(8));
    assert_eq!(upload.world.done(upload.id), Ok(Done::Answer(Answer::Stored(8))));
}

/// An upload of which something is left, and its next renewal.
fn renewing() -> (Upload, ConnId, u64) {
    let mut upload = Upload::begin();
    assert!(upload.feed());
    upload.world.wait(u64::from(OPEN_MS) * 1000 / 3);
    let (conn, wire, _, ask) = upload.asked().pop().expect("its id is renewed");
    assert_eq!(ask, Ask::Renew(object()));
    (upload, conn, wire)
}

#[test]
fn what_is_put_under_an_id_that_is_gone_ends_at_once() {
    let (mut upload, conn, wire) = renewing();
    upload.world.answer(conn, wire, Answer::Just(Code::NotOpen));
    assert_eq!(upload.world.done(upload.id), Err(Error::Interrupted(FED as u64)));
}

#[test]
fn a_renewal_that_nobody_has_heard_is_made_again_before_the_id_ends() {
    for is_lost in [false, true] {
        let (mut upload, conn, wire) = renewing();
        if is_lost {
            upload.world.lose(0);
        } else {
            upload.world.answer(conn, wire, Answer::Just(Code::Unavailable));
        }
        assert!(upload.world.ended(upload.id).is_none());
        upload.world.wait(u64::from(OPEN_MS) * 1000 / 9);
        if is_lost {
            upload.world.welcome(0);
        }
        let again = upload.asked();
        assert!(again.iter().any(|(.., ask)| *ask == Ask::Renew(object())), "{again:?}");
    }
}

#[test]
fn a_commit_of_an_id_that_is_gone_is_the_end_of_what_cannot_be_fed_again() {
    let mut upload = Upload::begin();
    let (conn, wire, _, ask) = upload.all();
    assert!(matches!(ask, Ask::Commit(_)));
    upload.world.answer(conn, wire, Answer::Just(Code::NotOpen));
    assert_eq!(upload.world.done(upload.id), Err(Error::Interrupted(LEN as u64)));
}
