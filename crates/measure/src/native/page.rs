//! The page: tables of everything in the document.

use std::fmt::Write as _;

use super::cells::{CROWD, Cell, Side, USUAL, Work, size};
use super::clients::Client;
use super::document::{Document, Figures, Measured};
use super::ycsb;
use crate::spread::Spread;

/// What is above the tables.
const PREFACE: &str = include_str!("preface.md");

type Pick = fn(&Figures) -> String;

/// As markdown.
pub fn render(document: &Document) -> String {
    let mut page = PREFACE.to_owned();
    let command = format!("cargo xtask bench native {}", document.command);
    let _ = writeln!(page, "Machine: {}. Last run: `{}`.\n", document.machine, command.trim_end());
    crowded(document, &mut page);
    for (title, blocks) in [("blocking", true), ("non-blocking", false)] {
        by_size(document, title, blocks, &mut page);
    }
    by_clients(document, &mut page);
    overlaps(document, &mut page);
    python(document, &mut page);
    clients(document, &mut page);
    modes(document, &mut page);
    scans(document, &mut page);
    ycsb(document, &mut page);
    failures(document, &mut page);
    page
}

fn table(page: &mut String, header: &[String], rows: &[Vec<String>]) {
    let _ = writeln!(page, "| {} |\n|{}", header.join(" | "), " --- |".repeat(header.len()));
    for row in rows {
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page.push('\n');
}

/// One row for each cell, one column for each side that any of them has.
fn compare(document: &Document, page: &mut String, first: &str, cells: &[(String, &Measured)], pick: Pick) {
    let has = |side: &Side| cells.iter().any(|(_, measured)| measured.sides.contains_key(side));
    let sides: Vec<Side> = Side::ALL.into_iter().filter(has).collect();
    let title = |side: &Side| match side {
        Side::Memcached if !document.memcached.is_empty() => document.memcached.clone(),
        side => side.title().to_owned(),
    };
    let header: Vec<String> = std::iter::once(first.to_owned()).chain(sides.iter().map(title)).collect();
    let figure = |measured: &Measured, side| measured.sides.get(side).map_or_else(|| "-".to_owned(), pick);
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|(name, measured)| {
            std::iter::once(name.clone()).chain(sides.iter().map(|side| figure(measured, side))).collect()
        })
        .collect();
    table(page, &header, &rows);
}

fn crowded(document: &Document, page: &mut String) {
    let of = |measured: &&Measured| measured.cell.clients == CROWD;
    let name = |cell: &Cell| format!("{}, depth {}", cell.work.title(), cell.depth);
    let cells = named(document.cells.iter().filter(of), name);
    if cells.is_empty() {
        return;
    }
    let _ = writeln!(page, "## {CROWD} connections, values of {}\n", size(USUAL));
    page.push_str("In brackets: native's as a multiple of this side's.\n\n");
    compare(document, page, "server CPU, µs/op", &cells, |figures| {
        with_ratio(figures.server_us.median, figures.server_ratio.median)
    });
    compare(document, page, "client CPU, µs/op", &cells, |figures| short(figures.client_us.median));
    compare(document, page, "p50 / p99, µs", &cells, |figures| {
        let p99 = with_ratio(figures.p99_us.median, figures.p99_ratio.median);
        format!("{} / {p99}", short(figures.p50_us.median))
    });
    compare(document, page, "kops/s", &cells, |figures| short(figures.kops.median));
}

