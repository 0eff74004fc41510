//! Counts lines and words of a stored text, and the lines with a word in them, in two ways: one client that fetches all of it, and a process
//! beside each node that has bytes of it, which reads those through that node and sends back four numbers.
//!
//! ```text
//! gestalt namespace set default --striped-above always --chunk 16MiB --layout wide
//! gestalt kv set text --file words.txt
//! cargo run --release -p gestalt --example beside -- gestalt://127.0.0.1:11311 text WORD
//! ```
//!
//! Here all processes are started on one machine. Where nodes are machines, `beside --task NODE URI KEY WORD` is what runs on each.

// How long it takes is what it is for.
#![allow(clippy::disallowed_methods)]

mod count;

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use count::Counts;
use gestalt::{Client, NodeId, Options};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match args[..] {
        ["--task", node, uri, key, word] => {
            let counts = runtime.block_on(task(NodeId(node.parse()?), uri, key, word))?;
            println!("{counts}");
            Ok(())
        }
        [uri, key, word] => runtime.block_on(both(uri, key, word)),
        _ => Err("usage: beside URI KEY WORD, or beside --task NODE URI KEY WORD".into()),
    }
}

/// What one process beside a node does.
async fn task(node: NodeId, uri: &str, key: &str, word: &str) -> Result<Counts> {
    let mut options: Options = uri.parse()?;
    // Where the node is the map says.
    let client = Client::with(&options).await?;
    options.beside = client.nodes().get(&node).copied();
    let client = Client::with(&options).await?;
    count::beside(&client, key, word.as_bytes(), node).await.map_err(|failure| failure.to_string().into())
}

async fn both(uri: &str, key: &str, word: &str) -> Result<()> {
    let client = Client::connect(uri).await?;
    let begun = Instant::now();
    let fetched =
        count::fetched(&client, key, word.as_bytes()).await.map_err(|failure| failure.to_string())?;
    show("fetched by one", fetched, begun);

    let begun = Instant::now();
    let nodes = count::nodes(&client, key).await.map_err(|failure| failure.to_string())?;
    let tasks: Vec<Child> = nodes.iter().map(|node| start(*node, uri, key, word)).collect::<Result<_>>()?;
    let mut beside = Counts::default();
    for task in tasks {
        let output = task.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("a task has failed: {}", output.status).into());
        }
        beside = beside.plus(String::from_utf8(output.stdout)?.parse()?);
    }
    show(&format!("beside {} nodes", nodes.len()), beside, begun);
    if fetched.found() == beside.found() { Ok(()) } else { Err("the two have found something else".into()) }
}

fn start(node: NodeId, uri: &str, key: &str, word: &str) -> Result<Child> {
    let NodeId(number) = node;
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.args(["--task", &number.to_string(), uri, key, word]).stdout(Stdio::piped());
    Ok(command.spawn()?)
}

fn show(way: &str, counts: Counts, begun: Instant) {
    let Counts { lines, words, matches, bytes } = counts;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    println!("{way}: {lines} lines, {words} words, {matches} lines match; {bytes} bytes read, {ms:.0} ms");
}
