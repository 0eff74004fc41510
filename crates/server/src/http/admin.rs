//! Operators' requests over http: `POST /admin`, from this machine only. A node passes them on to its coordinator.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use types::{AdminError, AdminReply, AdminRequest};
use wire::message::ToCoordinator;

use crate::ProcessOrder;
use crate::ProcessReply;
use crate::ProcessRequest;
use crate::coordination::elected::Election;
use crate::coordination::report::Command;
use crate::http::connection::Peer;
use crate::limits::ADMIN_DEADLINE;
use crate::node::shared::Shared;

/// Why a request did not get to the coordinator and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "error")]
pub(crate) enum RelayError {
    #[error("no coordinator: this node has no connection to it; ask again, or another node")]
    NoCoordinator,
    #[error(
        "no coordinator: etcd is unreachable, and nothing can be changed until it is back; `gestalt status` says more"
    )]
    EtcdAway,
    #[error(
        "no coordinator: etcd has a record that cannot be, and nobody presides over it; `gestalt status` says which"
    )]
    BadRecord,
    #[error("too many requests of operators wait for the coordinator: ask again")]
    Busy,
    #[error(
        "the coordinator has not answered: the change may have been made or not, `gestalt layout show` tells"
    )]
    NoAnswer,
    #[error(
        "operators' commands are taken from the node's own machine only: run gestalt there, with --http 127.0.0.1:PORT or the \
         address that the node listens on"
    )]
    NotHere,
}

/// An error as http has it: its fields, and a text.
#[derive(Serialize)]
struct Refusal<E> {
    #[serde(flatten)]
    error: E,
    message: String,
}

fn refusal<E: Serialize + ToString>(status: StatusCode, error: E) -> Response {
    let message = error.to_string();
    (status, Json(Refusal { error, message })).into_response()
}

impl IntoResponse for RelayError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NotHere => StatusCode::FORBIDDEN,
            Self::NoCoordinator | Self::EtcdAway | Self::BadRecord | Self::Busy | Self::NoAnswer => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        refusal(status, self)
    }
}

fn print(reply: AdminReply) -> Response {
    let error = match reply {
        Ok(answer) => return Json(answer).into_response(),
        Err(error) => error,
    };
    let status = match &error {
        AdminError::NotFormed => StatusCode::SERVICE_UNAVAILABLE,
        AdminError::UnknownNode { .. } => StatusCode::NOT_FOUND,
        AdminError::BadLayout { .. } | AdminError::BadCatalog { .. } => StatusCode::BAD_REQUEST,
        AdminError::VersionConflict { .. }
        | AdminError::NotEnoughNodes { .. }
        | AdminError::WouldLoseData { .. }
        | AdminError::StillThere { .. } => StatusCode::CONFLICT,
    };
    refusal(status, error)
}

/// Whether a request comes from an operator on this machine: over the loopback or from one of the machine's own addresses
/// to itself, and not from a web page whose name was made to point here.
fn check_origin(peer: Peer, headers: &HeaderMap) -> Result<(), RelayError> {
    // A listener at `[::]` sees IPv4 clients as `::ffff:a.b.c.d`.
    let from = peer.remote.ip().to_canonical();
    let own = from.is_loopback() || peer.local.is_some_and(|local| local.ip().to_canonical() == from);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if own && is_plain_address(host) { Ok(()) } else { Err(RelayError::NotHere) }
}

/// An address, or the one name that nobody else can give away.
fn is_plain_address(host: &str) -> bool {
    let bare = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let bare = bare.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok()
}

/// `POST /admin` at a node.
pub(crate) async fn at_node(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    request: Result<Json<AdminRequest>, JsonRejection>,
) -> Response {
    if let Err(error) = check_origin(peer, &headers) {
        return error.into_response();
    }
    let Json(request) = match request {
        Ok(request) => request,
        Err(rejection) => return rejection.into_response(),
    };
    match relay(&shared, request).await {
        Ok(reply) => print(reply),
        Err(error) => error.into_response(),
    }
}

