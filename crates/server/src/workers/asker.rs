//! Who asked: the one name of a request, on its way and back. It says which reply of which connection of which worker the outcome is, so
//! nobody on the way keeps a table of who waits. Numbers of connections and of replies are not used again, so a late answer, or one for
//! a connection that has ended, finds nobody.
//!
//! Where an answer waits, and what for:
//!
//! | where | what for | why it cannot go on at once |
//! | --- | --- | --- |
//! | its record (`proto`: `primary/stream/log.rs`) | the parities | nobody hears of what may be lost |
//! | the host's `replies` (`proto`: `outbox.rs`) | the cycle | its own connection may be at work; what comes together leaves together |
//! | a batch of `crossings` | its worker | threads share nothing; it travels on the room of its request |
//! | its slot of `clients::replies` | answers before it | clients are answered in order; if it is its turn it is printed at once |
//! | the connection's output, the link's segments | the socket | one call of the system a cycle; both have a bound |
//!
//! Requests wait elsewhere: in a primary (`waiting`) for a lease, room or pages; in `host/routes.rs` while they are at another node, for
//! they may have to be sent again, or have an end, when that is lost; in `peers::incoming` until there is room for their answers.

use proto::Token;

/// Bits of a reply's number: a connection with a million commands a second would have to last for four years to use them up.
const SLOT_BITS: u32 = 47;
/// The bit behind them: set for a stream.
const STREAM: u64 = 1 << SLOT_BITS;
/// The next one: set for the worker's host. Both: for news that it waits for.
const HOST: u64 = STREAM << 1;
const SHARD_SHIFT: u32 = SLOT_BITS + 2;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The worker.
    pub shard: u16,
    /// Its number for the connection.
    pub connection: u64,
    /// The connection's number for the reply.
    pub slot: u64,
    /// What it waits for.
    pub awaits: Awaits,
}

/// What an asker waits for. Told by its name, so that what comes late finds its way, or nobody, without anybody's memory of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// The answer to a request.
    Answer,
    /// News of a value that is sent or read bit by bit (`streams`).
    News,
    /// The answer to a request of the worker's own host, whose number for it is the slot.
    HostAnswer,
    /// News of a value that this host has written, likewise.
    HostNews,
}

impl From<Asker> for Token {
    fn from(asker: Asker) -> Self {
        debug_assert!(asker.slot >> SLOT_BITS == 0, "no connection is asked so much");
        let kind = match asker.awaits {
            Awaits::Answer => 0,
            Awaits::News => STREAM,
            Awaits::HostAnswer => HOST,
            Awaits::HostNews => HOST | STREAM,
        };
        Self([asker.connection, u64::from(asker.shard) << SHARD_SHIFT | kind | asker.slot])
    }
}

impl From<Token> for Asker {
    fn from(Token([connection, rest]): Token) -> Self {
        let slot = rest & (STREAM - 1);
        let awaits = match (rest & STREAM != 0, rest & HOST != 0) {
            (false, true) => Awaits::HostAnswer,
            (true, true) => Awaits::HostNews,
            (true, false) => Awaits::News,
            (false, false) => Awaits::Answer,
        };
        // 15 bits are left, and there are not so many workers.
        Self { shard: (rest >> SHARD_SHIFT) as u16, connection, slot, awaits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_the_asker() {
        for slot in [0, 1, (1 << SLOT_BITS) - 1] {
            for (shard, connection, awaits) in [
                (0, 0, Awaits::News),
                (u16::MAX >> 1, 7 << 32 | 3, Awaits::Answer),
                (1, u64::MAX, Awaits::HostAnswer),
                (2, 0, Awaits::HostNews),
            ] {
                let asker = Asker { shard, connection, slot, awaits };
                assert_eq!(Asker::from(Token::from(asker)), asker);
            }
        }
    }
}
