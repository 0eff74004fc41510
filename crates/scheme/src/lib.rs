//! Names of codes, as people write them: `rs(3+2)`, `lrc(12,2,2)`, `isal-cauchy(10+4)`. Nothing is computed here: the codec makes codes of
//! them, clusters protect groups with them.

mod family;
mod scheme;

pub use family::{Family, UnknownFamily};
pub use scheme::{MAX_ROLES, Scheme, UnknownScheme};
