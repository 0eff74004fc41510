//! One seed: a phase with faults, then healing, then the demand that everything ends, is whole again and agrees.

use proto::{Probed, Timing};
use types::OnFinding;
use types::op::{Get, Op};

use crate::checks::{AtRest, Speakers, misbelief};
use crate::clients::calls::Ask;
use crate::cluster::scrub::{can_end, is_scrubbed, runs_left, start_scrub};
use crate::options::Options;
use crate::stage::book::{Book, Suspect};
use crate::stage::brief::Brief;
use crate::stage::report::Report;
use crate::stage::trace::Trace;
use crate::world::World;

/// Lines of trace in a report.
const TRACE_LINES: usize = 400;
/// Calls of the key in a report.
const HISTORY_LINES: usize = 60;

/// Runs one seed. On failure the run is repeated with a trace, for the report.
#[must_use]
pub fn run(options: &Options) -> Report {
    let mut report = run_traced(options, Trace::off());
    if report.failure.is_some() {
        let again = run_traced(options, Trace::keep(TRACE_LINES));
        // Most seeds pass, so the first run writes no lines. A trace must not change a run: if the two differ,
        // something beside the seed had a say, and no failure of this seed can be trusted.
        if again.digest == report.digest && again.failure == report.failure {
            report = again;
        } else {
            report.context.push("NOT DETERMINISTIC: the second run of this seed differs".to_owned());
        }
    }
    report
}

/// Runs one seed with a trace.
#[must_use]
pub fn run_traced(options: &Options, trace: Trace) -> Report {
    let mut world = World::new(options.clone(), trace);
    let passed = form(&mut world) && suffer(&mut world) && recover(&mut world) && agree(&mut world);
    debug_assert_eq!(passed, !world.stage.book.has_failed());
    report(world)
}

/// The cluster forms and every node serves.
pub(crate) fn form(world: &mut World) -> bool {
    let lease = world.stage.options.timing.node_lease_us;
    let deadline = world.now() + 10 * lease + 1_000_000;
    let formed = wait(world, deadline, |world| {
        let nodes = &world.cluster.nodes;
        let has_map = |host| nodes.host(host).is_some_and(|machine| machine.map().is_some());
        (0..nodes.host_count()).all(has_map) && world.wires.all_connected()
    });
    if !formed {
        must_end(world, None, "the cluster does not form".to_owned());
    }
    // Greetings cross, leases begin.
    let settled = world.now() + lease;
    world.run_until(settled) && formed
}

/// Clients call, and things go wrong.
fn suffer(world: &mut World) -> bool {
    world.admit_clients();
    world.unleash();
    let end = world.now().saturating_add(world.stage.options.phase_us);
    while world.now() < end && world.clients.begun() < world.stage.options.calls {
        if !world.step() {
            break;
        }
    }
    !world.stage.book.has_failed()
}

/// No more faults: all calls end, all roles are whole or lost for a reason.
fn recover(world: &mut World) -> bool {
    world.heal();
    let timing = world.stage.options.timing;
    let lease = timing.node_lease_us;
    // Clients go on for a while, so that repairs meet traffic.
    let more = world.now() + 3 * lease;
    if !world.run_until(more) {
        return false;
    }
    world.clients.stop(&mut world.stage);
    let deadline = world.now() + patience_us(&timing);
    let step = (lease / 16).max(50);
    let has_recovered = |world: &World| !world.cluster.has_lost_roles() && world.at_rest().is_whole();
    while !has_recovered(world) {
        // Not once: a recovery that is given up only now leaves roles that nobody has accepted yet.
        world.reign().accept_losses();
        let next = (world.now() + step).min(deadline);
        if !world.run_until(next) || world.now() >= deadline {
            break;
        }
    }
    let recovered = !world.stage.book.has_failed() && has_recovered(world);
    if recovered && world.stage.options.convert_every_us > 0 {
        return settle_namespaces(world, deadline + patience_us(&timing));
    }
    if !recovered {
        let (suspect, what) = (world.at_rest().missing_suspect(), world.at_rest().what_is_missing());
        must_end(world, suspect, what);
    }
    recovered
}

