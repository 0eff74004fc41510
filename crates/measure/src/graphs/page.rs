//! The page.

use super::document::{Cell, Document, Filled, Percentiles, Repaired, Worked, Ycsb};
use super::plots::Named;

const PREFACE: &str = "# Coding graphs over a network in virtual time

Executors, planners and the model of the crate `graph` (`cargo xtask bench graphs`); [graphs.md](../graphs.md) says what they are. No process, no socket: a link sends and receives one
slice after the other, 50 µs lie between any two nodes, a process adds up 8 GB of products a second, touches 8 GB a second, and spends 2 µs on each slice that it sends or receives.
Every run starts with the graph's message and ends when the chunk is whole where it is wanted; its bytes are compared with the codec's. Times are virtual, and the same on every machine, but for
the last two tables. What TCP does to flows that share a link, and what the kernel costs, is not in it.
";

pub(super) fn render(document: &Document, plots: &[Named]) -> String {
    let mut text = PREFACE.to_owned();
    for Named { name, plot } in plots {
        text.push_str(&format!("\n![{}]({name})\n", plot.title));
    }
    text.push_str(&repaired(&document.repaired));
    text.push_str(&cells(&document.cells));
    text.push_str(&summary(document));
    text.push_str(&super::claims::section(&document.cells));
    text.push_str(&super::encodes::section(&document.encoded));
    text.push_str(&filled(&document.filled));
    text.push_str(&ycsb(&document.ycsb));
    text.push_str(&own(document));
    text
}

pub(super) fn header(columns: &[&str]) -> String {
    format!("| {} |\n| {} |\n", columns.join(" | "), vec!["---"; columns.len()].join(" | "))
}

const SCHEMES: [&str; 6] = ["star", "lrc", "ppr", "chain", "tri", "auto"];

fn columns<'a>(first: &[&'a str]) -> Vec<&'a str> {
    first.iter().copied().chain(SCHEMES).collect()
}

