//! `gestalt namespace convert`: a namespace moves to another pool.

use std::time::{Duration, Instant};

use clap::Args;
use tokio::time::sleep;
use types::{Catalog, CatalogChange, Name, NamespaceId};

use super::Target;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::status::moving::Moving;
use crate::units::duration;

/// How often it is looked at how far it has come.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Characters of the bar.
const BAR: u64 = 24;

/// What is to become of it.
#[derive(Args, Clone, Debug)]
pub struct ConvertArgs {
    /// Which namespace
    name: Name,
    #[command(flatten)]
    way: Way,
    /// Wait until it has moved
    #[arg(long, conflicts_with = "pause")]
    wait: bool,
    /// With --wait: give up after this long, with exit code 3; the namespace moves on
    #[arg(long, value_parser = duration, requires = "wait")]
    timeout: Option<Duration>,
}

/// One of these.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct Way {
    /// The pool that it moves to; on its way, the one that it comes from turns it back
    #[arg(long, value_name = "POOL")]
    to: Option<Name>,
    /// Let it stand still: nothing moves but keys that are written
    #[arg(long)]
    pause: bool,
    /// Let it go on
    #[arg(long)]
    resume: bool,
}

/// One of the conversions of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Which {
    namespace: NamespaceId,
    number: u32,
}

/// How it stands with one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// Who was asked has not heard of it yet.
    Unheard,
    /// It is under way.
    UnderWay,
    /// It is over.
    Over,
    /// The namespace is not there any more.
    Removed,
}

impl ConvertArgs {
    /// Which namespace.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The change of the catalog that is asked for.
    pub fn change(&self) -> CatalogChange {
        let name = self.name.clone();
        match &self.way.to {
            Some(to) => CatalogChange::ConvertNamespace { name, to: to.clone() },
            None => CatalogChange::PauseConversion { name, paused: self.way.pause },
        }
    }

    /// Whether it is waited for.
    pub fn waits(&self) -> bool {
        self.wait
    }

