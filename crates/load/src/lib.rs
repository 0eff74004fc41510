//! The load generator of `gestalt bench`: the same lean client for Gestalt, memcached and redis.
//!
//! A [`Driver`](driver::Driver) is one thread. Its [`Plan`](driver::Plan) says what to do: whom to ask (`targets`), how keys are spelt and
//! which comes next (`keys`, `latest`, `source`), what is written and how it is checked (`values`), in which protocol (`exchange`: lines of `text`, or
//! `frames` of the native protocol). What comes of it is counted (`tally`), as a whole and in stretches (`timeline`). Who asks for it, and
//! prints it, is elsewhere.
#![allow(clippy::disallowed_methods)]

pub mod driver;
mod exchange;
mod frames;
pub mod keys;
pub mod latest;
mod names;
pub mod protocol;
mod socket;
pub mod source;
pub mod tally;
pub mod targets;
mod text;
pub mod timeline;
pub mod values;
