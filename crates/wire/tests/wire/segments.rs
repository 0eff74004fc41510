//! Frames whose long deltas are sent from where they are.

use bytes::Bytes;
use smallvec::smallvec;
use types::{Addr, ClusterId, HostId, Incarnation, NodeId};
use wire::frame::{Encoder, Message};
use wire::message::{Frame, GroupBody, GroupMessage, PeerMessage, Record, Write};
use wire::segments::{SHARED_FROM, Segments};

use crate::samples::Gen;

const SOURCE: HostId = HostId { node: NodeId(3), incarnation: Incarnation(9) };

fn encoder() -> Encoder {
    Encoder::new(ClusterId(7), SOURCE)
}

/// A Frame with a record for each length.
fn frame(from: &mut Gen, lens: &[usize]) -> PeerMessage {
    let record = |(at, len): (usize, &usize)| {
        let delta = Bytes::from(vec![at as u8 + 1; *len]);
        Record {
            seq: types::Seq(at as u64 + 1),
            writes: smallvec![Write::new(Addr(1), delta)],
            ops: smallvec![],
        }
    };
    let records = lens.iter().enumerate().map(record).collect();
    let body = GroupBody::Frame(Frame { records, ..from.of() });
    PeerMessage::Group(GroupMessage { body, ..from.of() })
}

/// Everything, in writes of which the system takes `most` bytes.
fn sent(out: &mut Segments, most: usize) -> Vec<u8> {
    let mut sent = Vec::new();
    while !out.is_empty() {
        let taken: Vec<u8> = out.slices().iter().flat_map(|slice| slice.to_vec()).take(most).collect();
        out.advance(taken.len());
        out.tidy(100);
        sent.extend(taken);
    }
    sent
}

#[test]
fn shared_or_copied_a_frame_has_the_same_bytes() {
    let mut from = Gen::new(1);
    let long = SHARED_FROM;
    let frames = [&[long][..], &[long - 1, long, 3, 2 * long, long], &[5], &[], &[long; 100]];
    let messages: Vec<PeerMessage> = frames.iter().map(|lens| frame(&mut from, lens)).collect();
    let (mut plain, mut copying, mut sharing) = (Vec::new(), encoder(), encoder());
    for most in [1000, 4097, usize::MAX] {
        let mut out = Segments::default();
        plain.clear();
        for message in &messages {
            copying.encode(message, &mut plain).unwrap();
            sharing.encode_shared(message, &mut out).unwrap();
        }
        assert_eq!(out.len(), plain.len());
        assert!(out.capacity() < plain.len() / 10, "long deltas are not copied");
        assert!(sent(&mut out, most) == plain, "in writes of {most}");
    }
}

#[test]
fn every_kind_of_message_can_be_sent_so() {
    for seed in 0..300 {
        let message = Gen::new(seed).of::<Message>();
        let (mut plain, mut out) = (Vec::new(), Segments::default());
        encoder().encode(&message, &mut plain).unwrap();
        encoder().encode_shared(&message, &mut out).unwrap();
        assert!(sent(&mut out, usize::MAX) == plain, "{message:?}");
    }
}

#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    let mut from = Gen::new(2);
    let (mut encoder, mut out) = (encoder(), Segments::default());
    let fits = frame(&mut from, &[SHARED_FROM]);
    encoder.encode_shared(&fits, &mut out).unwrap();
    let before = out.len();
    assert!(encoder.encode_shared(&frame(&mut from, &[1 << 20; 5]), &mut out).is_err());
    assert_eq!(out.len(), before);
    encoder.encode_shared(&fits, &mut out).unwrap();
    assert_eq!(sent(&mut out, usize::MAX).len(), 2 * before);
}
