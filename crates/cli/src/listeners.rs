//! Where memcached clients connect: an address, or an address and the namespace that it is bound to.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use server::BoundListener;
use types::Name;

use crate::units::address;

/// `ADDR` or `ADDR=NAMESPACE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientListener {
    pub addr: SocketAddr,
    /// None = the default one.
    pub namespace: Option<Name>,
}

impl FromStr for ClientListener {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (addr, name) = text.split_once('=').map_or((text, None), |(addr, name)| (addr, Some(name)));
        let namespace = name.map(|name| name.trim().parse().map_err(|bad: types::BadName| bad.to_string()));
        Ok(Self { addr: address(addr.trim())?, namespace: namespace.transpose()? })
    }
}

impl fmt::Display for ClientListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(name) => write!(f, "{}={name}", self.addr),
            None => self.addr.fmt(f),
        }
    }
}

/// All addresses of a node for clients, as `--memcached` takes them.
pub fn words(memcached: SocketAddr, bound: &[BoundListener]) -> String {
    let bound = bound.iter().map(ToString::to_string);
    [memcached.to_string()].into_iter().chain(bound).collect::<Vec<_>>().join(",")
}

/// In a config file: one text, or a list of them.
pub fn listeners<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<ClientListener>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a string in quotes, or a list of them")]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    let texts = match Texts::deserialize(from)? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    };
    let all = texts.iter().flat_map(|text| text.split(',')).map(str::parse);
    all.collect::<Result<_, String>>().map(Some).map_err(serde::de::Error::custom)
}

/// The listener for the default namespace, at `default` if none is given, and those of others.
///
/// # Errors
/// If there are two without a namespace: others are told of one.
pub fn split(
    all: Vec<ClientListener>,
    default: SocketAddr,
) -> Result<(SocketAddr, Vec<BoundListener>), String> {
    let (mut plain, mut bound) = (None, Vec::new());
    for ClientListener { addr, namespace } in all {
        if let Some(namespace) = namespace {
            bound.push(BoundListener { addr, namespace });
        } else if let Some(first) = plain.replace(addr) {
            return Err(format!(
                "--memcached {first} and --memcached {addr} are both for the default namespace: one is enough, or write \
                 ADDR=NAMESPACE"
            ));
        }
    }
    Ok((plain.unwrap_or(default), bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_plain_or_bound_to_a_namespace() {
        let read = |text: &str| text.parse::<ClientListener>();
        assert_eq!(read("127.0.0.1:1").unwrap().namespace, None);
        let bound = read("127.0.0.1:2=sessions").unwrap();
        assert_eq!(bound.to_string(), "127.0.0.1:2=sessions");
        assert!(read("127.0.0.1:2=No Name").unwrap_err().contains("is no name"));
        assert!(read("nowhere=sessions").is_err());
        let default = SocketAddr::from(([127, 0, 0, 1], 9));
        let (plain, others) = split(vec![bound.clone()], default).unwrap();
        assert_eq!((plain, others.len()), (default, 1));
        assert_eq!(words(plain, &others), "127.0.0.1:9,127.0.0.1:2=sessions");
        let twice = vec![read("127.0.0.1:1").unwrap(), bound, read("127.0.0.1:3").unwrap()];
        assert!(split(twice, default).unwrap_err().contains("both for the default namespace"));
    }
}
