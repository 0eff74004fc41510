//! The code that a profile asks for.

use codec::{Code, CodeError};
use types::Profile;

/// The code of the groups of `profile`.
///
/// # Errors
/// None for any profile that there is; the codec's word for it.
pub fn code_of(profile: Profile) -> Result<Code, CodeError> {
    if profile.is_copies() { Code::rep(profile.n()) } else { Code::rs(profile.k(), profile.m()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_copies() {
        let code = code_of(Profile::rep(3).unwrap()).unwrap();
        assert_eq!((code.k(), code.m()), (1, 2));
        assert!((0..2).all(|parity| code.coefficient(parity, 0) == 1));
    }
}
