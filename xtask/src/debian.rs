//! What steps need of Debian: installed if it is not there.

use std::path::Path;

use crate::run::Run;

/// A file that a package brings: a program on the PATH, or an absolute path.
pub struct Needed {
    pub file: &'static str,
    pub package: &'static str,
}

/// One installs at a time: steps run beside each other, and apt does not wait for its own locks. The end-to-end tests have the same.
const APT_LOCK: &str = "/tmp/gestalt-apt.lock";

/// That all files are there; installs the packages of those that are not.
///
/// # Errors
/// Says what is missing and how to install it.
pub fn ensure(needed: &[Needed]) -> Result<(), String> {
    let packages = missing(needed);
    if packages.is_empty() {
        return Ok(());
    }
    println!("installing Debian's {}", packages.join(", "));
    let _ = Run::new("flock", &[APT_LOCK, "apt-get", "update", "-qq"]).show();
    let install = [APT_LOCK, "apt-get", "install", "-y", "-qq", "--no-install-recommends"];
    let installed = Run::new("flock", &[&install[..], &packages].concat())
        .env("DEBIAN_FRONTEND", "noninteractive")
        .show();
    let packages = missing(needed);
    if packages.is_empty() {
        return Ok(());
    }
    let reason = installed.err().map_or_else(String::new, |reason| format!(" ({reason})"));
    Err(format!("this step needs {0}: `apt-get install {0}` as root{reason}", packages.join(" ")))
}

fn missing(needed: &[Needed]) -> Vec<&'static str> {
    needed.iter().filter(|needed| !is_there(needed.file)).map(|needed| needed.package).collect()
}

fn is_there(file: &str) -> bool {
    let path = Path::new(file);
    if path.is_absolute() {
        return path.exists();
    }
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|dir| dir.join(file).is_file())
}
