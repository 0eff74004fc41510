//! What it takes to list keys: the time of a page, by how many keys it has, and what it takes of the servers.
//!
//! One scan at a time, by the crate `gestalt`, with one page under way and with four; the numbers of keys take turns in each round.

use std::time::Instant;

use gestalt::{Client, Options, Scan, Store};
use processes::local_cluster;
use processes::servers::Server;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use super::arguments::Arguments;
use crate::spread::Spread;

/// Keys of the cluster, of some 20 bytes.
const KEYS: usize = 100_000;
const QUICK_KEYS: usize = 2_000;
const VALUE_BYTES: usize = 100;
/// Writes that are waited for at once.
const WRITES: usize = 256;
/// Keys of a page, and pages under way.
const SHAPES: &[(u16, usize)] = &[(1, 1), (16, 1), (64, 1), (256, 1), (256, 4)];

/// Scans of one shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scanned {
    pub page_keys: u16,
    pub at_once: usize,
    /// Keys that one scan brings.
    pub keys: usize,
    /// Microseconds for as many keys as a page has.
    pub page_us: Spread,
    /// The same of all server processes' CPU time.
    pub server_us: Spread,
    /// Thousands of keys a second.
    pub kkeys: Spread,
}

pub fn measure(arguments: &Arguments) -> Result<Vec<Scanned>, String> {
    let mut options = local_cluster::Options::default();
    options.flags.push("--native-scans".to_owned());
    let server = Server::gestalt_with(&options)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let address = server.cluster().ok_or("no cluster")?.native(0)?;
    let options: Options = format!("gestalt://{address}/default").parse().map_err(|bad| format!("{bad}"))?;
    let client = runtime.block_on(Client::with(&options)).map_err(|error| error.to_string())?;
    let keys = if arguments.quick { QUICK_KEYS } else { KEYS };
    runtime.block_on(write(&client, keys)).map_err(|error| error.to_string())?;
    let mut turns = vec![Vec::new(); SHAPES.len()];
    for round in 0..arguments.rounds() as usize {
        for at in 0..SHAPES.len() {
            let index = (round + at) % SHAPES.len();
            turns[index].push(turn(&runtime, &server, &client, SHAPES[index], keys)?);
        }
    }
    let summary = |(&(page_keys, at_once), turns): (&(u16, usize), Vec<[f64; 3]>)| {
        let of = |figure: usize| Spread::of(turns.iter().map(|turn| turn[figure]));
        let scanned = Scanned { page_keys, at_once, keys, page_us: of(0), server_us: of(1), kkeys: of(2) };
        println!("{scanned:?}");
        scanned
    };
    Ok(SHAPES.iter().zip(turns).map(summary).collect())
}

async fn write(client: &Client, keys: usize) -> Result<(), gestalt::Error> {
    let value = gestalt::Bytes::from(vec![b'v'; VALUE_BYTES]);
    let mut under_way = tokio::task::JoinSet::new();
    for number in 0..keys {
        let (client, value) = (client.clone(), value.clone());
        under_way.spawn(async move {
            client.store(format!("key-{number:016}"), value, Store::default()).await.map(drop)
        });
        if under_way.len() >= WRITES
            && let Some(Ok(written)) = under_way.join_next().await
        {
            written?;
        }
    }
    while let Some(Ok(written)) = under_way.join_next().await {
        written?;
    }
    Ok(())
}

/// Microseconds of a page, those of the servers, and thousands of keys a second.
fn turn(
    runtime: &Runtime,
    server: &Server,
    client: &Client,
    (page_keys, at_once): (u16, usize),
    keys: usize,
) -> Result<[f64; 3], String> {
    let mut scan = Scan::default();
    (scan.page_keys, scan.at_once) = (page_keys, at_once);
    let (cpu, begun) = (server.cpu_time(), Instant::now());
    let come = runtime.block_on(client.scan(scan).collect()).map_err(|error| error.to_string())?;
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), (server.cpu_time() - cpu).as_secs_f64());
    if come.len() != keys {
        return Err(format!("{} keys have come of {keys}", come.len()));
    }
    let pages = keys as f64 / f64::from(page_keys);
    Ok([1e6 * seconds / pages, 1e6 * cpu / pages, keys as f64 / 1e3 / seconds])
}
