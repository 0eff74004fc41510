//! What was made for a matrix, as long as it is among those that were asked for last.

use std::collections::BTreeMap;

use crate::Matrix;

/// Matrices for which something is kept. Beyond, what was not asked for longest goes.
const MAX_KEPT: usize = 64;

/// See the module: each with the time of its last use, by count.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    kept: BTreeMap<Matrix, (T, u64)>,
    uses: u64,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { kept: BTreeMap::new(), uses: 0 }
    }
}

impl<T: Clone> Kept<T> {
    pub(crate) fn find(&mut self, matrix: &Matrix) -> Option<T> {
        self.uses += 1;
        let (made, used) = self.kept.get_mut(matrix)?;
        *used = self.uses;
        Some(made.clone())
    }

    pub(crate) fn keep(&mut self, matrix: Matrix, made: T) {
        if self.kept.len() >= MAX_KEPT {
            let oldest =
                self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(matrix, _)| matrix.clone());
            oldest.map(|matrix| self.kept.remove(&matrix));
        }
        self.kept.insert(matrix, (made, self.uses));
    }
}
