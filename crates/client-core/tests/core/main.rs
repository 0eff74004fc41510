//! Stories of a client and of servers that do what a test says, in virtual time.

// A sample that cannot be made fails its test.
#![allow(clippy::unwrap_used)]

mod choosing;
mod chunks;
mod fed;
mod flow;
mod landing;
mod made;
mod retries;
mod sessions;
mod world;
