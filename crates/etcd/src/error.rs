//! What can go wrong, sorted by what to do about it.

use std::error::Error as _;
use std::time::Duration;

use thiserror::Error;
use tonic::{Code, ConnectError, Status};

use crate::OLDEST;

/// Why a request was not answered with what was asked for.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Nobody was asked: the member cannot be connected to. Another one may be asked the same.
    #[error("{endpoint} cannot be reached: {reason}")]
    Unreachable {
        /// `host:port`.
        endpoint: String,
        /// As the connection has it.
        reason: String,
    },
    /// It was asked and has not answered: what was asked for may have been done, now or later.
    #[error("{endpoint} does not answer: {reason}")]
    Unanswered {
        /// `host:port`.
        endpoint: String,
        /// As the connection has it.
        reason: String,
    },
    /// The member has no majority behind it, or is not ready. Another one may be.
    #[error("{endpoint} cannot serve: {reason}")]
    NotServing {
        /// `host:port`.
        endpoint: String,
        /// In etcd's words.
        reason: String,
    },
    /// The login is wrong, or is missing, or may not do this.
    #[error("etcd refuses the login: {0}: check --etcd-user and --etcd-password-file, and the user's roles")]
    Login(String),
    /// The lease has run out, or never was.
    #[error("the lease has run out")]
    LeaseGone,
    /// What a watch is to start from is no longer kept.
    #[error("etcd no longer keeps revision {0}")]
    Compacted(i64),
    /// An etcd of another time.
    #[error("etcd is version '{0}': {OLDEST} or newer is needed")]
    TooOld(String),
    /// More was found than can be meant.
    #[error("more than {0} keys where there should be a few")]
    TooMany(usize),
    /// Anything else that etcd does not do.
    #[error("etcd refuses: {0}")]
    Refused(String),
}

impl Error {
    pub(crate) fn timeout(endpoint: &str, limit: Duration) -> Self {
        Self::Unanswered { endpoint: endpoint.to_owned(), reason: format!("nothing within {limit:?}") }
    }

    /// From what `endpoint` or the way to it has answered.
    pub(crate) fn from_status(endpoint: &str, status: &Status) -> Self {
        let endpoint = endpoint.to_owned();
        if let Some(reason) = connect_error(status) {
            return Self::Unreachable { endpoint, reason };
        }
        let reason = status.message().to_owned();
        match status.code() {
            Code::NotFound if reason.contains("lease not found") => Self::LeaseGone,
            Code::Unauthenticated | Code::PermissionDenied => Self::Login(reason),
            Code::InvalidArgument if LOGIN_WORDS.iter().any(|word| reason.contains(word)) => {
                Self::Login(reason)
            }
            Code::Unavailable | Code::ResourceExhausted if NOT_DONE.contains(&reason.as_str()) => {
                Self::NotServing { endpoint, reason }
            }
            // Among them etcd's own time-out, and the end of a member: what it has proposed may still come through.
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Internal => {
                Self::Unanswered { endpoint, reason }
            }
            _ => Self::Refused(reason),
        }
    }

    /// Whether another member may do what this one has not, and certainly has not.
    #[must_use]
    pub fn is_not_done(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NotServing { .. })
    }

    /// Whether it is the way to etcd or etcd's state that is at fault: waiting may help.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        self.is_not_done() || matches!(self, Self::Unanswered { .. })
    }
}

/// What etcd says before it has proposed anything to anybody.
const NOT_DONE: [&str; 5] = [
    "etcdserver: no leader",
    "etcdserver: not capable",
    "etcdserver: unhealthy cluster",
    "etcdserver: rpc not supported for learner",
    "etcdserver: too many requests",
];
/// What etcd says to a login that was good and is no more: logging in again helps.
pub(crate) const STALE_LOGIN: [&str; 2] = ["invalid auth token", "revision of auth store is old"];
/// What etcd says, with `InvalidArgument`, to wrong logins.
const LOGIN_WORDS: [&str; 4] =
    [STALE_LOGIN[1], "authentication failed", "user name is empty", "user name not found"];

/// Set if no connection came about: then nothing has been sent.
fn connect_error(status: &Status) -> Option<String> {
    let mut source = status.source();
    while let Some(error) = source {
        if let Some(ConnectError(reason)) = error.downcast_ref::<ConnectError>() {
            return Some(innermost(&**reason));
        }
        source = error.source();
    }
    None
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_done_is_only_what_certainly_was_not() {
        let error = |code, reason: &str| Error::from_status("a:1", &Status::new(code, reason));
        for reason in NOT_DONE {
            assert!(error(Code::Unavailable, reason).is_not_done(), "{reason}");
        }
        assert!(error(Code::ResourceExhausted, "etcdserver: too many requests").is_not_done());
        for reason in [
            "etcdserver: request timed out",
            "etcdserver: request timed out, possibly due to previous leader failure",
            "etcdserver: server stopped",
            "etcdserver: leader changed",
            "error reading a body from connection",
        ] {
            let error = error(Code::Unavailable, reason);
            assert!(error.is_outage() && !error.is_not_done(), "{reason}");
        }
        let full = error(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded");
        assert!(matches!(full, Error::Refused(_)), "{full}");
    }
}
