//! Frames between nodes.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use smallvec::smallvec;
use types::{
    Addr, ClusterId, Cohort, Epoch, GroupId, HostId, Incarnation, IndexHash, IndexOp, NodeId, RoleIndex, Seq,
    Term, Time, UnixSeconds, ViewVersion,
};
use wire::frame::{
    BadBody, Decoder, Encoder, FORMAT_VERSION, FrameError, HEADER_BYTES, Header, LinkHello, LinkMessage,
    MAGIC, MAX_FRAME_BYTES, Malformed, Message, encode,
};
use wire::graph::GraphMessage;
use wire::message::{
    Ack, Frame, FromCoordinator, GroupBody, GroupMessage, IndexPart, PeerMessage, Record, Refused,
    Registration, ToCoordinator, Write,
};

use crate::samples::Gen;

const CLUSTER: ClusterId = ClusterId(0x1122_3344_5566_7788);
const SOURCE: HostId = HostId { node: NodeId(3), incarnation: Incarnation(0x99) };
/// Kinds that exist: link, forward and answer, group, to and from the coordinator, chunks.
const KINDS: [std::ops::RangeInclusive<u8>; 9] = [
    0x00..=0x02,
    0x10..=0x11,
    0x20..=0x31,
    0x40..=0x4f,
    0x50..=0x5f,
    0x60..=0x6f,
    0x80..=0x87,
    0x90..=0x93,
    0xa0..=0xa1,
];

fn kinds() -> impl Iterator<Item = u8> {
    KINDS.into_iter().flatten()
}

fn header(sequence: u64) -> Header {
    Header { cluster: CLUSTER, source: SOURCE, sequence }
}

fn framed(sequence: u64, message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&header(sequence), message, &mut out).expect("samples fit");
    out
}

/// A frame with valid checksums around any body.
fn raw_frame(version: u8, kind: u8, cluster: ClusterId, sequence: u64, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[version, kind]);
    out.extend_from_slice(&SOURCE.node.0.to_le_bytes());
    out.extend_from_slice(&cluster.0.to_le_bytes());
    out.extend_from_slice(&SOURCE.incarnation.0.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out.extend_from_slice(body);
    out
}

fn raw(kind: u8, body: &[u8]) -> Vec<u8> {
    raw_frame(FORMAT_VERSION, kind, CLUSTER, 0, body)
}

/// What a new link makes of these bytes.
fn decode(bytes: &[u8]) -> Result<Option<(Header, Message)>, FrameError> {
    Decoder::new(CLUSTER).next(&mut BytesMut::from(bytes))
}

fn malformed(bytes: &[u8]) -> Malformed {
    match decode(bytes) {
        Err(FrameError::Malformed(malformed)) => malformed,
        other => panic!("not malformed but {other:?}"),
    }
}

fn ack() -> Message {
    Message::Peer(PeerMessage::Group(GroupMessage {
        group: GroupId(7),
        view: ViewVersion(2),
        from: RoleIndex(4),
        to: RoleIndex(1),
        body: GroupBody::Ack(Ack { term: Term(5), received: Seq(600), echo: Time(1_000_000) }),
    }))
}

#[test]
fn the_layout_is_the_one_in_the_format_document() {
    let mut expected = Vec::new();
    expected.extend_from_slice(b"GSTL\x0d\x23\x03\x00\x88\x77\x66\x55\x44\x33\x22\x11\x99\0\0\0\0\0\0\0");
    expected.extend_from_slice(b"\x2a\0\0\0\0\0\0\0\x22\0\0\0");
    let body = b"\x07\0\0\0\x02\0\0\0\0\0\0\0\x04\x01\x05\0\0\0\x58\x02\0\0\0\0\0\0\x40\x42\x0f\0\0\0\0\0";
    expected.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    expected.extend_from_slice(&crc32c::crc32c(&expected).to_le_bytes());
    assert_eq!(expected.len(), HEADER_BYTES);
    expected.extend_from_slice(body);
    assert_eq!(framed(42, &ack()), expected);
}

