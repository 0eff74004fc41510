//! Parity rows of local reconstruction codes. `docs/coding.md` derives them.

use crate::{Code, gf};

/// Groups of the maximally recoverable construction: GF(256) is the union of this many subspaces of 16 elements that
/// share nothing but 0 (the multiples of the subfield GF(16)).
const SUBSPACES: usize = 17;
/// Non-zero elements of each of them.
const SUBSPACE_ELEMENTS: usize = 15;

/// The `l + r` parity rows, one after the other. `1 <= l <= k` and `k + l + r <= 256`.
pub(crate) fn rows(k: usize, l: usize, r: usize) -> Vec<u8> {
    let local = (0..l).flat_map(|t| (0..k).map(move |i| u8::from(group(k, l, i) == t)));
    local.chain(global_rows(k, l, r)).collect()
}

/// The local group of data role `i`.
fn group(k: usize, l: usize, i: usize) -> usize {
    i * l / k
}

/// The position of data role `i` in its local group.
fn position(k: usize, l: usize, i: usize) -> usize {
    (0..i).rev().take_while(|other| group(k, l, *other) == group(k, l, i)).count()
}

fn global_rows(k: usize, l: usize, r: usize) -> Vec<u8> {
    let positions: Vec<usize> = (0..k).map(|i| position(k, l, i)).collect();
    let widest = positions.iter().max().map_or(0, |last| last + 1);
    match r {
        0 => Vec::new(),
        // Different and non-zero within each group is all it takes.
        1 => positions.into_iter().map(gf::power_of_two).collect(),
        2 if l <= SUBSPACES && widest <= SUBSPACE_ELEMENTS => {
            let element = |i: usize| gf::power_of_two(group(k, l, i) + SUBSPACES * positions[i]);
            let squares = (0..k).map(|i| gf::mul(element(i), element(i)));
            (0..k).map(element).chain(squares).collect()
        }
        _ => pyramid_rows(k, r),
    }
}

/// Rows 1 to `r` of the Reed-Solomon code with `r + 1` parities. Its row 0 is the sum of the local ones.
fn pyramid_rows(k: usize, r: usize) -> Vec<u8> {
    let code = Code::rs(k, r + 1).expect("l >= 1, so there is room for one more parity row");
    code.coefficients()[k..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_contiguous_and_of_nearly_equal_size() {
        let groups: Vec<usize> = (0..7).map(|i| group(7, 3, i)).collect();
        assert_eq!(groups, [0, 0, 0, 1, 1, 2, 2]);
        let positions: Vec<usize> = (0..7).map(|i| position(7, 3, i)).collect();
        assert_eq!(positions, [0, 1, 2, 0, 1, 0, 1]);
    }

    #[test]
    fn the_subspaces_share_nothing_but_zero_and_are_closed_under_addition() {
        let subspace = |t: usize| -> Vec<u8> {
            (0..SUBSPACE_ELEMENTS).map(|s| gf::power_of_two(t + SUBSPACES * s)).collect()
        };
        let mut all: Vec<u8> = (0..SUBSPACES).flat_map(subspace).collect();
        all.sort_unstable();
        assert_eq!(all, (1..=255).collect::<Vec<u8>>());
        for t in 0..SUBSPACES {
            let elements = subspace(t);
            let closed = |a: u8| elements.iter().all(|b| a == *b || elements.contains(&(a ^ b)));
            assert!(elements.iter().all(|a| closed(*a)), "subspace {t}");
        }
    }
}
