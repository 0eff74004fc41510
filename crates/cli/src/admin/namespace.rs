//! `gestalt namespace`: sets of keys that never meet, each with a quota and a policy.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use server::NamespaceStatus;
use types::{
    Catalog, CatalogChange, EvictPolicy, Name, Namespace, NamespaceLossPolicy, ObjectLayout, ObjectPolicy,
    Policy, PolicyChange, Pool, Striped,
};

use super::convert::ConvertArgs;
use super::{Target, ask};
use crate::exit::Exit;
use crate::output::Table;
use crate::status::moving::Moving;
use crate::status::survey::Survey;
use crate::units::{Size, duration};
use crate::words;

const EXAMPLE: &str = "\
Examples:
  gestalt namespace create sessions --quota 2GiB --default-ttl 1h
  gestalt serve --memcached 0.0.0.0:11211 --memcached 0.0.0.0:11311=sessions ...
  gestalt namespace set sessions --evict yes --quota 0
  gestalt namespace convert sessions --to wide --wait
  gestalt namespace remove sessions";

/// See, make, change and remove namespaces: sets of keys that never meet.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct NamespaceArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// All namespaces
    #[command(after_help = "Example: gestalt namespace list -o json")]
    List,
    /// One namespace
    #[command(after_help = "Example: gestalt namespace show default")]
    Show {
        /// Which
        name: Name,
    },
    /// Make a namespace; clients reach it by a listener that is bound to it
    #[command(after_help = "Example: gestalt namespace create sessions --pool hot --quota 2GiB")]
    Create {
        /// What it is called
        name: Name,
        /// The pool that its keys lie in
        #[arg(long, default_value = "default")]
        pool: Name,
        #[command(flatten)]
        policy: PolicyArgs,
    },
    /// Let something else hold for its keys, from now on
    #[command(after_help = "Example: gestalt namespace set sessions --quota 4GiB")]
    Set {
        /// Which
        name: Name,
        #[command(flatten)]
        policy: PolicyArgs,
    },
    /// Move a namespace to another pool, while clients go on; on its way it may turn back
    #[command(after_help = "\
Examples:
  gestalt namespace convert sessions --to wide --wait
  gestalt namespace convert sessions --pause
  gestalt namespace convert sessions --resume --wait --timeout 10min")]
    Convert(ConvertArgs),
    /// Remove a namespace and all of its items; their memory comes back within seconds
    #[command(after_help = "Example: gestalt namespace remove sessions --yes")]
    Remove {
        /// Which
        name: Name,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// What is to hold; what is not given stays as it is.
#[derive(Args, Clone, Copy, Debug)]
struct PolicyArgs {
    /// Most bytes of its items in all of the cluster, parities included; 0 = no limit
    #[arg(long)]
    quota: Option<Size>,
    /// Whether its items give way to others when there is no room
    #[arg(long, value_enum)]
    evict: Option<Evict>,
    /// What becomes of its keys where data is lost
    #[arg(long, value_enum)]
    on_loss: Option<OnLoss>,
    /// How long an item lives that was written without a time of its own, in whole seconds; 0s = for ever
    #[arg(long, value_parser = duration)]
    default_ttl: Option<Duration>,
    /// Values that are longer are cut into chunks, which lie at several nodes: a size up to 1MiB, always, or never
    #[arg(long, value_name = "SIZE", value_parser = striped)]
    striped_above: Option<Striped>,
    /// Longest chunk of such a value: a multiple of 64KiB, up to 64MiB
    #[arg(long, value_name = "SIZE", value_parser = chunk)]
    chunk: Option<u32>,
    /// How the bytes of values in chunks that are written from now on are dealt to nodes
    #[arg(long, value_enum)]
    layout: Option<Layout>,
}

/// From which length on values are cut.
pub(crate) fn striped(text: &str) -> Result<Striped, String> {
    match text {
        "never" => Ok(Striped::Never),
        "always" => Ok(Striped::Above(0)),
        _ => {
            let bytes = small(text).map_err(|why| format!("{why}, or 'always', or 'never'"))?;
            let known = ObjectPolicy { striped_above: Some(bytes), ..ObjectPolicy::default() }.check();
            known.map(|()| Striped::Above(bytes)).map_err(|why| why.to_string())
        }
    }
}

/// How long a chunk is at most.
pub(crate) fn chunk(text: &str) -> Result<u32, String> {
    let chunk_bytes = small(text)?;
    let known = ObjectPolicy { chunk_bytes, ..ObjectPolicy::default() }.check();
    known.map(|()| chunk_bytes).map_err(|why| why.to_string())
}

/// A size of less than 4 GiB.
fn small(text: &str) -> Result<u32, String> {
    let Size(bytes) = text.parse()?;
    u32::try_from(bytes).map_err(|_| format!("'{text}' is too large"))
}

/// Whether items give way.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Evict {
    /// As the nodes are told (`gestalt serve --evict`)
    Node,
    /// They do
    Yes,
    /// Writes are refused instead
    No,
}

