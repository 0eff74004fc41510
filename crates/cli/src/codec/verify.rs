//! `gestalt codec verify`.

use clap::Args;
use codec_bench::{Peer, Verdict};

use super::args::{parse, refused};
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};

const EXAMPLE: &str = "\
Examples:
  gestalt codec verify
  gestalt codec verify --against isal,jerasure     needs a build with `--features peers`";

/// Shows that all kernels of this machine give the same bytes, and that chunks can be exchanged with other libraries
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct VerifyArgs {
    /// Libraries to exchange chunks with: isal, jerasure
    #[arg(long, value_delimiter = ',', value_parser = parse::<Peer>)]
    against: Vec<Peer>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Compares, and prints what was compared.
///
/// # Errors
/// `Usage` (exit code 1) if anything differs.
pub fn run(args: &VerifyArgs) -> Result<(), Exit> {
    let verdict = codec_bench::verify(&args.against).map_err(refused)?;
    match args.output {
        Format::Json => print_json(&verdict),
        Format::Table => print(&render(&verdict)),
    }
    if verdict.agrees() {
        return Ok(());
    }
    let first = verdict.described.first().map_or("", String::as_str);
    Err(Exit::Usage(format!("{} comparisons failed, the first: {first}", verdict.failures)))
}

fn render(verdict: &Verdict) -> String {
    let mut table = Table::new(&["family", "with", "codes", "compared"]);
    for checked in &verdict.checked {
        let with = checked.peer.unwrap_or("all kernels");
        let (codes, comparisons) = (checked.codes.to_string(), checked.comparisons.to_string());
        table.row(vec![checked.family.clone(), with.to_owned(), codes, comparisons]);
    }
    let mut text = format!("kernels: {}\n\n{}\n", verdict.kernels.join(", "), table.render());
    for line in &verdict.described {
        text.push_str(&format!("{line}\n"));
    }
    let total: usize = verdict.checked.iter().map(|checked| checked.comparisons).sum();
    match verdict.failures {
        0 => text.push_str(&format!("all {total} comparisons agree\n")),
        failures => text.push_str(&format!("{failures} of {total} comparisons failed\n")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_shown() {
        let described = vec!["avx9 differs from scalar: encode".to_owned()];
        let checked = Vec::new();
        let verdict = Verdict { kernels: vec!["avx9", "scalar"], checked, failures: 3, described };
        let text = render(&verdict);
        assert!(text.contains("avx9 differs") && text.contains("3 of 0 comparisons failed"), "{text}");
    }
}
