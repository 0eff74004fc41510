//! Records of coordinators: read back as they were written, and told from everything else.

use proptest::prelude::*;
use wire::frame::BadBody;
use wire::record::{HEAD_KEY, MAGIC, NotARecord, RECORD_VERSION, Record};

use crate::samples::Gen;

/// Bytes with a valid frame around any body.
fn sealed(version: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(version);
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn sample(seed: u64) -> (Record, String, Vec<u8>) {
    let record: Record = Gen::new(seed).of();
    let (key, bytes) = (record.key(), record.encode().expect("samples fit"));
    (record, key, bytes)
}

fn why(key: &str, bytes: &[u8]) -> NotARecord {
    let bad = Record::decode(key, bytes).expect_err("this is no record");
    assert_eq!(bad.key, key);
    assert!(bad.to_string().contains(key), "{bad}");
    bad.why
}

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(seed: u64) {
        let (record, key, bytes) = sample(seed);
        prop_assert_eq!(Record::decode(&key, &bytes), Ok(record));
    }

    #[test]
    fn a_damaged_record_is_never_another_one(seed: u64, at: prop::sample::Index, flip in 1u8..) {
        let (_, key, mut bytes) = sample(seed);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(Record::decode(&key, &bytes).is_err());
    }

    #[test]
    fn a_record_with_bytes_of_another_is_neither(seed: u64, other: u64, at: prop::sample::Index) {
        let ((one, key, mut bytes), (_, _, others)) = (sample(seed), sample(other));
        let at = at.index(bytes.len().min(others.len()));
        bytes.splice(at.., others[at..].iter().copied());
        if let Ok(read) = Record::decode(&key, &bytes) {
            prop_assert!(read == one || bytes == others);
        }
    }

    #[test]
    fn a_record_that_is_cut_short_is_none(seed: u64, at: prop::sample::Index) {
        let (_, key, bytes) = sample(seed);
        prop_assert!(Record::decode(&key, &bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn any_body_with_a_right_checksum_is_a_record_or_an_error(body: Vec<u8>) {
        let bytes = sealed(RECORD_VERSION, &body);
        if let Ok(record) = Record::decode(HEAD_KEY, &bytes) {
            prop_assert_eq!(record.encode().expect("what was read can be written"), bytes);
        }
    }

    #[test]
    fn garbage_is_told_from_a_record(bytes: Vec<u8>) {
        prop_assert!(Record::decode(HEAD_KEY, &bytes).is_err());
    }
}

#[test]
fn each_reason_has_its_error() {
    let (_, key, bytes) = sample(1);
    assert_eq!(why(&key, b""), NotARecord::Magic);
    assert_eq!(why(&key, b"{\"json\": true}"), NotARecord::Magic);
    assert_eq!(why(&key, &sealed(RECORD_VERSION + 1, b"")), NotARecord::Version(RECORD_VERSION + 1));
    assert_eq!(why(&key, &bytes[..bytes.len() - 1]), NotARecord::Checksum);
    assert_eq!(why(&key, &sealed(RECORD_VERSION, b"")), NotARecord::Body(BadBody::Truncated));
    assert_eq!(why(&key, &sealed(RECORD_VERSION, &[9])), NotARecord::Body(BadBody::Tag(9)));
    let trailing = [&bytes[5..bytes.len() - 4], &[0]].concat();
    assert_eq!(why(&key, &sealed(RECORD_VERSION, &trailing)), NotARecord::Body(BadBody::Trailing));
    assert_eq!(why("view/99999999", &bytes), NotARecord::Key(key));
}
