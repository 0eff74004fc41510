//! Deltas, fused forms, checks and threads give the bytes of plain encoding, with every kernel and kind of code.

use std::num::NonZeroUsize;

use codec::{Code, CodeError, Fused, Mismatch, kernels};

const SCHEMES: [&str; 9] = [
    "rs(10+4)",
    "rs(3+6)",
    "lrc(12,2,2)",
    "rep(3)",
    "mirror(3)",
    "xor(5+1)",
    "none",
    "isal-vandermonde(6+3)",
    "rs(40+9)",
];

fn noise(salt: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(151) ^ (i >> 4).wrapping_mul(37) ^ salt.wrapping_mul(83)) as u8)
        .collect()
}

fn borrow(chunks: &[Vec<u8>]) -> Vec<&[u8]> {
    chunks.iter().map(Vec::as_slice).collect()
}

fn borrow_mut(chunks: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    chunks.iter_mut().map(Vec::as_mut_slice).collect()
}

fn encode(code: &Code, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut parity = vec![vec![0xd7; data[0].len()]; code.m()];
    code.encode(&borrow(data), &mut borrow_mut(&mut parity)).expect("chunks of one length");
    parity
}

/// Runs `check` with a code word of each scheme, length and kernel.
fn with_code_words(lengths: &[usize], check: impl Fn(&Code, Vec<Vec<u8>>, Vec<Vec<u8>>)) {
    for scheme in SCHEMES {
        let plain = Code::of(scheme.parse().expect("a scheme")).expect("a code");
        for len in lengths {
            let data: Vec<Vec<u8>> = (0..plain.k()).map(|i| noise(i, *len)).collect();
            for kernel in kernels() {
                let code = plain.clone().with_kernel(*kernel);
                check(&code, data.clone(), encode(&plain, &data));
            }
        }
    }
}

#[test]
fn prepared_chunks_are_encoded_and_repaired_as_often_as_they_are_filled() {
    // The longest ones are beyond what is prepared: where they had better be stored is found out in each call.
    for (scheme, len) in [("rs(10+4)", 1 << 17), ("lch(10+4)", 1 << 17), ("lch(10+4)", 65)] {
        check_prepared(&Code::of(scheme.parse().unwrap()).unwrap(), len);
    }
    with_code_words(&[1, 63, 64, 65, 300], |code, data, _| check_prepared(code, data[0].len()));
}

fn check_prepared(code: &Code, len: usize) {
    let (mut sources, mut outputs) = (vec![vec![0; len]; code.k()], vec![vec![0xd7; len]; code.m()]);
    let mut stripe = code.prepare(borrow_mut(&mut sources), borrow_mut(&mut outputs)).expect("equal lengths");
    for turn in 0..2 {
        let data: Vec<Vec<u8>> = (0..code.k()).map(|i| noise(100 * turn + i, len)).collect();
        data.iter().enumerate().for_each(|(i, chunk)| stripe.source_mut(i).copy_from_slice(chunk));
        stripe.run();
        let parity = encode(code, &data);
        assert!((0..code.m()).all(|j| stripe.output(j) == parity[j]), "{code:?} of {len} bytes, turn {turn}");
        let Ok(plan) = code.cheapest_plan(&[0], &[0]) else { continue };
        let all = [&data[..], &parity].concat();
        let mut present: Vec<Vec<u8>> = plan.sources().iter().map(|role| all[*role].clone()).collect();
        let mut lost = vec![0x5a; len];
        plan.prepare(borrow_mut(&mut present), vec![&mut lost]).expect("equal lengths").run();
        assert!(lost == data[0], "{code:?} of {len} bytes");
    }
}

#[test]
fn chunks_that_do_not_fit_are_not_prepared() {
    let code = Code::rs(3, 2).unwrap();
    let prepare = |data: &[usize], parity: &[usize]| {
        let make = |lens: &[usize]| lens.iter().map(|len| vec![0; *len]).collect::<Vec<_>>();
        let (mut data, mut parity) = (make(data), make(parity));
        code.prepare(borrow_mut(&mut data), borrow_mut(&mut parity)).err()
    };
    assert_eq!(prepare(&[8, 8, 8], &[8, 8]), None);
    assert!(matches!(prepare(&[8, 8], &[8, 8]), Some(CodeError::Count { expected: 3, found: 2, .. })));
    assert!(matches!(prepare(&[8, 8, 8], &[8]), Some(CodeError::Count { expected: 2, found: 1, .. })));
    assert_eq!(prepare(&[8, 8, 8], &[8, 7]), Some(CodeError::Length { expected: 8, found: 7 }));
    assert_eq!(prepare(&[8, 9, 8], &[8, 8]), Some(CodeError::Length { expected: 8, found: 9 }));
    assert_eq!(prepare(&[0, 0, 0], &[0, 0]), Some(CodeError::Empty));
}

