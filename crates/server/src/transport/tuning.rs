//! How the system is to treat a connection: what is small leaves at once, and who is gone without a word is noticed.

use std::time::Duration;

use proto::Timing;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use crate::limits::CLIENT_KEEPALIVE;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tuning {
    /// For a client, which may be silent for as long as it likes.
    Client,
    /// For a connection between nodes.
    Peer {
        /// How long the other side may be silent, the system's own questions included, before the connection counts as lost.
        silence: Duration,
    },
}

impl Tuning {
    /// Of connections between nodes that keep this time.
    pub(crate) fn of_peers(timing: &Timing) -> Self {
        // Well above the lease: the protocol decides who is lost, and this only clears the connection away.
        let silence = Duration::from_micros(timing.node_lease_us * 4).max(Duration::from_secs(2));
        Self::Peer { silence }
    }

    /// A failure is harmless.
    pub(super) fn apply(self, stream: &TcpStream) {
        let socket = SockRef::from(stream);
        let _ = socket.set_tcp_nodelay(true);
        let _ = socket.set_tcp_keepalive(&self.keepalive());
        #[cfg(target_os = "linux")]
        if let Self::Peer { silence } = self {
            // Keepalive asks only while nothing is unacknowledged. While something is, this is what counts.
            let _ = socket.set_tcp_user_timeout(Some(silence));
        }
    }

    fn keepalive(self) -> TcpKeepalive {
        match self {
            Self::Client => {
                let (silence, probes) = CLIENT_KEEPALIVE;
                TcpKeepalive::new().with_time(silence).with_interval(silence / probes).with_retries(probes)
            }
            Self::Peer { silence } => {
                // One quarter of silence, then three questions, a quarter each. The system counts in whole seconds.
                let probe = (silence / 4).max(Duration::from_secs(1));
                TcpKeepalive::new().with_time(probe).with_interval(probe).with_retries(3)
            }
        }
    }
}
