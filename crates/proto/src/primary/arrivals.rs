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

    /// Whether an item that comes like this is one of those.
    pub(super) fn are_expected(&self, rules: Rules, transfer: &Transfer) -> bool {
        let expected = &transfer.expected;
        rules.items_are_expected(self.expected.get(&expected.from) == Some(expected))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.expected.len() * size_of::<(MemberId, Expect)>()
    }
}
