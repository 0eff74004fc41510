//! Orders about nodes' processes: `POST /process` of a coordinator whose owner is their parent, as `gestalt local` is.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::oneshot;
use types::NodeId;

/// What an operator asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessRequest {
    /// Of which node.
    pub node: NodeId,
    /// What.
    pub action: ProcessAction,
}

/// What is to become of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessAction {
    /// It is started again.
    Start,
    /// It is told to end.
    Stop,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessDone {
    /// The node.
    pub node: NodeId,
    /// Its process.
    pub pid: u32,
}

/// Why not.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "error")]
pub enum ProcessError {
    /// There is no such node.
    #[error("node {} is not one of those that `gestalt local` was started with: `gestalt node list` names them", .node.0)]
    UnknownNode {
        /// The id that was named.
        node: NodeId,
    },
    /// What is to be started runs.
    #[error("node {} runs already, pid {pid}", .node.0)]
    Running {
        /// The node.
        node: NodeId,
        /// Its process.
        pid: u32,
    },
    /// What is to be stopped does not run.
    #[error("node {} does not run: `gestalt node start {}` starts it again", .node.0, .node.0)]
    NotRunning {
        /// The node.
        node: NodeId,
    },
    /// The system did not start it.
    #[error("{reason}")]
    NotStarted {
        /// What it said.
        reason: String,
    },
}

/// What the parent says.
pub type ProcessReply = Result<ProcessDone, ProcessError>;

/// A request on its way to the parent.
#[derive(Debug)]
pub struct ProcessOrder {
    /// What is asked.
    pub request: ProcessRequest,
    /// Where the answer goes.
    pub answer: oneshot::Sender<ProcessReply>,
}
