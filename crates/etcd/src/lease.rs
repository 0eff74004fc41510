//! Leases: keys that vanish when their holder has been silent for too long.

use std::fmt;
use std::time::Duration;

use tokio_stream::StreamExt;
use tonic::Status;
use tonic::codegen::http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

use crate::client::{Repeat, prepared};
use crate::messages::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse,
};
use crate::{Client, Error};

/// etcd's name for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseId(pub i64);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl Client {
    /// A new lease, and how long it really lasts: etcd has a least (2 s with its default settings). Whole seconds.
    ///
    /// # Errors
    /// If no member answers.
    pub async fn grant(&self, ttl: Duration) -> Result<(LeaseId, Duration), Error> {
        // Rounded up: nobody gets less than was asked for.
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let question = LeaseGrantRequest { ttl: i64::try_from(seconds).unwrap_or(i64::MAX) };
        // A lease that was granted without an answer ends by itself.
        let path = "/etcdserverpb.Lease/LeaseGrant";
        let answer: LeaseGrantResponse = self.unary(path, question, Repeat::Always).await?;
        if !answer.error.is_empty() {
            return Err(Error::Refused(answer.error));
        }
        Ok((LeaseId(answer.id), Duration::from_secs(u64::try_from(answer.ttl).unwrap_or(0))))
    }

    /// Starts the lease's time anew, from some moment between question and answer.
    ///
    /// # Errors
    /// [`Error::LeaseGone`], or if no member answers.
    pub async fn keep_alive(&self, lease: LeaseId) -> Result<Duration, Error> {
        let answer = self
            .ask(Repeat::Soon, async |mut grpc, token, _| {
                let question = tokio_stream::once(LeaseKeepAliveRequest { id: lease.0 });
                let path = PathAndQuery::from_static("/etcdserverpb.Lease/LeaseKeepAlive");
                let codec = ProstCodec::<LeaseKeepAliveRequest, LeaseKeepAliveResponse>::default();
                let mut answers = grpc.streaming(prepared(question, token), path, codec).await?.into_inner();
                answers.next().await.unwrap_or_else(|| Err(Status::unknown("closed without an answer")))
            })
            .await?;
        match u64::try_from(answer.ttl) {
            // etcd answers 0 for a lease that it does not know.
            Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
            _ => Err(Error::LeaseGone),
        }
    }

    /// Ends a lease; its keys vanish.
    ///
    /// # Errors
    /// If no member answers: then it ends by itself.
    pub async fn revoke(&self, lease: LeaseId) -> Result<(), Error> {
        let question = LeaseRevokeRequest { id: lease.0 };
        let path = "/etcdserverpb.Lease/LeaseRevoke";
        match self.unary::<_, LeaseRevokeResponse>(path, question, Repeat::Always).await {
            Ok(_) | Err(Error::LeaseGone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
