//! Valid messages with a few wrong bytes.

use wire::record::Record;

use super::seal;
use super::world::World;

/// A small generator of numbers (xorshift64*).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }
}

/// Steps of a run.
const STEPS: usize = 600;

/// A cluster at work, of whose messages one in a few is changed.
pub(super) fn run(world: &mut World, dice: &mut Dice) {
    let calm = [20, 60, 2_000][dice.below(3) as usize];
    let one_in = 3 + dice.below(calm);
    for _ in 0..STEPS {
        match dice.below(40) {
            0..10 => world.tick(),
            10..14 => world.write(dice.byte(), dice.byte() % 32, [10, 3000, 90_000][dice.below(3) as usize]),
            14..20 => world.read(dice.byte(), dice.byte() % 32),
            20 if dice.below(5) == 0 => world.kill(dice.byte()),
            21 if dice.below(3) == 0 => world.flush(),
            22 if dice.below(3) == 0 => world.cut_and_join(dice.byte(), dice.byte()),
            _ => {}
        }
        for _ in 0..dice.below(40) {
            // A parity refuses a term so seldom that chance alone would not change such a message.
            if dice.below(one_in) == 0 || world.next_is_reject() {
                world.deliver_changed(|body| change(body, dice));
            } else {
                world.deliver();
            }
        }
    }
    world.pass(3000);
}

/// One to three numbers of the body are others.
fn change(body: &mut [u8], dice: &mut Dice) {
    for _ in 0..1 + dice.below(3) {
        // The head of a message is where its numbers are.
        let len = body.len() as u64;
        let end = if dice.below(3) > 0 { len.min(64) } else { len };
        let at = dice.below(end) as usize;
        let width = [1, 1, 2, 4, 8][dice.below(5) as usize];
        let place = body.get_mut(at..).unwrap_or_default();
        let width = place.len().min(width);
        let old = place[..width].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let new = match dice.below(8) {
            0 => old.wrapping_add(1 + dice.below(3)),
            1 => old.wrapping_sub(1 + dice.below(3)),
            2 => 0,
            3 => u64::MAX,
            4 => u64::MAX / 2,
            5 => old ^ 1 << dice.below(8 * width as u64),
            6 => dice.below(64),
            _ => dice.next(),
        };
        place[..width].copy_from_slice(&new.to_le_bytes()[..width]);
    }
}

/// `record`, or what it is after a few of its numbers have become others, if it is one then.
pub(super) fn record(record: &Record, dice: &mut Dice) -> Option<Record> {
    if dice.below(3) > 0 {
        return Some(record.clone());
    }
    let mut body = seal::body_of_record(&record.encode().ok()?).to_vec();
    change(&mut body, dice);
    Record::decode(&record.key(), &seal::record(&body)).ok()
}
