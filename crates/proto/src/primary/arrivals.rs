//! Items that come from data roles of another pool, whose namespaces move here (docs/pools.md, "To another pool").

use std::collections::BTreeMap;

use types::MemberId;
use types::op::{Expect, Transfer};

use crate::Rules;

/// Most data roles that items come from.
const SENDERS: usize = 1 << 16;

/// Under which number items come from whom. Of none that is not here: a new primary has to be told first.
#[derive(Default)]
pub(super) struct Arrivals {
    expected: BTreeMap<MemberId, Expect>,
}

impl Arrivals {
    /// Items come under this number from now on; false if it is an old one, or there is no room.
    pub(super) fn expect(&mut self, expect: Expect) -> bool {
        let known = self.expected.get(&expect.from);
        let is_new = known.is_none_or(|known| *known <= expect);
        let may = is_new && (known.is_some() || self.expected.len() < SENDERS);
        if may {
            self.expected.insert(expect.from, expect);
        }
        may
    }

    /// Nothing comes any more.
    pub(super) fn clear(&mut self) {
        self.expected.clear();
    }

    /// Whether an item that comes like this is one of those.
    pub(super) fn are_expected(&self, rules: Rules, transfer: &Transfer) -> bool {
        let expected = &transfer.expected;
        rules.conversions().items_are_expected(self.expected.get(&expected.from) == Some(expected))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.expected.len() * size_of::<(MemberId, Expect)>()
    }
}

#[cfg(test)]
mod tests {
    use types::op::Departure;
    use types::{GroupId, RoleIndex, Term, UnixSeconds};

    use super::*;

    fn expect(term: u32, number: u64) -> Expect {
        let from = MemberId { group: GroupId(3), role: RoleIndex(1) };
        Expect { from, term: Term(term), number }
    }

    /// Whether an item is taken that comes under each of these, once items were to come under (2, 5).
    fn taken(rules: Rules) -> [bool; 3] {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.expect(expect(1, 9)) && arrivals.expect(expect(2, 5)));
        assert!(!arrivals.expect(expect(1, 10)) && !arrivals.expect(expect(2, 4)), "they come late");
        let departure = Departure { number: 1, wall: UnixSeconds(0) };
        [expect(1, 9), expect(2, 5), expect(2, 6)].map(|expected| {
            let transfer = Transfer { expected, departure, stale: false, win_sent: false };
            arrivals.are_expected(rules, &transfer)
        })
    }

    #[test]
    fn what_comes_late_of_an_earlier_try_is_not_taken() {
        assert_eq!(taken(Rules::all()), [false, true, false]);
    }

    #[test]
    #[cfg(feature = "planted-bugs")]
    fn an_item_that_comes_late_is_found() {
        assert_eq!(taken(Rules::without(crate::Bug::UnexpectedItem)), [true; 3]);
    }
}
