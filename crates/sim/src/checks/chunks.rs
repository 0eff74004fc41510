//! Chunks: whoever is whole has all of them, and in the end nobody has anything else.

use std::collections::BTreeMap;

use bytes::Bytes;
use codec::Code;
use rng::Rng;
use types::{
    ChunkId, ClusterMap, Descriptor, GroupId, GroupView, Holders, HostId, MemberId, ObjectId, RoleIndex,
};
use wire::descriptor::descriptor_of;

use crate::cluster::inspect::Members;
use crate::cluster::nodes::Nodes;
use crate::stage::book::{Book, Broken};

/// Objects that are what their keys have, by what the primaries that the map names have committed; and whether all primaries are
/// there to say so.
struct Committed {
    objects: BTreeMap<ObjectId, Descriptor>,
    is_complete: bool,
}

impl Committed {
    fn of(nodes: &Nodes, map: &ClusterMap) -> Self {
        let mut committed = Self { objects: BTreeMap::new(), is_complete: true };
        for view in &map.groups {
            for (role, primary) in Members::of(nodes, view).data.iter().enumerate() {
                let is_lost = view.data[role].status.is_lost();
                let whole = primary.as_ref().filter(|primary| primary.store.absent_count() == 0);
                committed.is_complete &= is_lost || whole.is_some();
                let items = primary.iter().flat_map(|primary| primary.store.iter_items());
                let objects = items.filter(|(_, item)| item.object);
                let parsed =
                    objects.filter_map(|(_, it)| descriptor_of(Bytes::copy_from_slice(it.value)).ok());
                committed.objects.extend(parsed.map(|descriptor| (descriptor.id, descriptor)));
            }
        }
        committed
    }
}

/// At any moment: a whole holder has each chunk of its role of every committed object.
pub(super) fn check(book: &mut Book, map: &ClusterMap, nodes: &Nodes) {
    if map.groups.iter().all(|view| !view.takes_chunks()) {
        return;
    }
    let committed = Committed::of(nodes, map);
    for descriptor in committed.objects.values() {
        for stripe in descriptor.geometry.stripes() {
            let group = descriptor.group_of(stripe.index);
            let chunk = ChunkId { object: descriptor.id, stripe: stripe.index };
            let verdict = group.map_or(Ok(()), |group| is_at_whole_holders(map, nodes, group, chunk));
            if let Err((rule, what)) = verdict {
                return book.fail(rule, None, what);
            }
        }
    }
    let stores = nodes.hosts().flat_map(|host| host.chunks());
    stores.for_each(|(_, chunks)| chunks.check_invariants());
    let lost: u64 = nodes.hosts().map(|host| host.stats().objects.lost_chunks).sum();
    if lost > 0 {
        book.fail("chunks", None, format!("{lost} chunks of committed objects count as lost"));
    }
}

fn is_at_whole_holders(
    map: &ClusterMap,
    nodes: &Nodes,
    group: GroupId,
    chunk: ChunkId,
) -> Result<(), Broken> {
    let Some(view) = map.group(group) else { return Ok(()) };
    for (role, holders) in view.holders.iter().enumerate() {
        let member = MemberId { group, role: RoleIndex(role as u8) };
        let Some(holder) = holders.whole else { continue };
        if has_chunk(nodes, holder.host, member, chunk) == Some(false) {
            let what = format!("{} is whole for {member} and lacks {chunk}", holder.host);
            return Err(("chunks", what));
        }
    }
    Ok(())
}

/// Whether a living process has a chunk; none if it has ended.
fn has_chunk(nodes: &Nodes, host: HostId, member: MemberId, chunk: ChunkId) -> Option<bool> {
    let machine = nodes.host_by_id(host, member.group)?;
    let mut chunks = machine.chunks().filter(|(known, _)| *known == member);
    Some(chunks.any(|(_, chunks)| chunks.get(chunk).is_some()))
}

/// A process that keeps the chunks of a role of which another one has all.
fn kept_in_vain(map: &ClusterMap, nodes: &Nodes) -> Option<String> {
    let is_relieved = |view: &GroupView, role, host| {
        let Holders { whole, filling } = view.holders_of(role);
        whole.is_some() && filling.is_none() && view.holds_since(role, host).is_none()
    };
    let pairs = map.groups.iter().flat_map(|view| map.nodes.iter().map(move |info| (view, info.host)));
    pairs.into_iter().find_map(|(view, host)| {
        let members = nodes.host_by_id(host, view.group)?.chunks().map(|(member, _)| member);
        let vain = members
            .filter(|member| member.group == view.group)
            .find(|member| is_relieved(view, member.role, host))?;
        Some(format!("{host} keeps {vain}, of which another one has all"))
    })
}

