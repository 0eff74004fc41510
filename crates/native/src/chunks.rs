//! Values in chunks, for clients that read and write these at their holders: what they are told, and what they ask.
//!
//! What a body may name here has passed the checks of its type: a geometry that can be, a code that there is, no more rows than a chunk
//! has.

use types::op::StoreMode;
use types::{
    ChunkId, Exception, Geometry, GroupId, MAX_CELL_BYTES, MAX_CHUNK_BYTES, MAX_EXCEPTIONS,
    MAX_OBJECT_GROUPS, MemberId, NamespaceId, NodeId, ObjectId, ObjectLayout, Profile, RoleIndex, Term,
    ViewVersion,
};

use crate::answer::{Meta, put_node, take_node};
use crate::fields::{Fields, Malformed, Put};
use crate::request::{put_mode, take_mode};

/// Most rows of a chunk.
pub const MAX_ROWS: u32 = MAX_CHUNK_BYTES / MAX_CELL_BYTES;
/// Most bytes of cells that one answer brings: of a chunk with more they are asked for bit by bit.
pub const MAX_FETCH_BYTES: u32 = 1 << 20;
/// Most chunks that a client puts on one connection at a time.
pub const MAX_PUTS: usize = 64;
/// Most groups whose holders one answer names.
const MAX_GROUPS: usize = MAX_OBJECT_GROUPS + MAX_EXCEPTIONS;
/// Most roles of a group.
const MAX_ROLES: usize = Profile::MAX_K as usize + Profile::MAX_M as usize;

const _: () = assert!(MAX_CHUNK_BYTES.is_multiple_of(MAX_CELL_BYTES));

/// What a client has to know of an object to read, or to write, its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunked {
    /// Its name.
    pub object: ObjectId,
    /// How its bytes are dealt.
    pub geometry: Geometry,
    /// The code of its stripes.
    pub code: Profile,
    /// Stripe `s` lies in the group at `s` modulo their count.
    pub groups: Vec<GroupId>,
    /// But for these.
    pub exceptions: Vec<Exception>,
    /// Who has the chunks of each group.
    pub holders: Vec<GroupHolders>,
}

/// The nodes that keep the chunks of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHolders {
    /// Which group.
    pub group: GroupId,
    /// By this version of its view.
    pub view: ViewVersion,
    /// By roles: `k` of data, then `m` of parity.
    pub roles: Vec<RoleHolders>,
}

/// The nodes that keep the chunks of a role: both are sent what is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleHolders {
    /// It has all that there are.
    pub whole: Option<NodeId>,
    /// It gets them.
    pub filling: Option<NodeId>,
}

/// A value in chunks was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundChunks {
    /// Of the item.
    pub meta: Meta,
    /// The first byte that is wanted and there, and how many are.
    pub part: (u64, u64),
    /// The chunks stay while this pin does, if there is one.
    pub pin: Option<u64>,
    /// For so many milliseconds after the last word about the pin.
    pub pin_ms: u32,
    /// Where they are.
    pub chunks: Chunked,
}

/// A value may be put into chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunChunks {
    /// For so many milliseconds.
    pub open_ms: u32,
    /// Under which name, and where.
    pub chunks: Chunked,
}

/// Cells of a chunk: which bytes follow in pieces, a cell each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Length of each.
    pub cell_len: u32,
    /// The CRC32C of each.
    pub checksums: Vec<u32>,
}

/// Rows of a chunk are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchAsk {
    /// Of whose.
    pub member: MemberId,
    /// Of which.
    pub chunk: ChunkId,
    /// From this row on.
    pub first: u32,
    /// At most so many, at least one.
    pub count: u32,
    /// How many bytes of them may be sent before the client grants more.
    pub window: u32,
}

/// How far a reader of chunks has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpinAsk {
    /// What it reads.
    pub object: ObjectId,
    /// The number of the pin.
    pub pin: u64,
    /// Whether it wants no more of it.
    pub done: bool,
}

/// A value is to be put into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginAsk {
    /// How it is to be stored.
    pub mode: StoreMode,
    /// Only if the version is this.
    pub compare: Option<u64>,
    /// Its length in bytes.
    pub len: u64,
}

