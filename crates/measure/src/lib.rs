//! Measurements of clusters of real processes on this machine, which may be shared: figures are printed, nothing is judged.
//!
//! - [`alone`] is the program `measure`: pauses, repair, growth, restarts, use of memory.
//! - [`fills`] is the program `fills`: a holder that is filled over links of limited bandwidth, scheme beside scheme.
//! - [`graphs`] is the program `graphs`: coding graphs over a network in virtual time, without processes.
//! - [`map`] is the program `map`: what changes of the map cost, without processes.
//! - [`native`] is the program `native`: the native protocol and its clients in the manner of OHB, beside memcached's.
//! - [`peers`] is the program `peers`: Gestalt beside stock memcached and valkey. [`ycsb`] cross-checks its figures.
//! - [`values`] is the program `values`: long values beside memcached and valkey.
#![allow(clippy::disallowed_methods)] // Real processes take real time.

use std::process::ExitCode;

use codec::Code;

pub mod alone;
mod document;
pub mod fills;
pub mod graphs;
pub mod map;
pub mod native;
pub mod peers;
mod plot;
mod spread;
pub mod values;
pub mod ycsb;

/// How `program` ends.
fn ended(program: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{program}: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The code of this name: `rs(6+3)`.
fn code(name: &str) -> Result<Code, String> {
    let scheme: codec::Scheme = name.parse().map_err(|error| format!("{name}: {error}"))?;
    Code::of(scheme).map_err(|error| format!("{name}: {error}"))
}
