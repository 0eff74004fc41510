//! Bytes that nobody should send: they are refused, and nothing else happens.

use bytes::{Bytes, BytesMut};
use native::{Decoder, Frame, FromClient, FromServer, HEADER_BYTES, Header, Hello, Kind, Malformed};
use proptest::prelude::*;

use crate::reading::{look, read, serve};
use crate::samples::{of_clients, of_servers};

fn valid() -> Vec<Vec<u8>> {
    let bytes = |put: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        put(&mut out);
        out
    };
    let clients = of_clients().into_iter().map(|(_, one)| bytes(&|out| one.put(out)));
    clients.chain(of_servers().into_iter().map(|(_, one)| bytes(&|out| one.put(out)))).collect()
}

#[test]
fn a_length_beyond_the_longest_frame_is_refused_before_anything_comes() {
    let mut bytes = Vec::new();
    Header { len: 70_000, kind: Kind::Piece, flags: 0, id: 1 }.put(&mut bytes);
    assert_eq!(read(&bytes), (0, Err(Malformed::Long(70_000))));
    let mut reserved = valid()[0].clone();
    reserved[6] = 1;
    assert_eq!(read(&reserved), (0, Err(Malformed::Reserved)));
}

#[test]
fn a_body_that_is_cut_or_goes_on_is_no_message() {
    for bytes in valid() {
        let frame = Decoder::next(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
        // What a later version adds to the first words is no error, pieces and parts of maps are whatever they are.
        let may_go_on = matches!(frame.header.kind, Kind::Hello | Kind::Welcome | Kind::Piece | Kind::Map);
        let longer = Frame { body: [&frame.body[..], b"x"].concat().into(), ..frame.clone() };
        let is_message =
            |frame: Frame| FromClient::take(frame.clone()).is_ok() || FromServer::take(frame).is_ok();
        assert_eq!(is_message(longer), may_go_on, "{:?}", frame.header);
        for len in 0..frame.body.len() {
            let cut = Frame { body: frame.body.slice(..len), ..frame.clone() };
            assert!(
                !is_message(cut) || (frame.header.kind == Kind::Piece && len > 0),
                "{:?} {len}",
                frame.header
            );
        }
    }
}

#[test]
fn nobody_says_what_the_other_side_says() {
    for (name, message) in of_clients().into_iter().filter(|(name, _)| !["piece", "window"].contains(name)) {
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        let frame = Decoder::next(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
        assert!(matches!(FromServer::take(frame), Err(Malformed::Kind(_))), "{name}");
    }
}

/// What a client of a server has said that goes on with these frames.
fn conversation(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    FromClient::Hello(Hello::default()).put(&mut bytes);
    [bytes, frames.concat()].concat()
}

#[test]
fn a_server_hears_all_that_a_client_may_say() {
    let mut requests: Vec<_> = of_clients().into_iter().filter(|(name, _)| *name != "hello").collect();
    let id = |message: &FromClient| {
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        Decoder::next(&mut BytesMut::from(&bytes[..])).unwrap().unwrap().header.id
    };
    requests.sort_by_key(|(_, message)| id(message));
    for (name, message) in requests {
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        let heard = serve(&conversation(&[bytes]));
        // What is about a request has to come behind it.
        let is_about =
            matches!(message, FromClient::Piece(_) | FromClient::Window(_) | FromClient::Cancel(_));
        assert_eq!(heard, 1 + usize::from(!is_about), "{name}");
    }
}

proptest! {
    #[test]
    fn a_server_survives_any_conversation(
        which in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
    ) {
        let all = valid();
        let mut bytes = conversation(&which.iter().map(|at| at.get(&all).clone()).collect::<Vec<_>>());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert!(serve(&bytes) <= which.len() + 1);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (frames, _) = read(&bytes);
        prop_assert!(frames <= bytes.len() / HEADER_BYTES);
    }

    #[test]
    fn any_body_of_any_kind_is_read_without_harm(
        at in 0..Kind::ALL.len(),
        flags in 0u8..5,
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let header = Header { len: body.len() as u32, kind: Kind::ALL[at], flags, id: 7 };
        look(Frame { header, body: Bytes::from(body) });
    }

    #[test]
    fn messages_with_some_bytes_changed_are_read_without_harm(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let all = valid();
        let mut bytes = which.get(&all).clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (frames, _) = read(&bytes);
        prop_assert!(frames <= bytes.len() / HEADER_BYTES);
    }

    #[test]
    fn where_the_network_cuts_makes_no_difference(cuts in prop::collection::vec(1usize..40, 1..200)) {
        let all = valid();
        let bytes = all.concat();
        let (mut buffer, mut count, mut at) = (BytesMut::new(), 0, 0usize);
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let end = at.saturating_add(cut).min(bytes.len());
            buffer.extend_from_slice(&bytes[at..end]);
            at = end;
            while Decoder::next(&mut buffer).unwrap().is_some() {
                count += 1;
            }
        }
        prop_assert_eq!((count, buffer.len()), (all.len(), 0));
    }
}
