//! What is known of a key: its value's length and layout, where it lies, what it survives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use client::reply::Reply;
use client::{Client, ClientError, Connection, FailureCode, Location, fetch_json};
use cluster::Codes;
use gestalt::Located;
use serde::Serialize;
use server::NodeStatus;
use types::{ClusterMap, GroupId, NamespaceId, NodeId, Profile};

use super::way::Way;
use super::{ATTEMPT, exit_of, not_found};
use crate::exit::Exit;
use crate::output::{self, Format, Table};
use crate::units::Size;

/// Ranges that a table shows.
const MOST_RANGES: usize = 32;

/// What a node says of an item (`me`), in its words.
struct Facts(BTreeMap<String, String>);

/// How a value in chunks lies.
#[derive(Clone, Debug, Serialize)]
struct Chunks {
    stripes: u64,
    /// Longest chunk.
    chunk_bytes: u64,
    /// Data chunks of a stripe.
    k: u64,
    /// Stripe `s` lies in the group at `s` modulo their count.
    groups: Vec<ChunkGroup>,
}

/// Who holds chunks in a group.
#[derive(Clone, Debug, Serialize)]
struct ChunkGroup {
    group: u32,
    /// By role; none where nobody has all of them.
    nodes: Vec<Option<u16>>,
}

/// Where a key lies.
#[derive(Serialize)]
struct Place {
    key: String,
    slot: u32,
    group: u32,
    role: u8,
    node: Option<u16>,
    address: Option<SocketAddr>,
    layout: Option<String>,
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Chunks>,
    /// Which bytes lie on which node; none where no node speaks the native protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<Vec<ByteRange>>,
}

/// Bytes of a value that lie on one node.
#[derive(Serialize)]
struct ByteRange {
    start: u64,
    end: u64,
    node: Option<u16>,
}

/// What a value is.
#[derive(Serialize)]
struct Stat {
    key: String,
    bytes: u64,
    layout: String,
    /// Seconds to live; none = for ever.
    expires_in_seconds: Option<u64>,
    /// Seconds since it was last used.
    idle_seconds: Option<u64>,
    cas: Option<u64>,
    profile: Option<Profile>,
    /// Losses of nodes that the profile makes up for.
    losses_asked: Option<usize>,
    /// Losses of nodes that all of it survives now, by the map; none where it is lost.
    losses_survived: Option<usize>,
    /// Too few of its chunks are left, as far as that was found: of that the map says nothing.
    lost: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Chunks>,
}

/// Prints what `key`'s value is.
///
/// # Errors
/// `Usage` for a bad key or one that is not there, `Unreachable` if nobody answers.
pub async fn stat(client: &mut Client, key: &str, format: Format, limit: Duration) -> Result<(), Exit> {
    let (location, facts) = ask(client, key, limit).await?;
    let facts = facts?.ok_or_else(|| not_found(key))?;
    let map = client.map().await.map_err(exit_of)?;
    let mut stat = facts
        .stat(key, &location, map)
        .ok_or_else(|| Exit::Unreachable("a node's answer is not understood".to_owned()))?;
    stat.lost = stat.chunks.is_some() && is_lost(map, &location, key, limit).await;
    stat.losses_survived = stat.losses_survived.filter(|_| !stat.lost);
    match format {
        Format::Table => output::print(&stat.table()),
        Format::Json => output::print_json(&stat),
    }
    Ok(())
}

/// Whether the node that has `key` knows that too few chunks of its value are left.
async fn is_lost(map: &ClusterMap, location: &Location, key: &str, limit: Duration) -> bool {
    let node = location.primary.and_then(|host| map.node(host.node));
    let Some(node) = node else { return false };
    let answer = fetch_json::<NodeStatus>(node.http, "/status", limit).await;
    let named = answer.map(|status| status.lost_keys).unwrap_or_default();
    let name = key.as_bytes().escape_ascii().to_string();
    named.iter().any(|known| known.namespace == NamespaceId::DEFAULT && known.key == name)
}

