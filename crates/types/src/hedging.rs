//! When a reader of chunks asks others for what one holder is slow to send: by how long rows have taken here, and for no more than a small
//! part of all bytes.

/// Bytes that may be asked for in vain, in percent of those that are asked for anyway.
const PERCENT: u64 = 5;
/// What is not used up is kept up to so many bytes.
const MOST_CREDIT: u64 = 1 << 20;
/// Nobody is called slow before this part of the longest patience.
const LEAST_SHARE: u64 = 16;
/// Of each row that took longer than nineteen of twenty the estimate rises by this part of it, and falls by a nineteenth of that with each
/// other one: so it stays where one of twenty takes longer.
const STEP: u64 = 8;
const OTHERS: u64 = 19;

/// See the module.
#[derive(Debug, Default)]
pub struct Hedging {
    /// Nineteen of twenty rows take no longer, in microseconds; 0 before there was one.
    usual_us: u64,
    credit: u64,
    /// Cells that were asked for because others were slow.
    cells: u64,
}

impl Hedging {
    /// A row of so many bytes is asked for.
    pub fn note_asked(&mut self, bytes: usize) {
        self.credit = (self.credit + bytes as u64 * PERCENT / 100).min(MOST_CREDIT);
    }

    /// One was there after so many microseconds.
    pub fn note_whole(&mut self, us: u64) {
        let step = self.usual_us / STEP + OTHERS;
        self.usual_us = match self.usual_us {
            0 => us.max(1),
            usual if us > usual => us.min(usual + step),
            usual => us.max(usual.saturating_sub(step / OTHERS)).max(1),
        };
    }

    /// After how long a row is slow; never more than `most_us`.
    #[must_use]
    pub fn patience_us(&self, most_us: u64) -> u64 {
        if self.usual_us == 0 { most_us } else { self.usual_us.max(most_us / LEAST_SHARE).min(most_us) }
    }

    /// Whether so many cells of so many bytes may be asked for besides.
    #[must_use]
    pub fn take(&mut self, cells: usize, cell_len: u32) -> bool {
        let bytes = cells as u64 * u64::from(cell_len);
        let may = cells > 0 && bytes <= self.credit;
        if may {
            self.credit -= bytes;
            self.cells += cells as u64;
        }
        may
    }

    /// How many cells were asked for besides.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_what_nineteen_of_twenty_rows_take() {
        let mut hedging = Hedging::default();
        assert_eq!(hedging.patience_us(25_000), 25_000, "before anything is known");
        // One row of ten takes long: it is among the slow twentieth and what is next to it.
        for row in 0..20_000u64 {
            hedging.note_whole(2_000 + row % 100 * 10);
        }
        let patience = hedging.patience_us(25_000);
        assert!((2_850..=2_990).contains(&patience), "{patience} of 2,000 to 2,990");
        for _ in 0..20_000 {
            hedging.note_whole(100);
        }
        assert_eq!(hedging.patience_us(25_000), 25_000 / LEAST_SHARE);
        for _ in 0..20_000 {
            hedging.note_whole(1_000_000);
        }
        assert_eq!(hedging.patience_us(25_000), 25_000);
    }

    #[test]
    fn no_more_than_one_byte_of_twenty_is_asked_for_in_vain() {
        let mut hedging = Hedging::default();
        let mut asked = 0;
        for _ in 0..1_000 {
            hedging.note_asked(3 * 64_000);
            asked += 3 * 64_000;
            let _ = hedging.take(1, 64_000);
        }
        let besides = hedging.cells() * 64_000;
        assert!(besides * 20 <= asked && besides * 20 > asked - 20 * 64_000, "{besides} of {asked}");
        hedging.note_asked(1 << 30);
        assert!(!hedging.take(17, 64 << 10), "what is kept has a bound");
        assert!(hedging.take(16, 64 << 10));
    }
}
