//! The scalar back end: runs everywhere, and is the truth that the others are compared with.

use super::Backend;
use super::tile::Tile;
use crate::gf;

pub(super) struct Scalar;

impl Backend for Scalar {
    fn name(&self) -> &'static str {
        "scalar"
    }

    fn xor(&self, dst: &mut [u8], src: &[u8]) {
        dst.iter_mut().zip(src).for_each(|(d, s)| *d ^= s);
    }

    fn mul(&self, dst: &mut [u8], c: u8, src: &[u8]) {
        dst.iter_mut().zip(src).for_each(|(d, s)| *d = gf::mul(c, *s));
    }

    fn mul_add(&self, dst: &mut [u8], c: u8, src: &[u8]) {
        dst.iter_mut().zip(src).for_each(|(d, s)| *d ^= gf::mul(c, *s));
    }

    fn stored(&self, c: u8) -> u64 {
        c.into()
    }

    fn combine(&self, mut tile: Tile<'_, '_>) {
        for o in 0..tile.output_count() {
            let row = tile.factors().iter().skip(o).step_by(tile.output_count());
            let row: Vec<u8> = row.map(|factor| *factor as u8).collect();
            let adds = tile.adds();
            let (output, sources) = tile.split(o);
            if !adds {
                output.fill(0);
            }
            for (c, source) in row.into_iter().zip(sources) {
                self.mul_add(output, c, source);
            }
        }
    }
}
