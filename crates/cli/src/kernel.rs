//! Which kernel codes: the fastest, or the one that `GESTALT_CODEC` names. Processes that are started inherit it.

use crate::exit::Exit;

/// The variable.
const VARIABLE: &str = "GESTALT_CODEC";

/// Puts the kernel of the environment to use, if there is one.
///
/// # Errors
/// One line with the names that would do.
pub fn choose() -> Result<(), Exit> {
    let Some(name) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let name = name.to_string_lossy();
    codec::select(&name).map_err(|error| Exit::usage(format_args!("{VARIABLE}: {error}")))
}
