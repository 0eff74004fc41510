//! Long values whose chunks are no code words, as a scrub has found.

use proto::{LostKey, WrongStripe};
use serde::{Deserialize, Serialize};
use types::{GroupId, NamespaceId, RoleIndex};

/// A stripe that is no code word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongStripeStatus {
    /// Where its chunks are.
    pub group: GroupId,
    /// Of which object.
    pub object: String,
    /// Which one of that.
    pub stripe: u32,
    /// The first row that is wrong.
    pub row: u32,
    /// The first parity there that is not that of the data.
    pub parity: RoleIndex,
}

impl WrongStripeStatus {
    pub(super) fn of(found: &WrongStripe) -> Self {
        let WrongStripe { member, chunk, row, parity, .. } = *found;
        Self { group: member.group, object: chunk.object.to_string(), stripe: chunk.stripe, row, parity }
    }
}

/// A key with such stripes, at the node that serves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongKeyStatus {
    /// Whose.
    pub namespace: NamespaceId,
    /// What its clients call it; bytes that are no printable ASCII as `\xNN`.
    pub key: String,
    /// Bytes of the value.
    pub value_bytes: u64,
    /// The object that it is.
    pub object: String,
}

impl WrongKeyStatus {
    pub(super) fn of(found: &LostKey) -> Self {
        Self {
            namespace: found.key.namespace(),
            key: found.key.client().escape_ascii().to_string(),
            value_bytes: found.len,
            object: found.object.to_string(),
        }
    }
}
