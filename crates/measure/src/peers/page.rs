//! The page: tables of everything in the document.

use std::fmt::Write as _;

use crate::peers::cells::{Cell, Distribution, Workload, size};
use crate::peers::document::{Crosscheck, Document, Failure, Figures, Measured};
use crate::peers::side::Side;

/// What is above the tables.
const PREFACE: &str = include_str!("preface.md");
/// The size of value that has tables of its own.
const USUAL: u32 = 1024;

/// As markdown.
pub fn render(document: &Document) -> String {
    let mut page = PREFACE.to_owned();
    let _ = writeln!(page, "Machine: {}. Last run: `{}`.\n", document.machine, command(document));
    sides(document, &mut page);
    page.push_str("## Values of 1 KiB, all keys alike\n\n");
    for (connections, depth) in [(48, 1), (48, 16), (1, 1), (1, 16)] {
        usual(document, connections, depth, &mut page);
    }
    page.push_str("![CPU, depth 1](peers-cpu-depth-1.svg)\n![CPU, depth 16](peers-cpu-depth-16.svg)\n");
    page.push_str(
        "![operations, depth 1](peers-ops-depth-1.svg)\n![operations, depth 16](peers-ops-depth-16.svg)\n",
    );
    page.push_str("![latency](peers-latency-one-connection.svg)\n\n");
    memory(document, &mut page);
    cocytus(document, &mut page);
    crosschecks(document, &mut page);
    failures(document, &mut page);
    everything(document, &mut page);
    page
}

fn command(document: &Document) -> String {
    format!("cargo xtask bench peers {}", document.matrix_command).trim_end().to_owned()
}

