//! Which losses a code repairs, and from how few chunks.

use crate::checks::check_roles;
use crate::plan::Plan;
use crate::solve::rank;
use crate::{Code, CodeError};

/// Most sparse parity rows whose subsets are all tried.
const MAX_SPARSE_ROWS: usize = 10;

/// # Losses and repair
impl Code {
    /// Whether everything can be computed when the roles `lost` are not there: the exact answer, for any code.
    ///
    /// # Errors
    /// `NoSuchRole` or `Duplicate` for a bad list.
    pub fn decodable(&self, lost: &[usize]) -> Result<bool, CodeError> {
        check_roles(lost, self.n())?;
        let data: Vec<usize> = lost.iter().copied().filter(|role| *role < self.k()).collect();
        let parities = (0..self.m()).filter(|j| !lost.contains(&(self.k() + j)));
        let rows = parities.map(|j| data.iter().map(|i| self.coefficient(j, *i)).collect()).collect();
        Ok(rank(rows) == data.len())
    }

    /// The data roles of `lost` that nothing determines any more when the roles `lost` are not there; none of them if all can be
    /// computed.
    ///
    /// # Errors
    /// `NoSuchRole` or `Duplicate` for a bad list.
    pub fn undetermined(&self, lost: &[usize]) -> Result<Vec<usize>, CodeError> {
        if self.decodable(lost)? {
            return Ok(Vec::new());
        }
        let present: Vec<usize> = (0..self.n()).filter(|role| !lost.contains(role)).collect();
        let data = lost.iter().copied().filter(|role| *role < self.k());
        Ok(data.filter(|role| self.plan(&present, &[*role]).is_err()).collect())
    }

    /// How to compute the roles `wanted` while the roles `lost` are not there (`wanted` is usually some or all of
    /// them), reading as few chunks as possible: [`Plan::sources`] are the helpers.
    ///
    /// The fewest reads are found for Reed-Solomon codes, LRCs, copies and XORs. For other matrices the plan has no
    /// superfluous helper, but a smaller set might exist where the code has many sparse rows.
    ///
    /// # Errors
    /// `NoSuchRole`, `Duplicate`, or `Undetermined` if too much is lost.
    pub fn cheapest_plan(&self, lost: &[usize], wanted: &[usize]) -> Result<Plan, CodeError> {
        check_roles(lost, self.n())?;
        check_roles(wanted, self.n())?;
        let present: Vec<usize> = (0..self.n()).filter(|role| !lost.contains(role)).collect();
        let mut best = self.pruned_plan(present, wanted)?;
        let search = Search::new(self, lost, wanted);
        for parities in search.parity_sets() {
            if let Ok(plan) = search.plan_with(&parities)
                && plan.sources().len() < best.sources().len()
            {
                best = plan;
            }
        }
        Ok(best)
    }

    /// The fewest roles to read for computing `wanted` while `lost` are not there, in ascending order. How many they
    /// are is the minimum of reads. See [`Code::cheapest_plan`].
    ///
    /// # Errors
    /// As [`Code::cheapest_plan`].
    pub fn helpers(&self, lost: &[usize], wanted: &[usize]) -> Result<Vec<usize>, CodeError> {
        let mut helpers = self.cheapest_plan(lost, wanted)?.sources().to_vec();
        helpers.sort_unstable();
        Ok(helpers)
    }

    /// A plan from some of the roles `present`: each source in turn is left out if the others do without it.
    fn pruned_plan(&self, mut present: Vec<usize>, wanted: &[usize]) -> Result<Plan, CodeError> {
        let mut plan = self.plan(&present, wanted)?;
        present = plan.sources().to_vec();
        if !self.has_slack(&present) {
            return Ok(plan);
        }
        for role in present.clone() {
            let without: Vec<usize> = plan.sources().iter().copied().filter(|other| *other != role).collect();
            if let Ok(smaller) = self.plan(&without, wanted) {
                plan = smaller;
            }
        }
        Ok(plan)
    }

