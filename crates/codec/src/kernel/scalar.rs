//! The scalar back end: runs everywhere, and is the truth that the others are compared with.
#![allow(unsafe_code)]

use super::tile::MAX_OUTPUTS;
use super::{Backend, Loop};
use crate::gf::{self, COEFFICIENTS};

pub(super) static SCALAR: Backend = Backend {
    name: "scalar",
    factors: &COEFFICIENTS,
    tiles: [
        [[tile::<false>; MAX_OUTPUTS]; 2],
        [[tile::<true> as Loop; MAX_OUTPUTS]; 2],
        [[tile::<false>; MAX_OUTPUTS]; 2],
    ],
    transforms: None,
};

/// See [`Loop`]. All sums in one way, byte by byte.
unsafe fn tile<const ADD: bool>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
) {
    let rows = outputs.len();
    for (o, output) in outputs.iter_mut().enumerate() {
        let output = &mut output[..len];
        if !ADD {
            output.fill(0);
        }
        for (s, source) in sources.iter().enumerate() {
            // SAFETY: there is a factor for each source and output.
            let factor = unsafe { *factors.add(s * rows + o) } as u8;
            output.iter_mut().zip(&source[..len]).for_each(|(sum, byte)| *sum ^= gf::mul(factor, *byte));
        }
    }
}
