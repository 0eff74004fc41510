//! That all kernels give the same bytes, and that chunks can be exchanged with other libraries.

#[cfg(feature = "peers")]
mod exchange;

use codec::{Code, Family, Kernel, Scheme};
use serde::Serialize;

use crate::memory::noise;
use crate::{BenchError, Peer};

/// `(k, m)` of the Reed-Solomon codes that are compared; a family that has no such code skips it.
const SHAPES: [(usize, usize); 10] =
    [(1, 1), (2, 2), (3, 2), (6, 3), (10, 4), (12, 4), (5, 7), (16, 8), (20, 13), (33, 16)];
/// Codes of other kinds.
const OTHERS: [Scheme; 5] = [
    Scheme::Lrc { k: 4, l: 2, r: 2 },
    Scheme::Lrc { k: 12, l: 2, r: 2 },
    Scheme::Lrc { k: 9, l: 2, r: 3 },
    Scheme::Mirror { k: 3 },
    Scheme::Xor { k: 5 },
];
/// Lengths around those of vectors, and odd ones.
const LENGTHS: [usize; 9] = [1, 7, 31, 64, 65, 127, 255, 1000, 4099];
/// How far chunks begin from a cache line: sources and outputs differently.
const OFFSETS: [usize; 3] = [0, 1, 37];
/// Mismatches that are described; the rest is counted.
const DESCRIBED: usize = 10;

/// What was compared.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Kernels, each against `scalar`.
    pub kernels: Vec<&'static str>,
    /// By family or kind of code.
    pub checked: Vec<Checked>,
    /// How many comparisons failed.
    pub failures: usize,
    /// The first of them.
    pub described: Vec<String>,
}

/// What was compared of one family, or with one peer.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The family; of other codes their kind.
    pub family: String,
    /// The other library, if chunks were exchanged.
    pub peer: Option<&'static str>,
    /// How many codes.
    pub codes: usize,
    /// How many results were compared.
    pub comparisons: usize,
}

impl Verdict {
    /// Whether all agree.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.failures == 0
    }

    fn fail(&mut self, what: impl FnOnce() -> String) {
        self.failures += 1;
        if self.described.len() < DESCRIBED {
            self.described.push(what());
        }
    }
}

/// Compares all kernels of this machine, then exchanges chunks with `peers`.
///
/// # Errors
/// `NotBuilt`, or `Unable` for a peer that has none of our matrices.
pub fn verify(peers: &[Peer]) -> Result<Verdict, BenchError> {
    verify_kernels(codec::kernels(), peers)
}

fn verify_kernels(kernels: &[Kernel], peers: &[Peer]) -> Result<Verdict, BenchError> {
    for peer in peers {
        check_can_exchange(*peer)?;
    }
    let names = kernels.iter().map(|kernel| kernel.name()).collect();
    let mut verdict = Verdict { kernels: names, checked: Vec::new(), failures: 0, described: Vec::new() };
    for family in Family::ALL {
        let schemes = SHAPES.map(|(k, m)| Scheme::Rs { family, k, m });
        compare_all(family.name(), &schemes, kernels, &mut verdict);
    }
    compare_all("others", &OTHERS, kernels, &mut verdict);
    #[cfg(feature = "peers")]
    for peer in peers {
        exchange::all(*peer, &mut verdict)?;
    }
    Ok(verdict)
}

fn check_can_exchange(peer: Peer) -> Result<(), BenchError> {
    match peer {
        Peer::IsaL | Peer::Jerasure => peer.check_built(),
        other => Err(BenchError::Unable {
            peer: other.name(),
            reason: "none of our matrices is its own, so chunks cannot be exchanged: try isal or jerasure"
                .into(),
        }),
    }
}

fn compare_all(family: &str, schemes: &[Scheme], kernels: &[Kernel], verdict: &mut Verdict) {
    let codes: Vec<(Scheme, Code)> =
        schemes.iter().filter_map(|scheme| Some((*scheme, Code::of(*scheme).ok()?))).collect();
    let mut comparisons = 0;
    for (scheme, code) in &codes {
        for kernel in kernels {
            comparisons += compare(*scheme, code, *kernel, verdict);
        }
    }
    let family = family.to_owned();
    verdict.checked.push(Checked { family, peer: None, codes: codes.len(), comparisons });
}

/// All operations of one code on one kernel: how many results were compared.
fn compare(scheme: Scheme, code: &Code, kernel: Kernel, verdict: &mut Verdict) -> usize {
    let scalar = codec::kernels()[codec::kernels().len() - 1];
    // A code that is run by a transform has its matrix too; both have to give what the scalar matrix gives.
    let ours = code.clone().with_kernel(kernel);
    let reference = code.clone().with_kernel(scalar).without_transform();
    let matrix = ours.clone().without_transform();
    let mut comparisons = 0;
    for len in LENGTHS {
        let word = Word::of(&reference, len);
        for offset in OFFSETS {
            let mut check = |what: &str, right: Result<bool, codec::CodeError>| {
                comparisons += 1;
                if right != Ok(true) {
                    verdict.fail(|| {
                        format!(
                            "{} differs from scalar: {what} of {scheme}, {len} B, offset {offset}",
                            kernel.name()
                        )
                    });
                }
            };
            check("encode", word.encodes_alike(&ours, offset));
            check("encode by the matrix", word.encodes_alike(&matrix, offset));
            check("delta", word.updates_alike(&ours, offset));
            check("decode", word.decodes(&ours, offset));
        }
    }
    comparisons
}

