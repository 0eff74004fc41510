//! `docs/benchmarks/ceph.md`, from the figures that `gestalt_ec_benchmark` has written.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// One line of the figures.
#[derive(Clone, Debug, PartialEq)]
struct Figure {
    set: String,
    k: u64,
    m: u64,
    size: u64,
    side: String,
    encode: f64,
    compute: f64,
    copy: f64,
    decode: f64,
}

impl Figure {
    /// From a line of JSON, whose texts have no quotes in them.
    fn read(line: &str) -> Option<Self> {
        let field = |name: &str| {
            let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
            let rest = rest.strip_prefix('"').unwrap_or(rest);
            Some(rest.split(['"', ',', '}']).next()?.to_owned())
        };
        let text = field;
        let number = |name: &str| field(name)?.parse().ok();
        let rate = |name: &str| field(name)?.parse().ok();
        Some(Self {
            set: text("set")?,
            k: number("k")?,
            m: number("m")?,
            size: number("size")?,
            side: text("side")?,
            encode: rate("encode_gb_s")?,
            compute: rate("compute_gb_s")?,
            copy: rate("copy_share")?,
            decode: rate("decode_gb_s")?,
        })
    }
}

/// The sides, as columns.
const SIDES: [&str; 5] = ["gestalt rs", "gestalt lch", "isa cauchy", "isa vandermonde", "jerasure"];

/// What precedes the tables.
const HEAD: &str = "\
# Ceph's plugins beside each other

Made by `cargo xtask bench ceph`; the numbers are in [ceph.json](ceph.json). What is measured, and what it says of a pool: [ceph.md](../ceph.md).

GB/s of data (10^9 bytes; an object of `k` chunks, whatever is read or written) through Ceph's own interface, one thread, all plugins in one process and in
turns: the median of nine rounds of 8 ms each, by the thread's time on the processor. *encode* is the interface's `encode` of an object in one piece, with buffers for parities allocated each
time; *compute* is `encode_chunks` on buffers that are there, so the share of copying and allocating is 1 - encode / compute; *decode* makes up to four lost data
chunks. A plugin that has no such code is left out (`-`): `isa` ends at `k = 32`. The best of ours is set against the best of theirs in the last
column; below 1 ours is the slower one.
";

/// Writes the page.
pub fn write(json: &Path, page: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(json).map_err(|error| failed(json, error))?;
    let figures: Vec<Figure> = text.lines().filter_map(Figure::read).collect();
    if figures.is_empty() {
        return Err(format!("{} has no figures", json.display()));
    }
    fs::write(page, render(&figures, &machine())).map_err(|error| failed(page, error))
}

fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| "an unknown processor".to_owned(), |(_, name)| name.to_owned())
}

fn render(figures: &[Figure], machine: &str) -> String {
    let mut page = format!("{HEAD}\nProcessor: {machine}. No card.\n");
    let mut sets: Vec<&str> = figures.iter().map(|figure| figure.set.as_str()).collect();
    sets.dedup();
    for set in sets {
        let of_set: Vec<&Figure> = figures.iter().filter(|figure| figure.set == set).collect();
        let _ = write!(page, "\n## {}\n", heading(set));
        for (title, value) in [
            ("encode", &(|figure: &Figure| figure.encode) as &dyn Fn(&Figure) -> f64),
            ("compute", &|figure| figure.compute),
            ("decode", &|figure| figure.decode),
        ] {
            table(&mut page, title, &of_set, value);
        }
        shares(&mut page, &of_set);
    }
    page
}

fn heading(set: &str) -> String {
    match set {
        "block size" => "By size of chunks".to_owned(),
        "four parities" => "Four parities, k from 2 to 128, objects of 1 MiB".to_owned(),
        other => format!("Storage {other} (k / (k + m)), objects of 1 MiB"),
    }
}

/// Rows in the order of the figures.
fn rows<'a>(figures: &[&'a Figure]) -> Vec<(String, BTreeMap<&'a str, &'a Figure>)> {
    let mut rows: Vec<(String, BTreeMap<&str, &Figure>)> = Vec::new();
    for figure in figures {
        let chunk = figure.size.div_ceil(figure.k);
        let name = match figure.set.as_str() {
            "block size" => format!("({},{}) {} KiB", figure.k, figure.m, chunk / 1024),
            _ => format!("({},{})", figure.k, figure.m),
        };
        if rows.last().is_none_or(|(last, _)| *last != name) {
            rows.push((name.clone(), BTreeMap::new()));
        }
        if let Some((_, row)) = rows.last_mut() {
            row.insert(&figure.side, figure);
        }
    }
    rows
}

fn table(page: &mut String, title: &str, figures: &[&Figure], value: &dyn Fn(&Figure) -> f64) {
    let _ = write!(
        page,
        "\n| {title} | {} | ours / theirs |\n|{}\n",
        SIDES.join(" | "),
        " --- |".repeat(SIDES.len() + 2)
    );
    for (name, row) in rows(figures) {
        let cells =
            SIDES.map(|side| row.get(side).map_or("-".to_owned(), |figure| format!("{:.2}", value(figure))));
        let best = |ours: bool| {
            let sides = row.iter().filter(|(side, _)| side.starts_with("gestalt") == ours);
            sides.map(|(_, figure)| value(figure)).fold(0.0, f64::max)
        };
        let ratio =
            if best(false) > 0.0 { format!("{:.2}", best(true) / best(false)) } else { "-".to_owned() };
        let _ = writeln!(page, "| {name} | {} | {ratio} |", cells.join(" | "));
    }
}

fn shares(page: &mut String, figures: &[&Figure]) {
    let _ = write!(
        page,
        "\n| copying and allocating | {} |\n|{}\n",
        SIDES.join(" | "),
        " --- |".repeat(SIDES.len() + 1)
    );
    for (name, row) in rows(figures) {
        let cells = SIDES.map(|side| {
            row.get(side).map_or("-".to_owned(), |figure| format!("{:.0} %", 100.0 * figure.copy))
        });
        let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"set":"block size","k":4,"m":2,"size":4096,"side":"gestalt rs","encode_gb_s":8.0,"compute_gb_s":10.0,"copy_share":0.200,"decode_gb_s":9.5}"#;

    #[test]
    fn a_line_becomes_a_row() {
        let figure = Figure::read(LINE).expect("a figure");
        assert_eq!((figure.k, figure.m, figure.size, figure.side.as_str()), (4, 2, 4096, "gestalt rs"));
        let theirs = Figure { side: "isa cauchy".to_owned(), encode: 16.0, ..figure.clone() };
        let page = render(&[figure, theirs], "a processor");
        assert!(page.contains("| (4,2) 1 KiB | 8.00 | - | 16.00 | - | - | 0.50 |"), "{page}");
        assert!(page.contains("| (4,2) 1 KiB | 20 % | - | 20 % | - | - |"), "{page}");
    }

    #[test]
    fn what_is_no_figure_is_left_out() {
        assert_eq!(Figure::read("{\"ceph\":\"16.2.15\",\"figures\":["), None);
    }
}
