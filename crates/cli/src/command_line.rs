//! What holds for the whole command line: one environment variable means one thing in all commands that know it, and examples can be
//! copied.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command, CommandFactory};

use crate::Cli;

/// What a command does with an address, a size, a number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It is what it starts.
    Starts,
    /// It asks about what others have started.
    Asks,
}

/// The commands that start processes; all others ask them.
const STARTING: [&str; 3] = ["local", "serve", "coordinator"];

/// Every argument of every command, with the kind of its command.
fn arguments() -> Vec<(Kind, Arg)> {
    let mut cli = Cli::command();
    // Arguments that hold for all commands below are handed down by this.
    cli.build();
    let mut found = Vec::new();
    for command in cli.get_subcommands() {
        let kind = if STARTING.contains(&command.get_name()) { Kind::Starts } else { Kind::Asks };
        collect(command, kind, &mut found);
    }
    found
}

fn collect(command: &Command, kind: Kind, found: &mut Vec<(Kind, Arg)>) {
    found.extend(command.get_arguments().map(|arg| (kind, arg.clone())));
    command.get_subcommands().for_each(|command| collect(command, kind, found));
}

fn commands(command: &Command) -> Vec<Command> {
    let below = command.get_subcommands().flat_map(commands);
    std::iter::once(command.clone()).chain(below).collect()
}

fn variable(arg: &Arg) -> Option<String> {
    arg.get_env().map(|name| name.to_string_lossy().into_owned())
}

#[test]
fn a_variable_is_for_what_is_started_or_for_whom_to_ask_and_never_for_both() {
    let mut kinds: BTreeMap<String, BTreeSet<Kind>> = BTreeMap::new();
    for (kind, arg) in arguments() {
        if let Some(name) = variable(&arg) {
            kinds.entry(name).or_default().insert(kind);
        }
    }
    let both: Vec<_> = kinds.iter().filter(|(_, kinds)| kinds.len() > 1).collect();
    assert!(both.is_empty(), "{both:?}");
    assert_eq!(kinds["GESTALT_HTTP"], BTreeSet::from([Kind::Starts]));
    assert_eq!(kinds["GESTALT_ENDPOINT"], BTreeSet::from([Kind::Asks]));
}

#[test]
fn a_variable_belongs_to_one_flag_and_is_called_like_it() {
    for (kind, arg) in arguments() {
        let (Some(name), Some(flag)) = (variable(&arg), arg.get_long()) else { continue };
        let expected = match (kind, flag) {
            (Kind::Asks, "http") => "GESTALT_ENDPOINT".to_owned(),
            _ => format!("GESTALT_{}", flag.to_uppercase().replace('-', "_")),
        };
        assert_eq!(name, expected, "--{flag}");
    }
}

#[test]
fn whoever_may_be_asked_by_flag_may_be_asked_by_variable() {
    let asking =
        arguments().into_iter().filter(|(kind, arg)| *kind == Kind::Asks && arg.get_long() == Some("http"));
    let variables: Vec<_> = asking.map(|(_, arg)| variable(&arg)).collect();
    assert!(variables.len() > 20, "{}", variables.len());
    assert!(variables.iter().all(|name| name.as_deref() == Some("GESTALT_ENDPOINT")), "{variables:?}");
}

/// Help is wrapped at so many columns where there is no terminal.
const COLUMNS: usize = 100;

#[test]
fn no_example_is_wrapped_in_the_middle_of_a_command() {
    for command in commands(&Cli::command()) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_command =
            |line: &&str| ["gestalt ", "--"].iter().any(|begin| line.trim_start().starts_with(begin));
        for line in help.lines().filter(is_command) {
            // What is said about it follows after a gap.
            let example = line.trim_start().split("   ").next().unwrap_or_default();
            let end = line.len() - line.trim_start().len() + example.len();
            assert!(end <= COLUMNS, "{}: {line}", command.get_name());
        }
    }
}
