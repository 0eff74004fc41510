//! Links that are measured on purpose (`gestalt graph probe --active`): cells of other nodes' chunks are fetched for nothing but the time
//! that it takes.
//!
//! One node after the other, one question at a time, in the lane of repair: all that a probe ever puts before others is one question's
//! answer. Questions for one cell and for several take turns, so that rate and latency can be told apart.

use std::collections::VecDeque;

use graph::Fit;
use types::{ChunkId, HostId, MemberId, Time, ViewVersion};
use wire::object::{Cell, FILL_BIT, Fetch, List, Listed, Missing, ObjectMessage, SCRUB_BIT};

use super::scope::Scope;
use crate::Timing;

/// Numbers of a probe's questions are those of a scrub with this bit.
const PROBE_BIT: u64 = 1 << 61;
/// Bytes of the cells of one question, at least one cell.
const QUESTION_BYTES: u64 = 256 << 10;
/// Most bytes that are fetched of one node, and most questions.
const MAX_BYTES: u64 = 16 << 20;
const MAX_QUESTIONS: u32 = 256;
/// Roles of a node that are looked at for chunks.
const MAX_ROLES: usize = 16;
/// Chunks of a node that are fetched in turn.
const MAX_CHUNKS: usize = 8;
/// Who has not answered after so many times the time after which others are asked again is silent.
const PATIENCE: u64 = 4;
/// Who has answered before is asked again so often: a link that is full drops cells.
const MAX_LOST: u32 = 3;

/// Whether a probe has asked with this number.
pub(super) fn is_of_probe(number: u64) -> bool {
    number & FILL_BIT == 0 && number & (SCRUB_BIT | PROBE_BIT) == SCRUB_BIT | PROBE_BIT
}

/// What came of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Probed {
    /// It has answered.
    Answered {
        /// How many questions.
        questions: u32,
        /// Bytes of all answers.
        bytes: u64,
        /// Bytes a second; none if all answers were of one length.
        bytes_per_s: Option<f64>,
        /// There and back, without what the bytes take.
        round_trip_us: Option<f64>,
    },
    /// It is down, or has said nothing for long.
    Silent,
    /// It has no chunks of long values that could be fetched.
    Empty,
}

/// What a host knows by its last probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeReport {
    /// Whether there is more to come.
    pub is_under_way: bool,
    /// By node, as they were asked.
    pub nodes: Vec<(u16, Probed)>,
}

/// See the module.
#[derive(Default)]
pub(super) struct LinkProbe {
    numbers: u64,
    /// Bytes to fetch of each.
    bytes: u64,
    /// Those that are yet to be asked, with the roles that they hold.
    left: VecDeque<(HostId, VecDeque<MemberId>)>,
    asking: Option<Asking>,
    found: Vec<(u16, Probed)>,
}

/// A node that is being asked.
struct Asking {
    host: HostId,
    /// Whose chunks these are, and its other roles.
    member: MemberId,
    members: VecDeque<MemberId>,
    chunks: VecDeque<Piece>,
    fit: Fit,
    /// The first answer is not counted: links, and memory, are cold.
    is_warm: bool,
    questions: u32,
    bytes: u64,
    number: u64,
    asked_at: Time,
    /// Questions in a row whose answers have not come.
    lost: u32,
    /// Cells that are to come, and bytes of those that have.
    cells_left: u32,
    came: u64,
}

/// A chunk that can be fetched.
#[derive(Clone, Copy)]
struct Piece {
    chunk: ChunkId,
    cells: u32,
    cell_len: u32,
}

