//! The conformance suite that clients in all languages pass.

use serde_json::Value as Json;

use crate::harness::Cluster;
use crate::programs::{Program, uri};

const STEPS: &str = include_str!("../../../gestalt/conformance/steps.json");

/// A step as the program reads it.
fn line(step: &Json) -> String {
    let field = |name: &str| match &step[name] {
        Json::Null => "-".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let range = |at: usize| step["range"].get(at).map_or("-".to_owned(), Json::to_string);
    let [op, key, value, fill, flags] = ["op", "key", "value", "fill", "flags"].map(field);
    let [version, delta, ttl] = ["version", "delta", "ttl"].map(field);
    [op, key, value, fill, flags, range(0), range(1), version, delta, ttl].join("\t")
}

#[test]
fn the_conformance_suite_passes() {
    let cluster = Cluster::start();
    let steps: Vec<Json> = serde_json::from_str(STEPS).expect("a list of steps");
    assert!(steps.len() > 30);
    let input: String = steps.iter().map(|step| line(step) + "\n").collect();
    let said = Program::of("conformance.c").filter(&[&uri(&cluster, 0)], &input);
    let said: Vec<Json> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(said.len(), steps.len());
    for (step, got) in steps.iter().zip(said) {
        // C has one list of codes.
        let wanted = match step["expect"]["error"].as_str() {
            Some(error) => serde_json::json!({ "code": error }),
            None => step["expect"].clone(),
        };
        assert_eq!(got, wanted, "{step}");
    }
}