fn no_coordinator(shared: &Shared) -> RelayError {
    match shared.election.as_ref().map(Election::status) {
        Some(etcd) if !etcd.reachable => RelayError::EtcdAway,
        Some(etcd) if etcd.bad_key.is_some() => RelayError::BadRecord,
        Some(_) | None => RelayError::NoCoordinator,
    }
}

async fn relay(shared: &Shared, request: AdminRequest) -> Result<AdminReply, RelayError> {
    if !shared.coordinator_answers.load(Ordering::Relaxed) {
        return Err(no_coordinator(shared));
    }
    let (ticket, answer) = shared.desk.open().ok_or(RelayError::Busy)?;
    let message = ToCoordinator::Admin { id: ticket.id, request };
    shared.to_coordinator.try_send(message).map_err(|_| RelayError::Busy)?;
    timeout(ADMIN_DEADLINE, answer).await.ok().and_then(Result::ok).ok_or(RelayError::NoAnswer)
}

/// `POST /admin` at a coordinator.
pub(crate) async fn at_coordinator(
    State(pages): State<crate::http::CoordinatorPages>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    request: Result<Json<AdminRequest>, JsonRejection>,
) -> Response {
    if let Err(error) = check_origin(peer, &headers) {
        return error.into_response();
    }
    match request {
        Ok(Json(request)) => match command(&pages.commands, request).await {
            Ok(reply) => print(reply),
            Err(error) => error.into_response(),
        },
        Err(rejection) => rejection.into_response(),
    }
}

/// `POST /process` at a coordinator whose owner is the parent of the nodes.
pub(crate) async fn at_parent(
    State(pages): State<crate::http::CoordinatorPages>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    request: Result<Json<ProcessRequest>, JsonRejection>,
) -> Response {
    if let Err(error) = check_origin(peer, &headers) {
        return error.into_response();
    }
    let (Ok(Json(request)), Some(parent)) = (request, &pages.processes) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    match ask_parent(parent, request).await {
        Ok(Ok(done)) => Json(done).into_response(),
        Ok(Err(error)) => refusal(StatusCode::CONFLICT, error),
        Err(error) => error.into_response(),
    }
}

async fn ask_parent(
    parent: &mpsc::Sender<ProcessOrder>,
    request: ProcessRequest,
) -> Result<ProcessReply, RelayError> {
    let (answer, reply) = oneshot::channel();
    parent.try_send(ProcessOrder { request, answer }).map_err(|_| RelayError::Busy)?;
    timeout(ADMIN_DEADLINE, reply).await.ok().and_then(Result::ok).ok_or(RelayError::Busy)
}

async fn command(commands: &mpsc::Sender<Command>, request: AdminRequest) -> Result<AdminReply, RelayError> {
    let (sender, answer) = oneshot::channel();
    commands.try_send(Command::Admin(request, sender)).map_err(|refused| match refused {
        TrySendError::Full(_) => RelayError::Busy,
        TrySendError::Closed(_) => RelayError::NoCoordinator,
    })?;
    timeout(ADMIN_DEADLINE, answer).await.ok().and_then(Result::ok).ok_or(RelayError::NoAnswer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(remote: &str, local: &str, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        let peer = Peer { remote: remote.parse().unwrap(), local: Some(local.parse().unwrap()) };
        check_origin(peer, &headers).is_ok()
    }

    #[test]
    fn operators_sit_at_the_machine_itself() {
        assert!(allowed("127.0.0.1:5", "127.0.0.1:9181", "127.0.0.1:9181"));
        assert!(allowed("127.0.0.1:5", "127.0.0.1:9181", "localhost:9181"));
        assert!(allowed("[::1]:5", "[::1]:9181", "[::1]:9181"));
        assert!(allowed("[::ffff:127.0.0.1]:5", "[::]:9181", "127.0.0.1"));
        assert!(allowed("10.0.0.4:5", "10.0.0.4:9181", "10.0.0.4:9181"), "to itself by its own address");
        assert!(!allowed("10.0.0.5:5", "10.0.0.4:9181", "10.0.0.4:9181"));
        assert!(!allowed("127.0.0.1:5", "127.0.0.1:9181", "evil.example:9181"), "a rebound name");
        assert!(!allowed("127.0.0.1:5", "127.0.0.1:9181", "localhost.evil.example"));
    }
}
