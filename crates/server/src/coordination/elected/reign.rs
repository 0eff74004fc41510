//! One leadership: from the election until somebody else leads, etcd is away for too long, or a record is not what this
//! leader has written.

use std::rc::Rc;

use etcd::{Compare, Op, Txn, TxnOutcome};
use tokio::sync::watch;
use tracing::dispatcher::{self, Dispatch};
use types::NodeId;

use super::journal::Journal;
use super::keys::{LEADER, Leader, SETTINGS};
use super::mirror::{Found, Mirror};
use super::session::EtcdSession;
use super::settings::Settings;
use crate::coordination::presiding::{Presiding, Records};

impl EtcdSession<'_> {
    /// Stands for election, as often as there is reason to, and presides when elected.
    pub(super) async fn govern(&self) -> std::convert::Infallible {
        loop {
            match self.chance() {
                Chance::Elect(founding) => {
                    if let Some(created) = self.campaign(founding).await {
                        self.lead(created).await;
                    }
                }
                Chance::Abdicate(created) => self.abdicate(created).await,
                Chance::Wait => (),
            }
            self.wait_for_news().await;
        }
    }

    /// What there is to do while this node does not lead.
    fn chance(&self) -> Chance {
        let mirror = self.mirror.borrow();
        if let Some(key) = mirror.leader_key() {
            // An own key without a reign: of a campaign whose outcome was not known.
            return if key.lease == Some(self.lease) {
                Chance::Abdicate(key.create_revision)
            } else {
                Chance::Wait
            };
        }
        // A picture that was never read shows no leader either.
        if !mirror.is_known() || self.candidate.is_resting() {
            return Chance::Wait;
        }
        let keys = &self.candidate.keys;
        let ours = mirror.check_cluster(keys, self.candidate.own_cluster());
        // Only to see whether it could be done: nothing that would be logged about it happens.
        let resume = || mirror.resume(keys, self.candidate.clock().now());
        let rehearse = || dispatcher::with_default(&Dispatch::none(), resume);
        let found = ours.and_then(|()| rehearse());
        self.candidate.election().found(found.as_ref().err());
        match found {
            Ok(Some(_)) => Chance::Elect(None),
            Ok(None) => {
                self.candidate.founding().map_or(Chance::Wait, |settings| Chance::Elect(Some(settings)))
            }
            Err(_) => Chance::Wait,
        }
    }

    /// Takes the leader's key if nobody has it, with the settings if there are none yet; the revision at which it is ours.
    async fn campaign(&self, founding: Option<Settings>) -> Option<i64> {
        let candidate = self.candidate;
        let (leader, settings) = (candidate.keys.full(LEADER), candidate.keys.full(SETTINGS));
        let value = Leader { host: candidate.shared.host, address: candidate.address };
        let value = serde_json::to_vec(&value).unwrap_or_default();
        let mut txn = Txn {
            compares: vec![Compare::Created(leader.clone(), 0)],
            ops: vec![Op::Put { key: leader, value, lease: Some(self.lease) }],
        };
        if let Some(founding) = founding {
            // Others may found it too, and with other wishes: the settings are those of the one that leads.
            txn.compares.push(Compare::Created(settings.clone(), 0));
            txn.ops.push(Op::Put { key: settings, value: founding.encode(), lease: None });
        }
        match candidate.client.txn(txn).await {
            Ok(TxnOutcome::Done(created)) => Some(created),
            Ok(TxnOutcome::Failed) => None,
            Err(error) => {
                // If this node was elected all the same, `chance` finds its key and gives it back.
                tracing::warn!(%error, "election: no answer");
                None
            }
        }
    }

    async fn lead(&self, created: i64) {
        let node = self.candidate.shared.host.node;
        tracing::info!(%node, term = created, "elected");
        let reason = self.reign(created).await;
        tracing::warn!(%node, term = created, reason, "presides no more");
        self.candidate.rest(self.ttl);
        self.abdicate(created).await;
    }

    /// Presides; why no more.
    async fn reign(&self, created: i64) -> String {
        let candidate = self.candidate;
        // What the watch shows may be older than the election.
        let mirror = match candidate.client.range(candidate.keys.prefix().as_bytes()).await {
            Ok(range) => Mirror::of(&candidate.keys, range),
            Err(error) => return format!("the records cannot be read: {error}"),
        };
        let Found { settings, coordinator } = match mirror.resume(&candidate.keys, candidate.clock().now()) {
            Ok(Some(found)) => found,
            Ok(None) => return "there are no settings".to_owned(),
            Err(bad) => {
                candidate.election().found(Some(&bad));
                return format!("{}: {}", bad.key, bad.why);
            }
        };
        let journal = Journal::new(candidate.client.clone(), candidate.keys.clone(), created, &mirror);
        let records =
            Records::Written { due: Default::default(), valid_until: self.valid_until.get().into() };
        let (timing, status) = (settings.coordinator().timing, watch::Sender::default());
        let presiding = Presiding::new(coordinator, timing, candidate.clock(), records, status);
        let _presence = candidate.enthrone(Rc::clone(&presiding));
        let ticking = async {
            Rc::clone(&presiding).tick().await;
            std::future::pending().await
        };
        tokio::select! {
            reason = presiding.ended() => reason,
            reason = journal.write(&presiding) => reason,
            reason = self.oversee(&presiding, &journal, created) => reason,
            never = ticking => never,
        }
    }

    /// Looks at what others do; why it is over.
    async fn oversee(&self, presiding: &Presiding, journal: &Journal, created: i64) -> String {
        let mut known = None;
        loop {
            let alive = {
                let mirror = self.mirror.borrow();
                let key = mirror.leader_key().map(|key| key.create_revision);
                // A picture from before the election cannot show this leader, here and below.
                if mirror.revision >= created && key != Some(created) {
                    return "its key is gone".to_owned();
                }
                if mirror.revision >= created
                    && let Some(key) = journal.stranger(&mirror)
                {
                    return format!("record \"{key}\" was changed by somebody else");
                }
                mirror.alive(&self.candidate.keys).0
            };
            if known.as_ref() != Some(&alive) {
                presiding.drive(|coordinator, now| coordinator.store_sees(now, &alive));
                known = Some(alive);
            }
            self.changed.notified().await;
        }
    }

    /// Gives the leader's key back, if it still is the one that came into being at `created`.
    async fn abdicate(&self, created: i64) {
        let key = self.candidate.keys.full(LEADER);
        let txn = Txn { compares: vec![Compare::Created(key.clone(), created)], ops: vec![Op::Delete(key)] };
        if let Err(error) = self.candidate.client.txn(txn).await {
            tracing::debug!(%error, "the leader's key is not given back yet");
        }
    }
}

/// See [`EtcdSession::chance`].
enum Chance {
    /// Nobody leads: with these settings, if there are none yet.
    Elect(Option<Settings>),
    /// The key that was made at this revision is ours, and nobody leads by it.
    Abdicate(i64),
    /// Others lead, or nobody can.
    Wait,
}

/// Who leads, for the log.
pub(super) fn announce(before: Option<NodeId>, leader: Option<NodeId>) {
    match leader {
        Some(node) if before != leader => tracing::info!(%node, "leader"),
        None if before.is_some() => tracing::info!("no leader"),
        _ => (),
    }
}
