//! What slices save, beside what the paper on INEC (Shi and Lu) says that its primitives do.

use super::document::Cell;

/// Of each scheme what the paper says of one lost chunk, in figures 8a to 8f.
const CLAIMS: [(&str, &str); 5] = [
    ("star", "26 to 54 % for (12,4) from 16 KiB on; 1.86 times the bandwidth"),
    ("lrc", "1.34 to 2.36 times for (12,2,2); 2.04 times the bandwidth"),
    ("ppr", "up to 1.86, 2.05 and 1.75 times for (3,2), (6,3) and (12,4); 2.03 times the bandwidth"),
    ("chain", "latency 42 to 73 % less; 2.04 times the bandwidth"),
    ("tri", "latency up to 64 % less; 2.94 times the bandwidth"),
];
const GBITS: [f64; 3] = [1.0, 10.0, 100.0];

/// A section of the page.
pub(super) fn section(cells: &[Cell]) -> String {
    let mut text = "\n## Beside INEC\n\n\
         How many times as long as coherently one lost chunk of more than 64 KiB takes incoherently, least and most over all lengths and codes of the tables above. The\n\
         paper's baseline receives, computes and sends one after the other on hosts, and is beaten by what network cards do without them; here both ways are the same\n\
         executor, so what is left is overlap along the graph: none in a star, whose one link is always full, and most in a chain, whose baseline takes turns hop by hop.\n\n\
         | scheme | INEC | 1 Gbit/s | 10 Gbit/s | 100 Gbit/s |\n| --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (scheme, claim) in CLAIMS {
        let here: Vec<String> = GBITS.iter().map(|gbit| gains(cells, scheme, *gbit)).collect();
        text.push_str(&format!("| {scheme} | {claim} | {} |\n", here.join(" | ")));
    }
    text
}

fn gains(cells: &[Cell], scheme: &str, gbit: f64) -> String {
    let is_meant =
        |cell: &&Cell| cell.scheme == scheme && cell.gbit.to_bits() == gbit.to_bits() && cell.len > 64 << 10;
    let gains = cells.iter().filter(is_meant).map(|cell| cell.incoherent_us / cell.us);
    let (least, most) =
        gains.fold((f64::MAX, 0.0f64), |(least, most), gain| (least.min(gain), most.max(gain)));
    if most == 0.0 { "-".to_owned() } else { format!("{least:.2} to {most:.2}") }
}
