//! Values in chunks.

use graph::{Execution, Scheme};
use proto::{EncodeBy, GraphSettings};
use rng::Rng;
use types::{EXTENT_BYTES, MAX_CELL_BYTES, ObjectLayout};

use super::{FaultKind, Focus, Memory, Options, Verb};

/// Layouts of values in chunks, by turns.
const LAYOUTS: [ObjectLayout; 4] =
    [ObjectLayout::Spread, ObjectLayout::Wide, ObjectLayout::Spread, ObjectLayout::Copy];

/// Which values lie in chunks, and how their clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Objects {
    /// Values longer than this, in bytes.
    pub above: usize,
    /// Longest chunk in bytes.
    pub chunk_len: u32,
    /// By which rule their bytes are dealt.
    pub layout: ObjectLayout,
    /// Longest pause between two pieces that a client sends or takes.
    pub pause_us: u64,
    /// Percent of pieces before which a client leaves.
    pub leave_percent: u64,
    /// Time between two probes of links; 0 = none.
    pub probe_every_us: u64,
    /// Whether coordinators open pools before the first value comes, as servers have them do.
    pub opened_early: bool,
}

impl Options {
    /// By the seed alone, so that all else is drawn as it was. What is not dealt by cells native clients do not gather themselves, and the
    /// nodes' side of their protocol, which does that for them, is none of the simulator's.
    fn layout(&self) -> ObjectLayout {
        let is_any = !matches!(self.focus, Focus::Native | Focus::Scans);
        if is_any { LAYOUTS[(self.seed / 5 % LAYOUTS.len() as u64) as usize] } else { ObjectLayout::Spread }
    }

    /// One seed of four has values in chunks, and every one that looks at them; not where more is lost than the code can bear.
    pub(super) fn with_objects(mut self, rng: &mut Rng) -> Self {
        // Native clients code such values themselves.
        let once_in = if self.focus == Focus::Native { 2 } else { 4 };
        let always = matches!(self.focus, Focus::Objects | Focus::Graphs) || self.reads_parts();
        let wanted = always || rng.once_in(once_in);
        // Of namespaces that move half have them. By the seed alone, so that all else is drawn as it was.
        let wanted = if self.focus == Focus::Conversions { self.seed % 2 == 1 } else { wanted };
        if !wanted || self.faults.beyond > 0 {
            return self;
        }
        let lease_us = self.timing.node_lease_us;
        self.objects = Some(Objects {
            above: rng.pick(&[24, 24, 100, 1_000]),
            chunk_len: MAX_CELL_BYTES * rng.pick(&[1, 1, 2, 4]),
            layout: self.layout(),
            pause_us: rng.pick(&[0, 200, lease_us / 50, lease_us / 4]),
            leave_percent: rng.pick(&[0, 0, 1, 10]),
            // By the seed alone, so that all else is drawn as it was.
            probe_every_us: if self.seed % 7 < 3 { lease_us } else { 0 },
            opened_early: self.seed % 3 == 1,
        });
        self.timing.object_deadline_us = lease_us * rng.pick(&[1, 2, 6]);
        self.timing.ask_us = lease_us * rng.pick(&[1, 2, 4]);
        self.timing.pin_us = lease_us * rng.pick(&[1, 4, 10]);
        self.timing.hedge_us = lease_us / rng.pick(&[4, 20, 100]);
        self.limits.gather_bytes = rng.pick(&[1, 100_000, 2 << 20]);
        let crowded = self.focus == Focus::Objects && rng.once_in(3);
        // By the seed alone, so that all else is drawn as it was.
        let scattered = self.focus == Focus::Objects && self.seed % 5 < 2;
        let beside_items = self.focus == Focus::Objects && self.seed % 7 == 3;
        let options = if scattered { self.scattered(rng) } else { self };
        let options = if crowded { options.crowded(rng) } else { options };
        let mut options = if beside_items { options.beside_items() } else { options };
        options.limits.upload_bytes = rng.pick(&[1, 200_000, 64 << 20]);
        options.limits.extensions = rng.pick(&[1, 2, 32]);
        options.network.full_percent = rng.pick(&[0, 0, 1, 5]);
        // A chunk takes a page at least at each holder: from quotas that a few values use up to those that nobody ever does.
        options.quota_bytes = options.quota_bytes.saturating_mul(rng.pick(&[1, 16, 64]));
        options.with_pauses_of_feeding()
    }

    /// In every other seed some native clients feed their values so slowly that ids have to be renewed, or end. By the seed alone, so that
    /// all else is drawn as it was.
    fn with_pauses_of_feeding(mut self) -> Self {
        let open_us = self.timing.object_deadline_us;
        if let Some(natives) =
            self.natives.as_mut().filter(|_| self.focus == Focus::Native && self.seed.is_multiple_of(2))
        {
            natives.feed_pause_us = 3 * open_us;
            natives.timeout_us = natives.timeout_us.max(6 * open_us);
            (self.sizes.mix[5], self.sizes.mix[6]) = (2, 12);
        }
        self
    }

