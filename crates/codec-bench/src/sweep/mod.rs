//! Whole figures, as papers have them: what to measure, and where the results go.
//!
//! | sweep | after | shows |
//! | --- | --- | --- |
//! | `gest` | Gest, section V.D and figure 12 | rate by number of parities at a storage efficiency of 33 % and 75 %; by block size |
//! | `uab` | the Gibraltar plugin for Ceph, figures 2 and 3 | 10+2, 10+3, 10+4 with 1 MiB objects: encode, and 1 to 4 erasures |
//! | `inec` | INEC, figures 6 to 8 | rate by chunk size for (3,2), (6,3), (12,4) |
//! | `card` | the first two, on a card | rate by chunk size for six codes, many stripes at a time, and by number of parities |

mod figures;
mod plot;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use codec::{Code, Family, Scheme};
use serde::Serialize;

use crate::{BenchError, Case, Effort, Job, Machine, Sides, measure};

pub use figures::Density;

/// A set of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Gest's coding rates.
    Gest,
    /// The UAB plugin's.
    Uab,
    /// INEC's chunk sizes.
    Inec,
    /// For cards: so many stripes in one call that they come from memory.
    Card,
}

impl Sweep {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gest, Self::Uab, Self::Inec, Self::Card];

    /// As users write it, and what files begin with.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gest => "gest",
            Self::Uab => "uab",
            Self::Inec => "inec",
            Self::Card => "card",
        }
    }
}

/// One figure: a rate by something.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    /// What its files are called, after the sweep.
    pub name: String,
    /// Above the plot.
    pub title: String,
    /// Below it.
    pub x_label: &'static str,
    /// What was measured, by x.
    pub points: Vec<Point>,
}

impl Panel {
    /// Its results alone.
    pub fn cases(self) -> impl Iterator<Item = Case> {
        self.points.into_iter().map(|point| point.case)
    }
}

/// All sides' rates at one x.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// What was found.
    pub case: Case,
}

/// What files hold.
#[derive(Serialize)]
struct Written<'a> {
    command: &'a str,
    machine: Machine,
    panel: &'a Panel,
}

/// Measures all points of `sweep`. Families of `sides` are set by the sweep. `progress` hears how many points of how many are done,
/// `done` each figure as soon as it is there: the next one may take long, and may be broken off.
///
/// # Errors
/// As [`measure`]; those of `done`.
pub fn run(
    sweep: Sweep,
    density: Density,
    sides: &Sides,
    effort: Effort,
    progress: &mut dyn FnMut(usize, usize),
    done: &mut dyn FnMut(Panel) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let outlines = figures::of(sweep, density);
    let all = outlines.iter().map(|outline| outline.jobs.len()).sum();
    let mut measured = 0;
    for outline in outlines {
        let mut points = Vec::new();
        for (x, job) in outline.jobs {
            let sides = Sides { families: families(sweep, &job), ..sides.clone() };
            points.push(Point { x, case: measure(&job, &sides, effort)? });
            measured += 1;
            progress(measured, all);
        }
        done(Panel { name: outline.name, title: outline.title, x_label: outline.x_label, points })?;
    }
    Ok(())
}

/// Both of our families, where the field is large enough; the code's own for cards.
fn families(sweep: Sweep, job: &Job) -> Vec<Family> {
    // To a card all matrices are alike.
    if sweep == Sweep::Card {
        return Vec::new();
    }
    let Scheme::Rs { k, m, .. } = job.scheme else { return Vec::new() };
    let exists = |family: &Family| Code::of(Scheme::Rs { family: *family, k, m }).is_ok();
    [Family::CauchyXor, Family::Lch].into_iter().filter(exists).collect()
}

/// Makes `dir` unless it is there: before anything is measured, so that nothing is measured in vain.
///
/// # Errors
/// `Io`.
pub fn make_dir(dir: &Path) -> Result<(), BenchError> {
    fs::create_dir_all(dir).map_err(|error| failed(dir, &error))
}

fn failed(path: &Path, error: &dyn Display) -> BenchError {
    BenchError::Io(format!("cannot write {}: {error}", path.display()))
}

/// Writes a JSON document and a plot into `dir`, with the command that made them: the files.
///
/// # Errors
/// `Io`.
pub fn write(sweep: Sweep, panel: &Panel, dir: &Path, command: &str) -> Result<[PathBuf; 2], BenchError> {
    make_dir(dir)?;
    let base = format!("codec-{}-{}", sweep.name(), panel.name);
    let written = Written { command, machine: Machine::here(), panel };
    let mut json = serde_json::to_string_pretty(&written).expect("plain data with string keys");
    json.push('\n');
    let svg = plot::svg(panel, command)
        .map_err(|reason| BenchError::Io(format!("cannot draw {base}: {reason}")))?;
    let file = |extension: &str, text: String| -> Result<PathBuf, BenchError> {
        let path = dir.join(format!("{base}.{extension}"));
        fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        Ok(path)
    };
    Ok([file("json", json)?, file("svg", svg)?])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sweep_ends_in_json_and_plots_with_the_command() {
        let effort = Effort { rounds: 1, turn: Duration::from_micros(20) };
        let mut progress = |done: usize, all: usize| assert!(done <= all);
        let dir = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        let mut done = |panel| {
            files.extend(write(Sweep::Uab, &panel, dir.path(), "gestalt codec bench --sweep uab")?);
            Ok(())
        };
        run(Sweep::Uab, Density::Quick, &Sides::default(), effort, &mut progress, &mut done).unwrap();
        assert_eq!(files.len(), 8);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains("gestalt codec bench --sweep uab"), "{}", file.display());
            match file.extension().and_then(|e| e.to_str()) {
                Some("json") => assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok()),
                _ => assert!(text.starts_with("<svg") && text.contains("gestalt rs ")),
            }
        }
    }

    #[test]
    fn a_directory_that_cannot_be_is_one_line() {
        let error = make_dir(Path::new("/dev/null/figures")).unwrap_err();
        assert!(error.to_string().contains("/dev/null/figures"));
    }
}
