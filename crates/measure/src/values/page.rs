//! The page.

use super::Document;
use super::cost::Cost;
use super::growth::Growth;
use super::lost::Lost;
use super::sides::Side;

const PREFACE: &str = "# Long values

`cargo xtask bench values`: a client that knows no map, one connection to one process, one request at a time; all servers and the client on
one machine, which may be shared; all sides take turns, medians of the rounds. CPU is that of all server processes, in milliseconds for each megabyte (10^6 bytes).
Gestalt with every value in chunks (`--striped-above always`) and with none.
";

type Figure = fn(&Cost) -> f64;
const FIGURES: [(&str, Figure); 4] = [
    ("SET: server CPU, ms/MB", |cost| cost.set_ms.median),
    ("GET: server CPU, ms/MB", |cost| cost.get_ms.median),
    ("SET: MB/s", |cost| cost.set_rate.median),
    ("GET: MB/s", |cost| cost.get_rate.median),
];

pub(super) fn render(document: &Document) -> String {
    let mut text = PREFACE.to_owned();
    for (title, figure) in FIGURES {
        costs(&mut text, title, &document.costs, (&Side::PEERS, figure));
    }
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
    for (title, figure) in FIGURES.iter().filter(|_| !document.layouts.is_empty()) {
        costs(&mut text, &format!("Layouts. {title}"), &document.layouts, (&Side::LAYOUTS, *figure));
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
    lost(&mut text, &document.lost);
    growth(&mut text, &document.growth);
    text
}

fn lost(text: &mut String, all: &[Lost]) {
    let Some(first) = all.first() else { return };
    text.push_str(&format!(
        "\n## A node that is lost\n\nSix nodes of `rs(3+2)` on these cores, up to {:.1} GB of values in chunks; one node is killed, and the chunks that it held are made anew at the others, cell by cell \
         (`--repair-by cells`). *Sent*: bytes that nodes send each other for each byte that is made; `k` is 3. A reader reads one value after the other.\n\n\
         | value | reader | made, MB | seconds | GB/s | sent | reader's p99 before, ms | meanwhile, ms |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        first.stored as f64 / 1e9
    ));
    for Lost { len, read, made, seconds, sent, p99_ms, .. } in all {
        let made = *made as f64;
        let p99 = p99_ms.map_or("- | -".to_owned(), |[before, then]| format!("{before:.2} | {then:.2}"));
        let (reader, rate, sent) =
            (if *read { "one" } else { "none" }, made / 1e9 / seconds, *sent as f64 / made);
        text.push_str(&format!(
            "| {len} | {reader} | {:.0} | {seconds:.2} | {rate:.2} | {sent:.2} | {p99} |\n",
            made / 1e6
        ));
    }
}

fn growth(text: &mut String, all: &[Growth]) {
    if all.is_empty() {
        return;
    }
    text.push_str(
        "\n## More nodes\n\nServer CPU of 1 MB at `rs(3+2)`, without what the same processes take when nobody asks anything (the last column, ms in each second).\n\n\
         | nodes | SET, ms/MB | GET, ms/MB | idle |\n| --- | --- | --- | --- |\n",
    );
    for Growth { nodes, set_ms, get_ms, idle_ms } in all {
        text.push_str(&format!("| {nodes} | {} | {} | {idle_ms:.0} |\n", set_ms.median, get_ms.median));
    }
}

/// A table of one figure: lengths down, sides across.
fn costs(text: &mut String, title: &str, costs: &[Cost], (sides, figure): (&[Side], Figure)) {
    text.push_str(&format!("\n## {title}\n\n| bytes |"));
    sides.iter().for_each(|side| text.push_str(&format!(" {} |", side.title())));
    text.push_str(&format!("\n| ---{} |\n", " | ---".repeat(sides.len())));
    let mut lens: Vec<usize> = costs.iter().map(|cost| cost.len).collect();
    lens.dedup();
    for len in lens {
        text.push_str(&format!("| {len} |"));
        for &side in sides {
            let found = costs.iter().find(|cost| cost.len == len && cost.side == side);
            text.push_str(&found.map_or(" - |".to_owned(), |cost| format!(" {} |", figure(cost))));
        }
        text.push('\n');
    }
}
