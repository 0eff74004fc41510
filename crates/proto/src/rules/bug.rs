//! What happens without a rule: one bug for each rule that can be left out.

/// What somebody does who leaves one rule out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// A primary answers its client before the parities have the record.
    AckBeforeParity,
    /// One coefficient of the code is wrong at one parity.
    WrongCoefficient,
    /// A parity accepts frames of a fenced term.
    StaleTermAccepted,
    /// A parity applies a record again that a reconnected primary has sent twice.
    DuplicateApplied,
    /// Takeover settles at the maximum of what the parities have instead of the minimum.
    LostTailAfterTakeover,
    /// A primary goes on without a silent parity before the coordinator has removed it.
    UnilateralRemoval,
    /// A primary's page for a repair session carries bytes of uncommitted records.
    RepairOutsideFifo,
    /// A parity applies records when they arrive.
    ApplyOnReceive,
    /// Takeover does not make the parities apply the tail of the old stream.
    NoSettle,
    /// Records of a role that has left a repair session still change its sum.
    NoFreeze,
    /// A primary reads without a lease.
    ReadWithoutLease,
    /// A primary shows a value before it is committed.
    IndexSwitchBeforeCommit,
    /// A stand-in opens sessions while another role's stream is not settled.
    SessionWhileFenced,
    /// A parity obeys a Settle that it has obeyed before, and forgets what the stand-in has sent since.
    SettleRepeated,
    /// A stand-in serves while the former primary may still hold its lease.
    ServeBeforeLeaseEnds,
    /// A learner applies records to pages that it has not got yet.
    LearnerAppliesUnknown,
    /// A learner goes on although the primary that taught it has made way for another one.
    LessonOutlivesTeacher,
    /// A scrub takes a primary's page out of the sum before the records that it contains are in it.
    ScrubOutsideFifo,
    /// A parity that comes back goes on from what it has received instead of what it has applied.
    ResumeFromReceived,
    /// Some primaries go on with a parity that comes back, others begin from nothing.
    MixedLesson,
    /// A learner takes a part in before the records that the part contains.
    PartBeforeRecords,
    /// A primary tells the coordinator that a learner has caught up before it waits for the learner.
    CaughtUpTooEarly,
    /// A learner is in sync once one of its primaries has taught it.
    OneTeacherEnough,
    /// A failure in the group does not cancel its learners.
    LearnerSurvivesFailure,
    /// A primary that has made way goes on serving.
    ServesAfterHandOver,
    /// A primary that made way in vain goes on with the lease that it had.
    LeaseOutlivesHandOver,
    /// A coordinator tells of a change before the change is recorded.
    SentBeforeRecorded,
    /// A node obeys a coordinator that another one has succeeded.
    OldCoordinatorObeyed,
    /// A primary gives an extent up, and may ask for it anew, once its wipes are committed.
    ReleaseBeforeApplied,
    /// A coordinator without a store tells of a change before the nodes keep it.
    ToldBeforeKept,
    /// A coordinator that starts with nothing goes on from the first records that it hears of.
    ResumedWithoutQuorum,
    /// A primary decides that an item has expired by its own clock alone.
    ExpiredComesBack,
    /// The parities of a group that has lost data stay in sync, with the lost data in their sums.
    ParityOutlivesLoss,
    /// A parity that was evicted comes back although data that is in its sum was lost meanwhile.
    DormantOutlivesLoss,
    /// A lost role begins anew although its former primary may still serve.
    AcceptedBeforeOver,
    /// In an exchange the mirror takes the data role over while the parity is still beside it.
    HandedOverToCrowded,
    /// A failure in the group takes the mirror away from a primary that has a parity beside it.
    CrowdedMirrorDropped,
    /// A coordinator counts parities to find out whether they make up for what is missing.
    SolvabilityByCounting,
    /// What only silent processes have is given up while they may come back with it.
    SilentGivenUp,
    /// Who complains is obeyed as if all were there who have not been lost yet.
    QuietCountedOn,
    /// A stand-in without memory for its pages stays, though another node has it.
    StarvedStandInStays,
    /// A primary decides writes while a flush is in its log.
    WriteDuringFlush,
    /// A learner is not told of which cohorts the items are.
    CohortsForgotten,
    /// The number of a namespace that was removed is given to the next one.
    NumberUsedAgain,
    /// What roles take that have moved is dealt out before their new primaries have said that they have it.
    QuotaCountedTwice,
    /// What was flushed is taken for what its key is, while it is swept away.
    SweptItemIsItsKey,
    /// A node that lacks earlier changes of the map takes a later one for all that it lacks.
    ChangesOnAnyBase,
    /// A coordinator that follows another one takes what nodes are like for as old as the head.
    NodesAsOldAsHead,
    /// A holder keeps a chunk whose first cell came under a view that is none any more.
    ViewJudgedAtStart,
    /// A writer commits while one holder has not acknowledged a stripe.
    AckMissing,
    /// A former holder keeps its chunks.
    FormerHolderKeepsChunks,
    /// An owner says that an object is dead that may still be committed.
    OpenTakenForDead,
    /// An id of an object stays open for ever.
    OpenIdLeaked,
    /// An owner commits an object whose id is closed.
    ClosedIdCommitted,
    /// After a flush nobody asks what has become of the chunks.
    FlushForgetsChunks,
    /// Whoever has got chunks from others never asks what has become of them meanwhile.
    FilledAsksNobody,
    /// An owner evicts what a holder names that is short of room, also where nothing may be evicted.
    NamedIsEvicted,
    /// A host takes part in a graph that it has no memory for.
    GraphWithoutRoom,
    /// Graphs for repair take the memory that is kept for readers.
    ReadersRoomTaken,
    /// Slices of an older run are taken for those of the one that was started since.
    GraphRunsMix,
    /// A slice of a graph that arrives twice is added twice.
    GraphSliceTwice,
    /// A slice of a graph is added whatever its checksum.
    GraphSliceUnchecked,
    /// What a graph makes is taken for whole when the first of its steps here has ended.
    GraphKeepsHalf,
    /// Whoever receives slices gives credits for all of them, whatever memory is reserved.
    GraphCreditsUnbounded,
    /// What runs of a graph beyond its deadline goes on.
    GraphOutlivesDeadline,
    /// A graph whose asker is gone goes on, and keeps its memory.
    GraphOutlivesAsker,
    /// Chunks are made on for a role that this host does not fill any more, by a newer view.
    GraphOutlivesHolder,
    /// What a graph does not make for a reader, nobody fetches.
    GraphLeavesReader,
    /// A step reads a chunk without looking whether it is what it was.
    RottenSourceRead,
    /// A parity takes a cell for complete when one product of it is missing.
    SumLacksProduct,
    /// Products of all chunks that a writer puts to one parity are added up together.
    ProductsOfTriesMix,
    /// A product that comes twice is added twice.
    ProductAddedTwice,
    /// A sum is kept though it is not what the writer has named.
    WrongSumKept,
    /// A writer waits for what others are to make, whatever happens to them.
    SumsNeverGiveWay,
    /// A fill waits for a node with a slow link though there is a way round it.
    SlowLinksWaitedFor,
    /// What a node has said of slow links is believed for good.
    OldHearsayBelieved,
    /// A node that has no slow link any more does not say so.
    WellLinksUntold,
    /// Who is lent a cell gives products of it to those whom an older view names.
    LentCellGoesAhead,
    /// A primary does a write again that was done.
    RetryDoneAnew,
    /// What came of a write is dropped when a later one of its session is done.
    ResultDroppedEarly,
    /// A stand-in does not know what came of writes before its time.
    ResultsForgottenAtTakeover,
    /// A primary does a write again that is on its way.
    RetryBesideItself,
    /// A write that comes again and changes nothing leaves no trace: the first copy of it may still come, and be done.
    RefusalNotKept,
    /// A learner is not told of sessions, and of what came of their writes.
    SessionsNotLearned,
    /// A holder keeps a chunk that is put though its namespace's quota is used up.
    PutBeyondQuota,
    /// A holder does not keep what it has got from others where its namespace's quota is used up.
    FillKeptToQuota,
    /// A holder keeps the chunks of a stripe that was put into another group afterwards.
    StrandedKept,
    /// Who is filling takes such chunks for lost when the rest of them is not there.
    StrandedTakenForLost,
    /// A descriptor does not say which stripes were put into other groups.
    ExceptionUnnamed,
    /// An upload that begins anew under another id leaves what it has put under the one before.
    OldNameCommitted,
    /// A holder says that it has given a chunk another name, though it does not have it.
    UnseenRenamed,
    /// The last cell of a chunk goes before the checksums of all chunks of its stripe are known.
    LastCellGoesAhead,
    /// A whole copy that is got anew is its first part over and over.
    CopyOfOnePart,
    /// A scrub compares chunks with their checksums alone.
    ScrubOfChecksumsOnly,
    /// An owner answers about ids of a later term, and holders believe an owner of an earlier one.
    DeposedOwnerAnswers,
    /// Whoever is filling is whole when it has said so of any appointment.
    FilledOfAnySince,
    /// An acknowledgement counts for a host that holds the role since another view, too.
    AckOutlivesHolder,
    /// That a holder lacks a chunk counts though it was said under a view from before the fill.
    LackedUnderOldView,
    /// Whoever is silent counts as one that lacks a chunk.
    SkippedForSilence,
    /// The record that commits an object says nothing of what came of the write.
    CommitUnnamed,
    /// What a holder had that is lost counts for no quota before another one has got it.
    LostChunksUncounted,
    /// A scan goes on by how many items lay before it.
    ScanByPosition,
    /// A page of a scan is read without a lease.
    ScanWithoutLease,
    /// A stand-in scans what is there, and passes over the rest.
    ScanPassesOverAbsent,
    /// Fills ask for nothing while clients are at work, and do not begin again.
    FillsStarve,
    /// What a fill has asked of a holder that is lost counts as being on its way for ever.
    WindowKept,
    /// An id is not kept open though its owner says that it has been renewed.
    RenewalIgnored,
    /// Sessions are numbered one after the other.
    SessionsCounted,
    /// Who is told alone that he is a primary serves before he knows what has changed of the map before.
    EarlyPrimary,
    /// A primary writes a key that it has to give away.
    LeavingKeyWritten,
    /// A primary takes a key that it has given away for one that is not there.
    DepartedIsMiss,
    /// A primary forgets an item when it has sent it to another pool.
    GoneBeforeArrival,
    /// A primary takes items that come late, after others have.
    UnexpectedItem,
    /// Items that move to another pool get other versions.
    VersionsAnew,
    /// Versions of one pool come again in another one.
    VersionsRepeat,
    /// Whether a value in chunks can be stored is seen in the other pool while its key is still where it was.
    ConditionSeenEarly,
    /// An item of which nobody knows whether it has arrived makes items go under another number that already do.
    NumberForEachLoss,
    /// An item that comes late to where it was sent is sent on, as if a client wrote it.
    LateItemSentOn,
    /// An id for a value in chunks is given by an earlier conversion, without a look at the key.
    LateIdGiven,
    /// Chunks of a value that was not stored, since somebody else came first, stay until their holders ask.
    RefusedValueStays,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 117] = [
        Self::AckBeforeParity,
        Self::WrongCoefficient,
        Self::StaleTermAccepted,
        Self::DuplicateApplied,
        Self::LostTailAfterTakeover,
        Self::UnilateralRemoval,
        Self::RepairOutsideFifo,
        Self::ApplyOnReceive,
        Self::NoSettle,
        Self::NoFreeze,
        Self::ReadWithoutLease,
        Self::IndexSwitchBeforeCommit,
        Self::SessionWhileFenced,
        Self::SettleRepeated,
        Self::ServeBeforeLeaseEnds,
        Self::LearnerAppliesUnknown,
        Self::LessonOutlivesTeacher,
        Self::ScrubOutsideFifo,
        Self::ResumeFromReceived,
        Self::MixedLesson,
        Self::PartBeforeRecords,
        Self::CaughtUpTooEarly,
        Self::OneTeacherEnough,
        Self::LearnerSurvivesFailure,
        Self::ServesAfterHandOver,
        Self::LeaseOutlivesHandOver,
        Self::SentBeforeRecorded,
        Self::OldCoordinatorObeyed,
        Self::ReleaseBeforeApplied,
        Self::ToldBeforeKept,
        Self::ResumedWithoutQuorum,
        Self::ExpiredComesBack,
        Self::ParityOutlivesLoss,
        Self::DormantOutlivesLoss,
        Self::AcceptedBeforeOver,
        Self::HandedOverToCrowded,
        Self::CrowdedMirrorDropped,
        Self::SolvabilityByCounting,
        Self::WriteDuringFlush,
        Self::CohortsForgotten,
        Self::NumberUsedAgain,
        Self::QuotaCountedTwice,
        Self::SweptItemIsItsKey,
        Self::ChangesOnAnyBase,
        Self::NodesAsOldAsHead,
        Self::ViewJudgedAtStart,
        Self::AckMissing,
        Self::FormerHolderKeepsChunks,
        Self::OpenTakenForDead,
        Self::OpenIdLeaked,
        Self::ClosedIdCommitted,
        Self::FlushForgetsChunks,
        Self::FilledAsksNobody,
        Self::NamedIsEvicted,
        Self::GraphWithoutRoom,
        Self::ReadersRoomTaken,
        Self::GraphRunsMix,
        Self::GraphSliceTwice,
        Self::GraphSliceUnchecked,
        Self::GraphKeepsHalf,
        Self::GraphCreditsUnbounded,
        Self::GraphOutlivesDeadline,
        Self::GraphOutlivesAsker,
        Self::GraphOutlivesHolder,
        Self::GraphLeavesReader,
        Self::RottenSourceRead,
        Self::SumLacksProduct,
        Self::ProductsOfTriesMix,
        Self::ProductAddedTwice,
        Self::WrongSumKept,
        Self::SumsNeverGiveWay,
        Self::SlowLinksWaitedFor,
        Self::OldHearsayBelieved,
        Self::WellLinksUntold,
        Self::LentCellGoesAhead,
        Self::RetryDoneAnew,
        Self::ResultDroppedEarly,
        Self::ResultsForgottenAtTakeover,
        Self::RetryBesideItself,
        Self::RefusalNotKept,
        Self::SessionsNotLearned,
        Self::PutBeyondQuota,
        Self::FillKeptToQuota,
        Self::StrandedKept,
        Self::StrandedTakenForLost,
        Self::ExceptionUnnamed,
        Self::OldNameCommitted,
        Self::UnseenRenamed,
        Self::LastCellGoesAhead,
        Self::CopyOfOnePart,
        Self::ScrubOfChecksumsOnly,
        Self::DeposedOwnerAnswers,
        Self::FilledOfAnySince,
        Self::AckOutlivesHolder,
        Self::LackedUnderOldView,
        Self::SkippedForSilence,
        Self::CommitUnnamed,
        Self::LostChunksUncounted,
        Self::ScanByPosition,
        Self::ScanWithoutLease,
        Self::ScanPassesOverAbsent,
        Self::FillsStarve,
        Self::WindowKept,
        Self::RenewalIgnored,
        Self::SessionsCounted,
        Self::EarlyPrimary,
        Self::LeavingKeyWritten,
        Self::DepartedIsMiss,
        Self::GoneBeforeArrival,
        Self::UnexpectedItem,
        Self::VersionsAnew,
        Self::VersionsRepeat,
        Self::ConditionSeenEarly,
        Self::NumberForEachLoss,
        Self::LateItemSentOn,
        Self::LateIdGiven,
        Self::RefusedValueStays,
    ];
}
