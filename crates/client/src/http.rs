//! One HTTP request, enough for `/map`, `/status` and `/admin`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest answer that is read.
const MAX_BODY_BYTES: u64 = 256 * 1024 * 1024;

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
        /// The status, 0 if the answer is not HTTP.
        status: u16,
        /// The body, which may say why.
        body: Vec<u8>,
    },
    /// The body is not what was expected.
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

/// The body of `http://address/path`.
///
/// # Errors
/// Whatever keeps a 200 from arriving within `limit`.
pub async fn fetch(address: SocketAddr, path: &str, limit: Duration) -> Result<Vec<u8>, HttpError> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\n\r\n");
    ask(address, path, request, limit).await
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
    let body = serde_json::to_string(body).map_err(|error| HttpError::Content {
        address,
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let head = format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    ask(address, path, request, limit).await
}

async fn ask(
    address: SocketAddr,
    path: &str,
    request: String,
    limit: Duration,
) -> Result<Vec<u8>, HttpError> {
    let path_owned = || path.to_owned();
    let raw = timeout(limit, exchange(address, &request))
        .await
        .map_err(|_| HttpError::Timeout { address, path: path_owned(), after: limit })?
        .map_err(|source| HttpError::Io { address, path: path_owned(), source })?;
    let (status, body) = split_answer(&raw);
    if status == 200 {
        return Ok(body.to_vec());
    }
    Err(HttpError::Status { address, path: path_owned(), status, body: body.to_vec() })
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
    serde_json::from_slice(&body).map_err(|error| HttpError::Content {
        address,
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Sends the request and reads to the end. HTTP/1.0, so that the answer is neither chunked nor kept alive.
async fn exchange(address: SocketAddr, request: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut raw = Vec::new();
    stream.take(MAX_BODY_BYTES).read_to_end(&mut raw).await?;
    Ok(raw)
}

/// Status and body; status 0 if this is not HTTP.
fn split_answer(raw: &[u8]) -> (u16, &[u8]) {
    let Some(head_end) = memchr::memmem::find(raw, b"\r\n\r\n") else { return (0, raw) };
    let status = std::str::from_utf8(&raw[..head_end])
        .ok()
        .and_then(|head| head.strip_prefix("HTTP/1."))
        .and_then(|head| head.get(2..5))
        .and_then(|digits| digits.parse().ok());
    (status.unwrap_or(0), &raw[head_end + 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_body_are_split_at_the_empty_line() {
        assert_eq!(split_answer(b"HTTP/1.1 200 OK\r\na: b\r\n\r\n{}"), (200, &b"{}"[..]));
        assert_eq!(split_answer(b"HTTP/1.0 503 Service Unavailable\r\n\r\n"), (503, &b""[..]));
    }

    #[test]
    fn what_is_not_http_has_status_0() {
        assert_eq!(split_answer(b"ERROR\r\n").0, 0);
        assert_eq!(split_answer(b"SSH-2.0-x\r\n\r\n").0, 0);
        assert_eq!(split_answer(b"HTTP/1.1\r\n\r\n").0, 0);
    }
}
