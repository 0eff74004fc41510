//! What goes wrong within graphs: a read never returns wrong bytes, never hangs, succeeds whenever enough good chunks can be reached,
//! and leaves nothing behind.

use codec::Code;
use graph::net::{Fault, Finished, Who, WorldConfig};
use graph::{AskerId, Class, Execution, ExecutorConfig, Links, Outcome, Rules, Scheme, Wanted};
use rng::Rng;
use types::ViewVersion;

use crate::support::{ASKER, Cluster, at, node, role, sources, to_asker};

const LEN: u32 = 300_000;

fn cluster(seed: u64) -> Cluster {
    Cluster::new(Code::rs(6, 3).unwrap(), &[LEN], WorldConfig::new(Links::default()), seed)
}

/// Role 1 is lost and wanted by the asker; something goes wrong with role 2's node, of which the chain and the others have need.
fn read(cluster: &mut Cluster, scheme: Scheme, faults: &[(u64, Fault)]) -> Finished {
    let wanted = to_asker(&[1]);
    cluster.expect(&wanted, ASKER);
    faults.iter().for_each(|(us, fault)| cluster.world.at(*us, *fault));
    let config = cluster.config(wanted, scheme);
    let code = cluster.code.clone();
    cluster.run(config, sources(&code, &[1]))
}

/// Every scheme reads through it, and nobody keeps anything of it.
fn survives(faults: &[(u64, Fault)]) {
    for (seed, scheme) in (1..).zip(Scheme::ALL) {
        let mut cluster = cluster(seed);
        let finished = read(&mut cluster, scheme, faults);
        cluster.assert_right(&to_asker(&[1]), &finished);
        assert!(finished.at_us < 500_000.0, "{scheme}: {finished:?}");
        cluster.assert_at_rest(9);
    }
}

#[test]
fn a_helper_that_is_killed_is_planned_around() {
    [0, 60, 120, 900, 2_000].into_iter().for_each(|us| survives(&[(us, Fault::Kill(node(2)))]));
}

#[test]
fn a_helper_that_vanishes_is_planned_around() {
    [0, 60, 120, 900].into_iter().for_each(|us| survives(&[(us, Fault::Vanish(node(2)))]));
}

#[test]
fn a_helper_that_stands_still_is_planned_around() {
    [0, 120, 900]
        .into_iter()
        .for_each(|us| survives(&[(us, Fault::Stop(node(3))), (900_000, Fault::Resume(node(3)))]));
}

#[test]
fn as_many_helpers_as_the_code_bears_may_vanish_one_after_the_other() {
    survives(&[(0, Fault::Vanish(node(2))), (8_000, Fault::Vanish(node(4)))]);
    survives(&[(500, Fault::Kill(node(2))), (900, Fault::Kill(node(8)))]);
}

#[test]
fn a_chunk_that_is_missing_or_rotten_is_planned_around() {
    survives(&[(0, Fault::Lose(node(2), role(2)))]);
    survives(&[(0, Fault::Rot(node(2), role(2)))]);
    survives(&[(900, Fault::Rot(node(2), role(2))), (900, Fault::Rot(node(5), role(5)))]);
}

#[test]
fn rot_that_nobody_knows_of_is_found_by_the_sum_of_the_result() {
    survives(&[(0, Fault::Corrupt(node(2), role(2)))]);
    survives(&[(0, Fault::Corrupt(node(7), role(7)))]);
}

#[test]
fn a_helper_whose_links_are_slow_is_planned_around() {
    for scheme in Scheme::ALL {
        let mut cluster = cluster(1);
        let finished = read(&mut cluster, scheme, &[(0, Fault::Slow(node(2), 100.0))]);
        cluster.assert_right(&to_asker(&[1]), &finished);
        // One slice of its would take longer than all of the others'.
        assert!(finished.at_us < 120_000.0, "{scheme}: {finished:?}");
    }
}

