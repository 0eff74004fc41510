//! Scenarios in plain words: every case of the group protocol, section 7, that does not need learners or migration.
//!
//! Each story ends with everything mended, all calls ended, all roles whole (or lost for a reason), every parity equal
//! to the encoding of the primaries' memory, every index replica equal, and every key read once more; see
//! `sim::Story`. All invariants of the simulator hold at every step of every story.

mod accepted;
mod codes;
mod commit;
mod counting;
mod exchanges;
mod forming;
mod late_settle;
mod learners;
mod limits;
mod losses;
mod moves;
mod numbers;
mod partition;
mod reconnect;
mod rejoin;
mod repair;
mod scrub;
mod succession;
mod takeover;
mod vain_hand_over;
mod zombie;