/// Every namespace comes to the pool that it moves to, and everything is at rest again.
fn settle_namespaces(world: &mut World, deadline: u64) -> bool {
    world.reign().resume_conversions();
    let have_settled = |world: &World| {
        // What the coordinator has decided may not be recorded yet.
        let mut maps = world.cluster.map().into_iter().chain(world.cluster.decided());
        let moves = maps.any(|map| map.catalog.namespaces.iter().any(|known| known.conversion.is_some()));
        !moves && world.at_rest().is_whole()
    };
    let settled = wait(world, deadline, have_settled);
    if !settled {
        must_end(world, None, "a namespace does not come to the pool that it moves to".to_owned());
    }
    settled
}

/// For how long a cluster may need to become whole, if nothing goes wrong any more.
fn patience_us(timing: &Timing) -> u64 {
    60 * timing.node_lease_us + 4 * timing.request_deadline_us + 20 * timing.stall_us
}

/// Everybody holds the same: members among themselves, and what clients may read.
fn agree(world: &mut World) -> bool {
    let timing = world.stage.options.timing;
    let idle = world.now() + 2 * timing.heartbeat_us + 4 * timing.commit_delay_us;
    if !world.run_until(idle) {
        return false;
    }
    world.onlooker().look_everywhere();
    // What has expired meanwhile is being removed, perhaps; and roles that were whole for a moment may move on, to be balanced.
    let deadline = idle + patience_us(&timing);
    if !world.stage.book.has_failed() && !wait(world, deadline, |world| world.at_rest().is_at_rest()) {
        let (suspect, what) = (world.at_rest().missing_suspect(), world.at_rest().what_is_missing());
        must_end(world, suspect, what);
    }
    if world.stage.book.has_failed() {
        return false;
    }
    check_at_rest(world, |rest, book| rest.check_agreement(book));
    last_probes(world)
        && last_words(world)
        && last_scrub(world)
        && final_reads(world)
        && last_native_reads(world)
}

/// Where links are measured on purpose, all hosts do so once more. Everybody who lives answers, unless links drop cells for being full.
fn last_probes(world: &mut World) -> bool {
    if world.stage.options.objects.is_none_or(|objects| objects.probe_every_us == 0) {
        return true;
    }
    // Cells that are dropped are waited for, and asked for again, at each of the others.
    let patience_us = world.stage.options.nodes as u64 * patience_us(&world.stage.options.timing);
    let is_probing = |host: &proto::Host| proto::probe_report(host).is_under_way;
    let is_over = |world: &World| !world.cluster.nodes.hosts().any(is_probing);
    for host in 0..world.cluster.nodes.host_count() {
        // One after the other: what others fetch takes time, too.
        let is_ended = wait(world, world.now() + patience_us, is_over);
        world.probe(host);
        if !is_ended || !wait(world, world.now() + patience_us, is_over) {
            must_end(world, None, "a probe of links does not end".to_owned());
        }
        note_links(world, host);
    }
    !world.stage.book.has_failed()
}

/// Where graphs run, everybody comes to believe of slow links what the others say: soon if these say something, and later if they are
/// silent because they have begun anew.
fn last_words(world: &mut World) -> bool {
    if world.stage.options.graphs.repair.is_none() {
        return true;
    }
    let lease_us = world.stage.options.timing.node_lease_us;
    for (speakers, leases) in [(Speakers::Heard, 4), (Speakers::All, 64)] {
        let far = world.now() + leases * lease_us;
        if !wait(world, far, |world| misbelief(&world.stage, &world.cluster.nodes, speakers).is_none()) {
            let what = misbelief(&world.stage, &world.cluster.nodes, speakers);
            must_end(world, None, what.unwrap_or_default());
        }
    }
    !world.stage.book.has_failed()
}