fn by_size(document: &Document, title: &str, blocks: bool, page: &mut String) {
    let _ = writeln!(page, "## One client, {title}\n");
    for work in Work::ALL {
        let of = |measured: &&Measured| {
            let Cell { clients, depth, work: its, .. } = measured.cell;
            clients == 1 && (depth == 1) == blocks && its == work
        };
        let name = |cell: &Cell| match cell.depth {
            1 => size(cell.value),
            depth => format!("{}, {depth} in flight", size(cell.value)),
        };
        let cells = named(document.cells.iter().filter(of), name);
        if cells.is_empty() {
            continue;
        }
        compare(document, page, &format!("{}: p50, µs", work.title()), &cells, |f| short(f.p50_us.median));
        compare(document, page, &format!("{}: MB/s", work.title()), &cells, |f| short(f.rate.median));
        compare(document, page, &format!("{}: server CPU, µs/op", work.title()), &cells, |figures| {
            with_ratio(figures.server_us.median, figures.server_ratio.median)
        });
    }
    if blocks {
        page.push_str(
            "![latency of GET](native-latency-get.svg)\n![latency of SET](native-latency-set.svg)\n\n",
        );
    } else {
        page.push_str("![rate of GET](native-rate-get.svg)\n![rate of SET](native-rate-set.svg)\n\n");
    }
}

fn by_clients(document: &Document, page: &mut String) {
    let _ = writeln!(page, "## More clients, blocking, values of {}\n", size(USUAL));
    for work in Work::ALL {
        let of = |measured: &&Measured| {
            let Cell { value, depth, clients, work: its } = measured.cell;
            value == USUAL && depth == 1 && clients != CROWD && its == work
        };
        let cells = named(document.cells.iter().filter(of), |cell| cell.clients.to_string());
        if !cells.is_empty() {
            compare(document, page, &format!("{}: clients, kops/s", work.title()), &cells, |figures| {
                short(figures.kops.median)
            });
        }
    }
    page.push_str("![operations by clients](native-clients.svg)\n\n");
}

fn named<'a>(
    measured: impl Iterator<Item = &'a Measured>,
    name: impl Fn(&Cell) -> String,
) -> Vec<(String, &'a Measured)> {
    measured.map(|measured| (name(&measured.cell), measured)).collect()
}

fn overlaps(document: &Document, page: &mut String) {
    if document.overlaps.is_empty() {
        return;
    }
    page.push_str("## Overlap\n\n");
    let header =
        ["from", "", "value", "overlap, %", "pure, µs", "computed, µs", "both, µs"].map(str::to_owned);
    let rows = document.overlaps.iter().map(|overlap| {
        let figures = [overlap.percent, overlap.pure_us, overlap.computed_us, overlap.both_us].map(short);
        let what = if overlap.write { "SET" } else { "GET" };
        [vec![overlap.language.clone(), what.to_owned(), size(overlap.len)], figures.to_vec()].concat()
    });
    table(page, &header, &rows.collect::<Vec<_>>());
}

fn python(document: &Document, page: &mut String) {
    if document.python.is_empty() {
        return;
    }
    page.push_str("## Python\n\n");
    let header = ["what", "", "median", "least", "most"].map(str::to_owned);
    let rows = document.python.iter().map(|rate| {
        let Spread { median, least, most } = rate.rate;
        let figures = [median, least, most].map(short);
        [vec![rate.what.clone(), rate.unit.clone()], figures.to_vec()].concat()
    });
    table(page, &header, &rows.collect::<Vec<_>>());
}

fn clients(document: &Document, page: &mut String) {
    if document.clients.is_empty() {
        return;
    }
    page.push_str("## What clients take\n\n");
    let mut askers: Vec<&str> = document.clients.iter().map(|client| client.who.as_str()).collect();
    askers.dedup();
    let header: Vec<String> = std::iter::once("client CPU, µs/op (kops/s)")
        .chain(askers.iter().copied())
        .map(str::to_owned)
        .collect();
    let row = |cell: &Client| {
        let Client { write, len, flight, .. } = cell;
        let (what, len) = (if *write { "SET" } else { "GET" }, size(*len));
        let name = if *flight == 1 {
            format!("{what} of {len}")
        } else {
            format!("{what} of {len}, {flight} at once")
        };
        let is_same = |other: &&Client| (other.write, other.len, other.flight) == (*write, cell.len, *flight);
        let cells = document.clients.iter().filter(is_same);
        let figures =
            cells.map(|client| format!("{} ({})", short(client.cpu_us.median), short(client.kops.median)));
        std::iter::once(name).chain(figures).collect()
    };
    let cells = document.clients.iter().filter(|client| client.who == askers[0]);
    table(page, &header, &cells.map(row).collect::<Vec<_>>());
}

