//! What a process counts does not fall while it lives, whoever comes and goes there: rates are drawn from it.

use std::collections::BTreeMap;

use proto::HostStats;
use types::HostId;

use crate::cluster::nodes::Nodes;
use crate::stage::book::Book;

/// What every host counted when it was looked at last, by its number.
#[derive(Default)]
pub(super) struct Counters(BTreeMap<usize, (HostId, Counts)>);

type Counts = [(&'static str, u64); 20];

impl Counters {
    pub(super) fn check(&mut self, book: &mut Book, nodes: &Nodes) {
        for host in 0..nodes.host_count() {
            let Some(stats) = nodes.host(host).map(proto::Host::stats) else { continue };
            let (id, counts) = (nodes.id_of(host), counts_of(&stats));
            let before = self.0.insert(host, (id, counts)).filter(|(before, _)| *before == id);
            let pairs = before.iter().flat_map(|(_, before)| before).zip(&counts);
            if let Some(((name, before), (_, now))) =
                pairs.into_iter().find(|((_, before), (_, now))| now < before)
            {
                book.fail("counters", None, format!("{name} of {id} has fallen from {before} to {now}"));
            }
        }
    }
}

fn counts_of(stats: &HostStats) -> Counts {
    [
        ("reads", stats.reads),
        ("stores", stats.stores),
        ("changes", stats.changes),
        ("forwarded", stats.forwarded),
        ("received_forwards", stats.received_forwards),
        ("rebuilt_bytes", stats.rebuilt_bytes),
        ("resumed_parities", stats.resumed_parities),
        ("accepted_losses", stats.accepted_losses),
        ("evictions", stats.evictions),
        ("refused_writes", stats.refused_writes),
        ("reclaimed", stats.reclaimed),
        ("evicted_unread", stats.evicted_unread),
        ("expired_unread", stats.expired_unread),
        ("expired_reads", stats.expired_reads),
        ("released_extents", stats.released_extents),
        ("scrubbed_pages", stats.scrubbed_pages),
        ("scrub_mismatches", stats.scrub_mismatches),
        ("moved_stripes", stats.objects.moved_stripes),
        ("rewritten_values", stats.objects.rewritten_values),
        ("renamed_uploads", stats.objects.renamed_uploads),
    ]
}
