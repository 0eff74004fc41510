//! Clients of the native protocol: processes that drive the real core of such clients on the virtual clock, what is under way between
//! them and nodes as bytes, and the nodes' ends of their connections.
//!
//! - `process`: a core, whose requests it has, and when it is to be woken;
//! - `link`: one connection: bytes under way, cut or not;
//! - `port`: a node's end of one: frames into requests, outcomes into frames, by what servers do, too (crate `native`); `pieces`: values
//!   that are longer than a frame;
//! - `chunks`: chunks that clients put there, and those that they read;
//! - `parts`: values that are read part by part;
//! - `rooms`: buffers of a process, in which values are received;
//! - `scanning`: a scan of a process;
//! - `promises`: what a core may send, whoever hears it; `vows`: what nodes have said and have to stand by;
//! - `outcome`: calls as requests of a core, and what these come to as outcomes.

mod chunks;
mod link;
pub(crate) mod outcome;
mod parts;
mod pieces;
mod port;
mod process;
mod promises;
mod rooms;
mod scanning;
mod vows;

use std::net::SocketAddr;

use bytes::Bytes;
use client_core::{Coding, Config, ConnId, LostBy};
use native::RouteMap;
use rng::Rng;
use types::{ClusterMap, Name, NamespaceId};

use crate::cluster::process::{NATIVE_PORT, native_address};
use crate::options::NativeClients;
use crate::stage::Stage;
use crate::stage::clock::Clock;
use crate::stage::queue::{Event, NativeEvent};

pub(crate) use chunks::Put;
pub(crate) use link::Link;
pub(crate) use parts::{Next, Parts};
pub(crate) use port::{Around, Port, Wants};
pub(crate) use process::{Caller, Process};
pub(crate) use scanning::{Came, Scanning};
pub(crate) use vows::Vows;

/// Who codes what such clients write and read: themselves more often than not.
const CODINGS: [Coding; 4] = [Coding::Client, Coding::Client, Coding::Auto, Coding::Server];

/// See the module.
#[derive(Default)]
pub(crate) struct Natives {
    pub processes: Vec<Process>,
    pub vows: Vows,
    links: Vec<Link>,
}

impl Natives {
    /// The processes begin. The cluster has formed, but they know only some of its addresses.
    pub(crate) fn admit(&mut self, stage: &mut Stage, map: &ClusterMap) {
        let Some(natives) = stage.options.natives else { return };
        for number in 0..natives.processes {
            let namespace = namespace_of(stage, map, number);
            let clock = Clock::draw(&mut stage.rng.natives, stage.options.drift_ppm);
            let config = config_of(stage, natives, map, namespace);
            self.processes.push(Process::new(namespace, clock, config));
            end_later(stage, natives, number);
            scan_later(stage, number);
        }
    }

    /// A process ends, and another one begins in its place that knows nothing: the calls that it leaves, and its connections.
    pub(crate) fn begin_anew(&mut self, stage: &mut Stage, map: &ClusterMap, number: usize) -> Vec<Caller> {
        let Some(natives) = stage.options.natives else { return Vec::new() };
        let config = config_of(stage, natives, map, self.processes[number].namespace);
        note!(stage.book, "native client {number} begins anew");
        self.count(stage, number);
        let (callers, links) = self.processes[number].begin_anew(config);
        links.into_iter().for_each(|link| self.close(stage, link));
        end_later(stage, natives, number);
        callers
    }

    /// Adds what a process has done that ends.
    pub(crate) fn count(&self, stage: &mut Stage, number: usize) {
        stage.book.stats.asked_parts += self.processes[number].core.stats().graph_cells;
    }

    /// Whether a process has this map.
    pub(crate) fn knows_map(&self, process: usize, map: Option<&ClusterMap>) -> bool {
        map.map(RouteMap::of).as_ref() == self.processes[process].core.map()
    }

    // --- connections ---

    pub(crate) fn link(&mut self, link: u32) -> &mut Link {
        &mut self.links[link as usize]
    }

