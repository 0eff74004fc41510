//! For tests: which square submatrices of a code's parity rows are singular. A code is MDS if none is.

use crate::Code;
use crate::solve::rank;

/// Whether the submatrix of these rows and columns has full rank.
pub(crate) fn is_regular(code: &Code, rows: &[usize], columns: &[usize]) -> bool {
    let row = |j: usize| columns.iter().map(|i| code.coefficient(j, *i)).collect();
    rank(rows.iter().map(|j| row(*j)).collect()) == rows.len()
}

/// The first singular square submatrix, smallest ones first: its rows and its columns.
pub(crate) fn dependent_minor(code: &Code) -> Option<(Vec<usize>, Vec<usize>)> {
    (1..=code.k().min(code.m())).find_map(|size| {
        let columns = choices(code.k(), size);
        choices(code.m(), size).into_iter().find_map(|rows| {
            let found = columns.iter().find(|columns| !is_regular(code, &rows, columns));
            found.map(|columns| (rows, columns.clone()))
        })
    })
}

/// All ways to choose `count` of `0..limit`, in lexicographic order.
pub(crate) fn choices(limit: usize, count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with_last = |last: usize| {
        choices(last, count - 1).into_iter().map(move |mut chosen| {
            chosen.push(last);
            chosen
        })
    };
    (count - 1..limit).flat_map(with_last).collect()
}
