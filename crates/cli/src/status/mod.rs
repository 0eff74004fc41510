//! `gestalt status`: what the map says, what the nodes say, and an exit code for scripts.

mod elected;
mod memory;
pub mod moving;
pub mod nodes;
pub mod render;
mod roles;
pub mod survey;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use cluster::Codes;
use cluster::health::Assessment;
use serde::Serialize;
use server::LostKeyStatus;
use types::{Catalog, ClusterMap, GroupId, GroupView, MemberId, NodeId, Profile, RepairSettings};

use self::elected::Elected;
use self::memory::Memory;
use self::moving::Moving;
use self::nodes::{NodeReport, RepairTotal};
use self::roles::{RoleReport, roles_of};
use self::survey::{Formless, Found, Survey};
use self::verdict::verdict;
use crate::endpoint::Endpoint;
use crate::exit::Exit;
use crate::output::{self, Format};

const LIMIT: Duration = Duration::from_secs(2);

const EXAMPLE: &str = "\
Examples:
  gestalt status
  gestalt status --http 127.0.0.1:9181 -o json
  gestalt status --memory

Exit codes: 0 as protected as asked for, 2 unreachable, 3 degraded, unknown, forming or refusing writes, 4 data at risk, out of reach or
lost. docs/operations.md says what each health means.";

/// Health, nodes, groups and roles, protection asked for and achieved, memory, lost slot ranges.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct StatusArgs {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Where the nodes' resident memory goes, instead
    #[arg(long)]
    pub memory: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
struct Status {
    #[serde(flatten)]
    assessment: Assessment,
    /// Seconds since anybody who answers has heard a coordinator; none = never. What the map says may be so old.
    coordinator_age_seconds: Option<f64>,
    /// After how long a silent node counts as lost.
    lease_seconds: f64,
    /// If that is too long ago: so in words.
    #[serde(skip)]
    unheard: Option<String>,
    profile: Profile,
    catalog: Catalog,
    cluster: u64,
    map_version: u64,
    layout_version: u64,
    /// Groups by how many node losses they survive.
    groups_by_margin: BTreeMap<usize, usize>,
    /// Bytes of items in groups that survive no further loss, as far as their nodes answer.
    bytes_at_risk: u64,
    /// Data roles in such groups whose nodes do not answer.
    roles_at_risk_unknown: usize,
    /// Keys whose values in chunks are lost, as far as that was found.
    lost_keys: Vec<LostKeyStatus>,
    draining_nodes: Vec<NodeId>,
    /// Namespaces that move to another pool.
    moving_namespaces: Vec<Moving>,
    /// If the coordinator is elected over etcd: how that goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    coordinator: Option<Elected>,
    repair: RepairReport,
    nodes: Vec<NodeReport>,
    groups: Vec<GroupReport>,
}

/// Settings and progress of repair.
#[derive(Clone, Debug, Serialize)]
struct RepairReport {
    #[serde(flatten)]
    settings: RepairSettings,
    progress: RepairTotal,
}

#[derive(Clone, Debug, Serialize)]
struct GroupReport {
    group: GroupId,
    view: u64,
    losses_survived: usize,
    roles: Vec<RoleReport>,
}

/// Asks, prints, and ends with the exit code of the cluster's health.
///
/// # Errors
/// `Unreachable`, `Degraded` or `AtRisk`.
pub async fn run(args: &StatusArgs) -> Result<(), Exit> {
    let survey = match survey::look(&args.endpoint, LIMIT).await? {
        Found::Cluster(survey) => survey,
        Found::Formless(formless) => return tell_formless(args.output, &formless),
    };
    let status = gather(&survey);
    match (args.output, args.memory) {
        (Format::Table, false) => output::print(&render::text(&status)),
        (Format::Json, false) => output::print_json(&status),
        (Format::Table, true) => output::print(&Memory::of(&status.nodes).text()),
        (Format::Json, true) => output::print_json(&Memory::of(&status.nodes)),
    }
    verdict(&status.assessment, status.lost_keys.len(), survey.age)
}

fn tell_formless(format: Format, formless: &Formless) -> Result<(), Exit> {
    if format == Format::Json {
        output::print_json(formless);
    }
    Err(Exit::Degraded(formless.explain()))
}

fn gather(survey: &Survey) -> Status {
    let (map, nodes, missing) = (&survey.map, &survey.nodes, &survey.assessment.missing_nodes);
    let codes = Codes::of(&map.catalog);
    let survived = |view: &GroupView| {
        codes.of_group(view.group).and_then(|code| code.losses_survived_without(view, missing)).unwrap_or(0)
    };
    let group = |view: &GroupView| GroupReport {
        group: view.group,
        view: view.version.0,
        losses_survived: survived(view),
        roles: roles_of(view),
    };
    let mut groups_by_margin = BTreeMap::new();
    for view in &map.groups {
        *groups_by_margin.entry(survived(view)).or_insert(0) += 1;
    }
    let (bytes_at_risk, roles_at_risk_unknown) = at_risk(map, nodes, survived);
    Status {
        layout_version: map.layout.version.0,
        groups_by_margin,
        bytes_at_risk,
        roles_at_risk_unknown,
        draining_nodes: map.layout.draining().collect(),
        moving_namespaces: Moving::all(survey),
        coordinator: Elected::of(nodes),
        repair: RepairReport { settings: map.layout.repair, progress: nodes::repair_of_all(nodes) },
        assessment: survey.assessment.clone(),
        lost_keys: survey.lost_keys(),
        coordinator_age_seconds: survey.coordinator_age_seconds(),
        lease_seconds: Duration::from_micros(survey.age.lease_us).as_secs_f64(),
        unheard: (!survey.age.is_fresh()).then(|| survey::unheard(survey.age)),
        profile: map.default_pool().profile,
        catalog: map.catalog.clone(),
        cluster: map.cluster.0,
        map_version: map.version,
        nodes: nodes.clone(),
        groups: map.groups.iter().map(group).collect(),
    }
}

/// Bytes of items in groups that survive no further loss, and data roles there of which nobody tells.
fn at_risk(map: &ClusterMap, nodes: &[NodeReport], survived: impl Fn(&GroupView) -> usize) -> (u64, usize) {
    let held: BTreeMap<MemberId, u64> = nodes
        .iter()
        .flat_map(|node| &node.roles)
        .map(|known| (MemberId { group: known.group, role: known.role }, known.item_bytes))
        .collect();
    let (mut bytes, mut unknown) = (0, 0);
    for view in map.groups.iter().filter(|view| survived(view) == 0) {
        let living = view.data_roles().filter(|(_, known)| !known.status.is_lost());
        for (role, _) in living {
            match held.get(&MemberId { group: view.group, role }) {
                Some(held) => bytes += held,
                None => unknown += 1,
            }
        }
    }
    (bytes, unknown)
}
