//! What operators do: `gestalt node`, `gestalt layout`, `gestalt repair`, `gestalt scrub`, `gestalt lost`, `gestalt cluster`. Each asks the coordinator, through any node.

mod convert;
mod damage;
pub mod layout;
pub mod lost;
pub mod namespace;
pub mod node;
pub mod pool;
mod preview;
mod processes;
pub mod repair;
pub mod scrub;
pub mod whole;
mod wrong;

use std::io::{BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use client::{HttpError, Router, post_json};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use types::{
    AdminAnswer, AdminCommand, AdminError, AdminRequest, Catalog, CatalogChange, ClusterMap, Layout,
    LayoutVersion, NodeId, StopReport,
};

use crate::endpoint::{Endpoint, without_map};
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::status::survey::{self, Found, Survey};

/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(2);
/// How long the coordinator may take, by way of a node that gives up before.
const ORDER_LIMIT: Duration = Duration::from_secs(7);

/// In what time nodes of the usual lease are heard.
const HEARD_WITHIN: Duration = Duration::from_millis(250);
/// A node that has not been heard for so many heartbeats counts as lost where a node is to be stopped.
const MISSED_HEARTBEATS: u64 = 3;

/// Whom to ask, and how to print. What changes something is taken by a node or a coordinator of this very machine only.
#[derive(Args, Clone, Debug)]
pub struct Target {
    #[command(flatten)]
    endpoint: Endpoint,
    /// How to print
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: Format,
}

/// That a change was made from another layout than the one that is there is a conflict.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Expect {
    /// Do it only if the layout is still of this version (`gestalt layout show`)
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

impl Target {
    /// The newest map.
    async fn map(&self) -> Result<ClusterMap, Exit> {
        let http = self.endpoint.find_map().await?;
        let router = Router::fetch(&[http], LIMIT).await.map_err(|error| without_map(&error))?;
        Ok(router.map().clone())
    }

    /// The newest map, what all nodes say, and how old that is.
    async fn look(&self) -> Result<Survey, Exit> {
        match survey::look(&self.endpoint, LIMIT).await? {
            Found::Cluster(survey) => Ok(*survey),
            Found::Formless(formless) => Err(Exit::Unreachable(formless.explain())),
        }
    }

    /// The same; where it is old, or somebody does not answer, standard error says so.
    async fn survey(&self) -> Result<Survey, Exit> {
        let survey = self.look().await?;
        survey.caveats().iter().for_each(|caveat| output::complain(caveat));
        Ok(survey)
    }

    /// One line of what `table` makes tables of.
    fn print_one<T: Serialize>(&self, line: T, table: impl Fn(&[T]) -> String) {
        match self.output {
            Format::Json => output::print_json(&line),
            Format::Table => output::print(&table(&[line])),
        }
    }

    /// All of them.
    fn print_all<T: Serialize>(&self, lines: &[T], table: impl Fn(&[T]) -> String) {
        match self.output {
            Format::Json => output::print_json(&lines),
            Format::Table => output::print(&table(lines)),
        }
    }

    /// Asks the coordinator.
    async fn order(&self, expect: Expect, command: AdminCommand) -> Result<AdminAnswer, Exit> {
        let request = AdminRequest { expect: expect.expect.map(LayoutVersion), command };
        let http = self.endpoint.find().await?;
        let body = post_json(http, "/admin", &request, ORDER_LIMIT).await.map_err(explain)?;
        serde_json::from_slice(&body)
            .map_err(|error| Exit::Unreachable(format!("http://{http}/admin: {error}")))
    }

    /// What it would mean to stop `node`, by the coordinator. Whoever is not heard from now on counts as lost: it may have ended a moment
    /// ago, as nodes do that are restarted one after the other.
    async fn can_stop(&self, node: NodeId) -> Result<StopReport, Exit> {
        let asked = Instant::now();
        loop {
            sleep(HEARD_WITHIN).await;
            let heard_within_us = u64::try_from(asked.elapsed().as_micros()).ok();
            let command = AdminCommand::CanStop { node, heard_within_us };
            let AdminAnswer::CanStop(report) = self.order(Expect::default(), command).await? else {
                return Err(Exit::unreachable("the coordinator answered another question"));
            };
            let patience = Duration::from_micros(report.heartbeat_us.saturating_mul(MISSED_HEARTBEATS));
            if report.unheard.is_empty() || asked.elapsed() >= patience.max(2 * HEARD_WITHIN) {
                return Ok(report);
            }
        }
    }

    /// Asks for a change of pools or namespaces; all of them after it.
    async fn change_catalog(&self, change: CatalogChange) -> Result<Catalog, Exit> {
        match self.order(Expect::default(), AdminCommand::Catalog(change)).await? {
            AdminAnswer::Catalog(catalog) => Ok(catalog),
            AdminAnswer::Layout(_) | AdminAnswer::CanStop(_) | AdminAnswer::Accepted(_) => {
                Err(Exit::unreachable("the coordinator answered another question"))
            }
        }
    }

    /// Asks for a change; the layout after it.
    async fn change(&self, expect: Expect, command: AdminCommand) -> Result<Layout, Exit> {
        match self.order(expect, command).await? {
            AdminAnswer::Layout(layout) => Ok(layout),
            AdminAnswer::CanStop(_) | AdminAnswer::Accepted(_) | AdminAnswer::Catalog(_) => {
                Err(Exit::unreachable("the coordinator answered another question"))
            }
        }
    }
}

/// Asks at a terminal whether `what` is meant; where there is none, whoever means it has said so already.
fn ask(what: &str) -> Result<(), Exit> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Exit::Usage(format!(
            "{what} There is no terminal to ask at: give --yes if that is meant"
        )));
    }
    // Standard output is for what comes of it, and may go to a file.
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{what} Go on? [yes/no] ").and_then(|()| out.flush());
    let mut answer = String::new();
    input.lock().read_line(&mut answer).map_err(Exit::usage)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Exit::Usage("nothing was done".to_owned())) }
}

