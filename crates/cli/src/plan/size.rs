//! `gestalt plan size`: how much memory so many items need.

use clap::Args;
use serde::Serialize;
use server::least_memory_bytes;
use types::{
    Catalog, MAX_AREA_BYTES, MAX_KEY_BYTES, MAX_OBJECT_BYTES, NodeId, ObjectPolicy, Profile, Striped,
};

use super::model::{Answer, Model, Question, Uses, with_headroom};
use crate::admin::namespace::{Layout, chunk, striped};
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};
use crate::units::{Count, Size};
use crate::value_sizes::{ValueSize, shares};
use crate::words;

const EXAMPLE: &str = "\
Examples:
  gestalt plan size --items 10M --value-size 1KiB
  gestalt plan size --items 10M --value-size 1KiB --profile 'rs(4+2)' --nodes 9 -o json
  gestalt plan size --items 2M --value-size 200B:0.9,40KiB:0.1     nine of ten have 200 bytes
  gestalt plan size --items 20k --value-size 16MiB                 values beyond 1 MiB lie in chunks
  gestalt plan size --items 20k --value-size 16MiB --layout copy   and one node has a whole copy of each";

/// What a process has resident that no budget counts: the program, its stacks, and what the allocator holds between blocks.
const PROCESS_BYTES: u64 = 20 << 20;

/// What `--memory` each node needs for so many items, by use, and with one node lost and everything repaired.
///
/// By the rules by which a cluster places roles and by which areas, indexes and tables grow. It holds for items that are written
/// and stay; what is evicted or rewritten in other sizes leaves gaps, which need room, too.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct SizeArgs {
    /// How many items, as 2000, 200k, 10M
    #[arg(long)]
    items: Count,
    /// Bytes of a value; or several with the share that each has of the items, as 200B:0.9,40KiB:0.1
    #[arg(long, required = true, value_name = "SIZE[:SHARE]", value_delimiter = ',')]
    value_size: Vec<ValueSize>,
    /// Bytes of a key; in a namespace of one's own some two more
    #[arg(long, default_value = "30B")]
    key_size: Size,
    /// Protection
    #[arg(long, default_value = "rs(3+2)")]
    profile: Profile,
    /// Values that are longer lie in chunks: a size up to 1MiB, always, or never, as `gestalt namespace set` has it
    #[arg(long, value_name = "SIZE", value_parser = striped)]
    striped_above: Option<Striped>,
    /// Longest chunk of such a value: a multiple of 64KiB, up to 64MiB
    #[arg(long, value_name = "SIZE", value_parser = chunk)]
    chunk: Option<u32>,
    /// How the bytes of such a value are dealt to nodes
    #[arg(long, value_enum, default_value_t = Layout::Spread)]
    layout: Layout,
    /// How many nodes; as many as the profile needs if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    nodes: Option<u16>,
    /// Worker threads of each node
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Coding groups in all; as a cluster forms with if not given
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    groups: Option<u32>,
    /// How many nodes may be lost: then the others have room for everything that is built anew
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    lost: u8,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    profile: Profile,
    nodes: u16,
    workers: u16,
    groups: u32,
    /// Keys and values.
    user_bytes: u64,
    /// What to give each node as `--memory`.
    memory_bytes: u64,
    /// What each process has beside that.
    process_bytes: u64,
    healthy: State,
    /// Of the nodes that are left, when everything that can be is repaired.
    one_lost: Option<State>,
}

/// All nodes at one time.
#[derive(Debug, Serialize)]
struct State {
    /// Bytes of all nodes for each of the user's.
    amplification: f64,
    #[serde(flatten)]
    answer: Answer,
}

impl State {
    fn of(model: &Model) -> Self {
        let answer = model.uses();
        Self { amplification: answer.all.total_bytes as f64 / model.user_bytes().max(1) as f64, answer }
    }
}

/// Plans, and prints it.
///
/// # Errors
/// `Usage` if there cannot be such items, or not on so few nodes or groups.
pub fn run(args: &SizeArgs) -> Result<(), Exit> {
    let question = question(args)?;
    let report = report(question, args.lost)?;
    match args.output {
        Format::Json => print_json(&report),
        Format::Table => print(&render(&report)),
    }
    Ok(())
}

fn question(args: &SizeArgs) -> Result<Question, Exit> {
    let nodes = args.nodes.unwrap_or_else(|| u16::try_from(args.profile.n()).unwrap_or(u16::MAX));
    let groups = cluster::groups_for(args.profile, usize::from(nodes), args.workers);
    let key_bytes = part(args.key_size, "key", MAX_KEY_BYTES as u64)? as usize;
    let shares = shares(&args.value_size)?;
    let value = |(value, share): (&ValueSize, f64)| {
        let bytes = part(value.size, "value", MAX_OBJECT_BYTES)?;
        Ok((bytes, (args.items.0 as f64 * share).round() as u64))
    };
    let values = args.value_size.iter().zip(shares).map(value).collect::<Result<_, Exit>>()?;
    Ok(Question {
        profile: args.profile,
        nodes,
        workers: args.workers,
        groups: args.groups.unwrap_or(groups).min(Catalog::MAX_GROUPS),
        key_bytes,
        values,
        objects: objects(args),
    })
}