/// How bytes are dealt.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Layout {
    /// In cells of 64 KiB, round all data nodes: the quickest to read and write
    Spread,
    /// Each data node keeps one range of a stripe, as long as a chunk: for tasks that run beside their data
    Wide,
    /// One node keeps a copy of a stripe, the others a chunk of the code each: reads ask one node; more memory
    Copy,
}

impl From<Layout> for ObjectLayout {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::Spread => Self::Spread,
            Layout::Wide => Self::Wide,
            Layout::Copy => Self::Copy,
        }
    }
}

/// What becomes of lost keys.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnLoss {
    /// What `gestalt lost policy` says
    Cluster,
    /// They answer with an error until the loss is accepted for this namespace
    Error,
    /// They are gone, and may be written anew
    Empty,
}

impl PolicyArgs {
    fn change(self) -> Result<PolicyChange, Exit> {
        let seconds = |ttl: Duration| match u32::try_from(ttl.as_secs()) {
            Ok(seconds) if ttl.subsec_nanos() == 0 => Ok(seconds),
            Ok(_) => Err(Exit::Usage("--default-ttl is in whole seconds".to_owned())),
            Err(_) => Err(Exit::Usage("--default-ttl is more than 136 years".to_owned())),
        };
        let evict = self.evict.map(|evict| match evict {
            Evict::Node => EvictPolicy::Node,
            Evict::Yes => EvictPolicy::Evict,
            Evict::No => EvictPolicy::Keep,
        });
        let on_loss = self.on_loss.map(|on_loss| match on_loss {
            OnLoss::Cluster => NamespaceLossPolicy::Cluster,
            OnLoss::Error => NamespaceLossPolicy::Error,
            OnLoss::Empty => NamespaceLossPolicy::Empty,
        });
        let layout = self.layout.map(ObjectLayout::from);
        Ok(PolicyChange {
            evict,
            on_loss,
            default_ttl_seconds: self.default_ttl.map(seconds).transpose()?,
            quota_bytes: self.quota.map(|Size(bytes)| bytes),
            striped: self.striped_above,
            chunk_bytes: self.chunk,
            layout,
        })
    }
}

/// A namespace, with the name of its pool, and what its items take as far as nodes tell.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    namespace: &'a Namespace,
    pool_name: Option<&'a Name>,
    /// Items, those that were flushed and are not swept yet included.
    items: u64,
    /// Bytes of their slots, with what the parities take for them, and of chunks.
    bytes: u64,
    /// Bytes of chunks among them, of data and parities.
    chunk_bytes: u64,
    /// How far it has come, if it moves to another pool.
    moving: Option<Moving>,
}

impl<'a> Line<'a> {
    fn of(catalog: &'a Catalog, namespace: &'a Namespace, used: &[NamespaceStatus]) -> Self {
        let pool = catalog.pool(namespace.pool);
        let (mut items, mut leaving_bytes, mut other_bytes, mut chunk_bytes) = (0, 0, 0, 0);
        for known in used.iter().filter(|known| known.namespace == namespace.id) {
            items += known.items;
            leaving_bytes += known.leaving_slot_bytes;
            other_bytes += known.slot_bytes.saturating_sub(known.leaving_slot_bytes);
            chunk_bytes += known.chunk_bytes;
        }
        // Of what has moved the parities are the new pool's.
        let there = namespace.conversion.and_then(|conversion| catalog.pool(conversion.to)).or(pool);
        let bytes = with_parities(pool, leaving_bytes) + with_parities(there, other_bytes) + chunk_bytes;
        let (pool_name, moving) = (pool.map(|pool| &pool.name), None);
        Self { namespace, pool_name, items, bytes, chunk_bytes, moving }
    }
}

