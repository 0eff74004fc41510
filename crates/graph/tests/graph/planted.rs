//! Each rule is needed: without it, what it prevents is seen.

use std::sync::Arc;

use codec::Code;
use graph::net::{Fault, Finished, Who, WorldConfig};
use graph::{
    AskerId, Bug, Class, ExecutorConfig, Links, Outcome, Report, Rules, RunId, Scheme, TaskConfig, Wanted,
    plan,
};
use types::{GroupId, ViewVersion};

use crate::support::{ASKER, Cluster, at, node, question, role, sources, to_asker};

/// All slices are of one length.
const LEN: u32 = 1 << 18;

fn config(rules: Rules) -> WorldConfig {
    let mut config = WorldConfig::new(Links::default());
    config.executor.rules = rules;
    config
}

fn cluster(config: WorldConfig) -> Cluster {
    Cluster::new(Code::rs(6, 3).unwrap(), &[LEN], config, 1)
}

/// Role 1 is read by the asker, who does not know its checksum.
fn read(cluster: &mut Cluster, rules: Rules, scheme: Scheme) -> Finished {
    let code = cluster.code.clone();
    let config = TaskConfig { rules, ..cluster.config(to_asker(&[1]), scheme) };
    cluster.run(config, sources(&code, &[1]))
}

fn is_wrong(cluster: &Cluster, finished: &Finished) -> bool {
    let Outcome::Complete { run, .. } = finished.outcome else { return false };
    cluster.made(&to_asker(&[1])[0], run) != Some(&cluster.words[1])
}

fn attempts(finished: &Finished) -> u32 {
    match finished.outcome {
        Outcome::Complete { attempts, .. } => attempts,
        _ => u32::MAX,
    }
}

/// Wrong bytes, after a fault at any of many moments.
fn wrong_after(rules: Rules, scheme: Scheme, fault: Fault) -> bool {
    (0..24).any(|moment| {
        let mut cluster = cluster(config(rules));
        cluster.world.at(80 + moment * 40, fault);
        let finished = read(&mut cluster, rules, scheme);
        is_wrong(&cluster, &finished)
    })
}

/// Wrong bytes over wires that damage or repeat slices.
fn wrong_over_bad_wires(rules: Rules, damages: bool) -> bool {
    (5..25).any(|every| {
        let mut config = config(rules);
        (config.damage_every, config.repeat_every) = if damages { (every, 0) } else { (0, every) };
        let mut cluster = cluster(config);
        let finished = read(&mut cluster, rules, Scheme::Chain);
        is_wrong(&cluster, &finished)
    })
}

fn wrong_result_kept(rules: Rules) -> bool {
    let mut cluster = cluster(config(rules));
    cluster.expect(&to_asker(&[1]), ASKER);
    cluster.world.at(0, Fault::Corrupt(node(2), role(2)));
    let finished = read(&mut cluster, rules, Scheme::Chain);
    is_wrong(&cluster, &finished)
}

fn holds_more_than_reserved(rules: Rules) -> bool {
    let mut cluster = Cluster::new(Code::rs(6, 3).unwrap(), &[4 * LEN], config(rules), 1);
    cluster.world.at(0, Fault::Slow(node(5), 8.0));
    read(&mut cluster, rules, Scheme::Tri);
    !cluster.world.violations().is_empty()
}

fn small(rules: Rules, memory_bytes: u64, reader_reserve_bytes: u64) -> WorldConfig {
    WorldConfig { executor: ExecutorConfig { memory_bytes, reader_reserve_bytes, rules }, ..config(rules) }
}

fn begin_repairs(cluster: &mut Cluster, rules: Rules, count: u64) {
    let code = cluster.code.clone();
    for asker in 0..count {
        let mut config = TaskConfig { rules, ..cluster.config(to_asker(&[1]), Scheme::Chain) };
        (config.asker, config.class) = (AskerId(50 + asker), Class::Repair);
        cluster.begin(config, sources(&code, &[1]));
    }
}

fn reserves_more_than_there_is(rules: Rules) -> bool {
    let mut cluster = cluster(small(rules, 500_000, 0));
    begin_repairs(&mut cluster, rules, 8);
    cluster.world.run_until(1_000);
    !cluster.world.violations().is_empty()
}

fn reader_is_refused(rules: Rules) -> bool {
    let mut cluster = cluster(small(rules, 700_000, 400_000));
    begin_repairs(&mut cluster, rules, 12);
    cluster.world.run_until(500);
    attempts(&read(&mut cluster, rules, Scheme::Chain)) > 1
}

/// What nodes hold so long after everything is over.
fn is_held(cluster: &mut Cluster, us: u64) -> bool {
    let later = cluster.world.now_us() as u64 + us;
    cluster.world.run_until(later);
    (0..9).any(|index| {
        let process = cluster.world.process(Who::Node(node(index)));
        !process.is_dead() && process.load().runs > 0
    })
}

