//! Where etcd is, and how to get in.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::client::Repeat;

/// How a certificate in PEM begins.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";
/// Most endpoints of one cluster: etcd advises seven members at most.
const MAX_ENDPOINTS: usize = 16;

/// How to reach an etcd cluster.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its members; tried in turn.
    pub endpoints: Endpoints,
    /// None = in the clear.
    pub tls: Option<Tls>,
    /// None = without login.
    pub login: Option<Login>,
    /// How long connecting to one member may take.
    pub connect_timeout: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long the renewal of a lease may take at one member, before the next one is asked.
    pub renewal_timeout: Duration,
    /// How long a watch may hear nothing before it counts as dead. It asks for a sign of life before.
    pub silence: Duration,
}

impl Config {
    /// In the clear, without login.
    #[must_use]
    pub fn plain(endpoints: Endpoints) -> Self {
        let [second, two] = [1, 2].map(Duration::from_secs);
        Self {
            endpoints,
            tls: None,
            login: None,
            connect_timeout: second,
            request_timeout: two,
            renewal_timeout: second,
            silence: two,
        }
    }

    /// With time-outs for who lives by a lease that is renewed after a third of its time: in what is left of it, as many members
    /// as etcd can lose may be found silent, one after the other, and the next one still be asked.
    #[must_use]
    pub fn within(self, lease: Duration) -> Self {
        let can_be_lost = (self.endpoints.0.len().max(1) - 1) / 2;
        let tries = u32::try_from(can_be_lost + 1).unwrap_or(u32::MAX);
        let renewal_timeout = (lease * 3 / 5 / tries).min(lease / 2);
        Self {
            // Who cannot be connected to has certainly done nothing, if that is known before the request's own time is over.
            connect_timeout: renewal_timeout.min(lease / 3),
            request_timeout: lease / 2,
            renewal_timeout,
            silence: lease,
            ..self
        }
    }

    /// How long a request may take at one member.
    pub(crate) fn limit(&self, repeat: Repeat) -> Duration {
        match repeat {
            Repeat::Soon => self.renewal_timeout,
            Repeat::Always | Repeat::IfNotDone => self.request_timeout,
        }
    }

    /// That it could be used.
    ///
    /// # Errors
    /// If the certificates are no use.
    pub fn check(&self) -> Result<(), ConfigError> {
        let no_certificate = |pem: &[u8]| !pem.windows(CERTIFICATE.len()).any(|at| at == CERTIFICATE);
        if self.tls.as_ref().is_some_and(|tls| no_certificate(&tls.ca)) {
            return Err(ConfigError::Certificates("there is none in the CA file".to_owned()));
        }
        self.endpoints
            .authorities()
            .iter()
            .try_for_each(|authority| crate::client::endpoint(self, authority).map(drop))
    }
}

/// Certificates, as PEM.
#[derive(Clone)]
pub struct Tls {
    /// Whose signature etcd's certificate must have.
    pub ca: Vec<u8>,
    /// The own certificate and its key, if etcd asks for one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

/// Who logs in.
#[derive(Clone)]
pub struct Login {
    /// Name of the user.
    pub user: String,
    /// Never printed.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// `etcd://host:port[,host:port…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints(Vec<String>);

impl Endpoints {
    /// `host:port` of each.
    #[must_use]
    pub fn authorities(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for Endpoints {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let bad = || ConfigError::Endpoints(text.to_owned());
        let list = text.strip_prefix("etcd://").ok_or_else(bad)?;
        let endpoints: Vec<String> = list.split(',').map(str::to_owned).collect();
        let is_good = |authority: &String| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
            authority.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && host.bytes().all(plain) && port.parse::<u16>().is_ok_and(|port| port > 0)
            })
        };
        if endpoints.len() > MAX_ENDPOINTS || !endpoints.iter().all(is_good) {
            return Err(bad());
        }
        Ok(Self(endpoints))
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "etcd://{}", self.0.join(","))
    }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// Not a list of endpoints.
    #[error(
        "'{0}' is not understood: write etcd://host:port[,host:port...], with at most {MAX_ENDPOINTS} members"
    )]
    Endpoints(String),
    /// The certificates are no use.
    #[error("the certificates for etcd are not understood: {0}")]
    Certificates(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_checked() {
        let good = "etcd://10.0.0.1:2379,[::1]:2379,etcd-2.example:1";
        let endpoints: Endpoints = good.parse().unwrap();
        assert_eq!((endpoints.authorities().len(), endpoints.to_string().as_str()), (3, good));
        let many = format!("etcd://{}", vec!["h:1"; MAX_ENDPOINTS + 1].join(","));
        for bad in [
            "",
            "etcd://",
            "http://a:1",
            "etcd://a",
            "etcd://a:0",
            "etcd://a:1,",
            "etcd://a b:1",
            "etcd://a/b:1",
            &many,
        ] {
            assert_eq!(bad.parse::<Endpoints>(), Err(ConfigError::Endpoints(bad.to_owned())));
        }
    }

    #[test]
    fn within_a_lease_all_members_that_may_be_lost_and_one_more_can_be_asked() {
        let lease = Duration::from_secs(2);
        for (members, can_be_lost) in [(1, 0), (2, 0), (3, 1), (5, 2), (7, 3)] {
            let endpoints = format!("etcd://{}", vec!["h:1"; members].join(",")).parse().unwrap();
            let config = Config::plain(endpoints).within(lease);
            let silent = config.renewal_timeout * can_be_lost;
            assert!(lease / 3 + silent + lease / 6 < lease, "{members} members: {config:?}");
            assert!(config.connect_timeout < config.request_timeout, "{config:?}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let login = Login { user: "gestalt".into(), password: "hush".into() };
        let tls = Tls { ca: b"CA".to_vec(), identity: Some((b"CERT".to_vec(), b"KEY".to_vec())) };
        let text = format!("{login:?} {tls:?}");
        assert!(text.contains("gestalt") && !text.contains("hush") && !text.contains("75"), "{text}");
    }
}
