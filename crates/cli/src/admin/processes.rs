//! `gestalt node start` and `stop`: the parent of a local cluster is asked for its nodes' processes.

use client::{HttpError, post_json};
use serde::{Deserialize, Serialize};
use server::{ProcessAction, ProcessRequest};
use types::NodeId;

use super::{ORDER_LIMIT, Target, explain};
use crate::exit::Exit;
use crate::output::{self, Format};

/// What has become of a node's process.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    node: NodeId,
    pid: u32,
}

/// Starts `node` again.
pub async fn start(target: &Target, node: NodeId) -> Result<(), Exit> {
    let Done { pid, .. } = order(target, node, ProcessAction::Start).await?;
    say(target, &Done { node, pid }, &format!("node {} is started with empty memory, pid {pid}", node.0))
}

/// Ends `node`.
pub async fn stop(target: &Target, node: NodeId) -> Result<(), Exit> {
    let Done { pid, .. } = order(target, node, ProcessAction::Stop).await?;
    let text = format!(
        "node {} (pid {pid}) is told to stop; `gestalt node start {}` starts it again",
        node.0, node.0
    );
    say(target, &Done { node, pid }, &text)
}

fn say(target: &Target, done: &Done, text: &str) -> Result<(), Exit> {
    match target.output {
        Format::Json => output::print_json(done),
        Format::Table => output::print(&format!("{text}\n")),
    }
    Ok(())
}

async fn order(target: &Target, node: NodeId, action: ProcessAction) -> Result<Done, Exit> {
    let http = target.endpoint.find().await?;
    let request = ProcessRequest { node, action };
    let body = match post_json(http, "/process", &request, ORDER_LIMIT).await {
        Ok(body) => body,
        Err(HttpError::Status { status: 404, .. }) => {
            return Err(Exit::Usage(format!(
                "whoever answers at {http} has no processes of nodes to start or stop: only the coordinator of `gestalt local` has, \
                 give its address with --http; elsewhere a node is started with `gestalt serve` on its machine"
            )));
        }
        Err(error) => return Err(explain(error)),
    };
    serde_json::from_slice(&body)
        .map_err(|error| Exit::Unreachable(format!("http://{http}/process: {error}")))
}
