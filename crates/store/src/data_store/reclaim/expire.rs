//! Items whose time is over, and those that nobody will ask for any more. Each run knows a lower bound of its items' expiry, so most runs cost one comparison.

use types::UnixSeconds;

use super::ground::{CrawlCursor, Ground, MAX_BATCH, Victim};
use types::Addr;

/// Runs whose bound one `reclaim` looks at.
pub(super) const MAX_RUNS: u32 = 256;

/// Goes on from `cursor` over at most `limit` runs, and hands out the expired items in them, at most 64. The next
/// cursor is the beginning again after the last run.
pub(super) fn crawl(
    ground: &mut Ground<'_>,
    cursor: CrawlCursor,
    limit: u32,
    now: UnixSeconds,
) -> (Vec<Victim>, CrawlCursor) {
    let mut victims = Vec::new();
    let runs = ground.allocator().runs().len() as u32;
    let end = cursor.0.saturating_add(limit.max(1)).min(runs);
    for run in cursor.0..end {
        expire_run(ground, run, now, &mut victims);
        if victims.len() == MAX_BATCH {
            // There may be more in this run.
            return (victims, CrawlCursor(run));
        }
    }
    (victims, CrawlCursor(if end < runs { end } else { 0 }))
}

fn expire_run(ground: &mut Ground<'_>, at: u32, now: UnixSeconds, victims: &mut Vec<Victim>) {
    if ground.allocator().run(at).is_none_or(|run| run.live() == 0 || run.min_expiry > now.0) {
        return;
    }
    let addrs: Vec<Addr> = ground.allocator().live_addrs(at).collect();
    // At a stand-in and at a former mirror lengths have been guessed so far.
    ground.slots.refresh_run(ground.contents, at);
    let mut min_expiry = u32::MAX;
    for addr in addrs {
        let expiry = ground.contents.header(addr).map(|header| header.expiry);
        match expiry {
            Some(0) if !ground.has_garbage => {}
            // What cannot be read, or has no place in the batch, is for the next pass.
            None => min_expiry = 0,
            Some(_) if victims.len() == MAX_BATCH => min_expiry = 0,
            Some(expiry) => match judge(ground, addr, now) {
                Verdict::Goes(victim) => victims.push(victim),
                // A record on its way is about it.
                Verdict::Later => min_expiry = 0,
                Verdict::Stays if expiry == 0 => {}
                Verdict::Stays => min_expiry = min_expiry.min(expiry),
            },
        }
    }
    ground.slots.allocator_mut().run_mut(at).min_expiry = min_expiry;
}

/// What becomes of an item.
enum Verdict {
    Goes(Victim),
    Later,
    Stays,
}

fn judge(ground: &mut Ground<'_>, addr: Addr, now: UnixSeconds) -> Verdict {
    let Ok(item) = ground.contents.read(ground.allocator(), addr) else { return Verdict::Later };
    if !item.is_expired(now) && !ground.is_garbage(&item) {
        return Verdict::Stays;
    }
    ground.claim(addr).map_or(Verdict::Later, Verdict::Goes)
}
