//! Inputs that have been worth keeping, from fuzzing and from other people's bugs: every file under `tests/corpus` is
//! replayed. A new find is saved there as it came.

use std::path::Path;

use bytes::BytesMut;
use wire::frame::Decoder;

/// The files of a folder of the corpus, by name.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let entries = std::fs::read_dir(&path).expect("the corpus is part of the repository");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("readable")))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn frame_inputs_do_not_panic() {
    for (name, bytes) in files("frames") {
        let (mut decoder, mut buffer) = (Decoder::new(types::ClusterId(0)), BytesMut::from(&bytes[..]));
        while let Ok(Some(_)) = decoder.next(&mut buffer) {}
        assert!(buffer.len() <= bytes.len(), "{name}");
    }
}
