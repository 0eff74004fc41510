//! The suite of `cargo xtask bench native`: it runs from end to end, and every side of every cell has figures.

use std::fs;

use measure::native::{Arguments, run};
use serde_json::Value;

#[test]
fn the_suite_has_figures_for_every_side_of_every_cell_and_writes_its_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut arguments = Arguments::shortest(dir.path().to_owned());
    arguments.python_library = Some(std::env::current_exe().unwrap().with_file_name("libgestalt_c.so"));
    run(&arguments).unwrap();
    let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let document: Value = serde_json::from_str(&text("native.json")).unwrap();
    let cells = document["cells"].as_array().unwrap();
    assert!(cells.len() > 20, "{} cells", cells.len());
    for cell in cells {
        let sides = cell["sides"].as_object().unwrap();
        assert!(sides.len() >= 3, "{cell}");
        for figures in sides.values() {
            let median = |name: &str| figures[name]["median"].as_f64().unwrap();
            assert!(
                ["kops", "rate", "p50_us", "server_us", "server_ratio"]
                    .map(median)
                    .iter()
                    .all(|of| *of > 0.0),
                "{cell}"
            );
            assert_eq!(figures["failed"], 0, "{cell}");
        }
    }
    let overlaps = document["overlaps"].as_array().unwrap();
    assert_eq!(overlaps.len(), 8, "two languages, two lengths, writes and reads: {overlaps:?}");
    assert!(overlaps.iter().all(|overlap| overlap["pure_us"].as_f64() > Some(0.0)), "{overlaps:?}");
    let python = document["python"].as_array().unwrap();
    assert!(
        python.len() == 8 && python.iter().all(|rate| rate["rate"]["least"].as_f64() > Some(0.0)),
        "{python:?}"
    );
    let clients = document["clients"].as_array().unwrap();
    // libmemcached is not everywhere.
    assert!(clients.len() >= 2 * 8 && clients.len().is_multiple_of(8), "{clients:?}");
    assert!(clients.iter().all(|client| client["cpu_us"]["least"].as_f64() > Some(0.0)), "{clients:?}");
    let page = text("native.md");
    for part in [
        "48 connections",
        "One client, blocking",
        "non-blocking",
        "More clients",
        "Overlap",
        "Python",
        "What clients take",
    ] {
        assert!(page.contains(part), "{part} is missing:\n{page}");
    }
    for plot in page.split("](").filter_map(|rest| rest.split_once(".svg)")).map(|(name, _)| name) {
        assert!(text(&format!("{plot}.svg")).starts_with("<svg"), "{plot}");
    }
}
