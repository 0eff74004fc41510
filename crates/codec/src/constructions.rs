//! The codes: from a few numbers to the rows of a matrix. `docs/coding.md` derives them.

use crate::checks::check_count;
use crate::solve::solve;
use crate::{Code, CodeError, Family, Scheme, generators, lrc};

pub use scheme::MAX_ROLES;

/// # Constructions
impl Code {
    /// The code of this name.
    ///
    /// ```
    /// let code = codec::Code::of("lrc(12,2,2)".parse().expect("a scheme"))?;
    /// assert_eq!(code.n(), 16);
    /// # Ok::<(), codec::CodeError>(())
    /// ```
    ///
    /// # Errors
    /// As the constructor of the code: the numbers may be out of its bounds.
    pub fn of(scheme: Scheme) -> Result<Self, CodeError> {
        match scheme {
            Scheme::Rs { family, k, m } => Self::of_family(family, k, m),
            Scheme::Lrc { k, l, r } => Self::lrc(k, l, r),
            Scheme::Rep { n } => Self::rep(n),
            Scheme::Mirror { k } if k > MAX_ROLES / 2 => Err(CodeError::Bounds { k, m: k }),
            Scheme::Mirror { k } => Self::mirrors(k, &(0..k).collect::<Vec<_>>()),
            Scheme::Xor { k } => Self::xor(k),
        }
    }

    /// The Reed-Solomon code with `k` data and `m` parity roles: any `k` of the `k + m` chunks determine the rest.
    /// `m = 0` is no protection. The matrix is the one of [`Family::CauchyXor`]: its first row is all ones, so parity
    /// role `k` is the XOR of the data, and wider codes extend narrower ones.
    ///
    /// ```
    /// let code = codec::Code::rs(10, 4)?;
    /// assert_eq!((code.k(), code.m(), code.n()), (10, 4, 14));
    /// assert!(code.decodable(&[0, 3, 9, 11])?);
    /// assert!(!code.decodable(&[0, 3, 9, 11, 12])?);
    /// # Ok::<(), codec::CodeError>(())
    /// ```
    ///
    /// # Errors
    /// `Bounds` unless `k >= 1` and `k + m <= 256`.
    pub fn rs(k: usize, m: usize) -> Result<Self, CodeError> {
        Self::of_family(Family::CauchyXor, k, m)
    }

    /// The Reed-Solomon code with the matrix that `family` makes: for exchanging chunks with other libraries.
    ///
    /// # Errors
    /// `Bounds` unless `k >= 1` and `k + m <= 256`; `NotMds` where some `m` losses could not be repaired; `Points` where the
    /// field is too small for the family.
    pub fn of_family(family: Family, k: usize, m: usize) -> Result<Self, CodeError> {
        check_bounds(k, m)?;
        let code = Self::from_rows(k, generators::rows(family, k, m)?);
        Ok(if family == Family::Lch { code.with_transform() } else { code })
    }

    /// A local reconstruction code in the sense of Azure Storage: `k` data roles in `l` local groups of (nearly) equal
    /// size, role `i` in group `i * l / k`; then `l` local parities, each the XOR of its group; then `r` global
    /// parities. One loss in a group is repaired from that group alone.
    ///
    /// Any `r + 1` losses are repaired. With `r <= 2`, at most 17 groups of at most 15 data roles (`r = 2`) or any
    /// groups of at most 255 (`r = 1`), the code is maximally recoverable: it repairs every loss that any code with
    /// these groups can, which is one per group and `r` more, wherever they are. Beyond that it is a pyramid code
    /// ([`Code::rs`] with its first row cut into groups), and [`Code::decodable`] says which losses it repairs.
    ///
    /// ```
    /// let code = codec::Code::lrc(12, 2, 2)?;
    /// assert_eq!(code.n(), 16);
    /// // One lost chunk is made from the five others of its group and their XOR.
    /// assert_eq!(code.helpers(&[3], &[3])?, [0, 1, 2, 4, 5, 12]);
    /// assert!(code.decodable(&[0, 1, 2, 6])?);
    /// # Ok::<(), codec::CodeError>(())
    /// ```
    ///
    /// # Errors
    /// `Groups` unless `1 <= l <= k`; `Bounds` unless `k >= 1` and `k + l + r <= 256`.
    pub fn lrc(k: usize, l: usize, r: usize) -> Result<Self, CodeError> {
        check_bounds(k, l.saturating_add(r))?;
        if l == 0 || l > k {
            return Err(CodeError::Groups { k, l });
        }
        Ok(Self::from_rows(k, lrc::rows(k, l, r)))
    }

