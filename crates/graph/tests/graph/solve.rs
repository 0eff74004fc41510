//! Every planner gives the codec's bytes for every pattern of losses that the code solves.
//!
//! Graphs are run on a basis: byte `j` of data chunk `i` is 1 if `i = j`, else 0. All that steps do is linear, so what is right for
//! these bytes is right for all. Real executors run sampled graphs on random bytes in `bytes.rs`.
//! All patterns are run for Reed-Solomon codes up to `FULL` roles and for small local codes, one in eight for (10,4), and fewer of the
//! others up to 14 roles; with `GRAPH_EXHAUSTIVE=1` in the environment all of them.

use codec::{Code, Family};
use graph::{Input, Links, Output, Place, Scheme, Shape, Span, Wanted, plan};
use rng::Rng;
use types::RoleIndex;

use crate::support::{at, question, role, roles_of, sources, to_asker};

/// Codes up to so many roles are tried with all patterns.
const FULL: usize = 9;
const STRIDE: u32 = 23;
/// So long that `tri` cuts chunks into five parts.
const LEN: u32 = 20_000;

/// What each role's chunk is made of: its row of the generator.
fn row(code: &Code, index: usize) -> Vec<u8> {
    let k = code.k();
    if index < k {
        (0..k).map(|data| u8::from(data == index)).collect()
    } else {
        code.row(index - k).to_vec()
    }
}

/// What is written, by place, role and range.
pub fn written(
    shape: &Shape,
    chunk: impl Fn(Place, RoleIndex) -> Vec<u8>,
) -> Vec<(Place, RoleIndex, Span, Vec<u8>)> {
    let mut flows: Vec<Option<Vec<u8>>> = vec![None; shape.edges.len()];
    let mut written = Vec::new();
    for step in &shape.steps {
        let inputs: Vec<Vec<u8>> = step
            .inputs
            .iter()
            .map(|input| match input {
                Input::Chunk(role) => chunk(step.at, *role),
                Input::Stream(edge) => flows[*edge as usize].take().expect("upstream comes first"),
            })
            .collect();
        for (number, output) in step.outputs.iter().enumerate() {
            let mut sum = vec![0; inputs[0].len()];
            let factors = step.row(number);
            let borrowed: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            codec::combine_add(&mut sum, factors, &borrowed).unwrap();
            match output {
                Output::Stream(edge) => flows[*edge as usize] = Some(sum),
                Output::Chunk(role) => written.push((step.at, *role, step.span, sum)),
            }
        }
    }
    written
}

/// Everything that is wanted is written, once, whole, and is what the code says.
#[track_caller]
pub fn assert_solves(code: &Code, wanted: &[Wanted], shape: &Shape, len: u32, about: &str) {
    let chunk = |place: Place, role: RoleIndex| {
        assert_eq!(place, at(usize::from(role.0)), "{about}: it reads what is elsewhere");
        row(code, usize::from(role.0))
    };
    let mut written = written(shape, chunk);
    written.sort_by_key(|(place, role, span, _)| (*place, *role, *span));
    for wanted in wanted {
        let mut next = 0;
        for (_, _, span, bytes) in written.iter().filter(|one| (one.0, one.1) == (wanted.to, wanted.role)) {
            assert_eq!(span.start, next, "{about}: {wanted:?}");
            assert!(*bytes == row(code, usize::from(wanted.role.0)), "{about}: {wanted:?}");
            next = span.end();
        }
        assert_eq!(next, len, "{about}: {wanted:?} is whole");
    }
}

/// All schemes, for all that is lost at the asker, for one of it, and for all of it at new nodes.
fn try_pattern(code: &Code, name: &str, lost: &[usize], links: &Links) {
    let sources = sources(code, lost);
    let new_nodes: Vec<Wanted> =
        lost.iter().map(|index| Wanted { role: role(*index), to: at(300 + index) }).collect();
    let sets = [to_asker(lost), to_asker(&lost[lost.len() - 1..]), new_nodes];
    let turn = lost.iter().sum::<usize>() % 3;
    for scheme in Scheme::DECODING {
        // Each pattern and scheme has one set; a single loss has all.
        let chosen = if lost.len() == 1 { &sets[..] } else { &sets[turn..=turn] };
        for wanted in chosen {
            let about = format!("{name} without {lost:?} by {scheme}");
            let shape = plan(&question(code, &sources, wanted, LEN, links), *scheme).expect(&about);
            assert_solves(code, wanted, &shape, LEN, &about);
        }
    }
}

