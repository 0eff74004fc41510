//! A server that sends frames in halves, so that a program can look at its buffer between them.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use bytes::{Bytes, BytesMut};
use native::{
    Answer, Capabilities, Code, Decoder, FromClient, FromServer, MAX_PIECE_BYTES, Meta, Piece, RouteMap,
    RouteNamespace, RouteNode, RoutePool, Value, Welcome,
};
use types::{ClusterId, NamespaceId, NodeId, PoolId};

use crate::programs::Program;

/// As `landing.c` has it.
const LEN: usize = 60_000;
const SENT: usize = 30_000;
const LONG: usize = 300_000;

/// One connection.
struct Server {
    stream: TcpStream,
    address: SocketAddr,
    /// The other half of what was sent last.
    held: Vec<u8>,
}

impl Server {
    fn serve(mut self) -> io::Result<()> {
        let (mut input, mut more) = (BytesMut::new(), [0; 4096]);
        loop {
            while let Some(frame) = Decoder::next(&mut input).map_err(io::Error::other)? {
                let message = FromClient::take(frame).map_err(io::Error::other)?;
                let out = self.hear(message);
                self.stream.write_all(&out)?;
            }
            let len = self.stream.read(&mut more)?;
            if len == 0 {
                return Ok(());
            }
            input.extend_from_slice(&more[..len]);
        }
    }

    fn hear(&mut self, message: FromClient) -> Vec<u8> {
        match message {
            FromClient::Hello(_) => [frame(&FromServer::Welcome(welcome())), map(self.address)].concat(),
            FromClient::Request(id, request) => self.answer(id, request.key.client()),
            _ => Vec::new(),
        }
    }

    fn answer(&mut self, id: u64, key: &[u8]) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.held);
        let whole = match key {
            b"answer" => answer(id, LEN, Some(value(LEN))),
            b"pieces" => {
                out.extend(answer(id, LEN, None));
                piece(id, value(LEN))
            }
            _ => return [out, long(id)].concat(),
        };
        let cut = whole.len() - (LEN - SENT);
        out.extend_from_slice(&whole[..cut]);
        self.held = whole[cut..].to_vec();
        if key == b"pieces" {
            self.held.extend(frame(&FromServer::End(id, Code::Cancelled)));
        }
        out
    }
}

fn value(len: usize) -> Bytes {
    (0..len).map(|at| (at % 251 + 1) as u8).collect::<Vec<u8>>().into()
}

/// A value in pieces of all lengths, without asking for windows.
fn long(id: u64) -> Vec<u8> {
    let (mut out, mut rest, mut len) = (answer(id, LONG, None), value(LONG), 1);
    while !rest.is_empty() {
        out.extend(piece(id, rest.split_to(len.min(rest.len()))));
        len = (len * 5).min(MAX_PIECE_BYTES);
    }
    out.extend(frame(&FromServer::End(id, Code::Whole)));
    out
}

fn frame(message: &FromServer) -> Vec<u8> {
    let mut out = Vec::new();
    message.put(&mut out);
    out
}

fn answer(id: u64, len: usize, bytes: Option<Bytes>) -> Vec<u8> {
    let meta = Meta { version: 1, flags: 0, ttl: None, value_len: len as u64 };
    let value = Value { meta, start: 0, len: len as u64, bytes };
    frame(&FromServer::Answer(id, Box::new(Answer::Value(value))))
}

fn piece(id: u64, bytes: Bytes) -> Vec<u8> {
    frame(&FromServer::Piece(Piece { id, bytes }))
}

fn welcome() -> Welcome {
    Welcome {
        version: 1,
        capabilities: Capabilities::MAP,
        credits: 100,
        longest_value: 1 << 30,
        node: NodeId(0),
        cluster: ClusterId(1),
    }
}

/// One node, which serves everything.
fn map(address: SocketAddr) -> Vec<u8> {
    let pool = RoutePool { slot_bits: 14, primaries: vec![Some(NodeId(0)); 8] };
    let namespace = RouteNamespace { name: "default".parse().expect("a name"), pool: PoolId(0) };
    let map = RouteMap {
        cluster: ClusterId(1),
        version: 1,
        nodes: BTreeMap::from([(NodeId(0), RouteNode { native: Some(address), alive: true })]),
        pools: BTreeMap::from([(PoolId(0), pool)]),
        namespaces: BTreeMap::from([(NamespaceId(0), namespace)]),
    };
    let mut out = Vec::new();
    map.put(&mut out);
    out
}

#[test]
fn values_are_received_in_their_callers_buffers_and_nowhere_else_after_a_release() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let server = Server { stream, address, held: Vec::new() };
            // It ends with its client.
            thread::spawn(move || server.serve());
        }
    });
    Program::of("landing.c").run(&[&format!("gestalt://{address}/default?timeout=30s")]);
}
