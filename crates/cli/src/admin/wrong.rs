//! Long values whose chunks are no code words, as a scrub has found: which, and what to do.

use serde::Serialize;
use server::{WrongKeyStatus, WrongStripeStatus};

/// A stripe, with the key whose value it is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrongStripe {
    #[serde(flatten)]
    stripe: WrongStripeStatus,
    /// None if it has another value by now, or its owner has not been told yet.
    key: Option<String>,
    /// What to do.
    way_out: String,
}

/// What was found, by those who have the keys.
pub fn explain(stripes: Vec<WrongStripeStatus>, keys: &[WrongKeyStatus]) -> Vec<WrongStripe> {
    let with_key = |stripe: WrongStripeStatus| {
        let owner = keys.iter().find(|known| known.object == stripe.object);
        let key = owner.map(|known| known.key.clone());
        let name = key.as_deref().unwrap_or("KEY");
        let way_out = format!(
            "write it anew from its source; without one `gestalt kv get {name} --file F` and `gestalt kv set {name} --file F` while \
             no node is missing: readers get the data's chunks, which may be right. Then look at who wrote it: a card, a processor"
        );
        WrongStripe { stripe, key, way_out }
    };
    stripes.into_iter().map(with_key).collect()
}

impl WrongStripe {
    /// A line or two.
    pub fn text(&self) -> String {
        let WrongStripeStatus { group, object, stripe, row, parity } = &self.stripe;
        let whose = self.key.as_ref().map_or_else(|| object.clone(), |key| format!("'{key}' ({object})"));
        let end = &self.way_out;
        format!(
            "{group}, stripe {stripe} of {whose}: parity {parity} is not that of the data, from row {row} on\n  {end}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use types::{GroupId, NamespaceId, RoleIndex};

    use super::*;

    #[test]
    fn a_stripe_is_named_by_its_key_where_somebody_knows_it() {
        let stripe = |object: &str| WrongStripeStatus {
            group: GroupId(3),
            object: object.to_owned(),
            stripe: 4,
            row: 1,
            parity: RoleIndex(3),
        };
        let known = WrongKeyStatus {
            namespace: NamespaceId::default(),
            key: "model".to_owned(),
            value_bytes: 5,
            object: "object-1".to_owned(),
        };
        let found = explain(vec![stripe("object-1"), stripe("object-2")], &[known]);
        let texts: Vec<String> = found.iter().map(WrongStripe::text).collect();
        assert!(texts[0].contains("stripe 4 of 'model' (object-1)"), "{}", texts[0]);
        assert!(texts[0].contains("gestalt kv set model --file F"), "{}", texts[0]);
        assert!(texts[1].contains("stripe 4 of object-2:"), "{}", texts[1]);
    }
}
