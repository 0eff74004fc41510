//! What a client does when servers are silent, disagree or fail.
#![allow(clippy::disallowed_methods)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::{Client, ClientConfig, ClientError, Deleted, Router};
use cluster::place;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;
use types::{ClusterId, ClusterMap, HostId, Incarnation, MapChanges, NodeId, NodeInfo, Profile};

const DEADLINE: Duration = Duration::from_secs(2);

fn config() -> ClientConfig {
    ClientConfig { deadline: DEADLINE, ..ClientConfig::default() }
}

/// A map of two nodes, both with these addresses.
fn map(cluster: u64, version: u64, http: SocketAddr, memcached: SocketAddr) -> ClusterMap {
    let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
    let info = |node| NodeInfo {
        host: host(node),
        peer: memcached,
        memcached,
        http,
        native: None,
        zone: String::new(),
        alive: true,
    };
    let profile = Profile::rs(1, 1).expect("a profile");
    ClusterMap {
        cluster: ClusterId(cluster),
        version,
        catalog: types::Catalog::first(profile, 1),
        shards: 1,
        layout: Default::default(),
        nodes: (0..2).map(info).collect(),
        groups: place(profile, &[host(0), host(1)], 1).expect("two nodes"),
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Takes connections and never says anything.
async fn silent() -> SocketAddr {
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
        }
    });
    address
}

/// Answers any http request with `map`.
async fn source(map: ClusterMap) -> SocketAddr {
    let (listener, address) = listener().await;
    let body = serde_json::to_string(&map).expect("a map is JSON");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{body}").as_bytes()).await;
        }
    });
    address
}

/// Gives these answers, one to each command, the last one for ever; how many commands came.
async fn server(answers: &'static [&'static str]) -> (SocketAddr, Arc<AtomicUsize>) {
    let (listener, address) = listener().await;
    let commands = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&commands);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                while let Ok(1..) = stream.read(&mut [0; 1024]).await {
                    let at = count.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
                    let _ = stream.write_all(answers[at].as_bytes()).await;
                }
            });
        }
    });
    (address, commands)
}

/// A client of nodes that answer like this, and how many commands came.
async fn client_of(answers: &'static [&'static str]) -> (Client, Arc<AtomicUsize>) {
    let (address, commands) = server(answers).await;
    let source = source(map(1, 1, silent().await, address)).await;
    (Client::new(&[source], config()), commands)
}

/// That `operation` takes the deadline, give or take a tenth: once of three times, for machines are busy.
async fn takes_the_deadline(mut operation: impl AsyncFnMut()) {
    let mut all = Vec::new();
    while all.len() < 3 {
        let start = Instant::now();
        operation().await;
        let took = start.elapsed();
        assert!(took >= DEADLINE, "{took:?}");
        if took <= DEADLINE * 11 / 10 {
            return;
        }
        all.push(took);
    }
    panic!("{all:?}");
}

#[tokio::test]
async fn an_operation_ends_at_its_deadline_when_no_source_answers() {
    let sources = [silent().await, silent().await, silent().await];
    takes_the_deadline(async || {
        let error = Client::new(&sources, config()).get(b"key").await.expect_err("nobody answers");
        assert!(matches!(error, ClientError::Map(_)), "{error}");
    })
    .await;
}

#[tokio::test]
async fn an_operation_ends_at_its_deadline_when_no_node_answers() {
    let nowhere = silent().await;
    let source = source(map(1, 1, nowhere, nowhere)).await;
    let mut client = Client::new(&[nowhere, source, nowhere], config());
    takes_the_deadline(async || {
        let error = client.get(b"key").await.expect_err("nobody answers");
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    })
    .await;
    takes_the_deadline(async || {
        let error = client.set(b"key", b"value", 0, 0).await.expect_err("nobody answers");
        assert!(matches!(error, ClientError::Unknown(_)), "{error}");
    })
    .await;
}

#[tokio::test]
async fn an_operation_ends_at_its_deadline_when_nodes_refuse_and_sources_have_fallen_silent() {
    let (address, _) = server(&["SERVER_ERROR unavailable\r\n"]).await;
    let nowhere = silent().await;
    takes_the_deadline(async || {
        let once = answers_once(map(1, 1, nowhere, address)).await;
        let error = Client::new(&[once], config()).set(b"key", b"value", 0, 0).await.expect_err("refused");
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    })
    .await;
}

/// Answers the first http request with `map`, and no other.
async fn answers_once(map: ClusterMap) -> SocketAddr {
    let (listener, once) = listener().await;
    let body = serde_json::to_string(&map).expect("a map is JSON");
    tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.expect("a client");
        let _ = first.read(&mut [0; 1024]).await;
        let _ = first.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{body}").as_bytes()).await;
        drop(first);
        let _kept = listener.accept().await;
        std::future::pending::<()>().await;
    });
    once
}

