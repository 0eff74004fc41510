//! From which chunks to read when some are dearer than others: a disk that is busy, a node that is far away.
//!
//! A set of chunks is a candidate if it determines what is wanted and none of it can be left out. The candidates tried are: what is
//! wanted itself, as far as it is there; the cheapest chunks that determine everything, which is the answer for Reed-Solomon codes; and for
//! each subset of the sparse parities (the local ones of an LRC) what is left when chunks are dropped, the dearest first.

use crate::checks::check_roles;
use crate::solve::rank;
use crate::{Code, CodeError};

/// Most sparse parity rows whose subsets are all tried.
const MAX_SPARSE_ROWS: usize = 10;

/// Most roles that are wanted and there, of which any subset may be read.
const MAX_OWN: usize = 3;

/// # Reads with costs
impl Code {
    /// The roles to read for having the chunks of the roles `wanted`, in ascending order, when those of `available` can be read at
    /// the cost given with each: the sum of the costs is as small as it can be. Roles of `wanted` that are available may be read
    /// themselves or computed, whichever is cheaper.
    ///
    /// The smallest sum is found for Reed-Solomon codes, copies and XORs, and for LRCs of up to ten local groups if at most three
    /// of the roles `wanted` are available. Otherwise the result suffices, but a cheaper set might exist.
    ///
    /// ```
    /// let code = codec::Code::rs(3, 2)?;
    /// assert_eq!(code.cheapest_reads(&[(0, 1), (1, 1), (3, 9), (4, 1)], &[2])?, [0, 1, 4]);
    /// # Ok::<(), codec::CodeError>(())
    /// ```
    ///
    /// # Errors
    /// `NoSuchRole`, `Duplicate`, or `Undetermined` if the available chunks do not determine what is wanted.
    pub fn cheapest_reads(
        &self,
        available: &[(usize, u32)],
        wanted: &[usize],
    ) -> Result<Vec<usize>, CodeError> {
        let roles: Vec<usize> = available.iter().map(|(role, _)| *role).collect();
        check_roles(&roles, self.n())?;
        check_roles(wanted, self.n())?;
        let one_price = available.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let search = Search { code: self, wanted, costs: available, one_price };
        let mut candidates = search.candidates()?;
        for read in reads_of_wanted(wanted, &roles) {
            // What is read anyway is there for the rest at no cost.
            let free = |(role, cost): &(usize, u32)| (*role, if read.contains(role) { 0 } else { *cost });
            let costs: Vec<(usize, u32)> = available.iter().map(free).collect();
            let missing: Vec<usize> = wanted.iter().copied().filter(|role| !read.contains(role)).collect();
            let rest = Search { code: self, wanted: &missing, costs: &costs, one_price }.candidates()?;
            candidates.extend(rest.into_iter().map(|set| united(&read, &set)));
        }
        let cost = |set: &Vec<usize>| (search.cost(set), set.len());
        let mut best = candidates.into_iter().min_by_key(cost).unwrap_or_default();
        best.sort_unstable();
        Ok(best)
    }
}

/// Which of the roles `wanted` to read themselves: all that are there, or, where they are few, any of them.
fn reads_of_wanted(wanted: &[usize], there: &[usize]) -> Vec<Vec<usize>> {
    let own: Vec<usize> = wanted.iter().copied().filter(|role| there.contains(role)).collect();
    if own.len() > MAX_OWN {
        return vec![own];
    }
    let chosen = |subset: usize| own.iter().enumerate().filter(move |(bit, _)| subset >> bit & 1 == 1);
    (1..1usize << own.len()).map(|subset| chosen(subset).map(|(_, role)| *role).collect()).collect()
}

fn united(one: &[usize], other: &[usize]) -> Vec<usize> {
    let more = other.iter().copied().filter(|role| !one.contains(role));
    one.iter().copied().chain(more).collect()
}

struct Search<'a> {
    code: &'a Code,
    wanted: &'a [usize],
    costs: &'a [(usize, u32)],
    /// Whether all chunks cost the same.
    one_price: bool,
}