/// A chunk; its cells follow in pieces, one each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutAsk {
    /// Whose it is to be.
    pub member: MemberId,
    /// By this version of the view.
    pub view: ViewVersion,
    /// Which.
    pub chunk: ChunkId,
    /// Of the object.
    pub geometry: Geometry,
    /// The CRC32C of each cell.
    pub checksums: Vec<u32>,
    /// The CRC32C of each chunk of the stripe, in the order of their roles.
    pub trailer: Vec<u32>,
}

/// All chunks of a value are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitAsk {
    /// Which value.
    pub written: Written,
    /// CRC32C of the whole.
    pub checksum: u32,
    /// How it is stored.
    pub mode: StoreMode,
    /// Opaque to the server.
    pub flags: u32,
    /// Seconds to live; 0 = as long as its namespace says.
    pub ttl: u32,
    /// Only if the version is this.
    pub compare: Option<u64>,
}

/// A value that a client has put into chunks: as it was told where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its name.
    pub object: ObjectId,
    /// How its bytes are dealt.
    pub geometry: Geometry,
    /// Stripe `s` lies in the group at `s` modulo their count.
    pub groups: Vec<GroupId>,
}

impl Chunked {
    /// Who has the chunks of a stripe.
    #[must_use]
    pub fn holders_of(&self, stripe: u32) -> Option<&GroupHolders> {
        let covering = self.exceptions.iter().find(|range| range.covers(stripe)).map(|range| range.group);
        let listed = || self.groups.get(stripe as usize % self.groups.len().max(1)).copied();
        let group = covering.or_else(listed)?;
        self.holders.iter().find(|known| known.group == group)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_object(&self.object, out);
        put_geometry(&self.geometry, out);
        let code = self.code.to_string();
        out.put_u8(code.len() as u8);
        out.extend_from_slice(code.as_bytes());
        put_groups(&self.groups, out);
        out.put_u8(self.exceptions.len() as u8);
        for Exception { first, count, group } in &self.exceptions {
            out.put_u32(*first);
            out.put_u32(*count);
            out.put_u32(group.0);
        }
        out.put_u8(self.holders.len() as u8);
        self.holders.iter().for_each(|holders| holders.put(out));
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (object, geometry) = (take_object(fields)?, take_geometry(fields)?);
        let code_len = usize::from(fields.u8()?);
        let code = fields.bytes(code_len)?;
        let code: Option<Profile> = std::str::from_utf8(&code).ok().and_then(|code| code.parse().ok());
        let code =
            code.filter(|code| code.k() == usize::from(geometry.k)).ok_or(Malformed::Field("the code"))?;
        let groups = take_groups(fields)?;
        let exceptions = usize::from(fields.u8()?);
        if exceptions > MAX_EXCEPTIONS {
            return Err(Malformed::Field("the number of exceptions"));
        }
        let exceptions = fields.list(exceptions, |fields| {
            Ok(Exception { first: fields.u32()?, count: fields.u32()?, group: take_group(fields)? })
        })?;
        let holders = usize::from(fields.u8()?);
        if holders > MAX_GROUPS {
            return Err(Malformed::Field("the number of groups"));
        }
        let holders = fields.list(holders, |fields| GroupHolders::take(code.n(), fields))?;
        Ok(Self { object, geometry, code, groups, exceptions, holders })
    }
}

impl GroupHolders {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.group.0);
        out.put_u64(self.view.0);
        for RoleHolders { whole, filling } in &self.roles {
            put_node(*whole, out);
            put_node(*filling, out);
        }
    }

    fn take(roles: usize, fields: &mut Fields) -> Result<Self, Malformed> {
        let (group, view) = (take_group(fields)?, take_view(fields)?);
        let roles = fields.list(roles, |fields| {
            Ok(RoleHolders { whole: take_node(fields)?, filling: take_node(fields)? })
        })?;
        Ok(Self { group, view, roles })
    }
}

impl FoundChunks {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.meta.put(out);
        out.put_u64(self.part.0);
        out.put_u64(self.part.1);
        out.put_u64(self.pin.unwrap_or(0));
        out.put_u32(self.pin_ms);
        self.chunks.put(out);
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (meta, part) = (Meta::take(fields)?, (fields.u64()?, fields.u64()?));
        let pin = Some(fields.u64()?).filter(|pin| *pin > 0);
        let (pin_ms, chunks) = (fields.u32()?, Chunked::take(fields)?);
        let is_within = part.0.checked_add(part.1).is_some_and(|end| end <= meta.value_len);
        if !is_within || chunks.geometry.len != meta.value_len {
            return Err(Malformed::Field("the range"));
        }
        Ok(Self { meta, part, pin, pin_ms, chunks })
    }
}

