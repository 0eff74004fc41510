//! How long steps take, and which part of that is compiling.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static COMPILING: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Counts what `build` takes as compiling.
pub fn compiling<T>(build: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let built = build();
    COMPILING.set(COMPILING.get() + started.elapsed());
    built
}

/// What something took.
#[derive(Clone, Copy)]
pub struct Took {
    pub wall: Duration,
    pub compiling: Duration,
    /// Of this process's children; none where the system does not say.
    pub cpu: Option<Duration>,
}

impl Took {
    /// What `act` takes.
    pub fn by<T>(act: impl FnOnce() -> T) -> (T, Self) {
        let (started, compiled, cpu) = (Instant::now(), COMPILING.get(), childrens_cpu());
        let result = act();
        let cpu = childrens_cpu().zip(cpu).map(|(after, before)| after.saturating_sub(before));
        (result, Self { wall: started.elapsed(), compiling: COMPILING.get() - compiled, cpu })
    }
}

/// A line of a table: wall time, compiling, processors, in seconds.
impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cpu = self.cpu.map_or("?".to_owned(), |cpu| format!("{:.0}", cpu.as_secs_f64()));
        write!(f, "{:>8.0} {:>10.0} {cpu:>10}", self.wall.as_secs_f64(), self.compiling.as_secs_f64())
    }
}

/// Processor time of children that have ended, as Linux tells it.
fn childrens_cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    ticks(&stat).map(|ticks| Duration::from_millis(ticks * MS_PER_TICK))
}

/// `USER_HZ` is 100 on every Linux.
const MS_PER_TICK: u64 = 10;

/// `cutime` and `cstime`, fields 16 and 17 of `/proc/PID/stat`. The second field may contain anything, in parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_childrens_ticks_are_found() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 5 6 7 8 11 12 130 14 20 0 1 0 3 4 5";
        assert_eq!(ticks(stat), Some(144));
        assert_eq!(ticks("7 (x) S 1"), None);
    }

    #[test]
    fn what_is_counted_as_compiling_is_told() {
        let pause = || std::thread::sleep(Duration::from_millis(1));
        let ((), took) = Took::by(|| {
            compiling(pause);
            pause();
        });
        assert!(took.compiling > Duration::ZERO && took.compiling < took.wall);
    }
}
