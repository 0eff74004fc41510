//! Counters of one worker: written by its thread alone, read by anyone at any time.
//!
//! A counter is a line of one table: the field that is counted, and the metric that `/metrics` makes of it.

use std::sync::atomic::{AtomicU64, Ordering};

use types::op::{Failure, OpKind, Outcome};

use crate::exposition::{Metric, Sample};

/// A number with one writer, so that adding costs no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub(crate) fn inc(&self) {
        self.add(1);
    }

    /// So many more.
    pub(crate) fn add(&self, count: usize) {
        self.0.store(self.get().wrapping_add(count as u64), Ordering::Relaxed);
    }

    /// One less.
    pub(crate) fn dec(&self) {
        self.0.store(self.get().wrapping_sub(1), Ordering::Relaxed);
    }

    /// The number.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters, by the metrics that tell them: `kind name "Help." { counter, counter { label = "value" }, ... }`, and those that only
/// the `stats` command tells.
macro_rules! counters {
    (
        metrics {$(
            $kind:ident $metric:ident $help:literal {
                $($name:ident $({ $($label:ident = $text:literal),* })?),*
            }
        )*}
        stats { $($(#[$doc:meta])* $other:ident,)* }
    ) => {
        /// What one worker counts.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[doc = $help] pub $name: Counter,)*)*
            $($(#[$doc])* pub $other: Counter,)*
        }

        /// The counters of one worker, or the sum of several, at one moment.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(crate) struct CounterValues {
            $($(#[doc = $help] pub $name: u64,)*)*
            $($(#[$doc])* pub $other: u64,)*
        }

        impl Counters {
            /// All of them.
            pub(crate) fn values(&self) -> CounterValues {
                CounterValues { $($($name: self.$name.get(),)*)* $($other: self.$other.get(),)* }
            }
        }

        impl CounterValues {
            /// These and those.
            pub(crate) fn plus(&self, other: &Self) -> Self {
                Self {
                    $($($name: self.$name.wrapping_add(other.$name),)*)*
                    $($other: self.$other.wrapping_add(other.$other),)*
                }
            }

            /// What has been counted since `base`; what goes up and down is left as it is.
            pub(crate) fn since(&self, base: &Self) -> Self {
                Self {
                    $($($name: since::$kind(self.$name, base.$name),)*)*
                    $($other: since::counter(self.$other, base.$other),)*
                }
            }
        }

        /// What `/metrics` tells of them.
        pub(crate) const COUNTERS: &[Metric<CounterValues>] = &[$(
            Metric::$kind(stringify!($metric), $help, |values| vec![$(
                Sample { labels: vec![$($((stringify!($label), $text.into())),*)?], value: values.$name.into() }
            ),*]),
        )*];
    };
}

/// What has been counted since a number was `base`, by the kind of metric.
mod since {
    pub(super) fn counter(now: u64, base: u64) -> u64 {
        now.saturating_sub(base)
    }

    pub(super) fn gauge(now: u64, _base: u64) -> u64 {
        now
    }
}

counters! {
    metrics {
        gauge gestalt_connections "Open client connections." { curr_connections }
        counter gestalt_connections_total "Client connections." { total_connections }
        counter gestalt_native_connections_total "Client connections of the native protocol." { native_connections }
        counter gestalt_native_requests_total "Requests over the native protocol." { native_requests }
        counter gestalt_native_scans_total "Pages of keys that native clients asked for." { cmd_scan }
        counter gestalt_native_scanned_keys_total "Keys on pages that were answered." { scanned_keys }
        counter gestalt_native_chunk_requests_total "Requests of clients that read or write chunks themselves." {
            native_fetches { op = "fetch" },
            native_puts { op = "put" }
        }
        counter gestalt_connections_overdue_total "Client connections closed at a deadline." {
            idle_kicks { deadline = "idle" },
            half_sent_kicks { deadline = "half_sent" },
            unread_kicks { deadline = "unread" }
        }
        counter gestalt_client_received_bytes_total "Bytes from clients." { bytes_read }
        counter gestalt_client_sent_bytes_total "Bytes to clients." { bytes_written }
        counter gestalt_client_reads_total "Reads of clients' sockets." { client_reads }
        counter gestalt_client_writes_total "Writes to clients' sockets." { client_writes }
        counter gestalt_client_stalls_total "Times that a client was not read." { client_stalls }
        counter gestalt_requests_total "Requests of this node's clients." {
            get_hits { op = "get", outcome = "hit" },
            get_misses { op = "get", outcome = "miss" },
            cmd_set { op = "set", outcome = "any" },
            delete_hits { op = "delete", outcome = "hit" },
            delete_misses { op = "delete", outcome = "miss" },
            incr_hits { op = "incr", outcome = "hit" },
            incr_misses { op = "incr", outcome = "miss" },
            decr_hits { op = "decr", outcome = "hit" },
            decr_misses { op = "decr", outcome = "miss" },
            touch_hits { op = "touch", outcome = "hit" },
            touch_misses { op = "touch", outcome = "miss" },
            cmd_flush { op = "flush_all", outcome = "any" }
        }
        counter gestalt_request_failures_total "Requests answered with an error." {
            failed_busy { reason = "busy" },
            failed_unavailable { reason = "unavailable" },
            failed_unknown { reason = "unknown" },
            failed_lost { reason = "lost" },
            failed_no_namespace { reason = "no_namespace" },
            failed_corrupt { reason = "corrupt" },
            store_no_memory { reason = "out_of_memory" },
            store_too_large { reason = "too_large" }
        }
        counter gestalt_crossings_total "Requests handed to another worker." { crossings }
        gauge gestalt_links "Links to other nodes." { links_up }
        counter gestalt_link_ups_total "Times that a link came up." { link_ups }
        counter gestalt_link_downs_total "Times that a link went down." { link_downs }
        counter gestalt_link_overflows_total "Links dropped with too much unsent." { link_overflows }
        counter gestalt_link_malformed_total "Links closed for a malformed frame." { peer_malformed }
        counter gestalt_peer_messages_total "Messages between nodes." {
            peer_messages_read { direction = "received" },
            peer_messages_written { direction = "sent" },
            peer_messages_dropped { direction = "dropped" }
        }
        counter gestalt_peer_received_bytes_total "Bytes from other nodes." { peer_bytes_read }
        counter gestalt_peer_sent_bytes_total "Bytes to other nodes." { peer_bytes_written }
        counter gestalt_peer_reads_total "Reads of peers' sockets." { peer_reads }
        counter gestalt_peer_writes_total "Writes to peers' sockets." { peer_writes }
        counter gestalt_pumps_total "Pump cycles of all workers." { pumps }
    }
    stats {
        /// Keys asked for.
        cmd_get,
        /// touch, gat.
        cmd_touch,
        /// Commands of the meta protocol.
        cmd_meta,
        /// cas that stored.
        cas_hits,
        /// cas on a key that was not there.
        cas_misses,
        /// cas with another version.
        cas_badval,
        /// Times that a connection had more to read and others got their turn.
        conn_yields,
    }
}

impl Counters {
    /// An operation begins.
    pub(crate) fn count_command(&self, kind: OpKind) {
        match kind {
            OpKind::Get => self.cmd_get.inc(),
            OpKind::GetAndTouch => {
                self.cmd_get.inc();
                self.cmd_touch.inc();
            }
            OpKind::Touch => self.cmd_touch.inc(),
            OpKind::FlushAll => self.cmd_flush.inc(),
            OpKind::Delete
            | OpKind::Incr
            | OpKind::Decr
            | OpKind::Debug
            | OpKind::Object
            | OpKind::Expect
            | OpKind::Session => (),
            OpKind::Scan => self.cmd_scan.inc(),
            OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Append | OpKind::Prepend | OpKind::Cas => {
                self.cmd_set.inc();
            }
        }
    }

    /// A key was asked for and answered at once.
    pub(crate) fn count_read(&self, outcome: proto::Read) {
        match outcome {
            proto::Read::Hit => self.get_hits.inc(),
            proto::Read::Miss => self.get_misses.inc(),
            // Counted when it is submitted: here it would be counted twice.
            proto::Read::Submit => return,
        }
        self.cmd_get.inc();
    }

    /// An operation has ended.
    pub(crate) fn count_outcome(&self, kind: OpKind, outcome: &Outcome) {
        match outcome {
            Outcome::Failed(failure) => return self.count_failure(*failure),
            Outcome::Keys(page) => return self.scanned_keys.add(page.keys.len()),
            _ => {}
        }
        let hit = !matches!(outcome, Outcome::Miss | Outcome::NotFound);
        let either = |hits: &Counter, misses: &Counter| if hit { hits.inc() } else { misses.inc() };
        match kind {
            OpKind::Get => either(&self.get_hits, &self.get_misses),
            OpKind::GetAndTouch => {
                either(&self.get_hits, &self.get_misses);
                either(&self.touch_hits, &self.touch_misses);
            }
            OpKind::Touch => either(&self.touch_hits, &self.touch_misses),
            OpKind::Delete => either(&self.delete_hits, &self.delete_misses),
            OpKind::Incr => either(&self.incr_hits, &self.incr_misses),
            OpKind::Decr => either(&self.decr_hits, &self.decr_misses),
            OpKind::Cas if *outcome == Outcome::Exists => self.cas_badval.inc(),
            OpKind::Cas => either(&self.cas_hits, &self.cas_misses),
            // memcached counts no outcomes of these, only that they came (`count_command`).
            OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Append | OpKind::Prepend => (),
            OpKind::FlushAll | OpKind::Debug | OpKind::Object | OpKind::Session => (),
            OpKind::Scan | OpKind::Expect => (),
        }
    }

    fn count_failure(&self, failure: Failure) {
        match failure {
            // The client's own mistake: the cluster has not failed.
            Failure::NotANumber => (),
            Failure::TooLarge => self.store_too_large.inc(),
            Failure::OutOfMemory => self.store_no_memory.inc(),
            Failure::Busy | Failure::NotOpen | Failure::Replaced => self.failed_busy.inc(),
            Failure::Unavailable | Failure::WrongPrimary | Failure::NoSession | Failure::Departed(_) => {
                self.failed_unavailable.inc()
            }
            Failure::Lost => self.failed_lost.inc(),
            Failure::Unknown | Failure::Expired => self.failed_unknown.inc(),
            Failure::Corrupt => self.failed_corrupt.inc(),
            Failure::NoNamespace => self.failed_no_namespace.inc(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_by_kind() {
        let counters = Counters::default();
        counters.count_command(OpKind::GetAndTouch);
        counters.count_outcome(OpKind::GetAndTouch, &Outcome::Miss);
        counters.count_outcome(OpKind::Cas, &Outcome::Exists);
        counters.count_outcome(OpKind::Cas, &Outcome::NotFound);
        counters.count_outcome(OpKind::Incr, &Outcome::Number(1, Default::default()));
        counters.count_outcome(OpKind::Set, &Outcome::Failed(Failure::OutOfMemory));
        let values = counters.values();
        assert_eq!((values.cmd_get, values.cmd_touch, values.get_misses, values.touch_misses), (1, 1, 1, 1));
        assert_eq!(
            (values.cas_badval, values.cas_misses, values.incr_hits, values.store_no_memory),
            (1, 1, 1, 1)
        );
    }

    #[test]
    fn a_reset_leaves_gauges_alone() {
        let base = CounterValues { cmd_get: 5, curr_connections: 2, ..Default::default() };
        let now = CounterValues { cmd_get: 7, curr_connections: 3, ..Default::default() };
        let since = now.since(&base);
        assert_eq!((since.cmd_get, since.curr_connections), (2, 3));
    }
}
