//! The http face: `/metrics`, `/healthz`, `/readyz`, `/status`, `/map`, and `/admin` for operators. It runs beside the workers and asks them for
//! snapshots; it never holds them up.

pub(crate) mod admin;
mod connection;
mod graphs;
mod metrics;
pub(crate) mod probe;
pub(crate) mod status;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot, watch};
use types::ClusterId;

use crate::CoordinatorStatus;
use crate::ProcessOrder;
use crate::clock::Clock;
use crate::coordination::report::Command;
use crate::http::probe::{GraphsReport, ProbeRequest};
use crate::http::status::{CoordinatorReport, NodeStatus};
use crate::limits::{ADMIN_BODY_BYTES, HTTP_CONNECTIONS};
use crate::node::accept::accept;
use crate::node::shared::Shared;
use crate::places::Places;
use crate::transport::DetachedListener;

/// What Prometheus expects.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves a node's pages, for ever.
pub(crate) async fn serve_node(listener: DetachedListener, shared: Arc<Shared>) {
    let pages = Router::new()
        .route("/metrics", get(node_metrics))
        .route("/healthz", get(alive))
        .route("/readyz", get(node_ready))
        .route("/status", get(node_status))
        .route("/map", get(node_map))
        .route("/graphs", get(node_graphs))
        .route("/graphs/probe", post(probe_links))
        .route("/admin", post(admin::at_node))
        .with_state(shared);
    serve(listener, pages).await;
}

/// Serves a coordinator's pages, for ever.
pub(crate) async fn serve_coordinator(
    listener: DetachedListener,
    status: watch::Receiver<CoordinatorStatus>,
    commands: mpsc::Sender<Command>,
    processes: Option<mpsc::Sender<ProcessOrder>>,
    clock: Clock,
) {
    let mut pages = Router::new()
        .route("/metrics", get(coordinator_metrics))
        .route("/healthz", get(alive))
        .route("/readyz", get(coordinator_ready))
        .route("/status", get(coordinator_status))
        .route("/map", get(coordinator_map))
        .route("/admin", post(admin::at_coordinator));
    if processes.is_some() {
        pages = pages.route("/process", post(admin::at_parent));
    }
    serve(listener, pages.with_state(CoordinatorPages { status, commands, processes, clock })).await;
}

async fn serve(listener: DetachedListener, pages: Router) {
    let listener = match listener.attach() {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "http cannot listen"),
    };
    let pages = pages.layer(DefaultBodyLimit::max(ADMIN_BODY_BYTES));
    let places = Places::new(HTTP_CONNECTIONS);
    loop {
        let Some(stream) = accept(&listener).await else { continue };
        let Ok(remote) = stream.remote_addr() else { continue };
        let peer = connection::Peer { remote, local: stream.local_addr().ok() };
        // While all have requests nobody else is accepted: newcomers wait in the system's queue.
        let place = places.take_soon().await;
        tokio::task::spawn_local(connection::serve(stream, peer, pages.clone(), place));
    }
}

async fn alive() -> &'static str {
    "ok\n"
}

async fn node_metrics(State(shared): State<Arc<Shared>>) -> Response {
    let snapshots = shared.snapshots().await;
    ([(header::CONTENT_TYPE, METRICS_TYPE)], metrics::of_node(&shared, &snapshots)).into_response()
}

async fn node_ready(State(shared): State<Arc<Shared>>) -> Response {
    let status = NodeStatus::of(&shared, &shared.snapshots().await);
    let page = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    if status.ready {
        return format!("ready\n{}{}", page(&status.warnings), lost(&status)).into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, page(&status.not_ready)).into_response()
}

/// What a node that is ready cannot answer, and no other one either; nothing if there is no such thing.
fn lost(status: &NodeStatus) -> String {
    let lost = status.cluster.as_ref().map_or(&[][..], |cluster| &cluster.lost_slots);
    let line = |lost: &types::PoolSlots| {
        format!("slots {}-{} of pool {} are lost\n", lost.slots.first.0, lost.slots.last.0, lost.pool)
    };
    lost.iter().map(line).collect()
}

async fn node_status(State(shared): State<Arc<Shared>>) -> Json<NodeStatus> {
    let snapshots = shared.snapshots().await;
    Json(NodeStatus::of(&shared, &snapshots))
}

async fn node_graphs(State(shared): State<Arc<Shared>>) -> Json<GraphsReport> {
    let snapshots = shared.snapshots().await;
    Json(GraphsReport::of(shared.host, &snapshots))
}

async fn probe_links(State(shared): State<Arc<Shared>>, Json(request): Json<ProbeRequest>) -> Response {
    if usize::from(request.worker) >= shared.worker_count() {
        return (StatusCode::NOT_FOUND, "there is no such worker\n").into_response();
    }
    match shared.probe_links(request.worker, request.bytes).await {
        Some(true) => "begun\n".into_response(),
        Some(false) => {
            (StatusCode::CONFLICT, "links are being measured already: ask again\n").into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, "the worker does not answer: ask again\n").into_response(),
    }
}

/// What a client has of the map: nothing, or a version of some cluster's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Has {
    cluster: Option<ClusterId>,
    since: Option<u64>,
}

async fn node_map(State(shared): State<Arc<Shared>>, Query(has): Query<Has>) -> Response {
    match (has.cluster, has.since) {
        (Some(cluster), Some(since)) => {
            shared.map_since(cluster, since).map_or_else(no_map, |news| Json(news).into_response())
        }
        _ => shared.map().map_or_else(no_map, |map| Json(&*map).into_response()),
    }
}

fn no_map() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "no map yet: the cluster has not formed\n").into_response()
}

#[derive(Clone)]
pub(crate) struct CoordinatorPages {
    status: watch::Receiver<CoordinatorStatus>,
    pub commands: mpsc::Sender<Command>,
    pub processes: Option<mpsc::Sender<ProcessOrder>>,
    clock: Clock,
}

async fn coordinator_metrics(State(pages): State<CoordinatorPages>) -> Response {
    let status = pages.status.borrow().clone();
    ([(header::CONTENT_TYPE, METRICS_TYPE)], metrics::of_coordinator(&status, &pages.clock)).into_response()
}

async fn coordinator_ready(State(pages): State<CoordinatorPages>) -> Response {
    let status = pages.status.borrow();
    match (&status.map, &status.forming) {
        (Some(_), _) => "ready\n".into_response(),
        (None, Some(forming)) => {
            let line = format!("the cluster has not formed yet: {forming}\n");
            (StatusCode::SERVICE_UNAVAILABLE, line).into_response()
        }
        (None, None) => no_map(),
    }
}

async fn coordinator_status(State(pages): State<CoordinatorPages>) -> Json<CoordinatorReport> {
    Json(CoordinatorReport::of(&pages.status.borrow(), &pages.clock))
}

async fn coordinator_map(State(pages): State<CoordinatorPages>, Query(has): Query<Has>) -> Response {
    let (Some(cluster), Some(since)) = (has.cluster, has.since) else {
        return pages.status.borrow().map.as_deref().map_or_else(no_map, |map| Json(map).into_response());
    };
    let (asker, answer) = oneshot::channel();
    let asked = pages.commands.try_send(Command::MapSince(cluster, since, asker));
    match (asked, answer.await) {
        (Ok(()), Ok(Some(news))) => Json(news).into_response(),
        (Ok(()), Ok(None)) => no_map(),
        (Err(_), _) | (_, Err(_)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the coordinator is busy\n").into_response()
        }
    }
}
