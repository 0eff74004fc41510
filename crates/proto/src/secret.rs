//! What a process knows and nobody else does: of it the numbers of clients' sessions are made (docs/native-protocol.md, "Sessions").
//!
//! Whoever has the number of a session can write under its names, and be told what came of its writes. So it is no counter, but a
//! pseudorandom function of one: nobody learns from his own number, or from all that he has ever seen, which another one is.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use types::{ClientSession, MemberId, Seq, Term};

/// See the module. The driver draws it when the process begins, of bits that nobody can guess.
#[derive(Clone, Copy)]
pub struct Secret(u64, u64);

impl Secret {
    /// Of the bits that were drawn.
    #[must_use]
    pub const fn of(bits: [u64; 2]) -> Self {
        Self(bits[0], bits[1])
    }

    /// One that everybody knows: for tests, where there is nobody to hide anything from.
    #[must_use]
    pub const fn known_to_all() -> Self {
        Self(0, 0)
    }

    /// The number of the session that record `seq` begins.
    pub(crate) fn session(&self, member: MemberId, term: Term, seq: Seq) -> ClientSession {
        let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
        hasher.write_u32(member.group.0);
        hasher.write_u8(member.role.0);
        hasher.write_u32(term.0);
        hasher.write_u64(seq.0);
        ClientSession(hasher.finish())
    }
}

/// It is in no log.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use types::{GroupId, RoleIndex};

    use super::*;

    #[test]
    fn numbers_are_of_the_secret_and_of_the_record_and_differ_in_half_their_bits() {
        let member = MemberId { group: GroupId(3), role: RoleIndex(1) };
        let number = |secret: Secret, seq| secret.session(member, Term(2), Seq(seq)).0;
        let (secret, other) = (Secret::of([1, 2]), Secret::of([1, 3]));
        assert_eq!(number(secret, 9), number(secret, 9));
        let differ: u32 =
            (0..64).map(|seq| (number(secret, seq) ^ number(secret, seq + 1)).count_ones()).sum();
        let apart: u32 = (0..64).map(|seq| (number(secret, seq) ^ number(other, seq)).count_ones()).sum();
        assert!([differ, apart].iter().all(|bits| (1800..2300).contains(bits)), "{differ} {apart} of 4096");
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
