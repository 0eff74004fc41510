//! Why an operation of a code was refused. All of these are the caller's mistakes, or more losses than the code
//! bears; nothing was written to the outputs.

use thiserror::Error;

use crate::Family;

/// Why an operation of a [`Code`](crate::Code) was refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CodeError {
    /// No such code.
    #[error("a code needs k >= 1 and k + m <= 256, not k = {k}, m = {m}")]
    Bounds {
        /// Data roles asked for.
        k: usize,
        /// Parity roles asked for.
        m: usize,
    },
    /// An LRC whose local groups would be empty, or that has none.
    #[error("an LRC has at least one local group and at most one for each data role, not {l} for {k}")]
    Groups {
        /// Data roles asked for.
        k: usize,
        /// Local groups asked for.
        l: usize,
    },
    /// The family's matrix of this size has a singular square submatrix: losing its data roles and all parity roles
    /// but those of its rows could not be repaired.
    #[error(
        "{family}({k}+{m}) is not MDS: parity rows {rows:?} of data roles {columns:?} are linearly dependent"
    )]
    NotMds {
        /// The family asked for.
        family: Family,
        /// Data roles asked for.
        k: usize,
        /// Parity roles asked for.
        m: usize,
        /// The parity rows of the submatrix.
        rows: &'static [usize],
        /// The data roles of the submatrix.
        columns: &'static [usize],
    },
    /// The field has not points enough for a code of [`Family::Lch`].
    #[error("lch({k}+{m}) needs {k} + {points} points, and there are 256")]
    Points {
        /// Data roles asked for.
        k: usize,
        /// Parity roles asked for.
        m: usize,
        /// Points that the parities take: `m` rounded up to a power of two.
        points: usize,
    },
    /// A parity row of zeros.
    #[error("parity row {parity} is all zeros: a parity of nothing")]
    ZeroRow {
        /// Which one.
        parity: usize,
    },
    /// A generator matrix that does not determine the data from its first `k` rows.
    #[error("the first k rows of the generator matrix are linearly dependent")]
    Singular,
    /// A list has the wrong number of entries.
    #[error("{found} {what} where {expected} were expected")]
    Count {
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Byte strings that are combined have equal lengths.
    #[error("a chunk of {found} bytes among chunks of {expected} bytes")]
    Length {
        /// Length of the first one.
        expected: usize,
        /// The other length.
        found: usize,
    },
    /// There is nothing to compute on.
    #[error("chunks of no bytes")]
    Empty,
    /// The code has no such role (or, where a data or parity index is meant, no such index).
    #[error("role {role} is not below {limit}")]
    NoSuchRole {
        /// The role asked for.
        role: usize,
        /// The first that does not exist.
        limit: usize,
    },
    /// A role is listed twice.
    #[error("role {role} is listed twice")]
    Duplicate {
        /// The role.
        role: usize,
    },
    /// The role that is wanted is not among those called lost.
    #[error("role {role} is wanted but not listed as lost")]
    NotLost {
        /// The role.
        role: usize,
    },
    /// What is at hand does not determine the role: more was lost than the code bears.
    #[error("role {role} cannot be computed from the {present} chunks at hand")]
    Undetermined {
        /// The role.
        role: usize,
        /// How many chunks (or residuals) are at hand.
        present: usize,
    },
}