fn note_links(world: &mut World, host: usize) {
    let up = world.cluster.nodes.up();
    let drops = world.stage.options.network.full_percent > 0;
    let (mut nodes, mut slow) = (Vec::new(), 0);
    world.cluster.nodes.drive(&world.stage, host, |machine, now| {
        nodes = proto::probe_report(machine).nodes;
        slow = proto::graph_links(machine, now.time).pairs.len();
    });
    let is_silent =
        |(node, probed): &&(u16, Probed)| up.contains(&usize::from(*node)) && *probed == Probed::Silent;
    let is_up = up.contains(&world.cluster.nodes.node_of(host));
    let silent = nodes.iter().find(is_silent).filter(|_| is_up && !drops);
    if let Some((node, _)) = silent {
        must_end(world, None, format!("node {node} does not answer a probe of links"));
    }
    let answered = nodes.iter().filter(|(_, probed)| matches!(probed, Probed::Answered { .. }));
    let counts = &mut world.stage.book.stats;
    (counts.probed_links, counts.slow_links) =
        (counts.probed_links + answered.count() as u64, counts.slow_links + slow as u64);
}

/// One more scrub, which must come to its end where nothing is lost.
fn last_scrub(world: &mut World) -> bool {
    if world.stage.options.scrub_every_us == 0 {
        return true;
    }
    world.reign().command(start_scrub(OnFinding::Report));
    let timing = world.stage.options.timing;
    let runs = runs_left(&world.cluster);
    let deadline = world.now() + 20 * timing.node_lease_us + runs * timing.retry_us;
    // No session is opened unless all data roles of its group are full: such a scrub may wait for ever.
    let must = can_end(&world.cluster);
    if must && !wait(world, deadline, |world| is_scrubbed(&world.cluster)) {
        must_end(world, None, "the last scrub does not end".to_owned());
    }
    // Findings are looked at after ticks. What came with the very last messages has not been looked at yet.
    for host in 0..world.cluster.nodes.host_count() {
        world.checks.scrub(&mut world.stage.book, &world.cluster.nodes, host);
        let stats = world.cluster.nodes.host(host).map(proto::Host::stats);
        let counts = &mut world.stage.book.stats;
        counts.released_extents += stats.map_or(0, |stats| stats.released_extents);
        counts.renamed_uploads += stats.map_or(0, |stats| stats.objects.renamed_uploads);
        counts.rewritten_values += stats.map_or(0, |stats| stats.objects.rewritten_values);
        counts.summed_chunks += stats.map_or(0, |stats| stats.objects.summed_chunks);
        counts.unsummed_chunks += stats.map_or(0, |stats| stats.objects.unsummed_chunks);
        let graphs = world.cluster.nodes.host(host).map(proto::Host::graph_stats);
        graphs.into_iter().for_each(|graphs| counts.count_parts(&graphs.reads));
        counts.moved_stripes += stats.map_or(0, |stats| stats.objects.moved_stripes);
        counts.scrubbed_pages += stats.map_or(0, |stats| stats.scrubbed_pages);
    }
    !world.stage.book.has_failed()
}

/// Every key is read once more, through any node.
pub(crate) fn final_reads(world: &mut World) -> bool {
    for key in 0..world.clients.keys().len() {
        let live = world.cluster.nodes.up();
        // In seeds without restarts, and with more losses than the code can bear, nobody may be left.
        if live.is_empty() {
            return true;
        }
        let node = world.stage.rng.clients.pick(&live);
        let call = world.call(Ask::plain(node, key, Op::Get(Get::default())));
        let deadline = world.now() + 4 * world.stage.options.timing.request_deadline_us;
        if !wait(world, deadline, |world| world.clients.has_ended(call)) {
            let what = format!("the last read of key {key} does not end");
            must_end(world, Some(Suspect::Key(key)), what);
        }
        if world.stage.book.has_failed() {
            return false;
        }
        check_at_rest(world, |rest, book| rest.check_last_read(book, key, call));
    }
    !world.stage.book.has_failed()
}

