//! `cargo xtask bench fills --parts`: a client that reads parts of a lost chunk over shaped links, as many others or as a graph.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use codec::Code;
use gestalt::{Bytes, Client, Options, Range};
use tokio::runtime::Builder;

use super::Arguments;
use super::machines::{Cluster, Plan};
use crate::code;

/// A cell, which is what is read.
const CELL: u64 = 64 << 10;
const KEY: &str = "film";
/// How what is lost gets to the client, and what lets nodes choose.
const WAYS: [&str; 2] = ["star", "graph"];
/// How often all lost cells are read before it counts.
const WARM_UPS: usize = 1;

/// One way, measured.
struct Read {
    way: &'static str,
    reads: usize,
    /// Median and the one of a hundred that is next to the longest.
    millis: [f64; 2],
    /// Bytes that nodes have sent to the client, for each read.
    sent: f64,
    /// Bytes that nodes have sent each other, for each read.
    between: f64,
}

/// All codes and bandwidths, as a page.
pub(super) fn run(arguments: &Arguments) -> Result<(), String> {
    let mut page = PREFACE.to_owned();
    for name in &arguments.codes {
        let code = code(name)?;
        for mbit in &arguments.mbit {
            for read in measure(arguments, name, &code, *mbit)? {
                let line = line(name, *mbit, &read);
                println!("{line}");
                let _ = writeln!(page, "{line}");
            }
        }
    }
    let path = arguments.out.join("parts.md");
    fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))
}

const PREFACE: &str = "# Parts of a lost chunk over shaped links\n\n\
    Real processes, one worker each, in network namespaces of one machine of two cores; the links of the nodes and of the client are shaped in both\n\
    directions (`tc tbf`). A value in chunks of 1 MiB, of which the holder of one data role was killed, with nobody to spare; a client that gathers\n\
    values itself (`decode=client`) reads the lost cells, 64 KiB each, one after the other, with `lost=star` and `lost=graph` by turns\n\
    ([clients.md](../clients.md#parts-of-lost-chunks)). Nodes have their defaults. `cargo xtask bench fills --parts` runs it. What a link has not carried\n\
    for a while goes at once, up to 128 KiB at 100 Mbit/s and 1 MB at 1 Gbit/s, where processors decide more than links.\n\n\
    *To the client*: bytes that nodes have sent it for each byte that was read. *Between nodes*: what they have sent each other for that.\n\n\
    | code | Mbit/s | way | ms, median | ms, 99 of 100 | to the client | between nodes | reads |\n\
    | --- | --- | --- | --- | --- | --- | --- | --- |\n";

fn line(code: &str, mbit: u32, read: &Read) -> String {
    let Read { way, reads, millis: [median, most], sent, between } = read;
    let [sent, between] = [sent, between].map(|bytes| bytes / CELL as f64);
    format!("| {code} | {mbit} | {way} | {median:.2} | {most:.2} | {sent:.2} | {between:.2} | {reads} |")
}

