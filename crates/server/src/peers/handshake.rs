//! How two nodes open a link: the side with the lower node id dials and says who it is and whom it means, the other
//! checks that against the map and answers.

use std::io;

use bytes::BytesMut;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use types::{ClusterId, ClusterMap, HostId, NodeInfo};
use wire::frame::{Decoder, Encoder, FrameError, LinkHello, LinkMessage, LinkWelcome, Message, Refusal};

use crate::limits::{CONNECT_DEADLINE, HANDSHAKE_DEADLINE};
use crate::transport::{Stream, Tuning};

/// An opened link: the socket and what the frames have come to.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Who is on the other side.
    pub peer: HostId,
    /// The connection.
    pub stream: Stream,
    /// Numbers what is sent.
    pub encoder: Encoder,
    /// Checks what comes.
    pub decoder: Decoder,
    /// What has come and has not been looked at.
    pub input: BytesMut,
}

/// Why a link was not opened.
#[derive(Debug, Error)]
pub(crate) enum HandshakeError {
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The peer took too long.
    #[error("no answer in time")]
    Timeout,
    /// The peer does not speak this protocol.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The peer does not begin as it should.
    #[error("unexpected first message")]
    Unexpected,
    /// The peer is somebody else, in this life or at all.
    #[error("{0} answered")]
    SomebodyElse(HostId),
    /// The peer refused.
    #[error("refused: {0}")]
    RefusedByPeer(Refusal),
    /// This node refused.
    #[error("refused the peer: {0}")]
    RefusedPeer(Refusal),
    /// The worker that is meant does not take it.
    #[error("the worker is stuck")]
    StuckWorker,
    /// This node does not know the cluster yet.
    #[error("no map yet")]
    NoMap,
}

/// Who this side is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// The cluster of both.
    pub cluster: ClusterId,
    /// This process.
    pub host: HostId,
}

/// Opens a link to worker `shard` of `peer`.
pub(crate) async fn dial(
    me: Identity,
    peer: &NodeInfo,
    shard: u16,
    tuning: Tuning,
) -> Result<Opened, HandshakeError> {
    let connecting = timeout(CONNECT_DEADLINE, Stream::connect(peer.peer));
    let stream = connecting.await.map_err(|_| HandshakeError::Timeout)??;
    stream.tune(tuning);
    let mut link = Opened::new(me, peer.host, stream);
    let hello = LinkHello { cluster: me.cluster, from: me.host, to: peer.host.node, shard };
    timeout(HANDSHAKE_DEADLINE, link.introduce(hello)).await.map_err(|_| HandshakeError::Timeout)??;
    Ok(link)
}

/// Lets a peer open a link; which worker it means.
pub(crate) async fn accept(
    me: HostId,
    map: Option<&ClusterMap>,
    stream: Stream,
    tuning: Tuning,
) -> Result<(Opened, u16), HandshakeError> {
    let map = map.ok_or(HandshakeError::NoMap)?;
    stream.tune(tuning);
    // Who the peer is comes with its hello; until then this side stands in its place.
    let mut link = Opened::new(Identity { cluster: map.cluster, host: me }, me, stream);
    timeout(HANDSHAKE_DEADLINE, link.welcome(me, map))
        .await
        .map_err(|_| HandshakeError::Timeout)?
        .map(|shard| (link, shard))
}

impl Opened {
    fn new(me: Identity, peer: HostId, stream: Stream) -> Self {
        let (encoder, decoder) = (Encoder::new(me.cluster, me.host), Decoder::new(me.cluster));
        Self { peer, stream, encoder, decoder, input: BytesMut::new() }
    }

    async fn introduce(&mut self, hello: LinkHello) -> Result<(), HandshakeError> {
        self.send(LinkMessage::Hello(hello)).await?;
        match self.receive().await? {
            LinkMessage::Welcome(LinkWelcome { from }) if from == self.peer => Ok(()),
            LinkMessage::Welcome(LinkWelcome { from }) => Err(HandshakeError::SomebodyElse(from)),
            LinkMessage::Refused(refusal) => Err(HandshakeError::RefusedByPeer(refusal)),
            LinkMessage::Hello(_) => Err(HandshakeError::Unexpected),
        }
    }

    async fn welcome(&mut self, me: HostId, map: &ClusterMap) -> Result<u16, HandshakeError> {
        let LinkMessage::Hello(hello) = self.receive().await? else { return Err(HandshakeError::Unexpected) };
        if let Err(refusal) = judge(me, map, &hello) {
            self.send(LinkMessage::Refused(refusal)).await?;
            return Err(HandshakeError::RefusedPeer(refusal));
        }
        self.peer = hello.from;
        self.send(LinkMessage::Welcome(LinkWelcome { from: me })).await?;
        Ok(hello.shard)
    }