#[test]
fn an_update_gives_all_parities_of_encoding_again() {
    with_code_words(&[1, 65, 300], |code, mut data, mut parity| {
        let len = data[0].len();
        for (role, range) in [(0, 0..len), (code.k() - 1, len / 3..len / 2 + 1), (code.k() / 2, len - 1..len)]
        {
            let delta = noise(900 + role, range.len());
            codec::xor(&mut data[role][range.clone()], &delta).unwrap();
            let mut parts: Vec<&mut [u8]> =
                parity.iter_mut().map(|chunk| &mut chunk[range.clone()]).collect();
            code.update(role, &delta, &mut parts).unwrap();
        }
        assert_eq!(parity, encode(code, &data));
    });
}

#[test]
fn many_products_are_added_at_once() {
    for count in [0, 1, 2, 33, 70] {
        let sources: Vec<Vec<u8>> = (0..count).map(|s| noise(s, 130)).collect();
        let coefficients = noise(7, count);
        let (mut one_by_one, mut at_once) = (noise(99, 130), noise(99, 130));
        sources.iter().zip(&coefficients).for_each(|(s, c)| codec::mul_add(&mut one_by_one, *c, s).unwrap());
        codec::combine_add(&mut at_once, &coefficients, &borrow(&sources)).unwrap();
        assert_eq!(at_once, one_by_one);
    }
}

#[test]
fn fused_encoding_copies_sums_and_encodes() {
    with_code_words(&[1, 63, 4096, 9001], |code, data, parity| {
        let len = data[0].len();
        let (mut copies, mut found) = (vec![vec![1; len]; code.k()], vec![vec![2; len]; code.m()]);
        let mut sums = vec![3; code.n()];
        let fused = Fused { copies: Some(&mut borrow_mut(&mut copies)), checksums: Some(&mut sums) };
        code.encode_fused(&borrow(&data), &mut borrow_mut(&mut found), fused).unwrap();
        assert!(copies == data && found == parity);
        let expected: Vec<u32> = data.iter().chain(&parity).map(|chunk| crc32c::crc32c(chunk)).collect();
        assert_eq!(sums, expected);

        let (mut copies, mut found) = (vec![vec![1; len]; code.k()], vec![vec![2; len]; code.m()]);
        code.encode_and_copy(&borrow(&data), &mut borrow_mut(&mut copies), &mut borrow_mut(&mut found))
            .unwrap();
        assert!(copies == data && found == parity);
        sums.fill(9);
        code.encode_and_sum(&borrow(&data), &mut borrow_mut(&mut found), &mut sums).unwrap();
        assert!(found == parity && sums == expected);
    });
}

#[test]
fn verify_names_each_bad_parity_and_its_first_bad_byte() {
    with_code_words(&[1, 2048, 5000], |code, data, mut parity| {
        assert_eq!(code.verify(&borrow(&data), &borrow(&parity)).unwrap(), []);
        let len = data[0].len();
        let damaged: Vec<usize> = (0..code.m()).step_by(2).collect();
        for row in &damaged {
            parity[*row][len - 1] ^= 1;
            parity[*row][len / 2 + row % 2] ^= 0x80;
        }
        let mismatch = |row: &usize| Mismatch { parity: *row, offset: len / 2 + row % 2 };
        let expected: Vec<Mismatch> = damaged.iter().map(mismatch).collect();
        if len > 1 {
            assert_eq!(code.verify(&borrow(&data), &borrow(&parity)).unwrap(), expected);
        }
    });
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let code = Code::rs(5, 3).unwrap();
    for len in [1, 16 << 10, (64 << 10) + 13, 300_001] {
        let data: Vec<Vec<u8>> = (0..5).map(|i| noise(i, len)).collect();
        let parity = encode(&code, &data);
        let plan = code.plan(&[1, 2, 3, 4, 5], &[0]).unwrap();
        for threads in [1, 2, 3, 8, 1000].map(|count| NonZeroUsize::new(count).unwrap()) {
            let mut found = vec![vec![0x31; len]; 3];
            code.encode_with_threads(&borrow(&data), &mut borrow_mut(&mut found), threads).unwrap();
            assert!(found == parity, "{len} bytes, {threads} threads");
            let sources = [&data[1..], &parity[..1]].concat();
            plan.run_with_threads(&borrow(&sources), &mut borrow_mut(&mut found[..1]), threads).unwrap();
            assert!(found[0] == data[0], "{len} bytes, {threads} threads");
        }
    }
}
