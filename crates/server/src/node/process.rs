//! What the operating system counts for this process; nothing where it does not tell.

#[cfg(target_os = "linux")]
pub(crate) use linux::{figures, resident_bytes};

/// Of this process, at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub virtual_bytes: u64,
    pub resident_bytes: u64,
    pub threads: i64,
    /// Since 1970.
    pub started_seconds: f64,
    pub open_files: Option<usize>,
    /// None without a limit.
    pub max_files: Option<u64>,
}

#[cfg(target_os = "linux")]
mod linux {
    use procfs::process::{LimitValue, Process};
    use procfs::{ProcResult, WithCurrentSystemInfo, page_size, ticks_per_second};

    use super::Figures;

    pub(crate) fn figures() -> Option<Figures> {
        read().ok()
    }

    fn read() -> ProcResult<Figures> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let ticks = ticks_per_second() as f64;
        let started = stat.starttime as f64 / ticks + procfs::boot_time_secs()? as f64;
        let limit = |value| match value {
            LimitValue::Value(value) => Some(value),
            LimitValue::Unlimited => None,
        };
        Ok(Figures {
            user_seconds: stat.utime as f64 / ticks,
            system_seconds: stat.stime as f64 / ticks,
            virtual_bytes: stat.vsize,
            resident_bytes: stat.rss_bytes().get(),
            threads: stat.num_threads,
            started_seconds: started,
            open_files: process.fd_count().ok(),
            max_files: process.limits().ok().and_then(|limits| limit(limits.max_open_files.soft_limit)),
        })
    }

    /// Resident memory.
    pub(crate) fn resident_bytes() -> Option<u64> {
        let pages = Process::myself().ok()?.statm().ok()?.resident;
        Some(pages * page_size())
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn figures() -> Option<Figures> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_bytes() -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_figures_that_make_sense() {
        let found = figures().unwrap();
        assert!(found.resident_bytes >= 1 << 20 && found.resident_bytes <= found.virtual_bytes, "{found:?}");
        assert!(resident_bytes().unwrap().abs_diff(found.resident_bytes) < 64 << 20);
        assert!(found.threads >= 1 && found.open_files.unwrap() >= 3, "{found:?}");
        assert!(found.max_files.is_none_or(|most| most >= found.open_files.unwrap() as u64));
        let now = f64::from(crate::clock::unix_seconds().0);
        assert!((now - 3600.0..=now + 2.0).contains(&found.started_seconds), "{found:?} at {now}");
    }
}
