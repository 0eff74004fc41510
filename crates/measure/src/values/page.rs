//! The page.

use super::Document;
use super::cost::Cost;
use super::sides::Side;

const PREFACE: &str = "# Long values

`cargo xtask bench values`: a client that knows no map, one connection to one process, one request at a time; all servers and the client on
one machine, which may be shared; all sides take turns, medians of the rounds. CPU is that of all server processes, in milliseconds for each megabyte (10^6 bytes).
Gestalt with every value in chunks (`--striped-above always`) and with none.
";

pub(super) fn render(document: &Document) -> String {
    let mut text = PREFACE.to_owned();
    costs(&mut text, "SET: server CPU, ms/MB", &document.costs, |cost| cost.set_ms.median);
    costs(&mut text, "GET: server CPU, ms/MB", &document.costs, |cost| cost.get_ms.median);
    costs(&mut text, "SET: MB/s", &document.costs, |cost| cost.set_rate.median);
    costs(&mut text, "GET: MB/s", &document.costs, |cost| cost.get_rate.median);
    if let Some(floor) = &document.floor {
        text.push_str(&format!(
            "\nPlain sockets over the loopback in the same run: {} ms/MB to send, {} to receive. So those that move the bytes of a GET by way of a node that \
             has a fifth of them take {:.2} ms/MB at the servers' side, and those of a SET {:.2}.\n",
            floor.send_ms.median,
            floor.receive_ms.median,
            floor.get(),
            floor.set()
        ));
    }
    if !document.large.is_empty() {
        text.push_str("\n## One large value\n\n| | bytes | set, MB/s | get, MB/s | first byte, ms |\n| --- | --- | --- | --- | --- |\n");
        for large in &document.large {
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                large.side.title(),
                large.len,
                large.set_rate.median,
                large.get_rate.median,
                large.first_ms.median
            ));
        }
    }
    if !document.stored.is_empty() {
        text.push_str("\n## Memory\n\nResident bytes of all processes for each byte of a value.\n\n| profile | value | resident | (k+m)/k | ratio |\n| --- | --- | --- | --- | --- |\n");
        for stored in &document.stored {
            text.push_str(&format!(
                "| {} | {} | {:.3} | {:.3} | {:.3} |\n",
                stored.profile,
                stored.len,
                stored.resident,
                stored.least,
                stored.resident / stored.least
            ));
        }
    }
    if !document.degraded.is_empty() {
        text.push_str("\n## Reads with nodes less\n\n1 MB, `rs(3+2)`, five nodes, none to spare.\n\n| nodes lost | p50, ms | p99, ms |\n| --- | --- | --- |\n");
        for degraded in &document.degraded {
            text.push_str(&format!(
                "| {} | {:.2} | {:.2} |\n",
                degraded.lost, degraded.p50_ms, degraded.p99_ms
            ));
        }
    }
    text
}

/// A table of one figure: lengths down, sides across.
fn costs(text: &mut String, title: &str, costs: &[Cost], figure: fn(&Cost) -> f64) {
    text.push_str(&format!("\n## {title}\n\n| bytes |"));
    Side::ALL.iter().for_each(|side| text.push_str(&format!(" {} |", side.title())));
    text.push_str(&format!("\n| ---{} |\n", " | ---".repeat(Side::ALL.len())));
    let mut lens: Vec<usize> = costs.iter().map(|cost| cost.len).collect();
    lens.dedup();
    for len in lens {
        text.push_str(&format!("| {len} |"));
        for side in Side::ALL {
            let found = costs.iter().find(|cost| cost.len == len && cost.side == side);
            text.push_str(&found.map_or(" - |".to_owned(), |cost| format!(" {} |", figure(cost))));
        }
        text.push('\n');
    }
}
