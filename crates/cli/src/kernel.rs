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

/// Says in the log which kernel codes, and why.
pub fn announce() {
    let kernel = codec::kernel();
    let rate = codec::calibrations().iter().find(|measured| measured.kernel == kernel);
    let gigabytes = rate.map_or(0.0, |measured| measured.bytes_per_second / 1e9);
    let chosen = if std::env::var_os(VARIABLE).is_some() { "by GESTALT_CODEC" } else { "the fastest here" };
    tracing::info!(kernel = kernel.name(), chosen, "codec: {gigabytes:.1} GB/s in a short measurement");
}
