//! What goes wrong, and how much of it at once.
//!
//! The simulator may cause any fault, but not more losses than the code can bear unless the seed says so. What *may*
//! be lost is counted pessimistically: a node that stands still or is cut off may be taken for dead, and a parity that
//! a primary cannot reach may be removed, until some time after the fault has ended. Learners restore it, and a role
//! that moves is counted where it is and where it goes.
//!
//! Here is when faults come, and what they put at risk for how long. `plan` draws one and says as data what is to be done for it,
//! `margin` says what can be borne. Nothing is done here.

mod halves;
mod margin;
mod plan;
mod target;

use crate::options::{FaultKind, Succession};
use crate::stage::Stage;
use crate::stage::queue::Event;
use halves::Halves;

pub(crate) use halves::HalvesTurn;
pub(crate) use margin::{Risk, can_be_followed, can_bear};
pub(crate) use plan::{Deed, Strike, plan};
pub(crate) use target::Target;

/// A fault that goes on, or whose consequences may.
#[derive(Clone, Debug)]
struct Active {
    /// What it puts at risk.
    risk: Risk,
    /// How to end it.
    undo: Vec<Undo>,
    /// Its consequences may show until then; none while it goes on.
    counts_until: Option<u64>,
}

/// A fault that begins.
#[derive(Clone, Debug)]
pub(crate) struct Lasting {
    /// What it puts at risk.
    pub risk: Risk,
    /// How to end it.
    pub undo: Vec<Undo>,
    /// When that is to be done.
    pub until: u64,
}

/// Something that ends with a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Undo {
    Unblock(usize, usize),
    UnblockLine(usize),
    Quicken(usize, usize),
}

/// A fault waits for messages of a kind.
#[derive(Clone, Copy, Debug)]
struct Ambush {
    target: Target,
    /// For how many of them.
    to_go: u32,
}

/// The faults of a run.
#[derive(Debug, Default)]
pub(crate) struct Nemesis {
    active: Vec<Active>,
    halves: Option<Halves>,
    over: bool,
    ambush: Option<Ambush>,
    /// Counts the faults that were aimed.
    aimed: u64,
    /// Since when the coordinator stands still: what it has not read yet may still have consequences.
    blind_since: Option<u64>,
}

impl Nemesis {
    // --- when ---

    /// The next fault comes some time later.
    pub(crate) fn later(&self, stage: &mut Stage) {
        let every = stage.options.faults.every_us;
        if every > 0 && !self.over {
            let after = 1 + stage.rng.faults.below(2 * every);
            stage.after(after, Event::Fault);
        }
    }

    /// Whether nothing may go wrong any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// A fault is due. It gets its number if it is to hit now; else it waits until certain messages are under way.
    pub(crate) fn draw(&mut self, stage: &mut Stage) -> Option<u64> {
        self.aimed += 1;
        if !stage.rng.faults.percent(stage.options.faults.aimed_percent) {
            return Some(self.aimed);
        }
        let target = draw_target(stage);
        self.ambush = Some(Ambush { target, to_go: stage.rng.faults.range(1, 6) as u32 });
        // If no such message comes, the fault hits all the same; else no other fault would ever follow.
        stage.after(3 * stage.options.timing.node_lease_us, Event::Aimed { fault: self.aimed });
        None
    }

    /// A message is sent: a fault that waits for such a one hits before, while or after it is under way.
    pub(crate) fn aim(&mut self, stage: &mut Stage, target: Option<Target>) {
        let Some(ambush) = &mut self.ambush else { return };
        if Some(ambush.target) == target {
            ambush.to_go -= 1;
            if ambush.to_go == 0 {
                self.ambush = None;
                let after = stage.rng.faults.below(4 * stage.options.network.most_us);
                stage.after(after, Event::Aimed { fault: self.aimed });
            }
        }
    }

    /// A fault hits, unless it has already: of which kind.
    pub(crate) fn hit(&mut self, stage: &mut Stage, fault: u64) -> Option<FaultKind> {
        if self.over || self.aimed != fault {
            return None;
        }
        // One fault has two events in the queue, that of its aim and that of its
        // patience. The second one is void now.
        self.aimed += 1;
        self.ambush = None;
        Some(FaultKind::ALL[stage.rng.faults.weighted(&stage.options.faults.mix)])
    }

    // --- for how long ---

