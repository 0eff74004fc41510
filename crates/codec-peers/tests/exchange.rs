//! Chunks are exchanged with the real libraries: their matrices are ours of the same name, what one encodes is what the
//! other encodes, and what one encodes and loses the other decodes.
#![cfg(any(feature = "isal", feature = "jerasure"))]

use codec::{Code, Family};
use codec_peers::{Buffers, Peer, PeerError};

/// All loss patterns of these are tried.
const SMALL: [(usize, usize); 7] = [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3), (6, 3), (5, 4)];
/// Of these, as many losses as there are parities, in a few places.
const WIDE: [(usize, usize); 5] = [(10, 4), (12, 4), (32, 3), (20, 4), (100, 3)];
/// Whole words, as Jerasure wants; around vectors and beyond.
const LENGTHS: [usize; 4] = [8, 64, 200, 4104];

fn noise(salt: usize, bytes: &mut [u8]) {
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = (i.wrapping_mul(151) ^ (i >> 3).wrapping_mul(29) ^ salt.wrapping_mul(97)) as u8;
    }
}

/// All chunks of a code word, of which `encode` makes the parities.
fn code_word((k, m, len): (usize, usize, usize), encode: impl FnOnce(&[&[u8]], &mut [&mut [u8]])) -> Buffers {
    let mut buffers = Buffers::new(k + m, len);
    let mut chunks = buffers.chunks();
    chunks.truncate(k + m);
    let (data, parity) = chunks.split_at_mut(k);
    data.iter_mut().enumerate().for_each(|(i, chunk)| noise(i, chunk));
    let data: Vec<&[u8]> = data.iter().map(|chunk| &**chunk).collect();
    encode(&data, parity);
    buffers
}

/// Chunks as owned bytes, for comparing.
fn bytes(buffers: &mut Buffers, count: usize) -> Vec<Vec<u8>> {
    buffers.chunks().into_iter().take(count).map(|chunk| chunk.to_vec()).collect()
}

/// Every set of 1 to `m` of `n` roles.
fn all_losses(n: usize, m: usize) -> Vec<Vec<usize>> {
    let sets = (1u32..1 << n).filter(|set| set.count_ones() as usize <= m);
    sets.map(|set| (0..n).filter(|role| set >> role & 1 == 1).collect()).collect()
}

/// The first, the last, and some of both kinds.
fn some_losses(k: usize, m: usize) -> Vec<Vec<usize>> {
    vec![
        (0..m).collect(),
        (k..k + m).collect(),
        (k - m / 2..k + m - m / 2).collect(),
        vec![k / 2],
        vec![k + m - 1],
    ]
}

/// Loses chunks, has `decode` make them anew, and compares.
fn loses_and_finds(
    word: &[Vec<u8>],
    lost: &[usize],
    decode: impl FnOnce(&[usize], &mut [&mut [u8]]),
    context: &str,
) {
    let mut buffers = Buffers::new(word.len(), word[0].len());
    let mut chunks = buffers.chunks();
    chunks.truncate(word.len());
    for (role, chunk) in chunks.iter_mut().enumerate() {
        if lost.contains(&role) { chunk.fill(0xee) } else { chunk.copy_from_slice(&word[role]) }
    }
    decode(lost, &mut chunks);
    assert!(
        chunks.iter().zip(word).all(|(found, expected)| **found == **expected),
        "{context} without {lost:?}"
    );
}

/// Ours, in the shape of theirs.
fn decode_with(code: &Code, lost: &[usize], chunks: &mut [&mut [u8]]) {
    let (mut present, mut wanted) = (Vec::new(), Vec::new());
    for (role, chunk) in chunks.iter_mut().enumerate() {
        if lost.contains(&role) { wanted.push((role, &mut **chunk)) } else { present.push((role, &**chunk)) }
    }
    code.reconstruct(&present, &mut wanted).expect("no more than m are lost");
}

