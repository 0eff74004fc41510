//! The test that every kernel passes before it is used: the same answers as the scalar one.

use super::instruction_set::Kernel;
use super::matrix::Matrix;
use super::scalar::SCALAR;
use crate::chunks::Chunks;

/// Longer than two vectors of the widest back end, with a tail.
const LEN: usize = 3 * 64 + 13;

/// Whether `kernel` agrees with the scalar one: every coefficient, whole vectors and tails, one and many outputs.
pub(super) fn passes(kernel: Kernel) -> bool {
    let scalar = Kernel(&SCALAR);
    kernel == scalar
        || (scales_alike(kernel, scalar)
            && combines_alike(kernel, scalar)
            && transforms_right(kernel, scalar))
}

/// Bytes without structure, different for each `salt`.
fn noise(salt: u64, len: usize) -> Vec<u8> {
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..len).map(step).collect()
}

fn scales_alike(kernel: Kernel, scalar: Kernel) -> bool {
    let (src, dst) = (noise(1, LEN), noise(2, LEN));
    let run = |kernel: Kernel, c: u8| {
        let (mut sum, mut product) = (dst.clone(), dst.clone());
        kernel.mul_add(&mut sum, c, &src).expect("slices of one length");
        kernel.mul(&mut product, c, &src).expect("slices of one length");
        (sum, product)
    };
    (0..=255).all(|c| run(kernel, c) == run(scalar, c))
}

fn combines_alike(kernel: Kernel, scalar: Kernel) -> bool {
    let source_count = 35;
    let sources: Vec<Vec<u8>> = (0..source_count).map(|s| noise(3 + s, LEN)).collect();
    let run = |kernel: Kernel, sources: &[&[u8]], output_count: usize| {
        let coefficients = noise(99, sources.len() * output_count);
        let mut outputs = vec![vec![0xa5; LEN]; output_count];
        kernel.combine(&coefficients, sources, &mut borrow(&mut outputs)).expect("slices of one length");
        outputs
    };
    [(1, 1), (3, 2), (5, 3), (10, 4), (35, 6)].into_iter().all(|(source_count, output_count)| {
        let sources: Vec<&[u8]> = sources[..source_count].iter().map(Vec::as_slice).collect();
        run(kernel, &sources, output_count) == run(scalar, &sources, output_count)
    })
}

/// Transforms of every size, with groups of every fullness, against the rows that they stand for.
fn transforms_right(kernel: Kernel, scalar: Kernel) -> bool {
    let buffers: Vec<Vec<u8>> = (0..35).map(|s| noise(40 + s, LEN)).collect();
    [(3, 2), (6, 3), (10, 4), (11, 5), (23, 8), (35, 13)].into_iter().all(|(k, m)| {
        let sources: Vec<&[u8]> = buffers[..k].iter().map(Vec::as_slice).collect();
        let mut expected = vec![vec![0; LEN]; m];
        let rows = crate::lch::rows(k, m).expect("within the bounds");
        scalar.combine(&rows, &sources, &mut borrow(&mut expected)).expect("slices of one length");
        let mut found = vec![vec![0xa5; LEN]; m];
        let transform = Matrix::new(kernel, k, rows).with_transform_if_any();
        if let Ok(chunks) = Chunks::new(&sources, &mut borrow(&mut found)) {
            transform.combine(chunks);
        }
        found == expected
    })
}

fn borrow(buffers: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    buffers.iter_mut().map(Vec::as_mut_slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::instruction_set::Backend;

    /// Right but for one product.
    static BROKEN: Backend = {
        static FACTORS: [u64; 256] = {
            let mut factors = crate::gf::COEFFICIENTS;
            factors[0x8e] = 0x8f;
            factors
        };
        Backend { name: "broken", factors: &FACTORS, tiles: SCALAR.tiles, transforms: None, trials: None }
    };

    #[test]
    fn a_kernel_that_gets_one_product_wrong_does_not_pass() {
        assert!(!passes(Kernel(&BROKEN)));
    }
}
