//! The suite that all kernels share.

use std::sync::Arc;

use codec::conformance::{self, Combine};
use codec_cuda::{Combination, Depth, Device, HostStripe, Matrix, Pipeline};

use crate::card;

/// Runs everything by way of a pipeline.
struct Subject<L> {
    name: String,
    pipeline: Pipeline,
    load: L,
}

impl<L: FnMut(&Matrix) -> Combination> Combine for Subject<L> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn combine(&mut self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]], adds: bool) {
        let matrix = Matrix::new(sources.len(), coefficients.to_vec()).unwrap();
        let combination = (self.load)(&if adds { matrix.adding() } else { matrix });
        self.pipeline.run(&combination, &mut [HostStripe { sources, outputs }]).unwrap();
    }
}

fn subject<L>(device: &Arc<Device>, name: &str, load: L) -> Subject<L> {
    let depth = Depth { slots: 2, slot_bytes: 2 << 20 };
    Subject { name: name.to_owned(), pipeline: Pipeline::new(device, depth).unwrap(), load }
}

#[test]
fn the_generic_kernel_conforms() {
    let Some(device) = card() else { return };
    let mut subject = subject(&device, "generic", |matrix: &Matrix| device.load(matrix).unwrap());
    conformance::check_products(&mut subject);
    conformance::check(&mut subject, &conformance::SHAPES);
}

#[test]
fn compiled_kernels_conform() {
    let Some(device) = card() else { return };
    let load = |matrix: &Matrix| {
        let combination = device.compile(matrix).unwrap();
        assert_eq!(combination.method(), "compiled");
        combination
    };
    let mut subject = subject(&device, "compiled", load);
    conformance::check(&mut subject, &[(1, 1), (1, 5), (10, 4), (33, 2), (5, 16), (3, 19)]);
}

#[test]
fn every_product_is_right_in_a_compiled_kernel() {
    let Some(device) = card() else { return };
    let source: Vec<u8> = (0..=255).collect();
    for first in (0..=255).step_by(16) {
        let coefficients: Vec<u8> = (first..=first + 15).collect();
        let matrix = Matrix::new(1, coefficients.clone()).unwrap();
        let mut found = vec![vec![0; 256]; 16];
        let mut outputs: Vec<&mut [u8]> = found.iter_mut().map(Vec::as_mut_slice).collect();
        let mut pipeline = Pipeline::new(&device, Depth { slots: 1, slot_bytes: 1 << 20 }).unwrap();
        let mut stripes = [HostStripe { sources: &[&source], outputs: &mut outputs }];
        pipeline.run(&device.compile(&matrix).unwrap(), &mut stripes).unwrap();
        for (c, products) in coefficients.iter().zip(&found) {
            let right = source.iter().zip(products).all(|(x, y)| codec::gf::mul(*c, *x) == *y);
            assert!(right, "of {c}");
        }
    }
}

#[test]
fn a_matrix_that_is_too_large_gets_the_generic_kernel() {
    let Some(device) = card() else { return };
    let matrix = Matrix::encode(&codec::Code::rs(200, 20).unwrap()).unwrap();
    assert_eq!(device.compile(&matrix).unwrap().method(), "generic");
}