impl BegunChunks {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.open_ms);
        self.chunks.put(out);
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        Ok(Self { open_ms: fields.u32()?, chunks: Chunked::take(fields)? })
    }
}

impl Cells {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.cell_len);
        put_checksums(&self.checksums, out);
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let cell_len = fields.u32()?;
        if !(1..=MAX_CELL_BYTES).contains(&cell_len) {
            return Err(Malformed::Field("the length of a cell"));
        }
        Ok(Self { cell_len, checksums: take_checksums(MAX_ROWS as usize, fields)? })
    }
}

impl FetchAsk {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_member(self.member, out);
        put_chunk(&self.chunk, out);
        out.put_u32(self.first);
        out.put_u32(self.count);
        out.put_u32(self.window);
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (member, chunk) = (take_member(fields)?, take_chunk(fields)?);
        let (first, count, window) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let are_rows = first < MAX_ROWS && (1..=MAX_ROWS).contains(&count);
        if are_rows {
            Ok(Self { member, chunk, first, count, window })
        } else {
            Err(Malformed::Field("the rows"))
        }
    }
}

impl UnpinAsk {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_object(&self.object, out);
        out.put_u64(self.pin);
        out.put_u8(u8::from(self.done));
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (object, pin) = (take_object(fields)?, fields.u64()?);
        Ok(Self { object, pin, done: fields.bool("whether no more is wanted")? })
    }
}

impl BeginAsk {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_mode(self.mode, out);
        self.compare.iter().for_each(|version| out.put_u64(*version));
        out.put_u64(self.len);
    }

    pub(crate) fn take(compares: bool, fields: &mut Fields) -> Result<Self, Malformed> {
        let mode = take_whole_mode(fields)?;
        let compare = if compares { Some(fields.u64()?) } else { None };
        let len = fields.u64()?;
        if !(1..=types::MAX_OBJECT_BYTES).contains(&len) {
            return Err(Malformed::Field("the length of the value"));
        }
        Ok(Self { mode, compare, len })
    }
}

impl PutAsk {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_member(self.member, out);
        out.put_u64(self.view.0);
        put_chunk(&self.chunk, out);
        put_geometry(&self.geometry, out);
        put_checksums(&self.checksums, out);
        put_checksums(&self.trailer, out);
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        let (member, view) = (take_member(fields)?, take_view(fields)?);
        let (chunk, geometry) = (take_chunk(fields)?, take_geometry(fields)?);
        let stripe = geometry.stripe(chunk.stripe).ok_or(Malformed::Field("the stripe"))?;
        let checksums = take_checksums(MAX_ROWS as usize, fields)?;
        if checksums.len() != stripe.rows as usize {
            return Err(Malformed::Field("the number of rows"));
        }
        let trailer = take_checksums(MAX_ROLES, fields)?;
        Ok(Self { member, view, chunk, geometry, checksums, trailer })
    }
}

impl CommitAsk {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.written.put(out);
        out.put_u32(self.checksum);
        put_mode(self.mode, out);
        out.put_u32(self.flags);
        out.put_u32(self.ttl);
        self.compare.iter().for_each(|version| out.put_u64(*version));
    }

    pub(crate) fn take(compares: bool, fields: &mut Fields) -> Result<Self, Malformed> {
        let (written, checksum) = (Written::take(fields)?, fields.u32()?);
        let (mode, flags, ttl) = (take_whole_mode(fields)?, fields.u32()?, fields.u32()?);
        let compare = if compares { Some(fields.u64()?) } else { None };
        Ok(Self { written, checksum, mode, flags, ttl, compare })
    }
}

impl Written {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_object(&self.object, out);
        put_geometry(&self.geometry, out);
        put_groups(&self.groups, out);
    }

    pub(crate) fn take(fields: &mut Fields) -> Result<Self, Malformed> {
        Ok(Self {
            object: take_object(fields)?,
            geometry: take_geometry(fields)?,
            groups: take_groups(fields)?,
        })
    }
}

