//! Coding graphs: every way to encode, gather, decode and repair is a directed acyclic graph of a few steps, each one of three
//! primitives (INEC, Shi and Lu, section III).
//!
//! - [`Graph`] is one as data: it travels, and is checked where it arrives.
//! - [`plan`] makes one for a loss pattern or an encoding, by [`Scheme`]; [`Links`] say what links are worth, and [`predict`] what a
//!   graph will cost.
//! - [`Executor`] runs the steps of one process, slice by slice: a state machine without I/O.
//! - [`Task`] is what an asker keeps: it starts a graph, hears of it, and plans again around whoever failed or was slow.
//!
//! There is no clock, no randomness and no thread; time and random numbers are arguments. `docs/graphs.md` has the messages.

mod asker;
mod executor;
mod graph;
pub mod limits;
mod message;
mod model;
#[cfg(feature = "net")]
pub mod net;
mod planner;
mod rules;

pub use asker::{Look, Outcome, Planned, Task, TaskCommand, TaskConfig};
pub use executor::{
    Command, Counters, Executor, ExecutorConfig, Load, PrimitiveCounters, Surroundings, Unreadable,
};
pub use graph::{
    AskerId, BadGraph, Class, Draft, Edge, EdgeEnds, Execution, Graph, Input, Output, Part, Place, Ports,
    Primitive, RunId, Span, Step,
};
pub use message::{Message, Progress, Report, Slice, Wait, Why};
pub use model::{Fit, LinkEnd, Links, Pair, Prediction, predict};
pub use planner::{
    Aim, EncodeQuestion, Envelope, Question, Scheme, Shape, Source, UnknownScheme, Unplannable, Wanted, plan,
    plan_encode,
};
pub use rules::{Bug, Rules};