#[test]
fn a_helper_known_to_be_slow_is_not_asked() {
    for scheme in Scheme::ALL {
        let mut cluster = cluster(1);
        let mut slow = graph::LinkEnd::default();
        slow.up_bytes_per_s /= 20.0;
        cluster.links.nodes.insert(2, slow);
        let finished = read(&mut cluster, scheme, &[(0, Fault::Slow(node(2), 20.0))]);
        assert!(matches!(finished.outcome, Outcome::Complete { attempts: 1, .. }), "{scheme}: {finished:?}");
    }
}

#[test]
fn one_who_stands_still_is_waited_for_when_there_is_no_other_way() {
    let mut cluster = cluster(3);
    let code = cluster.code.clone();
    let wanted = to_asker(&[1]);
    cluster.world.at(0, Fault::Stop(node(2)));
    cluster.world.at(200_000, Fault::Resume(node(2)));
    let config = cluster.config(wanted.clone(), Scheme::Chain);
    let finished = cluster.run(config, sources(&code, &[1, 7, 8]));
    cluster.assert_right(&wanted, &finished);
    assert!(finished.at_us > 200_000.0);
}

#[test]
fn what_cannot_be_solved_is_lost_only_by_the_newest_view() {
    for (view, outcome) in [(1, Outcome::Lost), (0, Outcome::TryAgain), (9, Outcome::Lost)] {
        let mut cluster = cluster(4);
        let code = cluster.code.clone();
        for index in [2, 3, 4] {
            cluster.world.at(0, Fault::Lose(node(index), role(index)));
            cluster.world.at(0, Fault::View(node(index), ViewVersion(view)));
        }
        let config = cluster.config(to_asker(&[1]), Scheme::Star);
        let finished = cluster.run(config, sources(&code, &[1]));
        assert_eq!(finished.outcome, outcome, "of a node with view {view}");
    }
}

#[test]
fn silence_is_not_loss_and_ends_with_the_deadline() {
    let mut cluster = cluster(5);
    let code = cluster.code.clone();
    [2, 3, 4].into_iter().for_each(|index| cluster.world.at(0, Fault::Vanish(node(index))));
    let mut config = cluster.config(to_asker(&[1]), Scheme::Auto);
    config.deadline_us = 300_000;
    let finished = cluster.run(config, sources(&code, &[1]));
    assert_eq!(finished.outcome, Outcome::TryAgain);
    assert!(finished.at_us <= 301_000.0);
    cluster.assert_at_rest(9);
}

#[test]
fn damaged_and_repeated_slices_never_become_bytes() {
    for scheme in Scheme::ALL {
        for (damage_every, repeat_every) in [(40, 0), (0, 40), (50, 70)] {
            let mut config = WorldConfig::new(Links::default());
            (config.damage_every, config.repeat_every) = (damage_every, repeat_every);
            let mut cluster = Cluster::new(Code::rs(3, 2).unwrap(), &[20_000], config, 1);
            let code = cluster.code.clone();
            let config = cluster.config(to_asker(&[1]), scheme);
            let finished = cluster.run(config, sources(&code, &[1]));
            if let Outcome::Complete { .. } = finished.outcome {
                cluster.assert_right(&to_asker(&[1]), &finished);
            }
        }
    }
}

/// Executors with little memory.
fn small(memory_bytes: u64, reader_reserve_bytes: u64) -> WorldConfig {
    let executor = ExecutorConfig { memory_bytes, reader_reserve_bytes, rules: Rules::all() };
    WorldConfig { executor, ..WorldConfig::new(Links::default()) }
}

#[test]
fn many_graphs_at_once_share_little_memory_and_all_end() {
    for scheme in [Scheme::Star, Scheme::Chain, Scheme::Ppr, Scheme::Tri] {
        let mut cluster = Cluster::new(Code::rs(4, 2).unwrap(), &[100_000], small(600_000, 100_000), 2);
        let code = cluster.code.clone();
        let askers: Vec<AskerId> = (0..12).map(|asker| AskerId(100 + asker)).collect();
        for asker in &askers {
            let config = cluster.config(to_asker(&[1]), scheme);
            cluster.begin(graph::TaskConfig { asker: *asker, ..config }, sources(&code, &[1]));
        }
        for asker in askers {
            let finished = cluster.world.run_task(asker, 3_000_000).unwrap();
            cluster.assert_right(&to_asker(&[1]), &finished);
        }
        cluster.assert_at_rest(6);
    }
}

