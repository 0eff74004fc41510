//! The same world, moved by hand: for scenarios in plain words.
//!
//! A story begins with a healthy cluster and exact clocks, every message takes 50 us. Whatever it does, the checks of
//! the simulator look on; [`Story::end`] heals what is broken and demands that everything ends, is whole and agrees.
//! A broken rule ends the story with a panic that tells the last events.

mod coordinators;
mod counts;
#[cfg(feature = "planted-bugs")]
mod damage;
mod links;
mod operations;
mod operator;
mod processes;
mod requests;
mod roles;
mod scrub;
mod told;

pub use coordinators::{Elected, Writing};
pub use counts::Resumed;
pub use links::{Held, Line, Link, Wire};
pub use operations::{increment, is_unknown, set, store};
pub use operator::Operator;
pub use requests::Asked;
pub use scrub::Scrub;
pub use told::Story;
