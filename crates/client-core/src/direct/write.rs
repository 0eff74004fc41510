//! One value that is coded here, and put at the holders of its chunks.
//!
//! A stripe is done when every holder that its group's view names has acknowledged it, those that are filling included, all under this one
//! view (docs/objects.md, W4). A holder that knows another view refuses, and then a node writes the value.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use codec::Code;
use native::{BegunChunks, GroupHolders, PutAsk, Written};
use types::{ChunkId, MemberId, NodeId, RoleIndex, Stripe, checksum_combine};

use super::stripe::Coded;
use crate::rules::Rules;

/// Stripes that are under way at once.
const MAX_STRIPES: usize = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct Write {
    begun: BegunChunks,
    value: Bytes,
    code: Option<Arc<Code>>,
    /// The next stripe to be coded.
    next: u32,
    /// Those that are not done: how many acknowledgements each lacks.
    lacking: BTreeMap<u32, usize>,
    /// CRC32C of what has been coded.
    checksum: u32,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub puts: Vec<Placing>,
    pub is_whole: bool,
    pub fails: bool,
}

/// A chunk that is to be put.
#[derive(Debug)]
pub(super) struct Placing {
    pub node: NodeId,
    pub ask: PutAsk,
    pub cells: VecDeque<Bytes>,
}

impl Write {
    pub(super) fn new(begun: BegunChunks, value: Bytes, code: Option<Arc<Code>>) -> Self {
        Self { begun, value, code, next: 0, lacking: BTreeMap::new(), checksum: 0 }
    }

    pub(super) fn written(&self) -> Written {
        let chunks = &self.begun.chunks;
        Written { object: chunks.object, geometry: chunks.geometry, groups: chunks.groups.clone() }
    }

    pub(super) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// A holder has a chunk of this stripe.
    pub(super) fn placed(&mut self, stripe: u32) {
        if let Some(lacking) = self.lacking.get_mut(&stripe) {
            *lacking = lacking.saturating_sub(1);
        }
    }

    /// See [`Step`].
    pub(super) fn go_on(&mut self, rules: Rules) -> Step {
        self.lacking.retain(|_, lacking| *lacking > rules.missing_acknowledgements());
        let mut step = Step::default();
        let geometry = self.begun.chunks.geometry;
        let Some(code) = self.code.clone().filter(|_| geometry.len == self.value.len() as u64) else {
            return Step { fails: true, ..step };
        };
        while self.lacking.len() < MAX_STRIPES
            && let Some(stripe) = geometry.stripe(self.next)
        {
            let Some(puts) = self.code_stripe(&code, stripe) else { return Step { fails: true, ..step } };
            self.lacking.insert(stripe.index, puts.len());
            self.next += 1;
            step.puts.extend(puts);
        }
        step.is_whole = self.lacking.is_empty();
        step
    }

    /// The chunks of a stripe; none if somebody is missing who should take one.
    fn code_stripe(&mut self, code: &Code, stripe: Stripe) -> Option<Vec<Placing>> {
        let chunks = &self.begun.chunks;
        let group = chunks.holders_of(stripe.index).filter(|group| group.roles.len() == code.n())?;
        let coded = Coded::of(code, stripe, &self.value);
        self.checksum = checksum_combine(self.checksum, coded.checksum, stripe.len as usize);
        let trailer: Vec<u32> = coded.roles.iter().map(|chunk| chunk.sum).collect();
        let mut puts = Vec::new();
        for (role, chunk) in coded.roles.into_iter().enumerate() {
            let nodes = nodes_of(group, role);
            if nodes.is_empty() {
                return None;
            }
            for node in nodes {
                let ask = PutAsk {
                    member: MemberId { group: group.group, role: RoleIndex(role as u8) },
                    view: group.view,
                    chunk: ChunkId { object: chunks.object, stripe: stripe.index },
                    geometry: chunks.geometry,
                    checksums: chunk.checksums.clone(),
                    trailer: trailer.clone(),
                };
                puts.push(Placing { node, ask, cells: chunk.cells.clone() });
            }
        }
        Some(puts)
    }
}

/// Who has to take the chunks of a role.
fn nodes_of(group: &GroupHolders, role: usize) -> Vec<NodeId> {
    let holders = group.roles.get(role).copied().unwrap_or_default();
    holders.whole.into_iter().chain(holders.filling).collect()
}