    /// `n` copies: one data role and `n - 1` parity roles that hold the same.
    ///
    /// # Errors
    /// `Bounds` unless `1 <= n <= 256`.
    pub fn rep(n: usize) -> Result<Self, CodeError> {
        let m = n.checked_sub(1).ok_or(CodeError::Bounds { k: 0, m: 0 })?;
        Self::mirrors(1, &vec![0; m.min(MAX_ROLES)])
    }

    /// `k` data roles, and a copy of each one named in `mirrored`: parity row `j` is the unit row of data role
    /// `mirrored[j]`. A role may be mirrored any number of times.
    ///
    /// # Errors
    /// `Bounds` unless `k >= 1` and `k + mirrored.len() <= 256`; `NoSuchRole` for a role not below `k`.
    pub fn mirrors(k: usize, mirrored: &[usize]) -> Result<Self, CodeError> {
        check_bounds(k, mirrored.len())?;
        if let Some(role) = mirrored.iter().find(|role| **role >= k) {
            return Err(CodeError::NoSuchRole { role: *role, limit: k });
        }
        let unit_row = |role: usize| (0..k).map(move |i| u8::from(i == role));
        Ok(Self::from_rows(k, mirrored.iter().flat_map(|role| unit_row(*role)).collect()))
    }

    /// `k` data roles and their XOR.
    ///
    /// # Errors
    /// `Bounds` unless `1 <= k <= 255`.
    pub fn xor(k: usize) -> Result<Self, CodeError> {
        check_bounds(k, 1)?;
        Ok(Self::from_rows(k, vec![1; k]))
    }

    /// `k` data roles and any parity rows. Such a code need not be MDS; [`Code::decodable`] says what it repairs.
    ///
    /// ```
    /// let code = codec::Code::custom(3, &[&[1, 1, 0], &[0, 1, 1]])?;
    /// assert!(code.decodable(&[0, 2])? && !code.decodable(&[0, 1, 2])?);
    /// # Ok::<(), codec::CodeError>(())
    /// ```
    ///
    /// # Errors
    /// `Bounds` unless `k >= 1` and `k + rows.len() <= 256`; `Count` for a row that has not `k` coefficients;
    /// `ZeroRow` for a row of zeros, which would be a parity of nothing.
    pub fn custom(k: usize, rows: &[&[u8]]) -> Result<Self, CodeError> {
        check_bounds(k, rows.len())?;
        for (parity, row) in rows.iter().enumerate() {
            check_count("coefficients of a row", k, row.len())?;
            if row.iter().all(|coefficient| *coefficient == 0) {
                return Err(CodeError::ZeroRow { parity });
            }
        }
        Ok(Self::from_rows(k, rows.concat()))
    }

