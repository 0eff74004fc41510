//! The real binary, end to end: on this machine, beside what others wrote, between network namespaces.
//!
//! One program, so that it is linked once: a step of `cargo xtask test` runs the modules that it names, one test at a time.
#![allow(clippy::disallowed_methods)] // Real processes take real time.
#![allow(clippy::unwrap_used)] // a panic is how a test reports

mod advertised;
mod bad_values;
mod capped;
mod chaos;
mod chaos_net;
mod chaos_objects;
mod command_line;
mod conformance;
mod conversions;
mod etcd;
mod health;
mod memcached;
mod memory;
mod namespaces;
mod native_faults;
mod native_suite;
mod objects;
mod operations;
mod porcupine;
mod samples;
mod scrub;
mod silence;
mod size;
mod support;
mod ycsb;
