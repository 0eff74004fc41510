//! The worked examples of docs/native-protocol.md are what this code says and understands, byte for byte, and its tables are complete.

use std::collections::BTreeMap;

use bytes::BytesMut;
use native::{Code, Decoder, FromClient, FromServer, Kind, NEWEST_VERSION, OLDEST_VERSION, Reason};

use crate::maps;
use crate::samples::{of_clients, of_servers};

const DOCUMENT: &str = include_str!("../../../../docs/native-protocol.md");

/// The examples of the document, by their names: lines `name: hexadecimal digits` in blocks of their own; a line that begins with spaces
/// goes on with the one before.
fn examples() -> BTreeMap<String, Vec<u8>> {
    let mut examples = BTreeMap::new();
    let mut last = String::new();
    let blocks = DOCUMENT.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("frames\n"));
    for line in blocks.flat_map(str::lines) {
        let digits = match line.split_once(": ") {
            Some((name, digits)) => {
                last = name.to_owned();
                assert!(examples.insert(last.clone(), Vec::new()).is_none(), "{name} is there twice");
                digits
            }
            None => line,
        };
        let digits: String = digits.split_whitespace().collect();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        let bytes = (0..digits.len()).step_by(2).map(byte);
        examples.get_mut(&last).expect("a name first").extend(bytes);
    }
    examples
}

/// As the document has it.
fn printed(name: &str, bytes: &[u8]) -> String {
    let words: Vec<String> =
        bytes.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    format!("{name}: {}", words.chunks(8).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n  "))
}

fn all() -> Vec<(&'static str, Vec<u8>)> {
    let bytes = |put: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        put(&mut out);
        out
    };
    let clients = of_clients();
    let servers = of_servers();
    let mut all: Vec<_> = clients.iter().map(|(name, one)| (*name, bytes(&|out| one.put(out)))).collect();
    all.extend(servers.iter().map(|(name, one)| (*name, bytes(&|out| one.put(out)))));
    all.push(("map", bytes(&|out| maps::small().put(out))));
    all
}

#[test]
fn the_examples_of_the_document_are_what_is_said() {
    let (examples, all) = (examples(), all());
    let wrong: Vec<String> = all
        .iter()
        .filter(|(name, bytes)| examples.get(*name) != Some(bytes))
        .map(|(name, bytes)| printed(name, bytes))
        .collect();
    assert!(wrong.is_empty(), "the document should have:\n{}", wrong.join("\n"));
    assert_eq!(examples.len(), all.len(), "the document has others, too");
}

#[test]
fn the_examples_of_the_document_are_understood() {
    let examples = examples();
    let frame = |name: &str| {
        let mut bytes = BytesMut::from(&examples[name][..]);
        let frame = Decoder::next(&mut bytes).expect("a frame").expect("all of it");
        assert!(bytes.is_empty(), "{name}");
        frame
    };
    for (name, message) in of_clients() {
        assert_eq!(FromClient::take(frame(name)), Ok(message), "{name}");
    }
    for (name, message) in of_servers() {
        assert_eq!(FromServer::take(frame(name)), Ok(message), "{name}");
    }
}

/// The rows of the table below this heading: number and name.
fn table(heading: &str) -> Vec<(u8, String)> {
    let (_, section) = DOCUMENT.split_once(&format!("\n## {heading}\n")).expect("a section");
    let section = section.split("\n## ").next().expect("a text");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number = cells.next()?.parse().ok()?;
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((number, name.to_owned()))
    };
    section.lines().filter_map(row).collect()
}

#[test]
fn the_tables_have_every_kind_code_and_reason() {
    let kinds = Kind::ALL.iter().map(|kind| (*kind as u8, format!("{kind:?}"))).collect::<Vec<_>>();
    assert_eq!(table("Frames"), kinds);
    let codes = Code::ALL.iter().map(|code| (*code as u8, format!("{code:?}"))).collect::<Vec<_>>();
    assert_eq!(table("Codes"), codes);
    let reasons = Reason::ALL.iter().map(|reason| (*reason as u8, format!("{reason:?}"))).collect::<Vec<_>>();
    assert_eq!(table("Why a server closes"), reasons);
    for code in Code::ALL {
        let row =
            DOCUMENT.lines().find(|line| line.starts_with(&format!("| {} | `{code:?}` |", *code as u8)));
        let again = row.is_some_and(|row| row.ends_with("| yes |"));
        assert_eq!(again, code.may_repeat(), "{code:?}");
    }
}

#[test]
fn frames_of_every_released_version_are_still_understood() {
    // The examples are those of version 1. A second version keeps them here, and adds its own.
    assert_eq!((OLDEST_VERSION, NEWEST_VERSION), (1, 1));
    let mut hello = BytesMut::from(&examples()["hello"][..]);
    let frame = Decoder::next(&mut hello).unwrap().unwrap();
    let Ok(FromClient::Hello(hello)) = FromClient::take(frame) else { panic!("no hello") };
    assert_eq!(native::agree(&hello), Some(1));
    let later = |oldest, newest| native::agree(&native::Hello { oldest, newest, ..hello });
    assert_eq!([later(1, 9), later(2, 9), later(0, 0)], [Some(1), None, None]);
}
