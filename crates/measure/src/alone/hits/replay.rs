//! Requests, one after the other, against a server that speaks memcached's protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::trace::{KEY_BYTES, Request};

/// Reads each key, and writes it after a miss: how many of `requests` were hits.
pub fn hits(server: SocketAddr, requests: &[Request]) -> Result<usize, String> {
    replay(server, requests).map_err(|error| format!("{server}: {error}"))
}

fn replay(server: SocketAddr, requests: &[Request]) -> std::io::Result<usize> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let longest = requests.iter().map(|request| request.value_bytes).max().unwrap_or(0);
    let filler = vec![b'v'; longest];
    let (mut hits, mut line) = (0, String::new());
    for request in requests {
        let key = format!("{:0KEY_BYTES$}", request.key);
        stream.get_mut().write_all(format!("get {key}\r\n").as_bytes())?;
        line.clear();
        stream.read_line(&mut line)?;
        if line.starts_with("VALUE ") {
            hits += 1;
            let rest = request.value_bytes + "\r\nEND\r\n".len();
            std::io::copy(&mut stream.by_ref().take(rest as u64), &mut std::io::sink())?;
        } else {
            set(&mut stream, &key, &filler[..request.value_bytes])?;
        }
    }
    Ok(hits)
}

/// Writes a value. What the server has no room for counts as the next miss.
fn set(stream: &mut BufReader<TcpStream>, key: &str, value: &[u8]) -> std::io::Result<()> {
    let mut bytes = format!("set {key} 0 0 {}\r\n", value.len()).into_bytes();
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"\r\n");
    stream.get_mut().write_all(&bytes)?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    match line.trim_end() {
        "STORED" => Ok(()),
        refused if refused.contains("out of memory") => Ok(()),
        other => Err(std::io::Error::other(format!("a set is answered with '{other}'"))),
    }
}