#[test]
fn readers_get_in_while_repair_fills_the_rest() {
    let mut cluster = Cluster::new(Code::rs(4, 2).unwrap(), &[400_000], small(500_000, 120_000), 2);
    let code = cluster.code.clone();
    for asker in 0..8 {
        let mut config = cluster.config(to_asker(&[1]), Scheme::Chain);
        (config.asker, config.class) = (AskerId(50 + asker), Class::Repair);
        config.execution = Execution::Incoherent;
        cluster.begin(config, sources(&code, &[1]));
    }
    cluster.world.run_until(400);
    let config = cluster.config(to_asker(&[1]), Scheme::Chain);
    let finished = cluster.run(config, sources(&code, &[1]));
    // The reader's own node has a window and the chunk to take; the helpers two windows.
    assert!(matches!(finished.outcome, Outcome::TryAgain | Outcome::Complete { .. }));
    cluster.assert_at_rest(6);
}

#[test]
fn two_graphs_that_cross_do_not_block_each_other() {
    // Each combines at a node that helps the other one.
    let mut cluster =
        Cluster::new(Code::rs(2, 2).unwrap(), &[2_000_000], WorldConfig::new(Links::default()), 2);
    let code = cluster.code.clone();
    let tasks = [(1, 100, at(2)), (2, 101, at(3))];
    for (asker, lost, to) in tasks {
        let wanted = vec![Wanted { role: role(usize::from(lost == 101)), to }];
        cluster.expect(&wanted, AskerId(asker));
        let mut config = cluster.config(wanted, Scheme::Star);
        (config.asker, config.class) = (AskerId(asker), Class::Repair);
        cluster.begin(config, sources(&code, &[0, 1]));
    }
    for (asker, _, _) in tasks {
        let finished = cluster.world.run_task(AskerId(asker), 2_000_000).unwrap();
        assert!(matches!(finished.outcome, Outcome::Complete { .. }), "{finished:?}");
    }
}

#[test]
fn an_asker_that_dies_leaves_nothing_behind() {
    let mut cluster = cluster(6);
    let code = cluster.code.clone();
    let mut config = cluster.config(vec![Wanted { role: role(1), to: at(20) }], Scheme::Chain);
    config.deadline_us = 200_000;
    cluster.begin(config, sources(&code, &[1]));
    cluster.world.at(0, Fault::Vanish(node(5)));
    // Nobody hears of the asker again: its task is not driven, and its graph stands still.
    cluster.world.run_until(3_000);
    cluster.world.process(Who::Asker(ASKER)).forget_task();
    cluster.assert_at_rest(9);
}

/// Anything may happen to at most two nodes.
fn anything(rng: &mut Rng) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    let nodes = [2 + rng.index(3), 5 + rng.index(4)];
    for index in nodes.into_iter().take(1 + rng.index(2)) {
        let us = rng.tailed(1_500);
        let (node, role) = (node(index), role(index));
        faults.push((
            us,
            match rng.index(7) {
                0 => Fault::Kill(node),
                1 => Fault::Vanish(node),
                2 => Fault::Stop(node),
                3 => Fault::Slow(node, 50.0),
                4 => Fault::Lose(node, role),
                5 => Fault::Rot(node, role),
                _ => Fault::Corrupt(node, role),
            },
        ));
    }
    faults
}

#[test]
fn whatever_happens_to_two_of_eight_a_read_ends_with_the_right_bytes() {
    let mut rng = Rng::new(11, 11);
    for seed in 0..120 {
        let mut cluster = cluster(seed);
        let scheme = Scheme::ALL[rng.index(6)];
        let faults = anything(&mut rng);
        let both_corrupt = faults.iter().filter(|(_, fault)| matches!(fault, Fault::Corrupt(..))).count() > 1;
        let finished = read(&mut cluster, scheme, &faults);
        match finished.outcome {
            Outcome::Complete { .. } => cluster.assert_right(&to_asker(&[1]), &finished),
            // Which two of the chunks are wrong is not searched for.
            outcome => assert!(both_corrupt, "{seed} {scheme} {faults:?}: {outcome:?}"),
        }
    }
}