    /// Until the conversion that `catalog` has is over; the catalog then.
    ///
    /// # Errors
    /// `Degraded` where the time is up, or the namespace was removed.
    pub async fn wait(&self, target: &Target, catalog: &Catalog) -> Result<Catalog, Exit> {
        let known = catalog.namespace_named(&self.name).map_err(Exit::usage)?;
        let which = Which { namespace: known.id, number: known.conversions };
        let started = Instant::now();
        let (mut progress, mut bar) = (Progress::start(), Bar::default());
        loop {
            let survey = target.look().await?;
            let catalog = &survey.map.catalog;
            match which.standing(catalog) {
                Standing::Over => return Ok(survey.map.catalog),
                Standing::Removed => {
                    return Err(Exit::Degraded(format!("namespace '{}' was removed meanwhile", self.name)));
                }
                Standing::Unheard | Standing::UnderWay => {}
            }
            let moving = catalog.namespace(which.namespace);
            let moving = moving.and_then(|known| Moving::of(catalog, known, Some(&survey)));
            if self.timeout.is_some_and(|limit| started.elapsed() >= limit) {
                return Err(self.time_is_up(moving.as_ref()));
            }
            if let Some(moving) = moving {
                bar.note(moving.items_left.unwrap_or(0));
                progress.show(|| bar.text(&moving, started.elapsed()));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn time_is_up(&self, moving: Option<&Moving>) -> Exit {
        let how = moving.map(Moving::words).unwrap_or_else(|| "no node has heard of it".to_owned());
        Exit::Degraded(format!(
            "namespace '{}' has not moved yet ({how}): it goes on; look again with `gestalt namespace show {}`",
            self.name, self.name
        ))
    }
}

impl Which {
    fn standing(self, catalog: &Catalog) -> Standing {
        let Some(known) = catalog.namespace(self.namespace) else {
            return if catalog.is_gone(self.namespace) { Standing::Removed } else { Standing::Unheard };
        };
        if known.conversions < self.number {
            return Standing::Unheard;
        }
        // Whoever has begun another one has found this one over.
        let is_under_way = known.conversions == self.number && known.conversion.is_some();
        if is_under_way { Standing::UnderWay } else { Standing::Over }
    }
}

/// How many there were at most, and how many are left.
#[derive(Default)]
struct Bar {
    most: u64,
    left: u64,
}

impl Bar {
    fn note(&mut self, left: u64) {
        (self.most, self.left) = (self.most.max(left), left);
    }

    fn text(&self, moving: &Moving, elapsed: Duration) -> String {
        let done = self.most - self.left;
        let filled = (u128::from(done) * u128::from(BAR) / u128::from(self.most.max(1))) as usize;
        let percent = u128::from(done) * 100 / u128::from(self.most.max(1));
        let rate = done as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let (bar, gap) = ("#".repeat(filled), ".".repeat(BAR as usize - filled));
        format!("[{bar}{gap}] {percent} %, {rate:.0} items a second; {}", moving.words())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use types::Policy;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: ConvertArgs,
    }

    fn parse(line: &str) -> Result<ConvertArgs, clap::Error> {
        Cli::try_parse_from(["gestalt"].into_iter().chain(line.split(' '))).map(|cli| cli.args)
    }

    #[test]
    fn exactly_one_of_three_ways_is_taken() {
        let change = |line: &str| parse(line).unwrap().change();
        let name = |text: &str| text.parse::<Name>().unwrap();
        let to = CatalogChange::ConvertNamespace { name: name("n"), to: name("b") };
        assert_eq!((change("n --to b"), change("n --to b --wait --timeout 3s")), (to.clone(), to));
        let paused = |paused| CatalogChange::PauseConversion { name: name("n"), paused };
        assert_eq!((change("n --pause"), change("n --resume --wait")), (paused(true), paused(false)));
        for bad in ["n", "n --wait", "n --to b --pause", "n --pause --resume", "n --pause --wait", "--to b"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("n --to b --timeout 3s").is_err(), "nothing is waited for");
    }

    #[test]
    fn it_is_over_when_the_catalog_says_so_and_not_when_that_is_older() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let mut catalog = Catalog::first("rs(3+2)".parse().unwrap(), 5);
        catalog.create_pool(name("b"), "rep(3)".parse().unwrap(), 5).unwrap();
        let which = Which { namespace: NamespaceId(1), number: 1 };
        assert_eq!(which.standing(&catalog), Standing::Unheard, "of the namespace");
        catalog.create_namespace(name("n"), &Name::default_name(), Policy::default()).unwrap();
        assert_eq!(which.standing(&catalog), Standing::Unheard);
        catalog.convert(&name("n"), &name("b")).unwrap();
        assert_eq!(which.standing(&catalog), Standing::UnderWay);
        let mut over = catalog.clone();
        over.end_conversion(NamespaceId(1));
        assert_eq!(which.standing(&over), Standing::Over);
        over.convert(&name("n"), &Name::default_name()).unwrap();
        assert_eq!(which.standing(&over), Standing::Over, "another one has begun");
        catalog.remove_namespace(&name("n")).unwrap();
        assert_eq!(which.standing(&catalog), Standing::Removed);
    }

    #[test]
    fn the_bar_fills_as_items_go() {
        let moving = Moving {
            namespace: "n".parse().unwrap(),
            from: "default".parse().unwrap(),
            to: "b".parse().unwrap(),
            paused: false,
            items_left: Some(500),
            waits_for: vec![],
        };
        let mut bar = Bar::default();
        bar.note(0);
        assert!(bar.text(&moving, Duration::ZERO).starts_with("[........................] 0 %"));
        bar.note(2_000);
        bar.note(500);
        let text = bar.text(&moving, Duration::from_secs(3));
        assert_eq!(text, "[##################......] 75 %, 500 items a second; moving to b: 500 items left");
        bar.note(0);
        assert!(bar.text(&moving, Duration::from_secs(4)).starts_with("[########################] 100 %"));
    }
}