fn modes(document: &Document, page: &mut String) {
    if document.modes.is_empty() {
        return;
    }
    page.push_str("## Who codes\n\n");
    let header = ["value", "mode", "SET, ms/MB", "SET, MB/s", "GET, ms/MB", "GET, MB/s"].map(str::to_owned);
    let rows = document.modes.iter().map(|mode| {
        let figures = [&mode.set_ms, &mode.set_rate, &mode.get_ms, &mode.get_rate];
        let names = vec![format!("{} kB", mode.len / 1000), mode.title.clone()];
        [names, figures.map(|figure| short(figure.median)).to_vec()].concat()
    });
    table(page, &header, &rows.collect::<Vec<_>>());
}

fn scans(document: &Document, page: &mut String) {
    let Some(first) = document.scans.first() else { return };
    let _ = writeln!(page, "## Scans\n\nOf {} keys of 20 B, all of them, by one client.\n", first.keys);
    let header = ["keys of a page", "pages at once", "µs a page", "server CPU, µs a page", "1,000 keys/s"]
        .map(str::to_owned);
    let rows = document.scans.iter().map(|scanned| {
        let figures = [&scanned.page_us, &scanned.server_us, &scanned.kkeys];
        let shape = vec![scanned.page_keys.to_string(), scanned.at_once.to_string()];
        [shape, figures.map(|figure| short(figure.median)).to_vec()].concat()
    });
    table(page, &header, &rows.collect::<Vec<_>>());
}

fn ycsb(document: &Document, page: &mut String) {
    let Some(first) = document.ycsb.first() else { return };
    let _ =
        writeln!(page, "## YCSB's workloads\n\n{CROWD} connections, values of {}, zipf 0.99.\n", size(USUAL));
    let sides: Vec<ycsb::Side> = first.sides.keys().copied().collect();
    let mut compare = |what: &str, pick: fn(&ycsb::Figures) -> String| {
        let titles = sides.iter().map(|side| side.title().to_owned());
        let header: Vec<String> = std::iter::once(what.to_owned()).chain(titles).collect();
        let row = |workload: &ycsb::Workload| {
            let figures =
                sides.iter().map(|side| workload.sides.get(side).map_or_else(|| "-".to_owned(), pick));
            std::iter::once(workload.title.clone()).chain(figures).collect()
        };
        table(page, &header, &document.ycsb.iter().map(row).collect::<Vec<_>>());
    };
    compare("kops/s", |figures| short(figures.kops.median));
    compare("server CPU, µs/op", |figures| short(figures.server_us.median));
    compare("p50 / p99, µs", |figures| {
        format!("{} / {}", short(figures.p50_us.median), short(figures.p99_us.median))
    });
    for workload in &document.ycsb {
        for (side, figures) in workload.sides.iter().filter(|(_, figures)| figures.failed > 0) {
            let _ = writeln!(page, "- {}: {} failed: {}.", side.title(), figures.failed, workload.title);
        }
    }
}

fn failures(document: &Document, page: &mut String) {
    for Measured { cell, sides, .. } in &document.cells {
        for (side, figures) in sides.iter().filter(|(_, figures)| figures.failed > 0) {
            let Cell { value, clients, depth, work } = cell;
            let _ = writeln!(
                page,
                "- {}: {} failed: {} of {}, {clients} clients, depth {depth}.",
                side.title(),
                figures.failed,
                work.title(),
                size(*value)
            );
        }
    }
}

fn with_ratio(value: f64, ratio: f64) -> String {
    format!("{} ({ratio:.2})", short(value))
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
