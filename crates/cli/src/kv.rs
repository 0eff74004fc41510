//! `gestalt kv`: one key at a time, for people and scripts; over the native protocol where the nodes speak it.

mod about;
mod files;
mod scan;
mod way;

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use client::{Client, ClientConfig, ClientError, Deleted, FailureCode, Location, MAX_PAYLOAD_BYTES};
use server::NodeStatus;
use types::NodeId;

use crate::endpoint::{Endpoint, without_map};
use crate::exit::Exit;
use crate::output::Format;
use crate::units::{Size, duration};

use way::{About, Way};

const EXAMPLE: &str = "\
Examples:
  gestalt kv set greeting 'hello there'
  gestalt kv get greeting
  gestalt kv set backup --file backup.tar
  gestalt kv get backup --file restored.tar
  gestalt kv stat backup
  gestalt kv locate greeting -o json
  gestalt kv scan --prefix user:
  gestalt kv del greeting

Exit codes: 0 ok, 1 wrong usage, a key that is not there, a value that is too large or a store that is full, 2 unreachable,
4 the data is lost.";

/// For one node, when a key is read.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Read, write, remove or locate one key, or list keys.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct KvArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    endpoint: Endpoint,
    /// Give up after this long; with --file, when nothing has moved for this long
    #[arg(long, global = true, default_value = "10s", value_parser = duration)]
    timeout: Duration,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// Print a key's value; exit code 1 if it is not there
    #[command(
        after_help = "Examples:\n  gestalt kv get greeting > value\n  gestalt kv get backup --file restored.tar"
    )]
    Get {
        /// The key
        key: String,
        /// Write the value to this file, which is there whole or not at all; - is standard output
        #[arg(long)]
        file: Option<PathBuf>,
    },
    /// Write a key; returns once the write survives what the profile promises
    #[command(
        after_help = "Examples:\n  gestalt kv set greeting hello --ttl 5min\n  gestalt kv set backup --file backup.tar"
    )]
    Set {
        /// The key
        key: String,
        /// The value; - reads it from standard input
        #[arg(required_unless_present = "file")]
        value: Option<String>,
        /// Take the value from this file, piece by piece; - is standard input
        #[arg(long, conflicts_with = "value")]
        file: Option<PathBuf>,
        /// Client flags that memcached clients use for the value's type
        #[arg(long, default_value_t = 0)]
        flags: u32,
        /// Time to live; for ever if not given
        #[arg(long, value_parser = duration)]
        ttl: Option<Duration>,
    },
    /// Remove a key; exit code 1 if it is not there
    #[command(after_help = "Example: gestalt kv del greeting", visible_alias = "delete")]
    Del {
        /// The key
        key: String,
    },
    /// Say what a key's value is: bytes, layout, chunks, times, the losses that it survives and those that it should
    #[command(after_help = "Example: gestalt kv stat backup -o json")]
    Stat {
        /// The key
        key: String,
        /// How to print
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Print the keys that there are, one a line, in no order; one that lives throughout comes at least once. Nodes need --native-scans
    #[command(after_help = "Example: gestalt kv scan --prefix user: -o json")]
    Scan {
        /// Only keys that begin with this
        #[arg(long, default_value = "")]
        prefix: String,
        /// How to print: what is no text is escaped
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Say where a key lies: slot, group, role, node, layout, bytes, and of a value in chunks the nodes that hold them, and which bytes of it
    #[command(after_help = "Example: gestalt kv locate greeting -o json")]
    Locate {
        /// The key
        key: String,
        /// How to print
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
}

/// Runs one of them.
///
/// # Errors
/// `Usage` for a bad or a missing key, a value that is too large and a store that is full, `Unreachable` if nobody answers, `AtRisk` if the server has lost the data.
pub async fn run(args: &KvArgs) -> Result<(), Exit> {
    // A node that stands still leaves a reader time for the others. What a write has done there nobody else can say.
    let attempt = if let Action::Get { .. } = args.action { args.timeout.min(ATTEMPT) } else { args.timeout };
    let config = ClientConfig { deadline: args.timeout, attempt, ..ClientConfig::default() };
    let source = args.endpoint.find_map().await?;
    match &args.action {
        Action::Get { key, file } => {
            let mut way = Way::find(source, config).await.map_err(exit_of)?;
            match file {
                None => get(&mut way, key).await,
                Some(file) => files::get(&mut way, key, file).await,
            }
        }
        Action::Set { key, value, file, flags, ttl } => {
            let about = About { flags: *flags, ttl: seconds(*ttl)? };
            let mut way = Way::find(source, config).await.map_err(exit_of)?;
            let done = match (value, file) {
                (_, Some(file)) => files::set(&mut way, key, file, about).await?,
                (value, None) => {
                    let value = read_value(value.as_deref().unwrap_or_default())?;
                    way.set(key.as_bytes(), value.into(), about).await
                }
            };
            match done {
                Err(ClientError::Server { code: Some(FailureCode::OutOfMemory), .. }) => {
                    Err(full(&mut way.memcached, key).await)
                }
                result => result.map_err(exit_of),
            }
        }
        Action::Del { key } => {
            let mut way = Way::find(source, config).await.map_err(exit_of)?;
            match way.delete(key.as_bytes()).await.map_err(exit_of)? {
                Deleted::Removed => Ok(()),
                Deleted::NotFound => Err(not_found(key)),
            }
        }
        // What they say is in `me` and in the map, so they ask over memcached's protocol.
        Action::Stat { key, output } => {
            about::stat(&mut Client::new(&[source], config), key, *output, args.timeout).await
        }
        Action::Scan { prefix, output } => {
            let way = Way::find(source, config).await.map_err(exit_of)?;
            scan::run(&way, prefix, *output).await.map_err(exit_of)
        }
        Action::Locate { key, output } => {
            let mut way = Way::find(source, config).await.map_err(exit_of)?;
            about::locate(&mut way, key, *output, args.timeout).await
        }
    }
}

async fn get(way: &mut Way, key: &str) -> Result<(), Exit> {
    let Some(value) = way.get(key.as_bytes()).await.map_err(exit_of)? else { return Err(not_found(key)) };
    let mut out = std::io::stdout().lock();
    // For eyes. A file gets the value, and not a byte more.
    let end: &[u8] = if out.is_terminal() { b"\n" } else { b"" };
    match out.write_all(&value).and_then(|()| out.write_all(end)).and_then(|()| out.flush()) {
        // Whoever read it has had enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Exit::Usage(format!("the value of {key} cannot be written to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn read_value(value: &str) -> Result<Vec<u8>, Exit> {
    if value != "-" {
        return Ok(value.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(Exit::usage)?;
    Ok(bytes)
}

/// memcached takes up to thirty days as relative and anything above as an absolute time.
fn seconds(ttl: Option<Duration>) -> Result<u32, Exit> {
    const RELATIVE_UP_TO: u64 = 30 * 24 * 3600;
    match ttl.map(|ttl| ttl.as_secs()) {
        None => Ok(0),
        Some(0) => Err(Exit::usage("--ttl is at least 1s")),
        Some(seconds) if seconds > RELATIVE_UP_TO => Err(Exit::usage("--ttl is at most 30days")),
        Some(seconds) => u32::try_from(seconds).map_err(Exit::usage),
    }
}

fn not_found(key: &str) -> Exit {
    Exit::Usage(format!("'{key}' is not there"))
}

fn exit_of(error: ClientError) -> Exit {
    match error {
        ClientError::Request(_) => Exit::usage(error),
        ClientError::Server { code, words } => refused(code, &words),
        ClientError::Map(error) => without_map(&error),
        other => Exit::Unreachable(format!("{other}: see `gestalt status`")),
    }
}

fn refused(code: Option<FailureCode>, words: &str) -> Exit {
    match code {
        Some(FailureCode::TooLarge) => Exit::Usage(format!(
            "the server refused: {words}: key and value have {MAX_PAYLOAD_BYTES} bytes at most where the namespace cuts no values \
             into chunks (`gestalt namespace list`), else as many as the nodes' --max-value"
        )),
        Some(FailureCode::NotANumber) => Exit::Usage(format!("the server refused: {words}")),
        Some(FailureCode::OutOfMemory) => {
            Exit::Usage(format!("the server refused: {words}: {WAY_OUT_OF_FULL}"))
        }
        _ => Exit::AtRisk(format!("the server refused: {words}: see `gestalt status`")),
    }
}

/// What helps where memory is full and nothing may be evicted.
const WAY_OUT_OF_FULL: &str = "delete something, add nodes with `gestalt serve --join`, or start the nodes with more --memory or with --evict clock";

/// What helps where there is memory, but not for all the long values that are on their way.
const WAY_OUT_OF_CROWD: &str =
    "too many long values are being written, or another node is full: try again, and see `gestalt status`";

/// That there is no room for `key`, and what the limit is.
async fn full(client: &mut Client, key: &str) -> Exit {
    let limit = match client.locate(key.as_bytes()).await {
        Ok(Location { primary: Some(host), http: Some(http), .. }) => memory_of(host.node, http).await,
        _ => None,
    };
    let (limit, is_full) = limit.unwrap_or_else(|| ("the nodes' --memory is used up".to_owned(), true));
    let way_out = if is_full { WAY_OUT_OF_FULL } else { WAY_OUT_OF_CROWD };
    Exit::Usage(format!("the server refused: out of memory storing object: {limit}: {way_out}"))
}

/// What a node has of memory, in words, and whether that is all.
async fn memory_of(node: NodeId, http: SocketAddr) -> Option<(String, bool)> {
    let memory = client::fetch_json::<NodeStatus>(http, "/status", ATTEMPT).await.ok()?.memory;
    let (used, limit) = (Size(memory.used_bytes), Size(memory.limit_bytes));
    let is_full = used.0 >= limit.0 / 10 * 8;
    Some((format!("node {}, which serves the key, uses {used} of {limit} (--memory)", node.0), is_full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_ends_with_the_code_of_what_it_means() {
        let exit = |code| refused(code, "words");
        let names = |code, limit: &str| matches!(exit(Some(code)), Exit::Usage(text) if text.contains(limit));
        assert!(names(FailureCode::TooLarge, &MAX_PAYLOAD_BYTES.to_string()));
        assert!(names(FailureCode::OutOfMemory, "--memory"));
        assert!(matches!(exit(Some(FailureCode::Lost)), Exit::AtRisk(_)));
        assert!(matches!(exit(None), Exit::AtRisk(_)));
    }
}
