//! From which chunks, at which nodes, with which coefficients: what all schemes lay out. Worked out once for all of them.

use std::cell::RefCell;
use std::rc::Rc;

use codec::{Code, CodeError, Plan};
use types::{NodeId, RoleIndex};

use super::build::Hop;
use super::{Question, Scheme, Source, Unplannable, Wanted};
use crate::graph::Place;
use crate::model::Pair;

/// A node so much slower than the median, in halvings, is avoided.
const SLOW_HALVINGS: i32 = 2;

/// The sums that give what is wanted, by the processes that have the chunks.
pub(super) struct Recipe {
    pub hops: Vec<Hop>,
    /// What is computed: row `r` is the chunk of `wanted[r]`.
    pub wanted: Vec<Wanted>,
}

/// Sources in the order of preference, each role once.
struct Ranked {
    sources: Vec<Source>,
    /// How many of them are good: the others are slow, avoided, or second roles of a node.
    good: usize,
}

/// How a question's sums are made: schemes that make them alike share the answer.
pub(super) struct Recipes<'a> {
    question: &'a Question<'a>,
    is_dense: bool,
    /// By where the first of what is wanted shall be.
    ranked: RefCell<Vec<(Place, Rc<Ranked>)>>,
    known: RefCell<Vec<(Way, Rc<Recipe>)>>,
}

/// From which chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// From any as many as the code has data roles.
    Dense,
    /// From as many as the code has data roles, those that cover all first.
    Star,
    /// From as few as there can be.
    Sparse,
}

impl<'a> Recipes<'a> {
    pub(super) fn new(question: &'a Question<'a>) -> Self {
        let is_dense = question.code.is_dense();
        Self { question, is_dense, ranked: RefCell::default(), known: RefCell::default() }
    }

    /// Schemes that differ: as few chunks as a code without local parities allows are as many as it has data roles.
    pub(super) fn schemes(&self) -> &'static [Scheme] {
        if self.is_dense { Scheme::DECODING_DENSE } else { Scheme::DECODING }
    }

    fn ranked(&self, target: Place) -> Rc<Ranked> {
        let mut known = self.ranked.borrow_mut();
        if let Some((_, ranked)) = known.iter().find(|(to, _)| *to == target) {
            return Rc::clone(ranked);
        }
        let ranked = Rc::new(rank(self.question, target));
        known.push((target, Rc::clone(&ranked)));
        ranked
    }

    /// How `wanted` is computed, from as few chunks as there can be; with `star` from as many as the code has data roles.
    pub(super) fn of(&self, wanted: &[Wanted], scheme: Scheme) -> Result<Rc<Recipe>, Unplannable> {
        let is_read = |wanted: &Wanted| self.question.sources.iter().any(|source| source.role == wanted.role);
        let way = if self.is_dense || wanted.iter().any(is_read) {
            Way::Dense
        } else if scheme == Scheme::Star {
            Way::Star
        } else {
            Way::Sparse
        };
        let mut known = self.known.borrow_mut();
        if let Some((_, recipe)) = known.iter().find(|(one, recipe)| *one == way && recipe.wanted == wanted) {
            return Ok(Rc::clone(recipe));
        }
        let recipe = Rc::new(self.solve(wanted, way)?);
        known.push((way, Rc::clone(&recipe)));
        Ok(recipe)
    }

    fn solve(&self, wanted: &[Wanted], way: Way) -> Result<Recipe, Unplannable> {
        let code = self.question.code;
        let ranked = &*self.ranked(wanted.first().map_or(Place::Asker, |wanted| wanted.to));
        let roles: Vec<usize> = wanted.iter().map(|wanted| usize::from(wanted.role.0)).collect();
        let plan = match way {
            Way::Dense => dense_plan(code, ranked, &roles),
            Way::Star => star_plan(code, ranked, &roles),
            Way::Sparse => sparse_plan(code, ranked, &roles),
        };
        let plan = plan.map_err(|error| unsolvable(error, &roles, ranked.sources.len()))?;
        Ok(Recipe { hops: hops(&plan, ranked), wanted: wanted.to_vec() })
    }

    /// The best of those that have a chunk that can be read.
    pub(super) fn best_source(&self, wanted: Wanted) -> Option<Source> {
        self.ranked(wanted.to).sources.iter().copied().find(|source| source.role == wanted.role)
    }
}

impl Ranked {
    fn roles(&self, count: usize) -> Vec<usize> {
        self.sources[..count].iter().map(|source| usize::from(source.role.0)).collect()
    }
}

/// The `k` best, data before parity. If what is wanted is not made of them, all.
fn dense_plan(code: &Code, ranked: &Ranked, wanted: &[usize]) -> Result<Plan, CodeError> {
    // What is wanted and can be read is one of those that are read.
    let mut best = ranked.roles(ranked.sources.len());
    best.sort_by_key(|role| !wanted.contains(role));
    best.truncate(code.k());
    best.sort_unstable();
    code.plan(&best, wanted).or_else(|_| {
        let mut all = ranked.roles(ranked.sources.len());
        all.sort_unstable();
        code.plan(&all, wanted)
    })
}

