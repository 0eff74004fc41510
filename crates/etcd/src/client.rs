//! Requests, whichever member answers them.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::Message;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::error::STALE_LOGIN;
use crate::messages::{AuthenticateRequest, AuthenticateResponse, StatusRequest, StatusResponse};
use crate::{Config, ConfigError, Error, Version};

/// Longest answer that is read.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Connections are probed when this long nothing has come; etcd takes more frequent probes for an attack.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// A connection to a cluster, to be cloned freely. Connects when something is asked for. Must live inside a `tokio` runtime.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    members: Vec<Member>,
    /// Index of the member that is asked first. Watches at another one end.
    first: watch::Sender<usize>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

#[derive(Debug)]
struct Member {
    authority: String,
    channel: Channel,
}

/// What may be asked of the next member when one has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Whatever has become of it, and soon: a lease ends meanwhile.
    Soon,
    /// Whatever has become of it.
    Always,
    /// Only if it certainly was not done.
    IfNotDone,
}

impl Client {
    /// Prepares connections to all members, and makes none.
    ///
    /// # Errors
    /// If the certificates are no use.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let member = |authority: &String| {
            let channel = endpoint(&config, authority)?.connect_lazy();
            Ok(Member { authority: authority.clone(), channel })
        };
        let members = config.endpoints.authorities().iter().map(member).collect::<Result<_, _>>()?;
        let inner = Inner { config, members, first: watch::Sender::new(0), token: Mutex::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The version of the member that is asked first.
    ///
    /// # Errors
    /// [`Error::TooOld`], or if no member answers.
    pub async fn version(&self) -> Result<Version, Error> {
        let path = "/etcdserverpb.Maintenance/Status";
        let status: StatusResponse = self.unary(path, StatusRequest {}, Repeat::Always).await?;
        Version::check(&status.version)
    }

    /// One request, one answer.
    pub(crate) async fn unary<Q, A>(
        &self,
        path: &'static str,
        question: Q,
        repeat: Repeat,
    ) -> Result<A, Error>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.ask(repeat, async |mut grpc, token, _| {
            let request = prepared(question.clone(), token);
            let codec = ProstCodec::default();
            let answer = grpc.unary(request, PathAndQuery::from_static(path), codec).await?;
            Ok::<A, Status>(answer.into_inner())
        })
        .await
    }

    /// Asks one member after the other until one answers; `question` is told which. A login that has run out is renewed.
    pub(crate) async fn ask<A>(
        &self,
        repeat: Repeat,
        question: impl AsyncFn(Grpc<Channel>, Option<MetadataValue<Ascii>>, usize) -> Result<A, Status>,
    ) -> Result<A, Error> {
        let limit = self.inner.config.limit(repeat);
        let mut tries = self.inner.members.len();
        let mut logins = 1;
        loop {
            let (index, member) = self.member();
            let asked = async {
                let token = self.token(member).await?;
                let asked = async {
                    let grpc = ready(member).await?;
                    question(grpc, token, index).await
                };
                limited(member, limit, asked).await
            };
            let error = match asked.await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // Not one of the tries: the member has answered. Once only, for a login that is refused again is wrong.
            if is_stale_token(&error) && logins > 0 {
                logins -= 1;
                *self.inner.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
                continue;
            }
            if error.is_outage() {
                self.pass_over(index);
            }
            tries -= 1;
            // A transaction that may have been done must not be done twice: whoever asked has to look.
            let again = error.is_not_done() || (repeat != Repeat::IfNotDone && error.is_outage());
            if tries == 0 || !again {
                return Err(error);
            }
        }
    }

    fn member(&self) -> (usize, &Member) {
        let index = *self.inner.first.borrow();
        (index, &self.inner.members[index])
    }

    /// `host:port` of a member.
    pub(crate) fn authority(&self, index: usize) -> &str {
        &self.inner.members[index].authority
    }

    /// The member that is asked first, now and from now on.
    pub(crate) fn first(&self) -> watch::Receiver<usize> {
        self.inner.first.subscribe()
    }

    /// How long a watch may hear nothing.
    pub(crate) fn silence(&self) -> Duration {
        self.inner.config.silence
    }

    /// The next request goes to the next member, unless somebody else has seen to that.
    pub(crate) fn pass_over(&self, index: usize) {
        let next = (index + 1) % self.inner.members.len();
        self.inner.first.send_if_modified(|first| {
            let is_left = *first == index && next != index;
            if is_left {
                *first = next;
            }
            is_left
        });
    }

    /// What shows that this client has logged in, if it has to.
    async fn token(&self, member: &Member) -> Result<Option<MetadataValue<Ascii>>, Error> {
        let Some(login) = &self.inner.config.login else { return Ok(None) };
        let known = self.inner.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return Ok(known);
        }
        let question = AuthenticateRequest { name: login.user.clone(), password: login.password.clone() };
        let path = PathAndQuery::from_static("/etcdserverpb.Auth/Authenticate");
        let codec = ProstCodec::<AuthenticateRequest, AuthenticateResponse>::default();
        let asked = async { ready(member).await?.unary(prepared(question, None), path, codec).await };
        let answer = limited(member, self.inner.config.request_timeout, asked).await;
        let answer = answer.map_err(|error| match error {
            Error::Refused(reason) => Error::Login(reason),
            // A login changes nothing, so it may be asked for again.
            Error::Unanswered { endpoint, reason } => Error::Unreachable { endpoint, reason },
            other => other,
        })?;
        let token = answer.into_inner().token;
        let token = token.parse().map_err(|_| Error::Login("its token is not understood".to_owned()))?;
        *self.inner.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(self.inner.token.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn is_stale_token(error: &Error) -> bool {
    matches!(error, Error::Login(reason) if STALE_LOGIN.iter().any(|words| reason.contains(words)))
}

async fn limited<A>(
    member: &Member,
    limit: Duration,
    asked: impl Future<Output = Result<A, Status>>,
) -> Result<A, Error> {
    match timeout(limit, asked).await {
        Ok(answer) => answer.map_err(|status| Error::from_status(&member.authority, &status)),
        Err(_) => Err(Error::timeout(&member.authority, limit)),
    }
}

/// A request that a member refuses, and certainly does not do, while it knows of no leader; it ends a watch then, too.
pub(crate) fn prepared<Q>(question: Q, token: Option<MetadataValue<Ascii>>) -> Request<Q> {
    let mut request = Request::new(question);
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    if let Some(token) = token {
        request.metadata_mut().insert("token", token);
    }
    request
}

/// A face of `member` that takes one question.
async fn ready(member: &Member) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(member.channel.clone()).max_decoding_message_size(MAX_ANSWER_BYTES);
    grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
    Ok(grpc)
}

pub(crate) fn endpoint(config: &Config, authority: &str) -> Result<Endpoint, ConfigError> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let bad = |error: tonic::transport::Error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        ConfigError::Certificates(cause.unwrap_or_else(|| error.to_string()))
    };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"))
        .map_err(|_| ConfigError::Endpoints(authority.to_owned()))?
        .connect_timeout(config.connect_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PROBE_INTERVAL)
        .keep_alive_timeout(config.request_timeout)
        .keep_alive_while_idle(true);
    match &config.tls {
        None => Ok(endpoint),
        Some(tls) => {
            let mut settings = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca));
            if let Some((certificate, key)) = &tls.identity {
                settings = settings.identity(Identity::from_pem(certificate, key));
            }
            endpoint.tls_config(settings).map_err(bad)
        }
    }
}
