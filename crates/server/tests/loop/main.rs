//! Whole clusters in one process, over real sockets, without faults.

mod basics;
mod cluster_life;
mod deadlines;
mod harness;
mod limits;
mod ordering;
mod pages;
