//! Every deliberately broken rule is found within its budget of seeds, and the same seeds pass without it: the proof
//! that the simulator still sees. `cargo test -p sim --features planted-bugs planted::`

#[path = "../scenarios/counting.rs"]
mod counting;
#[path = "../scenarios/exchanges.rs"]
mod exchanges;
#[path = "../scenarios/late_settle.rs"]
mod late_settle;
mod native;
#[path = "../scenarios/numbers.rs"]
mod numbers;
#[path = "../scenarios/vain_hand_over.rs"]
mod vain_hand_over;

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proto::{Bug, Rules};
use sim::{FaultKind, Focus, Options, Report, run};
use types::ObjectLayout;

/// Where each bug shows, and in how many seeds it must.
fn hunting_ground(bug: Bug) -> (Focus, u64) {
    match bug {
        Bug::SessionWhileFenced => (Focus::DoubleFaults, 600),
        Bug::QuotaCountedTwice => (Focus::DoubleFaults, 150),
        Bug::SettleRepeated => (Focus::SlowLines, 100),
        Bug::ServeBeforeLeaseEnds => (Focus::Anything, 600),
        // Of lessons from nothing there are many where roles move; a parity that only stood still comes back without one.
        Bug::LessonOutlivesTeacher
        | Bug::LearnerAppliesUnknown
        | Bug::PartBeforeRecords
        | Bug::CohortsForgotten
        | Bug::SweptItemIsItsKey
        | Bug::LearnerSurvivesFailure => (Focus::Moves, 150),
        Bug::NoFreeze => (Focus::Anything, 300),
        Bug::WriteDuringFlush => (Focus::Anything, 600),
        Bug::ReadWithoutLease => (Focus::Anything, 600),
        Bug::ResumeFromReceived => (Focus::Returns, 300),
        // Primaries that are connected again send records twice: one seed in a hundred of all, one in ten here.
        Bug::DuplicateApplied => (Focus::Returns, 100),
        Bug::MixedLesson => (Focus::Returns, 50),
        Bug::SentBeforeRecorded => (Focus::Succession, 20),
        Bug::NodesAsOldAsHead => (Focus::Succession, 60),
        Bug::ToldBeforeKept | Bug::ChangesOnAnyBase => (Focus::Forgetting, 100),
        Bug::ResumedWithoutQuorum => (Focus::Forgetting, 300),
        Bug::ReleaseBeforeApplied => (Focus::Releases, 150),
        Bug::ParityOutlivesLoss | Bug::DormantOutlivesLoss => (Focus::Losses, 30),
        Bug::AcceptedBeforeOver => (Focus::Losses, 150),
        Bug::ViewJudgedAtStart
        | Bug::AckMissing
        | Bug::FormerHolderKeepsChunks
        | Bug::OpenTakenForDead
        | Bug::OpenIdLeaked
        | Bug::ClosedIdCommitted
        | Bug::FlushForgetsChunks
        | Bug::FilledAsksNobody
        | Bug::StrandedKept
        | Bug::StrandedTakenForLost
        | Bug::ExceptionUnnamed
        | Bug::OldNameCommitted
        | Bug::UnseenRenamed
        | Bug::LastCellGoesAhead
        | Bug::CopyOfOnePart
        | Bug::NamedIsEvicted => (Focus::Objects, 300),
        Bug::PutBeyondQuota | Bug::FillsStarve | Bug::WindowKept => (Focus::Objects, 60),
        Bug::ScanByPosition | Bug::ScanPassesOverAbsent => (Focus::Scans, 40),
        Bug::ScanWithoutLease => (Focus::Scans, 300),
        Bug::RenewalIgnored => (Focus::Native, 100),
        Bug::SessionsCounted => (Focus::Native, 20),
        Bug::GraphWithoutRoom
        | Bug::ReadersRoomTaken
        | Bug::GraphRunsMix
        | Bug::GraphKeepsHalf
        | Bug::GraphCreditsUnbounded
        | Bug::GraphOutlivesHolder
        | Bug::OldHearsayBelieved
        | Bug::WellLinksUntold
        | Bug::LentCellGoesAhead => (Focus::Graphs, 100),
        Bug::SumLacksProduct | Bug::ProductsOfTriesMix | Bug::ProductAddedTwice => (Focus::Objects, 100),
        Bug::RetryDoneAnew
        | Bug::ResultDroppedEarly
        | Bug::ResultsForgottenAtTakeover
        | Bug::RetryBesideItself
        | Bug::SessionsNotLearned => (Focus::Sessions, 150),
        Bug::RefusalNotKept => (Focus::Sessions, 400),
        Bug::LeavingKeyWritten | Bug::DepartedIsMiss | Bug::GoneBeforeArrival | Bug::VersionsAnew => {
            (Focus::Conversions, 150)
        }
        Bug::ConditionSeenEarly => (Focus::Conversions, 150),
        _ => (Focus::Anything, 150),
    }
}

