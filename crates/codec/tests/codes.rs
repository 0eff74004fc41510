//! What codes promise: every loss pattern up to `m`, every length, deltas, residuals, and clear refusals.

use codec::{Code, CodeError, kernels};

const LENGTHS: [usize; 9] = [1, 31, 32, 33, 63, 64, 65, 129, 200];

fn noise(salt: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(151) ^ (i >> 3).wrapping_mul(29) ^ salt.wrapping_mul(97)) as u8)
        .collect()
}

fn borrow(chunks: &[Vec<u8>]) -> Vec<&[u8]> {
    chunks.iter().map(Vec::as_slice).collect()
}

/// All `n` chunks of a code word.
fn code_word(code: &Code, len: usize) -> Vec<Vec<u8>> {
    let mut chunks: Vec<Vec<u8>> = (0..code.k()).map(|i| noise(i, len)).collect();
    let mut parity = vec![vec![0xee; len]; code.m()];
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&borrow(&chunks), &mut outputs).expect("equal lengths");
    chunks.extend(parity);
    chunks
}

/// All sets of at most `most` roles of `0..n`.
fn losses(n: usize, most: usize) -> Vec<Vec<usize>> {
    let sets = (0u32..1 << n).filter(|set| set.count_ones() as usize <= most);
    sets.map(|set| (0..n).filter(|role| set >> role & 1 == 1).collect()).collect()
}

fn assert_reconstructs(code: &Code, chunks: &[Vec<u8>], lost: &[usize]) {
    let present: Vec<(usize, &[u8])> = chunks
        .iter()
        .enumerate()
        .filter(|(r, _)| !lost.contains(r))
        .map(|(r, c)| (r, c.as_slice()))
        .collect();
    let mut found = vec![vec![0x77; chunks[0].len()]; lost.len()];
    let mut wanted: Vec<(usize, &mut [u8])> =
        lost.iter().copied().zip(found.iter_mut().map(Vec::as_mut_slice)).collect();
    code.reconstruct(&present, &mut wanted).expect("at most m are lost");
    for (role, bytes) in lost.iter().zip(&found) {
        assert!(bytes == &chunks[*role], "{}+{} without {lost:?}: role {role}", code.k(), code.m());
    }
}

#[test]
fn every_loss_of_at_most_m_is_repaired_at_every_length_by_every_kernel() {
    for kernel in kernels() {
        for (k, m) in [(1, 0), (1, 1), (1, 3), (2, 1), (3, 2), (4, 3), (6, 3), (5, 5)] {
            let code = Code::rs(k, m).unwrap().with_kernel(*kernel);
            for len in LENGTHS {
                let chunks = code_word(&code, len);
                losses(k + m, m).iter().for_each(|lost| assert_reconstructs(&code, &chunks, lost));
            }
        }
    }
}

#[test]
fn every_loss_of_ten_and_four_is_repaired() {
    let code = Code::rs(10, 4).unwrap();
    let chunks = code_word(&code, 65);
    losses(14, 4).iter().for_each(|lost| assert_reconstructs(&code, &chunks, lost));
}

#[test]
fn the_widest_code_repairs_as_many_losses_as_it_has_parities() {
    let code = Code::rs(200, 56).unwrap();
    let chunks = code_word(&code, 33);
    let lost: Vec<usize> = (0..56).map(|i| i * 4 + 3).collect();
    assert_reconstructs(&code, &chunks, &lost);
}

#[test]
fn one_loss_more_than_m_is_refused_and_nothing_is_written() {
    let code = Code::rs(4, 2).unwrap();
    let chunks = code_word(&code, 10);
    let present = [(0, chunks[0].as_slice()), (3, &chunks[3]), (5, &chunks[5])];
    let mut out = [0x55; 10];
    let refused = code.reconstruct(&present, &mut [(1, &mut out)]);
    assert_eq!(refused, Err(CodeError::Undetermined { role: 1, present: 3 }));
    assert_eq!(out, [0x55; 10]);
}

#[test]
fn a_delta_gives_the_parity_of_encoding_again() {
    let code = Code::rs(5, 3).unwrap();
    let mut chunks = code_word(&code, 130);
    for (changed, range) in [(0, 0..130), (4, 1..2), (2, 7..72), (2, 64..64), (3, 33..130)] {
        let delta = noise(50 + changed, range.len());
        codec::xor(&mut chunks[changed][range.clone()], &delta).unwrap();
        for j in 0..code.m() {
            codec::mul_add(&mut chunks[5 + j][range.clone()], code.coefficient(j, changed), &delta).unwrap();
        }
        let mut again = vec![vec![0; 130]; 3];
        let mut outputs: Vec<&mut [u8]> = again.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(&borrow(&chunks[..5]), &mut outputs).unwrap();
        assert_eq!(again, chunks[5..]);
    }
}

