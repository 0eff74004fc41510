//! What events of values in chunks bring about elsewhere on this host.

use super::names::OwnerRequest;
use crate::primary::Pending;

/// What an event brings about at owners.
#[derive(Default)]
pub(crate) struct Wanted {
    pub requests: Vec<OwnerRequest>,
    /// Clients' requests that are to be decided anew.
    pub given_back: Vec<Pending>,
}