/// What is appended to is read and written anew by its owner: no client does that.
fn take_whole_mode(fields: &mut Fields) -> Result<StoreMode, Malformed> {
    let mode = take_mode(fields)?;
    let is_whole = matches!(mode, StoreMode::Set | StoreMode::Add | StoreMode::Replace);
    if is_whole { Ok(mode) } else { Err(Malformed::Field("the mode")) }
}

fn put_member(member: MemberId, out: &mut Vec<u8>) {
    out.put_u32(member.group.0);
    out.put_u8(member.role.0);
}

fn take_member(fields: &mut Fields) -> Result<MemberId, Malformed> {
    let (group, role) = (take_group(fields)?, RoleIndex(fields.u8()?));
    let is_role = usize::from(role.0) < MAX_ROLES;
    if is_role { Ok(MemberId { group, role }) } else { Err(Malformed::Field("the role")) }
}

fn take_group(fields: &mut Fields) -> Result<GroupId, Malformed> {
    fields.u32().map(GroupId)
}

fn take_view(fields: &mut Fields) -> Result<ViewVersion, Malformed> {
    let view = ViewVersion(fields.u64()?);
    if view <= ViewVersion::MAX { Ok(view) } else { Err(Malformed::Field("the view")) }
}

pub(crate) fn put_object(object: &ObjectId, out: &mut Vec<u8>) {
    out.put_u32(object.namespace.0);
    put_member(object.owner, out);
    out.put_u32(object.term.0);
    out.put_u64(object.number);
    out.put_u64(object.salt);
}

pub(crate) fn take_object(fields: &mut Fields) -> Result<ObjectId, Malformed> {
    let namespace = NamespaceId(fields.u32()?);
    if namespace > NamespaceId::MAX {
        return Err(Malformed::Field("the namespace"));
    }
    let owner = take_member(fields)?;
    let (term, number, salt) = (Term(fields.u32()?), fields.u64()?, fields.u64()?);
    if term > Term::MAX {
        return Err(Malformed::Field("the term"));
    }
    Ok(ObjectId { owner, term, number, salt, namespace })
}

fn put_chunk(chunk: &ChunkId, out: &mut Vec<u8>) {
    put_object(&chunk.object, out);
    out.put_u32(chunk.stripe);
}

fn take_chunk(fields: &mut Fields) -> Result<ChunkId, Malformed> {
    Ok(ChunkId { object: take_object(fields)?, stripe: fields.u32()? })
}

fn put_geometry(geometry: &Geometry, out: &mut Vec<u8>) {
    out.put_u64(geometry.len);
    out.put_u32(geometry.chunk_len);
    out.put_u8(geometry.k);
}

fn take_geometry(fields: &mut Fields) -> Result<Geometry, Malformed> {
    let (len, chunk_len, k) = (fields.u64()?, fields.u32()?, fields.u8()?);
    // What is dealt otherwise goes through a node.
    let geometry = Geometry { len, chunk_len, k, layout: ObjectLayout::Spread };
    let is_possible =
        geometry.is_possible() && geometry.chunk_len <= MAX_CHUNK_BYTES && geometry.k <= Profile::MAX_K;
    if is_possible { Ok(geometry) } else { Err(Malformed::Field("the geometry")) }
}

fn put_groups(groups: &[GroupId], out: &mut Vec<u8>) {
    out.put_u8(groups.len() as u8);
    groups.iter().for_each(|group| out.put_u32(group.0));
}

fn take_groups(fields: &mut Fields) -> Result<Vec<GroupId>, Malformed> {
    let count = usize::from(fields.u8()?);
    if !(1..=MAX_OBJECT_GROUPS).contains(&count) {
        return Err(Malformed::Field("the number of groups"));
    }
    fields.list(count, take_group)
}

fn put_checksums(checksums: &[u32], out: &mut Vec<u8>) {
    out.put_u16(checksums.len() as u16);
    checksums.iter().for_each(|checksum| out.put_u32(*checksum));
}

fn take_checksums(most: usize, fields: &mut Fields) -> Result<Vec<u32>, Malformed> {
    let count = usize::from(fields.u16()?);
    if !(1..=most).contains(&count) {
        return Err(Malformed::Field("the number of checksums"));
    }
    fields.list(count, Fields::u32)
}
