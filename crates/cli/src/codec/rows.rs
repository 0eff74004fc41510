//! `gestalt codec rows`: what a card would do for servers, which code values in chunks row by row.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use codec::{Code, Scheme};
use codec_cuda::{Codec, Device, HostStripe, PinnedBuffer, Place};
use serde::Serialize;

use super::args::CodeArgs;
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};

const EXAMPLE: &str = "\
Examples:
  gestalt codec rows                     rs(3+2), which is what a cluster has if nothing else was said
  gestalt codec rows -k 10 -m 4";

/// How fast rows of values in chunks are encoded by one thread, and by a card: one at a time, as servers do it, and many at once
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct RowsArgs {
    #[command(flatten)]
    code: CodeArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Lengths of cells, and how many rows are encoded in one call.
const SHAPES: [(usize, usize); 7] = [
    (4 << 10, 1),
    (16 << 10, 1),
    (64 << 10, 1),
    (64 << 10, 4),
    (64 << 10, 16),
    (64 << 10, 64),
    (64 << 10, 256),
];
/// Rows are taken in turn from so many bytes at least: they do not lie in a core's own caches.
const ROUND_BYTES: usize = 64 << 20;
/// How long each is measured.
const SPELL: Duration = Duration::from_millis(200);
/// Calls at least, whatever they take; the median counts.
const CALLS: usize = 5;

#[derive(Serialize)]
struct Report {
    code: String,
    card: Option<String>,
    none_because: Option<String>,
    rows: Vec<Line>,
    /// Bytes of data in a call from which on the card was faster than one thread; none if it never was.
    pageable_from: Option<usize>,
    page_locked_from: Option<usize>,
}

/// Microseconds of a call.
#[derive(Serialize)]
struct Line {
    cell_bytes: usize,
    rows: usize,
    data_bytes: usize,
    processor_us: f64,
    pageable_us: Option<f64>,
    page_locked_us: Option<f64>,
}

/// Measures, and prints.
///
/// # Errors
/// `Usage` for a code that does not exist, or if the card fails.
pub fn run(args: &RowsArgs) -> Result<(), Exit> {
    let scheme = args.code.scheme().unwrap_or(Scheme::rs(3, 2));
    let report = measure(scheme)?;
    match args.output {
        Format::Json => print_json(&report),
        Format::Table => print(&render(&report)),
    }
    Ok(())
}

fn measure(scheme: Scheme) -> Result<Report, Exit> {
    let code = Code::of(scheme).map_err(Exit::usage)?;
    let card = Codec::new(0, NonZeroUsize::MIN).always_on_card();
    let (mut pageable, mut page_locked) = (Memory::pageable(&code), None);
    if let Ok(device) = card.device() {
        page_locked = Some(Memory::page_locked(&code, device).map_err(Exit::usage)?);
    }
    let mut rows = Vec::new();
    for (cell_bytes, count) in SHAPES {
        let shape = Shape { k: code.k(), n: code.n(), cell_bytes, count };
        let by_card = |stripes: &mut [HostStripe<'_, '_, '_>]| match card.encode_batch(&code, stripes) {
            Ok(Place::Card) => Ok(()),
            Ok(Place::Cpu) => Err(Exit::usage("the card has failed")),
            Err(error) => Err(Exit::usage(error)),
        };
        let by_processor = |stripes: &mut [HostStripe<'_, '_, '_>]| {
            stripes.iter_mut().try_for_each(|row| code.encode(row.sources, row.outputs)).map_err(Exit::usage)
        };
        let of_card =
            page_locked.is_some().then(|| microseconds(pageable.bytes(), shape, by_card)).transpose()?;
        rows.push(Line {
            cell_bytes,
            rows: count,
            data_bytes: shape.k * cell_bytes * count,
            processor_us: microseconds(pageable.bytes(), shape, by_processor)?,
            pageable_us: of_card,
            page_locked_us: page_locked
                .as_mut()
                .map(|memory| microseconds(memory.bytes(), shape, by_card))
                .transpose()?,
        });
    }
    Ok(Report {
        code: scheme.to_string(),
        card: card.device().ok().map(|device| device.name().to_owned()),
        none_because: card.device().err().map(ToString::to_string),
        pageable_from: faster_from(&rows, |line| line.pageable_us),
        page_locked_from: faster_from(&rows, |line| line.page_locked_us),
        rows,
    })
}

/// What is encoded in one call.
#[derive(Clone, Copy)]
struct Shape {
    k: usize,
    n: usize,
    cell_bytes: usize,
    count: usize,
}

impl Shape {
    fn row_bytes(self) -> usize {
        self.n * self.cell_bytes
    }
}

/// The median of many calls, each with the next rows of `memory`.
fn microseconds(
    memory: &mut [u8],
    shape: Shape,
    mut encode: impl FnMut(&mut [HostStripe<'_, '_, '_>]) -> Result<(), Exit>,
) -> Result<f64, Exit> {
    let calls = memory.chunks_exact_mut(shape.row_bytes() * shape.count);
    // What a call is given is made ready before it is timed.
    let mut cells: Vec<Vec<Row<'_>>> = calls.map(|bytes| rows_of(bytes, shape)).collect();
    let mut times = Vec::new();
    let begun = Instant::now();
    let mut turn = 0;
    while times.len() < CALLS || begun.elapsed() < SPELL {
        let rows = &mut cells[turn];
        let mut stripes: Vec<HostStripe<'_, '_, '_>> =
            rows.iter_mut().map(|row| HostStripe { sources: &row.data, outputs: &mut row.parity }).collect();
        let start = Instant::now();
        encode(&mut stripes)?;
        times.push(start.elapsed());
        turn = (turn + 1) % cells.len();
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_secs_f64() * 1e6)
}

/// Cells of a row.
struct Row<'a> {
    data: Vec<&'a [u8]>,
    parity: Vec<&'a mut [u8]>,
}

fn rows_of(bytes: &mut [u8], shape: Shape) -> Vec<Row<'_>> {
    let row = |bytes| {
        let (data, parity) = <[u8]>::split_at_mut(bytes, shape.k * shape.cell_bytes);
        Row {
            data: data.chunks(shape.cell_bytes).collect(),
            parity: parity.chunks_mut(shape.cell_bytes).collect(),
        }
    };
    bytes.chunks_exact_mut(shape.row_bytes()).map(row).collect()
}

/// Where the rows are.
enum Memory {
    Pageable(Vec<u8>),
    PageLocked(PinnedBuffer),
}

impl Memory {
    fn len(code: &Code) -> usize {
        let largest = SHAPES.iter().map(|(cell_bytes, count)| code.n() * cell_bytes * count).max();
        largest.unwrap_or(0).max(ROUND_BYTES)
    }

    fn pageable(code: &Code) -> Self {
        Self::Pageable(vec![0x5a; Self::len(code)])
    }

    fn page_locked(code: &Code, device: &Arc<Device>) -> Result<Self, codec_cuda::CudaError> {
        Ok(Self::PageLocked(device.allocate_pinned(Self::len(code))?))
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Pageable(bytes) => bytes,
            Self::PageLocked(buffer) => buffer.bytes_mut(),
        }
    }
}