#[tokio::test]
async fn the_newest_map_of_all_sources_is_taken_and_nobody_waits_for_the_silent() {
    let nowhere = silent().await;
    let old = source(map(1, 3, nowhere, nowhere)).await;
    let new = source(map(1, 7, nowhere, nowhere)).await;
    let empty = source(ClusterMap { groups: vec![], ..map(1, 9, nowhere, nowhere) }).await;
    let start = Instant::now();
    let mut router = Router::fetch(&[nowhere, old, new, empty], DEADLINE).await.expect("two have a map");
    assert_eq!(router.map().version, 7);
    assert!(start.elapsed() < DEADLINE / 2, "{:?}", start.elapsed());
    router.refresh(DEADLINE).await.expect("two have a map");
    assert_eq!(router.map().version, 7);
    assert!(start.elapsed() < DEADLINE, "{:?}", start.elapsed());
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}

/// Answers these http requests with these bodies, one after the other.
async fn script(lines: Vec<(String, String)>) -> SocketAddr {
    let (listener, address) = listener().await;
    tokio::spawn(async move {
        for (path, body) in lines {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let (mut request, mut part) = (Vec::new(), [0; 1024]);
            while !request.ends_with(b"\r\n\r\n") {
                let length = stream.read(&mut part).await.expect("a request");
                request.extend_from_slice(&part[..length]);
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let answer = match request.starts_with(&format!("GET {path} ")) {
                true => format!("HTTP/1.1 200 OK\r\n\r\n{body}"),
                false => format!("HTTP/1.1 500 Asked for something else\r\n\r\n{request}"),
            };
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn who_has_a_map_asks_what_has_changed_and_for_all_of_it_when_that_does_not_fit() {
    let nowhere = silent().await;
    let dead = |map: ClusterMap| {
        let nodes = map.nodes.into_iter().map(|node| NodeInfo { alive: false, ..node }).collect();
        ClusterMap { nodes, ..map }
    };
    let (first, last) = (dead(map(1, 3, nowhere, nowhere)), dead(map(1, 9, nowhere, nowhere)));
    let mut second = ClusterMap { version: 7, ..first.clone() };
    second.nodes[1].alive = true;
    let changes = first.changes_to(&second);
    let mut strange = MapChanges::none(ClusterId(1), 7, 8);
    strange.views = vec![types::GroupView { group: types::GroupId(5), ..first.groups[0].clone() }];
    let lines = vec![
        ("/map".to_owned(), json(&first)),
        ("/map?cluster=1&since=3".to_owned(), json(&changes)),
        ("/map?cluster=1&since=7".to_owned(), json(&strange)),
        ("/map".to_owned(), json(&last)),
    ];
    let mut router = Router::fetch(&[script(lines).await], DEADLINE).await.expect("a map");
    for expected in [&second, &second, &last] {
        router.refresh(DEADLINE).await.expect("an answer");
        assert_eq!(router.map(), expected);
    }
}

#[tokio::test]
async fn versions_of_another_cluster_do_not_count() {
    let nowhere = silent().await;
    let stranger = source(map(2, 99, nowhere, nowhere)).await;
    let (one, two) = (source(map(1, 3, nowhere, nowhere)).await, source(map(1, 4, nowhere, nowhere)).await);
    let mut router = Router::fetch(&[stranger, one, two], DEADLINE).await.expect("a map");
    assert_eq!((router.map().cluster, router.map().version), (ClusterId(1), 4));
    router.refresh(DEADLINE).await.expect("a map");
    assert_eq!((router.map().cluster, router.map().version), (ClusterId(1), 4));
}

#[tokio::test]
async fn a_write_that_was_not_done_by_its_code_is_tried_again() {
    let answers = &["SERVER_ERROR busy: whatever\r\n", "SERVER_ERROR unavailable\r\n", "STORED\r\n"];
    let (mut client, commands) = client_of(answers).await;
    client.set(b"key", b"value", 0, 0).await.expect("stored in the end");
    assert_eq!(commands.load(Ordering::Relaxed), 3);
    let (mut client, _) = client_of(&["SERVER_ERROR busy\r\n", "NOT_FOUND\r\n"]).await;
    assert_eq!(client.delete(b"key").await.expect("an answer"), Deleted::NotFound);
}

#[tokio::test]
async fn a_write_is_sent_once_whose_outcome_is_not_known_whatever_the_words_say() {
    for answers in [
        &["SERVER_ERROR unknown: nothing was done\r\n"],
        &["SERVER_ERROR partial\r\n"],
        &["SERVER_ERROR of a later version: nothing was done\r\n"],
    ] {
        let (mut client, commands) = client_of(answers).await;
        let error = client.set(b"key", b"value", 0, 0).await.expect_err("a failure");
        assert!(matches!(error, ClientError::Unknown(_)), "{error}");
        assert_eq!(commands.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_said_at_once() {
    for answers in
        [&["SERVER_ERROR lost: nothing was done\r\n"], &["SERVER_ERROR object too large for cache\r\n"]]
    {
        let (mut client, commands) = client_of(answers).await;
        let error = client.set(b"key", b"value", 0, 0).await.expect_err("a failure");
        assert!(matches!(error, ClientError::Server { code: Some(_), .. }), "{error}");
        assert_eq!(commands.load(Ordering::Relaxed), 1);
    }
}
