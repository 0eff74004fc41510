//! Which points each figure has.

use codec::Scheme;

use super::Sweep;
use crate::{Extent, Job, Op};

/// How many points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    /// The first and the last, and short.
    Quick,
    /// All.
    Full,
}

/// A figure before it is measured.
pub struct Outline {
    pub name: String,
    pub title: String,
    pub x_label: &'static str,
    pub jobs: Vec<(f64, Job)>,
}

/// Gest's buffers, and the largest of its blocks.
const MIB: usize = 1 << 20;
/// Gest's numbers of parities.
const PARITIES: [usize; 7] = [2, 4, 8, 16, 32, 64, 128];
/// Storage efficiency in percent, with data chunks for each parity as a fraction.
const EFFICIENCIES: [(usize, usize, usize); 2] = [(33, 1, 2), (75, 3, 1)];
/// Gest's split of a file, of those it writes about.
const GEST_BLOCKS: (usize, usize) = (6, 2);
const UAB_DATA: usize = 10;
const UAB_PARITIES: [usize; 3] = [2, 3, 4];
const INEC_CODES: [(usize, usize); 3] = [(3, 2), (6, 3), (12, 4)];
const CARD_CODES: [(usize, usize); 6] = [(3, 2), (6, 3), (10, 4), (12, 4), (20, 4), (10, 16)];
const CARD_SIZES: [usize; 4] = [4 << 10, 64 << 10, MIB, 16 * MIB];

/// The figures of `sweep`.
pub fn of(sweep: Sweep, density: Density) -> Vec<Outline> {
    let mut outlines = match sweep {
        Sweep::Gest => gest(),
        Sweep::Uab => uab(),
        Sweep::Inec => inec(),
        Sweep::Card => card(),
    };
    if density == Density::Quick {
        for outline in &mut outlines {
            let last = outline.jobs.split_off(1).pop();
            outline.jobs.extend(last);
            // Smaller chunks too: a quick run is to see that it runs.
            outline.jobs.iter_mut().for_each(|(_, job)| job.len = job.len.min(1 << 16));
        }
    }
    outlines
}

/// A job of Reed-Solomon `k+m`; a decode of as many losses as there can be.
fn job(op: Op, k: usize, m: usize, extent: Extent) -> Job {
    let job = Job::new(Scheme::rs(k, m), op, extent, k);
    Job { losses: m.min(k), ..job }
}

fn gest() -> Vec<Outline> {
    let mut outlines = Vec::new();
    for op in [Op::Encode, Op::Decode] {
        for (percent, data, parities) in EFFICIENCIES {
            let shape = |m: usize| (m * data / parities, m);
            let shapes = PARITIES.into_iter().map(shape).filter(|(k, m)| k + m <= codec::MAX_ROLES);
            outlines.push(Outline {
                name: format!("{}-{percent}", op.name()),
                title: format!("{}, chunks of 1 MiB, storage efficiency {percent} %", op.name()),
                x_label: "parity chunks (m)",
                jobs: shapes.map(|(k, m)| (m as f64, job(op, k, m, Extent::Chunk(MIB)))).collect(),
            });
        }
        let (k, m) = GEST_BLOCKS;
        let sizes = (16..=24).map(|power| 1_usize << power);
        outlines.push(Outline {
            name: format!("{}-blocks", op.name()),
            title: format!("{}, ({k},{m}), by block size", op.name()),
            x_label: "bytes of a block, cut into k chunks",
            jobs: sizes.map(|size| (size as f64, job(op, k, m, Extent::Object(size)))).collect(),
        });
    }
    outlines
}

fn uab() -> Vec<Outline> {
    let object = Extent::Object(MIB);
    let encodes = UAB_PARITIES.map(|m| (m as f64, job(Op::Encode, UAB_DATA, m, object)));
    let encode = Outline {
        name: "encode".into(),
        title: format!("encode, k = {UAB_DATA}, objects of 1 MiB"),
        x_label: "parity chunks (m)",
        jobs: encodes.into(),
    };
    let decode = |m: usize| Outline {
        name: format!("decode-{UAB_DATA}-{m}"),
        title: format!("decode, {UAB_DATA}+{m}, objects of 1 MiB"),
        x_label: "erasures",
        jobs: (1..=m)
            .map(|losses| (losses as f64, Job { losses, ..job(Op::Decode, UAB_DATA, m, object) }))
            .collect(),
    };
    [encode].into_iter().chain(UAB_PARITIES.map(decode)).collect()
}

fn inec() -> Vec<Outline> {
    let mut outlines = Vec::new();
    for (k, m) in INEC_CODES {
        for op in [Op::Encode, Op::Decode] {
            let sizes = (7..=24).map(|power| 1_usize << power);
            let (losses, of) = if op == Op::Decode { (1, " of one chunk") } else { (m, "") };
            let at = |size: usize| Job { losses, ..job(op, k, m, Extent::Chunk(size)) };
            outlines.push(Outline {
                name: format!("{}-{k}-{m}", op.name()),
                title: format!("{}{of}, ({k},{m})", op.name()),
                x_label: "bytes of a chunk",
                jobs: sizes.map(|size| (size as f64, at(size))).collect(),
            });
        }
    }
    outlines
}

fn card() -> Vec<Outline> {
    let by_size = |op: Op, k: usize, m: usize| Outline {
        name: format!("{}-{k}-{m}", op.name()),
        title: format!("{}, ({k},{m}), many stripes at a time", op.name()),
        x_label: "bytes of a chunk",
        jobs: CARD_SIZES
            .into_iter()
            .map(|size| (size as f64, Job { cold: true, ..job(op, k, m, Extent::Chunk(size)) }))
            .collect(),
    };
    let mut outlines: Vec<Outline> = CARD_CODES.into_iter().map(|(k, m)| by_size(Op::Encode, k, m)).collect();
    outlines.extend([by_size(Op::Decode, 10, 4), by_size(Op::Delta, 10, 4)]);
    let by_parities = gest()
        .into_iter()
        .filter(|outline| outline.name.starts_with(Op::Encode.name()) && !outline.name.ends_with("blocks"));
    outlines.extend(by_parities.map(|mut outline| {
        outline.jobs.iter_mut().for_each(|(_, job)| job.cold = true);
        outline
    }));
    outlines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_can_be_measured() {
        for sweep in Sweep::ALL {
            for density in [Density::Quick, Density::Full] {
                for outline in of(sweep, density) {
                    assert!(outline.jobs.len() >= 2, "{}", outline.name);
                    assert!(outline.jobs.is_sorted_by(|a, b| a.0 < b.0), "{}", outline.name);
                    assert!(outline.jobs.iter().all(|(_, job)| job.code().is_ok()), "{}", outline.name);
                }
            }
        }
    }

    #[test]
    fn the_figures_have_the_points_of_the_papers() {
        let find = |sweep, name: &str| of(sweep, Density::Full).into_iter().find(|o| o.name == name).unwrap();
        let schemes =
            |outline: Outline| outline.jobs.iter().map(|(_, job)| job.scheme.to_string()).collect::<Vec<_>>();
        assert_eq!(schemes(find(Sweep::Gest, "encode-33")).last().unwrap(), "rs(64+128)");
        assert_eq!(schemes(find(Sweep::Gest, "encode-75")).last().unwrap(), "rs(192+64)");
        assert_eq!(find(Sweep::Uab, "decode-10-4").jobs.len(), 4);
        let inec = find(Sweep::Inec, "encode-12-4");
        assert_eq!((inec.jobs[0].1.len, inec.jobs.last().unwrap().1.len), (128, 16 << 20));
    }
}
