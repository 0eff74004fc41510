//! `gestalt lost`: data that is lost for good, and the way out: what is lost begins anew, empty, once somebody accepts it.

use std::str::FromStr;

use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use server::LostKeyStatus;
use types::{
    AdminAnswer, AdminCommand, BadCatalog, Catalog, ClusterMap, LossPolicy, MAX_SLOT_BITS, MemberId, Name,
    NodeId, PoolSlots, RoleStatus, Slot, SlotRange,
};

use super::{Expect, Target, ask};
use crate::exit::Exit;
use crate::output::{self, Format, Table};
use crate::settings::OnLoss;
use crate::words;

const EXAMPLE: &str = "\
Examples:
  gestalt lost list                     which slots, and what their keys wait for
  gestalt lost accept --all             they begin anew, empty; asks first
  gestalt lost accept --slots 0-1092,4000 --yes
  gestalt lost policy empty             for caches: what is lost begins anew by itself";

/// See what data is lost for good, and accept it.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct LostArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// The slots whose data is lost, and the keys of long values of which too few chunks are left
    ///
    /// Such a key is known once a holder that gets its chunks anew, or a client that reads it, has found that; some hundreds a node.
    /// A write or a deletion of the key ends it.
    #[command(after_help = "Examples:\n  gestalt lost list -o json\n  gestalt lost list --keys -o json")]
    List {
        /// Only the keys of long values
        #[arg(long)]
        keys: bool,
    },
    /// Give up what is lost in some slots: they begin anew, empty, served and protected
    ///
    /// A data role is given up as a whole: all of its slots, also if only some of them are named. A role whose last primary may
    /// still live and serve somebody waits until that one is heard, is started again, or is fenced (`gestalt node fence`).
    #[command(
        after_help = "\
Examples:
  gestalt lost accept --slots 0-1092 --yes
  gestalt lost accept --all",
        group(ArgGroup::new("what").required(true).args(["slots", "all"]))
    )]
    Accept {
        /// Ranges of slots, as `gestalt lost list` names them: 0-1092,4000
        #[arg(long, value_parser = Slots::from_str)]
        slots: Option<Slots>,
        /// All that is lost in the pool
        #[arg(long)]
        all: bool,
        /// The pool whose slots they are [default: the namespace's, or 'default']
        #[arg(long)]
        pool: Option<Name>,
        /// For this namespace alone; the pool's others go on answering that it is lost
        #[arg(long)]
        namespace: Option<Name>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// What becomes of lost data by itself; without a value, what it is now
    #[command(after_help = "Example: gestalt lost policy empty")]
    Policy {
        /// What is to become of it
        #[arg(value_enum)]
        policy: Option<OnLoss>,
        #[command(flatten)]
        expect: Expect,
    },
}

/// Ranges of slots as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slots(Vec<SlotRange>);

impl FromStr for Slots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

/// Slots of the largest pool.
const MOST_SLOTS: u32 = 1 << MAX_SLOT_BITS;

/// Whatever there may be.
const ALL: SlotRange = SlotRange { first: Slot(0), last: Slot(MOST_SLOTS - 1) };

fn range(text: &str) -> Result<SlotRange, String> {
    let slot = |text: &str| text.trim().parse().ok().filter(|slot| *slot < MOST_SLOTS).map(Slot);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (slot(first), slot(last)) {
        (Some(first), Some(last)) if first <= last => Ok(SlotRange { first, last }),
        _ => Err(format!("'{text}' is no range of slots: write FIRST-LAST, from 0 to {}", MOST_SLOTS - 1)),
    }
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &LostArgs) -> Result<(), Exit> {
    let target = &args.target;
    match &args.action {
        Action::List { keys } => list(target, *keys).await,
        Action::Accept { slots, yes, pool, namespace, .. } => {
            let slots = slots.clone().map_or_else(|| vec![ALL], |slots| slots.0);
            let meant = Meant { pool: pool.clone(), slots, namespace: namespace.clone() };
            accept(target, meant, *yes).await
        }
        Action::Policy { policy, expect } => policy_of(target, *policy, *expect).await,
    }
}

/// What is given up.
struct Meant {
    pool: Option<Name>,
    slots: Vec<SlotRange>,
    namespace: Option<Name>,
}

/// Slots of one kind.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    pool: Name,
    first: Slot,
    last: Slot,
    /// `lost`, or `accepted` while it waits to begin anew.
    state: &'static str,
    /// The namespace that has not accepted the loss, where others of its pool have.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<Name>,
    /// Nodes whose processes are silent and may still serve these slots.
    waits_for: Vec<NodeId>,
}

