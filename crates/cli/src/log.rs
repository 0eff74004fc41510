//! Where state transitions are logged. `GESTALT_LOG` chooses which: `debug`, `server=trace`, …

use std::fs::File;
use std::io::IsTerminal;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

fn filter() -> EnvFilter {
    EnvFilter::try_from_env("GESTALT_LOG").unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Logs to standard error, coloured on a terminal.
pub fn to_stderr() {
    let ansi = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log =
        tracing_subscriber::fmt().with_env_filter(filter()).with_writer(std::io::stderr).with_ansi(ansi);
    let _ = log.try_init();
}

/// Logs to a file.
pub fn to_file(file: File) {
    let log =
        tracing_subscriber::fmt().with_env_filter(filter()).with_writer(Mutex::new(file)).with_ansi(false);
    let _ = log.try_init();
}