impl Search<'_> {
    fn candidates(&self) -> Result<Vec<Vec<usize>>, CodeError> {
        let mut candidates = vec![self.pruned(&self.determining())?];
        candidates.extend(self.by_sparse_rows());
        Ok(candidates)
    }

    fn cost_of(&self, role: usize) -> u64 {
        self.costs.iter().find(|(other, _)| *other == role).map_or(0, |(_, cost)| u64::from(*cost))
    }

    fn cost(&self, set: &[usize]) -> u64 {
        set.iter().map(|role| self.cost_of(*role)).sum()
    }

    /// All that is available, the cheapest first; of equal ones data first, in order.
    fn by_cost(&self) -> Vec<usize> {
        let mut roles: Vec<usize> = self.costs.iter().map(|(role, _)| *role).collect();
        roles.sort_by_key(|role| (self.cost_of(*role), *role));
        roles
    }

    /// The cheapest roles that determine as much as all do: each in turn is taken if it adds to those before it.
    fn determining(&self) -> Vec<usize> {
        let mut basis = Basis::default();
        let row = |role: usize| (0..self.code.k()).map(|i| self.code.generator(role, i)).collect();
        self.by_cost().into_iter().filter(|role| basis.takes(row(*role))).collect()
    }

    fn by_sparse_rows(&self) -> Vec<Vec<usize>> {
        let (data, parities): (Vec<usize>, Vec<usize>) =
            self.by_cost().into_iter().partition(|role| *role < self.code.k());
        let is_dense = |role: &usize| (0..self.code.k()).all(|i| self.code.generator(*role, i) != 0);
        if (self.code.k()..self.code.n()).all(|role| is_dense(&role)) {
            // Rows that are alike: the cheapest chunks that determine everything have no rival.
            return Vec::new();
        }
        let (dense, mut sparse): (Vec<usize>, Vec<usize>) = parities.into_iter().partition(is_dense);
        if self.one_price {
            // Then nothing that is there is worth computing, and the other rows are of no use.
            sparse.retain(|role| self.covers_what_is_missing(*role));
        }
        sparse.truncate(MAX_SPARSE_ROWS);
        let subsets = 0..1usize << sparse.len();
        let chosen = |subset: usize| sparse.iter().enumerate().filter(move |(bit, _)| subset >> bit & 1 == 1);
        let sets = subsets.flat_map(|subset| {
            let chosen: Vec<usize> = chosen(subset).map(|(_, role)| *role).collect();
            let (data, dense) = (&data, &dense);
            (0..=dense.len()).map(move |count| [data, &chosen, &dense[..count]].concat())
        });
        sets.filter_map(|set| self.pruned(&set).ok()).collect()
    }

    /// Whether the row of `role` has a data role in common with something that is wanted, or with data that is not there.
    fn covers_what_is_missing(&self, role: usize) -> bool {
        let is_there = |data: usize| self.costs.iter().any(|(other, _)| *other == data);
        let is_wanted = |data| self.wanted.iter().any(|wanted| self.code.generator(*wanted, data) != 0);
        let covered = (0..self.code.k()).filter(|data| self.code.generator(role, *data) != 0);
        covered.into_iter().any(|data| !is_there(data) || is_wanted(data))
    }

    /// What is left of `set` when each role that the others do without is dropped, the dearest first.
    fn pruned(&self, set: &[usize]) -> Result<Vec<usize>, CodeError> {
        let mut left = self.code.plan(set, self.wanted)?.sources().to_vec();
        let mut order = left.clone();
        order.sort_by_key(|role| (std::cmp::Reverse(self.cost_of(*role)), std::cmp::Reverse(*role)));
        if self.is_independent(&left) {
            return Ok(left);
        }
        for role in order {
            let without: Vec<usize> = left.iter().copied().filter(|other| *other != role).collect();
            if let Ok(plan) = self.code.plan(&without, self.wanted) {
                left = plan.sources().to_vec();
            }
        }
        Ok(left)
    }

    /// Whether no role of `set` is a combination of the others: then there is one way to compute anything from it.
    fn is_independent(&self, set: &[usize]) -> bool {
        let row = |role: &usize| (0..self.code.k()).map(|i| self.code.generator(*role, i)).collect();
        rank(set.iter().map(row).collect()) == set.len()
    }
}

/// Rows that are independent, each reduced by those before it.
#[derive(Default)]
struct Basis {
    /// The column of the first non-zero entry, which is 1, and the row.
    rows: Vec<(usize, Vec<u8>)>,
}

