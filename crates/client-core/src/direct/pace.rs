//! What this client's own part of a write takes: to send its bytes, and to code them.
//!
//! `T = L + bytes sent / uplink + bytes coded / rate` is the model of graphs (`graph::model`), of which the two rates are known here: they
//! say what the one way costs at least where only the other one has been gone.

use types::Time;

/// Times are counted in these for each byte.
pub(super) const PICOS: u64 = 1_000_000;
/// The fastest that was seen counts for so long, and for as long again.
const PERIOD_US: u64 = 10_000_000;
/// Of what was coded before so much counts beside what is coded now.
const CODED_BYTES: u64 = 64 << 20;
const MILLE: u64 = 1000;

/// See the module. All times are in picoseconds for each byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Bytes that were sent in all.
    sent: u64,
    /// The shortest time in this period, and in the one before.
    sending: [Option<u64>; 2],
    ends: Time,
    coded_bytes: u64,
    coded_us: u64,
    /// Bytes that are sent for each thousand that are coded here.
    sent_per_mille: Option<u64>,
}

impl Pace {
    /// Bytes have gone to a socket.
    pub(crate) fn note_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Since `began`, when so many had been sent, a long value has been on its way. What it took is no less than what the uplink takes: so
    /// the shortest of these times is the nearest to it.
    pub(super) fn note_sending(&mut self, now: Time, began: Time, sent_then: u64) {
        let bytes = self.sent.saturating_sub(sent_then);
        let Some(time) = (now.since(began).max(1) * PICOS).checked_div(bytes) else { return };
        if now >= self.ends {
            let is_recent = now.since(self.ends) < PERIOD_US;
            self.sending = [None, self.sending[0].filter(|_| is_recent)];
            self.ends = now + PERIOD_US;
        }
        self.sending[0] = Some(self.sending[0].map_or(time, |best| best.min(time)));
    }

    /// So many bytes were coded in so many microseconds.
    pub(crate) fn note_coded(&mut self, bytes: u64, us: u64) {
        if self.coded_bytes > CODED_BYTES {
            self.coded_bytes /= 2;
            self.coded_us /= 2;
        }
        self.coded_bytes += bytes;
        self.coded_us += us;
    }

    /// Values are cut for `k` roles of `n`.
    pub(super) fn note_code(&mut self, k: usize, n: usize) {
        self.sent_per_mille = (n as u64 * MILLE).checked_div(k as u64);
    }

    pub(super) fn sending(&self) -> Option<u64> {
        self.sending.into_iter().flatten().min()
    }

    pub(super) fn coding(&self) -> Option<u64> {
        (self.coded_us * PICOS).checked_div(self.coded_bytes)
    }

    /// What a byte of a value takes that is coded here, at least.
    pub(super) fn by_client(&self) -> u64 {
        self.of_sent(self.sent_per_mille.unwrap_or(MILLE)) + self.coding().unwrap_or(0)
    }

    /// What it takes less if a node codes it, at most.
    pub(super) fn saved_by_node(&self) -> u64 {
        let more = self.sent_per_mille.unwrap_or(MILLE).saturating_sub(MILLE);
        self.of_sent(more) + self.coding().unwrap_or(0)
    }

    fn of_sent(&self, per_mille: u64) -> u64 {
        self.sending().unwrap_or(0) * per_mille / MILLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_counts_for_two_periods_at_most() {
        let mut pace = Pace::default();
        let mut send = |at: u64, us: u64| {
            let sent_then = pace.sent();
            pace.note_sent(1_000);
            pace.note_sending(Time(at + us), Time(at), sent_then);
            pace.sending().map(|picos| picos / 1_000)
        };
        assert_eq!([send(0, 8), send(10, 2), send(20, 5)], [Some(8), Some(2), Some(2)]);
        assert_eq!(send(PERIOD_US + 20, 5), Some(2), "the one before");
        assert_eq!(send(2 * PERIOD_US + 40, 7), Some(5));
        assert_eq!(send(9 * PERIOD_US, 9), Some(9), "what is older is forgotten");
    }

    #[test]
    fn a_value_that_is_coded_here_costs_its_parities_and_the_coding() {
        let mut pace = Pace::default();
        pace.note_code(3, 5);
        pace.note_sent(1_000);
        pace.note_sending(Time(11), Time(1), 0);
        pace.note_coded(1_000, 1);
        let (sent, coded) = (10_000, 1_000);
        assert_eq!((pace.sending(), pace.coding()), (Some(sent), Some(coded)));
        assert_eq!(
            (pace.by_client(), pace.saved_by_node()),
            (sent * 1_666 / 1_000 + coded, sent * 666 / 1_000 + coded)
        );
    }
}
