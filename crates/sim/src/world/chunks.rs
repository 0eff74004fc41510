//! Chunks that native clients put at nodes and read there themselves.

use bytes::BytesMut;
use native::{BeginAsk, Chunked, Code, FetchAsk, MAX_FETCH_BYTES, Piece, PutAsk, Written};
use proto::{NewDeposit, Token};
use types::op::Key;
use types::{ClusterMap, Geometry, MemberId, ObjectId, Term};

use super::World;
use super::natives::Natively;
use crate::natives::Put;

/// One cell of so many comes otherwise than it was sent.
const DAMAGED: u64 = 100;

impl Natively<'_> {
    /// Nobody is at the other end of a connection any more, and nobody goes on with what it has begun.
    pub(super) fn gone(&mut self, link: u32) {
        let port = self.world().natives.link(link).port.take();
        let puts = port.map(|mut port| port.take_puts()).unwrap_or_default();
        puts.into_iter().for_each(|put| self.drop_put(put));
    }

    pub(super) fn drop_put(&mut self, put: Put) {
        let World { stage, cluster, .. } = self.world();
        cluster.nodes.drive(stage, put.host, |machine, now| {
            machine.streams(now).abandon_deposit(put.deposit);
        });
        self.world().after(put.host);
    }

    /// A client wants rows of a chunk.
    pub(super) fn fetch(&mut self, link: u32, id: u64, key: &Key, fetch: &FetchAsk) {
        let World { stage, cluster, natives, .. } = self.world();
        let host = cluster.nodes.host_for(natives.link(link).node, fetch.member.group);
        let mut cells = None;
        cluster.nodes.drive(stage, host, |machine, now| {
            let (hash, whose) = (machine.locate(key).hash, (fetch.member, fetch.chunk));
            let rows = (fetch.first, fetch.count);
            cells = machine.streams(now).read_chunk(hash, whose, rows, MAX_FETCH_BYTES);
        });
        // What a network does to bytes no checksum of its own may notice.
        for cell in cells.iter_mut().flatten() {
            if stage.rng.natives.once_in(DAMAGED) {
                let mut bytes = BytesMut::from(&cell.bytes[..]);
                let at = stage.rng.natives.index(bytes.len());
                bytes[at] ^= 1;
                cell.bytes = bytes.freeze();
            }
        }
        if let Some(port) = &mut natives.link(link).port {
            port.send_cells(id, cells);
        }
        self.world().after(host);
    }

    /// A client begins to put a chunk.
    pub(super) fn put(&mut self, link: u32, id: u64, key: &Key, put: PutAsk) {
        let World { stage, cluster, natives, .. } = self.world();
        let host = cluster.nodes.host_for(natives.link(link).node, put.member.group);
        let PutAsk { member, view, chunk, geometry, checksums, trailer } = put;
        let Some(stripe) = geometry.stripe(chunk.stripe) else { return self.say(link, id, Code::Moved) };
        let token = Token([u64::from(link), id]);
        let mut begun = None;
        cluster.nodes.drive(stage, host, |machine, now| {
            let key_hash = machine.locate(key).hash;
            let new = NewDeposit { member, view, chunk, geometry, key_hash, checksums, trailer };
            begun = Some(machine.streams(now).begin_deposit(token, new));
        });
        let Some(port) = &mut natives.link(link).port else { return };
        match begun {
            Some(Ok(deposit)) => {
                let (cell_len, left) = (stripe.cell_len, stripe.rows);
                port.expect_put(id, Put { host, deposit, cell_len, left });
            }
            Some(Err(_)) | None => self.say(link, id, Code::Moved),
        }
    }

    /// A cell of one has come.
    pub(super) fn take_cell(&mut self, link: u32, piece: &Piece) {
        let World { stage, cluster, natives, .. } = self.world();
        let Some(port) = &mut natives.link(link).port else { return };
        let put = match port.take_cell(piece) {
            Ok(Some(put)) => put,
            Ok(None) => return,
            Err(breach) => return self.breaks(link, breach),
        };
        cluster.nodes.drive(stage, put.host, |machine, now| {
            machine.streams(now).feed_deposit(put.deposit, piece.bytes.clone());
        });
        self.world().after(put.host);
    }

    /// Where the chunks of a value would go, as a node knows.
    pub(super) fn places_for(&mut self, link: u32, key: &Key, begin: &BeginAsk) -> Option<Chunked> {
        let World { stage, cluster, natives, .. } = self.world();
        let objects = stage.options.objects.filter(|objects| begin.len > objects.above as u64)?;
        let node = natives.link(link).node;
        let first = cluster.nodes.hosts_on(node).start;
        let (mut chunks, namespace) = (None, key.namespace());
        cluster.nodes.drive(stage, first, |machine, now| {
            let place = machine.locate(key);
            let Some(owner) = place.member.filter(|_| place.refusal.is_none()) else { return };
            // Where a namespace moves nodes see to this.
            let is_still = |map: &&ClusterMap| map.catalog.target_of(namespace).is_none();
            let pool = machine.map().filter(is_still).and_then(|map| map.catalog.pool_of(namespace));
            let Some(k) = pool.map(|pool| pool.profile.k() as u8) else { return };
            let geometry =
                Geometry { len: begin.len, chunk_len: objects.chunk_len, k, layout: objects.layout };
            let groups = machine.streams(now).groups_for(owner, place.hash, geometry);
            let object = ObjectId { owner, term: Term(0), number: 0, salt: 0, namespace };
            chunks = machine.map().and_then(|map| Chunked::to_be(map, object, geometry, groups));
        });
        chunks
    }

    /// Whether a value can lie like that, as a node knows.
    pub(super) fn may_be(&mut self, link: u32, key: &Key, written: &Written) -> bool {
        let World { cluster, natives, .. } = self.world();
        let node = natives.link(link).node;
        let first = cluster.nodes.hosts_on(node).start;
        let owner: Option<MemberId> = cluster.nodes.host(first).and_then(|host| host.locate(key).member);
        let map = cluster.nodes.map_of(node);
        map.is_some_and(|map| written.may_be(map, key.namespace(), owner))
    }

    /// Answers a request that was not begun.
    pub(super) fn say(&mut self, link: u32, id: u64, code: Code) {
        if let Some(port) = &mut self.world().natives.link(link).port {
            port.say(id, code);
        }
    }
}
