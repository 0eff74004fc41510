//! One http connection, and how long each part of it may take: the first headers, a request with its body, and whatever lies between an
//! answer and the next request. Who is between requests gives way to newcomers (`places`).

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::limits::{HTTP_HEADERS, HTTP_IDLE, HTTP_REQUEST};
use crate::places::Place;

/// Serves a connection with `peer` until it ends, takes too long, or loses its place.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    peer: Peer,
    pages: Router,
    place: Place,
) {
    let pace = Rc::new(Pace::new(place));
    let pages = TowerToHyperService::new(pages);
    let answer = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let (answering, busy) = (pages.call(request), Busy::begin(&pace));
        async move {
            let answered = timeout(HTTP_REQUEST, answering).await;
            // Before the answer is written: a client that takes long to read it may lose its place.
            drop(busy);
            answered.unwrap_or_else(|_| Ok(StatusCode::REQUEST_TIMEOUT.into_response()))
        }
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        // What goes wrong is of the client's making.
        _ = served => (),
        () = pace.overdue() => (),
        () = pace.place.lost() => (),
    }
}

/// How a connection gets on.
struct Pace {
    place: Place,
    /// When the connection has been without a request for too long; none while it has one.
    until: Cell<Option<Instant>>,
    changed: Notify,
}

impl Pace {
    fn new(place: Place) -> Self {
        let until = Cell::new(Some(Instant::now() + HTTP_HEADERS));
        Self { place, until, changed: Notify::new() }
    }

    /// Returns when the connection has been without a request for too long.
    async fn overdue(&self) {
        loop {
            let Some(until) = self.until.get() else {
                self.changed.notified().await;
                continue;
            };
            sleep_until(until).await;
            // Else a request has come meanwhile, and was perhaps answered.
            if self.until.get() == Some(until) {
                return;
            }
        }
    }
}

/// A request that is being answered.
struct Busy(Rc<Pace>);

impl Busy {
    fn begin(pace: &Rc<Pace>) -> Self {
        pace.until.set(None);
        // If the place is lost already, the connection ends before the answer is made.
        let _ = pace.place.keep();
        Self(Rc::clone(pace))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.until.set(Some(Instant::now() + HTTP_IDLE));
        self.0.place.lend();
        self.0.changed.notify_one();
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub remote: SocketAddr,
    pub local: Option<SocketAddr>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::places::Places;

    /// How long a connection lasts whose client does this, and nothing more. It is in memory, for time that passes only while nothing
    /// else can happen takes no notice of what is under way in sockets.
    async fn lasts<F: Future>(client: impl FnOnce(DuplexStream) -> F) -> (Duration, F::Output) {
        let (near, far) = tokio::io::duplex(4096);
        let peer = Peer { remote: ([127, 0, 0, 1], 1).into(), local: None };
        let pages = Router::new().route("/", get(|| async { "ok" }).post(|body: String| async move { body }));
        let start = Instant::now();
        let served = async {
            serve(far, peer, pages, Places::new(1).take().unwrap()).await;
            start.elapsed()
        };
        tokio::join!(served, client(near))
    }

    /// Everything that comes until the end.
    async fn hear(mut stream: DuplexStream) -> String {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        text
    }

    #[track_caller]
    fn about(took: Duration, limit: Duration) {
        assert!(took >= limit && took < limit + Duration::from_millis(100), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_asks_is_closed() {
        let (took, heard) = lasts(hear).await;
        about(took, HTTP_HEADERS);
        assert_eq!(heard, "");
    }

    #[tokio::test(start_paused = true)]
    async fn headers_that_come_byte_by_byte_are_not_waited_for_for_ever() {
        let (took, ()) = lasts(|mut stream| async move {
            for byte in b"GET / HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
                if stream.write_all(&[*byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
        .await;
        about(took, HTTP_HEADERS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_answered_and_closed() {
        let (took, heard) = lasts(|mut stream| async move {
            stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await.unwrap();
            hear(stream).await
        })
        .await;
        about(took, HTTP_REQUEST);
        assert!(heard.starts_with("HTTP/1.1 408 "), "{heard}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_kept_between_requests_for_a_while() {
        let (took, heard) = lasts(|mut stream| async move {
            for _ in 0..2 {
                tokio::time::sleep(HTTP_HEADERS / 2).await;
                stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            }
            hear(stream).await
        })
        .await;
        about(took, HTTP_HEADERS + HTTP_IDLE);
        assert_eq!(heard.matches("HTTP/1.1 200 OK").count(), 2, "{heard}");
    }
}
