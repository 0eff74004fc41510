//! Sizes, durations and addresses as people write them: `64GiB`, `500ms`, `localhost:11211`.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("", 1),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("'{text}' is not a size: write a number and B, KiB, MiB, GiB or TiB, for example 512MiB")
        };
        scaled(text, &UNITS).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, factor) in UNITS[1..5].iter().rev() {
            if self.0 >= *factor {
                let whole = self.0 / factor;
                return if self.0.is_multiple_of(*factor) {
                    write!(f, "{whole}{name}")
                } else {
                    write!(f, "{:.1}{name}", self.0 as f64 / *factor as f64)
                };
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// A number of things: `2000`, `200k`, `10M`, `1.5G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

const COUNT_UNITS: [(&str, u64); 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("'{text}' is not a count: write a number and nothing, k, M or G, for example 10M");
        scaled(text, &COUNT_UNITS).map(Self).ok_or_else(bad)
    }
}

/// A number, perhaps with a fraction, and one of `units`; none if it is not, or too large.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    // Exactly, as long as it is whole: a fraction has 53 bits.
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(*factor);
    }
    let all = number.parse::<f64>().ok()? * *factor as f64;
    (all < 9e18).then_some(all as u64)
}

/// A duration such as `500ms`, `2s`, `1min 30s`.
///
/// # Errors
/// One line that says how to write one.
pub fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        format!("'{text}' is not a duration: write a number and ms, s, min or h, for example 500ms")
    })
}

/// An address such as `127.0.0.1:9180`, `localhost:9180`, or `9180` for a port on this machine.
///
/// # Errors
/// One line that says how to write one.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let bad = || format!("'{text}' is not an address: write HOST:PORT, for example 127.0.0.1:9180");
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let host = text.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map(|(host, _)| host);
    let unknown = |error| host.map_or_else(bad, |host| format!("no address of '{host}' is known: {error}"));
    let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(unknown)?.collect();
    // `localhost` may be both, and our own listeners are on IPv4 unless they are told otherwise.
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied().ok_or_else(bad)
}

/// An IP address, or a name of one.
///
/// # Errors
/// One line that says how to write one.
pub fn host(text: &str) -> Result<IpAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse() {
        return Ok(ip);
    }
    let bad =
        || format!("'{text}' is not a host: write an IP address or a name that has one, without a port");
    let found: Vec<SocketAddr> = (text, 0).to_socket_addrs().map_err(|_| bad())?.collect();
    let preferred = found.iter().find(|address| address.is_ipv4()).or(found.first());
    preferred.map(SocketAddr::ip).ok_or_else(bad)
}

/// What people write in a file as they do on the command line.
pub trait Written: Sized {
    /// From such a text.
    ///
    /// # Errors
    /// One line that says how to write one.
    fn read(text: &str) -> Result<Self, String>;
}

/// `Type = how it is read`.
macro_rules! written {
    ($($type:ty = $read:expr),*) => {
        $(impl $crate::units::Written for $type {
            fn read(text: &str) -> Result<Self, String> {
                $read(text)
            }
        })*
    };
}
pub(crate) use written;

written!(Size = str::parse, Duration = duration, SocketAddr = address, IpAddr = host);

/// One of a few words.
///
/// # Errors
/// One line with all of them.
pub fn choice<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, true).map_err(|_| {
        let known = T::value_variants().iter().filter_map(T::to_possible_value);
        let known: Vec<_> = known.map(|value| value.get_name().to_owned()).collect();
        format!("'{text}' is not one of {}", known.join(", "))
    })
}

/// For serde: a key of a file whose value is written as on the command line.
///
/// # Errors
/// If it is no text, or not such a one.
pub fn from_text<'de, D: Deserializer<'de>, T: Written>(value: D) -> Result<Option<T>, D::Error> {
    T::read(&String::deserialize(value)?).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [
            ("64GiB", 64 << 30),
            ("1.5 KiB", 1536),
            ("100", 100),
            ("0B", 0),
            ("2KB", 2000),
            ("1gib", 1 << 30),
        ] {
            assert_eq!(text.parse::<Size>(), Ok(Size(bytes)), "{text}");
        }
        assert_eq!(Size(64 << 30).to_string(), "64GiB");
        assert_eq!(Size(1536).to_string(), "1.5KiB");
        assert_eq!(Size(7).to_string(), "7B");
    }

    #[test]
    fn counts_are_read() {
        for (text, count) in
            [("2000", 2000), ("200k", 200_000), ("10M", 10_000_000), ("1.5 g", 1_500_000_000)]
        {
            assert_eq!(text.parse::<Count>(), Ok(Count(count)), "{text}");
        }
        for text in ["", "M", "-1", "10MiB", "ten", "99999999999G"] {
            assert!(text.parse::<Count>().unwrap_err().contains("for example"), "{text}");
        }
    }

    #[test]
    fn addresses_may_be_bare_ports_or_names() {
        let expected = SocketAddr::from(([127, 0, 0, 1], 9180));
        for text in ["9180", ":9180", "127.0.0.1:9180", "localhost:9180"] {
            assert_eq!(address(text), Ok(expected), "{text}");
        }
        for bad in ["99999", "localhost", "localhost:99999"] {
            assert!(address(bad).unwrap_err().contains("for example"), "{bad}");
        }
        assert!(address("nowhere.invalid:9180").unwrap_err().starts_with("no address of 'nowhere.invalid'"));
    }

    #[test]
    fn hosts_are_addresses_or_names_without_a_port() {
        assert_eq!(host("10.0.0.1").unwrap().to_string(), "10.0.0.1");
        assert_eq!(host("[fd00::1]").unwrap().to_string(), "fd00::1");
        assert!(host("localhost").unwrap().is_loopback());
        assert!(host("10.0.0.1:9178").unwrap_err().contains("without a port"));
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "GiB", "-1GiB", "1 GiB extra", "1e99GiB", "99999999999TiB", "ten"] {
            assert!(text.parse::<Size>().unwrap_err().contains("for example"), "{text}");
        }
        assert!(duration("5 parsecs").unwrap_err().contains("for example"));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    }
}