impl LinkProbe {
    /// Begins with all other nodes, so many bytes of each; false if one is under way.
    pub(super) fn begin(&mut self, scope: &mut Scope<'_>, bytes: u64) -> bool {
        if self.asking.is_some() || !self.left.is_empty() {
            return false;
        }
        self.bytes = bytes.clamp(1, MAX_BYTES);
        self.found.clear();
        let here = scope.here();
        let Some(map) = scope.views.map() else { return true };
        for info in map.nodes.iter().filter(|info| info.host != here) {
            let host = info.host;
            // A worker is asked about its own groups: it knows nothing of others'.
            let groups = map.groups.iter().filter(|view| scope.is_of_this_shard(view.group));
            let held = groups.filter(|view| view.takes_chunks()).flat_map(|view| {
                let roles = view.all_holders().filter(|(_, holder)| holder.host == host);
                roles.map(|(role, _)| MemberId { group: view.group, role })
            });
            let members: VecDeque<MemberId> = held.take(MAX_ROLES).collect();
            match (info.alive, members.is_empty()) {
                (false, _) => self.found.push((host.node.0, Probed::Silent)),
                (true, true) => self.found.push((host.node.0, Probed::Empty)),
                (true, false) => self.left.push_back((host, members)),
            }
        }
        self.next(scope);
        true
    }

    pub(super) fn report(&self) -> ProbeReport {
        let is_under_way = self.asking.is_some() || !self.left.is_empty();
        ProbeReport { is_under_way, nodes: self.found.clone() }
    }

    /// The next node.
    fn next(&mut self, scope: &mut Scope<'_>) {
        self.asking = None;
        let Some((host, mut members)) = self.left.pop_front() else { return };
        let Some(member) = members.pop_front() else { return };
        self.asking = Some(Asking {
            host,
            member,
            members,
            chunks: VecDeque::new(),
            fit: Fit::of_all(),
            is_warm: false,
            questions: 0,
            bytes: 0,
            number: 0,
            asked_at: scope.now.time,
            lost: 0,
            cells_left: 0,
            came: 0,
        });
        self.list(scope);
    }

    /// Has the chunks of a role of the node listed.
    fn list(&mut self, scope: &mut Scope<'_>) {
        let number = self.number();
        let Some(asking) = &mut self.asking else { return };
        (asking.number, asking.asked_at) = (number, scope.now.time);
        // Any view will do: who knows an older one lists what it has.
        let (member, view) = (asking.member, ViewVersion(0));
        scope.send(asking.host, ObjectMessage::List(List { number, member, view, after: None }));
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        SCRUB_BIT | PROBE_BIT | self.numbers
    }

    /// This has come of who is asked now.
    fn end(&mut self, scope: &mut Scope<'_>, probed: Probed) {
        if let Some(asking) = &self.asking {
            self.found.push((asking.host.node.0, probed));
        }
        self.next(scope);
    }

    /// The one that is asked now, if this is an answer of it.
    fn asked(&mut self, from: HostId, number: u64) -> Option<&mut Asking> {
        self.asking.as_mut().filter(|asking| asking.host == from && asking.number == number)
    }

    pub(super) fn hear_list(&mut self, scope: &mut Scope<'_>, from: HostId, listed: Listed) {
        let Some(asking) = self.asked(from, listed.number) else { return };
        let role = asking.member.role.0;
        let piece = |listed: &wire::object::ListedChunk| {
            let stripe = listed.geometry.stripe(listed.chunk.stripe)?;
            Some(Piece { chunk: listed.chunk, cells: stripe.cells_of(role), cell_len: stripe.cell_len })
        };
        let pieces = listed.chunks.iter().filter_map(piece).filter(|piece| piece.cells > 0);
        asking.chunks = pieces.take(MAX_CHUNKS).collect();
        asking.lost = 0;
        self.ask(scope);
    }

    pub(super) fn hear_cell(&mut self, scope: &mut Scope<'_>, from: HostId, cell: &Cell) {
        let now = scope.now.time;
        let Some(asking) = self.asked(from, cell.number) else { return };
        asking.came += cell.cell.bytes.len() as u64;
        asking.cells_left = asking.cells_left.saturating_sub(1);
        if asking.cells_left == 0 {
            asking.bytes += asking.came;
            asking.lost = 0;
            if std::mem::replace(&mut asking.is_warm, true) {
                asking.fit.add(asking.came as f64, now.since(asking.asked_at).max(1) as f64);
                asking.questions += 1;
            }
            self.ask(scope);
        }
    }

