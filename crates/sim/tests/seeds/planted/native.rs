//! The same for the rules of the clients' core.

use client_core::{Bug, Rules};
use sim::{FaultKind, Focus, Options, Verb};

use super::{outcome, seeds};

/// In how many seeds a bug must show.
const BUDGET: u64 = 260;

/// What a seed is made of.
fn options(seed: u64, bug: Bug) -> Options {
    let focus = if bug == Bug::ScanSkipsWhatMoved { Focus::Scans } else { Focus::Native };
    // Of those in which native clients make pauses every one.
    let seed = match bug {
        Bug::GoneIdUnheeded => 2 * seed,
        // Of those in which lost parts are read every one.
        Bug::MadeOfAnotherValue => 4 * seed + 1,
        _ => seed,
    };
    let mut options = Options::draw_focused(seed, focus);
    // What a client waits for longest would hide what is rare.
    let is_of_chunks = matches!(
        bug,
        Bug::AcknowledgementMissing
            | Bug::CellUnchecked
            | Bug::CellsOfOtherRows
            | Bug::GoneIdUnheeded
            | Bug::MadeOfAnotherValue
    );
    options.objects = options.objects.filter(|_| is_of_chunks);
    let lease_us = options.timing.node_lease_us;
    let Some(natives) = &mut options.natives else { return options };
    match bug {
        // Many that know one node or two, which stand still.
        Bug::DeadlineWaitsForMap => {
            (natives.process_us, natives.timeout_us) = (lease_us, lease_us);
            options.faults.mix = [0; FaultKind::ALL.len()];
            options.faults.mix[FaultKind::Pause as usize] = 1;
            (options.faults.every_us, options.faults.lasting_us) = (lease_us, 3 * lease_us);
            options.faults.restart_percent = 100;
        }
        // Writes that come twice, of sessions that are over by then.
        Bug::AgainNotSaid => {
            (natives.cut_per_mille, natives.late_us, natives.sessions_percent) = (60, lease_us / 4, 100);
            (natives.timeout_us, options.timing.session_lease_us) = (10 * lease_us, lease_us);
        }
        // Long values that are replaced while they are read, or read in several goes.
        Bug::TornRead | Bug::CellsOfOtherRows => {
            options.sizes.mix = [0, 1, 0, 0, 0, 0, 8];
            (options.text_keys, options.memory.evict) = (3, false);
        }
        // Values of which the rest comes late, when they have been asked for elsewhere or given up, and are others by then.
        Bug::LandsAfterEnd | Bug::LandsOfFormerTry => {
            (natives.cut_per_mille, natives.late_us, natives.stall_us) = (100, lease_us / 4, lease_us);
            natives.timeout_us = 10 * lease_us;
            options.sizes.mix = [0, 1, 0, 0, 0, 8, 0];
            (options.text_keys, options.memory.evict) = (2, false);
            options.mix = [0; 13];
            (options.mix[Verb::Get as usize], options.mix[Verb::Set as usize]) = (6, 2);
        }
        // Few values, which are replaced while they are read.
        Bug::MadeOfAnotherValue => {
            (options.text_keys, options.think_us) = (2, options.think_us / 4);
            (options.mix[Verb::Get as usize], options.mix[Verb::Set as usize]) = (6, 2);
            options.sizes.mix = [0, 0, 1, 0, 0, 2, 0];
        }
        Bug::ConnectionNamedAgain => (natives.cut_per_mille, natives.late_us) = (20, lease_us),
        _ => {}
    }
    options
}

fn is_found(bug: Bug) {
    let broken = |seed: u64| outcome(&options(seed, bug).by_native(Rules::without(bug)));
    let found = seeds(bug, BUDGET).find_map(|seed| broken(seed).map(|how| (seed, how)));
    let Some((seed, how)) = found else { panic!("{bug:?} hides for {BUDGET} seeds") };
    println!("{bug:?} {seed}\n{how}");
    assert_eq!(outcome(&options(seed, bug)), None, "seed {seed} must pass without {bug:?}");
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
            assert_eq!([$(Bug::$bug),*], Bug::ALL);
        }
    };
}

planted! {
    a_write_without_a_name_that_is_asked_again_is_found: AskedAgainUnnamed;
    a_write_that_comes_again_as_a_new_one_is_found: AgainNotSaid;
    a_floor_above_what_is_waited_for_is_found: FloorTooEarly;
    a_connection_that_is_taken_for_the_one_before_is_found: ConnectionNamedAgain;
    a_deadline_that_waits_for_a_map_is_found: DeadlineWaitsForMap;
    a_map_that_nobody_asks_for_is_found: MapNotRefreshed;
    a_value_that_is_read_on_as_another_is_found: TornRead;
    a_commit_without_an_acknowledgement_is_found: AcknowledgementMissing;
    a_cell_that_is_taken_as_it_comes_is_found: CellUnchecked;
    a_cell_that_is_taken_for_another_rows_is_found: CellsOfOtherRows;
    a_part_that_was_made_of_another_value_is_found: MadeOfAnotherValue;
    a_data_role_that_a_scan_passes_over_is_found: ScanSkipsWhatMoved;
    an_id_that_is_gone_and_used_on_is_found: GoneIdUnheeded;
    a_buffer_that_is_written_to_after_the_end_is_found: LandsAfterEnd;
    a_buffer_in_which_two_tries_are_mixed_is_found: LandsOfFormerTry;
    a_piece_that_is_received_elsewhere_in_its_buffer_is_found: LandsAtStart;
}