    /// A fault begins, and will end.
    pub(crate) fn begin(&mut self, stage: &mut Stage, lasting: Lasting) {
        let Lasting { risk, undo, until } = lasting;
        self.active.push(Active { risk, undo, counts_until: None });
        stage.queue.push(until, Event::Mend { fault: (self.active.len() - 1) as u32 });
    }

    /// How many faults there were so far.
    pub(crate) fn count(&self) -> usize {
        self.active.len()
    }

    /// A fault ends; for a while its consequences may still show. What is to be undone.
    pub(crate) fn mend(&mut self, stage: &Stage, fault: usize) -> Vec<Undo> {
        let active = &mut self.active[fault];
        if active.counts_until.is_some() {
            return Vec::new();
        }
        active.counts_until = Some(stage.now() + grace_us(stage));
        std::mem::take(&mut active.undo)
    }

    /// Nothing goes wrong any more.
    pub(crate) fn end(&mut self) {
        self.over = true;
    }

    /// What may be lost now because of what has happened.
    fn risk(&self, now: u64) -> Risk {
        // As long as nobody decides anything, no consequence wears off.
        let since = self.blind_since.unwrap_or(now);
        let counts = |active: &&Active| active.counts_until.is_none_or(|until| until > since);
        let mut risk = Risk::default();
        self.active.iter().filter(counts).for_each(|active| risk.add(&active.risk));
        risk
    }

    // --- who sees it ---

    /// From now on nobody sees what happens to nodes; the consequences come later.
    pub(crate) fn nobody_decides(&mut self, stage: &Stage) {
        self.blind_since.get_or_insert(stage.now());
    }

    /// The coordinator reads what has waited: the consequences of all that happened meanwhile begin now.
    pub(crate) fn coordinator_sees_again(&mut self, stage: &Stage) {
        let until = stage.now() + grace_us(stage);
        // What was over before the coordinator went blind has shown all that could come of it.
        let Some(since) = self.blind_since.take() else { return };
        for active in &mut self.active {
            active.counts_until =
                active.counts_until.map(|end| if end > since { end.max(until) } else { end });
        }
    }

    // --- halves ---

    /// Coordinators are to hear `few` nodes, the others, and `few` again.
    pub(crate) fn begin_halves(&mut self, few: Vec<usize>) {
        let risk = Risk::of_nodes(few.clone());
        self.active.push(Active { risk, undo: Vec::new(), counts_until: None });
        self.halves = Some(Halves::new(few, self.active.len() - 1));
    }

    /// The next part is heard from now on. None if that is not going on.
    pub(crate) fn turn_halves(&mut self, stage: &Stage, step: u8) -> Option<HalvesTurn> {
        let halves = self.halves.as_mut()?;
        let turn = halves.turn(step, stage.options.nodes);
        if turn.over.is_some() {
            self.halves = None;
        }
        Some(turn)
    }

    /// When the part after `step` is heard.
    pub(crate) fn turn_halves_later(&self, stage: &mut Stage, step: u8) {
        // An election takes up to two leases, and a coordinator waits for two more.
        let least = if step == 0 { 1 } else { 4 };
        let lease_us = stage.options.timing.node_lease_us;
        let after = least * lease_us + stage.rng.faults.below(3 * lease_us);
        stage.after(after, Event::NextHalf { step: step + 1 });
    }

    /// All nodes are to reach the coordinator: those that do not now.
    pub(crate) fn end_halves(&mut self) -> Vec<usize> {
        self.halves.take().map(Halves::into_cut_off).unwrap_or_default()
    }
}

fn draw_target(stage: &mut Stage) -> Target {
    use Target::{Decision, Greeting, Records, Recovery, Repair};
    let mut targets = [Records, Records, Greeting, Repair, Repair, Recovery];
    if stage.options.succession.is_some() || stage.options.faults.forgets {
        targets[..3].copy_from_slice(&[Decision, Decision, Recovery]);
    }
    stage.rng.faults.pick(&targets)
}

/// How long the consequences of a fault may show after its end.
fn grace_us(stage: &Stage) -> u64 {
    let timing = &stage.options.timing;
    let once = 3 * timing.node_lease_us + 2 * timing.stall_us;
    // A coordinator that follows begins all waiting anew, hence twice.
    match stage.options.succession {
        Some(Succession { write_us, gap_us, late_us, .. }) => 2 * once + 10 * write_us + gap_us + late_us,
        None if stage.options.faults.forgets => 2 * once,
        None => once,
    }
}
