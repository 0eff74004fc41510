//! The header says what the library does: each declaration is that of a function here, to the type, and a program in C that uses them all
//! runs, under AddressSanitizer where the compiler has it.

mod declarations;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use declarations::{declarations, flat};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(CRATE).join(path)).expect("a file of this crate")
}

/// What C calls a type.
fn c_type(_: &str, rust: &str) -> &'static str {
    match rust {
        "u32" => "uint32_t ",
        "u64" => "uint64_t ",
        "usize" => "size_t ",
        "c_int" => "int ",
        "*const c_char" => "const char *",
        "*const u8" => "const uint8_t *",
        "*mut u8" => "uint8_t *",
        "*const u32" => "const uint32_t *",
        "*mut u32" => "uint32_t *",
        "*mut usize" => "size_t *",
        "*const *const u8" => "const uint8_t *const *",
        "*const *mut u8" => "uint8_t *const *",
        "*const Coder" => "const gestalt_codec *",
        "*mut Coder" => "gestalt_codec *",
        "*mut *mut Coder" => "gestalt_codec **",
        other => panic!("C has no name for {other}"),
    }
}

#[test]
fn the_header_declares_every_function_as_it_is() {
    let source = flat(&read("src/abi.rs"));
    let header = flat(&read("include/gestalt_codec.h"));
    let functions: Vec<String> = declarations(&source, c_type);
    assert!(functions.len() >= 15);
    for function in &functions {
        assert!(header.contains(function.as_str()), "the header has not: {function}");
    }
    assert_eq!(header.matches("gestalt_codec_").count() - header.matches("by gestalt_codec_").count(), {
        functions.len()
    });
}

#[test]
fn the_header_has_every_status() {
    let header = read("include/gestalt_codec.h");
    let source = read("src/status.rs");
    let body = source.split("enum Status {").nth(1).expect("the enum").split('}').next().expect("its end");
    let mut count = 0;
    for entry in body.lines().filter_map(|line| line.trim().strip_suffix(',')) {
        let (name, number) = entry.split_once(" = ").expect("a number");
        let line = format!("#define GESTALT_CODEC_{} {number}", name.to_uppercase());
        assert!(header.lines().any(|found| found.starts_with(&line)), "the header has not: {line}");
        count += 1;
    }
    assert_eq!(count, 9);
}

/// The library that was built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    test.with_file_name("libgestalt_codec.a")
}

#[test]
fn a_program_in_c_does_everything() {
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("everything");
    let build = |options: &[&str]| {
        let mut cc = Command::new("cc");
        cc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"]).args(options);
        cc.arg("-o")
            .arg(&program)
            .arg(format!("-I{CRATE}/include"))
            .arg(format!("{CRATE}/tests/c/everything.c"));
        cc.arg(library()).args(["-lpthread", "-ldl", "-lm"]);
        cc.output().expect("a C compiler")
    };
    let mut built = build(&["-fsanitize=address,undefined", "-fno-sanitize-recover"]);
    if !built.status.success() {
        println!("without AddressSanitizer: {}", String::from_utf8_lossy(&built.stderr));
        built = build(&[]);
    }
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut run = Command::new(&program);
    if std::env::var_os("GESTALT_REQUIRE_CUDA").is_some() {
        // A card's driver keeps things until the process ends.
        run.env("ASAN_OPTIONS", "detect_leaks=0");
    }
    let ran = run.output().expect("the program");
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
}
