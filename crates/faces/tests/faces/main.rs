//! Tests of what clients say and are told, without a socket.

mod bad_input;
mod corpus;
mod garbage;
#[path = "../golden/mod.rs"]
mod golden;
mod refusals;
mod replies;
mod roundtrip;
#[path = "../../../wire/tests/wire/samples.rs"]
mod samples;
mod store;
mod streaming;
