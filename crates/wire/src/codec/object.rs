//! Messages about the chunks of objects, and descriptors.

use bytes::Bytes;
use types::{
    ChunkId, Descriptor, Exception, Geometry, KeyHash, MAX_CELL_BYTES, MAX_EXCEPTIONS, MemberId, ObjectId,
    ObjectLayout, Profile,
};

use super::{BadBody, Entry, Reader, Wire, Writer, wire_choice, wire_enum, wire_newtypes, wire_struct};
use crate::object::{
    Ask, Asked, Cell, Checked, Cold, Evict, Fetch, Free, Harm, Heard, Keep, KeptObject, Lend, List, Listed,
    ListedChunk, MAX_NAMED, Missing, Moved, ObjectMessage, Placed, Product, Put, PutAs, PutShared, PutSum,
    Recall, Refusal, Refused, Share, Verdict, Verdicts,
};
use crate::segments::SHARED_FROM;

wire_newtypes!(KeyHash);

wire_choice!(ObjectMessage {
    0 => Put { 0: body },
    1 => Placed { 0: body },
    2 => Refused { 0: body },
    3 => Keep { 0: body },
    4 => Free { 0: body },
    5 => Heard { 0: body },
    6 => Ask { 0: body },
    7 => Verdicts { 0: body },
    8 => Fetch { 0: body },
    9 => Cell { 0: body },
    10 => Missing { 0: body },
    11 => List { 0: body },
    12 => Listed { 0: body },
    13 => Recall { 0: body },
    14 => Evict { 0: body },
    15 => PutAs { 0: body },
    16 => PutShared { 0: body },
    17 => PutSum { 0: body },
    18 => Product { 0: body },
    19 => Lend { 0: body },
});

wire_struct!(MemberId { group, role });
wire_struct!(ObjectId { owner, term, number, salt, namespace });
wire_struct!(ChunkId { object, stripe });
wire_struct!(Geometry { len, chunk_len, k, layout } if Geometry::is_possible);
wire_enum!(ObjectLayout { 0 => Spread {}, 1 => Wide {}, 2 => Copy {} });
wire_struct!(Exception { first, count, group });
wire_struct!(Descriptor { id, geometry, groups, exceptions, checksum } if Descriptor::is_possible);

wire_struct!(Put { member, view, chunk, attempt, key_hash, geometry, row, cell, trailer, charged } if is_cell_of);
wire_struct!(PutAs { member, view, chunk, attempt, old, key_hash, geometry, trailer } if is_stripe_of);
wire_struct!(PutShared { put, shares } if are_parities);
wire_struct!(Share { role, holder, attempt });
wire_struct!(PutSum { member, view, chunk, attempt, key_hash, geometry, row, cell, trailer, charged } if is_sum_of);
wire_struct!(Product { writer, attempt, member, row, of, cell } if is_product_of);
wire_struct!(Lend { member, view, row, cell, shares } if is_lent);
wire_struct!(Placed { member, chunk, attempt, since });
wire_struct!(Refused { member, chunk, attempt, why });
wire_enum!(Refusal { 0 => View { 0: view }, 1 => NoRoom {}, 2 => Different {}, 3 => Gap {}, 4 => Crowded {}, 5 => Absent {} });
wire_struct!(Keep { owner, term, member, number, objects });
wire_struct!(KeptObject { descriptor, key_hash });
wire_struct!(Free { owner, term, member, number, objects });
wire_struct!(Recall { owner, term, number });
wire_struct!(Heard { owner, term, member, number });
wire_struct!(Ask { owner, member, objects, found });
wire_enum!(Harm { 0 => None {}, 1 => Lost {}, 2 => Wrong {} });
wire_struct!(Asked { object, key_hash });
wire_struct!(Verdicts { owner, term, member, verdicts, moved });
wire_struct!(Moved { object, exceptions });
wire_enum!(Verdict { 0 => Open {}, 1 => Committed {}, 2 => Dead {} });
wire_struct!(Evict { owner, objects });
wire_struct!(Cold { object, key_hash, last_access });
wire_struct!(Fetch { number, member, chunk, first, count });
wire_struct!(Cell { number, member, chunk, row, cell });
wire_struct!(Missing { number, member, chunk, view, whole });
wire_struct!(List { number, member, view, after });
wire_struct!(Listed { number, member, view, chunks, more });
wire_struct!(ListedChunk { chunk, key_hash, geometry, trailer, kept });

