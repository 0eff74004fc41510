//! What a node allows its memcached clients: for `serve` and `local`.

use std::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use proto::Timing;
use server::ConnectionLimits;
use types::MAX_OBJECT_BYTES;

use crate::config::NodeSettings;
use crate::exit::Exit;
use crate::units::{Size, duration};

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
    /// A long value that is being written is given up when nothing more of it has come for so long; at least a lease [default: 30
    /// leases]
    #[arg(long, env = "GESTALT_WRITE_TIMEOUT", value_name = "TIME", value_parser = duration)]
    pub write_timeout: Option<Duration>,
    /// Chunks of which nobody has said for so long what has become of them are asked about; at least a lease [default: 60 leases]
    #[arg(long, env = "GESTALT_ASK_INTERVAL", value_name = "TIME", value_parser = duration)]
    pub ask_interval: Option<Duration>,
    /// Answers flush_all with an error, as memcached -F does
    #[arg(long, env = "GESTALT_DISABLE_FLUSH_ALL", value_parser = FalseyValueParser::new())]
    pub disable_flush_all: bool,
}

impl From<&NodeSettings> for ClientArgs {
    fn from(settings: &NodeSettings) -> Self {
        let NodeSettings {
            max_connections, max_value, write_timeout, ask_interval, disable_flush_all, ..
        } = *settings;
        Self { max_connections, max_value, write_timeout, ask_interval, disable_flush_all }
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

    /// The time-outs of a node under this lease.
    pub fn timing(self, lease: Duration) -> Timing {
        let defaults = timing(lease);
        let of = |asked: Option<Duration>, default_us: u64| match asked {
            Some(asked) => micros(asked.max(lease)),
            None => default_us,
        };
        Timing {
            object_deadline_us: of(self.write_timeout, defaults.object_deadline_us),
            ask_us: of(self.ask_interval, defaults.ask_us),
            ..defaults
        }
    }

    /// As flags again, for a child.
    pub fn flags(self) -> Vec<String> {
        let max = self.max_connections.map(|max| format!("--max-connections={max}"));
        let longest = self.max_value.map(|Size(bytes)| format!("--max-value={bytes}"));
        let time = |flag: &str, time: Option<Duration>| Some(format!("--{flag}={}us", micros(time?)));
        max.into_iter()
            .chain(longest)
            .chain(time("write-timeout", self.write_timeout))
            .chain(time("ask-interval", self.ask_interval))
            .chain(self.disable_flush_all.then(|| "--disable-flush-all".to_owned()))
            .collect()
    }
}

/// All time-outs that follow from this lease.
pub fn timing(lease: Duration) -> Timing {
    Timing::from_lease(micros(lease))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
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

/// Lets this process open as many files as that many connections need. With how many connections it has to do: where the system allows fewer
/// than the default, those that leave enough for all else, or the last one would be the last thing that this process opens.
///
/// # Errors
/// `Usage` if somebody asked for more than the system allows.
pub fn allow_connections(clients: ClientArgs) -> Result<ClientArgs, Exit> {
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
    if needed <= hard {
        return Ok(clients);
    }
    let max = connections_within(hard);
    tracing::warn!(
        open_files = hard,
        max_connections = max,
        "the system allows few open files: raise `ulimit -Hn`"
    );
    Ok(ClientArgs { max_connections: Some(max), ..clients })
}

/// How many connections so many open files leave room for: half of them at least are for those where there are very few.
fn connections_within(files: u64) -> u32 {
    u32::try_from(files - OTHER_FILES.min(files / 2)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_is_told_is_what_its_parent_was_told() {
        let all = ClientArgs {
            max_connections: Some(7),
            max_value: Some(Size(5)),
            write_timeout: Some(Duration::from_secs(2)),
            ask_interval: Some(Duration::from_millis(1)),
            disable_flush_all: true,
        };
        let flags =
            ["--max-connections=7", "--max-value=5", "--write-timeout=2000000us", "--ask-interval=1000us"];
        assert_eq!(all.flags(), [&flags[..], &["--disable-flush-all"]].concat());
        let timing = all.timing(Duration::from_secs(1));
        assert_eq!((timing.object_deadline_us, timing.ask_us), (2_000_000, 1_000_000), "a lease at least");
        assert_eq!(ClientArgs::default().timing(Duration::from_secs(1)), Timing::default());
        assert_eq!((all.limits().max_connections, all.limits().flush_all), (7, false));
        assert_eq!(all.limits().max_value_bytes, 5);
        assert!(ClientArgs::default().flags().is_empty());
        assert_eq!(ClientArgs::default().limits(), ConnectionLimits::default());
    }

    #[test]
    fn few_open_files_are_not_all_for_connections() {
        assert_eq!([4_096, 1_024, 256, 1].map(connections_within), [3_584, 512, 128, 1]);
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
