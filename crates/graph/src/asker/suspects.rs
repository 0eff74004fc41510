//! Whom an asker does not ask again, or only if there is no other way.

use std::collections::{BTreeMap, BTreeSet};

use types::{NodeId, RoleIndex, ViewVersion};

use crate::graph::{Graph, Input, Place};
use crate::message::Why;
use crate::planner::Source;
use crate::rules::{Bug, Rules};

/// See the module.
#[derive(Debug)]
pub(super) struct Suspects {
    view: ViewVersion,
    rules: Rules,
    /// Chunks that cannot be had, and whether the last word about them is spoken.
    bad: BTreeMap<(NodeId, RoleIndex), bool>,
    silent: BTreeSet<NodeId>,
    slow: BTreeSet<NodeId>,
    /// Chunks of graphs that gave wrong bytes, of which nobody knows whose they were: each is left out in turn.
    doubted: Vec<Source>,
    doubts: usize,
}

impl Suspects {
    /// Some are taken for slow from the beginning.
    pub(super) fn new(view: ViewVersion, rules: Rules, slow: &[NodeId]) -> Self {
        let (bad, silent, slow) = (BTreeMap::new(), BTreeSet::new(), slow.iter().copied().collect());
        Self { view, rules, bad, silent, slow, doubted: Vec::new(), doubts: 0 }
    }

    pub(super) fn is_silent(&mut self, node: NodeId) {
        if self.rules.prevent(Bug::SilenceForgiven) {
            self.silent.insert(node);
        }
    }

    /// Whether that is news.
    pub(super) fn is_slow(&mut self, node: NodeId) -> bool {
        self.rules.prevent(Bug::SlownessForgiven) && self.slow.insert(node)
    }

    /// What `from` says of its run.
    pub(super) fn blame(&mut self, from: Place, why: Why, graph: &Graph) {
        let node = match from {
            Place::Node(node) => Some(node),
            Place::Asker => None,
        };
        match (why, node) {
            (Why::Missing { role, view }, Some(node)) => {
                let is_last_word = view >= self.view || !self.rules.prevent(Bug::OldViewBelieved);
                self.is_bad(node, role, is_last_word);
            }
            (Why::Rotten { role }, Some(node)) => self.is_bad(node, role, false),
            (Why::NoRoom, Some(node)) => drop(self.slow.insert(node)),
            (Why::BadSlice { edge }, _) => {
                if let Some(Place::Node(sender)) = graph.ends(edge).map(|ends| ends.from) {
                    self.slow.insert(sender);
                }
            }
            (Why::Cut { edge }, _) => {
                let ends = graph.ends(edge);
                let other = ends.map(|ends| if ends.from == from { ends.to } else { ends.from });
                if let Some(Place::Node(other)) = other {
                    self.is_silent(other);
                }
            }
            (Why::NotKept, _) => self.doubt(graph),
            _ => {}
        }
    }

    fn is_bad(&mut self, node: NodeId, role: RoleIndex, is_last_word: bool) {
        if self.rules.prevent(Bug::MissingForgiven) {
            self.bad.insert((node, role), is_last_word);
        }
    }

    /// The graph gave wrong bytes, and nobody has noticed on the way.
    fn doubt(&mut self, graph: &Graph) {
        if self.doubted.is_empty() {
            let read = graph.steps.iter().flat_map(|step| {
                step.inputs.iter().filter_map(|input| match (step.at, input) {
                    (Place::Node(node), Input::Chunk(role)) => Some(Source { role: *role, node }),
                    _ => None,
                })
            });
            self.doubted = read.collect();
            self.doubted.sort_unstable();
            self.doubted.dedup();
        } else {
            self.doubts += 1;
        }
    }

    fn is_doubted(&self, source: &Source) -> bool {
        self.doubted.get(self.doubts) == Some(source)
    }

    /// All that are not known to be without.
    pub(super) fn without_bad(&self, sources: &[Source]) -> Vec<Source> {
        let is_bad = |source: &Source| self.bad.contains_key(&(source.node, source.role));
        sources.iter().filter(|source| !is_bad(source) && !self.is_doubted(source)).copied().collect()
    }

    /// Those that answer.
    pub(super) fn without_silent(&self, sources: &[Source]) -> Vec<Source> {
        let mut left = self.without_bad(sources);
        left.retain(|source| !self.silent.contains(&source.node));
        left
    }

    /// All but those of which the last word is that they are missing.
    pub(super) fn without_missing(&self, sources: &[Source]) -> Vec<Source> {
        let is_missing = |source: &Source| self.bad.get(&(source.node, source.role)) == Some(&true);
        sources.iter().filter(|source| !is_missing(source)).copied().collect()
    }

    pub(super) fn avoided(&self) -> Vec<NodeId> {
        self.slow.union(&self.silent).copied().collect()
    }
}
