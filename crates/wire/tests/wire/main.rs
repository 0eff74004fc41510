//! Tests of everything that is parsed or printed, without a socket.

mod corpus;
mod frames;
mod records;
mod samples;
mod segments;
