//! Counters of one worker: written by its thread alone, read by anyone at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use types::op::{Failure, OpKind, Outcome};

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

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What one worker counts.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub $name: Counter,)*
        }

        /// The counters of one worker, or the sum of several, at one moment.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(crate) struct CounterValues {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// All of them.
            pub(crate) fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.get(),)* }
            }
        }

        impl CounterValues {
            /// These and those.
            pub(crate) fn plus(&self, other: &Self) -> Self {
                Self { $($name: self.$name.wrapping_add(other.$name),)* }
            }

            /// What has been counted since `base`; what goes up and down is left as it is.
            pub(crate) fn since(&self, base: &Self) -> Self {
                let mut values = Self { $($name: self.$name.saturating_sub(base.$name),)* };
                values.curr_connections = self.curr_connections;
                values.links_up = self.links_up;
                values
            }
        }
    };
}

counters! {
    /// Open client connections.
    curr_connections,
    /// Client connections ever.
    total_connections,
    /// Keys asked for.
    cmd_get,
    /// Storage commands.
    cmd_set,
    /// flush_all.
    cmd_flush,
    /// touch, gat.
    cmd_touch,
    /// Commands of the meta protocol.
    cmd_meta,
    /// Keys found.
    get_hits,
    /// Keys not found.
    get_misses,
    /// delete of a key that was there.
    delete_hits,
    /// delete of a key that was not there.
    delete_misses,
    /// incr of a key that was there.
    incr_hits,
    /// incr of a key that was not there.
    incr_misses,
    /// decr of a key that was there.
    decr_hits,
    /// decr of a key that was not there.
    decr_misses,
    /// cas that stored.
    cas_hits,
    /// cas on a key that was not there.
    cas_misses,
    /// cas with another version.
    cas_badval,
    /// touch of a key that was there.
    touch_hits,
    /// touch of a key that was not there.
    touch_misses,
    /// Values longer than an item may be.
    store_too_large,
    /// Values for which there was no memory.
    store_no_memory,
    /// Bytes from clients.
    bytes_read,
    /// Bytes to clients.
    bytes_written,
    /// Reads of clients' sockets.
    client_reads,
    /// Writes to clients' sockets.
    client_writes,
    /// Times that a connection was not read because its window or the node's buffers were full.
    client_stalls,
    /// Times that a connection had more to read and others got their turn.
    conn_yields,
    /// Connections closed because they were silent.
    idle_kicks,
    /// Connections closed because a command did not arrive in full.
    half_sent_kicks,
    /// Connections closed because replies were not read.
    unread_kicks,
    /// Requests refused because a queue was full or their time was up.
    failed_busy,
    /// Requests refused because no primary could be reached.
    failed_unavailable,
    /// Requests whose outcome is not known.
    failed_unknown,
    /// Requests for what is lost.
    failed_lost,
    /// Requests that met a wrong checksum.
    failed_corrupt,
    /// Requests handed to another worker.
    crossings,
    /// Peer links that are up.
    links_up,
    /// Times that a peer link came up.
    link_ups,
    /// Times that a peer link went down.
    link_downs,
    /// Peer links dropped because too much was unsent.
    link_overflows,
    /// Peer links closed because of a malformed frame.
    peer_malformed,
    /// Messages from peers.
    peer_messages_read,
    /// Messages to peers.
    peer_messages_written,
    /// Messages dropped because the link was down.
    peer_messages_dropped,
    /// Bytes from peers.
    peer_bytes_read,
    /// Bytes to peers.
    peer_bytes_written,
    /// Reads of peers' sockets.
    peer_reads,
    /// Writes to peers' sockets.
    peer_writes,
    /// Pump cycles.
    pumps,
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
            OpKind::Delete | OpKind::Incr | OpKind::Decr | OpKind::Debug => (),
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
            proto::Read::Submit => return,
        }
        self.cmd_get.inc();
    }

    /// An operation has ended.
    pub(crate) fn count_outcome(&self, kind: OpKind, outcome: &Outcome) {
        if let Outcome::Failed(failure) = outcome {
            return self.count_failure(*failure);
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
            OpKind::Set | OpKind::Add | OpKind::Replace | OpKind::Append | OpKind::Prepend => (),
            OpKind::FlushAll | OpKind::Debug => (),
        }
    }

    fn count_failure(&self, failure: Failure) {
        match failure {
            Failure::NotANumber => (),
            Failure::TooLarge => self.store_too_large.inc(),
            Failure::OutOfMemory => self.store_no_memory.inc(),
            Failure::Busy => self.failed_busy.inc(),
            Failure::Unavailable | Failure::WrongPrimary => self.failed_unavailable.inc(),
            Failure::Lost => self.failed_lost.inc(),
            Failure::Unknown => self.failed_unknown.inc(),
            Failure::Corrupt => self.failed_corrupt.inc(),
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
