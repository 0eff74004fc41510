//! Whole clusters in one process, over real sockets, without faults.

// Tests wait for real sockets, and give up by a real clock.
#![allow(clippy::disallowed_methods)]

mod basics;
mod beside;
mod cluster_life;
mod coding;
mod coordinator_restarts;
mod crowds;
mod deadlines;
mod harness;
mod health;
mod latencies;
mod limits;
mod native;
mod native_chunks;
mod native_client;
mod native_streams;
mod objects;
mod operators;
mod ordering;
mod pages;
mod scans;
mod statistics;