    /// The process whose connection this is, while it is the one that has made it.
    pub(crate) fn owner(&mut self, link: u32) -> Option<(usize, &mut Process)> {
        let Link { process, life, .. } = self.links[link as usize];
        let owner = &mut self.processes[process];
        (owner.life == life).then_some((process, owner))
    }

    /// A process wants a connection.
    pub(crate) fn dial(&mut self, stage: &mut Stage, process: usize, conn: ConnId, address: SocketAddr) {
        let number = self.links.len() as u32;
        let node = usize::from(address.port() - NATIVE_PORT);
        let owner = &mut self.processes[process];
        owner.links.insert(conn, number);
        self.links.push(Link::new(process, owner.life, conn, node));
        let after = delay_us(stage);
        stage.after(after, Event::Native(NativeEvent::Dial(number)));
    }

    /// Bytes go from a client to its node.
    pub(crate) fn send_up(&mut self, stage: &mut Stage, link: u32, bytes: Bytes) {
        for bytes in split(stage, bytes) {
            let delay = delay_us(stage);
            if let Some(at) = self.links[link as usize].up.push(stage.now() + delay, bytes) {
                stage.queue.push(at, Event::Native(NativeEvent::Up(link)));
            }
        }
        self.cut_perhaps(stage, link);
    }

    /// Bytes go from a node to its client.
    pub(crate) fn send_down(&mut self, stage: &mut Stage, link: u32, bytes: Bytes) {
        let stall_us = stage.options.natives.map_or(0, |natives| natives.stall_us);
        for (part, bytes) in stalled(stage, bytes, stall_us).into_iter().enumerate() {
            let stalls_us = if part > 0 { stage.rng.landings.below(stall_us + 1) } else { 0 };
            let delay = delay_us(stage) + stalls_us;
            if let Some(at) = self.links[link as usize].down.push(stage.now() + delay, bytes) {
                stage.queue.push(at, Event::Native(NativeEvent::Down(link)));
            }
        }
        self.cut_perhaps(stage, link);
    }

    /// A client wants its connection no more: what it has sent arrives still, and what its node sends, too.
    pub(crate) fn close(&mut self, stage: &mut Stage, link: u32) {
        let delay = delay_us(stage);
        let at = self.links[link as usize].up.close(stage.now() + delay);
        stage.queue.push(at, Event::Native(NativeEvent::Gone(link)));
    }

    fn cut_perhaps(&mut self, stage: &mut Stage, link: u32) {
        let per_mille = stage.options.natives.map_or(0, |natives| natives.cut_per_mille);
        if stage.rng.natives.below(1000) < per_mille {
            stage.book.stats.native_cuts += 1;
            self.cut(stage, link);
        }
    }

    /// A connection breaks. Of what is under way either way some arrives, sooner or later: it lies in a buffer, and who will read it may
    /// have other things to do; also when the client has long known that its connection is lost.
    fn cut(&mut self, stage: &mut Stage, link: u32) {
        note!(stage.book, "the connection {link} of a native client breaks");
        let late_us = stage.options.natives.map_or(0, |natives| natives.late_us);
        let (notice_us, now) = (stage.options.network.notice_us, stage.now());
        let rng = &mut stage.rng.natives;
        let [up_at, down_at] = [(); 2].map(|()| now + 1 + rng.below(late_us + 1));
        let (lost_at, gone_at) = (now + rng.below(notice_us + 1), up_at + 1 + rng.below(notice_us + 1));
        let Link { up, down, .. } = &mut self.links[link as usize];
        let (up, down) = (up.cut(rng, up_at), down.cut(rng, down_at));
        (0..up).for_each(|_| stage.queue.push(up_at, Event::Native(NativeEvent::Up(link))));
        (0..down).for_each(|_| stage.queue.push(down_at, Event::Native(NativeEvent::Down(link))));
        stage.queue.push(lost_at, Event::Native(NativeEvent::Lost(link)));
        stage.queue.push(gone_at, Event::Native(NativeEvent::Gone(link)));
    }

    /// A node has ended: so have its ends of connections.
    pub(crate) fn end_at(&mut self, stage: &mut Stage, node: usize) {
        for number in 0..self.links.len() {
            let link = &mut self.links[number];
            if link.node == node && link.port.take().is_some() {
                self.cut(stage, number as u32);
            }
        }
    }

