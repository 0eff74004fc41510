//! What travels about chunks.

use types::op::{Begin, Commit, Condition, Object, ObjectOp, Store, Unpin};
use types::{
    ChunkId, Descriptor, Exception, Geometry, Holder, Holders, KeyHash, MAX_CELL_BYTES, MemberId, ObjectId,
    ObjectLayout, RoleIndex,
};
use wire::object::*;

use super::{Gen, Sample};

newtypes!(KeyHash);

structs! {
    MemberId { group, role }
    ObjectId { owner, term, number, salt, namespace }
    ChunkId { object, stripe }
    Holder { host, since }
    Holders { whole, filling }
    Object { descriptor, pin }
    Begin { condition, conversions }
    Condition { mode, compare, invalidate }
    Unpin { object, pin, done }
    Share { role, holder, attempt }
    Placed { member, chunk, attempt, since }
    Refused { member, chunk, attempt, why }
    Keep { owner, term, member, number, objects }
    KeptObject { descriptor, key_hash }
    Free { owner, term, member, number, objects }
    Recall { owner, term, number }
    Heard { owner, term, member, number }
    Ask { owner, member, objects, found }
    Asked { object, key_hash }
    Verdicts { owner, term, member, verdicts, moved }
    Moved { object, exceptions }
    Exception { first, count, group }
    Evict { owner, objects }
    Cold { object, key_hash, last_access }
    Fetch { number, member, chunk, first, count }
    Cell { number, member, chunk, row, cell }
    Missing { number, member, chunk, view, whole }
    List { number, member, view, after }
    Listed { number, member, view, chunks, more }
    ListedChunk { chunk, key_hash, geometry, trailer, kept }
}

choices! {
    ObjectLayout { 0 Spread {} 1 Wide {} 2 Copy {} }
    ObjectOp { 0 Begin { 0 } 1 Renew { 0 } 2 Commit { 0 } 3 Abandon { 0 } 4 Unpin { 0 } }
    ObjectMessage {
        0 Put { 0 } 1 Placed { 0 } 2 Refused { 0 } 3 Keep { 0 } 4 Free { 0 } 5 Heard { 0 } 6 Ask { 0 } 7 Verdicts { 0 }
        8 Fetch { 0 } 9 Cell { 0 } 10 Missing { 0 } 11 List { 0 } 12 Listed { 0 } 13 Recall { 0 } 14 Evict { 0 }
        15 PutAs { 0 } 16 PutShared { 0 } 17 PutSum { 0 } 18 Product { 0 } 19 Lend { 0 }
    }
    Refusal { 0 View { 0 } 1 NoRoom {} 2 Different {} 3 Gap {} 4 Crowded {} 5 Absent {} }
    Verdict { 0 Open {} 1 Committed {} 2 Dead {} }
    Harm { 0 None {} 1 Lost {} 2 Wrong {} }
    ChunkReport { 0 Open { group } 1 Filled { group, role, since } }
}

impl Sample for (ObjectId, Verdict) {
    fn sample(from: &mut Gen) -> Self {
        (from.of(), from.of())
    }
}

impl Sample for Checked {
    fn sample(from: &mut Gen) -> Self {
        Self::new(from.of())
    }
}

impl Sample for Geometry {
    fn sample(from: &mut Gen) -> Self {
        let chunk_len = MAX_CELL_BYTES * (1 + from.below(4) as u32);
        let (len, k) = (1 + from.below(1 << 22), 1 + from.below(12) as u8);
        Self { len, chunk_len, k, layout: from.of() }
    }
}

/// One of the cells that there are.
impl Sample for Put {
    fn sample(from: &mut Gen) -> Self {
        let geometry: Geometry = from.of();
        let index = from.below(u64::from(geometry.stripe_count())) as u32;
        let stripe = geometry.stripe(index).expect("it is one of them");
        let cell = Checked::new(from.bytes(stripe.cell_len as usize).into());
        let member: MemberId = from.of();
        Self {
            member,
            view: from.of(),
            chunk: ChunkId { object: from.of(), stripe: index },
            attempt: from.of(),
            key_hash: from.of(),
            geometry,
            row: from.below(u64::from(stripe.cells_of(member.role.0))) as u32,
            cell,
            trailer: from.of(),
            charged: from.of(),
        }
    }
}

/// A data role's, and some of the roles behind these.
impl Sample for PutShared {
    fn sample(from: &mut Gen) -> Self {
        let mut put: Put = from.of();
        let k = put.geometry.k;
        put.member.role = RoleIndex(from.below(u64::from(k)) as u8);
        put.row %= put.geometry.stripe(put.chunk.stripe).expect("it is one of them").rows;
        let mut shares = Shares::new();
        for role in k..k + from.below(4) as u8 {
            shares.push(Share { role: RoleIndex(role), ..from.of() });
        }
        Self { put, shares }
    }
}

/// Of a role behind those of data.
impl Sample for PutSum {
    fn sample(from: &mut Gen) -> Self {
        let put: Put = from.of();
        let mut sum = Self::of(put);
        sum.member.role = RoleIndex(sum.geometry.k + from.below(4) as u8);
        sum.row %= sum.geometry.stripe(sum.chunk.stripe).expect("it is one of them").rows;
        sum
    }
}

impl Sample for Lend {
    fn sample(from: &mut Gen) -> Self {
        let member = MemberId { group: from.of(), role: RoleIndex(from.below(3) as u8) };
        let len = 1 + from.below(200) as usize;
        let cell = Checked::new(from.bytes(len).into());
        let mut shares = Shares::new();
        for role in 3..3 + from.below(4) as u8 {
            shares.push(Share { role: RoleIndex(role), ..from.of() });
        }
        Self { member, view: from.of(), row: from.of(), cell, shares }
    }
}

impl Sample for Product {
    fn sample(from: &mut Gen) -> Self {
        let (writer, attempt, row) = (from.of(), from.of(), from.of());
        let member = MemberId { group: from.of(), role: RoleIndex(3 + from.below(4) as u8) };
        let len = 1 + from.below(200) as usize;
        let cell = Checked::new(from.bytes(len).into());
        Self { writer, attempt, member, row, of: RoleIndex(from.below(3) as u8), cell }
    }
}

/// As one of the stripes that there are.
impl Sample for PutAs {
    fn sample(from: &mut Gen) -> Self {
        let geometry: Geometry = from.of();
        let stripe = from.below(u64::from(geometry.stripe_count())) as u32;
        Self {
            member: from.of(),
            view: from.of(),
            chunk: ChunkId { object: from.of(), stripe },
            attempt: from.of(),
            old: from.of(),
            key_hash: from.of(),
            geometry,
            trailer: from.of(),
        }
    }
}

impl Sample for Descriptor {
    fn sample(from: &mut Gen) -> Self {
        let geometry: Geometry = from.of();
        let (id, checksum) = (from.of(), from.of());
        let groups = (0..1 + from.below(16)).map(|_| from.of()).collect();
        let end = geometry.stripe_count();
        let mut first = from.below(u64::from(end)) as u32;
        let mut exceptions = Vec::new();
        while first < end && exceptions.len() < 4 {
            let count = 1 + from.below(u64::from(end - first)) as u32;
            exceptions.push(Exception { first, count, group: from.of() });
            first += count;
        }
        Self { id, geometry, groups, exceptions, checksum }
    }
}

impl Sample for Commit {
    fn sample(from: &mut Gen) -> Self {
        Self { descriptor: from.of(), store: Store { value: bytes::Bytes::new(), ..from.of() } }
    }
}