    async fn send(&mut self, message: LinkMessage) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.encoder.encode(&message, &mut bytes).expect("a handshake fits into a frame");
        self.stream.write_all(&bytes).await
    }

    async fn receive(&mut self) -> Result<LinkMessage, HandshakeError> {
        loop {
            match self.decoder.next(&mut self.input)? {
                Some((_, Message::Link(message))) => return Ok(message),
                Some(_) => return Err(HandshakeError::Unexpected),
                None => (),
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

/// Whether the peer that says `hello` may have its link.
fn judge(me: HostId, map: &ClusterMap, hello: &LinkHello) -> Result<(), Refusal> {
    if hello.to != me.node {
        return Err(Refusal::WrongNode);
    }
    if hello.shard >= map.shards {
        return Err(Refusal::WrongShard);
    }
    // Lower ids dial. Two sides that both do would replace each other's links for ever.
    let known =
        map.node(hello.from.node).filter(|_| hello.from.node < me.node).ok_or(Refusal::UnknownNode)?;
    match hello.from.incarnation.cmp(&known.host.incarnation) {
        std::cmp::Ordering::Less => Err(Refusal::StaleIncarnation),
        std::cmp::Ordering::Equal => Ok(()),
        // The map here may be the older one: the peer dials again.
        std::cmp::Ordering::Greater => Err(Refusal::UnknownNode),
    }
}

#[cfg(test)]
mod tests {
    use proto::Timing;
    use types::{Incarnation, NodeId, Profile};

    use super::*;
    use crate::transport;

    fn host(node: u16, incarnation: u64) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(incarnation) }
    }

    fn map() -> ClusterMap {
        let addr = "127.0.0.1:1".parse().unwrap();
        let info = |node| NodeInfo {
            host: host(node, 5),
            peer: addr,
            memcached: addr,
            http: addr,
            native: None,
            zone: String::new(),
            alive: true,
        };
        ClusterMap {
            cluster: ClusterId(7),
            version: 1,
            catalog: types::Catalog::first(Profile::rs(1, 1).unwrap(), 1),
            shards: 2,
            layout: Default::default(),
            nodes: (0..3).map(info).collect(),
            groups: vec![],
        }
    }

    fn judged(from: HostId, to: u16, shard: u16) -> Result<(), Refusal> {
        judge(host(1, 5), &map(), &LinkHello { cluster: ClusterId(7), from, to: NodeId(to), shard })
    }

    #[test]
    fn only_a_known_lower_node_in_its_present_life_gets_a_link() {
        assert_eq!(judged(host(0, 5), 1, 1), Ok(()));
        assert_eq!(judged(host(0, 4), 1, 0), Err(Refusal::StaleIncarnation));
        assert_eq!(judged(host(0, 6), 1, 0), Err(Refusal::UnknownNode));
        assert_eq!(judged(host(2, 5), 1, 0), Err(Refusal::UnknownNode));
        assert_eq!(judged(host(9, 5), 1, 0), Err(Refusal::UnknownNode));
        assert_eq!(judged(host(0, 5), 2, 0), Err(Refusal::WrongNode));
        assert_eq!(judged(host(0, 5), 1, 2), Err(Refusal::WrongShard));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn two_sides_open_a_link_and_garbage_does_not() {
        let (listener, addr) = transport::on_loopback();
        let tuning = Tuning::of_peers(&Timing::default());
        let mut peer = map().nodes[1].clone();
        peer.peer = addr;
        let me = Identity { cluster: ClusterId(7), host: host(0, 5) };
        let dialling = tokio::spawn(async move { dial(me, &peer, 1, tuning).await });
        let stream = listener.accept().await.unwrap();
        let (opened, shard) = accept(host(1, 5), Some(&map()), stream, tuning).await.unwrap();
        assert_eq!((opened.peer, shard), (host(0, 5), 1));
        assert_eq!(dialling.await.unwrap().unwrap().peer, host(1, 5));

        let mut rude = Stream::connect(addr).await.unwrap();
        rude.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let stream = listener.accept().await.unwrap();
        let error = accept(host(1, 5), Some(&map()), stream, tuning).await.unwrap_err();
        assert!(matches!(error, HandshakeError::Frame(FrameError::Malformed(_))), "{error}");
    }
}
