//! What happens in a run, as bytes: an operation, then its arguments.
//!
//! | operation (modulo 8) | arguments | what happens |
//! | --- | --- | --- |
//! | 0, 1 | from, to, kind, length (2 bytes), body | a frame arrives that nobody has sent |
//! | 2 | count | so many messages arrive |
//! | 3 | time | so many units of 10 ms pass |
//! | 4 | node, key, length | a client writes |
//! | 5 | node, key | a client reads |
//! | 6 | node | a node dies, if more than two are left |
//! | 7 | offset, mask | the next message arrives changed |

use super::world::World;

/// For whom frames are that nobody has sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Hosts,
    Coordinator,
}

/// Most operations of a script.
const MAX_STEPS: usize = 400;

pub(super) fn play(world: &mut World, aim: Aim, bytes: &[u8]) {
    let mut script = Script { rest: bytes };
    for _ in 0..MAX_STEPS {
        if script.step(world, aim).is_none() {
            return;
        }
    }
}

struct Script<'a> {
    rest: &'a [u8],
}

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn step(&mut self, world: &mut World, aim: Aim) -> Option<()> {
        match self.byte()? % 8 {
            0 | 1 => self.inject(world, aim)?,
            2 => (0..self.byte()?).for_each(|_| world.deliver()),
            3 => world.pass(u64::from(self.byte()?) * 10),
            4 => world.write(self.byte()?, self.byte()?, usize::from(self.byte()?) * 64),
            5 => world.read(self.byte()?, self.byte()?),
            6 => world.kill(self.byte()?),
            _ => {
                let (offset, mask) = (usize::from(self.byte()?), self.byte()?);
                world.deliver_changed(|body| {
                    if let Some(byte) = body.get_mut(offset) {
                        *byte ^= mask;
                    }
                });
            }
        }
        Some(())
    }

    fn inject(&mut self, world: &mut World, aim: Aim) -> Option<()> {
        let (from, to, kind) = (self.byte()?, self.byte()?, self.byte()?);
        let len = usize::from(u16::from_le_bytes([self.byte()?, self.byte()?]));
        let (body, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        match aim {
            Aim::Hosts => world.inject(from, to, kind, body),
            Aim::Coordinator => world.inject_up(from, kind, body),
        }
        Some(())
    }
}
