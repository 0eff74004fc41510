//! `gestalt codec`: what it lists, that kernels agree, the shape of its figures, and one clear line for bad input.

#![allow(clippy::unwrap_used)] // a panic is how a test reports

use std::process::{Command, Output};

use serde_json::Value;

fn gestalt(args: &[&str], kernel: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gestalt"));
    command.env_remove("GESTALT_CODEC").arg("codec").args(args);
    command.envs(kernel.map(|name| ("GESTALT_CODEC", name))).output().unwrap()
}

/// What it prints when all is well.
fn stdout(args: &[&str], kernel: Option<&str>) -> String {
    let output = gestalt(args, kernel);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["-o", "json"]].concat(), None)).unwrap()
}

/// Exit code 1 and one line that contains all of `parts`.
fn refuses(args: &[&str], parts: &[&str]) {
    let output = gestalt(args, None);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    assert!(output.stdout.is_empty());
    for part in parts {
        assert!(text.contains(part), "{args:?}: '{text}' lacks '{part}'");
    }
}

/// A run of `bench` that takes milliseconds.
fn bench(args: &[&str]) -> Value {
    json(&[&["bench", "--rounds", "3", "--turn", "200us"], args].concat())
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_list_says_which_kernel_was_chosen_and_why() {
    let list = json(&["list"]);
    let chosen = list["chosen"].as_str().unwrap();
    let kernels = list["kernels"].as_array().unwrap();
    assert!(kernels.iter().all(|kernel| kernel["gb_per_second"].as_f64().unwrap() > 0.0));
    assert_eq!(kernels[0]["name"], chosen, "the fastest one");
    assert_eq!(list["chosen_by"], "measured");
    assert!(list["families"].as_array().unwrap().contains(&"lch".into()));
    let text = stdout(&["list"], Some("scalar"));
    assert!(
        text.lines().any(|line| line.starts_with("scalar") && line.ends_with("chosen: GESTALT_CODEC")),
        "{text}"
    );
}

#[test]
fn the_list_says_how_a_code_would_be_encoded() {
    let methods = &json(&["list", "-k", "10", "-m", "4"])["methods"];
    assert!(names(methods, "code").contains(&"lch(10+4)".to_owned()));
    assert_eq!(methods[0]["method"], "matrix");
    // ISA-L's Vandermonde matrix of this size is not MDS, which is said and not an error.
    let text = stdout(&["list", "--code", "rs(30+10)"], None);
    assert!(text.contains("isal-vandermonde(30+10)") && text.contains("not MDS"), "{text}");
    assert_eq!(names(&json(&["list", "--code", "lrc(12,2,2)"])["methods"], "code"), ["lrc(12,2,2)"]);
}

#[test]
fn all_kernels_agree() {
    let verdict = json(&["verify"]);
    assert_eq!(verdict["failures"], 0);
    assert!(verdict["kernels"].as_array().unwrap().contains(&"scalar".into()));
    assert!(names(&verdict["checked"], "family").contains(&"jerasure-cauchy".to_owned()));
}

#[test]
fn figures_have_their_shape() {
    let report = bench(&["--size", "512B,1000B,64KiB-object", "--op", "encode,decode", "--losses", "1,3"]);
    assert!(report["machine"]["kernel"].is_string());
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3 + 6);
    for case in cases {
        assert_eq!(
            (case["k"].as_u64(), case["m"].as_u64(), case["rounds"].as_u64()),
            (Some(10), Some(4), Some(3))
        );
        assert_eq!(case["object_bytes"].as_u64().unwrap(), 10 * case["chunk_bytes"].as_u64().unwrap());
        for figures in [&case["sides"], &case["limits"]] {
            for side in figures.as_array().unwrap() {
                let at = |key: &str| side["gb_per_second"][key].as_f64().unwrap();
                assert!(0.0 < at("min") && at("min") <= at("median") && at("median") <= at("max"), "{side}");
            }
        }
        assert_eq!(
            (case["sides"].as_array().unwrap().len(), case["limits"].as_array().unwrap().len()),
            (2, 4)
        );
    }
    assert_eq!(cases[8]["losses"], 3);
    assert!(cases[0]["losses"].is_null());
}

