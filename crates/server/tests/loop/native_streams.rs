//! Values that are written as streams by the Rust client of the native protocol.

use std::io;
use std::time::Duration;

use gestalt::{Bytes, Client, Error, Store, StoreMode, Stored};
use proto::Timing;
use tokio::io::AsyncWriteExt as _;

use crate::harness::{Cluster, PATIENCE, Plan};
use crate::native_chunks::nothing_is_left;
use crate::native_client::{noise, runtime, striped, uri};

/// What the documentation of the crate shows.
mod shown {
    include!("../../../gestalt/conformance/streams.rs");

    pub(super) async fn both_ways(client: &Client, key: &str, value: &[u8]) {
        let version = store(client, key, value.len() as u64, value).await.expect("it is stored");
        let about = client.stat(key.to_owned()).await.expect("an answer").expect("it is there");
        assert_eq!(about.meta.version, version);
        assert_eq!(length(client, key).await.expect("it is read"), Some(value.len() as u64));
        assert_eq!(length(client, "nothing").await.expect("it is asked"), None);
    }
}

/// Values that lie whole: none, of one frame, of several; and those in chunks, of one stripe and of several.
const LENGTHS: [usize; 7] = [0, 1, 1000, 65_536, 65_537, 1_000_000, 5 << 20];

/// Values above 64 KiB lie in chunks; ids and pins of clients that say nothing any more end soon.
fn cluster() -> Cluster {
    let brief = Timing { object_deadline_us: 2_000_000, ask_us: 3_000_000, ..Plan::default().timing };
    let timing = Timing { pin_us: 2_000_000, ..brief };
    striped(&Plan { timing, ..Plan::default() })
}

/// A client of each way in which values in chunks come to their holders.
async fn clients(cluster: &Cluster) -> [Client; 2] {
    let connect = |mode| async move {
        Client::connect(&format!("{}&encode={mode}", uri(cluster, 2))).await.expect("a node that listens")
    };
    [connect("client").await, connect("server").await]
}

/// Writes `bytes` in parts of a length of which no limit is a multiple, to a value that is to have `len` of them.
async fn write(client: &Client, key: &str, len: u64, bytes: &[u8]) -> io::Result<gestalt::Writer> {
    let mut writer = client.writer(key.to_owned(), len, Store::default()).expect("it is asked");
    for part in bytes.chunks(7001) {
        writer.write_all(part).await?;
    }
    writer.flush().await?;
    Ok(writer)
}

async fn found(client: &Client, key: &str) -> Option<Bytes> {
    client.get(key.to_owned()).await.expect("an answer").map(|found| found.bytes)
}

#[test]
fn what_is_written_is_stored_by_the_shutdown_and_not_before() {
    let cluster = cluster();
    runtime().block_on(async {
        for (at, client) in clients(&cluster).await.iter().enumerate() {
            for len in LENGTHS {
                let (key, value) = (format!("{at}-{len}"), noise(len as u64, len));
                let mut writer = write(client, &key, len as u64, &value).await.expect("there is room");
                assert_eq!((writer.written(), writer.stored()), (len as u64, None));
                assert_eq!(found(client, &key).await, None, "{key}");
                writer.shutdown().await.expect("it is stored");
                assert!(found(client, &key).await.is_some_and(|found| found == value), "{key}");
                let about = client.stat(key).await.expect("an answer").expect("it is there");
                assert_eq!(writer.stored(), Some(Stored::Version(about.meta.version)));
                // Once is enough.
                writer.shutdown().await.expect("it is stored");
                assert_eq!(writer.finish().await.expect("it is stored"), Stored::Version(about.meta.version));
                shown::both_ways(client, "shown", &value).await;
            }
        }
    });
    nothing_is_left(&cluster);
}

#[test]
fn too_few_bytes_too_many_and_a_writer_that_is_dropped_leave_nothing() {
    let cluster = cluster();
    runtime().block_on(async {
        for client in clients(&cluster).await {
            for len in LENGTHS {
                let (key, value) = (format!("{len}"), noise(len as u64, len + 1));
                if let Some(fewer) = len.checked_sub(1) {
                    let writer =
                        write(&client, &key, len as u64, &value[..fewer]).await.expect("there is room");
                    let ended = writer.finish().await.map_err(|error| error.kind());
                    assert_eq!(ended, Err(io::ErrorKind::UnexpectedEof), "{len}");
                }
                let many = write(&client, &key, len as u64, &value).await.map(drop);
                assert_eq!(many.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidInput), "{len}");
                for given in [len / 2, len] {
                    drop(write(&client, &key, len as u64, &value[..given]).await.expect("there is room"));
                }
                drop(client.upload(key.clone(), len as u64, Store::default()).expect("it is asked"));
                assert_eq!(found(&client, &key).await, None, "{len}");
            }
        }
    });
    nothing_is_left(&cluster);
}

#[test]
fn a_writer_that_has_failed_stays_so() {
    let cluster = Cluster::start();
    runtime().block_on(async {
        let client = Client::connect(&uri(&cluster, 0)).await.expect("a node that listens");
        let mut writer = client.writer("k", 2, Store::default()).expect("it is asked");
        assert!(writer.write_all(b"abc").await.is_err());
        let closed = |error: io::Error| error.downcast::<Error>().ok();
        assert_eq!(writer.write_all(b"a").await.map_err(closed), Err(Some(Error::Closed)));
        assert_eq!(writer.shutdown().await.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!((writer.stored(), found(&client, "k").await), (None, None));
        assert_eq!(client.writer("", 1, Store::default()).map(drop), Err(Error::BadKey));
    });
}

#[test]
fn a_condition_that_does_not_hold_and_a_deadline_are_told_by_the_shutdown() {
    let cluster = cluster();
    runtime().block_on(async {
        for client in clients(&cluster).await {
            client.set("there", "before").await.expect("it is stored");
            for len in [10, 1_000_000] {
                let add = Store { mode: StoreMode::Add, ..Store::default() };
                let mut writer = client.writer("there", len, add).expect("it is asked");
                writer.write_all(&noise(1, len as usize)).await.expect("nobody wants the rest");
                writer.shutdown().await.expect("it has an outcome");
                assert_eq!(writer.stored(), Some(Stored::No));
                assert_eq!(found(&client, "there").await, Some(Bytes::from("before")));
            }
            let hasty = client.within(Duration::from_millis(50));
            let mut writer = hasty.writer("slow", 1_000_000, Store::default()).expect("it is asked");
            // Its time may be over before there is room for all of this.
            let _ = writer.write_all(&noise(1, 500_000)).await;
            let write = async {
                while writer.write_all(&[7; 100]).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(PATIENCE, write).await.expect("its time is over");
            assert_eq!(found(&client, "slow").await, None);
        }
    });
    nothing_is_left(&cluster);
}
