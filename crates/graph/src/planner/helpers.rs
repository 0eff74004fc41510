//! From which chunks, at which nodes, with which coefficients: what all schemes lay out.

use codec::{Code, CodeError, Plan};
use types::{NodeId, RoleIndex};

use super::build::Hop;
use super::{Question, Scheme, Source, Unplannable, Wanted};
use crate::graph::Place;

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

/// How `wanted` is computed, from as few chunks as there can be; with `star` from as many as the code has data roles.
pub(super) fn recipe(
    question: &Question<'_>,
    wanted: &[Wanted],
    scheme: Scheme,
) -> Result<Recipe, Unplannable> {
    let ranked = rank(question, wanted);
    let roles: Vec<usize> = wanted.iter().map(|wanted| usize::from(wanted.role.0)).collect();
    let code = question.code;
    let plan = if is_dense(code) || wanted.iter().any(|wanted| ranked.has(wanted.role)) {
        dense_plan(code, &ranked, &roles)
    } else if scheme == Scheme::Star {
        star_plan(code, &ranked, &roles)
    } else {
        sparse_plan(code, &ranked, &roles)
    };
    let plan = plan.map_err(|error| unsolvable(error, &roles, ranked.sources.len()))?;
    Ok(Recipe { hops: hops(&plan, &ranked), wanted: wanted.to_vec() })
}

/// The best of those that have a chunk that can be read.
pub(super) fn best_source(question: &Question<'_>, wanted: Wanted) -> Option<Source> {
    rank(question, &[wanted]).sources.into_iter().find(|source| source.role == wanted.role)
}

/// Every parity is made of every data role: any `k` chunks are as good as any others.
fn is_dense(code: &Code) -> bool {
    (0..code.m()).all(|parity| !code.row(parity).contains(&0))
}

impl Ranked {
    fn has(&self, role: RoleIndex) -> bool {
        self.sources.iter().any(|source| source.role == role)
    }

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

/// The best node of each role: those that are not avoided first, then those whose chunk is their only one, then the fast, then the near.
fn rank(question: &Question<'_>, wanted: &[Wanted]) -> Ranked {
    let links = question.links;
    let target = wanted.first().map_or(Place::Asker, |wanted| wanted.to);
    let zone = links.end(target).zone;
    let mut keyed: Vec<(bool, i32, bool, Source)> = question
        .sources
        .iter()
        .map(|source| {
            let end = links.end(Place::Node(source.node));
            (question.avoided.contains(&source.node), end.slowness(), end.zone != zone, *source)
        })
        .collect();
    keyed.sort_unstable();
    let median = median(keyed.iter().map(|key| key.1));
    let (mut roles, mut nodes) = (Vec::new(), Vec::new());
    let (mut first, mut second) = (Vec::with_capacity(keyed.len()), Vec::new());
    for (is_avoided, slowness, _, source) in keyed {
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
