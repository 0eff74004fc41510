//! How much of the resident memory holds keys and values: when full, after random overwrites, and after the sizes of values
//! have changed.

mod client;

use processes::local_cluster::{LocalCluster, Options};
use serde_json::Value;

use crate::alone::arguments::Arguments;
use client::{Client, Command, Tally};

/// Full means that one in so many sets is refused.
const FULL: u64 = 50;
/// Sets between two looks at whether it is full.
const STEP: u64 = 5_000;
/// Times that a key is overwritten, on average.
const OVERWRITES: u64 = 3;
/// Sizes of values, one after the other.
const SHIFTS: [usize; 4] = [100, 1024, 4096, 100];

/// Prints one table.
pub fn measure(arguments: &Arguments) -> Result<(), String> {
    println!(
        "\nKeys and values per resident byte (net of empty processes), five nodes of {}:\n\
         | evict | phase | items | refused | keys and values | resident | share |\n\
         | --- | --- | --- | --- | --- | --- | --- |",
        arguments.node_memory
    );
    overwrite(arguments, "1 KiB", |_| 1024)?;
    overwrite(arguments, "64 B .. 4 KiB", |dice| 64 + (dice % 4033) as usize)?;
    shift_by_deletion(arguments)?;
    shift_by_eviction(arguments)
}

/// A cluster, and what it was before anything was stored.
struct Bed {
    cluster: LocalCluster,
    client: Client,
    evict: &'static str,
    empty: u64,
    /// The next key that was never written.
    next: u64,
    dice: u64,
}

impl Bed {
    fn new(arguments: &Arguments, evict: &'static str) -> Result<Self, String> {
        let flags = vec!["--evict".to_owned(), evict.to_owned()];
        let memory = arguments.node_memory.clone();
        let cluster = LocalCluster::start(&Options { memory, flags, ..Options::default() })?;
        let client = Client::new(&cluster.all_memcached())?;
        let mut bed = Self { cluster, client, evict, empty: 0, next: 0, dice: 1 };
        bed.empty = number(&bed.memory()?, "resident");
        Ok(bed)
    }

    fn roll(&mut self) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The lower bits of this generator repeat soon.
        self.dice >> 33
    }

    /// Writes new keys until too many are refused.
    fn fill(&mut self, size: impl Fn(u64) -> usize) -> Result<Tally, String> {
        let mut all = Tally::default();
        loop {
            let sets: Vec<Command> =
                (self.next..self.next + STEP).map(|key| Command::Set(key, size(self.roll()))).collect();
            self.next += STEP;
            let tally = self.client.run(sets)?;
            all.done += tally.done;
            all.refused += tally.refused;
            if tally.refused * FULL > STEP {
                return Ok(all);
            }
        }
    }

    /// Writes new keys of `len` bytes each, `bytes` in all.
    fn write(&mut self, len: usize, bytes: u64) -> Result<Tally, String> {
        let first = self.next;
        self.next += bytes / len as u64;
        self.client.run((first..self.next).map(|key| Command::Set(key, len)))
    }

    fn memory(&self) -> Result<Value, String> {
        let (_, out, error) =
            self.cluster.gestalt(&["status", "--memory", "-o", "json", "--http", "{http}"])?;
        let report: Value = serde_json::from_str(&out).map_err(|_| error)?;
        Ok(report["all"].clone())
    }

    fn print(&self, phase: &str, refused: u64) -> Result<(), String> {
        let all = self.memory()?;
        let resident = number(&all, "resident").saturating_sub(self.empty);
        let (items, stored) = (number(&all, "items"), number(&all, "item_payloads"));
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "| {} | {phase} | {items} | {refused} | {:.1} MiB | {:.1} MiB | {:.3} |",
            self.evict,
            mib(stored),
            mib(resident),
            stored as f64 / resident as f64
        );
        Ok(())
    }
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or(0)
}

/// Fills to four fifths of what fits, then overwrites keys at random.
fn overwrite(arguments: &Arguments, sizes: &str, size: impl Fn(u64) -> usize) -> Result<(), String> {
    let mut full = Bed::new(arguments, "none")?;
    let fits = full.fill(&size)?.done;
    full.print(&format!("full of {sizes}"), 0)?;
    // The next one is another cluster: a store that was full once has cut its memory
    // otherwise than one that never was.
    drop(full);
    let mut bed = Bed::new(arguments, "none")?;
    let keys = fits * 4 / 5;
    let sets: Vec<Command> = (0..keys).map(|key| Command::Set(key, size(bed.roll()))).collect();
    let tally = bed.client.run(sets)?;
    bed.print(&format!("four fifths of that, {sizes}"), tally.refused)?;
    let mut refused = 0;
    for _ in 0..OVERWRITES {
        let sets: Vec<Command> =
            (0..keys).map(|_| Command::Set(bed.roll() % keys, size(bed.roll()))).collect();
        refused += bed.client.run(sets)?.refused;
    }
    bed.print(&format!("overwritten {OVERWRITES} times, {sizes}"), refused)
}

/// Everything of one size is deleted, and the next one takes its place.
fn shift_by_deletion(arguments: &Arguments) -> Result<(), String> {
    let mut bed = Bed::new(arguments, "none")?;
    for len in SHIFTS {
        let first = bed.next;
        let tally = bed.fill(|_| len)?;
        bed.print(&format!("full of {len} B"), tally.refused)?;
        bed.client.run((first..bed.next).map(Command::Delete))?;
    }
    Ok(())
}

/// The next size pushes the one before out: one and a half times what fits is written.
fn shift_by_eviction(arguments: &Arguments) -> Result<(), String> {
    let mut bed = Bed::new(arguments, "clock")?;
    let status = bed.cluster.gestalt(&["status", "-o", "json", "--http", "{http}"])?.1;
    let status: Value = serde_json::from_str(&status).map_err(|error| error.to_string())?;
    let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
    let limit: u64 = nodes.iter().map(|node| number(node, "memory_limit_bytes")).sum();
    for len in SHIFTS {
        // With rs(3+2) three fifths of all memory can be values, and one and a half times that is nine tenths.
        let tally = bed.write(len, limit * 9 / 10)?;
        bed.print(&format!("one and a half times full of {len} B"), tally.refused)?;
    }
    Ok(())
}
