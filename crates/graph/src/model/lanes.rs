//! Several lengths of slices, followed through a graph at once: each sum waits for the one before, so more of them cost little more.

use std::ops::{Add, AddAssign, Mul, Sub};

/// The same number for each of `N` lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lanes<const N: usize>(pub [f64; N]);

impl<const N: usize> Lanes<N> {
    pub(super) fn all(value: f64) -> Self {
        Self([value; N])
    }

    fn with(mut self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            *one = of(*one, other);
        }
        self
    }

    /// Lane by lane; no lane is a NaN.
    pub(super) fn max(self, other: Self) -> Self {
        self.with(other, |one, other| if one > other { one } else { other })
    }

    pub(super) fn min(self, other: Self) -> Self {
        self.with(other, |one, other| if one < other { one } else { other })
    }
}

impl<const N: usize> Add for Lanes<N> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }
}

impl<const N: usize> AddAssign for Lanes<N> {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<const N: usize> Sub for Lanes<N> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, |one, other| one - other)
    }
}

impl<const N: usize> Mul<f64> for Lanes<N> {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        self.with(Self::all(by), |one, by| one * by)
    }
}

impl<const N: usize> Mul for Lanes<N> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.with(other, |one, other| one * other)
    }
}