/// What a namespace with these flags has.
fn objects(args: &SizeArgs) -> ObjectPolicy {
    let usual = ObjectPolicy::default();
    let striped_above = match args.striped_above {
        None => usual.striped_above,
        Some(Striped::Never) => None,
        Some(Striped::Above(bytes)) => Some(bytes),
    };
    let chunk_bytes = args.chunk.unwrap_or(usual.chunk_bytes);
    ObjectPolicy { striped_above, chunk_bytes, layout: args.layout.into() }
}

fn part(size: Size, what: &str, most: u64) -> Result<u64, Exit> {
    if size.0 <= most {
        return Ok(size.0);
    }
    Err(Exit::Usage(format!("a {what} of {size} is too long: it may have {}", Size(most))))
}

fn report(question: Question, lost: u8) -> Result<Report, Exit> {
    let Question { profile, nodes, workers, groups, .. } = question;
    let mut model = Model::new(question).map_err(Exit::usage)?;
    if let Some(bytes) = Some(model.longest_area_bytes()).filter(|bytes| *bytes > MAX_AREA_BYTES as u64) {
        return Err(Exit::Usage(format!(
            "a role would have {} of items, and may have {}: give more --groups than {groups}",
            Size(bytes),
            Size(MAX_AREA_BYTES as u64)
        )));
    }
    let (user_bytes, moving) = (model.user_bytes(), model.largest_role_bytes());
    let healthy = State::of(&model);
    let one_lost = (lost > 0 && profile.tolerance() > 0).then(|| {
        // Roles are placed in turn, so that any node stands for all.
        model.lose(NodeId(0));
        State::of(&model)
    });
    let fullest = [Some(&healthy), one_lost.as_ref()].into_iter().flatten();
    let needed = fullest.map(|state| with_headroom(&state.answer.fullest(), moving)).max().unwrap_or(0);
    let least = least_memory_bytes(workers) as u64;
    let memory_bytes = needed.next_multiple_of(1 << 20).max(least);
    Ok(Report {
        profile,
        nodes,
        workers,
        groups,
        user_bytes,
        memory_bytes,
        process_bytes: PROCESS_BYTES,
        healthy,
        one_lost,
    })
}

fn render(report: &Report) -> String {
    let mut table = Table::new(&["", "fullest node", "all", "one lost: fullest node", "all"]);
    let lost = report.one_lost.as_ref();
    let columns = [Some(&report.healthy), lost].map(|state| state.map(|state| &state.answer));
    let cells = |cell: &dyn Fn(&Uses) -> String| {
        let of = |answer: &Answer| [cell(&answer.fullest()), cell(&answer.all)];
        columns
            .iter()
            .flat_map(|answer| answer.map_or_else(|| [const { String::new() }; 2], of))
            .collect::<Vec<_>>()
    };
    let mut row = |name: &str, cell: &dyn Fn(&Uses) -> String| {
        table.row([name.to_owned()].into_iter().chain(cells(cell)).collect());
    };
    row("data roles", &|uses| uses.data_roles.to_string());
    row("parity roles", &|uses| uses.parity_roles.to_string());
    for (name, bytes) in USES {
        row(name, &|uses| Size(bytes(uses)).to_string());
    }
    table.render() + &summary(report)
}

