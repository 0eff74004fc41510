//! Pools and namespaces, and their quotas.

use types::{
    Catalog, Conversion, Grant, Name, Namespace, NamespaceId, ObjectPolicy, Policy, PolicyChange, Pool,
    PoolId, PoolSlots, QuotaReport, QuotaUse, Round, Striped,
};

use super::coordinator::MAX_GROUPS;

use super::{BadBody, Entry, Reader, Wire, Writer, wire_newtypes, wire_struct};

wire_newtypes!(PoolId);
wire_struct!(Pool { id, name, profile, first_group, groups, slot_bits });
wire_struct!(PoolSlots { pool, slots });
wire_struct!(Namespace { id, name, pool, policy, lost, conversion, conversions });
wire_struct!(Conversion { to, paused });
wire_struct!(Policy { evict, on_loss, default_ttl_seconds, quota_bytes, objects });
wire_struct!(ObjectPolicy { striped_above, chunk_bytes, layout });
wire_struct!(PolicyChange { evict, on_loss, default_ttl_seconds, quota_bytes, striped, chunk_bytes, layout });
wire_struct!(Catalog { next_pool, next_namespace, next_group, pools, namespaces } checked |catalog: &Self| {
    catalog.check().map_err(|why| BadBody::Catalog(Box::new(why)))
});

wire_struct!(QuotaUse { namespace, roles, used_bytes, share_bytes, dealt });
wire_struct!(QuotaReport { heard, uses });
wire_struct!(Round { epoch, number });
wire_struct!(Grant { namespace, bytes });

impl Entry for QuotaUse {
    const MAX_COUNT: u32 = Catalog::MAX_NAMESPACES as u32;
}

impl Entry for Grant {
    const MAX_COUNT: u32 = Catalog::MAX_NAMESPACES as u32;
}

impl Entry for PoolSlots {
    const MAX_COUNT: u32 = MAX_GROUPS;
}

impl Entry for Pool {
    const MAX_COUNT: u32 = Catalog::MAX_POOLS as u32;
}

impl Entry for Namespace {
    const MAX_COUNT: u32 = Catalog::MAX_NAMESPACES as u32;
}

impl Wire for NamespaceId {
    fn put(&self, out: &mut Writer<'_>) {
        debug_assert!(*self <= Self::MAX);
        self.0.put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let number = u32::take(from)?;
        if number > Self::MAX.0 { Err(BadBody::Range) } else { Ok(Self(number)) }
    }
}

impl Wire for Striped {
    fn put(&self, out: &mut Writer<'_>) {
        match self {
            Self::Never => 0u8.put(out),
            Self::Above(bytes) => {
                1u8.put(out);
                bytes.put(out);
            }
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        match u8::take(from)? {
            0 => Ok(Self::Never),
            1 => Ok(Self::Above(Wire::take(from)?)),
            tag => Err(BadBody::Tag(tag)),
        }
    }
}

impl Wire for Name {
    fn put(&self, out: &mut Writer<'_>) {
        self.to_string().put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Self::try_from(String::take(from)?).map_err(|_| BadBody::Text)
    }
}
