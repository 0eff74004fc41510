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

/// The sum of a metric's samples on a page of metrics.
#[must_use]
pub fn metric(page: &str, name: &str) -> Option<u64> {
    let values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = rest.strip_prefix(' ').or_else(|| rest.rsplit_once("} ").map(|(_, value)| value))?;
        value.parse::<f64>().ok()
    });
    values.map(|value| value as u64).reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_metric_are_summed_up() {
        let page = "# HELP a_total x\na_total{worker=\"0\"} 2\na_total{worker=\"1\"} 3\na_total_other 9\n";
        assert_eq!(metric(page, "a_total"), Some(5));
        assert_eq!(metric("a_total 4\n", "a_total"), Some(4));
        assert_eq!(metric(page, "b_total"), None);
    }
}
