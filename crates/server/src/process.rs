//! What the operating system counts for this process.

/// CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    pub user_seconds: f64,
    pub system_seconds: f64,
}

/// Ticks a second in `/proc`: fixed for every Linux that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;
/// Bytes of a page in `/proc`.
const PAGE_BYTES: u64 = 4096;

/// From `/proc`; none where there is none.
pub(crate) fn usage() -> Option<Usage> {
    parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Resident memory in bytes, from `/proc`; none where there is none.
pub(crate) fn resident_bytes() -> Option<u64> {
    parse_statm(&std::fs::read_to_string("/proc/self/statm").ok()?)
}

/// The second field counts resident pages.
fn parse_statm(statm: &str) -> Option<u64> {
    Some(statm.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? * PAGE_BYTES)
}

fn parse(stat: &str) -> Option<Usage> {
    // The name in parentheses may contain spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Usage {
        user_seconds: number(11)? as f64 / TICKS_PER_SECOND,
        system_seconds: number(12)? as f64 / TICKS_PER_SECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat =
            "1 (a ) b) S 1 1 1 0 -1 4194560 1 2 3 4 250 50 5 6 20 0 9 0 100 1000 7 18446744073709551615";
        let expected = Usage { user_seconds: 2.5, system_seconds: 0.5 };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse(""), None);
        assert_eq!((parse_statm("100 7 3 1 0 50 0\n"), parse_statm("100")), (Some(7 * 4096), None));
    }
}
