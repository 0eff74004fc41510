//! What the operating system counts for this process.

/// CPU time and memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub resident_bytes: u64,
}

/// Ticks a second in `/proc`: fixed for every Linux that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;
/// Bytes of a page in `/proc`.
const PAGE_BYTES: u64 = 4096;

/// From `/proc`; none where there is none.
pub(crate) fn usage() -> Option<Usage> {
    parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

fn parse(stat: &str) -> Option<Usage> {
    // The name in parentheses may contain spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Usage {
        user_seconds: number(11)? as f64 / TICKS_PER_SECOND,
        system_seconds: number(12)? as f64 / TICKS_PER_SECOND,
        resident_bytes: number(21)? * PAGE_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat =
            "1 (a ) b) S 1 1 1 0 -1 4194560 1 2 3 4 250 50 5 6 20 0 9 0 100 1000 7 18446744073709551615";
        let expected = Usage { user_seconds: 2.5, system_seconds: 0.5, resident_bytes: 7 * 4096 };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse(""), None);
    }
}
