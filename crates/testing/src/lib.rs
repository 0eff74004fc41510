//! What the tests of the whole need: the simulator, histories and their checker, real clusters on this machine.
//!
//! Sees everything, and nothing sees it.

pub mod chaos;
pub mod commanded;
pub mod etcd_cluster;
pub mod etcd_server;
pub mod linearizability;
pub mod local_cluster;
pub mod others;
pub mod peers;
pub mod porcupine;
pub mod recorder;
pub mod served_cluster;
pub mod servers;
pub mod sim;
pub mod ycsb;
