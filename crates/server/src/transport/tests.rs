//! The seam over this machine's loopback; and a client, over a transport that does what TCP does not.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::clients::connection;
use crate::places::Places;
use crate::workers::run::runtime;
use crate::workers::worker::tests::alone;

async fn connected() -> (Stream, Stream) {
    let (listener, addr) = on_loopback();
    let (near, far) = tokio::join!(Stream::connect(addr), listener.accept());
    (near.unwrap(), far.unwrap())
}

async fn read_to_end(reader: &mut Reader) -> BytesMut {
    let mut all = BytesMut::new();
    while reader.read(&mut all).await.unwrap() > 0 {}
    all
}

#[tokio::test]
async fn halves_carry_more_than_a_socket_holds_and_the_end() {
    const LEN: usize = 8 << 20;
    let (near, far) = connected().await;
    let ((_, writer), (mut reader, _)) = (near.split(), far.split());
    let writing = async move { writer.write_all(&vec![7; LEN]).await.unwrap() };
    let ((), read) = tokio::join!(writing, read_to_end(&mut reader));
    assert!(read.len() == LEN && read.iter().all(|byte| *byte == 7));
}

#[test]
fn a_connection_goes_on_in_another_thread() {
    let (near, far) = runtime().unwrap().block_on(async {
        let (near, far) = connected().await;
        far.tune(Tuning::Client);
        (near.detach().unwrap(), far.detach().unwrap())
    });
    let there = std::thread::spawn(|| {
        runtime().unwrap().block_on(async {
            let mut far = far.attach().unwrap();
            let asked = far.read_u8().await.unwrap();
            far.close_with(&[asked + 1]);
        });
    });
    runtime().unwrap().block_on(async {
        let mut near = near.attach().unwrap();
        near.write_u8(1).await.unwrap();
        let mut heard = Vec::new();
        near.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, [2]);
    });
    there.join().unwrap();
}

#[test]
fn a_client_hears_every_answer_where_a_writer_holds_bytes_back() {
    const COMMANDS: usize = 1000;
    runtime().unwrap().block_on(async {
        let [server, (mut reader, writer)] = in_memory(7);
        let place = Places::new(1).take().unwrap();
        tokio::task::spawn_local(connection::serve(alone(), server, place, None));
        let asking = async move {
            let commands = [&b"mn\r\n".repeat(COMMANDS)[..], b"quit\r\n"].concat();
            writer.write_all(&commands).await.unwrap();
        };
        let ((), heard) = tokio::join!(asking, read_to_end(&mut reader));
        assert_eq!(heard, b"MN\r\n".repeat(COMMANDS));
    });
}
