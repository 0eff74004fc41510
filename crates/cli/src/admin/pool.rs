//! `gestalt pool`: the codes of a cluster, each with its groups and slots.

use clap::{Args, Subcommand};
use serde::Serialize;
use types::{Catalog, CatalogChange, Name, Pool, Profile};

use super::{Target, ask};
use crate::exit::Exit;
use crate::output::Table;
use crate::words;

const EXAMPLE: &str = "\
Examples:
  gestalt pool list
  gestalt pool create hot --profile 'rep(3)'
  gestalt pool create wide --profile 'lrc(12,2,2)' --groups 32
  gestalt pool show wide -o json
  gestalt pool remove wide";

/// See, make and remove pools: codes with groups of their own.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct PoolArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// All pools
    #[command(after_help = "Example: gestalt pool list -o json")]
    List,
    /// One pool
    #[command(after_help = "Example: gestalt pool show default")]
    Show {
        /// Which
        name: Name,
    },
    /// Make a pool, on the nodes that are here and are not draining
    #[command(after_help = "Example: gestalt pool create hot --profile 'rep(3)'")]
    Create {
        /// What it is called
        name: Name,
        /// Its protection, as `gestalt codec` names codes
        #[arg(long)]
        profile: Profile,
        /// How many groups it has; without it, so many that the cluster may grow eightfold
        #[arg(long)]
        groups: Option<u32>,
    },
    /// Remove a pool that no namespace is in or on its way to; its groups and their memory go with it
    #[command(after_help = "Example: gestalt pool remove hot")]
    Remove {
        /// Which
        name: Name,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// A pool, and who is in it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    pool: &'a Pool,
    slots: u32,
    namespaces: Vec<&'a Name>,
    /// Those that are on their way to it.
    coming: Vec<&'a Name>,
}

impl<'a> Line<'a> {
    fn of(catalog: &'a Catalog, pool: &'a Pool) -> Self {
        let namespaces = catalog.namespaces_in(pool.id).map(|namespace| &namespace.name).collect();
        let coming = catalog.namespaces_coming_to(pool.id).map(|namespace| &namespace.name).collect();
        Self { pool, slots: pool.slots(), namespaces, coming }
    }
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &PoolArgs) -> Result<(), Exit> {
    let target = &args.target;
    match &args.action {
        Action::List => print(target, &target.map().await?.catalog, None),
        Action::Show { name } => print(target, &target.map().await?.catalog, Some(name)),
        Action::Create { name, profile, groups } => {
            let change = CatalogChange::CreatePool { name: name.clone(), profile: *profile, groups: *groups };
            print(target, &target.change_catalog(change).await?, Some(name))
        }
        Action::Remove { name, yes } => {
            if !yes {
                ask(&format!("Pool '{name}' and its groups go."))?;
            }
            let catalog = target.change_catalog(CatalogChange::RemovePool { name: name.clone() }).await?;
            print(target, &catalog, None)
        }
    }
}

/// All pools, or one.
fn print(target: &Target, catalog: &Catalog, only: Option<&Name>) -> Result<(), Exit> {
    let line = |pool| Line::of(catalog, pool);
    match only {
        Some(name) => target.print_one(line(catalog.pool_named(name).map_err(Exit::usage)?), table),
        None => target.print_all(&catalog.pools.iter().map(line).collect::<Vec<_>>(), table),
    }
    Ok(())
}

fn table(lines: &[Line<'_>]) -> String {
    let mut table = Table::new(&["pool", "profile", "groups", "slots", "namespaces", "coming"]);
    for Line { pool, slots, namespaces, coming } in lines {
        table.row(vec![
            pool.name.to_string(),
            pool.profile.to_string(),
            pool.groups.to_string(),
            slots.to_string(),
            words::some(namespaces),
            words::some(coming),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_shown_with_who_is_in_it() {
        let catalog = Catalog::first("rs(3+2)".parse().unwrap(), 5);
        let line = Line::of(&catalog, &catalog.pools[0]);
        let text = table(&[line]);
        assert!(text.contains("default") && text.contains("rs(3+2)") && text.contains("16384"), "{text}");
        let json = serde_json::to_value(Line::of(&catalog, &catalog.pools[0])).unwrap();
        assert_eq!((&json["name"], &json["namespaces"][0]), (&"default".into(), &"default".into()));
    }

    #[test]
    fn who_is_on_the_way_is_shown_at_both_pools() {
        let mut catalog = Catalog::first("rs(3+2)".parse().unwrap(), 5);
        let name = |text: &str| text.parse::<Name>().unwrap();
        catalog.create_pool(name("b"), "rep(3)".parse().unwrap(), 5).unwrap();
        catalog.convert(&Name::default_name(), &name("b")).unwrap();
        let json = |at: usize| serde_json::to_value(Line::of(&catalog, &catalog.pools[at])).unwrap();
        let who = |json: serde_json::Value| (json["namespaces"].clone(), json["coming"].clone());
        let (nobody, default) = (serde_json::json!([]), serde_json::json!(["default"]));
        assert_eq!((who(json(0)), who(json(1))), ((default.clone(), nobody.clone()), (nobody, default)));
    }
}