/// What is still under way about chunks, if anything is; none where everything is at rest. Where a stand-in `is_starved` it may not know
/// what has become of some, for the pages that say so have no room; who lacks those does not get them.
pub(super) fn unrest(map: &ClusterMap, nodes: &Nodes, is_starved: bool) -> Option<String> {
    for host in nodes.hosts() {
        let objects = host.stats().objects;
        let unknown = if is_starved { 0 } else { objects.tentative_bytes };
        let lacking = if is_starved || objects.starved_fills > 0 { 0 } else { objects.lacking_chunks };
        let under_way = unknown
            + lacking
            + objects.arriving_bytes
            + objects.sum_bytes
            + objects.open_ids
            + objects.pins
            + objects.uploads
            + objects.gathers;
        if under_way > 0 {
            return Some(format!("{objects:?}"));
        }
        let load = host.graph_stats().load;
        if load.runs > 0 {
            return Some(format!("{load:?}"));
        }
    }
    if let Some(vain) = kept_in_vain(map, nodes) {
        return Some(vain);
    }
    let committed = Committed::of(nodes, map);
    for host in nodes.hosts() {
        for (member, chunks) in host.chunks() {
            let is_in_place = |id: &ChunkId| {
                let descriptor = committed.objects.get(&id.object);
                descriptor.is_some_and(|it| it.group_of(id.stripe) == Some(member.group))
            };
            let garbage = chunks.list_after(None, usize::MAX).map(|(id, _)| id).find(|id| !is_in_place(id));
            if let Some(id) = garbage.filter(|_| committed.is_complete) {
                return Some(format!("{member} has {id}, which no key has there"));
            }
        }
    }
    None
}

/// The value of an object, of the chunks of some of the whole holders: as many are left out as the code can bear.
pub(super) fn assemble(
    map: &ClusterMap,
    nodes: &Nodes,
    code: &Code,
    descriptor: &Descriptor,
    rng: &mut Rng,
) -> Result<Vec<u8>, String> {
    let mut value = Vec::new();
    for stripe in descriptor.geometry.stripes() {
        let chunk = ChunkId { object: descriptor.id, stripe: stripe.index };
        let view = descriptor.group_of(stripe.index).and_then(|group| map.group(group));
        let view = view.ok_or_else(|| format!("stripe {} is in no group", stripe.index))?;
        let mut chunks = whole_chunks(nodes, view, chunk);
        let copy = chunks.get(&0).filter(|_| stripe.has_copy(0)).cloned();
        // What is coded of a copy is its first part.
        chunks.values_mut().for_each(|bytes| bytes.truncate(stripe.chunk_len() as usize));
        leave_out(&mut chunks, code, rng);
        let data =
            decoded(code, &chunks).ok_or_else(|| format!("{} chunks of {chunk} are left", chunks.len()))?;
        for cell in (0..stripe.data_cells()).map(|nth| stripe.data_cell(nth)) {
            let at = cell.row as usize * stripe.cell_len as usize;
            let filled = stripe.filled(cell) as usize;
            value.extend_from_slice(&data[usize::from(cell.role)][at..at + filled]);
        }
        if copy.is_some_and(|copy| copy[..stripe.len as usize] != value[stripe.start as usize..]) {
            return Err(format!("the copy of {chunk} is not what its chunks are"));
        }
    }
    Ok(value)
}

/// The chunks of a stripe that living whole holders have, by role.
fn whole_chunks(nodes: &Nodes, view: &GroupView, chunk: ChunkId) -> BTreeMap<usize, Vec<u8>> {
    let of = |(role, holders): (usize, &Holders)| {
        let member = MemberId { group: view.group, role: RoleIndex(role as u8) };
        let machine = nodes.host_by_id(holders.whole?.host, view.group)?;
        let (_, store) = machine.chunks().find(|(known, _)| *known == member)?;
        let chunk = store.get(chunk)?.chunk();
        let cells = (0..chunk.rows()).filter_map(|row| chunk.cell(row));
        Some((role, cells.flat_map(|cell| cell.to_vec()).collect()))
    };
    view.holders.iter().enumerate().filter_map(of).collect()
}

fn leave_out(chunks: &mut BTreeMap<usize, Vec<u8>>, code: &Code, rng: &mut Rng) {
    for _ in 0..code.m() {
        let roles: Vec<usize> = chunks.keys().copied().collect();
        if roles.is_empty() {
            return;
        }
        let out = rng.pick(&roles);
        let left: Vec<usize> = roles.iter().copied().filter(|role| *role != out).collect();
        let wanted: Vec<usize> = (0..code.k()).filter(|role| !left.contains(role)).collect();
        if code.plan(&left, &wanted).is_ok() {
            chunks.remove(&out);
        }
    }
}

/// The data chunks, made of those that there are.
fn decoded(code: &Code, chunks: &BTreeMap<usize, Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    let present: Vec<usize> = chunks.keys().copied().collect();
    let wanted: Vec<usize> = (0..code.k()).filter(|role| !present.contains(role)).collect();
    let mut made = BTreeMap::new();
    if !wanted.is_empty() {
        let plan = code.plan(&present, &wanted).ok()?;
        let len = chunks.values().next()?.len();
        let sources: Vec<&[u8]> = plan.sources().iter().map(|role| &chunks[role][..]).collect();
        let mut outputs = vec![vec![0; len]; wanted.len()];
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        plan.run(&sources, &mut slices).ok()?;
        made = wanted.into_iter().zip(outputs).collect();
    }
    (0..code.k()).map(|role| chunks.get(&role).or_else(|| made.get(&role)).cloned()).collect()
}
