//! What cargo has built for a test. A step that runs some of it by itself can name the whole workspace when it builds, so
//! that nothing is compiled twice with other features: cargo unites the features of what is named.

use std::path::{Path, PathBuf};

use crate::run::Run;

/// The programs of one build.
pub struct Built(Vec<PathBuf>);

impl Built {
    /// By `cargo test --no-run` with `args`.
    pub fn by(args: &[&str]) -> Result<Self, String> {
        let build = ["test", "--quiet", "--no-run", "--message-format=json-render-diagnostics"];
        let said = Run::cargo(&[&build[..], args].concat()).compiles()?;
        Ok(Self(said.lines().filter_map(executable).map(PathBuf::from).collect()))
    }

    /// The binary `name`.
    pub fn binary(&self, name: &str) -> Result<&str, String> {
        self.find(name, |file| file == name)
    }

    /// The tests of the library or the integration test `name`.
    pub fn test(&self, name: &str) -> Result<&str, String> {
        self.find(name, |file| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')))
    }

    fn find(&self, name: &str, is: impl Fn(&str) -> bool) -> Result<&str, String> {
        let file = |path: &Path| path.file_name().and_then(|file| file.to_str()).is_some_and(&is);
        let found = self.0.iter().find(|path| file(path)).and_then(|path| path.to_str());
        found.ok_or_else(|| format!("cargo has not built {name}"))
    }
}

/// The program that a line of cargo's JSON is about.
fn executable(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(r#""executable":""#)?;
    rest.split_once('"').map(|(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_from_what_is_none() {
        assert_eq!(
            executable(r#"{"reason":"a","executable":"/t/debug/deps/x-1","fresh":true}"#),
            Some("/t/debug/deps/x-1")
        );
        assert_eq!(executable(r#"{"reason":"a","executable":null,"fresh":true}"#), None);
    }

    #[test]
    fn a_binary_and_a_test_of_one_name_are_told_apart() {
        let built =
            Built(vec!["/t/sim/deps/sim-0a".into(), "/t/sim/sim".into(), "/t/sim/deps/sim_x-0b".into()]);
        assert_eq!(built.binary("sim"), Ok("/t/sim/sim"));
        assert_eq!(built.test("sim"), Ok("/t/sim/deps/sim-0a"));
        assert!(built.test("si").is_err());
    }
}
