//! New stripes: by length and bandwidth, beside the best, and what Gest's pipeline is worth.

use super::document::Encoded;
use super::page::{bytes, codes, header, time};

const SCHEMES: [&str; 4] = ["star", "tri", "chain", "auto"];
/// What Gest stores in one go, and chunks around that.
const BLOCKS: [u32; 3] = [64 << 10, 1 << 20, 16 << 20];

/// A section of the page.
pub(super) fn section(all: &[Encoded]) -> String {
    let mut text = "\n## A new stripe, by length and bandwidth\n\n\
        In brackets: incoherently, in times of that. The rate of a value is `k` chunks in that time. *Uplink*: bytes that the writer sends, graph and headers with them, for each\n\
        byte of a value in chunks of 1 MiB.\n"
        .to_owned();
    for code in codes(all.iter().map(|one| &one.code)) {
        let of_code: Vec<&Encoded> = all.iter().filter(|one| one.code == *code).collect();
        text.push_str(&format!("\n### {code}{}\n\n", uplinks(&of_code)));
        let columns: Vec<&str> = ["chunk", "Gbit/s"].into_iter().chain(SCHEMES).collect();
        text.push_str(&header(&columns));
        for row in of_code.chunks(SCHEMES.len()) {
            let cell = |one: &&Encoded| format!("{} ({:.2})", time(one.us), one.incoherent_us / one.us);
            let cells: Vec<String> = row.iter().map(cell).collect();
            text.push_str(&format!("| {} | {} | {} |\n", bytes(row[0].len), row[0].gbit, cells.join(" | ")));
        }
    }
    text.push_str(&best_of(all));
    text.push_str(&pipeline(all));
    text
}

/// What the writer sends by each scheme.
fn uplinks(of_code: &[&Encoded]) -> String {
    let of = |scheme: &&str| {
        let found = of_code.iter().find(|one| one.scheme == **scheme && one.len == 1 << 20);
        found.map(|one| format!("{scheme} {:.3}", one.uplink))
    };
    let all: Vec<String> = SCHEMES[..3].iter().filter_map(of).collect();
    if all.is_empty() { String::new() } else { format!(": uplink {}", all.join(", ")) }
}

/// Gest, figure 6: a row is sent while the next one is coded, in place of all after all. The star is its way: the writer codes and sends.
fn pipeline(all: &[Encoded]) -> String {
    let mut text = "\n## Gest's pipeline: coding and sending together\n\n\
        Its figure 6. The writer codes and sends all chunks (the star), each slice as soon as it is coded, or only when all of the stripe is: *one after the other*. The paper\n\
        says that the two costs are combined instead of summed, and prints no figure. What there is to win is what coding takes beside sending: little over slow links, most where both take as long.\n\n"
        .to_owned();
    text.push_str(&header(&["code", "chunk", "Gbit/s", "together", "one after the other", "gain"]));
    let is_meant = |one: &&Encoded| one.scheme == "star" && BLOCKS.contains(&one.len);
    for code in codes(all.iter().map(|one| &one.code)) {
        for one in all.iter().filter(|one| one.code == *code).filter(is_meant) {
            let (ours, theirs) = (time(one.us), time(one.incoherent_us));
            let gain = one.incoherent_us / one.us;
            let row =
                format!("| {code} | {} | {} | {ours} | {theirs} | {gain:.2} |\n", bytes(one.len), one.gbit);
            text.push_str(&row);
        }
    }
    text
}

/// How near `auto` comes to the best scheme, and what nodes choose between with `--encode-by auto`: the star and `tri`.
fn best_of(all: &[Encoded]) -> String {
    let best = |auto: &Encoded, schemes: &[&str]| {
        let key = |one: &Encoded| (one.code.clone(), one.len, one.gbit.to_bits());
        let those = all.iter().filter(|one| key(one) == key(auto) && schemes.contains(&one.scheme.as_str()));
        let one = those.clone().min_by(|one, other| one.predicted_us.total_cmp(&other.predicted_us))?;
        Some((one.us, those.map(|one| one.us).fold(f64::MAX, f64::min)))
    };
    let autos: Vec<&Encoded> = all.iter().filter(|one| one.scheme == "auto").collect();
    let slower = |auto: &Encoded| Some(auto.us / best(auto, &["star", "tri", "chain"])?.1);
    let late: Vec<String> = autos
        .iter()
        .filter_map(|auto| slower(auto).filter(|ratio| *ratio > 1.1).map(|ratio| (auto, ratio)))
        .map(|(one, ratio)| format!("{} of {} at {} Gbit/s {ratio:.2}", one.code, bytes(one.len), one.gbit))
        .collect();
    let of_nodes = autos.iter().filter_map(|auto| best(auto, &["star", "tri"]));
    let most = of_nodes.map(|(chosen, least)| chosen / least).fold(1.0, f64::max);
    let (count, named) = (late.len(), late.join("; "));
    let why = if count == 0 {
        String::new()
    } else {
        format!(" ({named}): there it takes the chain, which takes longer than the model says")
    };
    format!(
        "\n`auto` takes more than 1.1 times as long as the best scheme in {count} of {} cells{why}.\n\
         Of the star and `tri`, between which nodes choose (`--encode-by auto`), the one that is predicted to take less takes at most {most:.2} times as long as the other.\n",
        autos.len(),
    )
}