fn measure(arguments: &Arguments, name: &str, code: &Code, mbit: u32) -> Result<Vec<Read>, String> {
    let (plan, k) = (Plan::new(name, code.n() as u16, mbit, 1024), code.k() as u64);
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut cluster = Cluster::start(&plan, dir.path())?;
    cluster.shape_nodes()?;
    let value: Bytes = (0..k << 20).map(|at| (at * 31 % 253) as u8).collect::<Vec<u8>>().into();
    let uris =
        WAYS.map(|way| format!("{}?timeout=60s&encode=server&decode=client&lost={way}", cluster.uri()));
    let (role, node) = store(&cluster, &uris[0], &value)?;
    cluster.shape_client(mbit)?;
    // Else the chunks would soon be made anew elsewhere.
    cluster.order(&["repair", "pause"])?;
    cluster.kill(node);
    let ranges: Vec<Range> = (0..value.len() as u64 / (k * CELL))
        .map(|row| Range { start: (row * k + role) * CELL, len: CELL })
        .collect();
    let mut all: Vec<Vec<Round>> = WAYS.map(|_| Vec::new()).into();
    for round in 0..WARM_UPS + arguments.runs.max(1) * 3 {
        for (uri, rounds) in uris.iter().zip(&mut all) {
            let one = read_all(&cluster, uri, &ranges, &value)?;
            if round >= WARM_UPS {
                rounds.push(one);
            }
        }
    }
    let read = |(way, rounds): (&'static str, Vec<Round>)| {
        let mut millis: Vec<f64> = rounds.iter().flat_map(|round| round.millis.iter().copied()).collect();
        millis.sort_by(f64::total_cmp);
        let reads = millis.len();
        // The first read of each round is counted where bytes are.
        let all = (reads + rounds.len()) as f64;
        let of = |bytes: fn(&Round) -> u64| rounds.iter().map(bytes).sum::<u64>() as f64 / all;
        let millis = [millis[reads / 2], millis[reads * 99 / 100]];
        Read { way, reads, millis, sent: of(|round| round.sent), between: of(|round| round.between) }
    };
    Ok(WAYS.into_iter().zip(all).map(read).collect())
}

/// Stores the value; a data role of it whose holder serves no client and has not got the key, and that node.
fn store(cluster: &Cluster, uri: &str, value: &Bytes) -> Result<(u64, u16), String> {
    let (uri, value) = (uri.to_owned(), value.clone());
    cluster.as_client(move || {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let client = connect(&uri).await?;
            client.set(KEY, value).await.map_err(|error| error.to_string())?;
            let places = client.locate(KEY).await.map_err(|error| error.to_string())?;
            let (_, spans) = places.found.ok_or("the value is not there")?;
            let nodes = spans.first().ok_or("the value is nowhere")?.nodes.clone();
            let is_free = |node: &u16| *node != 0 && places.primary.is_none_or(|primary| primary.0 != *node);
            let role = (0..)
                .zip(nodes)
                .find_map(|(role, node)| Some((role, node?.0)).filter(|(_, node)| is_free(node)));
            role.ok_or_else(|| "no node has a chunk alone".to_owned())
        })
    })
}

async fn connect(uri: &str) -> Result<Client, String> {
    let options: Options = uri.parse().map_err(|error| format!("{error}"))?;
    Client::with(&options).await.map_err(|error| format!("{uri}: {error}"))
}

/// What reading all lost cells once has taken.
struct Round {
    millis: Vec<f64>,
    sent: u64,
    between: u64,
}

fn read_all(cluster: &Cluster, uri: &str, ranges: &[Range], value: &Bytes) -> Result<Round, String> {
    let counts = || {
        ["gestalt_client_sent_bytes_total", "gestalt_peer_sent_bytes_total"].map(|name| cluster.metric(name))
    };
    let (uri, ranges, value) = (uri.to_owned(), ranges.to_vec(), value.clone());
    let [sent, between] = counts();
    let millis = cluster.as_client(move || {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let client = connect(&uri).await?;
            // What is known of connections and of the map by then is no part of it.
            let mut millis = Vec::new();
            read(&client, ranges[0], &value).await?;
            for range in ranges {
                millis.push(read(&client, range, &value).await?.as_secs_f64() * 1e3);
            }
            Ok::<_, String>(millis)
        })
    })?;
    let [sent_now, between_now] = counts();
    Ok(Round { millis, sent: sent_now - sent, between: between_now - between })
}

async fn read(client: &Client, range: Range, value: &Bytes) -> Result<Duration, String> {
    let begun = Instant::now();
    let found = client.get_range(KEY, range).await.map_err(|error| error.to_string())?;
    let took = begun.elapsed();
    let (start, end) = range.within(value.len() as u64);
    let is_right = found.is_some_and(|found| found.bytes == value[start as usize..end as usize]);
    if is_right { Ok(took) } else { Err(format!("{range:?} is not what was stored")) }
}