/// Whether there is such a cell of such a chunk.
fn is_cell_of(put: &Put) -> bool {
    let stripe = put.geometry.stripe(put.chunk.stripe);
    stripe.is_some_and(|stripe| {
        put.row < stripe.cells_of(put.member.role.0)
            && put.cell.bytes.len() == usize::try_from(stripe.cell_len).unwrap_or(0)
    })
}

/// Whether there is such a stripe, and it is one that was there before.
fn is_stripe_of(put: &PutAs) -> bool {
    put.old != put.chunk.object && put.geometry.stripe(put.chunk.stripe).is_some()
}

/// Whether a data role's cell is shared with other roles than that, no more than there are parities.
fn are_parities(put: &PutShared) -> bool {
    let k = put.put.geometry.k;
    put.put.member.role.0 < k && put.shares.iter().all(|share| share.role.0 >= k)
}

/// Whether there is such a cell of such a chunk.
fn is_sum_of(put: &PutSum) -> bool {
    let stripe = put.geometry.stripe(put.chunk.stripe);
    put.member.role.0 >= put.geometry.k && stripe.is_some_and(|stripe| put.row < stripe.rows)
}

/// Whether it can be a cell. How long those of its chunk are its writer says.
fn is_product_of(product: &Product) -> bool {
    let len = product.cell.bytes.len();
    len > 0 && len <= MAX_CELL_BYTES as usize && product.of != product.member.role
}

/// Long bytes stay where they are.
impl Wire for Checked {
    fn put(&self, out: &mut Writer<'_>) {
        let count = out.counted(self.bytes.len(), u32::MAX);
        out.numbers([self.checksum.into(), count.into()]);
        if self.bytes.len() < SHARED_FROM {
            out.bytes(&self.bytes);
        } else {
            out.known(&self.bytes, self.checksum);
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let checksum = Wire::take(from)?;
        let (bytes, actual) = from.summed()?;
        Ok(Self::received(bytes, checksum, actual))
    }
}

impl Wire for (ObjectId, Verdict) {
    fn put(&self, out: &mut Writer<'_>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok((Wire::take(from)?, Wire::take(from)?))
    }
}

/// Checksums of the chunks of a stripe.
impl Entry for u32 {
    const MAX_COUNT: u32 = Profile::MAX_K as u32 + Profile::MAX_M as u32;
}

/// Whether it can be a cell, and those who are to have products of it can be parities.
fn is_lent(lend: &Lend) -> bool {
    let len = lend.cell.bytes.len();
    let are_behind = lend.shares.iter().all(|share| share.role > lend.member.role);
    len > 0 && len <= MAX_CELL_BYTES as usize && are_behind
}

/// One for each parity.
impl Entry for Share {
    const MAX_COUNT: u32 = Profile::MAX_M as u32;
}

impl Entry for Exception {
    const MAX_COUNT: u32 = MAX_EXCEPTIONS as u32;
}

/// One bound for every list of names.
macro_rules! named {
    ($($type:ty),* $(,)?) => { $(
        impl Entry for $type {
            const MAX_COUNT: u32 = MAX_NAMED as u32;
        }
    )* };
}

named!(ObjectId, KeptObject, Asked, Cold, ListedChunk, Moved, (ObjectId, Verdict));

/// The bytes of `descriptor`, as they are the value of an item (docs/format.md, "Descriptor").
pub(crate) fn descriptor_bytes(descriptor: &Descriptor) -> Vec<u8> {
    let mut out = Vec::new();
    descriptor.put(&mut Writer::new(&mut out));
    out
}

/// The descriptor that `bytes` are.
pub(crate) fn descriptor_of(bytes: Bytes) -> Result<Descriptor, BadBody> {
    let mut from = Reader::new(bytes);
    let descriptor = Descriptor::take(&mut from)?;
    from.end()?;
    Ok(descriptor)
}
