//! `gestalt codec list`.

use clap::Args;
use codec::{Code, Family, Scheme};
use codec_cuda::{Choice, Codec, Matrix, Residence};
use serde::Serialize;

use super::args::CodeArgs;
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};

const EXAMPLE: &str = "\
Examples:
  gestalt codec list
  gestalt codec list -k 10 -m 4                    how that code would be encoded here: by each family, and where
  GESTALT_CODEC=avx2 gestalt codec list -o json";

/// Kernels that work here and how fast they were at start, a card if there is one, matrix families, and codes
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct ListArgs {
    #[command(flatten)]
    code: CodeArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Names of codes, with what they survive.
const CODES: [(&str, &str); 5] = [
    ("rs(k+m)", "any m losses; another matrix family in place of 'rs': 'lch(10+4)'"),
    ("lrc(k,l,r)", "any r+1 losses and many more; a single loss reads its group only"),
    ("rep(n)", "any n-1 losses: copies"),
    ("mirror(k)", "one loss of each pair"),
    ("xor(k+1)", "any one loss"),
];

/// Sizes for which the place is shown.
const OBJECT_BYTES: [usize; 4] = [64 << 10, 1 << 20, 16 << 20, 256 << 20];

#[derive(Serialize)]
struct Listing {
    kernels: Vec<KernelEntry>,
    chosen: &'static str,
    chosen_by: &'static str,
    families: Vec<&'static str>,
    codes: Vec<CodeEntry>,
    card: Card,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    methods: Vec<Method>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<PlaceEntry>,
}

/// The card, or why there is none.
#[derive(Serialize)]
struct Card {
    name: Option<String>,
    memory_bytes: Option<usize>,
    none_because: Option<String>,
}

/// Where a code would be encoded.
#[derive(Serialize)]
struct PlaceEntry {
    resident: &'static str,
    object_bytes: usize,
    place: &'static str,
    why: String,
}

#[derive(Serialize)]
struct KernelEntry {
    name: &'static str,
    gb_per_second: f64,
    chosen: bool,
}

#[derive(Serialize)]
struct CodeEntry {
    name: &'static str,
    survives: &'static str,
}

/// How a code is encoded.
#[derive(Serialize)]
struct Method {
    code: String,
    /// `matrix` or `transform`; none if there is no such code.
    method: Option<&'static str>,
    refused: Option<String>,
}

/// Prints the list.
///
/// # Errors
/// `Usage` for a code that does not exist.
pub fn run(args: &ListArgs) -> Result<(), Exit> {
    let listing = listing(args.code.scheme())?;
    match args.output {
        Format::Json => print_json(&listing),
        Format::Table => print(&render(&listing)),
    }
    Ok(())
}

fn listing(scheme: Option<Scheme>) -> Result<Listing, Exit> {
    let chosen = codec::kernel();
    let places_of = Codec::new(0, Codec::all_threads());
    let entry = |calibration: &codec::Calibration| KernelEntry {
        name: calibration.kernel.name(),
        gb_per_second: calibration.bytes_per_second / 1e9,
        chosen: calibration.kernel == chosen,
    };
    Ok(Listing {
        kernels: codec::calibrations().iter().map(entry).collect(),
        chosen: chosen.name(),
        chosen_by: if std::env::var_os("GESTALT_CODEC").is_some() { "GESTALT_CODEC" } else { "measured" },
        families: Family::ALL.map(Family::name).to_vec(),
        codes: CODES.map(|(name, survives)| CodeEntry { name, survives }).into(),
        methods: scheme.map_or(Ok(Vec::new()), methods)?,
        places: scheme.map_or(Ok(Vec::new()), |scheme| places(&places_of, scheme))?,
        card: card(&places_of),
    })
}

fn card(codec: &Codec) -> Card {
    match codec.device() {
        Ok(device) => Card {
            name: Some(device.name().to_owned()),
            memory_bytes: device.memory().ok().map(|(_, all)| all),
            none_because: None,
        },
        Err(error) => Card { name: None, memory_bytes: None, none_because: Some(error.to_string()) },
    }
}

/// Objects of several sizes, in each place where they may be.
fn places(codec: &Codec, scheme: Scheme) -> Result<Vec<PlaceEntry>, Exit> {
    let code = Code::of(scheme).map_err(Exit::usage)?;
    // What a card cannot do has one place only.
    let Ok(matrix) = Matrix::encode(&code) else { return Ok(Vec::new()) };
    let entry = |residence: Residence, object_bytes: usize| {
        let Choice { place, why } = codec.choose(&matrix, object_bytes.div_ceil(code.k()), residence);
        PlaceEntry { resident: residence.name(), object_bytes, place: place.name(), why }
    };
    let sizes = |residence| OBJECT_BYTES.map(|bytes| entry(residence, bytes));
    Ok(Residence::ALL.into_iter().flat_map(sizes).collect())
}

/// The code as it was asked for, and for Reed-Solomon also with the other matrices.
fn methods(scheme: Scheme) -> Result<Vec<Method>, Exit> {
    Code::of(scheme).map_err(Exit::usage)?;
    let all = match scheme {
        Scheme::Rs { k, m, .. } => Family::ALL.map(|family| Scheme::Rs { family, k, m }).to_vec(),
        other => vec![other],
    };
    Ok(all.into_iter().map(method).collect())
}

fn method(scheme: Scheme) -> Method {
    let code = Code::of(scheme);
    Method {
        code: scheme.to_string(),
        method: code.as_ref().ok().map(Code::method),
        refused: code.err().map(|error| error.to_string()),
    }
}

fn render(listing: &Listing) -> String {
    let mut kernels = Table::new(&["kernel", "GB/s at start", ""]);
    for kernel in &listing.kernels {
        let note = if kernel.chosen { format!("chosen: {}", listing.chosen_by) } else { String::new() };
        kernels.row(vec![kernel.name.to_owned(), format!("{:.1}", kernel.gb_per_second), note]);
    }
    let mut codes = Table::new(&["code", "survives"]);
    for code in &listing.codes {
        codes.row(vec![code.name.to_owned(), code.survives.to_owned()]);
    }
    let families = listing.families.join(", ");
    let card = match (&listing.card.name, listing.card.memory_bytes) {
        (Some(name), Some(bytes)) => format!("card: {name}, {} GiB\n", bytes >> 30),
        (Some(name), None) => format!("card: {name}\n"),
        (None, _) => format!("card: none: {}\n", listing.card.none_because.as_deref().unwrap_or_default()),
    };
    let mut text =
        format!("{}\n{card}families of matrices: {families}\n\n{}", kernels.render(), codes.render());
    if !listing.methods.is_empty() {
        let mut methods = Table::new(&["here", "encoded by"]);
        for method in &listing.methods {
            let how = method.method.map(str::to_owned).or_else(|| method.refused.clone());
            methods.row(vec![method.code.clone(), how.unwrap_or_default()]);
        }
        text.push_str(&format!("\n{}", methods.render()));
    }
    // Without a card all of it is the processor's, for the one reason that is said above.
    if !listing.places.is_empty() && listing.card.name.is_some() {
        let mut places = Table::new(&["chunks in", "object", "encoded on", "because"]);
        for place in &listing.places {
            let bytes = format!("{} KiB", place.object_bytes >> 10);
            places.row(vec![place.resident.to_owned(), bytes, place.place.to_owned(), place.why.clone()]);
        }
        text.push_str(&format!("\n{}", places.render()));
    }
    text
}