#[test]
fn a_frame_of_one_small_record_is_as_long_as_the_format_document_says() {
    let op = IndexOp::Insert { hash: IndexHash(1), addr: Addr(1), cohort: Cohort::default() };
    let write = Write::new(Addr(1), Bytes::from(vec![7; 100]));
    let record = Record { seq: Seq(9), writes: smallvec![write], ops: smallvec![op] };
    let frame = Frame {
        term: Term(1),
        sent_at: Time(0),
        wall: UnixSeconds(0),
        committed: Seq(8),
        records: vec![record],
    };
    let Message::Peer(PeerMessage::Group(mut message)) = ack() else { unreachable!() };
    message.body = GroupBody::Frame(frame);
    assert_eq!(framed(0, &PeerMessage::Group(message).into()).len(), 223);
}

#[test]
fn every_kind_of_message_survives_the_wire() {
    let mut seen = BTreeSet::new();
    for seed in 0..4000 {
        let message: Message = Gen::new(seed).of();
        let bytes = framed(0, &message);
        seen.insert(bytes[5]);
        assert_eq!(decode(&bytes), Ok(Some((header(0), message))));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), kinds().collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn where_the_network_cuts_makes_no_difference(
        seeds in prop::collection::vec(any::<u64>(), 1..8),
        cuts in prop::collection::vec(1usize..3000, 1..20),
    ) {
        let messages: Vec<Message> = seeds.iter().map(|&seed| Gen::new(seed).of()).collect();
        let mut encoder = Encoder::new(CLUSTER, SOURCE);
        let mut stream = Vec::new();
        for message in &messages {
            encoder.encode(message, &mut stream).unwrap();
        }
        let (mut decoder, mut buffer, mut decoded) = (Decoder::new(CLUSTER), BytesMut::new(), Vec::new());
        let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            buffer.extend_from_slice(piece);
            rest = after;
            while let Some((header, message)) = decoder.next(&mut buffer).unwrap() {
                prop_assert_eq!(header.sequence, decoded.len() as u64);
                decoded.push(message);
            }
            prop_assert!(decoder.wanted(&buffer) >= 1);
        }
        prop_assert_eq!(decoded, messages);
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn a_changed_byte_never_passes(seed: u64, at: prop::sample::Index, change in 1u8..) {
        let mut bytes = framed(0, &Gen::new(seed).of());
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn garbage_is_refused_at_its_first_four_bytes(bytes in prop::collection::vec(any::<u8>(), 4..200)) {
        prop_assume!(!bytes.starts_with(&MAGIC));
        prop_assert_eq!(malformed(&bytes), Malformed::Magic);
    }

    /// Whatever body passes is the one encoding of its message, so nothing is misread in silence.
    #[test]
    fn bodies_of_garbage_are_refused_or_canonical(
        kind in prop::sample::select(kinds().collect::<Vec<_>>()),
        body in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => 0u8..6, 1 => any::<u8>()], 0..200),
    ) {
        let bytes = raw(kind, &body);
        if let Ok(decoded) = decode(&bytes) {
            let (_, message) = decoded.expect("the frame is whole");
            prop_assert_eq!(framed(0, &message), bytes);
        }
    }

    #[test]
    fn damaged_bodies_with_valid_checksums_are_refused_or_canonical(
        seed: u64,
        at: prop::sample::Index,
        change in 1u8..,
        cut: prop::sample::Index,
    ) {
        let whole = framed(0, &Gen::new(seed).of());
        let mut body = whole[HEADER_BYTES..].to_vec();
        if !body.is_empty() {
            let at = at.index(body.len());
            body[at] ^= change;
        }
        for len in [body.len(), cut.index(body.len() + 1)] {
            let bytes = raw(whole[5], &body[..len]);
            if let Ok(Some((_, message))) = decode(&bytes) {
                prop_assert_eq!(framed(0, &message), bytes);
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    let bytes = framed(0, &ack());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn a_truncated_frame_waits() {
    let bytes = framed(0, &ack());
    for len in 0..bytes.len() {
        assert_eq!(decode(&bytes[..len]), Ok(None), "{len} bytes");
    }
}

#[test]
fn a_foreign_cluster_and_a_foreign_format_are_named() {
    let foreign = raw_frame(FORMAT_VERSION, 0x23, ClusterId(9), 0, b"");
    assert_eq!(decode(&foreign), Err(FrameError::WrongCluster { theirs: ClusterId(9) }));
    let newer = raw_frame(FORMAT_VERSION + 1, 0x23, CLUSTER, 0, b"");
    assert_eq!(decode(&newer), Err(FrameError::WrongVersion { theirs: FORMAT_VERSION + 1 }));
}

#[test]
fn a_missing_or_repeated_frame_is_malformed() {
    for sequence in [0, 2, u64::MAX] {
        let mut decoder = Decoder::new(CLUSTER);
        let mut buffer = BytesMut::from(&framed(0, &ack())[..]);
        buffer.extend_from_slice(&framed(sequence, &ack()));
        assert!(decoder.next(&mut buffer).unwrap().is_some());
        let expected = Malformed::Sequence { expected: 1, got: sequence };
        assert_eq!(decoder.next(&mut buffer), Err(FrameError::Malformed(expected)));
    }
}

#[test]
fn a_declared_length_reserves_nothing() {
    let mut long = raw(0x23, b"");
    long[32..36].copy_from_slice(&(MAX_FRAME_BYTES as u32).to_le_bytes());
    let crc = crc32c::crc32c(&long[..40]);
    long[40..44].copy_from_slice(&crc.to_le_bytes());
    let (mut decoder, mut buffer) = (Decoder::new(CLUSTER), BytesMut::from(&long[..]));
    assert_eq!(decoder.next(&mut buffer), Ok(None));
    assert!(buffer.capacity() < 1024);
    assert_eq!(decoder.wanted(&buffer), MAX_FRAME_BYTES);

    long[32..36].copy_from_slice(&(MAX_FRAME_BYTES as u32 + 1).to_le_bytes());
    let crc = crc32c::crc32c(&long[..40]);
    long[40..44].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(malformed(&long), Malformed::TooLong(MAX_FRAME_BYTES as u32 + 1));
}

#[test]
fn declared_counts_are_bounded() {
    let mut body = [0u8; 14 + 24].to_vec();
    body.extend_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        malformed(&raw(0x22, &body)),
        Malformed::Body { kind: 0x22, error: BadBody::TooMany(u32::MAX) }
    );
    body.truncate(38);
    body.extend_from_slice(&4096u32.to_le_bytes());
    assert_eq!(malformed(&raw(0x22, &body)), Malformed::Body { kind: 0x22, error: BadBody::Truncated });
}

#[test]
fn choices_that_do_not_exist_are_refused() {
    // A Frame of one record without writes and with one index operation.
    let mut body = [0u8; 14 + 24].to_vec();
    for part in [&b"\x01\0\0\0"[..], b"\x09\0\0\0\0\0\0\0", b"\0\0\0\0", b"\x01\0\0\0"] {
        body.extend_from_slice(part);
    }
    for tag in 10..=u8::MAX {
        let bytes = raw(0x22, &[&body[..], &[tag], &[0; 16]].concat());
        assert_eq!(malformed(&bytes), Malformed::Body { kind: 0x22, error: BadBody::Tag(tag) });
    }
}

#[test]
fn bodies_must_be_used_up_and_kinds_must_exist() {
    assert_eq!(malformed(&raw(0x55, b"x")), Malformed::Body { kind: 0x55, error: BadBody::Trailing });
    for kind in (0..=u8::MAX).filter(|kind| !kinds().any(|known| known == *kind)) {
        let refused = malformed(&raw(kind, &[0; 64]));
        assert!(
            matches!(refused, Malformed::Kind(_) | Malformed::Body { error: BadBody::Tag(_), .. }),
            "{kind:#x}"
        );
    }
}

#[test]
fn what_no_receiver_would_accept_is_not_sent() {
    let mut encoder = Encoder::new(CLUSTER, SOURCE);
    let mut out = b"before".to_vec();
    let part = IndexPart { term: Term(1), part: 0, last: true, bytes: Bytes::from(vec![0; MAX_FRAME_BYTES]) };
    let Message::Peer(PeerMessage::Group(mut message)) = ack() else { unreachable!() };
    message.body = GroupBody::IndexPart(part);
    assert!(encoder.encode(&message, &mut out).is_err());
    let record = |_| Record { seq: Seq(1), writes: smallvec![], ops: smallvec![] };
    let records = (0..4097).map(record).collect();
    message.body = GroupBody::Frame(Frame {
        term: Term(1),
        sent_at: Time(0),
        wall: UnixSeconds(0),
        committed: Seq(0),
        records,
    });
    assert!(encoder.encode(&message, &mut out).is_err());
    let refused = Refused { cluster: None, epoch: Epoch(1), fenced: false, reason: "x".repeat(5000) };
    assert!(encoder.encode(&FromCoordinator::Refused(refused), &mut out).is_err());
    assert_eq!(out, b"before");

    let hello = LinkHello { cluster: CLUSTER, from: SOURCE, to: NodeId(1), shard: 0 };
    encoder.encode(&LinkMessage::Hello(hello), &mut out).unwrap();
    assert_eq!(decode(&out[6..]).unwrap().unwrap().0.sequence, 0, "a refused message uses up no number");
}

#[test]
fn deltas_are_slices_of_what_was_received() {
    let delta = Bytes::from(vec![7; 1000]);
    let record = Record { seq: Seq(9), writes: smallvec![Write::new(Addr(1), delta)], ops: smallvec![] };
    let Message::Peer(PeerMessage::Group(mut message)) = ack() else { unreachable!() };
    message.body = GroupBody::Frame(Frame {
        term: Term(1),
        sent_at: Time(0),
        wall: UnixSeconds(0),
        committed: Seq(8),
        records: vec![record],
    });
    let mut buffer = BytesMut::from(&framed(0, &PeerMessage::Group(message).into())[..]);
    let range = buffer.as_ptr_range();
    let (_, decoded) = Decoder::new(CLUSTER).next(&mut buffer).unwrap().unwrap();
    let Message::Peer(PeerMessage::Group(GroupMessage { body: GroupBody::Frame(frame), .. })) = decoded
    else {
        panic!("not a Frame")
    };
    assert!(range.contains(&frame.records[0].writes[0].delta.as_ptr()));
}

/// Bodies that are well-formed but for one number.
mod ranges {
    use super::*;

    fn body(kind: u8, body: &[u8]) -> Option<BadBody> {
        match decode(&raw(kind, body)) {
            Ok(Some(_)) => None,
            Err(FrameError::Malformed(Malformed::Body { error, .. })) => Some(error),
            other => panic!("{other:?}"),
        }
    }

    /// A request of group 7, role 1, with a key of `len` bytes; the operation is `op`.
    fn forward(len: u32, op: &[u8]) -> Option<BadBody> {
        let mut bytes = vec![0; 8];
        bytes.extend_from_slice(b"\x07\0\0\0\x01");
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend(std::iter::repeat_n(b'k', len as usize));
        bytes.extend_from_slice(op);
        body(0x10, &bytes)
    }

    #[test]
    fn a_request_has_a_key_of_one_to_250_bytes_and_a_flush_has_none() {
        const DEBUG: &[u8] = b"\x05";
        const FLUSH: &[u8] = b"\x06\x00\x00\x00\x00\x00";
        for len in [1, 250] {
            assert_eq!(forward(len, DEBUG), None);
        }
        for len in [0, 251, 255, 256, 300, 65_536, 1 << 20] {
            assert_eq!(forward(len, DEBUG), Some(BadBody::Key), "{len}");
        }
        assert_eq!((forward(0, FLUSH), forward(1, FLUSH)), (None, Some(BadBody::Key)));
    }

    /// A message of a group with these fields after its roles.
    fn group(tag: u8, view: u64, (from, to): (u8, u8), fields: &[u8]) -> Option<BadBody> {
        let mut bytes = 7u32.to_le_bytes().to_vec();
        bytes.extend_from_slice(&view.to_le_bytes());
        bytes.extend_from_slice(&[from, to]);
        bytes.extend_from_slice(fields);
        body(0x20 + tag, &bytes)
    }

    fn hello(view: u64, roles: (u8, u8), term: u32, committed: u64) -> Option<BadBody> {
        group(0, view, roles, &[&term.to_le_bytes()[..], &committed.to_le_bytes()].concat())
    }

    #[test]
    fn numbers_that_grow_have_room_above_them() {
        let (most, too_much) = (u64::MAX / 2, u64::MAX / 2 + 1);
        assert_eq!(hello(most, (63, 63), u32::MAX / 2, most), None);
        for (view, roles, term, committed) in [
            (too_much, (0, 0), 1, 1),
            (1, (64, 0), 1, 1),
            (1, (0, 255), 1, 1),
            (1, (0, 0), u32::MAX / 2 + 1, 1),
            (1, (0, 0), 1, too_much),
            (1, (0, 0), 1, u64::MAX),
        ] {
            assert_eq!(hello(view, roles, term, committed), Some(BadBody::Range));
        }
    }

    /// A message of a graph, as it comes.
    fn graph(message: GraphMessage) -> Option<BadBody> {
        match decode(&framed(0, &Message::Peer(PeerMessage::Graph(Box::new(message))))) {
            Ok(Some(_)) => None,
            Err(FrameError::Malformed(Malformed::Body { error, .. })) => Some(error),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_of_graphs_name_edges_steps_and_slices_that_a_graph_can_have() {
        use wire::graph::*;
        let run = Run { asker: Asker(1), number: 1 };
        let seats = Seats { from: Seat::Node, to: Seat::Node };
        let (edges, steps) = (MAX_EDGES as u32, MAX_STEPS as u32);
        let credit = |edge, below| graph(GraphMessage::Credit(Credit { run, seats, edge, below }));
        assert_eq!(credit(edges - 1, MAX_SLICES), None);
        for (edge, below) in [(edges, 1), (u32::MAX, 1), (0, 0), (0, MAX_SLICES + 1), (0, u32::MAX)] {
            assert_eq!(credit(edge, below), Some(BadBody::Range), "{edge} {below}");
        }
        let ask = |edge| graph(GraphMessage::AskCredit(AskCredit { run, seats, edge }));
        assert_eq!((ask(edges - 1), ask(edges)), (None, Some(BadBody::Range)));
        let slice = |edge, index, len| {
            let slice = wire::object::Checked::new(vec![1; len].into());
            graph(GraphMessage::Slice(Slice { run, seats, edge, index, slice }))
        };
        assert_eq!(slice(edges - 1, MAX_SLICES - 1, MAX_SLICE_BYTES), None);
        for (edge, index, len) in [(edges, 0, 1), (0, MAX_SLICES, 1), (0, 0, 0), (0, 0, MAX_SLICE_BYTES + 1)]
        {
            assert_eq!(slice(edge, index, len), Some(BadBody::Range), "{edge} {index} {len}");
        }
        let report = |news| graph(GraphMessage::Report(Report { run, news }));
        let at = |step, done, wait| report(News::Progress(vec![Progress { step, done, wait }]));
        assert_eq!(at(steps - 1, MAX_SLICES, Wait::Credit(edges - 1)), None);
        for (step, done, wait) in [
            (steps, 0, Wait::Nothing),
            (0, MAX_SLICES + 1, Wait::Nothing),
            (0, 0, Wait::Slice(edges)),
            (0, 0, Wait::Credit(u32::MAX)),
        ] {
            assert_eq!(at(step, done, wait), Some(BadBody::Range), "{step} {done} {wait:?}");
        }
        for why in [Why::BadSlice { edge: edges }, Why::Cut { edge: u32::MAX }] {
            assert_eq!(report(News::Failed(why)), Some(BadBody::Range), "{why:?}");
        }
    }

    #[test]
    fn slow_links_are_told_of_once_each_and_in_order_and_are_slow() {
        use wire::graph::*;
        let told = |links: &[(u16, u8)]| {
            let link = |(from, half_doublings): &(u16, u8)| SlowLink {
                from: NodeId(*from),
                half_doublings: *half_doublings,
            };
            graph(GraphMessage::SlowLinks(SlowLinks { slow: links.iter().map(link).collect() }))
        };
        let all: Vec<(u16, u8)> =
            (0..MAX_SLOW_LINKS as u16).map(|node| (node, 1 + (node % 14) as u8)).collect();
        assert_eq!((told(&[]), told(&all)), (None, None));
        for links in [
            &[(1, 0)][..],
            &[(1, MAX_HALF_DOUBLINGS + 1)],
            &[(1, u8::MAX)],
            &[(2, 3), (1, 3)],
            &[(1, 3), (1, 4)],
        ] {
            assert_eq!(told(links), Some(BadBody::Range), "{links:?}");
        }
        let times = |times| SlowLink::of(NodeId(1), times).times();
        assert!((1.4..1.5).contains(&times(1.5)) && times(0.1) > 1.0 && times(1e9) == 128.0);
        assert!([f64::NAN, f64::INFINITY, 0.0].map(times).iter().all(|times| (1.0..=128.0).contains(times)));
    }

    #[test]
    fn there_is_an_epoch_after_whatever_was_promised() {
        let nowhere = "127.0.0.1:1".parse().unwrap();
        let decoded = |promised| {
            let info = types::NodeInfo {
                host: HostId { node: NodeId(1), incarnation: Incarnation(1) },
                peer: nowhere,
                memcached: nowhere,
                http: nowhere,
                native: None,
                zone: String::new(),
                alive: true,
            };
            let registration = Registration { promised, ..Registration::from(info) };
            let mut bytes = Vec::new();
            encode(&header(0), &ToCoordinator::Register(registration), &mut bytes).unwrap();
            Decoder::new(header(0).cluster).next(&mut BytesMut::from(&bytes[..])).map(|it| it.is_some())
        };
        let malformed = FrameError::Malformed(Malformed::Body { kind: 0x40, error: BadBody::Range });
        assert_eq!(decoded(Epoch(Epoch::MAX.0 - 1)), Ok(true));
        assert_eq!(decoded(Epoch::MAX), Err(malformed));
    }

    #[test]
    fn pages_of_a_session_fill_a_run_at_most_and_lie_in_an_area() {
        let read = |first: u32, count: u32| {
            let mut fields = vec![0; 1 + 4 + 8];
            fields.extend_from_slice(&first.to_le_bytes());
            fields.extend_from_slice(&count.to_le_bytes());
            fields.extend_from_slice(&0u32.to_le_bytes());
            group(11, 1, (0, 1), &fields)
        };
        assert_eq!((read(0, 1), read((1 << 23) - 16, 16)), (None, None));
        for (first, count) in
            [(0, 0), (0, 17), (1 << 23, 1), ((1 << 23) - 15, 16), (u32::MAX, 1), (u32::MAX, 16)]
        {
            assert_eq!(read(first, count), Some(BadBody::Range), "{first} {count}");
        }
    }

    #[test]
    fn records_of_a_frame_follow_each_other() {
        let frame = |seqs: &[u64]| {
            let mut fields = vec![0; 4 + 8 + 4 + 8];
            fields.extend_from_slice(&(seqs.len() as u32).to_le_bytes());
            for seq in seqs {
                fields.extend_from_slice(&seq.to_le_bytes());
                fields.extend_from_slice(&[0; 8]);
            }
            group(2, 1, (0, 1), &fields)
        };
        assert_eq!((frame(&[]), frame(&[9]), frame(&[9, 10, 11])), (None, None, None));
        for seqs in [&[9, 9][..], &[9, 11], &[9, 8], &[9, 10, 12]] {
            assert_eq!(frame(seqs), Some(BadBody::Order), "{seqs:?}");
        }
    }

    #[test]
    fn a_map_of_no_pools_is_none() {
        let mut fields = vec![0; 8 + 8];
        fields.extend_from_slice(b"\x01\0\0\0\x01\0\0\0\0\0\0\0"); // the next pool, namespace and group
        fields.extend_from_slice(&[0; 4]); // pools
        fields.extend_from_slice(b"\x01\0\0\0\0\0\0\0\x07\0\0\0default"); // a namespace
        fields.extend_from_slice(&[0; 4 + 1 + 1 + 4 + 8 + 4]); // pool, policy, lost
        fields.extend_from_slice(b"\x01\0");
        fields.extend_from_slice(&[0; 8 + 4]); // layout: version, nodes
        fields.extend_from_slice(&[0; 1 + 8 + 8]); // repair
        fields.extend_from_slice(&[0; 8 + 1 + 1 + 8]); // scrub
        fields.push(0); // on_loss
        fields.extend_from_slice(&[0; 4 + 4]); // nodes, groups
        let homeless = types::BadCatalog::Homeless(types::Name::default_name());
        assert_eq!(body(0x50, &fields), Some(BadBody::Catalog(Box::new(homeless))));
    }

    #[test]
    fn a_view_that_no_group_can_have_is_none() {
        let view = |data: &[u8], count: u32| {
            let mut fields = 7u32.to_le_bytes().to_vec();
            fields.extend_from_slice(&1u64.to_le_bytes());
            fields.extend_from_slice(&count.to_le_bytes());
            fields.extend_from_slice(data);
            fields.extend_from_slice(&[0; 4 + 4 + 4 + 4]); // parity, learners, former, holders
            body(0x51, &fields)
        };
        // No primary; term, origin, status.
        let lost = b"\0\x01\0\0\0\x01\0\0\0\x04";
        assert_eq!(view(lost, 1), None);
        let why = |bad| match bad {
            Some(BadBody::View(why)) => Some(*why),
            _ => None,
        };
        assert_eq!(why(view(b"", 0)), Some(types::ImpossibleView::Roles { data: 0, parity: 0 }));
        let full_without_primary = b"\0\x01\0\0\0\x01\0\0\0\x00";
        assert_eq!(
            why(view(full_without_primary, 1)),
            Some(types::ImpossibleView::Status(types::RoleIndex(0)))
        );
    }
}

/// A map of so many groups.
fn map_of(groups: u32) -> FromCoordinator {
    let hosts: Vec<HostId> =
        (0..5).map(|node| HostId { node: NodeId(node), incarnation: Incarnation(1) }).collect();
    let profile = types::Profile::rs(3, 2).expect("a profile");
    let data = |role: usize| types::DataRole {
        primary: Some(hosts[role]),
        term: Term(1),
        origin: Term(1),
        status: types::RoleStatus::Full,
    };
    let view = |group| types::GroupView {
        group: types::GroupId(group),
        version: types::ViewVersion(1),
        data: (0..3).map(data).collect(),
        parity: vec![Some(hosts[3]), Some(hosts[4])],
        learners: Vec::new(),
        former: Vec::new(),
        holders: Vec::new(),
    };
    FromCoordinator::Map(std::sync::Arc::new(types::ClusterMap {
        cluster: CLUSTER,
        version: 1,
        catalog: types::Catalog::first(profile, groups),
        shards: 1,
        layout: types::Layout::default(),
        nodes: Vec::new(),
        groups: (0..groups).map(view).collect(),
    }))
}

/// The frames of `message`, and what a decoder makes of them that gets `step` bytes at a time.
fn in_parts(message: &FromCoordinator, step: usize) -> (u64, Option<Message>) {
    let mut out = Vec::new();
    Encoder::new(CLUSTER, SOURCE).encode_long(message, &mut out).expect("it fits");
    let (mut decoder, mut buffer) = (Decoder::new(CLUSTER).taking_parts(), BytesMut::new());
    let mut found = None;
    for piece in out.chunks(step) {
        assert_eq!(found, None, "not before it is whole");
        buffer.extend_from_slice(piece);
        found = decoder.next(&mut buffer).expect("frames").map(|(_, message)| message);
    }
    assert!(buffer.is_empty());
    (decoder.frames(), found)
}

#[test]
fn a_message_that_is_longer_than_a_frame_comes_in_several() {
    for (groups, least) in [(10, 1), (100_000, 8)] {
        let message = map_of(groups);
        let (frames, found) = in_parts(&message, 300_001);
        assert!(frames >= least, "{frames} frames");
        assert_eq!(found, Some(Message::from(message)));
    }
}

#[test]
fn parts_are_taken_by_whoever_expects_them_and_only_whole() {
    let mut out = Vec::new();
    Encoder::new(CLUSTER, SOURCE).encode_long(&map_of(100_000), &mut out).unwrap();
    let mut buffer = BytesMut::from(&out[..]);
    let refused = Decoder::new(CLUSTER).next(&mut buffer);
    assert_eq!(refused, Err(FrameError::Malformed(Malformed::Kind(0x70))), "peers have no such messages");
    // One frame is missing.
    let first = HEADER_BYTES + u32::from_le_bytes(out[32..36].try_into().unwrap()) as usize;
    let mut rest = BytesMut::from(&out[first..]);
    let refused = Decoder::new(CLUSTER).taking_parts().next(&mut rest);
    assert!(matches!(refused, Err(FrameError::Malformed(Malformed::Sequence { expected: 0, got: 1 }))));
}
