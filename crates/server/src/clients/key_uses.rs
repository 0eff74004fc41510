//! Which keys a connection has unanswered commands on: the rule that a pipelined `set a`, `get a` sees the value.
//!
//! A command must not be submitted while an earlier one on the same key is unanswered and either of them writes.
//! Commands on different keys go on side by side.

use proto::Place;
use types::{FastMap, KeyHash};

/// What a command does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Leaves it as it is.
    Read,
    /// May change it.
    Write,
    /// May change every key (`flush_all`).
    WriteAll,
}

/// A command's use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    /// Two keys with one hash only wait for each other without need.
    hash: KeyHash,
    /// What is done to it.
    access: Access,
}

/// The uses of all unanswered commands of one connection.
#[derive(Debug, Default)]
pub(crate) struct KeyUses {
    keys: FastMap<KeyHash, Count>,
    open: usize,
    barriers: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    reads: u32,
    writes: u32,
}

impl KeyUse {
    /// Of what is at `place`.
    pub(crate) fn of(place: Place, access: Access) -> Self {
        // As long as there is no map keys have other hashes than later: then everything waits for everything.
        let access = if place.member.is_none() { Access::WriteAll } else { access };
        Self { hash: place.hash, access }
    }

    /// Whether it may change something.
    pub(crate) fn writes(self) -> bool {
        self.access != Access::Read
    }

    /// Of all keys.
    pub(crate) const ALL: Self = Self { hash: KeyHash(0), access: Access::WriteAll };
}

impl KeyUses {
    /// Whether nothing is open: no key needs to be hashed.
    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Whether `wanted` has to wait.
    pub(crate) fn conflicts(&self, wanted: KeyUse) -> bool {
        if self.open == 0 {
            return false;
        }
        let count = self.keys.get(&wanted.hash).copied().unwrap_or_default();
        self.barriers > 0
            || match wanted.access {
                Access::Read => count.writes > 0,
                Access::Write => count.reads + count.writes > 0,
                Access::WriteAll => true,
            }
    }

    /// A command was submitted.
    pub(crate) fn open(&mut self, used: KeyUse) {
        self.open += 1;
        let count = match used.access {
            Access::WriteAll => {
                self.barriers += 1;
                return;
            }
            Access::Read | Access::Write => self.keys.entry(used.hash).or_default(),
        };
        match used.access {
            Access::Read => count.reads += 1,
            Access::Write | Access::WriteAll => count.writes += 1,
        }
    }

    /// It was answered.
    pub(crate) fn close(&mut self, used: KeyUse) {
        self.open -= 1;
        if used.access == Access::WriteAll {
            self.barriers -= 1;
            return;
        }
        let Some(count) = self.keys.get_mut(&used.hash) else { return };
        match used.access {
            Access::Read => count.reads -= 1,
            Access::Write | Access::WriteAll => count.writes -= 1,
        }
        // Else every key that was ever asked for would stay here.
        if count.reads + count.writes == 0 {
            self.keys.remove(&used.hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{ClusterId, GroupId, MemberId, RoleIndex};

    use super::*;

    fn using(key: &str, access: Access) -> KeyUse {
        let member = Some(MemberId { group: GroupId(0), role: RoleIndex(0) });
        KeyUse::of(Place { hash: KeyHash::of(ClusterId(1), key.as_bytes()), member, refusal: None }, access)
    }

    #[test]
    fn writes_exclude_and_reads_share() {
        let mut uses = KeyUses::default();
        uses.open(using("a", Access::Read));
        assert!(!uses.conflicts(using("a", Access::Read)));
        assert!(uses.conflicts(using("a", Access::Write)));
        assert!(!uses.conflicts(using("b", Access::Write)));
        uses.close(using("a", Access::Read));
        uses.open(using("a", Access::Write));
        assert!(uses.conflicts(using("a", Access::Read)));
        uses.close(using("a", Access::Write));
        assert!(uses.is_empty() && uses.keys.is_empty());
    }

    #[test]
    fn a_flush_waits_for_everything_and_everything_for_it() {
        let mut uses = KeyUses::default();
        let flush = KeyUse::ALL;
        assert!(!uses.conflicts(flush));
        uses.open(using("a", Access::Read));
        assert!(uses.conflicts(flush));
        uses.close(using("a", Access::Read));
        uses.open(flush);
        assert!(uses.conflicts(using("b", Access::Read)));
        uses.close(flush);
        assert!(!uses.conflicts(using("b", Access::Read)));
    }
}
