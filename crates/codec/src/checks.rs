//! What all operations check of what they are given: roles, counts, lengths.

use crate::CodeError;
use crate::chunks::Chunks;

/// Refuses roles at or beyond `limit`, and roles that are listed twice.
pub(crate) fn check_roles(roles: &[usize], limit: usize) -> Result<(), CodeError> {
    for (index, role) in roles.iter().enumerate() {
        check_role(*role, limit)?;
        if roles[..index].contains(role) {
            return Err(CodeError::Duplicate { role: *role });
        }
    }
    Ok(())
}

/// Refuses a role at or beyond `limit`.
#[inline]
pub(crate) fn check_role(role: usize, limit: usize) -> Result<(), CodeError> {
    if role < limit { Ok(()) } else { Err(no_such_role(role, limit)) }
}

#[cold]
fn no_such_role(role: usize, limit: usize) -> CodeError {
    CodeError::NoSuchRole { role, limit }
}

/// Refuses a list of the wrong size.
#[inline]
pub(crate) fn check_count(what: &'static str, expected: usize, found: usize) -> Result<(), CodeError> {
    if found == expected { Ok(()) } else { Err(wrong_count(what, expected, found)) }
}

#[cold]
fn wrong_count(what: &'static str, expected: usize, found: usize) -> CodeError {
    CodeError::Count { what, expected, found }
}

/// Refuses byte strings of different lengths, and empty ones.
pub(crate) fn check_lengths(sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), CodeError> {
    Chunks::new(sources, outputs).map(|_| ())
}