/// Bytes of data in the smallest call from which on all calls are faster on the card.
fn faster_from(rows: &[Line], of_card: impl Fn(&Line) -> Option<f64>) -> Option<usize> {
    let is_faster = |line: &&Line| of_card(line).is_some_and(|us| us < line.processor_us);
    rows.iter().rev().take_while(is_faster).last().map(|line| line.data_bytes)
}

fn render(report: &Report) -> String {
    let mut table = Table::new(&[
        "cells of",
        "rows at once",
        "data",
        "one thread",
        "card, pageable",
        "card, page-locked",
    ]);
    for line in &report.rows {
        let rate = |us: f64| format!("{us:.0} us, {:.1} GB/s", line.data_bytes as f64 / us / 1e3);
        let of_card = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), rate);
        table.row(vec![
            format!("{} KiB", line.cell_bytes >> 10),
            line.rows.to_string(),
            format!("{} KiB", line.data_bytes >> 10),
            rate(line.processor_us),
            of_card(line.pageable_us),
            of_card(line.page_locked_us),
        ]);
    }
    let card = match (&report.card, &report.none_because) {
        (Some(name), _) => {
            let from = |bytes: Option<usize>| {
                bytes.map_or_else(|| "never".to_owned(), |bytes| format!("from {} KiB on", bytes >> 10))
            };
            let (pageable, locked) = (from(report.pageable_from), from(report.page_locked_from));
            format!("{name} is faster than one thread: pageable {pageable}; page-locked {locked}")
        }
        (None, why) => format!("no card: {}", why.as_deref().unwrap_or_default()),
    };
    format!("rows of {}\n{}{card}\n", report.code, table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(data_bytes: usize, processor_us: f64, card_us: f64) -> Line {
        let pageable_us = Some(card_us);
        Line { cell_bytes: 1, rows: 1, data_bytes, processor_us, pageable_us, page_locked_us: None }
    }

    #[test]
    fn the_card_is_faster_from_where_it_stays_so() {
        let rows = [line(1, 2.0, 1.0), line(2, 1.0, 2.0), line(3, 2.0, 1.0), line(4, 3.0, 1.0)];
        assert_eq!(faster_from(&rows, |line| line.pageable_us), Some(3));
        assert_eq!(faster_from(&rows, |line| line.page_locked_us), None);
    }

    #[test]
    fn every_row_has_its_cells() {
        let shape = Shape { k: 3, n: 5, cell_bytes: 8, count: 2 };
        let mut bytes = [0; 5 * 8 * 2];
        let rows = rows_of(&mut bytes, shape);
        assert!(rows.len() == 2 && rows.iter().all(|row| row.data.len() == 3 && row.parity.len() == 2));
    }
}