/// Prints where `key` lies.
///
/// # Errors
/// `Usage` for a bad key, `Unreachable` if nobody has the map.
pub async fn locate(way: &mut Way, key: &str, format: Format, limit: Duration) -> Result<(), Exit> {
    let (location, facts) = ask(&mut way.memcached, key, limit).await?;
    // The map says where; what a node would say more is left out.
    let facts = facts.ok().flatten();
    let places = way.places(key.as_bytes()).await.ok().flatten();
    let map = way.memcached.map().await.map_err(exit_of)?;
    let place = Place {
        key: key.to_owned(),
        slot: location.slot.0,
        group: location.member.group.0,
        role: location.member.role.0,
        node: location.primary.map(|host| host.node.0),
        address: location.address,
        layout: facts.as_ref().map(Facts::layout),
        bytes: facts.as_ref().and_then(|facts| facts.number("len")),
        chunks: facts.as_ref().and_then(|facts| facts.chunks(map)),
        ranges: places.map(|places| places.ranges().map(ByteRange::of).collect()),
    };
    match format {
        Format::Table => output::print(&place.table()),
        Format::Json => output::print_json(&place),
    }
    Ok(())
}

/// Where `key` lies, and what a node says of it; an error within where nobody says anything.
async fn ask(
    client: &mut Client,
    key: &str,
    limit: Duration,
) -> Result<(Location, Result<Option<Facts>, Exit>), Exit> {
    let deadline = tokio::time::Instant::now() + limit;
    let mut last = Exit::Unreachable("no node could be reached: see `gestalt status`".to_owned());
    // It goes into a line of the protocol as it is, so it is looked at first. Any node forwards.
    let nodes = client.candidates(key.as_bytes()).await.map_err(exit_of)?;
    let location = client.locate(key.as_bytes()).await.map_err(exit_of)?;
    for address in nodes {
        // One that stands still leaves time for the others.
        let until = deadline.min(tokio::time::Instant::now() + ATTEMPT);
        match tokio::time::timeout_at(until, facts_of(address, key)).await {
            Ok(Ok(facts)) => return Ok((location, Ok(facts))),
            Ok(Err(error)) => last = exit_of(error),
            Err(_) => {}
        }
    }
    Ok((location, Err(last)))
}

/// By the meta protocol, so that looking leaves no trace; none if it is not there.
async fn facts_of(address: SocketAddr, key: &str) -> Result<Option<Facts>, ClientError> {
    let mut connection = Connection::open(address).await?;
    let asked = format!("me {key}\r\nmg {key} s u\r\n");
    connection.requests().extend_from_slice(asked.as_bytes());
    connection.flush().await?;
    let mut facts = match connection.reply().await? {
        Reply::Debug(text) => Facts::of(&String::from_utf8_lossy(text)),
        Reply::Miss => return Ok(None),
        Reply::ServerError(words) => {
            let (code, words) = (FailureCode::parse(words), String::from_utf8_lossy(words).into_owned());
            return Err(ClientError::Server { code, words });
        }
        _ => return Err(ClientError::Protocol("not an answer to me")),
    };
    // Of a value that lies whole `me` tells the item's size alone.
    if let Reply::Header(flags) = connection.reply().await?
        && let Some(size) = flags.split(|&b| b == b' ').find_map(|flag| flag.strip_prefix(b"s"))
    {
        let len = String::from_utf8_lossy(size).into_owned();
        facts.0.entry("len".to_owned()).or_insert(len);
    }
    Ok(Some(facts))
}