/// Bytes of slots in `pool`, with what parities take for them.
fn with_parities(pool: Option<&Pool>, slot_bytes: u64) -> u64 {
    let (n, k) = pool.map_or((1, 1), |pool| (pool.profile.n() as u64, pool.profile.k() as u64));
    slot_bytes / k * n
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &NamespaceArgs) -> Result<(), Exit> {
    let target = &args.target;
    match &args.action {
        Action::List => {
            let survey = target.survey().await?;
            print(target, &survey.map.catalog, Some(&survey), None)
        }
        Action::Show { name } => {
            let survey = target.survey().await?;
            print(target, &survey.map.catalog, Some(&survey), Some(name))
        }
        Action::Create { name, pool, policy } => {
            let policy = policy.change()?.of(Policy::default());
            let change = CatalogChange::CreateNamespace { name: name.clone(), pool: pool.clone(), policy };
            changed(target, change, Some(name)).await
        }
        Action::Set { name, policy } => {
            let policy = policy.change()?;
            if policy == PolicyChange::default() {
                return Err(Exit::Usage("say what is to hold: `gestalt namespace set --help`".to_owned()));
            }
            let change = CatalogChange::SetPolicy { name: name.clone(), change: policy };
            changed(target, change, Some(name)).await
        }
        Action::Convert(args) => {
            let mut catalog = target.change_catalog(args.change()).await?;
            if args.waits() {
                catalog = args.wait(target, &catalog).await?;
            }
            show(target, &catalog, Some(args.name())).await
        }
        Action::Remove { name, yes } => {
            if !yes {
                ask(&format!("Namespace '{name}' and all of its items go."))?;
            }
            let change = CatalogChange::RemoveNamespace { name: name.clone() };
            changed(target, change, None).await
        }
    }
}

/// Does it, and shows what holds now.
async fn changed(target: &Target, change: CatalogChange, only: Option<&Name>) -> Result<(), Exit> {
    let catalog = target.change_catalog(change).await?;
    show(target, &catalog, only).await
}

/// Shows what holds after a change. It is done, whether or not nodes tell what is used.
async fn show(target: &Target, catalog: &Catalog, only: Option<&Name>) -> Result<(), Exit> {
    let survey = target.survey().await.ok();
    print(target, catalog, survey.as_ref(), only)
}

/// All namespaces, or one.
fn print(target: &Target, catalog: &Catalog, seen: Option<&Survey>, only: Option<&Name>) -> Result<(), Exit> {
    let used: Vec<NamespaceStatus> = seen
        .into_iter()
        .flat_map(|survey| &survey.nodes)
        .flat_map(|node| &node.namespaces)
        .copied()
        .collect();
    let line = |known| Line { moving: Moving::of(catalog, known, seen), ..Line::of(catalog, known, &used) };
    match only {
        Some(name) => target.print_one(line(catalog.namespace_named(name).map_err(Exit::usage)?), table),
        None => target.print_all(&catalog.namespaces.iter().map(line).collect::<Vec<_>>(), table),
    }
    Ok(())
}

