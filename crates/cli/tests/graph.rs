//! `gestalt graph`: what it prints, the shape of its JSON, its picture, and one clear line for bad input.

#![allow(clippy::unwrap_used)] // a panic is how a test reports

use std::process::{Command, Output};

use serde_json::Value;

fn gestalt(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gestalt")).arg("graph").args(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = gestalt(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["-o", "json"]].concat())).unwrap()
}

/// Exit code 1 and one line.
fn refuses(args: &[&str], part: &str) {
    let output = gestalt(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{args:?}: {text}");
    assert!(text.contains(part), "{args:?}: {text}");
}

#[test]
fn a_plan_names_every_step_and_link() {
    let plan = json(&["plan", "--code", "rs(6+3)", "--lost", "1", "--scheme", "chain"]);
    assert_eq!((&plan["scheme"], &plan["depth"]), (&"chain".into(), &6.into()));
    assert_eq!(plan["links"].as_array().unwrap().len(), 6);
    assert_eq!(plan["links"][0]["bytes"], 1 << 20);
    assert_eq!(plan["steps"].as_array().unwrap().len(), 7);
    let text = stdout(&["plan", "--encode", "--scheme", "tri"]);
    assert!(text.contains("recv_ec_send") && text.contains("asker"), "{text}");
}

#[test]
fn an_explanation_has_every_scheme_and_what_is_chosen() {
    let report = json(&["explain", "--code", "rs(10+4)"]);
    let schemes = report["schemes"].as_array().unwrap();
    assert_eq!(schemes.len(), 5);
    let chosen = schemes.iter().find(|line| line["scheme"] == report["chosen"]).unwrap();
    assert!(
        schemes.iter().all(|line| line["cost"].as_f64() >= chosen["cost"].as_f64().map(|cost| 0.99 * cost))
    );
    let text = stdout(&["explain", "--code", "lrc(12,2,2)", "--lost", "0,7", "--repair"]);
    assert!(text.contains("chosen: "), "{text}");
}

#[test]
fn parameters_that_were_printed_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("links.json");
    let report = json(&["explain", "--gbit", "10"]);
    std::fs::write(&path, report["links"].to_string()).unwrap();
    let again = json(&["explain", "--links", path.to_str().unwrap()]);
    assert_eq!(again["schemes"], report["schemes"]);
    std::fs::write(&path, r#"{"slice_us": -1}"#).unwrap();
    refuses(&["explain", "--links", path.to_str().unwrap()], "links.json");
}

#[test]
fn a_picture_has_every_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.svg");
    stdout(&["plan", "--lost", "0", "--scheme", "ppr", "--svg", path.to_str().unwrap()]);
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Gbit/s") && svg.contains("node-6"));
    assert_eq!(svg.matches("rx=\"5\"").count(), 7);
}

#[test]
fn bad_input_is_one_line() {
    refuses(&["plan", "--lost", "0,1,2,3"], "cannot be computed");
    refuses(&["plan", "--lost", "77"], "role");
    refuses(&["plan", "--scheme", "ring"], "no scheme 'ring'");
    refuses(&["plan", "--encode", "--scheme", "ppr"], "no way to encode");
    refuses(&["explain", "--gbit", "0"], "--gbit");
    refuses(&["plan", "--lost", "0", "--to", "1,2"], "--to");
}