/// A code word that the scalar kernel made, chunk after chunk.
pub struct Word {
    k: usize,
    len: usize,
    chunks: Vec<Vec<u8>>,
}

impl Word {
    /// Noise and its parities.
    pub fn of(code: &Code, len: usize) -> Self {
        let mut state = 0xfeed_beef ^ len as u64;
        let mut chunks = vec![vec![0; len]; code.n()];
        chunks[..code.k()].iter_mut().for_each(|chunk| noise(chunk, &mut state));
        let (data, parity) = chunks.split_at_mut(code.k());
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(&data, &mut parity).expect("as many chunks as roles, of one length above 0");
        Self { k: code.k(), len, chunks }
    }

    fn encodes_alike(&self, code: &Code, offset: usize) -> Result<bool, codec::CodeError> {
        let data = shifted(&self.chunks[..self.k], offset);
        // Not zeros: bytes that are never written have to show.
        let mut out = vec![vec![0x5a; self.len + offset]; code.m()];
        code.encode(&tails(&data, offset), &mut tails_mut(&mut out, offset))?;
        Ok(tails(&out, offset).into_iter().eq(self.chunks[self.k..].iter().map(Vec::as_slice)))
    }

    /// Each data role in turn changes to zeros: what is left is the code word without it.
    fn updates_alike(&self, code: &Code, offset: usize) -> Result<bool, codec::CodeError> {
        let mut parity = shifted(&self.chunks[self.k..], offset);
        let deltas = shifted(&self.chunks[..self.k], offset / 2);
        for (role, delta) in deltas.iter().enumerate() {
            code.update(role, &delta[offset / 2..], &mut tails_mut(&mut parity, offset))?;
        }
        Ok(tails(&parity, offset).into_iter().flatten().all(|byte| *byte == 0))
    }

    /// Losses that the code bears: the first data roles, and the last data role with the first parity.
    fn decodes(&self, code: &Code, offset: usize) -> Result<bool, codec::CodeError> {
        for lost in losses(code) {
            let plan = code.cheapest_plan(&lost, &lost)?;
            let sources: Vec<Vec<u8>> =
                plan.sources().iter().map(|role| self.chunks[*role].clone()).collect();
            let sources = shifted(&sources, offset);
            let mut out = vec![vec![0x5a; self.len + offset]; lost.len()];
            plan.run(&tails(&sources, offset), &mut tails_mut(&mut out, offset))?;
            if !tails(&out, offset).into_iter().zip(&lost).all(|(found, role)| *found == *self.chunks[*role])
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Decodable losses of one to as many roles as there are parities.
fn losses(code: &Code) -> Vec<Vec<usize>> {
    let all = (1..=code.m()).map(|count| (0..count.min(code.k())).collect());
    let mixed = (code.m() > 1).then(|| vec![code.k() - 1, code.k()]);
    all.chain(mixed).filter(|lost: &Vec<usize>| code.decodable(lost) == Ok(true)).collect()
}

/// Copies that begin `offset` bytes late.
fn shifted(chunks: &[Vec<u8>], offset: usize) -> Vec<Vec<u8>> {
    chunks.iter().map(|chunk| [&vec![0; offset], chunk.as_slice()].concat()).collect()
}

fn tails(chunks: &[Vec<u8>], offset: usize) -> Vec<&[u8]> {
    chunks.iter().map(|chunk| &chunk[offset..]).collect()
}

fn tails_mut(chunks: &mut [Vec<u8>], offset: usize) -> Vec<&mut [u8]> {
    chunks.iter_mut().map(|chunk| &mut chunk[offset..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_of_this_machine_agree() {
        let verdict = verify(&[]).unwrap();
        assert!(verdict.agrees(), "{:?}", verdict.described);
        assert_eq!(verdict.checked.len(), Family::ALL.len() + 1);
        assert!(verdict.checked.iter().all(|checked| checked.codes >= 5 && checked.comparisons > 500));
    }

    #[test]
    fn other_bytes_are_noticed_by_every_operation() {
        let right = Code::rs(4, 2).unwrap();
        let other = Code::of_family(Family::IsalCauchy, 4, 2).unwrap();
        let word = Word::of(&right, 65);
        for offset in OFFSETS {
            assert_eq!(word.encodes_alike(&other, offset), Ok(false));
            assert_eq!(word.updates_alike(&other, offset), Ok(false));
            assert_eq!(word.decodes(&other, offset), Ok(false));
        }
    }

    #[test]
    fn failures_are_counted_and_the_first_ones_described() {
        let mut verdict = Verdict { kernels: vec![], checked: vec![], failures: 0, described: vec![] };
        assert!(verdict.agrees());
        (0..12).for_each(|i| verdict.fail(|| i.to_string()));
        assert_eq!((verdict.failures, verdict.described.len(), verdict.agrees()), (12, DESCRIBED, false));
    }

    #[test]
    fn a_peer_without_a_common_matrix_is_refused() {
        assert!(verify(&[Peer::Klauspost]).unwrap_err().to_string().contains("cannot be exchanged"));
    }
}
