//! What a launch computes: `outputs (^)= matrix * sources`.

use codec::{Code, CodeError, Plan};

/// A matrix over GF(2^8), one row for each output, and whether the sums replace what the outputs held or are added to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Matrix {
    columns: usize,
    coefficients: Vec<u8>,
    adds: bool,
}

impl Matrix {
    /// Rows of `columns` coefficients, one after the other.
    ///
    /// # Errors
    /// `Count` unless there is at least one whole row and nothing beside whole rows; `Bounds` beyond 256 rows or columns.
    pub fn new(columns: usize, coefficients: Vec<u8>) -> Result<Self, CodeError> {
        let rows = coefficients.len() / columns.max(1);
        if columns == 0 || rows == 0 || rows * columns != coefficients.len() {
            let expected = columns * rows.max(1);
            return Err(CodeError::Count { what: "coefficients", expected, found: coefficients.len() });
        }
        if columns > 256 || rows > 256 {
            return Err(CodeError::Bounds { k: columns, m: rows });
        }
        Ok(Self { columns, coefficients, adds: false })
    }

    /// All parities of `code` from its data.
    ///
    /// # Errors
    /// `Count` for a code without parities.
    pub fn encode(code: &Code) -> Result<Self, CodeError> {
        Self::new(code.k(), (0..code.m()).flat_map(|parity| code.row(parity).to_vec()).collect())
    }

    /// What `plan` computes.
    ///
    /// # Errors
    /// `Count` for a plan without outputs.
    pub fn plan(plan: &Plan) -> Result<Self, CodeError> {
        let (outputs, sources) = (plan.outputs().len(), plan.sources().len());
        let coefficients = (0..outputs).flat_map(|o| (0..sources).map(move |s| (o, s)));
        Self::new(sources, coefficients.map(|(o, s)| plan.coefficient(o, s)).collect())
    }

    /// The change of all parities of `code` when data role `role` changes: its delta is the only source, and the outputs are the
    /// parities themselves.
    ///
    /// # Errors
    /// `NoSuchRole` unless `role` is below `k`; `Count` for a code without parities.
    pub fn delta(code: &Code, role: usize) -> Result<Self, CodeError> {
        if role >= code.k() {
            return Err(CodeError::NoSuchRole { role, limit: code.k() });
        }
        let column = (0..code.m()).map(|parity| code.coefficient(parity, role)).collect();
        Ok(Self::new(1, column)?.adding())
    }

    /// The same in matrices of `rows` rows, and what is left over.
    pub(crate) fn rows_by(&self, rows: usize) -> Vec<Self> {
        let of = |coefficients: &[u8]| Self { coefficients: coefficients.to_vec(), ..self.clone() };
        self.coefficients.chunks(rows * self.columns).map(of).collect()
    }

    /// The same, added to what the outputs hold.
    #[must_use]
    pub fn adding(self) -> Self {
        Self { adds: true, ..self }
    }

    /// Sources.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Outputs.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.coefficients.len() / self.columns
    }

    /// Sources and outputs.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.columns + self.rows()
    }

    /// Row by row.
    #[must_use]
    pub fn coefficients(&self) -> &[u8] {
        &self.coefficients
    }

    /// Whether the sums are added to what the outputs hold.
    #[must_use]
    pub fn adds(&self) -> bool {
        self.adds
    }
}