#[test]
fn kernels_families_and_codes_can_be_chosen() {
    let one = bench(&["-k", "6", "-m", "3", "--family", "lch", "--kernel", "scalar", "--size", "64"]);
    let name = one["cases"][0]["sides"][0]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("lch(6+3) scalar"), "{name}");
    let ops = "encode,decode,delta,copy-encode,checksum-encode";
    let lrc = bench(&["--code", "lrc(12,2,2)", "--op", ops, "--size", "333", "--no-limits"]);
    assert_eq!(names(&lrc["cases"], "op").join(","), ops);
    let threads = bench(&["--threads", "2", "--size", "1MiB"]);
    assert_eq!(threads["cases"][0]["threads"], 2);
    let table = stdout(&["bench", "--rounds", "1", "--turn", "100us", "--size", "4KiB"], None);
    assert!(
        table.contains("XOR of k sources") && table.contains("rs(10+4) encode, chunks of 4096 B"),
        "{table}"
    );
}

#[test]
fn a_sweep_writes_figures_with_their_command() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let args = ["--sweep", "uab", "--quick", "--out", out, "--rounds", "1", "--turn", "100us"];
    json(&[&["bench"], &args[..]].concat());
    let svg = std::fs::read_to_string(dir.path().join("codec-uab-encode.svg")).unwrap();
    assert!(svg.contains("gestalt codec bench --sweep uab --quick"), "{svg}");
    let figure = std::fs::read_to_string(dir.path().join("codec-uab-decode-10-4.json")).unwrap();
    let figure: Value = serde_json::from_str(&figure).unwrap();
    assert_eq!(figure["panel"]["points"][1]["case"]["losses"], 4);
    assert_eq!(gestalt(&["bench", "--quick"], None).status.code(), Some(1));
}

#[test]
fn bad_input_is_one_line() {
    refuses(&["bench", "-k", "200", "-m", "57"], &["k + m <= 256"]);
    refuses(&["bench", "--code", "rs(0+2)"], &["k >= 1"]);
    refuses(&["bench", "--code", "raid5"], &["code 'raid5' is not understood", "rs(3+2)"]);
    refuses(&["bench", "--family", "cauchy"], &["no matrix family 'cauchy'", "isal-cauchy"]);
    refuses(&["bench", "-k", "30", "-m", "10", "--family", "isal-vandermonde"], &["not MDS"]);
    refuses(&["bench", "--code", "lrc(4,2,2)", "--family", "lch"], &["--family is for Reed-Solomon"]);
    refuses(&["bench", "--kernel", "abacus"], &["no kernel 'abacus'", "scalar"]);
    refuses(&["bench", "--against", "leopard"], &["no peer 'leopard'", "klauspost"]);
    refuses(&["bench", "--size", "0"], &["no bytes"]);
    refuses(&["bench", "--size", "lots"], &["'lots' is not a size", "for example"]);
    refuses(&["bench", "--size", "5GiB"], &["more than 4 GiB"]);
    refuses(&["bench", "--op", "decrypt"], &["no operation 'decrypt'", "encode"]);
    refuses(&["bench", "--op", "decode", "--losses", "5"], &["--losses 5", "1 to 4"]);
    refuses(&["bench", "--op", "decode", "--losses", "0"], &["--losses 0"]);
    refuses(&["bench", "--code", "none"], &["no parities"]);
    refuses(&["bench", "--op", "delta", "--threads", "2"], &["--threads"]);
    refuses(&["bench", "--turn", "0s"], &["--turn"]);
    refuses(&["bench", "--rounds", "0"], &["1..=10000"]);
    refuses(&["list", "-k", "1", "-m", "256"], &["k + m <= 256"]);
    refuses(&["verify", "--against", "klauspost"], &["cannot be exchanged"]);
    refuses(
        &["bench", "--sweep", "uab", "--quick", "--rounds", "1", "--turn", "1us", "--out", "/dev/null/x"],
        &["/dev/null/x"],
    );
}

#[cfg(not(feature = "peers"))]
#[test]
fn libraries_that_are_not_built_in_say_how_to_build_them() {
    refuses(&["bench", "--against", "isal"], &["isal is not built in", "--features peers"]);
    refuses(&["verify", "--against", "jerasure"], &["jerasure is not built in", "--features peers"]);
}
