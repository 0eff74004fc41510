//! The committed counts: a JSON document with one line a path, which is written and read here without a library.

use std::fmt::Write as _;
use std::path::PathBuf;

/// Where they are, in the repository.
const FILE: &str = "docs/benchmarks/counts.json";

/// Counts, and what they depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The compiler.
    pub rustc: String,
    /// What valgrind's processor can do, and the codec's kernel.
    pub processor: String,
    /// By name.
    pub counts: Vec<Count>,
}

/// What one operation of a path takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    pub path: String,
    pub instructions: f64,
}

impl Baseline {
    /// The committed one; none if there is none.
    pub fn load() -> Result<Option<Self>, String> {
        match std::fs::read_to_string(file()) {
            Ok(text) => Self::parse(&text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{FILE}: {error}")),
        }
    }

    /// Makes this the one to commit.
    pub fn save(&self) -> Result<(), String> {
        println!("saved as {FILE}");
        std::fs::write(file(), self.text()).map_err(|error| format!("{FILE}: {error}"))
    }

    fn text(&self) -> String {
        let mut counts: Vec<&Count> = self.counts.iter().collect();
        counts.sort_by(|a, b| a.path.cmp(&b.path));
        let line = |count: &&Count| format!("    \"{}\": {}", count.path, as_written(count.instructions));
        let lines: Vec<String> = counts.iter().map(line).collect();
        let Self { rustc, processor, .. } = self;
        let head = format!("  \"rustc\": \"{rustc}\",\n  \"processor\": \"{processor}\",\n");
        format!("{{\n{head}  \"instructions\": {{\n{}\n  }}\n}}\n", lines.join(",\n"))
    }

    /// The inverse of `text`; a line that is none of its lines is an error.
    fn parse(text: &str) -> Result<Self, String> {
        let mut baseline = Self { rustc: String::new(), processor: String::new(), counts: Vec::new() };
        for line in text.lines().map(|line| line.trim().trim_end_matches(',')) {
            if matches!(line, "" | "{" | "}" | "\"instructions\": {") {
                continue;
            }
            let unreadable = || format!("{FILE}: not as `--save` writes it: {line}");
            let (name, value) = line.split_once(": ").ok_or_else(unreadable)?;
            let (name, value) = (name.trim_matches('"'), value.trim_matches('"'));
            match name {
                "rustc" => baseline.rustc = value.to_owned(),
                "processor" => baseline.processor = value.to_owned(),
                path => baseline.counts.push(Count {
                    path: path.to_owned(),
                    instructions: value.parse().map_err(|_| unreadable())?,
                }),
            }
        }
        Ok(baseline)
    }

    fn count_of(&self, path: &str) -> Option<f64> {
        self.counts.iter().find(|count| count.path == path).map(|count| count.instructions)
    }

    /// A table of these counts and those `before`.
    pub fn beside(&self, before: Option<&Self>) -> String {
        let mut table = format!("{:<20} {:>12} {:>12} {:>9}\n", "path", "instructions", "baseline", "change");
        for Count { path, instructions } in &self.counts {
            let known = before.and_then(|before| before.count_of(path));
            let old = known.map_or_else(|| "-".to_owned(), as_written);
            let change =
                known.map_or_else(String::new, |old| format!("{:+.2} %", change(old, *instructions)));
            let _ = writeln!(table, "{path:<20} {instructions:>12.1} {old:>12} {change:>9}");
        }
        for (what, now, before) in [
            ("rustc", &self.rustc, before.map(|before| &before.rustc)),
            ("processor", &self.processor, before.map(|before| &before.processor)),
        ] {
            if let Some(before) = before.filter(|before| *before != now) {
                let _ = writeln!(table, "another {what}: {now}; the baseline is of {before}");
            }
        }
        table
    }
}

/// Per cent, of counts as they are written: those that are written alike are alike.
fn change(old: f64, new: f64) -> f64 {
    let new = as_written(new).parse().unwrap_or(new);
    (new / old - 1.0) * 100.0
}

fn as_written(instructions: f64) -> String {
    format!("{instructions:.1}")
}

fn file() -> PathBuf {
    crate::run::root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(counts: &[(&str, f64)]) -> Baseline {
        let count = |(path, instructions): &(&str, f64)| Count {
            path: (*path).to_owned(),
            instructions: *instructions,
        };
        Baseline {
            rustc: "rustc 1".to_owned(),
            processor: "avx2".to_owned(),
            counts: counts.iter().map(count).collect(),
        }
    }

    #[test]
    fn what_is_saved_is_read_again() {
        let saved = baseline(&[("a-1", 17.5), ("b", 2.0)]);
        assert_eq!(Baseline::parse(&saved.text()), Ok(saved));
    }

    #[test]
    fn a_damaged_baseline_is_named_and_not_guessed_at() {
        for line in ["\"a\": many", "what is this"] {
            let error = Baseline::parse(&format!("{{\n{line}\n}}\n")).unwrap_err();
            assert!(error.contains(line.split('"').next_back().unwrap_or_default()), "{error}");
        }
    }

    #[test]
    fn changes_and_new_paths_are_shown() {
        let table = baseline(&[("a", 110.0), ("b", 5.0), ("c", 7.25)])
            .beside(Some(&baseline(&[("a", 100.0), ("c", 7.2)])));
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].ends_with("+10.00 %") && lines[2].trim_end().ends_with('-'), "{table}");
        assert!(lines[3].ends_with("+0.00 %") && lines.len() == 4, "{table}");
    }
}
