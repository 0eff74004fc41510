//! What processes say of themselves over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

/// Longest wait for a page, and its most bytes.
const PAGE_LIMIT: Duration = Duration::from_secs(5);
const PAGE_BYTES: u64 = 64 << 20;

/// A page of a node or of the coordinator.
///
/// # Errors
/// One line if it cannot be had.
pub fn page(address: SocketAddr, path: &str) -> Result<String, String> {
    let config = ureq::Agent::config_builder().timeout_global(Some(PAGE_LIMIT)).build();
    let answer = ureq::Agent::new_with_config(config).get(format!("http://{address}{path}")).call();
    let mut answer = answer.map_err(|error| format!("http://{address}{path}: {error}"))?;
    let body = answer.body_mut().with_config().limit(PAGE_BYTES).read_to_string();
    body.map_err(|error| error.to_string())
}
