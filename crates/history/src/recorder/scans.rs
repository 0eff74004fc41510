//! One who lists keys over and over, while clients write and nodes are hurt: of those that are there throughout none may be missing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gestalt::{Client, Error, Options, Scan};
use tokio::runtime::Builder;

/// Between two scans.
const PAUSE: Duration = Duration::from_millis(100);
/// So few keys a page that a scan takes some while, and nodes are hurt in the midst of it.
const PAGE_KEYS: u16 = 16;

/// One who scans.
pub struct Scans {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Scanned>,
}

/// What has come of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Scans that came to their end.
    pub whole: u64,
    /// Scans that did not, for want of an answer in time.
    pub broken_off: u64,
    /// What is wrong, if anything is.
    pub wrong: Option<String>,
}

/// The keys that are there throughout: this, and behind it a number below `count`.
#[derive(Clone, Debug)]
pub struct Lasting {
    /// What they begin with.
    pub prefix: String,
    /// How many there are.
    pub count: usize,
}

impl Scans {
    /// Begins to scan, at nodes whose native ports are these. The calling thread must be where the clients are.
    #[must_use]
    pub fn start(native: &[SocketAddr], timeout: Duration, lasting: Lasting) -> Self {
        let mut options = Options::default();
        (options.seeds, options.timeout) = (native.to_vec(), timeout);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || scan(&options, &lasting, &stopped));
        Self { stop, thread }
    }

    /// Ends after one more scan.
    ///
    /// # Panics
    /// If the thread has.
    #[must_use]
    pub fn finish(self) -> Scanned {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}

fn scan(options: &Options, lasting: &Lasting, stop: &AtomicBool) -> Scanned {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let mut scanned = Scanned::default();
    runtime.block_on(async {
        let client = Client::lazy(options);
        loop {
            let is_last = stop.load(Ordering::Relaxed);
            let begun = Instant::now();
            match missing(&client, lasting).await {
                Ok(None) => scanned.whole += 1,
                Ok(Some(key)) => {
                    let took = begun.elapsed().as_secs_f64();
                    scanned.wrong = Some(format!("a scan of {took:.1} s has missed {key}, which was there"));
                }
                Err(error) if is_last => scanned.wrong = Some(format!("no scan comes to its end: {error}")),
                Err(_) => scanned.broken_off += 1,
            }
            if is_last || scanned.wrong.is_some() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    scanned
}

/// The first key that a scan has not seen.
async fn missing(client: &Client, lasting: &Lasting) -> Result<Option<String>, Error> {
    let mut scan = Scan::of(lasting.prefix.clone());
    scan.page_keys = PAGE_KEYS;
    let (mut keys, mut seen) = (client.scan(scan), vec![false; lasting.count]);
    while let Some(key) = keys.next().await? {
        let number = std::str::from_utf8(&key).ok().and_then(|key| key.strip_prefix(&lasting.prefix));
        let number = number.and_then(|number| number.parse::<usize>().ok());
        if let Some(seen) = number.and_then(|number| seen.get_mut(number)) {
            *seen = true;
        }
    }
    let missing = seen.iter().position(|seen| !seen);
    Ok(missing.map(|number| format!("{}{number}", lasting.prefix)))
}