/// As for a code without local parities: those that cover all come first.
fn star_plan(code: &Code, ranked: &Ranked, wanted: &[usize]) -> Result<Plan, CodeError> {
    let among = |count: usize| {
        let mut roles = ranked.roles(count);
        let is_local = |role: usize| role >= code.k() && code.row(role - code.k()).contains(&0);
        roles.sort_by_key(|role| (is_local(*role), *role));
        code.plan(&roles, wanted)
    };
    among(ranked.good).or_else(|_| among(ranked.sources.len()))
}

/// As few chunks as there can be, without the nodes to avoid if that is possible.
fn sparse_plan(code: &Code, ranked: &Ranked, wanted: &[usize]) -> Result<Plan, CodeError> {
    let among = |count: usize| {
        let roles = ranked.roles(count);
        let lost: Vec<usize> = (0..code.n()).filter(|role| !roles.contains(role)).collect();
        code.cheapest_plan(&lost, wanted)
    };
    match among(ranked.good) {
        Err(_) if ranked.good < ranked.sources.len() => among(ranked.sources.len()),
        plan => plan,
    }
}

fn unsolvable(error: CodeError, wanted: &[usize], present: usize) -> Unplannable {
    let role = match error {
        CodeError::Undetermined { role, .. } => role,
        _ => wanted.first().copied().unwrap_or(0),
    };
    Unplannable::Unsolvable { role, present }
}

/// The best node of each role: those that are not avoided first, then those whose chunk is their only one, then the fast, those whose
/// links with the others are, then the near.
fn rank(question: &Question<'_>, target: Place) -> Ranked {
    let links = question.links;
    let zone = links.end(target).zone;
    let mut keyed: Vec<(bool, i32, u32, bool, i32, Source)> = question
        .sources
        .iter()
        .map(|source| {
            let place = Place::Node(source.node);
            let end = links.end(place);
            let to_target = links.pair(place, target);
            let slowness = to_target.map_or(end.slowness(), |pair| pair.slowness().max(end.slowness()));
            let is_avoided = question.avoided.contains(&source.node);
            let worse = worse_links(question, *source);
            (is_avoided, slowness, worse, end.zone != zone, end.farness(), *source)
        })
        .collect();
    keyed.sort_unstable();
    let median = median(keyed.iter().map(|key| key.1));
    let (mut roles, mut nodes) = (Vec::new(), Vec::new());
    let (mut first, mut second) = (Vec::with_capacity(keyed.len()), Vec::new());
    for (is_avoided, slowness, .., source) in keyed {
        if roles.contains(&source.role) {
            continue;
        }
        roles.push(source.role);
        let is_second = nodes.contains(&source.node);
        nodes.push(source.node);
        let is_good = !is_avoided && !is_second && slowness < median + SLOW_HALVINGS;
        if is_good { first.push(source) } else { second.push(source) }
    }
    let good = first.len();
    first.extend(second);
    Ranked { sources: first, good }
}

/// Links between a source's node and the others that are worse than their ends.
fn worse_links(question: &Question<'_>, source: Source) -> u32 {
    let links = question.links;
    if links.pairs.is_empty() {
        return 0;
    }
    let is_among = |node: u16| question.sources.iter().any(|other| other.node.0 == node);
    let other = |pair: &Pair| match source.node.0 {
        node if node == pair.from => Some(pair.to),
        node if node == pair.to => Some(pair.from),
        _ => None,
    };
    links.pairs.iter().filter_map(other).filter(|node| is_among(*node)).map(|_| 1).sum()
}

fn median(values: impl Iterator<Item = i32>) -> i32 {
    let mut values: Vec<i32> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// The plan's sources by node, in the order of nodes.
fn hops(plan: &Plan, ranked: &Ranked) -> Vec<Hop> {
    let node_of = |role: usize| {
        let found = ranked.sources.iter().find(|source| usize::from(source.role.0) == role);
        found.map_or(NodeId(0), |source| source.node)
    };
    let mut hops: Vec<Hop> = Vec::with_capacity(plan.sources().len());
    for (at, role) in plan.sources().iter().enumerate() {
        let place = Place::Node(node_of(*role));
        let column = (0..plan.outputs().len()).map(|output| plan.coefficient(output, at)).collect();
        let index = match hops.iter().position(|hop| hop.place == place) {
            Some(index) => index,
            None => {
                hops.push(Hop::empty(place));
                hops.len() - 1
            }
        };
        hops[index].roles.push(RoleIndex(u8::try_from(*role).unwrap_or(u8::MAX)));
        hops[index].columns.push(column);
    }
    hops
}
