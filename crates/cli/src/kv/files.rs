//! Values from files and into files, piece by piece: as long as nodes take.

use std::fs::Permissions;
use std::io::{Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use client::{ClientError, Transferred};
use tempfile::NamedTempFile;
use tokio::fs::File;

use super::way::{About, Way};
use super::{exit_of, not_found};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::units::Size;

/// Writes what is in `file`.
///
/// # Errors
/// `Usage` for a file that cannot be read; within, what the client says.
pub(super) async fn set(
    way: &mut Way,
    key: &str,
    file: &Path,
    about: About,
) -> Result<Result<(), ClientError>, Exit> {
    if is_standard(file) {
        // How long it is must be said first.
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(Exit::usage)?;
        let len = bytes.len() as u64;
        let mut bar = Bar::of(key, len);
        let mut source = Cursor::new(bytes);
        let mut show = |done| bar.show(done);
        return Ok(way.set_from(key.as_bytes(), (&mut source, len), about, &mut show).await);
    }
    let mut source = File::open(file).await.map_err(|error| unreadable(file, &error))?;
    let known = source.metadata().await.map_err(|error| unreadable(file, &error))?;
    if !known.is_file() {
        return Err(Exit::usage(format_args!("{} is no file", file.display())));
    }
    let len = known.len();
    let mut bar = Bar::of(key, len);
    let mut show = |done| bar.show(done);
    match way.set_from(key.as_bytes(), (&mut source, len), about, &mut show).await {
        // Sockets are the client's to explain.
        Err(ClientError::Io(error)) => Err(unreadable(file, &error)),
        done => Ok(done),
    }
}

/// Writes the value of `key` to `file`, which appears, or changes, when all of it is there. What is no regular file is written to as
/// it comes.
///
/// # Errors
/// `Usage` for a key that is not there or a file that cannot be written; what the client says.
pub(super) async fn get(way: &mut Way, key: &str, file: &Path) -> Result<(), Exit> {
    let mut bar = Bar::of(key, 0);
    let mut progress = |done, all| {
        bar.all = all;
        bar.show(done);
    };
    if is_standard(file) {
        let found = way.get_into(key.as_bytes(), &mut tokio::io::stdout(), &mut progress).await;
        return present(key, file, found).map(drop);
    }
    let failed = |error: std::io::Error| unwritable(file, &error);
    // Of a link what it leads to.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let old = target.metadata().ok();
    if old.as_ref().is_some_and(|about| !about.is_file()) {
        let mut sink = File::options().write(true).open(&target).await.map_err(failed)?;
        let found = way.get_into(key.as_bytes(), &mut sink, &mut progress).await;
        return present(key, file, found).map(drop);
    }
    let unfinished = beside(&target, old.map(|about| about.permissions())).map_err(failed)?;
    let mut sink = File::from_std(unfinished.reopen().map_err(failed)?);
    let found = way.get_into(key.as_bytes(), &mut sink, &mut progress).await;
    present(key, file, found)?;
    sink.sync_all().await.map_err(failed)?;
    unfinished.persist(&target).map(drop).map_err(|error| failed(error.error))
}

/// Where a value is until it is whole: beside the file, so that it can take its name. It goes by itself if it does not.
fn beside(file: &Path, permissions: Option<Permissions>) -> std::io::Result<NamedTempFile> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let usual = Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(".gestalt-")
        .suffix(".part")
        .permissions(permissions.unwrap_or(usual))
        .tempfile_in(dir)
}

fn present(
    key: &str,
    file: &Path,
    found: Result<Option<Transferred>, ClientError>,
) -> Result<Transferred, Exit> {
    match found {
        Ok(found) => found.ok_or_else(|| not_found(key)),
        // Sockets are the client's to explain.
        Err(ClientError::Io(error)) => Err(unwritable(file, &error)),
        Err(error) => Err(exit_of(error)),
    }
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn unreadable(file: &Path, error: &std::io::Error) -> Exit {
    Exit::usage(format_args!("cannot read {}: {error}", file.display()))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Exit {
    Exit::usage(format_args!("cannot write {}: {error}", file.display()))
}

/// How far a value has come.
struct Bar {
    progress: Progress,
    begun: Instant,
    key: String,
    all: u64,
}

impl Bar {
    #[allow(clippy::disallowed_methods, reason = "for people's eyes")]
    fn of(key: &str, all: u64) -> Self {
        Self { progress: Progress::start(), begun: Instant::now(), key: key.to_owned(), all }
    }

    fn show(&mut self, done: u64) {
        let (all, seconds) = (self.all, self.begun.elapsed().as_secs_f64());
        self.progress.show(|| text(&self.key, done, all, seconds));
    }
}

/// `backup [#####     ] 512MiB of 1GiB, 300.0 MB/s, 2 s left`
fn text(key: &str, done: u64, all: u64, seconds: f64) -> String {
    const WIDTH: u64 = 20;
    let full = (done * WIDTH).checked_div(all).unwrap_or(WIDTH).min(WIDTH) as usize;
    let rate = done as f64 / seconds.max(1e-3);
    let left = all.saturating_sub(done) as f64 / rate.max(1.0);
    format!(
        "{key} [{:<width$}] {} of {}, {:.1} MB/s, {left:.0} s left",
        "#".repeat(full),
        Size(done),
        Size(all),
        rate / 1e6,
        width = WIDTH as usize
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_much_of_how_much_how_fast_and_how_long() {
        let half = text("k", 512 << 20, 1 << 30, 2.0);
        assert_eq!(half, "k [##########          ] 512MiB of 1GiB, 268.4 MB/s, 2 s left");
        assert!(text("k", 0, 0, 0.0).contains("[####################]"));
    }

    #[test]
    fn an_unfinished_file_lies_beside_the_one_that_it_becomes_and_goes_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let unfinished = beside(&dir.path().join("value"), None).unwrap();
        let path = unfinished.path().to_owned();
        assert_eq!((path.parent(), path.exists()), (Some(dir.path()), true));
        drop(unfinished);
        assert!(!path.exists());
        let own = beside(&dir.path().join("value"), Some(Permissions::from_mode(0o600))).unwrap();
        assert_eq!(own.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