/// Every process of native clients is answered once more, and then knows the newest map.
fn last_native_reads(world: &mut World) -> bool {
    for process in 0..world.natively().count() {
        if world.cluster.nodes.up().is_empty() {
            return true;
        }
        let Some((key, call)) = world.natively().last_read(process) else { continue };
        let far = world.now() + patience_us(&world.stage.options.timing);
        if wait(world, far, |world| world.clients.has_ended(call)) {
            check_at_rest(world, |rest, book| rest.check_last_read(book, key, call));
        }
        world.natively().check_buffers(process);
        world.natives.count(&mut world.stage, process);
        let soon = world.now() + 10 * world.stage.options.timing.heartbeat_us;
        if !wait(world, soon, |world| world.natives.knows_map(process, world.cluster.map())) {
            must_end(world, None, format!("native client {process} does not come to know the newest map"));
        }
    }
    !world.stage.book.has_failed()
}

/// What is looked at where everything should be at rest is held against the rules.
pub(crate) fn check_at_rest(world: &mut World, check: impl FnOnce(&AtRest<'_>, &mut Book)) {
    let World { stage, cluster, clients, .. } = world;
    check(&AtRest { options: &stage.options, cluster, clients }, &mut stage.book);
}

/// Something did not come to its end, if not because a rule was broken before.
fn must_end(world: &mut World, suspect: Option<Suspect>, what: String) {
    if !world.stage.book.has_failed() {
        world.stage.book.fail("liveness", suspect, what);
    }
}

/// Goes on until `done`, looked at often enough, or `deadline`.
pub(crate) fn wait(world: &mut World, deadline: u64, done: impl Fn(&World) -> bool) -> bool {
    // To look after every event would cost more than the events themselves.
    let step = (world.stage.options.timing.node_lease_us / 16).max(50);
    while !done(world) {
        let next = (world.now() + step).min(deadline);
        if !world.run_until(next) || world.now() >= deadline {
            return !world.stage.book.has_failed() && done(world);
        }
    }
    true
}

fn report(mut world: World) -> Report {
    let context = if world.stage.book.has_failed() { context(&world) } else { Vec::new() };
    // A process that ends has to give back all memory of its budget: what leaks shows only now.
    for node in 0..world.cluster.nodes.count() {
        if !world.stage.book.has_failed() {
            world.crash(node);
        }
    }
    let book = &world.stage.book;
    Report {
        seed: world.stage.options.seed,
        focus: world.stage.options.focus,
        digest: book.digest(),
        stats: book.stats,
        ended_at: world.now(),
        failure: book.failure().cloned(),
        context,
    }
}

/// What a reader of the failure needs: options, views, the key's history, the last lines of the trace.
fn context(world: &World) -> Vec<String> {
    let (book, clients) = (&world.stage.book, &world.clients);
    let mut lines: Vec<String> = world.stage.options.to_string().lines().map(str::to_owned).collect();
    if let Some(Suspect::Key(key)) = book.suspect() {
        lines.push(format!("history of {:?} of {}:", clients.keys()[key].bytes, clients.keys()[key].member));
        let history: Vec<String> = clients.oracle(key).describe().collect();
        lines.extend(history.iter().rev().take(HISTORY_LINES).rev().map(|line| format!("  {line}")));
    }
    if let Some(map) = world.map() {
        lines.extend(map.groups.iter().map(|view| Brief(view).to_string()));
    }
    let group = match book.suspect() {
        Some(Suspect::Key(key)) => Some(clients.keys()[key].member.group),
        Some(Suspect::Group(group)) => Some(group),
        None => None,
    };
    // Lines that name no group are about nodes, and these matter to any group.
    let concerns =
        |line: &str| group.is_none_or(|group| !line.contains("group-") || line.contains(&group.to_string()));
    let trace: Vec<&str> =
        book.lines().filter(|line| !line.contains("Heartbeat") && concerns(line)).collect();
    if !trace.is_empty() {
        lines.push("last events:".to_owned());
        lines.extend(trace.iter().map(|line| (*line).to_owned()));
    }
    lines
}
