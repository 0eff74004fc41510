//! The rules of values in chunks (docs/objects.md).

use types::{Holder, Term, ViewVersion};
use wire::object::Verdict;

use super::{Bug, Rules};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct ObjectRules(Rules);

impl Rules {
    /// Those of values in chunks.
    pub(crate) fn objects(self) -> ObjectRules {
        ObjectRules(self)
    }
}

impl ObjectRules {
    /// A holder judges the view when the last cell is there, not when the first one came.
    pub(crate) fn view_that_judges(self, at_start: ViewVersion, at_end: ViewVersion) -> ViewVersion {
        if self.0.prevent(Bug::ViewJudgedAtStart) { at_end } else { at_start }
    }

    /// A stripe is done when every holder has acknowledged it; so many may be missing.
    pub(crate) fn missing_acknowledgements(self) -> usize {
        usize::from(!self.0.prevent(Bug::AckMissing))
    }

    /// Who is not named any more drops its chunks once another one is whole.
    pub(crate) fn relieved_holders_drop_chunks(self) -> bool {
        self.0.prevent(Bug::FormerHolderKeepsChunks)
    }

    /// What may still be committed is not dead.
    pub(crate) fn verdict_of_open(self) -> Verdict {
        if self.0.prevent(Bug::OpenTakenForDead) { Verdict::Open } else { Verdict::Dead }
    }

    /// An id that nobody renews ends.
    pub(crate) fn open_ids_end(self) -> bool {
        self.0.prevent(Bug::OpenIdLeaked)
    }

    /// An id that is renewed stays open.
    pub(crate) fn renewed_ids_stay_open(self) -> bool {
        self.0.prevent(Bug::RenewalIgnored)
    }

    /// The chunks of a value whose commit is refused go at once.
    pub(crate) fn refused_values_go(self) -> bool {
        self.0.prevent(Bug::RefusedValueStays)
    }

    /// What is not open cannot be committed.
    pub(crate) fn commit_needs_an_open_id(self, is_open: bool) -> bool {
        is_open || !self.0.prevent(Bug::ClosedIdCommitted)
    }

    /// After a flush holders ask what is left.
    pub(crate) fn flushes_recall(self) -> bool {
        self.0.prevent(Bug::FlushForgetsChunks)
    }

    /// An owner evicts what is named to it only where the namespace says that it may.
    pub(crate) fn evicts(self, may: bool) -> bool {
        may || !self.0.prevent(Bug::NamedIsEvicted)
    }

    /// Who has got chunks from others asks what has become of them meanwhile.
    pub(crate) fn filled_holders_ask(self) -> bool {
        self.0.prevent(Bug::FilledAsksNobody)
    }

    /// Scrubs compare the chunks of a stripe with each other, too.
    pub(crate) fn scrubs_compare_words(self) -> bool {
        self.0.prevent(Bug::ScrubOfChecksumsOnly)
    }

    /// What is of a later term than an owner's it knows nothing of: it has been deposed.
    pub(crate) fn owner_knows(self, object: Term, owner: Term) -> bool {
        object <= owner || !self.0.prevent(Bug::DeposedOwnerAnswers)
    }

    /// Nor does one answer at all that may have been deposed by now.
    pub(crate) fn owner_answers(self, may_serve: bool) -> bool {
        may_serve || !self.0.prevent(Bug::DeposedOwnerAnswers)
    }

    /// Who is filling is whole when it has said so of this appointment.
    pub(crate) fn is_filled(self, said: Holder, filling: Option<Holder>) -> bool {
        let is_same_host = filling.is_some_and(|filling| filling.host == said.host);
        filling == Some(said) || is_same_host && !self.0.prevent(Bug::FilledOfAnySince)
    }

    /// An acknowledgement counts for a holder as long as it holds the role since the same view.
    pub(crate) fn is_acknowledging(self, acknowledged: Holder, named: Holder) -> bool {
        acknowledged == named || acknowledged.host == named.host && !self.0.prevent(Bug::AckOutlivesHolder)
    }

    /// That somebody lacks a chunk counts if it was said under the view that appointed who is filling, or a later one.
    pub(crate) fn is_lacking(self, said_under: ViewVersion, since: ViewVersion) -> bool {
        said_under >= since || !self.0.prevent(Bug::LackedUnderOldView)
    }

    /// Silence says nothing of what somebody has.
    pub(crate) fn silence_is_lacking(self) -> bool {
        !self.0.prevent(Bug::SkippedForSilence)
    }

    /// A chunk that is put needs room in its namespace's quota.
    pub(crate) fn puts_keep_to_quotas(self) -> bool {
        self.0.prevent(Bug::PutBeyondQuota)
    }

    /// Of so many roles of `all` there is somebody whose chunks count; they count for the others, too.
    pub(crate) fn roles_that_count(self, counted: usize, all: usize) -> usize {
        if self.0.prevent(Bug::LostChunksUncounted) { counted } else { all }
    }

    /// Chunks of a stripe that was put into another group afterwards are of no use.
    pub(crate) fn stranded_chunks_go(self) -> bool {
        self.0.prevent(Bug::StrandedKept)
    }

    /// Nor are they missed.
    pub(crate) fn stranded_chunks_are_not_lost(self) -> bool {
        self.0.prevent(Bug::StrandedTakenForLost)
    }

    /// A descriptor says which stripes were put into other groups.
    pub(crate) fn exceptions_are_named(self) -> bool {
        self.0.prevent(Bug::ExceptionUnnamed)
    }

    /// What an upload has put before its owner was another one is put under the new name before it is committed.
    pub(crate) fn stripes_are_renamed(self) -> bool {
        self.0.prevent(Bug::OldNameCommitted)
    }

    /// Who is to give a chunk another name, and does not have it, says so.
    pub(crate) fn unseen_chunks_are_refused(self) -> bool {
        self.0.prevent(Bug::UnseenRenamed)
    }

    /// The last cell of a chunk has the checksums of all chunks of its stripe with it, and waits until they are known.
    pub(crate) fn last_cells_wait(self) -> bool {
        self.0.prevent(Bug::LastCellGoesAhead)
    }

    /// A whole copy has as many parts as there are data chunks; `before` are those that are there already.
    pub(crate) fn part_of_copy(self, before: u8) -> u8 {
        if self.0.prevent(Bug::CopyOfOnePart) { before } else { 0 }
    }

    /// However busy clients are, fills go on: their window is so many bytes then.
    pub(crate) fn busy_window(self, bytes: u64) -> u64 {
        if self.0.prevent(Bug::FillsStarve) { bytes } else { 0 }
    }

    /// What was asked of a holder that is lost is not waited for.
    pub(crate) fn lost_answers_are_given_back(self) -> bool {
        self.0.prevent(Bug::WindowKept)
    }

    /// A chunk that a fill brings counted elsewhere before, and no quota keeps it out.
    pub(crate) fn fills_pass_quotas(self) -> bool {
        self.0.prevent(Bug::FillKeptToQuota)
    }
}