/// How many patterns were tried.
fn try_code(code: &Code, name: &str, stride: u32) -> usize {
    let links = Links::default();
    let sets = (1u32..1 << code.n())
        .filter(|set| stride == 1 || set.wrapping_mul(0x9e37_79b9) >> 16 < 65_536 / stride);
    let lost = sets.map(roles_of).filter(|lost| lost.len() <= code.m());
    let solvable = lost.filter(|lost| code.decodable(lost).unwrap());
    solvable.inspect(|lost| try_pattern(code, name, lost, &links)).count()
}

fn is_exhaustive() -> bool {
    std::env::var_os("GRAPH_EXHAUSTIVE").is_some()
}

#[test]
fn every_planner_solves_every_pattern_of_small_codes_and_some_of_all_up_to_fourteen_roles() {
    let mut patterns = 0;
    for n in 2..=14 {
        for k in 1..n {
            let code = Code::rs(k, n - k).unwrap();
            let stride = if n <= FULL || is_exhaustive() { 1 } else { STRIDE << (n - FULL) };
            patterns += try_code(&code, &format!("rs({k}+{})", n - k), stride);
        }
    }
    assert!(patterns > 2_000, "{patterns}");
}

#[test]
fn every_planner_solves_every_pattern_of_codes_that_clusters_use() {
    let few = if is_exhaustive() { 1 } else { 8 };
    for (k, m, stride) in [(3, 2, 1), (6, 3, 1), (10, 4, few)] {
        try_code(&Code::rs(k, m).unwrap(), &format!("rs({k}+{m})"), stride);
    }
}

/// A role that moves from one node to another: its chunk is there as it is, whatever else it could be made of.
#[test]
fn what_can_be_read_elsewhere_is_copied_from_there() {
    for code in [Code::rs(4, 2).unwrap(), Code::lrc(4, 2, 1).unwrap(), Code::lrc(6, 2, 2).unwrap()] {
        let (sources, links) = (sources(&code, &[]), Links::default());
        for (index, scheme) in (0..code.n()).flat_map(|index| Scheme::ALL.map(|scheme| (index, scheme))) {
            let wanted = [Wanted { role: role(index), to: at(40) }];
            let shape = plan(&question(&code, &sources, &wanted, LEN, &links), scheme).unwrap();
            let about = format!("{index} by {scheme}");
            assert_solves(&code, &wanted, &shape, LEN, &about);
            let moved = shape.bytes_per_link();
            assert_eq!(moved.into_iter().collect::<Vec<_>>(), [((at(index), at(40)), LEN.into())], "{about}");
        }
    }
}

#[test]
fn every_planner_solves_every_pattern_of_local_codes() {
    for (k, l, r, stride) in
        [(4, 2, 2, 1), (6, 2, 2, 4), (6, 3, 1, 4), (5, 2, 3, 4), (3, 3, 1, 1), (10, 2, 2, 300)]
    {
        let stride = if is_exhaustive() { 1 } else { stride };
        try_code(&Code::lrc(k, l, r).unwrap(), &format!("lrc({k},{l},{r})"), stride);
    }
    for (name, code) in
        [("rep(4)", Code::rep(4)), ("xor(5)", Code::xor(5)), ("mirrors", Code::mirrors(3, &[0, 1, 2, 1]))]
    {
        try_code(&code.unwrap(), name, 1);
    }
}

#[test]
fn every_planner_solves_sampled_patterns_of_every_family() {
    let mut rng = Rng::new(5, 5);
    for family in Family::ALL {
        for (k, m) in [(2, 2), (4, 4), (8, 4), (10, 4)] {
            let code = Code::of_family(family, k, m).unwrap();
            for _ in 0..if is_exhaustive() { 400 } else { 12 } {
                try_pattern(
                    &code,
                    &format!("{family}({k}+{m})"),
                    &sample(&mut rng, k + m, m),
                    &Links::default(),
                );
            }
        }
    }
}

#[test]
fn every_planner_solves_sampled_patterns_of_wide_codes() {
    let mut rng = Rng::new(6, 6);
    for (k, m) in [(20, 12), (32, 32), (60, 20), (100, 155), (200, 55), (251, 4)] {
        let code = Code::rs(k, m).unwrap();
        for most in [1, 3] {
            let lost = sample(&mut rng, k + m, most);
            try_pattern(&code, &format!("rs({k}+{m})"), &lost, &Links::default());
        }
    }
    let code = Code::lrc(200, 20, 4).unwrap();
    try_pattern(&code, "lrc(200,20,4)", &[3], &Links::default());
}

/// Up to `most` different roles.
fn sample(rng: &mut Rng, n: usize, most: usize) -> Vec<usize> {
    let count = 1 + rng.index(most);
    let mut lost = Vec::new();
    while lost.len() < count {
        let one = rng.index(n);
        if !lost.contains(&one) {
            lost.push(one);
        }
    }
    lost.sort_unstable();
    lost
}
