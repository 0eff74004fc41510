//! Which etcd is spoken to.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// `major.minor` of an etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

/// The oldest that this client is tested with.
pub const OLDEST: Version = Version(3, 4);

impl Version {
    /// That `text`, an etcd's own word for its version, is new enough.
    pub(crate) fn check(text: &str) -> Result<Self, Error> {
        let version: Option<Self> = text.parse().ok();
        version.filter(|version| *version >= OLDEST).ok_or_else(|| Error::TooOld(text.to_owned()))
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.split('.').map(|part| part.parse().map_err(drop));
        let (major, minor) = (numbers.next().ok_or(())??, numbers.next().ok_or(())??);
        Ok(Self(major, minor))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_etcd_is_refused_and_named() {
        for good in ["3.4.23", "3.5.0-rc.1", "3.10.1", "4.0"] {
            assert!(Version::check(good).is_ok(), "{good}");
        }
        for bad in ["3.3.25", "2.3.8", "", "three"] {
            assert_eq!(Version::check(bad), Err(Error::TooOld(bad.to_owned())));
        }
    }
}