#[test]
fn residuals_of_any_rows_recover_each_lost_role() {
    let code = Code::rs(6, 3).unwrap();
    let data: Vec<Vec<u8>> = (0..6).map(|i| noise(i, 77)).collect();
    for lost in losses(6, 3).iter().filter(|lost| !lost.is_empty()) {
        let residual = |j: usize| {
            let mut sum = vec![0; 77];
            lost.iter().for_each(|b| codec::mul_add(&mut sum, code.coefficient(j, *b), &data[*b]).unwrap());
            sum
        };
        for mut parities in losses(3, 3).into_iter().filter(|rows| rows.len() >= lost.len()) {
            parities.reverse();
            let residuals: Vec<Vec<u8>> = parities.iter().map(|j| residual(*j)).collect();
            for wanted in lost {
                let mut out = vec![0x99; 77];
                code.recover(&parities, lost, *wanted, &borrow(&residuals), &mut out).unwrap();
                assert_eq!(out, data[*wanted], "lost {lost:?} rows {parities:?} wanted {wanted}");
            }
        }
    }
}

#[test]
fn a_plan_names_only_what_it_needs_and_prefers_data_and_the_xor_row() {
    let code = Code::rs(4, 3).unwrap();
    let everyone_else = [6, 5, 4, 3, 2, 1];
    assert_eq!(code.plan(&everyone_else, &[0]).unwrap().sources(), [3, 2, 1, 6]);
    let plan = code.plan(&[1, 2, 3, 4, 5, 6], &[0]).unwrap();
    assert_eq!(plan.sources(), [1, 2, 3, 4]);
    assert!((0..4).all(|source| plan.coefficient(0, source) == 1));
    assert_eq!(code.plan(&everyone_else, &[2]).unwrap().sources(), [2]);
    assert!(code.plan(&everyone_else, &[]).unwrap().sources().is_empty());
}

#[test]
fn bad_arguments_are_refused() {
    let code = Code::rs(3, 2).unwrap();
    let (short, long) = ([0u8; 3], [0u8; 4]);
    let mut out = [0u8; 4];
    let count = |what, expected, found| Err(CodeError::Count { what, expected, found });
    let length = Err(CodeError::Length { expected: 4, found: 3 });

    assert_eq!(code.encode(&[&long[..]; 2], &mut []), count("data chunks", 3, 2));
    assert_eq!(code.encode(&[&long[..]; 3], &mut [&mut out]), count("parity chunks", 2, 1));
    assert_eq!(code.encode(&[&long, &short, &long], &mut [&mut out, &mut [0; 4]]), length);
    assert_eq!(code.recover(&[0], &[1], 1, &[], &mut out), count("residuals", 1, 0));
    assert_eq!(code.recover(&[0], &[1], 1, &[&long], &mut [0; 3]), length);
    assert_eq!(code.recover(&[0], &[1], 2, &[&long], &mut out), Err(CodeError::NotLost { role: 2 }));
    assert_eq!(
        code.recover(&[2], &[1], 1, &[&long], &mut out),
        Err(CodeError::NoSuchRole { role: 2, limit: 2 })
    );
    assert_eq!(
        code.recover(&[0], &[3], 3, &[&long], &mut out),
        Err(CodeError::NoSuchRole { role: 3, limit: 3 })
    );
    assert_eq!(
        code.recover(&[0, 0], &[1, 2], 1, &[&long[..]; 2], &mut out),
        Err(CodeError::Duplicate { role: 0 })
    );
    assert_eq!(
        code.recover(&[0], &[1, 2], 1, &[&long], &mut out),
        Err(CodeError::Undetermined { role: 1, present: 1 })
    );
    assert_eq!(code.plan(&[0, 1, 5], &[2]).unwrap_err(), CodeError::NoSuchRole { role: 5, limit: 5 });
    assert_eq!(code.plan(&[0, 1, 1], &[2]).unwrap_err(), CodeError::Duplicate { role: 1 });
    let plan = code.plan(&[0, 1, 3], &[2]).unwrap();
    assert_eq!(plan.run(&[&long[..]; 2], &mut [&mut out]), count("sources", 3, 2));
}
