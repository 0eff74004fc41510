//! Small linear systems over GF(2^8).

use crate::gf;

/// Solves `A * X = B` by Gauss-Jordan elimination. Each row of `rows` is a row of `A` (`unknowns` wide) followed by
/// the row of `B`. The result has one row per unknown, as wide as `B`.
///
/// `A` need not be square or of full rank: unknowns that are not needed become 0, earlier ones are used first. A
/// column of `B` that has no solution is returned as `Err(its index)`.
pub(crate) fn solve(mut rows: Vec<Vec<u8>>, unknowns: usize, targets: usize) -> Result<Vec<Vec<u8>>, usize> {
    let pivots = eliminate(&mut rows, unknowns);
    for target in 0..targets {
        // On the left these rows are zero, whatever the unknowns are.
        if rows[pivots.len()..].iter().any(|row| row[unknowns + target] != 0) {
            return Err(target);
        }
    }
    let mut solution = vec![vec![0; targets]; unknowns];
    for (row, unknown) in rows.iter().zip(pivots) {
        solution[unknown].copy_from_slice(&row[unknowns..]);
    }
    Ok(solution)
}

/// Rank of a matrix given by its rows.
pub(crate) fn rank(mut rows: Vec<Vec<u8>>) -> usize {
    let width = rows.first().map_or(0, Vec::len);
    eliminate(&mut rows, width).len()
}

/// Brings the first `width` columns to reduced row echelon form; returns the pivot column of row 0, 1, ...
fn eliminate(rows: &mut [Vec<u8>], width: usize) -> Vec<usize> {
    let mut pivots = Vec::new();
    for column in 0..width {
        let top = pivots.len();
        let Some(found) = (top..rows.len()).find(|row| rows[*row][column] != 0) else { continue };
        rows.swap(top, found);
        let scale = gf::inverse(rows[top][column]);
        rows[top].iter_mut().for_each(|value| *value = gf::mul(scale, *value));
        let pivot_row = rows[top].clone();
        // Above the pivot as well as below it, so that the solution can be read off.
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != top) {
            let factor = row[column];
            row.iter_mut().zip(&pivot_row).for_each(|(value, pivot)| *value ^= gf::mul(factor, *pivot));
        }
        pivots.push(column);
    }
    pivots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inconsistent_target_is_named() {
        let rows = vec![vec![1, 1, 5, 7], vec![1, 1, 5, 6]];
        assert_eq!(solve(rows, 2, 2), Err(1));
    }

    #[test]
    fn superfluous_unknowns_are_not_used() {
        let rows = vec![vec![1, 1, 9]];
        assert_eq!(solve(rows, 2, 1), Ok(vec![vec![9], vec![0]]));
    }
}