impl Facts {
    /// Of `KEY name=value name=value`.
    fn of(text: &str) -> Self {
        let pairs = text.split(' ').skip(1).filter_map(|word| word.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.parse().ok()
    }

    fn layout(&self) -> String {
        self.0.get("layout").cloned().unwrap_or_else(|| "packed".to_owned())
    }

    fn groups(&self) -> Vec<GroupId> {
        let numbers = self.0.get("groups").map(String::as_str).unwrap_or_default().split(',');
        numbers.filter_map(|number| Some(GroupId(number.parse().ok()?))).collect()
    }

    fn chunks(&self, map: &ClusterMap) -> Option<Chunks> {
        let (stripes, chunk_bytes) = (self.number("stripes")?, self.number("chunk")?);
        let of_group = |group: GroupId| ChunkGroup { group: group.0, nodes: holders(map, group) };
        let groups = self.groups().into_iter().map(of_group).collect();
        Some(Chunks { stripes, chunk_bytes, k: self.number("k")?, groups })
    }

    fn stat(&self, key: &str, location: &Location, map: &ClusterMap) -> Option<Stat> {
        let mut groups = self.groups();
        groups.push(location.member.group);
        let codes = Codes::of(&map.catalog);
        let survives = |group: GroupId| {
            let view = map.groups.iter().find(|view| view.group == group)?;
            codes.of_group(group)?.losses_survived_without(view, &[])
        };
        let profile = map.profile_of(location.member.group);
        Some(Stat {
            key: key.to_owned(),
            bytes: self.number("len")?,
            layout: self.layout(),
            expires_in_seconds: self.number("exp"),
            idle_seconds: self.number("la"),
            cas: self.number("cas"),
            profile,
            losses_asked: profile.map(Profile::tolerance),
            losses_survived: groups.into_iter().map(survives).min().flatten(),
            lost: false,
            chunks: self.chunks(map),
        })
    }
}

/// The nodes whose processes have all chunks of a role, by role.
fn holders(map: &ClusterMap, group: GroupId) -> Vec<Option<u16>> {
    let view = map.groups.iter().find(|view| view.group == group);
    let node = |holder: types::Holder| holder.host.node;
    let all = view.map_or(&[][..], |view| &view.holders);
    all.iter().map(|holders| holders.whole.map(node).map(|NodeId(number)| number)).collect()
}

impl Place {
    fn table(&self) -> String {
        let mut table = Table::new(&["key", "slot", "group", "role", "node", "address", "layout", "bytes"]);
        table.row(vec![
            self.key.clone(),
            self.slot.to_string(),
            self.group.to_string(),
            self.role.to_string(),
            or_dash(self.node),
            or_dash(self.address),
            or_dash(self.layout.as_ref()),
            or_dash(self.bytes),
        ]);
        let chunks = self.chunks.as_ref().map_or_else(String::new, Chunks::table);
        table.render() + &chunks + &self.ranges.as_deref().map_or_else(String::new, ByteRange::table)
    }
}

impl ByteRange {
    fn of(located: Located) -> Self {
        let Located { bytes, node } = located;
        Self { start: bytes.start, end: bytes.end, node: node.map(|NodeId(number)| number) }
    }

    /// The first ones: of a long value in cells there are thousands.
    fn table(all: &[Self]) -> String {
        let mut table = Table::new(&["bytes from", "up to", "node"]);
        for Self { start, end, node } in all.iter().take(MOST_RANGES) {
            table.row(vec![start.to_string(), end.to_string(), or_dash(*node)]);
        }
        let more = all.len().saturating_sub(MOST_RANGES);
        let more = if more > 0 { format!("{more} more: -o json\n") } else { String::new() };
        format!("\n{}{more}", table.render())
    }
}

impl Chunks {
    /// Groups, and the nodes of their roles.
    fn table(&self) -> String {
        let mut table = Table::new(&["chunks in group", "nodes by role"]);
        for ChunkGroup { group, nodes } in &self.groups {
            let nodes: Vec<String> = nodes.iter().map(|node| or_dash(*node)).collect();
            table.row(vec![group.to_string(), nodes.join(" ")]);
        }
        format!("\n{}", table.render())
    }
}

impl Stat {
    fn table(&self) -> String {
        let mut table = Table::new(&["", ""]);
        let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
        row("key", self.key.clone());
        row("bytes", self.bytes.to_string());
        row("layout", self.layout.clone());
        if let Some(chunks) = &self.chunks {
            let longest = Size(chunks.chunk_bytes);
            row(
                "chunks",
                format!("{} stripes, {} data chunks of up to {longest} each", chunks.stripes, chunks.k),
            );
            let groups: Vec<String> = chunks.groups.iter().map(|known| known.group.to_string()).collect();
            row("groups", groups.join(" "));
        }
        row("profile", or_dash(self.profile));
        let survived = format!("{} of {}", or_dash(self.losses_survived), or_dash(self.losses_asked));
        let lost = || "none: too few of its chunks are left".to_owned();
        row("losses survived", if self.lost { lost() } else { survived });
        row(
            "expires in",
            self.expires_in_seconds.map_or("never".to_owned(), |seconds| format!("{seconds} s")),
        );
        row("last used", self.idle_seconds.map_or("-".to_owned(), |seconds| format!("{seconds} s ago")));
        row("cas", or_dash(self.cas));
        table.render()
    }
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_what_a_node_says() {
        let facts =
            Facts::of("k exp=-1 la=4 cas=77 layout=spread len=10 stripes=2 chunk=65536 k=3 groups=4,9");
        assert_eq!(
            (facts.number("exp"), facts.number("len"), facts.layout()),
            (None, Some(10), "spread".into())
        );
        assert_eq!(facts.groups(), [GroupId(4), GroupId(9)]);
        let packed = Facts::of("k exp=5 la=0 cas=1 fetch=no cls=1 size=66");
        assert_eq!((packed.layout(), packed.groups().len()), ("packed".to_owned(), 0));
    }
}