    /// Whether there is more than one way to compute something from `present`: a parity more than unknowns.
    fn has_slack(&self, present: &[usize]) -> bool {
        let parities: Vec<usize> = present.iter().copied().filter(|role| *role >= self.k()).collect();
        let unknown: Vec<usize> = (0..self.k()).filter(|role| !present.contains(role)).collect();
        let row = |q: &usize| unknown.iter().map(|i| self.generator(*q, *i)).collect();
        rank(parities.iter().map(row).collect()) < parities.len()
    }
}

/// The search for the cheapest plan. A plan is given by the parities it reads, once nothing can be left out of it.
/// Dense rows are alike, so only their number is varied; of sparse ones all subsets are tried.
struct Search<'a> {
    code: &'a Code,
    wanted: &'a [usize],
    data: Vec<usize>,
    sparse: Vec<usize>,
    dense: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(code: &'a Code, lost: &[usize], wanted: &'a [usize]) -> Self {
        let present = |role: &usize| !lost.contains(role);
        let weight = |role: usize| (0..code.k()).filter(|i| code.generator(role, *i) != 0).count();
        let is_dense = |role: &usize| weight(*role) == code.k() && code.k() > 1;
        let lost_data: Vec<usize> = lost.iter().copied().filter(|role| *role < code.k()).collect();
        let touches = |role: &usize| {
            let needed = lost_data.iter().chain(wanted).copied();
            needed.into_iter().any(|needed| overlap(code, *role, needed))
        };
        let parities = (code.k()..code.n()).filter(present);
        let (mut dense, mut sparse): (Vec<usize>, Vec<usize>) = parities.partition(is_dense);
        dense.truncate(lost_data.len() + 1);
        sparse.sort_by_key(|role| (!touches(role), weight(*role), *role));
        sparse.truncate(MAX_SPARSE_ROWS);
        Self { code, wanted, data: (0..code.k()).filter(present).collect(), sparse, dense }
    }

    fn parity_sets(&self) -> impl Iterator<Item = Vec<usize>> {
        let subsets = if self.sparse.is_empty() { 0 } else { 1usize << self.sparse.len() };
        (0..subsets).flat_map(move |subset| {
            let chosen = self.sparse.iter().enumerate().filter(move |(bit, _)| subset >> bit & 1 == 1);
            let chosen: Vec<usize> = chosen.map(|(_, role)| *role).collect();
            (0..=self.dense.len()).map(move |count| [&chosen, &self.dense[..count]].concat())
        })
    }

    fn plan_with(&self, parities: &[usize]) -> Result<Plan, CodeError> {
        self.code.pruned_plan([&self.data, parities].concat(), self.wanted)
    }
}

