//! What planning and combining cost this processor.

use std::hint::black_box;
use std::time::Instant;

use codec::Code;
use graph::{Aim, Execution, LinkEnd, Links, Place, Question, Scheme, Source, Wanted, plan};
use types::{NodeId, RoleIndex};

use super::document::{Combining, Planning};
use super::scene::{Scene, links};

const ROUNDS: usize = 15;
const PLANS: u32 = 50;
const NODES: u16 = 100;

/// One lost chunk, whose helpers are among a hundred nodes with values of their own.
pub(super) fn planning() -> Result<Vec<Planning>, String> {
    let mut all = Vec::new();
    for name in ["rs(12+4)", "rs(16+4)", "lrc(12,2,2)"] {
        let code = crate::code(name)?;
        for scheme in super::ALL {
            let us = plan_us(&code, scheme)?;
            println!("planning {name} by {scheme}: {us:.1} us");
            all.push(Planning { code: name.to_owned(), scheme: scheme.to_string(), us });
        }
    }
    Ok(all)
}

/// The median of rounds.
fn plan_us(code: &Code, scheme: Scheme) -> Result<f64, String> {
    let mut links = Links::uniform(LinkEnd::symmetric(10.0, 25.0));
    for node in 0..NODES {
        links.nodes.insert(node, LinkEnd::symmetric(10.0 + f64::from(node % 7) / 100.0, 25.0));
    }
    let source =
        |index: usize| Source { role: RoleIndex(index as u8), node: NodeId(index as u16 * 5 % NODES) };
    let sources: Vec<Source> = (0..code.n()).filter(|index| *index != 1).map(source).collect();
    let wanted = [Wanted { role: RoleIndex(1), to: Place::Asker }];
    let question = Question {
        code,
        sources: &sources,
        wanted: &wanted,
        len: 1 << 20,
        links: &links,
        avoided: &[],
        aim: Aim::READER,
        execution: Execution::Coherent,
    };
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..PLANS {
            black_box(plan(black_box(&question), scheme).map_err(|error| error.to_string())?);
        }
        rounds.push(began.elapsed().as_secs_f64() * 1e6 / f64::from(PLANS));
    }
    Ok(median(rounds))
}

/// Executors in turn: a graph that repairs, and a star of identities that moves as many bytes. The network's queue is in both.
pub(super) fn combining() -> Result<Vec<Combining>, String> {
    let mut all = Vec::new();
    for (name, scheme) in ["rs(6+3)", "rs(10+4)"]
        .iter()
        .flat_map(|name| [Scheme::Star, Scheme::Chain, Scheme::Ppr].map(|scheme| (*name, scheme)))
    {
        let code = crate::code(name)?;
        let (len, slice_len) = (1u32 << 20, 64u32 << 10);
        let identities: Vec<Wanted> =
            (0..code.k()).map(|index| Wanted { role: RoleIndex(index as u8), to: Place::Asker }).collect();
        let lost = [Wanted { role: RoleIndex(1), to: Place::Asker }];
        let (mut repairs, mut moves) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            repairs.push(run_ns(&code, scheme, &lost, &[1], len, slice_len)?);
            moves.push(run_ns(&code, Scheme::Star, &identities, &[], len, slice_len)?);
        }
        let per_byte = |rounds| median(rounds) / f64::from(len);
        let (ns_per_byte, identities_ns_per_byte) = (per_byte(repairs), per_byte(moves));
        println!("{name} {scheme}: {:.2} of a star of identities", ns_per_byte / identities_ns_per_byte);
        let (code, scheme) = ((*name).to_owned(), scheme.to_string());
        all.push(Combining { code, scheme, slice_len, ns_per_byte, identities_ns_per_byte });
    }
    Ok(all)
}

fn run_ns(
    code: &Code,
    scheme: Scheme,
    wanted: &[Wanted],
    lost: &[usize],
    len: u32,
    slice_len: u32,
) -> Result<f64, String> {
    let scene = Scene::new(code, len, links(10.0))?;
    Ok(scene.gather(scheme, wanted, lost, Execution::Coherent, Some(slice_len))?.wall_ns)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
