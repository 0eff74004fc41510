//! Others' programs that tests compare with or are judged by. They install themselves, print what they run, and never
//! skip silently: what cannot be installed fails with the reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory where others' programs are kept between runs: `target/others`.
///
/// # Errors
/// One line if it cannot be made.
pub fn others_dir() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = own.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    let dir = target.ok_or("this program is not in a target directory")?.join("others");
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

/// That `program` can be run; installs Debian's `package` if it cannot.
///
/// # Errors
/// One line if it cannot be installed.
pub fn ensure_program(program: &str, package: &str) -> Result<(), String> {
    if is_on_path(program) {
        return Ok(());
    }
    println!("{program} is not here: installing Debian's {package}");
    install(package)?;
    if is_on_path(program) {
        Ok(())
    } else {
        Err(format!("{package} is installed, but there is no {program}"))
    }
}

/// That `file` is there; installs Debian's `package` if it is not.
///
/// # Errors
/// One line if it cannot be installed.
pub fn ensure_package(file: &Path, package: &str) -> Result<(), String> {
    if file.exists() {
        return Ok(());
    }
    println!("{} is not here: installing Debian's {package}", file.display());
    install(package)
}

/// One installs at a time, also of those that `cargo xtask test` runs beside these.
const APT_LOCK: &str = "/tmp/gestalt-apt.lock";

fn install(package: &str) -> Result<(), String> {
    let _ = show(Command::new("flock").args([APT_LOCK, "apt-get", "update", "-qq"]));
    let install = [APT_LOCK, "apt-get", "install", "-y", "-qq", "--no-install-recommends", package];
    show(Command::new("flock").env("DEBIAN_FRONTEND", "noninteractive").args(install))
}

fn is_on_path(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// A Python with these packages (`name==version`), in a virtual environment of its own.
///
/// # Errors
/// One line if it cannot be made.
pub fn python_with(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let dir = others_dir()?.join(name);
    let python = dir.join("bin/python");
    let stamp = dir.join("packages");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == packages.join(" ")) {
        return Ok(python);
    }
    let _ = fs::remove_dir_all(&dir);
    show(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
    show(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(packages),
    )?;
    // Last: what was broken off has no stamp, and is made anew.
    fs::write(&stamp, packages.join(" ")).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

/// The unpacked source distribution of a package on PyPI, which may hold tests that a wheel leaves out.
///
/// # Errors
/// One line if it cannot be had.
pub fn python_source(python: &Path, name: &str, version: &str) -> Result<PathBuf, String> {
    let dir = others_dir()?;
    let unpacked = dir.join(format!("{name}-{version}"));
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    let package = format!("{name}=={version}");
    let options = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest"];
    show(Command::new(python).args(options).arg(&dir).arg(package))?;
    let archive = dir.join(format!("{name}-{version}.tar.gz"));
    show(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&dir))?;
    Ok(unpacked)
}

/// Runs a command with its output shown.
///
/// # Errors
/// One line if it cannot be run or fails.
pub fn show(command: &mut Command) -> Result<(), String> {
    println!("$ {}", spelt(command));
    let status =
        command.stdin(Stdio::null()).status().map_err(|error| format!("{}: {error}", spelt(command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", spelt(command))) }
}

/// Runs a command for its output, which is also shown.
///
/// # Errors
/// One line if it cannot be run or fails.
pub fn read(command: &mut Command) -> Result<String, String> {
    println!("$ {}", spelt(command));
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{}: {error}", spelt(command)))?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{}", text.trim_end());
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("`{}` failed: {}", spelt(command), output.status))
    }
}

/// Runs a command that reads the file `input`, for its output, which is not shown.
///
/// # Errors
/// One line if it cannot be run or fails, with what it complained about.
pub fn filter(command: &mut Command, input: &Path) -> Result<String, String> {
    let source = fs::File::open(input).map_err(|error| format!("{}: {error}", input.display()))?;
    println!("$ {} < {}", spelt(command), input.display());
    capture(command.stdin(source)).map(|(output, _)| output)
}

/// Runs a command for its standard output and standard error, which are not shown.
///
/// # Errors
/// One line if it cannot be run or fails, with what it complained about.
pub fn outputs(command: &mut Command) -> Result<(String, String), String> {
    println!("$ {}", spelt(command));
    capture(command.stdin(Stdio::null()))
}

fn capture(command: &mut Command) -> Result<(String, String), String> {
    let output = command.output().map_err(|error| format!("{}: {error}", spelt(command)))?;
    let [text, complaint] = [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
    if output.status.success() {
        return Ok((text, complaint));
    }
    Err(format!("`{}` failed: {}: {}", spelt(command), output.status, complaint.trim_end()))
}

fn spelt(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