    /// In three seeds of four chunks are made by graphs, of any scheme, with more or less memory for them. In every other one of these
    /// writers have parities made of products, and in one of four that is chosen; in one of four there are two zones. All by the seed alone.
    pub(super) fn with_graphs(mut self, rng: &mut Rng) -> Self {
        let may_be_without = self.focus != Focus::Graphs && rng.once_in(4);
        if self.objects.is_none() || may_be_without {
            return self;
        }
        let repair = Some(rng.pick(&Scheme::ALL));
        let execution = if rng.once_in(4) { Execution::Incoherent } else { Execution::Coherent };
        let reads = (!self.seed.is_multiple_of(3))
            .then(|| Scheme::ALL[(self.seed / 3 % Scheme::ALL.len() as u64) as usize]);
        let ways = [EncodeBy::Tri, EncodeBy::Node, EncodeBy::Tri, EncodeBy::Auto];
        let encode = ways[(self.seed / 2 % 4) as usize];
        let zone_price_us = if self.seed / 8 % 4 == 1 { 8_000 } else { 0 };
        self.graphs = GraphSettings { repair, reads, encode, execution, zone_price_us };
        self.limits.sum_bytes = [100_000, 1 << 20, 8 << 20][(self.seed / 4 % 3) as usize];
        self.limits.graph_bytes = rng.pick(&[100_000, 1 << 20, 24 << 20, 24 << 20]);
        self.limits.graph_reader_bytes = self.limits.graph_bytes / rng.pick(&[1, 3, 8]);
        self
    }

    fn reads_parts(&self) -> bool {
        self.focus == Focus::Native && self.seed % 4 == 1
    }

    /// In every fourth seed of native clients values lie in chunks, are long and mostly read, while nodes that keep them die and stay away,
    /// so that what is read of lost chunks is made by a graph. By the seed alone, so that all else is drawn as it was.
    pub(super) fn with_readers_of_parts(mut self) -> Self {
        if !self.reads_parts() || self.objects.is_none() {
            return self;
        }
        let draw = |choices: u64, every: u64| (self.seed / 4 / every % choices) as usize;
        let spare = draw(2, 3);
        (self.code, (self.k, self.m)) = (None, [(3, 2), (4, 2), (2, 2)][draw(3, 1)]);
        let schemes = [Scheme::Chain, Scheme::Ppr, Scheme::Tri, Scheme::Star, Scheme::Lrc, Scheme::Auto];
        self.graphs.reads = Some(schemes[draw(schemes.len() as u64, 2)]);
        (self.nodes, self.groups, self.shards) = (self.n() + spare, self.groups.min(2), 1);
        self.founders = self.nodes;
        self.memory = Memory { node_bytes: 512 << 20, area_extents: 16, evict: false };
        (self.text_keys, self.quota_bytes) = (12, 1 << 30);
        self.sizes.mix = [0, 1, 1, 2, 2, 4, 4];
        (self.mix, self.number_keys) = ([0; Verb::ALL.len()], 0);
        for (verb, weight) in [(Verb::Get, 60), (Verb::Set, 6), (Verb::Append, 1), (Verb::Delete, 1)] {
            self.mix[verb as usize] = weight;
        }
        let lease_us = self.timing.node_lease_us;
        self.faults.mix = [0; FaultKind::ALL.len()];
        self.faults.mix[FaultKind::Crash as usize] = 6;
        self.faults.mix[FaultKind::Pause as usize] = 1;
        self.faults.mix[FaultKind::Cut as usize] = 1;
        (self.faults.every_us, self.faults.lasting_us) = (lease_us, 6 * lease_us);
        (self.faults.restart_percent, self.faults.supervised_us) = (100, None);
        if let Some(natives) = &mut self.natives {
            natives.timeout_us = natives.timeout_us.max(4 * lease_us);
            natives.process_us = 0;
        }
        self
    }

    /// Several groups of one worker, none of which has all nodes: stripes may go from one to another.
    fn scattered(mut self, rng: &mut Rng) -> Self {
        (self.groups, self.shards) = (4, 1);
        self.nodes = self.n() + 2;
        self.founders = self.nodes;
        let extents = if self.seed.is_multiple_of(5) {
            // Little more than its fair share, so that groups refuse.
            let members = (self.groups * self.n()).div_ceil(self.nodes) as u64;
            self.memory.area_extents = 2;
            members * 2 + rng.range(2, 6)
        } else {
            // Every node may come to host a member of every group, and a stand-in beside a parity.
            2 * self.groups as u64 * u64::from(self.memory.area_extents + 2)
        };
        self.memory.node_bytes = extents * EXTENT_BYTES as u64;
        self
    }

    /// Items that would fill more than all memory, and long values beside them: those have to make way for these.
    fn beside_items(mut self) -> Self {
        let members = (self.groups * (self.k + self.m)).div_ceil(self.nodes) as u64;
        let node_bytes = EXTENT_BYTES as u64 * (members + 4 + self.seed % 3);
        self.memory = Memory { node_bytes, area_extents: 8, evict: true };
        self.text_keys = 200;
        self.mix[Verb::Set as usize] = 40;
        self.sizes.mix = [0, 1, 1, 1, 1, 10, 6];
        if let Some(objects) = &mut self.objects {
            objects.above = 80_000;
        }
        self
    }

    /// Many long values, and little more memory than the areas of members take: chunks have to give way to each other.
    fn crowded(mut self, rng: &mut Rng) -> Self {
        let members = (self.groups * (self.k + self.m)).div_ceil(self.nodes) as u64;
        let extents = members + rng.range(4, 6);
        self.memory =
            Memory { node_bytes: extents * EXTENT_BYTES as u64, area_extents: 1, evict: rng.once_in(2) };
        self.text_keys = 60;
        self.sizes.mix = [0, 1, 1, 1, 1, 4, 4];
        self
    }
}