/// Refusals of what was asked in the wrong place or at the wrong time.
const OWN_FAULT: [&str; 4] = ["not_here", "running", "not_running", "not_started"];

/// A refusal has a text and an exit code of its kind; whatever else went wrong is "unreachable".
fn explain(error: HttpError) -> Exit {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
        message: String,
    }
    let HttpError::Status { body, .. } = &error else { return Exit::unreachable(error) };
    let Ok(refusal) = serde_json::from_slice::<Refusal>(body) else {
        let text = String::from_utf8_lossy(body);
        return Exit::Unreachable(format!("{error}: {}", text.trim()));
    };
    let message = refusal.message;
    match serde_json::from_slice::<AdminError>(body) {
        Ok(AdminError::NotFormed) => Exit::Unreachable(message),
        Ok(AdminError::NotEnoughNodes { .. }) => Exit::Degraded(message),
        Ok(AdminError::WouldLoseData { .. }) => Exit::AtRisk(message),
        Ok(_) => Exit::Usage(message),
        Err(_) if OWN_FAULT.contains(&refusal.error.as_str()) => Exit::Usage(message),
        Err(_) => Exit::Unreachable(message),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn refusals_have_the_exit_code_of_their_kind() {
        let code = |body: &str| {
            let (address, path) = (SocketAddr::from(([127, 0, 0, 1], 1)), "/admin".to_owned());
            explain(HttpError::Status { address, path, status: 409, body: body.as_bytes().to_vec() })
        };
        let conflict = r#"{"error":"version_conflict","named":1,"have":2,"message":"so"}"#;
        assert!(matches!(code(conflict), Exit::Usage(text) if text == "so"));
        let loss = r#"{"error":"would_lose_data","reason":"a","way_out":"b","message":"a: b"}"#;
        assert!(matches!(code(loss), Exit::AtRisk(_)));
        let nowhere =
            r#"{"error":"not_enough_nodes","node":1,"left":4,"profile":"rs(3+2)","needed":5,"message":"so"}"#;
        assert!(matches!(code(nowhere), Exit::Degraded(_)));
        assert!(matches!(code(r#"{"error":"no_coordinator","message":"so"}"#), Exit::Unreachable(_)));
        assert!(matches!(code(r#"{"error":"not_here","message":"so"}"#), Exit::Usage(_)));
        assert!(matches!(code("<html>"), Exit::Unreachable(text) if text.ends_with("<html>")));
    }
}
