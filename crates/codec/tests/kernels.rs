//! Every kernel gives the bytes of the scalar one, whatever the length, alignment and coefficients.

use codec::{Kernel, kernels};
use proptest::prelude::*;

/// Around every vector width in use, and around the block length.
const LENGTHS: [usize; 18] = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 4095, 4097];

fn scalar() -> Kernel {
    *kernels().last().expect("the scalar kernel is always there")
}

fn noise(salt: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(167) ^ (i >> 5).wrapping_mul(31) ^ salt.wrapping_mul(89)) as u8)
        .collect()
}

#[test]
fn scaling_agrees_at_every_length_and_misalignment() {
    let (src, dst) = (noise(1, 8192), noise(2, 8192));
    for kernel in kernels() {
        for len in LENGTHS {
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

/// Outputs lie in one buffer with guards between them, so that a store beyond an end is seen.
fn combine(kernel: Kernel, coefficients: &[u8], sources: &[&[u8]], len: usize) -> Vec<u8> {
    let guard = 37;
    let mut bytes = noise(9, coefficients.len() / sources.len() * (len + guard));
    let mut outputs: Vec<&mut [u8]> = bytes.chunks_mut(len + guard).map(|chunk| &mut chunk[..len]).collect();
    kernel.combine(coefficients, sources, &mut outputs).expect("slices of one length");
    bytes
}

#[test]
fn combinations_agree_at_every_length_and_shape() {
    for (source_count, output_count) in [(1, 1), (2, 4), (7, 3), (10, 4), (33, 2), (70, 9)] {
        let coefficients = noise(source_count, source_count * output_count);
        let buffers: Vec<Vec<u8>> = (0..source_count).map(|s| noise(s, 4200)).collect();
        for len in LENGTHS {
            let sources: Vec<&[u8]> = buffers.iter().enumerate().map(|(s, b)| &b[s % 67..][..len]).collect();
            let expected = combine(scalar(), &coefficients, &sources, len);
            for kernel in kernels() {
                let found = combine(*kernel, &coefficients, &sources, len);
                assert!(found == expected, "{kernel:?} {source_count} to {output_count} len {len}");
            }
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
        let expected = combine(scalar(), &matrix, &sources, len);
        for kernel in kernels() {
            prop_assert_eq!(&combine(*kernel, &matrix, &sources, len), &expected);
        }
    }
}