    /// The connections whose ends at `node` stand.
    pub(crate) fn at(&self, node: usize) -> Vec<u32> {
        let stands = |link: &Link| link.node == node && link.port.is_some();
        (0u32..).zip(&self.links).filter(|(_, link)| stands(link)).map(|(number, _)| number).collect()
    }
}

/// Whose keys a process is about.
fn namespace_of(stage: &Stage, map: &ClusterMap, process: usize) -> NamespaceId {
    let id = NamespaceId(process as u32 % (stage.options.namespaces + 1));
    if map.catalog.namespace(id).is_some() { id } else { NamespaceId::DEFAULT }
}

fn config_of(stage: &mut Stage, natives: NativeClients, map: &ClusterMap, namespace: NamespaceId) -> Config {
    let (nodes, all_come_back) = (stage.options.nodes, stage.options.faults.restart_percent == 100);
    // By the seed alone, so that all else is drawn as it was.
    let lost_by = if (stage.options.seed / 2).is_multiple_of(3) { LostBy::Star } else { LostBy::Graph };
    let rng = &mut stage.rng.natives;
    // Where some never come back, those that it knows could be among them.
    let seeds = if all_come_back {
        (0..rng.range(1, 2)).map(|_| native_address(rng.index(nodes))).collect()
    } else {
        (0..nodes).map(native_address).collect()
    };
    let name = map.catalog.namespace(namespace).map(|known| known.name.clone());
    Config {
        seeds,
        namespace: name.unwrap_or_else(Name::default_name),
        timeout_us: natives.timeout_us,
        connect_us: natives.connect_us,
        pause_us: natives.pause_us,
        sessions: rng.percent(natives.sessions_percent),
        no_session_us: 4 * natives.pause_us,
        window: rng.pick(&[70_000, 1 << 20]),
        encode: rng.pick(&CODINGS),
        decode: rng.pick(&CODINGS),
        lost_by,
        chunks_above: rng.pick(&[1, 24, 1_000]),
        hedge_us: natives.pause_us * rng.pick(&[1, 4]),
        rules: natives.rules,
        ..Config::default()
    }
}

/// When a process ends the next time.
fn end_later(stage: &mut Stage, natives: NativeClients, process: usize) {
    if natives.process_us > 0 {
        let after = stage.rng.natives.range(natives.process_us / 2, natives.process_us * 2);
        stage.after(after, Event::Native(NativeEvent::Anew(process as u16)));
    }
}

/// When a process scans its keys the next time.
pub(crate) fn scan_later(stage: &mut Stage, process: usize) {
    let pause_us = stage.options.natives.map_or(0, |natives| natives.scan_pause_us);
    if pause_us > 0 {
        let after = stage.rng.natives.range(pause_us / 2, pause_us * 2);
        stage.after(after, Event::Native(NativeEvent::Scan(process as u16)));
    }
}

fn delay_us(stage: &mut Stage) -> u64 {
    let network = &stage.options.network;
    let rng: &mut Rng = &mut stage.rng.natives;
    rng.range(network.least_us, network.most_us) + rng.below(network.jitter_us + 1)
}

/// The same, more often where the rest comes late.
fn stalled(stage: &mut Stage, mut bytes: Bytes, stall_us: u64) -> Vec<Bytes> {
    if stall_us == 0 || bytes.len() < 2 || stage.rng.landings.once_in(2) {
        return split(stage, bytes);
    }
    let first = bytes.split_to(1 + stage.rng.landings.index(bytes.len() - 1));
    vec![first, bytes]
}

/// Now and then bytes come in two parts, wherever a frame may end.
fn split(stage: &mut Stage, mut bytes: Bytes) -> Vec<Bytes> {
    if bytes.len() > 1 && stage.rng.natives.once_in(8) {
        let at = 1 + stage.rng.natives.index(bytes.len() - 1);
        let first = bytes.split_to(at);
        return vec![first, bytes];
    }
    vec![bytes]
}
