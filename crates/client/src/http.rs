//! One HTTP request, for `/map`, `/status` and `/admin`: by `ureq`, which blocks, on a thread of its own.
//!
//! It is none of the runtime's threads: a runtime that ends waits for these, and nobody shall wait for an answer that is no longer
//! wanted. A request ends at its time limit, and its thread with it.

use std::net::SocketAddr;
use std::time::Duration;
use std::{io, thread};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::oneshot;
use ureq::Agent;

/// Longest answer that is read.
const MAX_BODY_BYTES: u64 = 1024 * 1024 * 1024;

/// Why a page could not be had.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The socket failed.
    #[error("http://{address}{path}: {source}")]
    Io {
        /// Who was asked.
        address: SocketAddr,
        /// What was asked for.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// No complete answer in time.
    #[error("http://{address}{path}: no answer in {after:?}")]
    Timeout {
        /// Who was asked.
        address: SocketAddr,
        /// What was asked for.
        path: String,
        /// The limit.
        after: Duration,
    },
    /// An answer other than 200.
    #[error("http://{address}{path}: status {status}")]
    Status {
        /// Who was asked.
        address: SocketAddr,
        /// What was asked for.
        path: String,
        /// The status.
        status: u16,
        /// The body, which may say why.
        body: Vec<u8>,
    },
    /// The answer is no HTTP, or its body is not what was expected.
    #[error("http://{address}{path}: {reason}")]
    Content {
        /// Who was asked.
        address: SocketAddr,
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There was nobody to ask.
    #[error("no address to ask")]
    NoSource,
}

impl HttpError {
    /// What somebody who is there says of why he does not serve yet, in a line; none if that is not it.
    #[must_use]
    pub fn not_yet(&self) -> Option<&str> {
        let Self::Status { status: 503, body, .. } = self else { return None };
        std::str::from_utf8(body).ok().map(str::trim).filter(|line| !line.is_empty() && !line.contains('\n'))
    }
}

/// The body of `http://address/path`.
///
/// # Errors
/// Whatever keeps a 200 from arriving within `limit`.
pub async fn fetch(address: SocketAddr, path: &str, limit: Duration) -> Result<Vec<u8>, HttpError> {
    ask(address, path, None, limit).await
}

/// Like [`fetch`], parsed as JSON.
///
/// # Errors
/// As for `fetch`, and `Content` if the body is something else.
pub async fn fetch_json<T: DeserializeOwned>(
    address: SocketAddr,
    path: &str,
    limit: Duration,
) -> Result<T, HttpError> {
    let body = fetch(address, path, limit).await?;
    serde_json::from_slice(&body).map_err(|error| unexpected(address, path, error))
}

/// The answer to `body`, a JSON document, posted to `http://address/path`.
///
/// # Errors
/// Whatever keeps a 200 from arriving within `limit`.
pub async fn post_json<T: Serialize>(
    address: SocketAddr,
    path: &str,
    body: &T,
    limit: Duration,
) -> Result<Vec<u8>, HttpError> {
    let body = serde_json::to_vec(body).map_err(|error| unexpected(address, path, error))?;
    ask(address, path, Some(body), limit).await
}

async fn ask(
    address: SocketAddr,
    path: &str,
    posted: Option<Vec<u8>>,
    limit: Duration,
) -> Result<Vec<u8>, HttpError> {
    let (sender, answer) = oneshot::channel();
    let url = format!("http://{address}{path}");
    // Who asked may have gone meanwhile.
    let work = move || drop(sender.send(exchange(&url, posted, limit)));
    let answer = match thread::Builder::new().name("http".to_owned()).spawn(work) {
        Ok(_) => answer.await.unwrap_or(Err(ureq::Error::ConnectionFailed)),
        Err(error) => Err(error.into()),
    };
    match answer {
        Ok((200, body)) => Ok(body),
        Ok((status, body)) => Err(HttpError::Status { address, path: path.to_owned(), status, body }),
        Err(ureq::Error::Io(source)) => Err(HttpError::Io { address, path: path.to_owned(), source }),
        Err(ureq::Error::Timeout(_)) => {
            Err(HttpError::Timeout { address, path: path.to_owned(), after: limit })
        }
        Err(error) => Err(unexpected(address, path, error)),
    }
}

/// Status and body. Whom to ask is known: there is no proxy in between, and nobody sends us elsewhere.
fn exchange(url: &str, posted: Option<Vec<u8>>, limit: Duration) -> Result<(u16, Vec<u8>), ureq::Error> {
    let config = Agent::config_builder().timeout_global(Some(limit)).http_status_as_error(false);
    let agent = Agent::new_with_config(config.proxy(None).max_redirects(0).build());
    let mut answer = match posted {
        None => agent.get(url).call()?,
        Some(body) => agent.post(url).content_type("application/json").send(&body)?,
    };
    let body = answer.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec()?;
    Ok((answer.status().as_u16(), body))
}

fn unexpected(address: SocketAddr, path: &str, reason: impl ToString) -> HttpError {
    HttpError::Content { address, path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(300);

    /// Reads one request and leaves the rest to `answer`.
    fn server(answer: impl FnOnce(TcpStream, String) + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut part) = (String::new(), [0; 1024]);
            let is_whole = |request: &str| {
                let parts = request.split_once("\r\n\r\n");
                parts.is_some_and(|(head, body)| head.starts_with("GET") || !body.is_empty())
            };
            while !is_whole(&request) {
                let length = stream.read(&mut part).unwrap();
                request.push_str(std::str::from_utf8(&part[..length]).unwrap());
            }
            answer(stream, request);
        });
        address
    }

    fn says(text: &'static str) -> SocketAddr {
        server(move |mut stream, _| stream.write_all(text.as_bytes()).unwrap())
    }

    #[tokio::test]
    async fn a_page_is_its_body_and_a_refusal_has_its_own() {
        let page = says("HTTP/1.1 200 OK\r\na: b\r\n\r\n[1,2]");
        assert_eq!(fetch_json::<Vec<u8>>(page, "/map", LIMIT).await.unwrap(), [1, 2]);
        let refused = fetch(says("HTTP/1.0 503 Unavailable\r\n\r\nnot yet"), "/map", LIMIT).await;
        assert_eq!(refused.as_ref().unwrap_err().not_yet(), Some("not yet"));
        assert!(matches!(refused, Err(HttpError::Status { status: 503, body, .. }) if body == b"not yet"));
        let elsewhere =
            says("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n");
        let sent_away = fetch(elsewhere, "/map", LIMIT).await;
        assert!(matches!(sent_away, Err(HttpError::Status { status: 302, .. })), "{sent_away:?}");
    }

    #[tokio::test]
    async fn what_is_posted_is_json() {
        let echo = server(|mut stream, request| {
            assert!(request.starts_with("POST /admin HTTP/1.1\r\n"), "{request}");
            assert!(request.to_lowercase().contains("\r\ncontent-type: application/json\r\n"), "{request}");
            let body = request.split("\r\n\r\n").nth(1).unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\n\r\n{body}").unwrap();
        });
        assert_eq!(post_json(echo, "/admin", &[1, 2], LIMIT).await.unwrap(), b"[1,2]");
    }

    #[tokio::test]
    async fn what_is_not_http_is_unexpected() {
        for text in ["ERROR\r\n", "SSH-2.0-x\r\n\r\n", "HTTP/1.1\r\n\r\n"] {
            let error = fetch(says(text), "/map", LIMIT).await.unwrap_err();
            assert!(matches!(error, HttpError::Content { .. } | HttpError::Io { .. }), "{error:?}");
        }
    }

    #[tokio::test]
    async fn who_answers_too_slowly_or_not_at_all_has_not_answered() {
        let dribbles = server(|mut stream, _| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(b" ").is_ok() {
                thread::sleep(LIMIT / 20);
            }
        });
        let silent = server(|stream, _| {
            thread::sleep(4 * LIMIT);
            drop(stream);
        });
        for address in [dribbles, silent] {
            let start = Instant::now();
            let error = fetch(address, "/map", LIMIT).await.unwrap_err();
            assert_eq!(error.to_string(), format!("http://{address}/map: no answer in 300ms"));
            assert!((LIMIT..2 * LIMIT).contains(&start.elapsed()), "{:?}", start.elapsed());
        }
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = fetch(nobody, "/map", LIMIT).await.unwrap_err();
        assert!(matches!(error, HttpError::Io { .. }), "{error:?}");
    }
}