fn table(page: &mut String, header: &[String], rows: &[Vec<String>]) {
    let _ = writeln!(page, "| {} |\n|{}", header.join(" | "), " --- |".repeat(header.len()));
    for row in rows {
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page.push('\n');
}

fn header(first: &str, document: &Document, sides: &[Side]) -> Vec<String> {
    let names = sides.iter().map(|side| document.name(*side).to_owned());
    std::iter::once(first.to_owned()).chain(names).collect()
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn sides(document: &Document, page: &mut String) {
    let rows = document.names.iter().map(|(side, name)| {
        let processes = document.processes.get(side).map_or(String::new(), usize::to_string);
        let idle = document.idle_millicores.get(side).map_or(String::new(), |idle| short(*idle));
        vec![name.clone(), processes, idle]
    });
    let header = ["side", "processes", "idle, thousandths of a core"].map(str::to_owned);
    table(page, &header, &rows.collect::<Vec<_>>());
}

fn usual(document: &Document, connections: u16, depth: u16, page: &mut String) {
    let of = |workload| {
        document.cell(&Cell {
            value: USUAL,
            connections,
            depth,
            distribution: Distribution::Uniform,
            workload,
        })
    };
    let measured: Vec<&Measured> =
        [Workload::C, Workload::B, Workload::A, Workload::Set].into_iter().filter_map(of).collect();
    if measured.is_empty() {
        return;
    }
    let word = if connections == 1 { "connection" } else { "connections" };
    let _ = writeln!(page, "### {connections} {word}, depth {depth}\n");
    let sides: Vec<Side> = document.names.keys().copied().collect();
    let row = |measured: &&Measured, cell: fn(&Figures) -> String| {
        let figures = sides.iter().map(|side| measured.sides.get(side).map_or("-".to_owned(), cell));
        std::iter::once(measured.cell.workload.title().to_owned()).chain(figures).collect::<Vec<_>>()
    };
    let rows = |cell: fn(&Figures) -> String| measured.iter().map(|m| row(m, cell)).collect::<Vec<_>>();
    table(page, &header("kops/s", document, &sides), &rows(|f| short(f.kops.median)));
    table(page, &header("CPU µs/op (of rs(3+2)'s)", document, &sides), &rows(cpu));
    table(page, &header("p50 / p99 / p99.9 µs", document, &sides), &rows(latency));
}

fn cpu(figures: &Figures) -> String {
    format!("{} ({:.2})", short(figures.cpu_us.median), figures.cpu_ratio.median)
}

fn latency(figures: &Figures) -> String {
    let [p50, p99, p999] =
        [figures.p50_us, figures.p99_us, figures.p999_us].map(|spread| short(spread.median));
    format!("{p50} / {p99} / {p999}")
}

fn memory(document: &Document, page: &mut String) {
    if document.memory.is_empty() {
        return;
    }
    page.push_str(
        "## Memory\n\nResident bytes of all processes per stored value, net of the empty processes.\n\n",
    );
    let sides: Vec<Side> = document.names.keys().copied().filter(|side| *side != Side::Wait).collect();
    let mut head = header("value", document, &sides);
    head.push("memcached, three copies".to_owned());
    head.push("rs(3+2) of three copies".to_owned());
    let rows = document.memory.iter().map(|memory| {
        let of = |side: &Side| memory.bytes.get(side).copied();
        let shown = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |bytes| format!("{bytes:.0}"));
        let copies = of(&Side::Memcached).map(|bytes| 3.0 * bytes);
        let ratio = of(&Side::Rs32)
            .zip(copies)
            .map_or("-".to_owned(), |(own, copies)| format!("{:.2}", own / copies));
        let values = format!("{} x {}", memory.values, size(memory.value));
        let bytes = sides.iter().map(|side| shown(of(side)));
        std::iter::once(values).chain(bytes).chain([shown(copies), ratio]).collect()
    });
    table(page, &head, &rows.collect::<Vec<Vec<_>>>());
    page.push_str("![memory](peers-memory.svg)\n\n");
}

/// The paper's comparison: no protection, primary and backups, erasure code.
fn cocytus(document: &Document, page: &mut String) {
    let sides = [Side::Memcached, Side::Rep3, Side::Rs32];
    let of = |workload| {
        document.cell(&Cell {
            value: USUAL,
            connections: 48,
            depth: 1,
            distribution: Distribution::Zipf,
            workload,
        })
    };
    let rows: Vec<Vec<String>> = [Workload::A, Workload::B, Workload::C]
        .into_iter()
        .filter_map(of)
        .map(|measured| {
            let cell = |side: &Side| {
                measured.sides.get(side).map_or("-".to_owned(), |f| {
                    format!("{} \\| {} \\| {}", short(f.kops.median), latency(f), short(f.cpu_us.median))
                })
            };
            let title = match measured.cell.workload {
                Workload::C => "100/0",
                other => other.title(),
            };
            std::iter::once(title.to_owned()).chain(sides.iter().map(cell)).collect()
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    page.push_str(
        "## As in the paper on Cocytus\n\nNo protection, primary and two backups, erasure code with two parities: values of 1 KiB, zipf, 48 \
         connections, depth 1. kops/s \\| p50 / p99 / p99.9 µs \\| server CPU µs/op. `rep(3)` runs through the same protocol as `rs(3+2)`, with rows \
         of ones; so the difference is what coding costs and saves. Memory is above, recovery below.\n\n",
    );
    table(page, &header("read/write", document, &sides), &rows);
}

fn crosschecks(document: &Document, page: &mut String) {
    if document.crosschecks.is_empty() {
        return;
    }
    page.push_str(
        "## Under YCSB\n\nYCSB 0.17 with xmemcached and Jedis, 32 threads, values of 1 KiB, zipf. It knows no map: each of its threads asks one node of \
         Gestalt, which passes most requests on. The client takes most of the machine. kops/s \\| p50 / p99 µs \\| server CPU µs/op.\n\n",
    );
    let sides: Vec<Side> = document.names.keys().copied().collect();
    let row = |crosscheck: &Crosscheck| {
        let cell = |side: &Side| {
            crosscheck.sides.get(side).map_or("-".to_owned(), |f| {
                let [kops, p50, p99, cpu] =
                    [f.kops, f.p50_us, f.p99_us, f.cpu_us].map(|spread| short(spread.median));
                format!("{kops} \\| {p50} / {p99} \\| {cpu}")
            })
        };
        std::iter::once(crosscheck.workload.title().to_owned()).chain(sides.iter().map(cell)).collect()
    };
    table(
        page,
        &header("", document, &sides),
        &document.crosschecks.iter().map(row).collect::<Vec<Vec<_>>>(),
    );
}

fn failures(document: &Document, page: &mut String) {
    if document.failures.is_empty() {
        return;
    }
    page.push_str(
        "## Nodes killed and stopped under load\n\nHalf reads, half writes of 1 KiB by 48 connections as fast as they are answered, every value checked; \
         five nodes and as many spare ones as are hurt, lease 1 s, requests given up after 1 s. *Silent*: the longest time without an answer to anybody. *Normal*: from the fault \
         until throughput stays above 0.8 of what it was. *Protected*: until as many further losses would be survived as before. Everything shares this machine's cores, so fewer nodes may well be faster.\n\n",
    );
    let head = [
        "",
        "fault",
        "kops/s before",
        "p99 µs before",
        "silent s",
        "normal after s",
        "protected after s",
        "kops/s after",
        "p99 µs after",
        "failed",
        "wrong",
        "missing",
    ];
    let row = |failure: &Failure| {
        let normal = failure.normal_s.map_or("never".to_owned(), |seconds| format!("{seconds:.2}"));
        let protected = failure.protected_s.map_or("-".to_owned(), |seconds| format!("{seconds:.2}"));
        vec![
            document.name(failure.side).to_owned(),
            format!("{} {}", failure.nodes, failure.how),
            short(failure.before / 1000.0),
            short(failure.before_p99_us),
            format!("{:.2}", failure.silent_s),
            normal,
            protected,
            short(failure.after / 1000.0),
            short(failure.after_p99_us),
            failed(failure),
            failure.wrong.to_string(),
            failure.misses.to_string(),
        ]
    };
    table(page, &head.map(str::to_owned), &document.failures.iter().map(row).collect::<Vec<_>>());
    for (how, nodes) in [("killed", 1), ("killed", 2), ("stopped", 1)] {
        let _ = writeln!(page, "![{nodes} {how}](peers-{how}-{nodes}.svg)");
    }
    page.push('\n');
}

fn failed(failure: &Failure) -> String {
    let kinds = failure.errors.iter().map(|(kind, count)| format!("{count} x {kind}"));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    if kinds.is_empty() { "0".to_owned() } else { kinds }
}

fn everything(document: &Document, page: &mut String) {
    if document.cells.is_empty() {
        return;
    }
    page.push_str("## Everything\n\nkops/s \\| p99 µs \\| server CPU µs/op, medians. Least and most of each are in [peers.json](peers.json).\n\n");
    let sides: Vec<Side> = document.names.keys().copied().collect();
    let cell = |f: &Figures| {
        format!("{} \\| {} \\| {}", short(f.kops.median), short(f.p99_us.median), short(f.cpu_us.median))
    };
    let row = |measured: &Measured| {
        let Cell { value, connections, depth, distribution, workload } = measured.cell;
        let title = format!(
            "{}, {connections} conn., depth {depth}, {}, {}",
            size(value),
            distribution.title(),
            workload.title()
        );
        let figures = sides.iter().map(|side| measured.sides.get(side).map_or("-".to_owned(), cell));
        std::iter::once(title).chain(figures).collect()
    };
    table(page, &header("", document, &sides), &document.cells.iter().map(row).collect::<Vec<Vec<_>>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_document_has_a_page_without_tables_of_figures() {
        let page = render(&Document::default());
        assert!(page.contains("cargo xtask bench peers") && !page.contains("## Memory"));
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([1234.5, 12.34, 1.234].map(short), ["1234", "12.3", "1.23"]);
    }
}
