//! Any bytes, as both sides read them. Also what cargo-fuzz runs: `fuzz/fuzz_targets/native.rs`.

use bytes::BytesMut;
use native::{
    Answer, Decoder, Dialogue, Frame, FromClient, FromServer, Heard, MAX_FRAME_BYTES, Malformed, MapAssembly,
    Value,
};
use types::UnixSeconds;

/// What comes of these bytes: frames, and how they end.
pub fn read(bytes: &[u8]) -> (usize, Result<(), Malformed>) {
    let mut buffer = BytesMut::from(bytes);
    let mut count = 0;
    loop {
        assert!(Decoder::wanted(&buffer) <= MAX_FRAME_BYTES);
        match Decoder::next(&mut buffer) {
            Ok(Some(frame)) => {
                count += 1;
                look(frame);
            }
            Ok(None) => return (count, Ok(())),
            Err(malformed) => return (count, Err(malformed)),
        }
    }
}

/// Both sides read it; what they understand they also say in the same way.
pub fn look(frame: Frame) {
    if let Ok(message) = FromClient::take(frame.clone()) {
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        let again = Decoder::next(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
        assert_eq!(FromClient::take(again), Ok(message));
    }
    let value = Value::announced(&frame.header, &frame.body);
    if let Ok(message) = FromServer::take(frame) {
        // Whoever looks at the head of an answer alone sees the same value in it.
        let in_frame = match &message {
            FromServer::Answer(_, answer) => match &**answer {
                Answer::Value(value) if value.bytes.is_some() => Some(Value { bytes: None, ..value.clone() }),
                _ => None,
            },
            _ => None,
        };
        assert_eq!(value, Ok(in_frame));
        if let FromServer::Map(part, more) = &message {
            let _ = MapAssembly::default().add(part, *more);
        }
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        let again = Decoder::next(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
        assert_eq!(FromServer::take(again), Ok(message));
    }
}

/// What a server hears of these bytes until its client may not say what it says; how many frames that were.
pub fn serve(bytes: &[u8]) -> usize {
    let (mut dialogue, mut buffer) = (Dialogue::default(), BytesMut::from(bytes));
    let mut count = 0;
    while let Ok(Some(frame)) = Decoder::next(&mut buffer) {
        let Ok(heard) = dialogue.hear(frame, 1) else { break };
        count += 1;
        if let Heard::Request(_, request) = heard {
            let _ = request.ask.operation(UnixSeconds(1_000_000));
        }
    }
    count
}