    /// A chunk is there no more: others may be.
    pub(super) fn hear_missing(&mut self, scope: &mut Scope<'_>, from: HostId, missing: &Missing) {
        let Some(asking) = self.asked(from, missing.number) else { return };
        asking.chunks.retain(|piece| piece.chunk != missing.chunk);
        self.ask(scope);
    }

    /// Asks for some cells of the next chunk, or ends with this node.
    fn ask(&mut self, scope: &mut Scope<'_>) {
        let (number, bytes) = (self.number(), self.bytes);
        let Some(asking) = &mut self.asking else { return };
        let has_enough = asking.bytes >= bytes && asking.questions > 0 || asking.questions >= MAX_QUESTIONS;
        let other = if asking.chunks.is_empty() && !has_enough { asking.members.pop_front() } else { None };
        if let Some(member) = other {
            (asking.member, asking.lost) = (member, 0);
            return self.list(scope);
        }
        if has_enough || asking.chunks.is_empty() {
            let probed = asking.probed();
            return self.end(scope, probed);
        }
        (asking.number, asking.asked_at, asking.cells_left, asking.came) = (number, scope.now.time, 0, 0);
        let mut left = if asking.questions.is_multiple_of(2) { 1 } else { QUESTION_BYTES };
        // One cell, or as many of several chunks as make a question.
        for _ in 0..asking.chunks.len() {
            let Some(piece) = asking.chunks.pop_front() else { break };
            asking.chunks.push_back(piece);
            let cells = left.div_ceil(u64::from(piece.cell_len.max(1)));
            let count = u32::try_from(cells).unwrap_or(u32::MAX).min(piece.cells);
            asking.cells_left += count;
            let (member, chunk, host) = (asking.member, piece.chunk, asking.host);
            scope.send(host, ObjectMessage::Fetch(Fetch { number, member, chunk, first: 0, count }));
            left = left.saturating_sub(u64::from(count) * u64::from(piece.cell_len));
            if left == 0 {
                break;
            }
        }
    }

    /// Nothing more comes of `peer`.
    pub(super) fn lose_link(&mut self, scope: &mut Scope<'_>, peer: HostId) {
        if self.asking.as_ref().is_some_and(|asking| asking.host == peer) {
            self.end(scope, Probed::Silent);
        }
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>) {
        if self.due(&scope.timing()) > scope.now.time {
            return;
        }
        let Some(asking) = &mut self.asking else { return };
        asking.lost += 1;
        let is_listed = !asking.chunks.is_empty();
        // Who has given the role away lists nothing: there may be others.
        let is_silent = if is_listed { asking.lost > MAX_LOST } else { !asking.is_relieved(scope) };
        if is_silent { self.end(scope, Probed::Silent) } else { self.ask(scope) }
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let late = |asking: &Asking| asking.asked_at + PATIENCE * timing.retry_us;
        self.asking.as_ref().map_or(Time::NEVER, late)
    }

    /// Bytes that it keeps.
    pub(super) fn memory_bytes(&self) -> usize {
        self.left.capacity() * size_of::<(HostId, VecDeque<MemberId>)>()
            + self.left.iter().map(|(_, members)| members.capacity() * size_of::<MemberId>()).sum::<usize>()
            + self.found.capacity() * size_of::<(u16, Probed)>()
    }
}

impl Asking {
    /// Whether the node is up, and has given the role away, as far as is known here.
    fn is_relieved(&self, scope: &Scope<'_>) -> bool {
        let info = scope.views.map().and_then(|map| map.node(self.host.node));
        let is_up = info.is_some_and(|info| info.alive && info.host == self.host);
        let view = scope.view(self.member.group);
        is_up && view.is_some_and(|view| view.holds_since(self.member.role, self.host).is_none())
    }

    fn probed(&self) -> Probed {
        if self.questions == 0 {
            return Probed::Empty;
        }
        Probed::Answered {
            questions: self.questions,
            bytes: self.bytes,
            bytes_per_s: self.fit.bytes_per_s(),
            round_trip_us: self.fit.latency_us(),
        }
    }
}
