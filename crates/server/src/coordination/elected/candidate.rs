//! The thread that takes part in elections.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd::{Client, Error, LeaseId};
use tokio::runtime::LocalRuntime;
use tokio::time::timeout;
use types::{ClusterId, Entry, Time};

use super::config::ElectedConfig;
use super::keys::Keys;
use super::mirror::Mirror;
use super::session::Ended;
use super::settings::Settings;
use super::status::Election;
use crate::NodeExit;
use crate::clock::Clock;
use crate::coordination::presiding::Presiding;
use crate::limits::{ACCEPT_PAUSE, ETCD_FAREWELL, ETCD_LEAST_LEASE, ETCD_RETRY};
use crate::node::shared::Shared;
use crate::transport::DetachedListener;

/// What a candidate is from one session to the next.
pub(crate) struct Candidate {
    pub shared: Arc<Shared>,
    pub client: Client,
    pub keys: Keys,
    /// Where nodes connect while this node leads.
    pub address: SocketAddr,
    /// The last lease that was granted.
    pub lease: Cell<Option<LeaseId>>,
    config: ElectedConfig,
    /// Set while this node leads.
    reign: RefCell<Option<Rc<Presiding>>>,
    rests_until: Cell<Option<Instant>>,
}

/// Runs a candidate on this thread until the node ends.
pub(crate) fn run(
    runtime: &LocalRuntime,
    shared: &Arc<Shared>,
    config: ElectedConfig,
    listener: DetachedListener,
    address: SocketAddr,
) {
    runtime.block_on(async {
        let client = match Client::new(config.etcd.clone().within(wanted_ttl(shared))) {
            Ok(client) => client,
            Err(error) => return shared.end(NodeExit::Etcd(error.to_string())),
        };
        let candidate = Rc::new(Candidate::new(shared, client, config, address));
        tokio::task::spawn_local(accept(Rc::clone(&candidate), listener));
        tokio::select! {
            () = candidate.stand() => (),
            _ = shared.ended() => (),
        }
        candidate.leave().await;
    });
}

/// How long the lease at etcd is to last: as long as the node's own, in etcd's whole seconds.
fn wanted_ttl(shared: &Shared) -> Duration {
    Duration::from_micros(shared.config.timing.node_lease_us).max(ETCD_LEAST_LEASE)
}

/// Hands nodes' connections to the reign; while there is none, they are closed.
async fn accept(candidate: Rc<Candidate>, listener: DetachedListener) {
    let listener = match listener.attach() {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the coordinator cannot listen"),
    };
    loop {
        match listener.accept().await {
            Ok(stream) => {
                if let Some(presiding) = &*candidate.reign.borrow() {
                    presiding.take(stream);
                }
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl Candidate {
    fn new(shared: &Arc<Shared>, client: Client, config: ElectedConfig, address: SocketAddr) -> Self {
        Self {
            shared: Arc::clone(shared),
            client,
            keys: Keys::new(&config.name),
            address,
            lease: Cell::new(None),
            config,
            reign: RefCell::default(),
            rests_until: Cell::new(None),
        }
    }

    pub(super) fn election(&self) -> &Election {
        self.shared.election.as_ref().expect("a node with a candidate has an election")
    }

    pub(super) fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// One session after the other.
    async fn stand(&self) {
        let mut was_in = false;
        loop {
            let Err(ended) = self.session().await;
            was_in |= self.election().status().reachable;
            let text = match ended {
                Ended::Refused(text) if self.shared.map().is_none() => {
                    return self.shared.end(NodeExit::Etcd(text));
                }
                Ended::Refused(text) => text,
                // Without a pause: it is etcd that has said so, so it answers.
                Ended::Etcd(Error::LeaseGone) => {
                    tracing::warn!("the lease at etcd has run out: taking another one");
                    continue;
                }
                // What was wrong from the start does not become right by waiting.
                Ended::Etcd(error) if !was_in && !error.is_outage() => {
                    return self.shared.end(NodeExit::Etcd(error.to_string()));
                }
                Ended::Etcd(error) => error.to_string(),
            };
            self.election().missed(&text);
            tokio::time::sleep(ETCD_RETRY).await;
        }
    }

    /// Lets others lead at once instead of when the lease runs out.
    async fn leave(&self) {
        if let Some(lease) = self.lease.get() {
            let _ = timeout(ETCD_FAREWELL, self.client.revoke(lease)).await;
        }
    }

    /// The cluster that this node serves already.
    pub(super) fn own_cluster(&self) -> Option<ClusterId> {
        self.shared.map().map(|map| map.cluster)
    }

    pub(super) fn wanted_ttl(&self) -> Duration {
        wanted_ttl(&self.shared)
    }

    /// That the cluster in `mirror`, if there is one, is one for this node.
    pub(super) fn check_settings(&self, mirror: &Mirror) -> Result<(), Ended> {
        match mirror.settings(&self.keys) {
            // Who serves is in already. Whether it is the same cluster is another question (`Mirror::check_cluster`).
            Ok(Some(_)) if self.own_cluster().is_some() => Ok(()),
            Ok(Some(settings)) => {
                settings.unmet(&self.shared.config).map_or(Ok(()), |text| Err(Ended::Refused(text)))
            }
            // Garbage is nobody's fault here.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// The settings with which this node would form the cluster; one that joins forms none.
    pub(super) fn founding(&self) -> Option<Settings> {
        let config = &self.shared.config;
        if config.entry == Entry::Joiner {
            return None;
        }
        match Settings::found(config, &self.config) {
            Ok(settings) => Some(settings),
            Err(text) => {
                self.shared.end(NodeExit::Etcd(text));
                None
            }
        }
    }

    /// Whoever has just led lets others try: they may see more.
    pub(super) fn rest(&self, ttl: Duration) {
        self.rests_until.set(Some(Instant::now() + ttl));
    }

    pub(super) fn is_resting(&self) -> bool {
        self.rests_until.get().is_some_and(|until| Instant::now() < until)
    }

    /// Nodes are served from now on, until the answer is dropped.
    pub(super) fn enthrone(&self, presiding: Rc<Presiding>) -> Presence<'_> {
        self.election().presides(true);
        self.reign.replace(Some(Rc::clone(&presiding)));
        Presence { candidate: self, presiding }
    }

    /// The lease lasts until `until`, and with it the reign, if there is one.
    pub(super) fn extend(&self, until: Time) {
        if let Some(presiding) = &*self.reign.borrow() {
            presiding.extend(until);
        }
    }
}

/// A reign, ended however it ends.
pub(super) struct Presence<'a> {
    candidate: &'a Candidate,
    presiding: Rc<Presiding>,
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.presiding.end("its session at etcd has ended");
        self.presiding.hang_up();
        self.candidate.reign.take();
        self.candidate.election().presides(false);
    }
}