fn held_after_the_deadline(rules: Rules) -> bool {
    let mut cluster = cluster(config(rules));
    let code = cluster.code.clone();
    let config = TaskConfig { rules, deadline_us: 100_000, ..cluster.config(to_asker(&[1]), Scheme::Chain) };
    cluster.begin(config, sources(&code, &[1]));
    cluster.world.at(0, Fault::Vanish(node(5)));
    cluster.world.run_until(3_000);
    cluster.world.process(Who::Asker(ASKER)).forget_task();
    is_held(&mut cluster, 1_000_000)
}

fn held_after_withdrawal(rules: Rules) -> bool {
    let mut cluster = cluster(config(rules));
    cluster.world.at(0, Fault::Vanish(node(5)));
    read(&mut cluster, rules, Scheme::Chain);
    is_held(&mut cluster, 50_000)
}

fn runs_again(rules: Rules) -> bool {
    let mut cluster = cluster(config(rules));
    let code = cluster.code.clone();
    let (sources, wanted, links) =
        (sources(&code, &[1]), [Wanted { role: role(1), to: at(20) }], Links::default());
    let shape = plan(&question(&code, &sources, &wanted, LEN, &links), Scheme::Star).unwrap();
    let envelope = graph::Envelope {
        run: RunId { asker: ASKER, number: 1 },
        group: GroupId(1),
        view: ViewVersion(1),
        deadline_us: 100_000,
        class: Class::Reader,
        strand: cluster.strand.clone(),
    };
    let graph = Arc::new(shape.into_graph(envelope).unwrap());
    for _ in 0..2 {
        cluster.world.start(ASKER, &graph);
        let later = cluster.world.now_us() as u64 + 300_000;
        cluster.world.run_until(later);
    }
    let reports = &cluster.world.look(Who::Asker(ASKER)).unwrap().reports;
    reports.iter().filter(|(from, _, report)| *from == at(20) && *report == Report::Done).count() > 1
}

fn does_not_get_through(rules: Rules, fault: Fault, within_us: f64) -> bool {
    let mut cluster = cluster(config(rules));
    cluster.world.at(0, fault);
    let finished = read(&mut cluster, rules, Scheme::Chain);
    finished.at_us > within_us || attempts(&finished) == u32::MAX
}

fn says_lost_too_early(rules: Rules) -> bool {
    let mut cluster = cluster(config(rules));
    for index in [2, 3, 4] {
        cluster.world.at(0, Fault::Lose(node(index), role(index)));
        cluster.world.at(0, Fault::View(node(index), ViewVersion(0)));
    }
    read(&mut cluster, rules, Scheme::Star).outcome == Outcome::Lost
}

/// Whether something is seen that must not be.
fn trouble(bug: Bug, rules: Rules) -> bool {
    match bug {
        Bug::RunsMix => wrong_after(rules, Scheme::Ppr, Fault::Kill(node(2))),
        Bug::SliceTwice => wrong_over_bad_wires(rules, false),
        Bug::SumUnchecked => wrong_over_bad_wires(rules, true),
        Bug::ResultUnchecked => wrong_result_kept(rules),
        Bug::KeepsHalf => {
            let mut cluster = cluster(config(rules));
            // Its part ends later than the others'.
            cluster.world.at(0, Fault::Slow(node(0), 3.0));
            let finished = read(&mut cluster, rules, Scheme::Tri);
            is_wrong(&cluster, &finished)
        }
        Bug::CreditWithoutMemory => holds_more_than_reserved(rules),
        Bug::TakesWithoutRoom => reserves_more_than_there_is(rules),
        Bug::NoReserve => reader_is_refused(rules),
        Bug::DeadlineIgnored => held_after_the_deadline(rules),
        Bug::CancelIgnored => held_after_withdrawal(rules),
        Bug::RunsAgain => runs_again(rules),
        Bug::SilenceForgiven => does_not_get_through(rules, Fault::Vanish(node(2)), 500_000.0),
        Bug::SlownessForgiven => does_not_get_through(rules, Fault::Slow(node(2), 100.0), 120_000.0),
        Bug::MissingForgiven => does_not_get_through(rules, Fault::Lose(node(2), role(2)), 500_000.0),
        Bug::OldViewBelieved => says_lost_too_early(rules),
    }
}

#[test]
fn without_a_rule_what_it_prevents_is_seen() {
    let unseen: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| !trouble(*bug, Rules::without(*bug))).collect();
    assert_eq!(unseen, []);
}

#[test]
fn with_all_rules_nothing_of_it_is_seen() {
    let seen: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| trouble(*bug, Rules::all())).collect();
    assert_eq!(seen, []);
}
