//! Native clients that want to know which keys there are, and whether what they hear is true.

use client_core::{Done, Error, RequestId};

use super::World;
use super::natives::Natively;
use crate::natives::{Came, Scanning, scan_later};

/// Most keys of a page: few, so that much happens between two pages.
const PAGE_KEYS: [u16; 4] = [1, 2, 5, 50];

impl Natively<'_> {
    /// A process begins a scan, unless it makes one.
    pub(super) fn scan(&mut self, process: usize) {
        let World { stage, clients, natives, .. } = self.world();
        if clients.have_stopped() {
            return;
        }
        let owner = &mut natives.processes[process];
        if owner.scanning.is_some() {
            return scan_later(stage, process);
        }
        let rng = &mut stage.rng.natives;
        let (page_keys, at_once) = (rng.pick(&PAGE_KEYS), rng.range(1, 3) as usize);
        note!(stage.book, "native client {process} scans, {page_keys} keys at a time");
        owner.scanning = Some(Scanning::new(clients.watch(owner.namespace), page_keys, at_once));
        self.go_on_scanning(process);
    }

    fn go_on_scanning(&mut self, process: usize) {
        let World { stage, natives, .. } = self.world();
        let owner = &mut natives.processes[process];
        let now = owner.now(stage);
        while let Some(scanning) = &mut owner.scanning
            && let Some((role, operation)) = scanning.ask()
        {
            match owner.core.submit(now, operation) {
                Ok(id) => scanning.asked(id, role),
                Err(_) => owner.scanning = None,
            }
        }
        if owner.scanning.is_none() {
            scan_later(stage, process);
        }
        self.stir(process);
    }

    /// A request has ended; whether it was one of a scan.
    pub(super) fn hear_of_scan(
        &mut self,
        process: usize,
        id: RequestId,
        result: &Result<Done, Error>,
    ) -> bool {
        let World { stage, clients, natives, .. } = self.world();
        let owner = &mut natives.processes[process];
        let Some(scanning) = owner.scanning.as_mut().filter(|scanning| scanning.waits_for(id)) else {
            return owner.scanned.remove(&id);
        };
        match scanning.come(id, result.clone()) {
            Came::More => {
                self.go_on_scanning(process);
                return true;
            }
            Came::All => {
                stage.book.stats.scans += 1;
                if let Some(what) = clients.judge(&scanning.watch, &scanning.seen) {
                    stage.book.fail("scan", None, format!("a scan of native client {process}: {what}"));
                }
            }
            Came::Nothing => {}
            Came::Wrong(error) => {
                let what = format!("a scan of native client {process} comes to {error:?}");
                stage.book.fail("scan", None, what);
            }
        }
        let left = owner.scanning.take().into_iter().flat_map(Scanning::into_asked);
        owner.scanned.extend(left);
        scan_later(stage, process);
        true
    }
}
