//! `cargo xtask bench counts`: how many instructions the hot paths take, beside the committed baseline.
//!
//! Instructions are counted by callgrind, so a busy machine changes nothing. A path is run twice, so and so often and
//! more often; the difference, divided by how much more often, is what one operation takes. Nothing is judged: counts
//! that have grown are printed.

mod baseline;

use std::path::{Path, PathBuf};
use std::thread;

use crate::debian::{self, Needed};
use crate::run::Run;
use baseline::{Baseline, Count};

/// How often a path is run; multiples of the program's batches.
const TIMES: [u32; 2] = [320, 1600];
/// The program's function whose instructions count, with what it calls.
const COUNTED: &str = "hot_paths::path::counted*";
/// Where callgrind's own reports go, below cargo's directory.
const REPORTS: &str = "counts";

/// Builds the program, counts all paths or those that `args` name, prints a table; `--save` makes it the baseline.
///
/// # Errors
/// A tool is missing, or the program does not build or run. Not if counts have grown.
pub fn run(args: &[&str]) -> Result<(), String> {
    let (options, names): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with('-'));
    if let Some(unknown) = options.iter().find(|option| **option != "--save") {
        return Err(format!("bench counts knows --save and names of paths, not '{unknown}'"));
    }
    let save = !options.is_empty();
    if save && !names.is_empty() {
        return Err("--save saves all paths: leave the names out".to_owned());
    }
    debian::ensure(&[Needed { file: "valgrind", package: "valgrind" }])?;
    let program = build()?;
    let paths = choose(&program.list()?, &names)?;
    let before = Baseline::load()?;
    let now = Baseline {
        rustc: Run::new("rustc", &["--version"]).read()?.trim().to_owned(),
        processor: program.processor()?,
        counts: program.count(&paths)?,
    };
    print!("{}", now.beside(before.as_ref()));
    println!("where they go: callgrind_annotate {}/PATH", program.reports().display());
    if save { now.save() } else { Ok(()) }
}

/// All paths, or the named ones.
fn choose(all: &[String], names: &[&str]) -> Result<Vec<String>, String> {
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|path| path != **name)) {
        return Err(format!("no path is called '{unknown}': there are {}", all.join(", ")));
    }
    Ok(all.iter().filter(|path| names.is_empty() || names.contains(&path.as_str())).cloned().collect())
}

/// The program that runs the paths.
struct Program {
    /// The directory where it is.
    dir: PathBuf,
}

fn build() -> Result<Program, String> {
    Run::cargo(&["build", "--release", "--quiet", "-p", "hot-paths"]).show()?;
    // This program was built into the same directory, for debugging.
    let this = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let target = this.ancestors().nth(2).ok_or("this program is in no directory of cargo's")?;
    Ok(Program { dir: target.join("release") })
}

impl Program {
    fn list(&self) -> Result<Vec<String>, String> {
        let list = Run::new(&self.dir.join("hot_paths").to_string_lossy(), &["--list"]).read()?;
        Ok(list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
    }

    /// What the processor can do as valgrind shows it, and the codec's kernel for that.
    fn processor(&self) -> Result<String, String> {
        let text = self.run(&["--tool=none", "-q"], &["--processor"])?;
        Ok(text.trim().to_owned())
    }

    fn reports(&self) -> PathBuf {
        self.dir.with_file_name(REPORTS)
    }

    fn count(&self, paths: &[String]) -> Result<Vec<Count>, String> {
        std::fs::create_dir_all(self.reports()).map_err(|error| format!("{REPORTS}: {error}"))?;
        paths.iter().map(|path| self.count_path(path)).collect()
    }

    fn count_path(&self, path: &str) -> Result<Count, String> {
        let report = |times: u32| {
            self.reports().join(if times == TIMES[1] { path.to_owned() } else { format!("{path}-less") })
        };
        let [less, more] = thread::scope(|scope| {
            TIMES
                .map(|times| (report(times), times))
                .map(|(report, times)| scope.spawn(move || self.collect(path, times, &report)))
                .map(|run| run.join().unwrap_or_else(|_| Err("a thread has panicked".to_owned())))
        });
        let _ = std::fs::remove_file(report(TIMES[0]));
        let instructions = more?.saturating_sub(less?) as f64 / f64::from(TIMES[1] - TIMES[0]);
        Ok(Count { path: path.to_owned(), instructions })
    }

    /// Instructions of so many operations.
    fn collect(&self, path: &str, times: u32, report: &Path) -> Result<u64, String> {
        let toggle = format!("--toggle-collect={COUNTED}");
        let out = format!("--callgrind-out-file={}", report.display());
        self.run(&["--tool=callgrind", "-q", &toggle, &out], &[path, "--times", &times.to_string()])?;
        let text =
            std::fs::read_to_string(report).map_err(|error| format!("{}: {error}", report.display()))?;
        let sum = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
        sum.filter(|sum| *sum > 0).ok_or_else(|| format!("{}: nothing was collected", report.display()))
    }

    /// Runs the program under valgrind. Without an environment and from its own directory: neither may shift its stack.
    fn run(&self, valgrind: &[&str], args: &[&str]) -> Result<String, String> {
        Run::new("valgrind", &[valgrind, &["./hot_paths"], args].concat())
            .within(&self.dir)
            .without_environment()
            .read()
    }
}