impl Basis {
    /// Takes `row` if it is no combination of those that were taken.
    fn takes(&mut self, mut row: Vec<u8>) -> bool {
        for (pivot, taken) in &self.rows {
            let factor = row[*pivot];
            row.iter_mut().zip(taken).for_each(|(value, other)| *value ^= crate::gf::mul(factor, *other));
        }
        let Some(pivot) = row.iter().position(|value| *value != 0) else { return false };
        let scale = crate::gf::inverse(row[pivot]);
        row.iter_mut().for_each(|value| *value = crate::gf::mul(scale, *value));
        self.rows.push((pivot, row));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minors::choices;

    fn draw(state: &mut u64, limit: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % limit
    }

    /// The smallest sum of costs, by trying all sets.
    fn smallest(code: &Code, available: &[(usize, u32)], wanted: &[usize]) -> Option<u64> {
        let sets = (0..=available.len()).flat_map(|count| choices(available.len(), count));
        let costs = sets.filter_map(|set| {
            let roles: Vec<usize> = set.iter().map(|at| available[*at].0).collect();
            let sum = set.iter().map(|at| u64::from(available[*at].1)).sum();
            code.plan(&roles, wanted).is_ok().then_some(sum)
        });
        costs.min()
    }

    #[test]
    fn no_set_of_chunks_is_cheaper() {
        let codes = [
            Code::rs(4, 3),
            Code::lrc(4, 2, 2),
            Code::lrc(5, 2, 1),
            Code::rep(4),
            Code::xor(5),
            Code::rs(2, 5),
        ];
        let mut state = 7;
        for code in codes.map(Result::unwrap) {
            for round in 0..150 {
                let limit = [1, 3, 100][round % 3];
                let roles = (0..code.n()).filter(|_| draw(&mut state, 4) > 0);
                let available: Vec<(usize, u32)> = roles.map(|role| (role, 0)).collect();
                let available: Vec<(usize, u32)> = available
                    .into_iter()
                    .map(|(role, _)| (role, u32::try_from(draw(&mut state, limit)).unwrap() + 1))
                    .collect();
                let wanted = [usize::try_from(draw(&mut state, code.n() as u64)).unwrap()];
                let both = [wanted[0], (wanted[0] + 1) % code.n()];
                for wanted in [&wanted[..], if code.n() > 1 { &both[..] } else { &wanted[..] }] {
                    let smallest = smallest(&code, &available, wanted);
                    match code.cheapest_reads(&available, wanted) {
                        Ok(reads) => {
                            let cost =
                                |role: &usize| available.iter().find(|(other, _)| other == role).unwrap().1;
                            let sum: u64 = reads.iter().map(|role| u64::from(cost(role))).sum();
                            assert_eq!(Some(sum), smallest, "{code:?} {available:?} {wanted:?}: {reads:?}");
                            assert!(code.plan(&reads, wanted).is_ok());
                        }
                        Err(error) => {
                            assert_eq!(smallest, None, "{code:?} {available:?} {wanted:?}: {error}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_wide_code_takes_its_cheapest_chunks() {
        let code = Code::rs(128, 128).unwrap();
        let available: Vec<(usize, u32)> =
            (1..256).map(|role| (role, u32::try_from(256 - role).unwrap())).collect();
        assert_eq!(code.cheapest_reads(&available, &[0]).unwrap(), (128..256).collect::<Vec<_>>());
    }

    #[test]
    fn bad_lists_are_refused() {
        let code = Code::rs(2, 1).unwrap();
        let no_such = CodeError::NoSuchRole { role: 3, limit: 3 };
        assert_eq!(code.cheapest_reads(&[(3, 1)], &[0]).unwrap_err(), no_such);
        assert_eq!(code.cheapest_reads(&[(0, 1)], &[3]).unwrap_err(), no_such);
        assert_eq!(
            code.cheapest_reads(&[(0, 1), (0, 2)], &[1]).unwrap_err(),
            CodeError::Duplicate { role: 0 }
        );
        assert!(matches!(code.cheapest_reads(&[(0, 1)], &[1]), Err(CodeError::Undetermined { .. })));
    }
}