    /// The systematic form of any generator matrix: `generator` has `n` rows of `k`, and the code is the one whose
    /// words are `generator * message`, with the first `k` chunks as data. The parity rows are the last `n - k` rows
    /// times the inverse of the first `k`.
    ///
    /// # Errors
    /// As [`Code::custom`], and `Singular` if the first `k` rows are linearly dependent.
    pub fn systematic(k: usize, generator: &[&[u8]]) -> Result<Self, CodeError> {
        let m = generator.len().checked_sub(k).ok_or(CodeError::Count {
            what: "rows of a generator",
            expected: k,
            found: generator.len(),
        })?;
        check_bounds(k, m)?;
        generator.iter().try_for_each(|row| check_count("coefficients of a row", k, row.len()))?;
        // A parity row y satisfies y * top = row: one equation for each column, one unknown for each row of `top`.
        let (top, parities) = generator.split_at(k);
        let equation = |c: usize| top.iter().chain(parities).map(|row| row[c]).collect();
        let equations: Vec<Vec<u8>> = (0..k).map(equation).collect();
        if crate::solve::rank(top.iter().map(|row| row.to_vec()).collect()) < k {
            return Err(CodeError::Singular);
        }
        let solution = solve(equations, k, m).map_err(|_| CodeError::Singular)?;
        let rows: Vec<Vec<u8>> = (0..m).map(|j| solution.iter().map(|y| y[j]).collect()).collect();
        Self::custom(k, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// Refuses what GF(2^8) has no code for.
fn check_bounds(k: usize, m: usize) -> Result<(), CodeError> {
    if k >= 1 && k.saturating_add(m) <= MAX_ROLES { Ok(()) } else { Err(CodeError::Bounds { k, m }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minors::{dependent_minor, is_regular};

    #[test]
    fn every_square_submatrix_of_small_codes_is_regular() {
        for (k, m) in [(3, 2), (6, 3), (10, 4), (8, 8)] {
            assert_eq!(dependent_minor(&Code::rs(k, m).unwrap()), None, "{k}+{m}");
        }
    }

    #[test]
    fn sampled_submatrices_of_wide_codes_are_regular() {
        let mut state = 1u64;
        let mut draw = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for (k, m) in [(32, 8), (128, 128), (200, 56), (1, 255), (255, 1)] {
            let code = Code::rs(k, m).unwrap();
            for _ in 0..60 {
                let size = 1 + draw(k.min(m).min(12));
                let mut distinct = |limit: usize| {
                    let mut chosen: Vec<usize> = Vec::new();
                    while chosen.len() < size {
                        let candidate = draw(limit);
                        if !chosen.contains(&candidate) {
                            chosen.push(candidate);
                        }
                    }
                    chosen
                };
                let (rows, columns) = (distinct(m), distinct(k));
                assert!(is_regular(&code, &rows, &columns), "{k}+{m}: {rows:?} {columns:?}");
            }
        }
    }

    #[test]
    fn the_first_parity_is_the_xor_and_wider_codes_extend_narrower_ones() {
        let wide = Code::rs(200, 56).unwrap();
        let narrow = Code::rs(3, 2).unwrap();
        assert!((0..200).all(|i| wide.coefficient(0, i) == 1));
        for (j, i) in [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)] {
            assert_eq!(wide.coefficient(j, i), narrow.coefficient(j, i));
        }
    }

    #[test]
    fn codes_out_of_bounds_are_refused() {
        for (k, m) in [(0, 0), (0, 3), (257, 0), (256, 1), (1, 256), (usize::MAX, 2), (2, usize::MAX)] {
            assert_eq!(Code::rs(k, m).unwrap_err(), CodeError::Bounds { k, m });
        }
        assert_eq!(Code::rs(256, 0).unwrap().n(), 256);
        assert_eq!(Code::rep(0).unwrap_err(), CodeError::Bounds { k: 0, m: 0 });
        assert!(matches!(Code::rep(usize::MAX), Err(CodeError::Bounds { .. })));
        assert_eq!(Code::rep(256).unwrap().n(), 256);
        assert_eq!(Code::xor(256).unwrap_err(), CodeError::Bounds { k: 256, m: 1 });
        assert_eq!(Code::lrc(4, 0, 2).unwrap_err(), CodeError::Groups { k: 4, l: 0 });
        assert_eq!(Code::lrc(4, 5, 2).unwrap_err(), CodeError::Groups { k: 4, l: 5 });
        assert!(matches!(Code::lrc(4, usize::MAX, usize::MAX), Err(CodeError::Bounds { .. })));
        assert_eq!(Code::mirrors(2, &[0, 2]).unwrap_err(), CodeError::NoSuchRole { role: 2, limit: 2 });
    }

    #[test]
    fn bad_matrices_are_refused_with_the_reason() {
        let count = |found| CodeError::Count { what: "coefficients of a row", expected: 2, found };
        assert_eq!(Code::custom(2, &[&[1, 1], &[1]]).unwrap_err(), count(1));
        assert_eq!(Code::custom(2, &[&[1, 1], &[0, 0]]).unwrap_err(), CodeError::ZeroRow { parity: 1 });
        assert_eq!(Code::custom(0, &[]).unwrap_err(), CodeError::Bounds { k: 0, m: 0 });
        assert_eq!(Code::systematic(2, &[&[1, 2], &[2, 4], &[1, 1]]).unwrap_err(), CodeError::Singular);
        assert_eq!(Code::systematic(2, &[&[1, 2], &[2, 5, 1], &[1, 1]]).unwrap_err(), count(3));
        let rows = CodeError::Count { what: "rows of a generator", expected: 2, found: 1 };
        assert_eq!(Code::systematic(2, &[&[1, 2]]).unwrap_err(), rows);
    }

    #[test]
    fn a_systematic_form_has_the_words_of_its_generator() {
        let generator: [&[u8]; 5] = [&[1, 2, 4], &[1, 3, 5], &[1, 7, 21], &[9, 1, 1], &[0, 0, 6]];
        let code = Code::systematic(3, &generator).unwrap();
        let message = [77, 0, 201];
        let symbol = |row: &[u8]| row.iter().zip(message).fold(0, |sum, (c, x)| sum ^ crate::gf::mul(*c, x));
        let word: Vec<u8> = generator.iter().map(|row| symbol(row)).collect();
        for j in 0..2 {
            let parity = (0..3).fold(0, |sum, i| sum ^ crate::gf::mul(code.coefficient(j, i), word[i]));
            assert_eq!(parity, word[3 + j]);
        }
    }

    #[test]
    fn the_tolerance_is_how_many_losses_are_always_decodable() {
        let schemes =
            ["rs(4+3)", "lrc(4,2,2)", "lrc(6,3,0)", "lrc(5,2,3)", "rep(4)", "mirror(3)", "xor(4+1)", "none"];
        for scheme in schemes.map(|text| text.parse::<Scheme>().unwrap()) {
            let code = Code::of(scheme).unwrap();
            let survives = |count| {
                crate::minors::choices(code.n(), count).iter().all(|lost| code.decodable(lost).unwrap())
            };
            assert!(survives(scheme.tolerance()), "{scheme}");
            assert!(!survives(scheme.tolerance() + 1), "{scheme}");
        }
    }

    #[test]
    fn numbers_out_of_bounds_are_refused_when_the_code_is_made() {
        for text in
            ["rs(0+2)", "rs(200+57)", "mirror(999999999)", "rep(0)", "rep(257)", "xor(0+1)", "lrc(4,5,1)"]
        {
            assert!(Code::of(text.parse().unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_scheme_exists_if_there_is_its_code() {
        let sizes = [0, 1, 2, 3, 4, 5, 6, 7, 21, 22, 23, 64, 127, 128, 129, 200, 255, 256, 257];
        let pairs = || sizes.into_iter().flat_map(move |a| sizes.into_iter().map(move |b| (a, b)));
        let families =
            Family::ALL.into_iter().flat_map(|family| pairs().map(move |(k, m)| Scheme::Rs { family, k, m }));
        let lrcs = pairs().flat_map(|(k, l)| [0, 2, 250].map(|r| Scheme::Lrc { k, l, r }));
        let others = sizes
            .into_iter()
            .flat_map(|n| [Scheme::Rep { n }, Scheme::Mirror { k: n }, Scheme::Xor { k: n }]);
        for scheme in families.chain(lrcs).chain(others) {
            assert_eq!(Code::of(scheme).is_ok(), scheme.exists(), "{scheme}");
        }
    }

    #[test]
    fn a_scheme_says_how_many_roles_its_code_has() {
        for text in ["rs(4+3)", "lch(4+3)", "lrc(6,2,2)", "rep(4)", "mirror(3)", "xor(4+1)", "none"] {
            let scheme: Scheme = text.parse().unwrap();
            let code = Code::of(scheme).unwrap();
            assert_eq!((scheme.k(), scheme.m()), (code.k(), code.m()), "{text}");
        }
    }
}
