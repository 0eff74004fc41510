//! The header beside the code.

#[path = "../../../codec-c/tests/declarations/mod.rs"]
mod declarations;

use std::fs;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use gestalt_c::Status;
use gestalt_c::structs::{Call, Event, Options, Outcome, Part, Place, Span};

use declarations::{declarations, flat};

use crate::programs::{CRATE, Program, library};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(CRATE).join(path)).expect("a file of this crate")
}

/// What C calls a type, by the name of the parameter where the type does not say it.
fn c_type(name: &str, rust: &str) -> &'static str {
    match (rust, name) {
        ("u64", "client") => "gestalt_client ",
        ("u64", "queue") => "gestalt_queue ",
        ("u64", "request") => "gestalt_request ",
        ("u64", "scan") => "gestalt_scan ",
        ("*mut u64", "scan") => "gestalt_scan *",
        ("*mut u64", "client") => "gestalt_client *",
        ("*mut u64", "queue") => "gestalt_queue *",
        ("*mut u64", "request" | "requests") => "gestalt_request *",
        ("*const u64", "requests") => "const gestalt_request *",
        _ => plain_type(rust),
    }
}

fn plain_type(rust: &str) -> &'static str {
    match rust {
        "u32" => "uint32_t ",
        "u64" => "uint64_t ",
        "i64" => "int64_t ",
        "usize" => "size_t ",
        "c_int" => "int ",
        "*mut c_int" => "int *",
        "*mut usize" => "size_t *",
        "*const c_char" => "const char *",
        "*const c_void" => "const void *",
        "*mut c_void" => "void *",
        "*const Options" => "const gestalt_options *",
        "*const Call" => "const gestalt_call *",
        "*const Part" => "const gestalt_part *",
        "*mut Outcome" => "gestalt_outcome *",
        "*mut Event" => "gestalt_event *",
        "*mut Place" => "gestalt_place *",
        "*mut Span" => "gestalt_span *",
        other => panic!("C has no name for {other}"),
    }
}

const ABI: [&str; 5] = ["clients", "requests", "waiting", "queues", "scans"];

fn names() -> Vec<String> {
    let files = ABI.map(|file| flat(&read(&format!("src/abi/{file}.rs"))));
    files.iter().flat_map(|file| declarations(file, c_type)).collect()
}

#[test]
fn the_header_declares_every_function_as_it_is() {
    let header = flat(&read("include/gestalt.h"));
    let functions = names();
    assert!(functions.len() > 30);
    for function in &functions {
        assert!(header.contains(function.as_str()), "the header has not: {function}");
    }
    let declared = header.split(" gestalt_").filter(|rest| {
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        rest[name.len()..].starts_with('(')
    });
    let pointers = header.matches(" *gestalt_").count();
    assert_eq!(declared.count() + pointers, functions.len());
}

#[test]
fn the_header_has_every_code_and_the_abi() {
    let header = read("include/gestalt.h");
    let has = |line: &str| header.lines().any(|found| found.split(" /*").next() == Some(line.trim_end()));
    let has = |line: &str| {
        has(line) || header.lines().any(|found| found.split("/*").next().map(str::trim_end) == Some(line))
    };
    for status in Status::ALL {
        let mut name = String::new();
        for letter in status.name().to_str().expect("a name").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(letter.to_uppercase());
        }
        let line = format!("#define GESTALT_{name} {}", *status as i32);
        assert!(has(&line), "the header has not: {line}");
    }
    assert!(has(&format!("#define GESTALT_ABI {}", gestalt_c::abi::GESTALT_ABI)));
}

/// What the header declares, without comments and spaces: FNV-1a of it, 64 bits.
fn fingerprint(header: &str) -> u64 {
    let mut declared = String::new();
    let mut rest = header;
    while let Some((code, comment)) = rest.split_once("/*") {
        declared.push_str(code);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    let bytes = declared.bytes().chain(rest.bytes()).filter(|byte| !byte.is_ascii_whitespace());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Whoever changes a declaration gives the interface its next number, and writes both down here.
#[test]
fn the_abi_is_another_when_a_declaration_is() {
    let header = read("include/gestalt.h");
    assert_eq!((gestalt_c::abi::GESTALT_ABI, fingerprint(&header)), (3, 6_171_602_527_908_696_193));
    assert_eq!(fingerprint("int /* x */ a;\n/* y */\n"), fingerprint("int a;"));
}

/// What a tool says of the shared library.
fn told_by(tool: &str, option: &str) -> String {
    let told = Command::new(tool).arg(option).arg(library("libgestalt_c.so")).output().expect("binutils");
    String::from_utf8(told.stdout).expect("text")
}

#[test]
fn the_shared_library_has_these_functions_and_no_others_and_is_named_after_the_abi() {
    let symbols = told_by("nm", "-D");
    let defined = symbols.lines().filter_map(|line| line.split_once(" T ").map(|(_, name)| name));
    let mut defined: Vec<&str> = defined.collect();
    let functions = names();
    let mut declared: Vec<&str> = functions
        .iter()
        .map(|function| {
            let name = function.split('(').next().expect("a name");
            name.rsplit([' ', '*']).next().expect("a name")
        })
        .collect();
    defined.sort_unstable();
    declared.sort_unstable();
    assert_eq!(defined, declared);
    let name = format!("[libgestalt.so.{}]", gestalt_c::abi::GESTALT_ABI);
    assert!(told_by("readelf", "-d").contains(&name));
}

/// A struct's name in C, its length, and where its fields are.
type Shape = (&'static str, usize, Vec<(&'static str, usize)>);

macro_rules! shape {
    ($name:literal, $type:ty, $($field:ident),*) => {
        ($name, size_of::<$type>(), vec![$((stringify!($field), offset_of!($type, $field))),*])
    };
}

fn shapes() -> Vec<Shape> {
    vec![
        shape!("gestalt_options", Options, size, set, timeout_ms, window, max_requests),
        shape!(
            "gestalt_call",
            Call,
            size,
            set,
            queue,
            tag,
            timeout_ms,
            version,
            offset,
            length,
            initial,
            flags,
            ttl
        ),
        shape!("gestalt_part", Part, key, key_len, buffer, buffer_len),
        shape!(
            "gestalt_outcome",
            Outcome,
            code,
            flags,
            tag,
            data,
            len,
            needed,
            value_len,
            version,
            number,
            ttl,
            idle,
            was_read,
            chunk_len,
            data_chunks,
            layout
        ),
        shape!("gestalt_event", Event, request, tag, code, reserved),
        shape!("gestalt_place", Place, slot, group, role, primary),
        shape!("gestalt_span", Span, start, len, cell_len, node_count, nodes),
    ]
}

#[test]
fn structs_lie_in_memory_as_the_header_has_them() {
    let mut source = "#include \"gestalt.h\"\n".to_owned();
    let mut count = 0;
    let mut claim = |claim: String| {
        count += 1;
        source.push_str(&format!("typedef char claim_{count}[{claim} ? 1 : -1];\n"));
    };
    for (name, size, fields) in shapes() {
        claim(format!("sizeof({name}) == {size}"));
        for (field, offset) in fields {
            claim(format!("offsetof({name}, {field}) == {offset}"));
        }
    }
    source.push_str("int main(void) { return gestalt_abi() == GESTALT_ABI ? 0 : 1; }\n");
    Program::of_text("shapes", &source).run(&[]);
}
