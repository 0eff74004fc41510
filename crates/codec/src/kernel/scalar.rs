//! The scalar back end: runs everywhere, and is the truth that the others are compared with.
#![allow(unsafe_code)]

use super::instruction_set::{Backend, Loop, MAX_OUTPUTS};
use super::tile::{ADD, COPY, SET};
use crate::gf::{self, COEFFICIENTS};

pub(super) static SCALAR: Backend = Backend {
    name: "scalar",
    factors: &COEFFICIENTS,
    tiles: [
        [[tile::<SET>; MAX_OUTPUTS]; 2],
        [[tile::<ADD> as Loop; MAX_OUTPUTS]; 2],
        [[tile::<SET>; MAX_OUTPUTS]; 2],
        [[tile::<COPY>; MAX_OUTPUTS]; 2],
        [[tile::<COPY>; MAX_OUTPUTS]; 2],
        [[tile::<ADD>; MAX_OUTPUTS]; 2],
    ],
    transforms: None,
    trials: None,
};

/// See [`Loop`]. All sums in one way, byte by byte.
unsafe fn tile<const MODE: u8>(
    factors: *const u64,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
) {
    let copies = if MODE == COPY { sources.len() } else { 0 };
    let rows = outputs.len() - copies;
    let (outputs, copies) = outputs.split_at_mut(rows);
    for (o, output) in outputs.iter_mut().enumerate() {
        let output = &mut output[..len];
        if MODE != ADD {
            output.fill(0);
        }
        for (s, source) in sources.iter().enumerate() {
            // SAFETY: there is a factor for each source and output.
            let factor = unsafe { *factors.add(s * rows + o) } as u8;
            output.iter_mut().zip(&source[..len]).for_each(|(sum, byte)| *sum ^= gf::mul(factor, *byte));
        }
    }
    for (copy, source) in copies.iter_mut().zip(sources) {
        copy[..len].copy_from_slice(&source[..len]);
    }
}
