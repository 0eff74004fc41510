//! Items whose time is over. Each run knows a lower bound of its items' expiry, so most runs cost one comparison.

use cluster::UnixSeconds;

use super::{CrawlCursor, MAX_BATCH, Victim};
use crate::Addr;
use crate::data_store::DataStore;

/// Runs whose bound one `reclaim` looks at.
const MAX_RUNS: u32 = 256;

impl DataStore {
    /// Goes on from `cursor` over at most `limit` runs, and hands out the expired items in them, at most 64. The next
    /// cursor is the beginning again after the last run.
    pub fn crawl(&mut self, cursor: CrawlCursor, limit: u32, now: UnixSeconds) -> (Vec<Victim>, CrawlCursor) {
        self.set_now(now);
        let mut victims = Vec::new();
        let runs = self.allocator.runs().len() as u32;
        let end = cursor.0.saturating_add(limit.max(1)).min(runs);
        for run in cursor.0..end {
            self.expire_run(run, now, &mut victims);
            if victims.len() == MAX_BATCH {
                // There may be more in this run.
                return (victims, CrawlCursor(run));
            }
        }
        (victims, CrawlCursor(if end < runs { end } else { 0 }))
    }

    /// Expired items among the next runs, if there are any.
    pub(super) fn expired_batch(&mut self, now: UnixSeconds) -> Option<Vec<Victim>> {
        let (victims, next) = self.crawl(CrawlCursor(self.reclaimer.expiry_run), MAX_RUNS, now);
        self.reclaimer.expiry_run = next.0;
        (!victims.is_empty()).then_some(victims)
    }

    fn expire_run(&mut self, at: u32, now: UnixSeconds, victims: &mut Vec<Victim>) {
        if self.allocator.run(at).is_none_or(|run| run.live() == 0 || run.min_expiry > now.0) {
            return;
        }
        let addrs: Vec<Addr> = self.live_addrs(at).collect();
        let mut min_expiry = u32::MAX;
        for addr in addrs {
            let expiry = self.header(addr).map(|header| header.expiry);
            match expiry {
                Some(0) => {}
                // What cannot be read, or has no place in the batch, is for the next pass.
                None => min_expiry = 0,
                Some(_) if victims.len() == MAX_BATCH => min_expiry = 0,
                Some(expiry) => match self.claim_expired(addr, now) {
                    Some(victim) => victims.push(victim),
                    None => min_expiry = min_expiry.min(expiry),
                },
            }
        }
        self.allocator.run_mut(at).min_expiry = min_expiry;
    }

    fn claim_expired(&mut self, addr: Addr, now: UnixSeconds) -> Option<Victim> {
        let expired = self.try_item(addr).is_some_and(|item| item.is_expired(now));
        if expired { self.claim(addr) } else { None }
    }
}
