//! What a node allows its memcached clients: for `serve` and `local`.

use clap::Args;
use clap::builder::FalseyValueParser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use server::ConnectionLimits;
use types::MAX_OBJECT_BYTES;

use crate::config::NodeSettings;
use crate::exit::Exit;
use crate::units::Size;

/// Files that a node has open besides its clients' connections: links, listeners, http, those of the runtime.
const OTHER_FILES: u64 = 512;

/// The flags of `local`; those of `serve` are among [`NodeSettings`].
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientArgs {
    /// Most connections of memcached clients at a node; one more takes the place of one that has sent no command, or is
    /// turned away [default: 4096]
    #[arg(long, env = "GESTALT_MAX_CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: Option<u32>,
    /// Longest value that is taken from a client, up to 1TiB, in namespaces that cut long values into chunks (`gestalt namespace
    /// set --striped-above`); in others it is memcached's 1MiB [default: 1GiB]
    #[arg(long, env = "GESTALT_MAX_VALUE", value_name = "SIZE", value_parser = longest_value)]
    pub max_value: Option<Size>,
    /// Answers flush_all with an error, as memcached -F does
    #[arg(long, env = "GESTALT_DISABLE_FLUSH_ALL", value_parser = FalseyValueParser::new())]
    pub disable_flush_all: bool,
}

impl From<&NodeSettings> for ClientArgs {
    fn from(settings: &NodeSettings) -> Self {
        let NodeSettings { max_connections, max_value, disable_flush_all, .. } = *settings;
        Self { max_connections, max_value, disable_flush_all }
    }
}

impl ClientArgs {
    /// The limits of a node.
    pub fn limits(self) -> ConnectionLimits {
        let defaults = ConnectionLimits::default();
        let max_connections = self.max_connections.and_then(|max| usize::try_from(max).ok());
        ConnectionLimits {
            max_connections: max_connections.unwrap_or(defaults.max_connections),
            flush_all: !self.disable_flush_all,
            max_value_bytes: self.max_value.map_or(defaults.max_value_bytes, |Size(bytes)| bytes),
            ..defaults
        }
    }

    /// As flags again, for a child.
    pub fn flags(self) -> Vec<String> {
        let max = self.max_connections.map(|max| format!("--max-connections={max}"));
        let longest = self.max_value.map(|Size(bytes)| format!("--max-value={bytes}"));
        max.into_iter()
            .chain(longest)
            .chain(self.disable_flush_all.then(|| "--disable-flush-all".to_owned()))
            .collect()
    }
}

/// The longest value that is taken from a client.
///
/// # Errors
/// One line that says how to write one.
pub fn longest_value(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    let is_possible = (1..=MAX_OBJECT_BYTES).contains(&size.0);
    if is_possible { Ok(size) } else { Err("a value may have 1 byte to 1TiB".to_owned()) }
}

/// Lets this process open as many files as that many connections need.
///
/// # Errors
/// `Usage` if somebody asked for more than the system allows; the default takes what it gets.
pub fn allow_connections(clients: ClientArgs) -> Result<(), Exit> {
    let needed = clients.limits().max_connections as u64 + OTHER_FILES;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(Exit::usage)?;
    if clients.max_connections.is_some() && needed > hard {
        return Err(Exit::Usage(format!(
            "--max-connections needs {needed} open files and the system allows {hard}: raise `ulimit -Hn` or give --max-connections {} or less",
            hard.saturating_sub(OTHER_FILES)
        )));
    }
    // Never less than there is: whoever started this process may have raised it for a reason.
    if soft < needed.min(hard) {
        setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard).map_err(Exit::usage)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_is_told_is_what_its_parent_was_told() {
        let all = ClientArgs { max_connections: Some(7), max_value: Some(Size(5)), disable_flush_all: true };
        assert_eq!(all.flags(), ["--max-connections=7", "--max-value=5", "--disable-flush-all"]);
        assert_eq!((all.limits().max_connections, all.limits().flush_all), (7, false));
        assert_eq!(all.limits().max_value_bytes, 5);
        assert!(ClientArgs::default().flags().is_empty());
        assert_eq!(ClientArgs::default().limits(), ConnectionLimits::default());
    }

    #[test]
    fn more_connections_than_the_system_allows_are_refused_with_the_number_that_it_does() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let beyond = u32::try_from(hard).ok().filter(|&hard| hard < 1_000_000);
        let Some(max_connections) = beyond else { return };
        let args = ClientArgs { max_connections: Some(max_connections), ..ClientArgs::default() };
        assert!(allow_connections(args).unwrap_err().to_string().contains("ulimit -Hn"));
    }
}