/// What a seed is made of. A primary that still serves meets its stand-in only where it is cut off from the coordinator and from
/// nobody else, and clients read at it what others write: that is rare among all faults, so there are no others.
fn options(seed: u64, bug: Bug, focus: Focus) -> Options {
    // Of the seeds whose groups refuse chunks every one.
    let seed = match bug {
        Bug::StrandedTakenForLost => 5 * seed,
        // And of those in which native clients make pauses.
        Bug::RenewalIgnored => 2 * seed,
        // Of those in which namespaces move the ones that have values in chunks.
        Bug::ConditionSeenEarly => 2 * seed + 1,
        _ => seed,
    };
    let mut options = Options::draw_focused(seed, focus);
    let has_chunks = matches!(focus, Focus::Objects | Focus::Graphs) || bug == Bug::ConditionSeenEarly;
    if !has_chunks && bug != Bug::RenewalIgnored {
        // What a client waits for longest would hide what is rare.
        options.objects = None;
    }
    let only = match bug {
        Bug::LastCellGoesAhead => Some(ObjectLayout::Wide),
        Bug::CopyOfOnePart => Some(ObjectLayout::Copy),
        _ => None,
    };
    if let (Some(layout), Some(objects)) = (only, &mut options.objects) {
        objects.layout = layout;
    }
    if matches!(bug, Bug::ServeBeforeLeaseEnds | Bug::ScanWithoutLease) {
        let lease_us = options.timing.node_lease_us;
        options.faults.mix = [0; FaultKind::ALL.len()];
        options.faults.mix[FaultKind::IsolateFromCoordinator as usize] = 1;
        (options.faults.every_us, options.faults.lasting_us) = (3 * lease_us, 2 * lease_us);
    }
    if bug == Bug::StrandedTakenForLost {
        // Holders are filled all the time: one of them has to meet what was put elsewhere a moment before.
        let lease_us = options.timing.node_lease_us;
        options.faults.mix = [0; FaultKind::ALL.len()];
        options.faults.mix[FaultKind::Crash as usize] = 1;
        (options.faults.every_us, options.faults.lasting_us) = (2 * lease_us, lease_us);
        options.faults.restart_percent = 100;
    }
    options
}

