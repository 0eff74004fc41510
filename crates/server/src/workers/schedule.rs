//! How the system schedules a worker's thread.

/// Which policy of the system a worker runs under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// A worker that wakes up does not push another one off its core (Linux: `SCHED_BATCH`). Where nodes or clients
    /// share cores, every message would otherwise cost a switch there and one back before the sender could add a second
    /// one; so this is what keeps batches together. On a core of its own a worker notices no difference.
    #[default]
    Batch,
    /// As any other thread.
    Normal,
}

impl Scheduling {
    /// Applies to the calling thread. A refusal costs speed only.
    pub(crate) fn apply(self) {
        #[cfg(target_os = "linux")]
        if self == Self::Batch && scheduler::set_self_policy(scheduler::Policy::Batch, 0).is_err() {
            tracing::debug!("the system refuses the batch policy");
        }
    }
}
