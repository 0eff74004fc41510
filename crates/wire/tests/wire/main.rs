//! Tests of everything that is parsed or printed, without a socket.

mod bad_input;
mod corpus;
mod frames;
mod garbage;
#[path = "../golden/mod.rs"]
mod golden;
mod records;
mod refusals;
mod replies;
mod roundtrip;
mod samples;
mod segments;
mod store;