/// Ranges of the same kind are one where they meet.
fn lines(map: &ClusterMap) -> Vec<Line> {
    let mut kinds: Vec<(&'static str, Vec<NodeId>, Vec<MemberId>)> = Vec::new();
    for member in map.members_that(|data| data.status.is_lost()) {
        let (state, waits_for) = kind(map, member);
        match kinds.iter_mut().find(|(known, nodes, _)| *known == state && *nodes == waits_for) {
            Some((_, _, members)) => members.push(member),
            None => kinds.push((state, waits_for, vec![member])),
        }
    }
    let of_kind = |(state, waits_for, members): (&'static str, Vec<NodeId>, Vec<MemberId>)| {
        let line = move |PoolSlots { pool, slots }| Line {
            pool,
            first: slots.first,
            last: slots.last,
            state,
            namespace: None,
            waits_for: waits_for.clone(),
        };
        map.slots_of_all(members.into_iter()).into_iter().map(line)
    };
    let of_roles = kinds.into_iter().flat_map(of_kind);
    let mut lines: Vec<Line> = of_roles.chain(lines_of_namespaces(map)).collect();
    lines.sort_by(|a, b| (&a.pool, a.first, &a.namespace).cmp(&(&b.pool, b.first, &b.namespace)));
    lines
}

/// What namespaces have lost, and others of their pools have accepted.
fn lines_of_namespaces(map: &ClusterMap) -> Vec<Line> {
    let mut lines = Vec::new();
    for namespace in &map.catalog.namespaces {
        let Some(pool) = map.catalog.pool(namespace.pool) else { continue };
        lines.extend(namespace.lost.iter().map(|slots| Line {
            pool: pool.name.clone(),
            first: slots.first,
            last: slots.last,
            state: "lost",
            namespace: Some(namespace.name.clone()),
            waits_for: Vec::new(),
        }));
    }
    lines
}

fn kind(map: &ClusterMap, member: MemberId) -> (&'static str, Vec<NodeId>) {
    let Some(view) = map.group(member.group) else { return ("lost", Vec::new()) };
    let is_accepted = view.data_role(member.role).is_some_and(|data| data.status == RoleStatus::Accepted);
    let is_silent =
        |host: &types::HostId| map.node(host.node).is_some_and(|info| info.host == *host && !info.alive);
    let former = view.former(member.role).map(|former| former.primary).filter(is_silent);
    (if is_accepted { "accepted" } else { "lost" }, former.map(|host| host.node).into_iter().collect())
}

async fn list(target: &Target, only_keys: bool) -> Result<(), Exit> {
    let survey = target.survey().await?;
    let keys: Vec<KeyLine> =
        survey.lost_keys().into_iter().map(|lost| KeyLine::of(&survey.map.catalog, lost)).collect();
    let lines = if only_keys { Vec::new() } else { lines(&survey.map) };
    match target.output {
        Format::Json if only_keys => output::print_json(&keys),
        Format::Json => output::print_json(&lines),
        Format::Table if lines.is_empty() && keys.is_empty() => output::print("nothing is lost\n"),
        Format::Table => {
            let slots = if lines.is_empty() { String::new() } else { table(&lines) };
            let keys = if keys.is_empty() { String::new() } else { table_of_keys(&keys) };
            let gap = if slots.is_empty() || keys.is_empty() { "" } else { "\n" };
            output::print(&format!("{slots}{gap}{keys}"));
        }
    }
    Ok(())
}

/// A key whose value has too few chunks left.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct KeyLine {
    namespace: String,
    /// Bytes that are no printable ASCII as `\xNN`.
    key: String,
    value_bytes: u64,
}

impl KeyLine {
    fn of(catalog: &Catalog, lost: LostKeyStatus) -> Self {
        let LostKeyStatus { namespace, key, value_bytes } = lost;
        let known = catalog.namespace(namespace).map(|known| known.name.to_string());
        Self { namespace: known.unwrap_or_else(|| format!("#{}", namespace.0)), key, value_bytes }
    }
}

fn table_of_keys(lines: &[KeyLine]) -> String {
    let mut table = Table::new(&["namespace", "key", "bytes"]);
    for KeyLine { namespace, key, value_bytes } in lines {
        table.row(vec![namespace.clone(), key.clone(), value_bytes.to_string()]);
    }
    table.render()
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new(&["pool", "first", "last", "state", "namespace", "silent"]);
    for line in lines {
        let silent = words::some(&line.waits_for);
        let namespace = line.namespace.as_ref().map_or_else(|| "all".to_owned(), ToString::to_string);
        table.row(vec![
            line.pool.to_string(),
            line.first.0.to_string(),
            line.last.0.to_string(),
            line.state.to_owned(),
            namespace,
            silent,
        ]);
    }
    table.render()
}

async fn accept(target: &Target, asked: Meant, sure: bool) -> Result<(), Exit> {
    let map = target.survey().await?.map;
    let meant = meant(&map, &asked).map_err(Exit::usage)?;
    if meant.is_empty() {
        return say(target, &[], "nothing is lost there");
    }
    if !sure {
        ask(&format!(
            "The data of slots {} is lost (roles are given up as a whole). They begin anew, empty.",
            named(&meant)
        ))?;
    }
    let Meant { pool, slots, namespace } = asked;
    match target.order(Expect::default(), AdminCommand::AcceptLoss { pool, slots, namespace }).await? {
        AdminAnswer::Accepted(accepted) => say(
            target,
            &accepted,
            &format!(
                "accepted: slots {} begin anew, empty; `gestalt lost list` shows what waits",
                named(&accepted)
            ),
        ),
        _ => Err(Exit::unreachable("the coordinator answered another question")),
    }
}