fn exchange(peer: &dyn Peer, family: Family, (k, m): (usize, usize)) {
    let code = Code::of_family(family, k, m).expect("a shared code");
    let rows: Vec<u8> = (0..m).flat_map(|j| code.row(j)).copied().collect();
    assert_eq!(peer.rows(), rows, "{} {family}({k}+{m})", peer.name());
    let losses = if k + m <= 9 { all_losses(k + m, m) } else { some_losses(k, m) };
    for len in LENGTHS {
        let mut theirs =
            code_word((k, m, len), |data, parity| peer.encode(data, parity).expect("good chunks"));
        let mut ours = code_word((k, m, len), |data, parity| code.encode(data, parity).expect("good chunks"));
        let context = format!("{} {family}({k}+{m}), {len} bytes", peer.name());
        let (theirs, ours) = (bytes(&mut theirs, k + m), bytes(&mut ours, k + m));
        assert!(theirs == ours, "{context}");
        for lost in &losses {
            let decode =
                |lost: &[usize], chunks: &mut [&mut [u8]]| peer.decode(lost, chunks).expect("decodes");
            loses_and_finds(&ours, lost, decode, &context);
            loses_and_finds(&theirs, lost, |lost, chunks| decode_with(&code, lost, chunks), &context);
        }
    }
}

fn exchange_all<P: Peer>(family: Family, make: impl Fn(Family, usize, usize) -> Result<P, PeerError>) {
    for (k, m) in SMALL.into_iter().chain(WIDE) {
        exchange(&make(family, k, m).expect("the library has it"), family, (k, m));
    }
}

/// The matrices themselves, for every code that both have.
fn same_rows_everywhere<P: Peer>(
    family: Family,
    make: impl Fn(Family, usize, usize) -> Result<P, PeerError>,
) {
    for k in (1..=255).step_by(7).chain([2, 3, 4, 5, 6, 255]) {
        for m in (1..=256 - k).step_by(13).chain([2, 3, 4, 5]).filter(|m| k + m <= 256) {
            let Ok(code) = Code::of_family(family, k, m) else { continue };
            let rows: Vec<u8> = (0..m).flat_map(|j| code.row(j)).copied().collect();
            assert!(make(family, k, m).expect("the library has it").rows() == rows, "{family}({k}+{m})");
        }
    }
}

#[cfg(feature = "isal")]
mod isal {
    use super::*;
    use codec_peers::isal::IsaL;

    #[test]
    fn chunks_are_exchanged_with_isal() {
        exchange_all(Family::IsalCauchy, IsaL::new);
        exchange_all(Family::IsalVandermonde, IsaL::new);
    }

    #[test]
    fn every_matrix_of_isal_is_ours_of_that_name() {
        same_rows_everywhere(Family::IsalCauchy, IsaL::new);
        same_rows_everywhere(Family::IsalVandermonde, IsaL::new);
    }

    #[test]
    fn isal_too_fails_where_we_refuse_its_vandermonde_matrix() {
        // Parity rows 0, 2, 5 of data roles 0, 3, 4 are dependent: lose these and the other parities.
        let Err(PeerError::Undecodable) =
            IsaL::new(Family::IsalVandermonde, 5, 6).unwrap().decoder(&[0, 3, 4, 6, 8, 9]).map(drop)
        else {
            panic!("ISA-L inverts a singular matrix");
        };
    }

    #[test]
    fn isal_runs_our_matrix_and_lrcs_too() {
        for code in [Code::rs(10, 4).unwrap(), Code::lrc(12, 2, 2).unwrap()] {
            let rows: Vec<u8> = (0..code.m()).flat_map(|j| code.row(j)).copied().collect();
            let peer = codec_peers::isal::Combination::new(code.k(), &rows);
            for len in [1, 63, 4097] {
                let shape = (code.k(), code.m(), len);
                let mut theirs = code_word(shape, |data, parity| peer.run(data, parity).unwrap());
                let mut ours = code_word(shape, |data, parity| code.encode(data, parity).unwrap());
                assert!(bytes(&mut theirs, code.n()) == bytes(&mut ours, code.n()));
            }
        }
    }
}

#[cfg(feature = "jerasure")]
mod jerasure {
    use super::*;
    use codec_peers::jerasure::Jerasure;

    #[test]
    fn chunks_are_exchanged_with_jerasure() {
        exchange_all(Family::JerasureReedSolVan, Jerasure::new);
        exchange_all(Family::JerasureCauchy, Jerasure::new);
    }

    #[test]
    fn every_matrix_of_jerasure_is_ours_of_that_name() {
        same_rows_everywhere(Family::JerasureReedSolVan, Jerasure::new);
        same_rows_everywhere(Family::JerasureCauchy, Jerasure::new);
    }
}
