//! One seed: a phase with faults, then healing, then the demand that everything ends, is whole again and agrees.

use types::op::{Get, Op};
use types::{GroupView, NodeId, NodeInfo, RoleStatus};

use super::book::Suspect;
use super::brief::Brief;
use super::options::Options;
use super::process::Life;
use super::report::Report;
use super::trace::Trace;
use super::world::World;
use super::world::clients::NOBODY;

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
    world.into_report()
}

/// The cluster forms and every node serves.
pub(crate) fn form(world: &mut World) -> bool {
    let lease = world.stage.options.timing.node_lease_us;
    let deadline = world.stage.now() + 10 * lease + 1_000_000;
    let formed = wait(world, deadline, |world| {
        let maps =
            world.shards.iter().all(|shard| shard.host.as_ref().is_some_and(|host| host.map().is_some()));
        maps && world.wires.pairs.iter().all(|pair| pair.connected)
    });
    if !formed && !world.stage.book.has_failed() {
        world.stage.book.fail("liveness", None, "the cluster does not form".to_owned());
    }
    // Greetings cross, leases begin.
    let settled = world.stage.now() + lease;
    world.run_until(settled) && formed
}

/// Clients call, and things go wrong.
fn suffer(world: &mut World) -> bool {
    world.admit_clients();
    world.unleash();
    let end = world.stage.now().saturating_add(world.stage.options.phase_us);
    while world.stage.now() < end && world.calls_begun < world.stage.options.calls {
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
    let more = world.stage.now() + 3 * lease;
    if !world.run_until(more) {
        return false;
    }
    world.clients_stop = true;
    let deadline = world.stage.now() + 60 * lease + 4 * timing.request_deadline_us + 20 * timing.stall_us;
    let step = (lease / 16).max(50);
    while world.has_lost_roles() || !world.is_whole() {
        world.accept_losses();
        let next = (world.stage.now() + step).min(deadline);
        if !world.run_until(next) || world.stage.now() >= deadline {
            break;
        }
    }
    if !world.stage.book.has_failed() && !world.has_lost_roles() && world.is_whole() {
        return true;
    }
    if !world.stage.book.has_failed() {
        let what = world.what_is_missing();
        let suspect = world.missing_suspect();
        world.stage.book.fail("liveness", suspect, what);
    }
    false
}

/// Everybody holds the same: members among themselves, and what clients may read.
fn agree(world: &mut World) -> bool {
    let idle = world.stage.now()
        + 2 * world.stage.options.timing.heartbeat_us
        + 4 * world.stage.options.timing.commit_delay_us;
    if !world.run_until(idle) {
        return false;
    }
    world.check_everything();
    // What has expired meanwhile is being removed, perhaps.
    let deadline = idle + world.stage.options.timing.node_lease_us;
    if !world.stage.book.has_failed()
        && !wait(world, deadline, World::is_settled)
        && !world.stage.book.has_failed()
    {
        world.stage.book.fail("liveness", world.missing_suspect(), world.what_is_missing());
    }
    if world.stage.book.has_failed() {
        return false;
    }
    world.check_agreement();
    world.last_scrub() && final_reads(world)
}

/// Every key is read once more, through any node.
pub(crate) fn final_reads(world: &mut World) -> bool {
    for key in 0..world.keys.len() {
        let live: Vec<usize> =
            (0..world.stage.options.nodes).filter(|node| world.nodes[*node].state == Life::Up).collect();
        if live.is_empty() {
            return true;
        }
        let node = world.stage.rng.clients.pick(&live);
        let call = world.call(NOBODY, node, key, Op::Get(Get::default()));
        let deadline = world.stage.now() + 4 * world.stage.options.timing.request_deadline_us;
        let answered = wait(world, deadline, |world| world.running[call as usize].ended);
        if !answered && !world.stage.book.has_failed() {
            world.stage.book.fail(
                "liveness",
                Some(Suspect::Key(key)),
                format!("the last read of key {key} does not end"),
            );
        }
        if world.stage.book.has_failed() {
            return false;
        }
        world.check_last_read(key, call);
    }
    !world.stage.book.has_failed()
}

/// Goes on until `done`, looked at often enough, or `deadline`.
pub(crate) fn wait(world: &mut World, deadline: u64, done: impl Fn(&World) -> bool) -> bool {
    let step = (world.stage.options.timing.node_lease_us / 16).max(50);
    while !done(world) {
        let next = (world.stage.now() + step).min(deadline);
        if !world.run_until(next) || world.stage.now() >= deadline {
            return !world.stage.book.has_failed() && done(world);
        }
    }
    true
}

impl World {
    /// Whether nothing is left to do: no call runs, every role is full or lost, and everything is committed.
    pub(crate) fn is_whole(&self) -> bool {
        let Some(map) = self.map() else { return false };
        let calls = self.clients_are_idle() && self.running.iter().rev().take(4096).all(|call| call.ended);
        calls && self.is_settled() && map.groups.iter().all(|view| self.is_protected(view))
    }

    /// Whether every role is full or lost, and everything is committed.
    fn is_settled(&self) -> bool {
        self.map().is_some_and(|map| map.groups.iter().all(|view| self.is_group_whole(view)))
    }

    /// Whether every parity is in sync that could be, and no node has two roles that needs not: as long as a living node
    /// without a role in the group has the memory, another member can be built there.
    fn is_protected(&self, view: &GroupView) -> bool {
        let Some(map) = self.map() else { return false };
        let needed = (self.stage.options.memory.area_extents + 1) as usize * types::EXTENT_BYTES;
        let has_room = |node: NodeId| self.nodes[usize::from(node.0)].budget.has_room_for_extent(needed);
        let missing = view.parity.contains(&None);
        let shares = |host: types::HostId| view.roles_on(host.node) > 1;
        let crowded = view.data.iter().filter_map(|role| role.primary).any(shares);
        if !view.is_steady() || !missing && !crowded && view.learners.is_empty() {
            return true;
        }
        let is_free =
            |node: &NodeInfo| node.alive && view.roles_on(node.host.node) == 0 && has_room(node.host.node);
        let is_learning = view.learners.iter().any(|learner| has_room(learner.host.node));
        !is_learning && !map.nodes.iter().any(is_free)
    }

    fn is_group_whole(&self, view: &GroupView) -> bool {
        let members = self.members(view);
        (0..view.k()).all(|role| {
            let data = &view.data[role];
            // Where nobody lives nobody can begin anew.
            let nowhere = || self.nodes.iter().all(|node| node.state == Life::Down);
            let has_ended =
                data.status == RoleStatus::Lost || data.status == RoleStatus::Accepted && nowhere();
            if has_ended || self.is_starved(data) {
                return true;
            }
            if data.status != RoleStatus::Full {
                return false;
            }
            let Some(primary) = &members.data[role] else { return false };
            let committed = primary.info.committed;
            committed == primary.info.last
                && primary.store.absent_count() == 0
                && members.parities.len() == view.in_sync().count()
                && members.parities.iter().all(|parity| {
                    parity.stream(role).applied == committed && parity.stream(role).received == committed
                })
        })
    }

    /// Whether a stand-in cannot be rebuilt because its node has no memory left: nothing will change that here.
    fn is_starved(&self, role: &types::DataRole) -> bool {
        let budget = |host: types::HostId| &self.nodes[usize::from(host.node.0)].budget;
        matches!(role.status, RoleStatus::Rebuilding { .. })
            && role.primary.is_some_and(|host| !budget(host).has_room_for_extent(types::EXTENT_BYTES))
    }

    fn missing_suspect(&self) -> Option<Suspect> {
        let map = self.map()?;
        map.groups
            .iter()
            .find(|view| !self.is_group_whole(view) || !self.is_protected(view))
            .map(|view| Suspect::Group(view.group))
    }

    pub(crate) fn what_is_missing(&self) -> String {
        let Some(map) = self.map() else { return "no map".to_owned() };
        let running = self.running.iter().filter(|call| !call.ended).count();
        let mut what = format!("not at rest: {running} calls run");
        for view in map.groups.iter().filter(|view| !self.is_group_whole(view) || !self.is_protected(view)) {
            what.push_str(&format!("; {}", Brief(view)));
            let members = self.members(view);
            for (role, primary) in members.data.iter().enumerate() {
                match primary {
                    None => what.push_str(&format!("; role-{role} is not served")),
                    Some(p) => what.push_str(&format!(
                        "; role-{role} committed {} of {}, {} pages absent, {} waiting",
                        p.info.committed,
                        p.info.last,
                        p.store.absent_count(),
                        p.info.waiting
                    )),
                }
            }
        }
        what
    }

    /// At rest: the parities are what encoding the primaries' own memory gives, and nothing is lost without reason.
    pub(crate) fn check_agreement(&mut self) {
        let Some(map) = self.map().cloned() else { return };
        for view in &map.groups {
            let lost = view.data.iter().filter(|role| role.status.is_lost()).count() as u64;
            self.stage.book.stats.lost_roles += lost;
            if lost > 0 && self.stage.options.faults.beyond == 0 {
                let what =
                    format!("{lost} roles of {} are lost, though never more than m members were", view.group);
                self.stage.book.fail("margin", Some(Suspect::Group(view.group)), what);
            }
            let absent = view.parity.iter().filter(|host| host.is_none()).count();
            self.stage.book.stats.evictions += absent as u64;
            if let Err(what) = self.encoded(view) {
                self.stage.book.fail("algebra", Some(Suspect::Group(view.group)), what);
            }
        }
        self.stage.book.stats.keys_given_up =
            self.oracles.iter().filter(|oracle| !oracle.is_complete()).count() as u64;
    }

    fn encoded(&self, view: &GroupView) -> Result<(), String> {
        if !view.is_steady() {
            return Ok(());
        }
        let code = proto::code_of(self.stage.options.profile()).expect("options name a valid code");
        let members = self.members(view);
        let mut pages: Vec<u32> =
            members.data.iter().flatten().flat_map(|p| p.store.replica().touched().iter()).collect();
        pages.sort_unstable();
        pages.dedup();
        let (mut sum, mut page_bytes) = ([0; types::PAGE_BYTES], [0; types::PAGE_BYTES]);
        for parity in &members.parities {
            for page in &pages {
                sum.fill(0);
                let living = |(role, _): &(usize, _)| !view.data[*role].status.is_lost();
                for (role, primary) in members.data.iter().enumerate().filter(living) {
                    let present = primary.as_ref().and_then(|primary| primary.page(*page, &mut page_bytes));
                    present.ok_or_else(|| format!("page {page} of role-{role} is absent at rest"))?;
                    codec::mul_add(&mut sum, code.coefficient(parity.row, role), &page_bytes)
                        .expect("slices of one length");
                }
                parity.page(*page, &mut page_bytes);
                if sum != page_bytes {
                    let difference = super::checks::first_difference(&page_bytes, &sum);
                    return Err(format!(
                        "{}: at rest page {page} of parity {} is wrong{difference}",
                        view.group, parity.row
                    ));
                }
            }
        }
        Ok(())
    }

    /// A key that is not lost can be read in the end.
    fn check_last_read(&mut self, key: usize, call: u32) {
        let member = self.keys[key].member;
        let role = self.map().and_then(|map| map.group(member.group)?.data_role(member.role)).copied();
        if role.is_some_and(|role| self.is_starved(&role)) {
            return;
        }
        let status = role.map(|role| role.status);
        let refused = matches!(self.answers.get(call as usize), Some(Some(types::op::Outcome::Failed(_))));
        let lost = status == Some(RoleStatus::Lost);
        if refused != lost {
            let what = format!(
                "the last read of key {key} of {member} ({status:?}) ends with {:?}",
                self.answers[call as usize]
            );
            self.stage.book.fail("liveness", Some(Suspect::Key(key)), what);
        }
    }

    pub(crate) fn into_report(mut self) -> Report {
        let context = if self.stage.book.has_failed() { self.context() } else { Vec::new() };
        for node in 0..self.stage.options.nodes {
            if !self.stage.book.has_failed() {
                self.crash(node);
            }
        }
        Report {
            seed: self.stage.options.seed,
            focus: self.stage.options.focus,
            digest: self.stage.book.digest(),
            stats: self.stage.book.stats,
            ended_at: self.stage.now(),
            failure: self.stage.book.failure().cloned(),
            context,
        }
    }

    /// What a reader of the failure needs: options, views, the key's history, the last lines of the trace.
    fn context(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.stage.options.to_string().lines().map(str::to_owned).collect();
        if let Some(Suspect::Key(key)) = self.stage.book.suspect() {
            lines.push(format!("history of {:?} of {}:", self.keys[key].bytes, self.keys[key].member));
            let history: Vec<String> = self.oracles[key].describe().collect();
            lines.extend(history.iter().rev().take(HISTORY_LINES).rev().map(|line| format!("  {line}")));
        }
        if let Some(map) = self.map() {
            lines.extend(map.groups.iter().map(|view| Brief(view).to_string()));
        }
        let group = match self.stage.book.suspect() {
            Some(Suspect::Key(key)) => Some(self.keys[key].member.group),
            Some(Suspect::Group(group)) => Some(group),
            None => None,
        };
        let concerns = |line: &str| {
            group.is_none_or(|group| !line.contains("group-") || line.contains(&group.to_string()))
        };
        let trace: Vec<&str> =
            self.stage.book.lines().filter(|line| !line.contains("Heartbeat") && concerns(line)).collect();
        if !trace.is_empty() {
            lines.push("last events:".to_owned());
            lines.extend(trace.iter().map(|line| (*line).to_owned()));
        }
        lines
    }
}
