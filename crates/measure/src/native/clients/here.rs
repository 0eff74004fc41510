//! The same cells, asked for by the crate `gestalt`: one thread.

use std::time::{Duration, Instant};

use gestalt::{Bytes, Client, Error};
use nix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::{Asked, FLIGHT, LENGTHS};

/// Who asks, and for what: values of one length.
struct Asker<'a> {
    client: &'a Client,
    value: Bytes,
    keys: usize,
}

/// Asks in all cells, as long in each.
pub(super) fn ask(uri: &str, time: Duration) -> Result<Vec<Asked>, String> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let client = Client::connect(uri).await.map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        for (len, keys) in LENGTHS {
            let asker = Asker { client: &client, value: vec![b'v'; len].into(), keys };
            all.extend(asker.cells(time).await.map_err(|error| error.to_string())?);
        }
        Ok(all)
    })
}

fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

impl Asker<'_> {
    async fn cells(&self, time: Duration) -> Result<Vec<Asked>, Error> {
        for from in (0..self.keys).step_by(FLIGHT) {
            self.set(from, FLIGHT).await?;
        }
        let mut cells = Vec::new();
        for (write, flight) in [(true, 1), (true, FLIGHT), (false, 1), (false, FLIGHT)] {
            cells.push(self.cell(write, flight, time).await?);
        }
        Ok(cells)
    }

    async fn cell(&self, write: bool, flight: usize, time: Duration) -> Result<Asked, Error> {
        let (before, begun) = (cpu(), Instant::now());
        let mut done = 0;
        while begun.elapsed() < time {
            if write {
                self.set(done, flight).await?
            } else {
                self.get(done, flight).await?
            }
            done += flight;
        }
        let (took, cpu) = (begun.elapsed(), cpu() - before);
        Ok(Asked { write, len: self.value.len(), flight, operations: done as u32, took, cpu })
    }

    fn key(&self, at: usize) -> String {
        format!("{:06}-{:08}", self.value.len(), at % self.keys)
    }

    async fn set(&self, from: usize, flight: usize) -> Result<(), Error> {
        if flight == 1 {
            return self.client.set(self.key(from), self.value.clone()).await.map(drop);
        }
        let mut under_way = JoinSet::new();
        for at in from..from + flight {
            let (client, key, value) = (self.client.clone(), self.key(at), self.value.clone());
            under_way.spawn(async move { client.set(key, value).await.map(drop) });
        }
        under_way.join_all().await.into_iter().collect()
    }

    async fn get(&self, from: usize, flight: usize) -> Result<(), Error> {
        let found = self.client.get_many((from..from + flight).map(|at| self.key(at))).await?;
        let is_right = |bytes: &Bytes| bytes.len() == self.value.len() && bytes.last() == Some(&b'v');
        let all = found.iter().all(|value| value.as_ref().is_some_and(|value| is_right(&value.bytes)));
        // What is not what was written must not look like a figure.
        if all { Ok(()) } else { Err(Error::Changed) }
    }
}