fn table(lines: &[Line<'_>]) -> String {
    let mut table = Table::new(&[
        "namespace",
        "pool",
        "items",
        "memory",
        "in chunks",
        "quota",
        "evict",
        "on loss",
        "default ttl",
        "striped above",
        "chunk",
        "layout",
        "lost slots",
    ]);
    for Line { namespace, pool_name, items, bytes, chunk_bytes, .. } in lines {
        let Policy { evict, on_loss, default_ttl_seconds, quota_bytes, objects } = namespace.policy;
        let evict = match evict {
            EvictPolicy::Node => "as the nodes",
            EvictPolicy::Evict => "yes",
            EvictPolicy::Keep => "no",
        };
        let on_loss = match on_loss {
            NamespaceLossPolicy::Cluster => "as the cluster",
            NamespaceLossPolicy::Error => "error",
            NamespaceLossPolicy::Empty => "empty",
        };
        let ttl = humantime::format_duration(Duration::from_secs(default_ttl_seconds.into())).to_string();
        let lost: u64 = namespace.lost.iter().map(|range| u64::from(range.count())).sum();
        table.row(vec![
            namespace.name.to_string(),
            words::some(&pool_name.iter().collect::<Vec<_>>()),
            items.to_string(),
            Size(*bytes).to_string(),
            Size(*chunk_bytes).to_string(),
            if quota_bytes == 0 { "none".to_owned() } else { Size(quota_bytes).to_string() },
            evict.to_owned(),
            on_loss.to_owned(),
            if default_ttl_seconds == 0 { "never".to_owned() } else { ttl },
            namespace
                .policy
                .objects
                .striped_above
                .map_or("never".to_owned(), |bytes| Size(bytes.into()).to_string()),
            Size(objects.chunk_bytes.into()).to_string(),
            objects.layout.name().to_owned(),
            lost.to_string(),
        ]);
    }
    let moving = lines.iter().filter_map(|line| line.moving.as_ref());
    let notes = moving.map(|moving| format!("namespace {}: {}\n", moving.namespace, moving.words()));
    table.render() + &notes.collect::<String>()
}

#[cfg(test)]
mod tests {
    use types::NamespaceId;

    use super::*;

    #[test]
    fn a_namespace_is_shown_with_its_pool_and_what_holds_for_it() {
        let mut catalog = Catalog::first("rs(3+2)".parse().unwrap(), 5);
        let policy = Policy { quota_bytes: 1 << 30, default_ttl_seconds: 90, ..Policy::default() };
        catalog.create_namespace("n".parse().unwrap(), &Name::default_name(), policy).unwrap();
        let of_node = |items, slot_bytes| {
            let (namespace, chunk_bytes) = (NamespaceId(1), 4_096);
            NamespaceStatus { namespace, items, slot_bytes, chunk_bytes, ..NamespaceStatus::default() }
        };
        let used = [of_node(3, 100), of_node(4, 200)];
        let lines: Vec<Line<'_>> =
            catalog.namespaces.iter().map(|known| Line::of(&catalog, known, &used)).collect();
        let text = table(&lines);
        assert!(text.contains("none"));
        assert_eq!((lines[0].items, lines[1].items, lines[1].bytes), (0, 7, 500 + 2 * 4_096));
        for part in ["8KiB", "never", "1GiB", "1m 30s", "as the cluster"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn what_has_moved_is_counted_by_the_new_code_and_how_much_has_not_is_said() {
        let mut catalog = Catalog::first("rs(3+2)".parse().unwrap(), 5);
        let b: Name = "b".parse().unwrap();
        catalog.create_pool(b.clone(), "rep(3)".parse().unwrap(), 5).unwrap();
        catalog.convert(&Name::default_name(), &b).unwrap();
        let (namespace, chunk_bytes) = (NamespaceId::DEFAULT, 0);
        let (items, slot_bytes, leaving_items, leaving_slot_bytes) = (9, 900, 3, 300);
        let used = [NamespaceStatus {
            namespace,
            items,
            slot_bytes,
            leaving_items,
            leaving_slot_bytes,
            chunk_bytes,
        }];
        let known = &catalog.namespaces[0];
        let mut line = Line::of(&catalog, known, &used);
        assert_eq!((line.items, line.bytes), (9, 300 / 3 * 5 + 600 * 3));
        line.moving = Moving::of(&catalog, known, None).map(|it| Moving { items_left: Some(3), ..it });
        assert!(table(&[line]).ends_with("namespace default: moving to b: 3 items left\n"));
    }

    #[test]
    fn what_is_not_given_stays_as_it_is() {
        let args = PolicyArgs {
            quota: Some(Size(5)),
            evict: None,
            on_loss: None,
            default_ttl: None,
            striped_above: None,
            chunk: Some(1 << 17),
            layout: Some(Layout::Wide),
        };
        let change = args.change().unwrap();
        let before = Policy { default_ttl_seconds: 7, evict: EvictPolicy::Keep, ..Policy::default() };
        let layout = ObjectLayout::Wide;
        let objects = ObjectPolicy { chunk_bytes: 1 << 17, layout, ..before.objects };
        assert_eq!(change.of(before), Policy { quota_bytes: 5, objects, ..before });
        let ages = PolicyArgs { default_ttl: Some(Duration::from_secs(1 << 40)), ..args };
        assert!(ages.change().is_err());
        // It would be 0, and so for ever.
        let short = PolicyArgs { default_ttl: Some(Duration::from_millis(500)), ..args };
        assert!(short.change().is_err());
    }

    #[test]
    fn thresholds_and_chunks_are_read_if_there_can_be_such() {
        for (text, read) in [
            ("never", Striped::Never),
            ("always", Striped::Above(0)),
            ("64KiB", Striped::Above(65_536)),
            ("1MiB", Striped::Above(1 << 20)),
        ] {
            assert_eq!(striped(text), Ok(read), "{text}");
        }
        for text in ["2MiB", "often", "5GiB", ""] {
            assert!(striped(text).is_err(), "{text}");
        }
        assert_eq!((chunk("64KiB"), chunk("64MiB")), (Ok(1 << 16), Ok(1 << 26)));
        for text in ["0", "100", "65MiB", "100KB"] {
            assert!(chunk(text).unwrap_err().contains("64 KiB"), "{text}");
        }
    }
}
