//! `gestalt cluster`: what concerns all of it.

use clap::{Args, Subcommand};
use types::{AdminAnswer, AdminCommand};

use super::{Expect, Target, lost};
use crate::exit::Exit;

/// Begin anew with the cluster as a whole.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example: gestalt cluster reset --yes-lose-everything")]
pub struct ClusterArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// Give up all data: every slot begins anew, empty, on the nodes that live, whatever state the cluster is in
    ///
    /// Nodes that are silent count as fenced: their processes may not come back but as new ones. Be sure that they have ended: one
    /// that lives, and that nobody can reach, would go on serving whoever reaches it.
    #[command(after_help = "Example: gestalt cluster reset --yes-lose-everything")]
    Reset {
        /// That all data is to be lost
        #[arg(long)]
        yes_lose_everything: bool,
    },
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &ClusterArgs) -> Result<(), Exit> {
    let Action::Reset { yes_lose_everything } = args.action;
    if !yes_lose_everything {
        return Err(Exit::Usage(
            "this gives up all data of the cluster: give --yes-lose-everything if that is meant; \
             `gestalt lost accept` gives up only what is lost already"
                .to_owned(),
        ));
    }
    match args.target.order(Expect::default(), AdminCommand::Reset).await? {
        AdminAnswer::Accepted(slots) => {
            let text = format!("all data is given up: slots {} begin anew, empty", lost::named(&slots));
            lost::say(&args.target, &slots, &text)
        }
        _ => Err(Exit::unreachable("the coordinator answered another question")),
    }
}
