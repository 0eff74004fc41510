//! Histories: what clients of a real cluster asked and were told, and whether one server could have answered so.
//!
//! [`recorder`] hammers a cluster and writes down what it sees; [`linearizability`] judges that, or whatever else is written
//! in the same way; [`porcupine`] asks a judge that others wrote.

pub mod linearizability;
pub mod porcupine;
pub mod recorder;
