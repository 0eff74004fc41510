//! Rules of namespaces that move to another pool (docs/pools.md, "To another pool").

use super::{Bug, Rules};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct ConversionRules(Rules);

impl Rules {
    /// Those of namespaces that move to another pool.
    pub(crate) fn conversions(self) -> ConversionRules {
        ConversionRules(self)
    }
}

impl ConversionRules {
    /// Who becomes a primary knows the map as it was then: else it would take what has moved to another pool for what never was.
    pub(crate) fn primaries_know_the_map(self, is_appointed_early: bool) -> bool {
        is_appointed_early && self.0.prevent(Bug::EarlyPrimary)
    }

    /// A key of a namespace that moves is written where it has moved to, and only then.
    pub(crate) fn leaving_keys_stay(self, is_leaving: bool) -> bool {
        is_leaving && self.0.prevent(Bug::LeavingKeyWritten)
    }

    /// Of a key that is not here somebody else knows, where its namespace moves.
    pub(crate) fn departed_are_asked_for(self, is_leaving: bool) -> bool {
        is_leaving && self.0.prevent(Bug::DepartedIsMiss)
    }

    /// An item goes when the primary that it has been given to says that it has it.
    pub(crate) fn given_items_have_arrived(self, has_arrived: bool) -> bool {
        has_arrived || !self.0.prevent(Bug::GoneBeforeArrival)
    }

    /// Items come under the number that was named last: a late one of a former try would come back to life.
    pub(crate) fn items_are_expected(self, is_expected: bool) -> bool {
        is_expected || !self.0.prevent(Bug::UnexpectedItem)
    }

    /// Whether a value in chunks can be stored is seen where its key is once that is there.
    pub(crate) fn conditions_are_seen_at_last(self) -> bool {
        self.0.prevent(Bug::ConditionSeenEarly)
    }

    /// What is sent after an item was lost has another number than that one had: one for all that were sent with it.
    pub(crate) fn numbers_are_of_tries(self, is_of_this_try: bool) -> bool {
        is_of_this_try || !self.0.prevent(Bug::NumberForEachLoss)
    }

    /// An item is for the primary that it was sent to, in the conversion in which it was.
    pub(crate) fn items_are_not_sent_on(self, is_item: bool) -> bool {
        is_item && self.0.prevent(Bug::LateItemSentOn)
    }

    /// An id is given without a look at the key only in the conversion by which the key comes.
    pub(crate) fn ids_are_of_this_conversion(self, is_of_this: bool) -> bool {
        is_of_this || !self.0.prevent(Bug::LateIdGiven)
    }

    /// Items keep their versions: whoever has read one may still replace it.
    pub(crate) fn items_keep_versions(self) -> bool {
        self.0.prevent(Bug::VersionsAnew)
    }

    /// What is written in the new pool has other versions than anything had in the former one.
    pub(crate) fn versions_tell_conversions_apart(self) -> bool {
        self.0.prevent(Bug::VersionsRepeat)
    }
}
