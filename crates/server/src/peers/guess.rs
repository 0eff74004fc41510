//! How long the next answer will be, going by those before it: what a window of bytes needs to know before the bytes
//! are there.

use std::cell::Cell;

use types::op::{MAX_VALUE_BYTES, Outcome};

/// How fast the guess follows shorter answers: by one part in this many of what it is too long.
const DECAY: usize = 16;

/// As long as the longest answer of late. Begins with the longest that there can be.
#[derive(Debug)]
pub(crate) struct Guess(Cell<usize>);

impl Default for Guess {
    fn default() -> Self {
        Self(Cell::new(MAX_VALUE_BYTES))
    }
}

impl Guess {
    /// Bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.0.get()
    }

    /// Looks at an answer; only values that were read say anything.
    pub(crate) fn learn(&self, outcome: &Outcome) {
        if let Outcome::Hit(item) = outcome {
            let (guess, len) = (self.0.get(), item.value.len());
            // Rounded up, or a guess that is a few bytes too long would stay so for ever.
            self.0.set(len.max(guess - guess.saturating_sub(len).div_ceil(DECAY)));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use types::op::ItemView;

    use super::*;

    #[test]
    fn a_long_answer_counts_at_once_and_short_ones_soon() {
        let hit = |len| Outcome::Hit(ItemView { value: Bytes::from(vec![0; len]), ..ItemView::default() });
        let guess = Guess::default();
        assert_eq!(guess.len_bytes(), MAX_VALUE_BYTES);
        (0..120).for_each(|_| guess.learn(&hit(100)));
        assert!((100..1100).contains(&guess.len_bytes()), "{}", guess.len_bytes());
        guess.learn(&Outcome::Miss);
        guess.learn(&hit(50_000));
        assert_eq!(guess.len_bytes(), 50_000);
    }
}
