//! How a back end comes to be: it implements [`Vector`](super::vector::Vector) for its register type and calls [`backend!`].
#![allow(unsafe_code)]

/// Makes a back end of a [`Vector`](super::vector::Vector): its loops, compiled for the processors that have the features listed, and `detect`, which
/// gives it to nobody else. `unroll` is how many vectors of each output are computed at a time, for one to four outputs and for
/// transforms of two to sixteen points.
macro_rules! backend {
    (
        $(#[$doc:meta])* $module:ident, $name:literal, $vector:ty,
        unroll: [$u1:literal, $u2:literal, $u3:literal, $u4:literal],
        transforms: [$t2:literal, $t4:literal, $t8:literal, $t16:literal],
        detect: $detected:ident, features: $($feature:tt),+
    ) => {
        $(#[$doc])*
        pub(in crate::kernel) mod $module {
            use super::*;
                        use crate::kernel::instruction_set::{Backend, Loop};
            use crate::kernel::tile::{ADD, COPY, COPY_STREAM, SET, STREAM, UPDATE};
            use crate::kernel::trial::Trials;
            use crate::kernel::{loops, transform};

            pub(in crate::kernel) fn detect() -> Option<&'static Backend> {
                ($(std::arch::$detected!($feature))&&+).then_some(&BACKEND)
            }

            static BACKEND: Backend = Backend {
                name: $name,
                factors: <$vector as Vector>::FACTORS,
                tiles: [
                    [tiles::<false, { SET }>(), tiles::<true, { SET }>()],
                    [tiles::<false, { ADD }>(), tiles::<true, { ADD }>()],
                    [tiles::<false, { STREAM }>(), tiles::<true, { STREAM }>()],
                    [tiles::<false, { COPY }>(), tiles::<true, { COPY }>()],
                    [tiles::<false, { COPY_STREAM }>(), tiles::<true, { COPY_STREAM }>()],
                    [tiles::<false, { UPDATE }>(), tiles::<true, { UPDATE }>()],
                ],
                transforms: Some([transforms::<false>(), transforms::<true>()]),
                trials: if <$vector as Vector>::STREAMS { Some(Trials::new()) } else { None },
            };

            const fn tiles<const ONES: bool, const MODE: u8>() -> [Loop; 4] {
                [
                    tile::<1, $u1, ONES, MODE>,
                    tile::<2, $u2, ONES, MODE>,
                    tile::<3, $u3, ONES, MODE>,
                    tile::<4, $u4, ONES, MODE>,
                ]
            }

            const fn transforms<const STREAM: bool>() -> [Loop; 4] {
                [
                    transform::<2, $t2, STREAM>,
                    transform::<4, $t4, STREAM>,
                    transform::<8, $t8, STREAM>,
                    transform::<16, $t16, STREAM>,
                ]
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn tile<const M: usize, const N: usize, const ONES: bool, const MODE: u8>(
                factors: *const u64,
                sources: &[&[u8]],
                outputs: &mut [&mut [u8]],
                len: usize,
            ) {
                // SAFETY: the features are those of the vector, and the caller keeps to what a loop asks for.
                unsafe {
                    match MODE {
                        UPDATE => loops::update::<$vector, M, N, ONES>(factors, sources, outputs, len),
                        STREAM => {
                            if !stream_tile::<M, ONES, STREAM>(factors, sources, outputs, len) {
                                large_tile::<M, N, ONES, SET>(factors, sources, outputs, len);
                            }
                        }
                        COPY_STREAM => {
                            if !stream_tile::<M, ONES, COPY_STREAM>(factors, sources, outputs, len) {
                                large_tile::<M, N, ONES, COPY>(factors, sources, outputs, len);
                            }
                        }
                        _ if len <= <$vector as Vector>::WIDTH => {
                            loops::small_tile::<$vector, M, ONES, MODE>(factors, sources, outputs, len);
                        }
                        _ => large_tile::<M, N, ONES, MODE>(factors, sources, outputs, len),
                    }
                }
            }

            /// Apart from the small ones, which would have to save its registers.
            $(#[target_feature(enable = $feature)])+
            #[inline(never)]
            unsafe fn large_tile<const M: usize, const N: usize, const ONES: bool, const MODE: u8>(
                factors: *const u64,
                sources: &[&[u8]],
                outputs: &mut [&mut [u8]],
                len: usize,
            ) {
                // SAFETY: as above.
                unsafe { loops::tile::<$vector, M, N, ONES, MODE>(factors, sources, outputs, len) }
            }

            /// Whether the stores could go past the caches.
            $(#[target_feature(enable = $feature)])+
            #[inline(never)]
            unsafe fn stream_tile<const M: usize, const ONES: bool, const MODE: u8>(
                factors: *const u64,
                sources: &[&[u8]],
                outputs: &mut [&mut [u8]],
                len: usize,
            ) -> bool {
                // SAFETY: as above.
                unsafe { loops::stream_tile::<$vector, M, ONES, MODE>(factors, sources, outputs, len) }
            }

            $(#[target_feature(enable = $feature)])+
            unsafe fn transform<const P: usize, const N: usize, const STREAM: bool>(
                factors: *const u64,
                sources: &[&[u8]],
                outputs: &mut [&mut [u8]],
                len: usize,
            ) {
                // SAFETY: as above.
                unsafe { transform::run::<$vector, P, N, STREAM>(factors, sources, outputs, len) }
            }
        }
    };
}

pub(super) use backend;