/// What is lost of `asked`: the slots of all lost roles that have one of them, and what single namespaces have lost there.
fn meant(map: &ClusterMap, asked: &Meant) -> Result<Vec<PoolSlots>, BadCatalog> {
    let pool = map.catalog.pool_meant(asked.pool.as_ref(), asked.namespace.as_ref())?;
    let lost = map.members_that(|data| data.status.is_lost()).filter(|member| pool.has(member.group));
    let named = |name: &Name| asked.namespace.as_ref().is_none_or(|asked| asked == name);
    let of_namespaces = map.catalog.namespaces_in(pool.id).filter(|known| named(&known.name));
    let ranges =
        lost.map(|member| pool.slots_of(member)).chain(of_namespaces.flat_map(|known| known.lost.clone()));
    let is_meant = |range: &SlotRange| asked.slots.iter().any(|slots| slots.intersects(*range));
    let merged = SlotRange::merged(ranges.filter(is_meant).collect());
    Ok(merged.into_iter().map(|slots| PoolSlots { pool: pool.name.clone(), slots }).collect())
}

/// Slots in words.
pub(super) fn named(ranges: &[PoolSlots]) -> String {
    let name = |range: &PoolSlots| words::slot_range(range);
    ranges.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What has been accepted, for people or for programs.
pub(super) fn say(target: &Target, accepted: &[PoolSlots], text: &str) -> Result<(), Exit> {
    match target.output {
        Format::Json => output::print_json(&accepted),
        Format::Table => output::print(&format!("{text}\n")),
    }
    Ok(())
}

async fn policy_of(target: &Target, policy: Option<OnLoss>, expect: Expect) -> Result<(), Exit> {
    let layout = match policy {
        Some(policy) => target.change(expect, AdminCommand::SetLossPolicy { policy: policy.into() }).await?,
        None => target.survey().await?.map.layout,
    };
    match target.output {
        Format::Json => output::print_json(&layout.on_loss),
        Format::Table => output::print(&format!("{}\n", in_words(layout.on_loss))),
    }
    Ok(())
}

/// What becomes of lost data.
pub(super) fn in_words(policy: LossPolicy) -> &'static str {
    match policy {
        LossPolicy::Error => "error: lost slots answer with an error until `gestalt lost accept`",
        LossPolicy::Empty => "empty: lost slots begin anew, empty, by themselves",
    }
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, HostId, Incarnation, Profile};

    use super::*;

    fn slots(first: u32, last: u32) -> SlotRange {
        SlotRange { first: Slot(first), last: Slot(last) }
    }

    fn map() -> ClusterMap {
        let hosts: Vec<_> =
            (0..5).map(|node| HostId { node: NodeId(node), incarnation: Incarnation(1) }).collect();
        let profile = Profile::rs(3, 2).unwrap();
        let groups = place(profile, &hosts, 5).unwrap();
        let (layout, nodes) = (Default::default(), vec![]);
        let catalog = types::Catalog::first(profile, 5);
        ClusterMap { cluster: ClusterId(1), version: 3, catalog, shards: 1, layout, nodes, groups }
    }

    fn meant_of(map: &ClusterMap, slots: SlotRange) -> Vec<PoolSlots> {
        meant(map, &Meant { pool: None, slots: vec![slots], namespace: None }).unwrap()
    }

    #[test]
    fn ranges_of_slots_are_read_and_garbage_is_refused() {
        let read = |text: &str| text.parse::<Slots>();
        assert_eq!(read("0-1092, 4000").unwrap().0, [slots(0, 1092), slots(4000, 4000)]);
        for bad in ["", "5-3", "16777216", "1-", "a-b", "1,,2"] {
            assert!(read(bad).unwrap_err().contains("no range of slots"), "{bad}");
        }
    }

    #[test]
    fn neighbours_that_are_lost_are_one_line_and_roles_are_meant_as_a_whole() {
        let mut map = map();
        assert_eq!(lines(&map), []);
        // Neighbouring ranges belong to neighbouring groups.
        map.groups[0].data[1].status = RoleStatus::Lost;
        map.groups[1].data[1].status = RoleStatus::Lost;
        map.groups[3].data[2].status = RoleStatus::Accepted;
        let lines = lines(&map);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].state, lines[1].state), ("lost", "accepted"));
        let first = SlotRange { first: lines[0].first, last: lines[0].last };
        assert_eq!(meant_of(&map, slots(first.first.0, first.first.0))[0].slots.first, first.first);
        assert_eq!(meant_of(&map, ALL).len(), 2);
        assert_eq!(meant_of(&map, slots(0, 0)), []);
    }

    #[test]
    fn what_single_namespaces_have_lost_is_a_line_of_its_own() {
        let mut map = map();
        let default = map.catalog.namespaces[0].name.clone();
        map.catalog.namespaces[0].lost = vec![slots(10, 19)];
        let lines = lines(&map);
        assert_eq!((lines.len(), &lines[0].namespace), (1, &Some(default)));
        assert_eq!(meant_of(&map, slots(0, 12))[0].slots, slots(10, 19));
    }
}
