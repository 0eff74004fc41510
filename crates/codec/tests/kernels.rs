//! Every kernel gives the bytes of the scalar one, whatever the length, alignment and coefficients.

use codec::conformance::{self, noise};
use codec::{Kernel, kernels};
use proptest::prelude::*;

fn scalar() -> Kernel {
    *kernels().last().expect("the scalar kernel is always there")
}

#[test]
fn every_kernel_conforms() {
    for kernel in kernels() {
        conformance::check_products(&mut kernel.clone());
        conformance::check(&mut kernel.clone(), &conformance::SHAPES);
    }
}

#[test]
fn scaling_agrees_at_every_length_and_misalignment() {
    let (src, dst) = (noise(1, 8300), noise(2, 8300));
    for kernel in kernels() {
        for len in conformance::LENGTHS.into_iter().filter(|len| *len < 8000) {
            for offset in [0, 1, 7, 33] {
                for c in [0, 1, 2, 0x8e, 0xff] {
                    let run = |kernel: Kernel| {
                        let mut bytes = dst.clone();
                        kernel.mul_add(&mut bytes[offset..offset + len], c, &src[3..3 + len]).unwrap();
                        kernel.xor(&mut bytes[offset..offset + len], &src[5..5 + len]).unwrap();
                        kernel
                            .mul(&mut bytes[4200..4200 + len.min(200)], c, &src[1..1 + len.min(200)])
                            .unwrap();
                        bytes
                    };
                    assert_eq!(run(*kernel), run(scalar()), "{kernel:?} len {len} offset {offset} c {c}");
                }
            }
        }
    }
}

#[test]
fn calls_that_try_where_to_store_and_those_that_follow_give_the_same_bytes() {
    let len = 800_001;
    let sources: Vec<Vec<u8>> = (0..3).map(|salt| noise(salt, len)).collect();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let run = |kernel: Kernel, outputs: &mut [Vec<u8>]| {
        let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        kernel.combine(&[1, 1, 1, 7, 0, 0x8e], &sources, &mut outputs).unwrap();
    };
    let mut expected = vec![vec![0; len]; 2];
    run(scalar(), &mut expected);
    for kernel in kernels() {
        for call in 1..=5 {
            let mut found = vec![vec![0x5a; len]; 2];
            run(*kernel, &mut found);
            assert!(found == expected, "{kernel:?}, call {call}");
        }
    }
}

#[test]
fn a_combination_of_nothing_is_zero() {
    for kernel in kernels() {
        let mut output = [7; 70];
        kernel.combine(&[], &[], &mut [&mut output]).unwrap();
        assert_eq!(output, [0; 70]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_combination_agrees(
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        coefficients in proptest::collection::vec(any::<u8>(), 1..40),
        output_count in 1usize..7,
    ) {
        let source_count = coefficients.len().div_ceil(output_count);
        let len = bytes.len() / source_count;
        let matrix: Vec<u8> = coefficients.iter().copied().cycle().take(source_count * output_count).collect();
        let sources: Vec<&[u8]> = (0..source_count).map(|s| &bytes[s * len..][..len]).collect();
        let combine = |kernel: Kernel| {
            let mut outputs = vec![vec![0x5a; len]; output_count];
            let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
            kernel.combine(&matrix, &sources, &mut slices).expect("slices of one length");
            outputs
        };
        let expected = combine(scalar());
        for kernel in kernels() {
            prop_assert_eq!(&combine(*kernel), &expected);
        }
    }
}
