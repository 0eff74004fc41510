//! One lease at etcd, from its grant to its end: it is kept alive, what changes in etcd is followed, and elections are held.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::time::Duration;

use etcd::{Compare, Error, LeaseId, Op, Txn};
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until, timeout};
use types::{HostId, Time};

use super::candidate::Candidate;
use super::mirror::Mirror;
use super::reign::announce;
use crate::limits::{ETCD_REST, ETCD_RETRY};

/// See the module.
pub(crate) struct EtcdSession<'a> {
    pub candidate: &'a Candidate,
    pub lease: LeaseId,
    /// How long the lease lasts.
    pub ttl: Duration,
    /// Until when it certainly does.
    pub valid_until: Cell<Time>,
    pub mirror: RefCell<Mirror>,
    /// Something in the mirror has changed.
    pub changed: Notify,
}

/// Why a session is over.
#[derive(Debug)]
pub(crate) enum Ended {
    /// etcd does not answer, or refuses.
    Etcd(Error),
    /// The cluster is not for this node.
    Refused(String),
}

/// `ttl` after `from`, suspensions included: etcd's clock goes on.
fn after(from: Time, ttl: Duration) -> Time {
    from + u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX / 2)
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Etcd(error)
    }
}

impl Candidate {
    /// Gets a lease and takes part for as long as it lasts.
    pub(super) async fn session(&self) -> Result<Infallible, Ended> {
        self.client.version().await?;
        // The keys under it would keep the place of this node, and perhaps of the leader, until it runs out.
        if let Some(former) = self.lease.get() {
            self.client.revoke(former).await?;
        }
        let range = self.client.range(self.keys.prefix().as_bytes()).await?;
        let mirror = Mirror::of(&self.keys, range);
        // Before there is a lease: a node that is refused leaves nothing behind.
        self.check_settings(&mirror)?;
        // Before it is asked: at etcd the lease begins between the question and its answer.
        let asked = self.clock().time();
        let (lease, ttl) = self.client.grant(self.wanted_ttl()).await?;
        self.lease.set(Some(lease));
        self.election().reached();
        let session = EtcdSession {
            candidate: self,
            lease,
            ttl,
            valid_until: Cell::new(after(asked, ttl)),
            mirror: RefCell::new(mirror),
            changed: Notify::new(),
        };
        session.claim_key().await?;
        tracing::info!(node = %self.shared.host.node, %lease, ?ttl, "lease at etcd");
        tokio::select! {
            ended = session.keep_alive() => Err(ended),
            ended = session.follow() => Err(ended),
            ended = session.keep_key() => Err(ended),
            never = session.govern() => match never {},
        }
    }
}

impl EtcdSession<'_> {
    /// Keeps the node's own key, which says for as long as the lease lasts that it lives, and where.
    async fn keep_key(&self) -> Ended {
        loop {
            sleep(ETCD_REST).await;
            match self.claim_key().await {
                // How long etcd may be away is for `keep_alive` to say.
                Err(error) if !error.is_outage() => return Ended::Etcd(error),
                Ok(()) | Err(_) => (),
            }
        }
    }

    /// Puts the node's own key, unless that is there, or another process has it by right. If somebody is faster it is seen to
    /// the next time.
    async fn claim_key(&self) -> Result<(), Error> {
        let shared = &self.candidate.shared;
        // Not before the coordinator has let this process in, or two of one id would drive each other out.
        let may_replace =
            |other: HostId| shared.map().is_some() && other.incarnation < shared.host.incarnation;
        let Some(seen) = self.mirror.borrow().claim(shared.host.node, self.lease, may_replace) else {
            return Ok(());
        };
        let key = self.candidate.keys.node(shared.host.node);
        let value = serde_json::to_vec(&shared.info()).unwrap_or_default();
        let compares = vec![Compare::Changed(key.clone(), seen)];
        let ops = vec![Op::Put { key, value, lease: Some(self.lease) }];
        self.candidate.client.txn(Txn { compares, ops }).await.map(drop)
    }

    /// Renews the lease until that fails for as long as it lasts.
    async fn keep_alive(&self) -> Ended {
        let clock = self.candidate.clock();
        let mut asked = clock.time();
        loop {
            // Not a third after the answer: that may have come from the last member that could be asked.
            if let Some(due) = clock.instant(after(asked, self.ttl / 3)) {
                sleep_until(due).await;
            }
            asked = match self.renew().await {
                Ok(asked) => asked,
                Err(error) => return Ended::Etcd(error),
            };
        }
    }

    /// Returns when the lease was asked for anew with success.
    async fn renew(&self) -> Result<Time, Error> {
        loop {
            let asked = self.candidate.clock().time();
            match self.candidate.client.keep_alive(self.lease).await {
                Ok(ttl) => {
                    self.valid_until.set(after(asked, ttl));
                    self.candidate.extend(after(asked, ttl));
                    self.candidate.election().reached();
                    return Ok(asked);
                }
                Err(error) if error.is_outage() => {
                    self.candidate.election().missed(&error.to_string());
                    if self.candidate.clock().time() >= self.valid_until.get() {
                        return Err(error);
                    }
                    sleep(ETCD_RETRY).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps the mirror.
    async fn follow(&self) -> Ended {
        loop {
            match self.follow_once().await {
                Err(Ended::Etcd(error)) if error.is_outage() || matches!(error, Error::Compacted(_)) => {
                    tracing::debug!(%error, "etcd's changes are not heard");
                    sleep(ETCD_RETRY).await;
                }
                Err(ended) => return ended,
                Ok(never) => match never {},
            }
        }
    }

    async fn follow_once(&self) -> Result<Infallible, Ended> {
        let candidate = self.candidate;
        let prefix = candidate.keys.prefix().as_bytes();
        let range = candidate.client.range(prefix).await?;
        // From the very next revision on, so no change is missed between the two.
        let mut watch = candidate.client.watch(prefix, range.revision + 1).await?;
        self.mirror.replace(Mirror::of(&candidate.keys, range));
        loop {
            self.learn()?;
            for change in watch.next().await? {
                self.mirror.borrow_mut().apply(&candidate.keys, change);
            }
        }
    }

    /// What the mirror shows is news for the rest of the node.
    fn learn(&self) -> Result<(), Ended> {
        let (candidate, mirror) = (self.candidate, self.mirror.borrow());
        candidate.check_settings(&mirror)?;
        let ours = mirror.check_cluster(&candidate.keys, candidate.own_cluster());
        match ours.and_then(|()| mirror.leader(&candidate.keys)) {
            Ok(leader) => {
                let node = leader.map(|leader| leader.host.node);
                announce(candidate.election().status().leader, node);
                candidate.election().leads(node);
                // Who led last is asked until another one does: it may be etcd alone that is away.
                if let Some(leader) = leader {
                    // It has found everything in order.
                    candidate.election().found(None);
                    candidate.shared.coordinator_is_at(leader.address.to_string());
                }
            }
            Err(bad) => candidate.election().found(Some(&bad)),
        }
        if let (_, Some(bad)) = mirror.alive(&candidate.keys) {
            tracing::warn!(key = bad.key, why = bad.why, "what etcd has under this key is ignored");
        }
        self.changed.notify_one();
        Ok(())
    }

    /// Returns at the next change, or when there has been none for a while.
    pub(super) async fn wait_for_news(&self) {
        let _ = timeout(ETCD_REST, self.changed.notified()).await;
    }
}