/// `codes` in the order in which they come.
pub(super) fn codes<'a>(all: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut codes: Vec<&String> = Vec::new();
    for code in all {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

fn repaired(all: &[Repaired]) -> String {
    let mut text = "\n## One lost chunk of 1 MiB at 1 Gbit/s, in times of a plain read of one\n\nTheory: star `k`, ppr `ceil(log2(k + 1))`, chain and tri 1 and what it takes to fill them. In brackets the same incoherently.\n\n".to_owned();
    text.push_str(&header(&columns(&["code", "read"])));
    for code in codes(all.iter().map(|one| &one.code)) {
        let of = |scheme: &&str| all.iter().find(|one| one.code == *code && one.scheme == **scheme);
        let cell =
            |one: &Repaired| format!("{:.2} ({:.2})", one.us / one.read_us, one.incoherent_us / one.read_us);
        let cells: Vec<String> = SCHEMES.iter().filter_map(of).map(cell).collect();
        let read = all.iter().find(|one| one.code == *code).map_or(0.0, |one| one.read_us);
        text.push_str(&format!("| {code} | {} | {} |\n", time(read), cells.join(" | ")));
    }
    text
}

fn cells(all: &[Cell]) -> String {
    let mut text = String::new();
    for code in codes(all.iter().map(|one| &one.code)) {
        text.push_str(&format!("\n## One lost chunk of {code}, by length and bandwidth\n\n"));
        text.push_str(&header(&columns(&["chunk", "Gbit/s"])));
        let of_code: Vec<&Cell> = all.iter().filter(|cell| cell.code == *code).collect();
        for row in of_code.chunks(SCHEMES.len()) {
            let cells: Vec<String> = row.iter().map(|cell| time(cell.us)).collect();
            text.push_str(&format!("| {} | {} | {} |\n", bytes(row[0].len), row[0].gbit, cells.join(" | ")));
        }
    }
    text
}

/// What holds over all cells.
fn summary(document: &Document) -> String {
    let mut text = "\n## Over all of these cells\n\n".to_owned();
    let cells = &document.cells;
    let mut worst: (f64, String) = (0.0, String::new());
    for row in cells.chunks(SCHEMES.len()) {
        let best = row[..SCHEMES.len() - 1].iter().map(|cell| cell.us).fold(f64::MAX, f64::min);
        let auto = &row[SCHEMES.len() - 1];
        if auto.us / best > worst.0 {
            worst = (auto.us / best, format!("{} of {} at {} Gbit/s", auto.code, bytes(auto.len), auto.gbit));
        }
    }
    let mut errors: Vec<f64> = cells.iter().map(|cell| (cell.predicted_us / cell.us - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| 100.0 * errors.get((errors.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    let long: Vec<&Cell> = cells.iter().filter(|cell| cell.len > 64 << 10 && cell.scheme != "auto").collect();
    let slower = long.iter().filter(|cell| cell.us > cell.incoherent_us).count();
    let gain = long.iter().map(|cell| cell.incoherent_us / cell.us);
    let (least, most) =
        gain.fold((f64::MAX, 0.0f64), |(least, most), gain| (least.min(gain), most.max(gain)));
    text.push_str(&format!(
        "- `auto` is at most {:.1} % slower than the best scheme ({}).\n",
        100.0 * (worst.0 - 1.0),
        worst.1
    ));
    text.push_str(&format!(
        "- The model is off by {:.1} % in the median, {:.1} % in nine of ten cells, {:.1} % at most.\n",
        at(0.5),
        at(0.9),
        at(0.999_999)
    ));
    text.push_str(&format!(
        "- Beyond 64 KiB, of {} cells {slower} are slower coherently; incoherently they take {least:.2} to {most:.2} times as long.\n",
        long.len()
    ));
    text
}

fn filled(all: &[Filled]) -> String {
    let mut text = "\n## A holder is filled: rs(6+3), chunks of 1 MiB of groups all over the cluster, eight at a time, in MiB a second\n\n".to_owned();
    let schemes = codes(all.iter().map(|one| &one.scheme));
    let names: Vec<&str> =
        ["nodes", "Gbit/s"].into_iter().chain(schemes.iter().map(|name| name.as_str())).collect();
    text.push_str(&header(&names));
    for row in all.chunks(schemes.len().max(1)) {
        let cells: Vec<String> = row.iter().map(|one| format!("{:.1}", one.mib_per_s)).collect();
        text.push_str(&format!("| {} | {} | {} |\n", row[0].nodes, row[0].gbit, cells.join(" | ")));
    }
    text
}

const YCSB: &str = "\n## YCSB, after figures 9 to 14 of INEC\n
As many nodes as a stripe has chunks, 10 Gbit/s, 16 clients in closed loops, 256 keys by Zipf (0.99), workloads A (half of all are updates), B (one of twenty) and C (none). In figures 9 to 13 one read of
a hundred is degraded, in bursts (Weibull, shape 0.75); in figure 14 all are. Updates are encoded by the writer, by `tri` with that scheme. A degraded read gets the whole value, *lost* of whose data chunks have to be made. Each cell:
p50 / p95 / p99, and how much of the incoherent p50 the coherent one is. Both ways are as fast here: a chunk of such a value is one slice, so there is nothing to
overlap. What the paper gains at these lengths (up to 99.6 % more operations a second, 47 % less for updates and 50 % less for degraded reads) is what a SmartNIC saves in
context switches and copies, which is not in it. `auto` takes the star, which is the fastest at these lengths.\n\n";

fn ycsb(all: &[Ycsb]) -> String {
    let mut text = YCSB.to_owned();
    text.push_str(&header(&[
        "figure",
        "code",
        "scheme",
        "workload",
        "value",
        "lost",
        "updates, µs",
        "degraded reads, µs",
        "operations a second",
        "of incoherent",
    ]));
    for one in all {
        let (ours, theirs) = (&one.coherent, &one.incoherent);
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.0} | {:.2} |\n",
            one.figure,
            one.code,
            one.scheme,
            one.workload,
            bytes(one.value_len),
            one.lost,
            beside(&ours.updates, &theirs.updates),
            beside(&ours.degraded, &theirs.degraded),
            ours.operations_per_s,
            ours.operations_per_s / theirs.operations_per_s
        ));
    }
    text.push_str("\nWhat the nodes of figures 9 to 13 take for a primitive, from when they have the graph to the last slice: the counterpart of the paper's nodes A (`ec_send`), B (`recv_ec_send`) and C (`recv_ec`).\n\n");
    text.push_str(&header(&["figure", "scheme", "ec_send, µs", "recv_ec_send, µs", "recv_ec, µs"]));
    for one in all.iter().filter(|one| one.figure != "14") {
        let pairs = one.coherent.worked.iter().zip(&one.incoherent.worked);
        let cells: Vec<String> =
            pairs.map(|(ours, theirs): (&Worked, &Worked)| beside(&ours.us, &theirs.us)).collect();
        text.push_str(&format!("| {} | {} | {} |\n", one.figure, one.scheme, cells.join(" | ")));
    }
    text
}

/// Coherent times, and how much of the incoherent median theirs is.
fn beside(ours: &Percentiles, theirs: &Percentiles) -> String {
    if ours.count == 0 {
        return "-".to_owned();
    }
    format!("{:.0} / {:.0} / {:.0} ({:.2})", ours.p50, ours.p95, ours.p99, ours.p50 / theirs.p50)
}

/// What this processor was seen to take.
fn own(document: &Document) -> String {
    let mut text = "\n## Planning, on one processor of a machine that may be shared\n\nOne lost chunk, whose helpers are among 100 nodes with values of their own; slices chosen, time predicted. `cargo xtask bench graphs --planning` says only this.\n\n".to_owned();
    text.push_str(&header(&columns(&["code"])));
    for code in codes(document.planning.iter().map(|one| &one.code)) {
        let of_code = document.planning.iter().filter(|one| one.code == *code);
        let cells: Vec<String> = of_code.map(|one| format!("{:.1} µs", one.us)).collect();
        text.push_str(&format!("| {code} | {} |\n", cells.join(" | ")));
    }
    text.push_str("\n## Combining, on one processor of a machine that may be shared\n\nAll executors of a graph for one chunk of 1 MiB in slices of 64 KiB, beside a star of identities that moves `k` chunks: nanoseconds for each byte repaired, medians of turns. The network's queue is in both.\n\n");
    text.push_str(&header(&["code", "scheme", "repair", "identities", "ratio"]));
    for one in &document.combining {
        text.push_str(&format!(
            "| {} | {} | {:.3} | {:.3} | {:.2} |\n",
            one.code,
            one.scheme,
            one.ns_per_byte,
            one.identities_ns_per_byte,
            one.ns_per_byte / one.identities_ns_per_byte
        ));
    }
    text
}

pub(super) fn bytes(len: u32) -> String {
    if len >= 1 << 20 { format!("{} MiB", len >> 20) } else { format!("{} KiB", len >> 10) }
}

pub(super) fn time(us: f64) -> String {
    if us < 1_000.0 { format!("{us:.0} µs") } else { format!("{:.2} ms", us / 1e3) }
}
