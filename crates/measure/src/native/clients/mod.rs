//! What a client's process takes for an operation: the C library and the crate `gestalt` beside libmemcached, which has done the same for
//! memcached's protocol for fifteen years.
//!
//! Each is a process of its own that asks cell by cell (`cells.h`), waiting for each answer and with many operations asked for at once; the crate
//! is this process. CPU is that of all threads of the client, user and system.

mod here;
mod programs;

use std::time::Duration;

use processes::servers::Server;
use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use super::runs::{MEMCACHED_MIB, NODE_MEMORY, PROCESSES};
use crate::spread::Spread;
use programs::Program;

/// Operations that are asked for at once where nothing blocks.
const FLIGHT: usize = 32;
/// Lengths of values, and how many keys there are of each.
const LENGTHS: [(usize, usize); 2] = [(1024, 3200), (100_000, 320)];

/// One client in one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    /// Its name, and whom it asks.
    pub who: String,
    pub write: bool,
    pub len: usize,
    /// Operations that are asked for at once.
    pub flight: usize,
    /// Microseconds of CPU of the client's process for each operation.
    pub cpu_us: Spread,
    /// Thousands of operations a second.
    pub kops: Spread,
}

/// What one turn of one client came to in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Asked {
    write: bool,
    len: usize,
    flight: usize,
    operations: u32,
    took: Duration,
    cpu: Duration,
}

/// A client, and what it is given.
enum Asker {
    Crate(String),
    Program(Program),
}

pub fn measure(arguments: &Arguments) -> Result<Vec<Client>, String> {
    let cluster = Server::gestalt("rs(3+2)", PROCESSES, NODE_MEMORY)?;
    let memcached = Server::memcacheds(PROCESSES, MEMCACHED_MIB, 1)?;
    let address = cluster.cluster().ok_or("no cluster")?.native(0)?;
    let uri = format!("gestalt://{address}/default");
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut askers = vec![("the crate gestalt".to_owned(), Asker::Crate(uri.clone()))];
    match &arguments.python_library {
        Some(library) => {
            let program = Program::of_library(dir.path(), library, uri)?;
            askers.push(("the C library".to_owned(), Asker::Program(program)));
        }
        None => println!("left out: the C library, for want of --python-library"),
    }
    match Program::of_libmemcached(dir.path())? {
        Some(program) => {
            for (to, server) in [("memcached", &memcached), ("Gestalt", &cluster)] {
                let name = format!("{} to {to}", program.version()?);
                askers.push((name, Asker::Program(program.clone().to(&server.addresses))));
            }
        }
        None => println!("left out: libmemcached, for want of Debian's libmemcached-dev"),
    }
    in_turns(arguments, &askers)
}

/// All clients take turns in each round.
fn in_turns(arguments: &Arguments, askers: &[(String, Asker)]) -> Result<Vec<Client>, String> {
    let time = Duration::from_millis(arguments.milliseconds().into());
    let mut turns = vec![Vec::new(); askers.len()];
    for round in 0..arguments.rounds() as usize {
        for at in 0..askers.len() {
            let index = (round + at) % askers.len();
            let (name, asker) = &askers[index];
            let asked = match asker {
                Asker::Crate(uri) => here::ask(uri, time),
                Asker::Program(program) => program.ask(time),
            };
            turns[index].push(asked.map_err(|reason| format!("{name}: {reason}"))?);
        }
    }
    let clients: Vec<Client> =
        askers.iter().zip(&turns).flat_map(|((name, _), turns)| summaries(name, turns)).collect();
    clients.iter().for_each(|client| println!("{client:?}"));
    Ok(clients)
}

/// A line for each cell, which come in the same order in each turn.
fn summaries(who: &str, turns: &[Vec<Asked>]) -> Vec<Client> {
    let cells = turns.first().map_or(0, Vec::len);
    let summary = |cell: usize| {
        let Asked { write, len, flight, .. } = turns[0][cell];
        let of = |figure: fn(&Asked) -> f64| Spread::of(turns.iter().map(|turn| figure(&turn[cell])));
        let cpu_us = of(|asked| asked.cpu.as_secs_f64() * 1e6 / f64::from(asked.operations));
        let kops = of(|asked| f64::from(asked.operations) / 1e3 / asked.took.as_secs_f64());
        Client { who: who.to_owned(), write, len, flight, cpu_us, kops }
    };
    (0..cells).map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_medians_of_each_cell() {
        let of = |len, operations, cpu_ms| Asked {
            write: true,
            len,
            flight: 1,
            operations,
            took: Duration::from_secs(1),
            cpu: Duration::from_millis(cpu_ms),
        };
        let turns = [10, 30, 20].map(|cpu_ms| vec![of(1, 1000, cpu_ms), of(2, 4000, 2 * cpu_ms)]);
        let medians = summaries("it", &turns)
            .iter()
            .map(|c| (c.len, c.cpu_us.median, c.kops.median))
            .collect::<Vec<_>>();
        assert_eq!(medians, [(1, 20.0, 1.0), (2, 10.0, 4.0)]);
    }
}
