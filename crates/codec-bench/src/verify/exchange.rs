//! Chunks that one library made are read by the other.

use codec::{Code, Family};
use codec_peers::isal::IsaL;
use codec_peers::jerasure::Jerasure;
use codec_peers::{Buffers, PeerError};

use super::{Checked, SHAPES, Verdict, Word, losses};
use crate::{BenchError, Peer};

/// Jerasure takes whole words only.
const LENGTHS: [usize; 4] = [8, 64, 1000, 4104];

/// A library, prepared for one code.
type Library = Box<dyn codec_peers::Peer>;

/// What prepares one.
type Make = fn(Family, usize, usize) -> Result<Library, PeerError>;

/// Exchanges chunks of all families of `peer`.
pub fn all(peer: Peer, verdict: &mut Verdict) -> Result<(), BenchError> {
    let (families, make): (_, Make) = match peer {
        Peer::IsaL => {
            ([Family::IsalCauchy, Family::IsalVandermonde], |f, k, m| Ok(Box::new(IsaL::new(f, k, m)?)))
        }
        _ => ([Family::JerasureReedSolVan, Family::JerasureCauchy], |f, k, m| {
            Ok(Box::new(Jerasure::new(f, k, m)?))
        }),
    };
    for family in families {
        let mut checked =
            Checked { family: family.to_string(), peer: Some(peer.name()), codes: 0, comparisons: 0 };
        for (k, m) in SHAPES {
            let Ok(code) = Code::of_family(family, k, m) else { continue };
            let library = make(family, k, m)
                .map_err(|error| BenchError::Unable { peer: peer.name(), reason: error.to_string() })?;
            checked.codes += 1;
            checked.comparisons += exchange(&code, &*library, family, verdict);
        }
        verdict.checked.push(checked);
    }
    Ok(())
}

/// Both make the same parities; either repairs what is lost of the other's. How many results were compared.
fn exchange(code: &Code, library: &dyn codec_peers::Peer, family: Family, verdict: &mut Verdict) -> usize {
    let mut comparisons = 0;
    for len in LENGTHS {
        let word = Word::of(code, len);
        let mut check = |what: &str, right: Result<bool, PeerError>| {
            comparisons += 1;
            if right != Ok(true) {
                let (name, k, m) = (library.name(), code.k(), code.m());
                verdict.fail(|| format!("{name} and gestalt disagree: {what} of {family}({k}+{m}), {len} B"));
            }
        };
        // Equal bytes: so what we decode in `Word::decodes` are its chunks as much as ours.
        check("encode", encodes_alike(&word, library));
        check("decode here", word.decodes(code, 0).map_err(|_| PeerError::Undecodable));
        for lost in losses(code) {
            check("decode there", repairs(&word, library, &lost));
        }
    }
    comparisons
}

fn encodes_alike(word: &Word, library: &dyn codec_peers::Peer) -> Result<bool, PeerError> {
    let mut buffers = Buffers::new(word.chunks.len(), word.len);
    let mut chunks = filled(&mut buffers, &word.chunks[..word.k]);
    let parity = chunks.split_off(word.k);
    let mut parity: Vec<&mut [u8]> = parity.into_iter().take(word.chunks.len() - word.k).collect();
    let data: Vec<&[u8]> = chunks.iter().map(|chunk| &**chunk).collect();
    library.encode(&data, &mut parity)?;
    Ok(parity.iter().zip(&word.chunks[word.k..]).all(|(found, expected)| **found == **expected))
}

fn repairs(word: &Word, library: &dyn codec_peers::Peer, lost: &[usize]) -> Result<bool, PeerError> {
    let mut buffers = Buffers::new(word.chunks.len(), word.len);
    let mut chunks = filled(&mut buffers, &word.chunks);
    chunks.truncate(word.chunks.len());
    lost.iter().for_each(|role| chunks[*role].fill(0));
    library.decode(lost, &mut chunks)?;
    Ok(chunks.iter().zip(&word.chunks).all(|(found, expected)| **found == **expected))
}

/// The chunks of `buffers`, of which the first hold `bytes`.
fn filled<'a>(buffers: &'a mut Buffers, bytes: &[Vec<u8>]) -> Vec<&'a mut [u8]> {
    let mut chunks = buffers.chunks();
    chunks.iter_mut().zip(bytes).for_each(|(chunk, bytes)| chunk.copy_from_slice(bytes));
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_exchanged_with_isal_and_jerasure() {
        let verdict = crate::verify(&[Peer::IsaL, Peer::Jerasure]).unwrap();
        assert!(verdict.agrees(), "{:?}", verdict.described);
        assert_eq!(verdict.checked.iter().filter(|checked| checked.peer.is_some()).count(), 4);
    }

    #[test]
    fn a_library_with_another_matrix_is_noticed() {
        let code = Code::of_family(Family::CauchyXor, 4, 2).unwrap();
        let library = IsaL::new(Family::IsalCauchy, 4, 2).unwrap();
        let mut verdict = Verdict { kernels: vec![], checked: vec![], failures: 0, described: vec![] };
        exchange(&code, &library, Family::CauchyXor, &mut verdict);
        assert!(verdict.described[0].contains("disagree: encode"), "{:?}", verdict.described);
    }
}