/// Whether the rows of two roles have a data role in common.
fn overlap(code: &Code, a: usize, b: usize) -> bool {
    (0..code.k()).any(|i| code.generator(a, i) != 0 && code.generator(b, i) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minors::choices;

    /// The fewest chunks from which `wanted` can be computed, by trying all sets.
    fn fewest_reads(code: &Code, lost: &[usize], wanted: &[usize]) -> usize {
        let present: Vec<usize> = (0..code.n()).filter(|role| !lost.contains(role)).collect();
        let determined = |set: &Vec<usize>| {
            code.plan(&set.iter().map(|at| present[*at]).collect::<Vec<_>>(), wanted).is_ok()
        };
        (0..=code.k()).find(|count| choices(present.len(), *count).iter().any(&determined)).unwrap()
    }

    #[test]
    fn the_cheapest_plan_reads_as_little_as_any() {
        let codes = [
            Code::rs(4, 3),
            Code::rs(1, 3),
            Code::lrc(4, 2, 2),
            Code::lrc(6, 2, 2),
            Code::lrc(6, 3, 1),
            Code::lrc(5, 2, 3),
            Code::lrc(3, 3, 1),
            Code::rep(4),
            Code::mirrors(3, &[0, 1, 2, 1]),
            Code::xor(5),
        ];
        for code in codes.map(Result::unwrap) {
            for lost in (1..=code.m()).flat_map(|count| choices(code.n(), count)) {
                for wanted in [&lost[..1], &lost[lost.len() - 1..], &lost[..]] {
                    let Ok(plan) = code.cheapest_plan(&lost, wanted) else {
                        assert!(!code.decodable(&lost).unwrap(), "{code:?} without {lost:?}");
                        continue;
                    };
                    let fewest = fewest_reads(&code, &lost, wanted);
                    assert_eq!(plan.sources().len(), fewest, "{code:?} without {lost:?}: {wanted:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_undetermined_is_what_no_set_of_the_others_gives() {
        for code in [Code::lrc(4, 2, 1), Code::mirrors(3, &[0, 1, 2]), Code::rs(3, 2)].map(Result::unwrap) {
            for lost in (0..=code.n()).flat_map(|count| choices(code.n(), count)) {
                let undetermined = code.undetermined(&lost).unwrap();
                assert_eq!(
                    undetermined.is_empty(),
                    code.decodable(&lost).unwrap(),
                    "{code:?} without {lost:?}"
                );
                let present: Vec<usize> = (0..code.n()).filter(|role| !lost.contains(role)).collect();
                for role in lost.iter().copied().filter(|role| *role < code.k()) {
                    assert_eq!(code.plan(&present, &[role]).is_ok(), !undetermined.contains(&role));
                }
            }
        }
        assert_eq!(Code::lrc(4, 2, 1).unwrap().undetermined(&[0, 1, 2, 4, 6]).unwrap(), [0, 1]);
    }

    #[test]
    fn no_helper_is_superfluous_with_any_matrix() {
        let odd: [&[u8]; 4] = [&[1, 1, 1, 1, 1], &[0, 0, 1, 1, 1], &[0, 1, 1, 0, 0], &[7, 1, 0, 3, 3]];
        let code = Code::custom(5, &odd).unwrap();
        let decodable = |lost: &Vec<usize>| code.decodable(lost).unwrap();
        for lost in (1..=4).flat_map(|count| choices(9, count)).filter(decodable) {
            let helpers = code.helpers(&lost, &lost).unwrap();
            for left_out in &helpers {
                let fewer: Vec<usize> = helpers.iter().copied().filter(|role| role != left_out).collect();
                assert!(code.plan(&fewer, &lost).is_err(), "{lost:?}: {helpers:?} without {left_out}");
            }
        }
    }

    #[test]
    fn wide_codes_are_planned_too() {
        let rs = Code::rs(128, 128).unwrap();
        let lost: Vec<usize> = (0..64).map(|i| i * 2).collect();
        assert_eq!(rs.helpers(&lost, &lost[..1]).unwrap().len(), 128);
        let mirrors = Code::mirrors(128, &(0..128).collect::<Vec<_>>()).unwrap();
        assert_eq!(mirrors.helpers(&[100], &[100]).unwrap(), [228]);
        let lrc = Code::lrc(200, 20, 4).unwrap();
        assert_eq!(lrc.helpers(&[55], &[55]).unwrap().len(), 10);
    }

    #[test]
    fn too_many_losses_and_bad_lists_are_refused() {
        let code = Code::rs(3, 2).unwrap();
        let undetermined = CodeError::Undetermined { role: 0, present: 2 };
        assert_eq!(code.cheapest_plan(&[0, 1, 4], &[0]).unwrap_err(), undetermined);
        assert_eq!(code.helpers(&[5], &[0]).unwrap_err(), CodeError::NoSuchRole { role: 5, limit: 5 });
        assert_eq!(code.decodable(&[1, 1]).unwrap_err(), CodeError::Duplicate { role: 1 });
    }
}