/// The name of a row, and its bytes.
type Row = (&'static str, fn(&Uses) -> u64);

const USES: [Row; 9] = [
    ("slots of items", |uses| uses.slot_bytes),
    ("free in extents", |uses| uses.free_bytes),
    ("parity", |uses| uses.parity_bytes),
    ("index", |uses| uses.index_bytes),
    ("index replicas", |uses| uses.replica_bytes),
    ("tables", |uses| uses.table_bytes),
    ("chunks", |uses| uses.chunk_bytes),
    ("clients' buffers", |uses| uses.buffer_bytes),
    ("in all", |uses| uses.total_bytes),
];

fn summary(report: &Report) -> String {
    let lost = report.one_lost.as_ref();
    let lost =
        lost.map(|state| format!(", {:.2} with one node lost", state.amplification)).unwrap_or_default();
    format!(
        "\n{} of {}, {}, {}; keys and values {}, of which each byte takes {:.2}{lost}\n\
         give each node --memory {}MiB, and the cluster --groups {}; beside that a process has some {} for itself\n",
        words::count(usize::from(report.nodes), "node", "nodes"),
        words::count(usize::from(report.workers), "worker", "workers"),
        report.profile,
        words::count(report.groups as usize, "group", "groups"),
        Size(report.user_bytes),
        report.healthy.amplification,
        report.memory_bytes >> 20,
        report.groups,
        Size(report.process_bytes),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use store::Budget;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: SizeArgs,
    }

    fn planned(flags: &str) -> Result<Report, String> {
        let flags = Flags::parse_from(["size"].into_iter().chain(flags.split_whitespace()));
        let question = question(&flags.args).map_err(|exit| exit.to_string())?;
        report(question, flags.args.lost).map_err(|exit| exit.to_string())
    }

    #[test]
    fn every_role_is_somewhere_before_and_after_a_loss() {
        let report = planned("--items 100k --value-size 1KiB --nodes 6").unwrap();
        let roles = |state: &State| (state.answer.all.data_roles, state.answer.all.parity_roles);
        assert_eq!((report.groups, roles(&report.healthy)), (48, (144, 96)));
        let lost = report.one_lost.unwrap();
        assert_eq!((roles(&lost), lost.answer.nodes.len()), ((144, 96), 5));
        assert!(lost.answer.fullest().total_bytes > report.healthy.answer.fullest().total_bytes);
    }

    #[test]
    fn with_no_node_to_spare_parities_are_missing_after_a_loss() {
        let report = planned("--items 100k --value-size 1KiB").unwrap();
        let lost = report.one_lost.unwrap().answer;
        assert_eq!((lost.nodes.len(), lost.all.data_roles), (4, 120));
        assert!(lost.all.parity_roles < 80);
    }

    #[test]
    fn large_items_are_near_what_the_code_costs() {
        let report = planned("--items 10M --value-size 10KiB").unwrap();
        let amplification = report.healthy.amplification;
        assert!((1.67..1.8).contains(&amplification), "{amplification}");
        assert!(report.memory_bytes > report.healthy.answer.fullest().total_bytes * 32 / 31);
    }

    #[test]
    fn long_values_take_what_the_code_costs_in_chunks() {
        let report = planned("--items 1000 --value-size 16MiB --nodes 6").unwrap();
        let amplification = report.healthy.amplification;
        assert!((1.66..1.69).contains(&amplification), "{amplification}");
        let all = report.healthy.answer.all;
        assert!(all.chunk_bytes > 26 << 30 && all.slot_bytes < 1 << 20, "{all:?}");
        let lost = report.one_lost.unwrap().answer;
        assert_eq!(lost.all.chunk_bytes, all.chunk_bytes, "everything is filled anew");
        let room = Budget::new(report.memory_bytes).room_for_chunks();
        assert!(room >= lost.fullest().total_bytes, "{room}");
    }

    #[test]
    fn a_copy_takes_as_much_as_the_value_beside_its_chunks() {
        let amplification = |flags: &str| {
            let report = planned(&format!("--items 1000 --nodes 6 {flags}")).unwrap();
            report.healthy.amplification
        };
        assert!((1.66..1.69).contains(&amplification("--value-size 16MiB --layout wide")));
        // Of five chunks the first is three times as long.
        assert!((2.33..2.36).contains(&amplification("--value-size 16MiB --layout copy")));
    }

    #[test]
    fn a_namespace_says_which_values_lie_in_chunks() {
        let chunk_bytes = |flags: &str| {
            let report = planned(&format!("--items 1000 --value-size 300KiB {flags}")).unwrap();
            report.healthy.answer.all.chunk_bytes
        };
        assert_eq!((chunk_bytes("--striped-above never"), chunk_bytes("")), (0, 0));
        assert!(chunk_bytes("--striped-above 256KiB --chunk 64KiB") > 400 << 20);
    }

    #[test]
    fn sizes_have_shares() {
        let mixed = planned("--items 100k --value-size 200B:0.9,40KiB:0.1").unwrap();
        assert_eq!(mixed.user_bytes, 100_000 * 30 + 90_000 * 200 + 10_000 * 40_960);
        for wrong in ["200B,40KiB", "200B:0.5,40KiB:0.1"] {
            let text = planned(&format!("--items 100k --value-size {wrong}")).unwrap_err();
            assert!(text.contains("add up to 1"), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |flags: &str| planned(flags).unwrap_err();
        assert!(error("--items 1k --value-size 1KiB --nodes 4").contains("needs 5 nodes"));
        assert!(error("--items 1k --value-size 2TiB").contains("too long"));
        assert!(error("--items 20M --value-size 1TiB").contains("more bytes"));
        assert!(error("--items 1G --value-size 1KiB --groups 5").contains("more --groups"));
    }
}