/// What came of a seed: a report, or a panic of the state machines themselves.
fn outcome(options: &Options) -> Option<String> {
    let caught: Result<Report, _> = catch_unwind(AssertUnwindSafe(|| run(options)));
    match caught {
        Ok(report) => report.failure.map(|failure| format!("{}: {}", failure.rule, failure.what)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

/// Which seed showed each bug last: `Bug seed`, as the tests say it with `--nocapture`.
const FOUND: &str = include_str!("found.txt");

/// The seeds in which to look for a bug: first the one that showed it last, which is one too many where that is out of date.
fn seeds(bug: impl Debug, budget: u64) -> impl Iterator<Item = u64> {
    let name = format!("{bug:?} ");
    let last = FOUND.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok());
    last.into_iter().filter(move |last| *last <= budget).chain(1..=budget)
}

/// A seed that shows `bug`, and how.
fn hunt(bug: Bug) -> Option<(u64, String)> {
    let (focus, budget) = hunting_ground(bug);
    seeds(bug, budget).find_map(|seed| {
        let found = outcome(&options(seed, bug, focus).by(Rules::without(bug)));
        found.map(|how| (seed, how))
    })
}

fn is_found(bug: Bug) {
    let (focus, budget) = hunting_ground(bug);
    let Some((seed, how)) = hunt(bug) else { panic!("{bug:?} hides for {budget} seeds of {focus:?}") };
    println!("{bug:?} {seed}\nof {focus:?}: {how}");
    assert_eq!(outcome(&options(seed, bug, focus)), None, "seed {seed} must pass without {bug:?}");
}

/// Bugs that too few seeds meet: a story shows them.
const TOLD: [Bug; 7] = [
    Bug::OldCoordinatorObeyed,
    Bug::ServesAfterHandOver,
    Bug::LeaseOutlivesHandOver,
    Bug::HandedOverToCrowded,
    Bug::CrowdedMirrorDropped,
    Bug::SolvabilityByCounting,
    Bug::NumberUsedAgain,
];

/// Bugs that tests of `proto` show, each with a schedule of its own (`tests/cluster/`, and beside the machines).
const DIRECTED: [Bug; 28] = [
    Bug::QuietCountedOn,
    Bug::SilentGivenUp,
    Bug::StarvedStandInStays,
    Bug::RefusedValueStays,
    Bug::NumberForEachLoss,
    Bug::LateItemSentOn,
    Bug::LateIdGiven,
    Bug::UnexpectedItem,
    Bug::EarlyPrimary,
    Bug::VersionsRepeat,
    Bug::SlowLinksWaitedFor,
    Bug::WrongSumKept,
    Bug::SumsNeverGiveWay,
    Bug::ScrubOfChecksumsOnly,
    Bug::DeposedOwnerAnswers,
    Bug::FilledOfAnySince,
    Bug::AckOutlivesHolder,
    Bug::LackedUnderOldView,
    Bug::SkippedForSilence,
    Bug::CommitUnnamed,
    Bug::FillKeptToQuota,
    Bug::LostChunksUncounted,
    Bug::GraphSliceTwice,
    Bug::GraphSliceUnchecked,
    Bug::RottenSourceRead,
    Bug::GraphOutlivesAsker,
    Bug::GraphOutlivesDeadline,
    Bug::GraphLeavesReader,
];

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn obedience_to_a_former_coordinator_is_found() {
    shows(Bug::OldCoordinatorObeyed, late_settle::tell);
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_primary_that_serves_after_it_made_way_is_found() {
    shows(Bug::ServesAfterHandOver, vain_hand_over::tell);
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_lease_that_outlives_a_hand_over_is_found() {
    shows(Bug::LeaseOutlivesHandOver, vain_hand_over::tell);
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_mirror_that_takes_over_beside_a_parity_is_found() {
    shows(Bug::HandedOverToCrowded, exchanges::whichever_two_die);
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_mirror_that_a_node_with_two_roles_loses_is_found() {
    shows(Bug::CrowdedMirrorDropped, exchanges::another_primary_dies_first);
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn parities_that_are_counted_are_found() {
    shows(Bug::SolvabilityByCounting, counting::tell);
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_number_that_is_used_again_is_found() {
    shows(Bug::NumberUsedAgain, numbers::tell);
}

/// The story ends badly with the bug, and well without.
fn shows(bug: Bug, story: fn(Rules)) {
    let told = catch_unwind(|| story(Rules::without(bug)));
    assert!(told.is_err(), "{bug:?} must do harm");
    story(Rules::all());
}

macro_rules! planted {
    ($($test:ident: $bug:ident;)*) => {
        $(#[test]
        #[ignore = "long: cargo xtask test sim planted"]
        fn $test() {
            is_found(Bug::$bug);
        })*

        #[test]
        #[ignore = "long: cargo xtask test sim planted"]
        fn no_bug_is_forgotten() {
            let hunted = [$(Bug::$bug),*];
            let is_hunted = |bug: &Bug| hunted.contains(bug) || TOLD.contains(bug) || DIRECTED.contains(bug);
            assert!(Bug::ALL.iter().all(is_hunted));
        }
    };
}

planted! {
    a_key_that_is_written_where_it_has_to_go_from_is_found: LeavingKeyWritten;
    a_key_that_has_gone_and_is_taken_for_none_is_found: DepartedIsMiss;
    an_item_that_is_forgotten_before_it_has_arrived_is_found: GoneBeforeArrival;
    versions_that_items_lose_on_their_way_are_found: VersionsAnew;
    a_condition_that_is_seen_before_its_key_has_come_is_found: ConditionSeenEarly;
    a_view_that_is_judged_when_a_chunk_begins_is_found: ViewJudgedAtStart;
    a_commit_without_one_acknowledgement_is_found: AckMissing;
    a_former_holder_that_keeps_its_chunks_is_found: FormerHolderKeepsChunks;
    an_open_object_taken_for_dead_is_found: OpenTakenForDead;
    an_id_that_stays_open_is_found: OpenIdLeaked;
    a_closed_id_that_is_committed_is_found: ClosedIdCommitted;
    chunks_that_outlive_a_flush_are_found: FlushForgetsChunks;
    a_filled_holder_that_asks_nobody_is_found: FilledAsksNobody;
    an_owner_that_evicts_what_it_is_told_to_is_found: NamedIsEvicted;
    a_graph_that_there_is_no_memory_for_is_found: GraphWithoutRoom;
    a_repair_that_takes_what_is_kept_for_readers_is_found: ReadersRoomTaken;
    a_slice_of_an_older_run_that_is_added_is_found: GraphRunsMix;
    a_chunk_that_is_taken_for_whole_too_early_is_found: GraphKeepsHalf;
    slices_that_nothing_is_reserved_for_are_found: GraphCreditsUnbounded;
    chunks_that_are_made_on_under_a_newer_view_are_found: GraphOutlivesHolder;
    a_sum_without_one_of_its_products_is_found: SumLacksProduct;
    products_of_two_chunks_in_one_sum_are_found: ProductsOfTriesMix;
    a_product_that_is_added_twice_is_found: ProductAddedTwice;
    what_is_said_of_links_and_believed_for_good_is_found: OldHearsayBelieved;
    who_does_not_say_that_a_link_is_well_is_found: WellLinksUntold;
    a_lent_cell_that_goes_ahead_of_its_view_is_found: LentCellGoesAhead;
    a_write_that_is_done_anew_is_found: RetryDoneAnew;
    a_result_that_goes_before_its_client_has_it_is_found: ResultDroppedEarly;
    results_that_are_forgotten_at_a_takeover_are_found: ResultsForgottenAtTakeover;
    a_write_that_is_done_beside_itself_is_found: RetryBesideItself;
    a_refusal_that_leaves_no_trace_is_found: RefusalNotKept;
    sessions_that_no_learner_is_told_of_are_found: SessionsNotLearned;
    an_ack_before_the_parities_have_the_record_is_found: AckBeforeParity;
    a_wrong_coefficient_is_found: WrongCoefficient;
    frames_of_a_fenced_term_that_are_accepted_are_found: StaleTermAccepted;
    a_record_that_is_applied_twice_is_found: DuplicateApplied;
    settling_at_the_maximum_is_found: LostTailAfterTakeover;
    going_on_without_a_parity_on_ones_own_account_is_found: UnilateralRemoval;
    a_repair_page_with_uncommitted_bytes_is_found: RepairOutsideFifo;
    applying_on_receipt_is_found: ApplyOnReceive;
    a_takeover_without_settling_is_found: NoSettle;
    a_sum_that_is_not_frozen_is_found: NoFreeze;
    a_read_without_a_lease_is_found: ReadWithoutLease;
    a_value_shown_before_its_commit_is_found: IndexSwitchBeforeCommit;
    a_session_beside_an_unsettled_stream_is_found: SessionWhileFenced;
    a_settle_that_is_obeyed_twice_is_found: SettleRepeated;
    a_stand_in_that_does_not_wait_for_the_old_lease_is_found: ServeBeforeLeaseEnds;
    a_learner_that_applies_what_it_cannot_know_is_found: LearnerAppliesUnknown;
    a_lesson_that_outlives_its_teacher_is_found: LessonOutlivesTeacher;
    a_scrub_beside_the_stream_is_found: ScrubOutsideFifo;
    a_return_from_what_was_only_received_is_found: ResumeFromReceived;
    a_lesson_of_which_one_half_resumes_is_found: MixedLesson;
    a_part_before_its_records_is_found: PartBeforeRecords;
    a_learner_that_nobody_waits_for_is_found: CaughtUpTooEarly;
    a_learner_that_one_primary_has_taught_is_found: OneTeacherEnough;
    a_learner_that_survives_a_failure_is_found: LearnerSurvivesFailure;
    news_of_what_is_not_recorded_is_found: SentBeforeRecorded;
    an_extent_that_goes_back_too_early_is_found: ReleaseBeforeApplied;
    an_item_that_comes_back_after_it_has_expired_is_found: ExpiredComesBack;
    a_parity_that_keeps_lost_data_in_its_sum_is_found: ParityOutlivesLoss;
    a_parity_that_comes_back_with_lost_data_in_its_sum_is_found: DormantOutlivesLoss;
    a_role_that_begins_anew_beside_its_former_primary_is_found: AcceptedBeforeOver;
    a_change_that_is_told_before_the_nodes_keep_it_is_found: ToldBeforeKept;
    a_coordinator_that_goes_on_from_the_first_it_hears_is_found: ResumedWithoutQuorum;
    a_write_that_is_decided_while_a_flush_is_on_its_way_is_found: WriteDuringFlush;
    a_learner_that_is_not_told_of_cohorts_is_found: CohortsForgotten;
    a_quota_that_is_dealt_out_twice_is_found: QuotaCountedTwice;
    a_chunk_that_is_put_beyond_a_quota_is_found: PutBeyondQuota;
     fills_that_starve_beside_clients_are_found: FillsStarve;
     answers_of_the_lost_that_are_waited_for_are_found: WindowKept;
    chunks_of_a_stripe_that_went_elsewhere_and_are_kept_are_found: StrandedKept;
    a_fill_that_takes_such_chunks_for_lost_is_found: StrandedTakenForLost;
    a_stripe_whose_descriptor_does_not_say_where_it_went_is_found: ExceptionUnnamed;
    a_stripe_that_is_left_under_an_old_name_is_found: OldNameCommitted;
    a_chunk_that_is_named_anew_and_is_not_there_is_found: UnseenRenamed;
    a_last_cell_that_goes_before_all_checksums_are_known_is_found: LastCellGoesAhead;
    a_copy_that_is_made_of_one_part_is_found: CopyOfOnePart;
    a_flushed_item_that_takes_its_key_with_it_is_found: SweptItemIsItsKey;
    a_change_that_is_made_to_any_map_is_found: ChangesOnAnyBase;
    a_node_that_is_taken_for_as_old_as_the_head_is_found: NodesAsOldAsHead;
    an_id_that_ends_though_it_was_renewed_is_found: RenewalIgnored;
    sessions_that_anybody_can_guess_are_found: SessionsCounted;
    a_scan_by_position_is_found: ScanByPosition;
    a_scan_without_a_lease_is_found: ScanWithoutLease;
    a_scan_that_passes_over_what_is_absent_is_found: ScanPassesOverAbsent;
}
