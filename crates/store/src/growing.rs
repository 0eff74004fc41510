//! How vectors grow, and how unevenly hashes deal: what a forecast of memory rests on.

/// How many things one of many takes, number `taker`, to whom a hash deals `mean` on average. Not drawn: takers get the quantiles of
/// the normal distribution in an order without pattern, so that all of them together are as uneven as they will be.
#[must_use]
pub fn dealt(mean: f64, taker: u64) -> usize {
    /// Multiples of it, modulo one, are spread evenly however many are taken: 2^64 divided by the golden ratio.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    /// The logistic curve whose argument is scaled so is nowhere 0.01 off the normal one.
    const LOGISTIC_SCALE: f64 = 1.702;
    let share = ((taker + 1).wrapping_mul(STEP) >> 11) as f64 / (1u64 << 53) as f64;
    let share = share.clamp(1e-6, 1.0 - 1e-6);
    let deviations = (share / (1.0 - share)).ln() / LOGISTIC_SCALE;
    (mean + deviations * mean.sqrt()).round().max(0.0) as usize
}

/// What a vector has room for that came to `len` entries by growing: it doubles.
pub(crate) fn grown_capacity(len: usize) -> usize {
    if len == 0 { 0 } else { len.next_power_of_two() }
}
