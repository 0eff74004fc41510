//! The client for Rust as crates.io would get it: the crate `gestalt` and those that it needs, under names of their own (`gestalt` and `types`
//! are somebody else's there), in a workspace of their own. Nothing is sent.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{Run, root};

/// Those that go together, and what the client is called there; the others are `gestalt-kv-NAME`. In code they keep their names.
const CRATES: &[&str] = &["scheme", "codec", "types", "native", "client-core", "gestalt"];
const CLIENT: (&str, &str) = ("gestalt", "gestalt-kv");
/// Where they are put together.
const OUT: &str = "target/publish";

/// `cargo xtask client rust`: packages all of them, builds each from its package, and says what would be sent.
pub fn rust() -> Result<(), String> {
    let out = root().join(OUT);
    let _ = fs::remove_dir_all(out.join("crates"));
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let manifest = workspace(&text(&root().join("Cargo.toml"))?)?;
    write(&out.join("Cargo.toml"), &manifest)?;
    for name in CRATES {
        let [from, to] = [root(), out.clone()].map(|at| at.join("crates").join(name));
        Run::new("mkdir", &["-p", &to.to_string_lossy()]).read()?;
        Run::new("cp", &["-r", &format!("{}/.", from.display()), &to.to_string_lossy()]).read()?;
        let path = to.join("Cargo.toml");
        write(&path, &renamed(name, &text(&path)?)?)?;
    }
    forget_unpacked()?;
    Run::cargo(&["publish", "--dry-run", "--allow-dirty", "--workspace"]).within(&out).show()
}

/// Cargo builds each package with those before it, as it has unpacked them under its home. It keeps them there for good, by their versions, and
/// would build with those of an earlier run.
fn forget_unpacked() -> Result<(), String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let Some(registries) = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()) else {
        return Ok(());
    };
    // A registry that is a folder has no name of its own.
    let nameless = registries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with('-'));
    for folder in nameless.filter_map(|entry| fs::read_dir(entry.path()).ok()).flat_map(Iterator::flatten) {
        if folder.file_name().to_string_lossy().starts_with(CLIENT.1) {
            fs::remove_dir_all(folder.path())
                .map_err(|error| format!("{}: {error}", folder.path().display()))?;
        }
    }
    Ok(())
}

/// What it is called there.
fn published(name: &str) -> String {
    if name == CLIENT.0 { CLIENT.1.to_owned() } else { format!("{}-{name}", CLIENT.1) }
}

/// The workspace's manifest with these crates alone, and without profiles.
fn workspace(manifest: &str) -> Result<String, String> {
    let (manifest, _) = manifest.split_once("\n[profile.").unwrap_or((manifest, ""));
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    let version = version.ok_or("the workspace has no version")?;
    let line = |line: &str| -> Option<String> {
        let Some((name, _)) = line.split_once(" = { path = ") else {
            return match line.split_once(" = ").map_or(line, |(key, _)| key) {
                "publish" => Some("publish = true".to_owned()),
                "members" => Some("members = [\"crates/*\"]".to_owned()),
                "default-members" => None,
                _ => Some(line.to_owned()),
            };
        };
        let package = published(name);
        CRATES.contains(&name).then(|| {
            format!("{name} = {{ path = \"crates/{name}\", package = \"{package}\", version = {version} }}")
        })
    };
    Ok(manifest.lines().filter_map(line).map(|line| line + "\n").collect())
}

/// A crate's manifest with its other name.
fn renamed(name: &str, manifest: &str) -> Result<String, String> {
    let before = format!("name = \"{name}\"\n");
    if !manifest.contains(&before) || manifest.contains("[lib]") || !manifest.contains("\ndescription = ") {
        return Err(format!("crates/{name}/Cargo.toml has no description, no name, or a [lib]"));
    }
    let after = format!("name = \"{}\"\n", published(name));
    let library = name.replace('-', "_");
    Ok(format!("{}\n[lib]\nname = \"{library}\"\n", manifest.replacen(&before, &after, 1)))
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_found_under_their_other_names() {
        let manifest = "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\ndefault-members = [\"crates/cli\"]\nversion = \"0.1.0\"\npublish = false\n\
                        types = { path = \"crates/types\" }\nproto = { path = \"crates/proto\" }\nbytes = \"1\"\n\n[profile.release]\nlto = \"fat\"\n";
        let expected = "[workspace]\nmembers = [\"crates/*\"]\nversion = \"0.1.0\"\npublish = true\n\
                        types = { path = \"crates/types\", package = \"gestalt-kv-types\", version = \"0.1.0\" }\nbytes = \"1\"\n";
        assert_eq!(workspace(manifest).as_deref(), Ok(expected));
        let of_core = "[package]\nname = \"client-core\"\ndescription = \"it\"\n";
        assert_eq!(
            renamed("client-core", of_core).as_deref(),
            Ok(
                "[package]\nname = \"gestalt-kv-client-core\"\ndescription = \"it\"\n\n[lib]\nname = \"client_core\"\n"
            )
        );
        assert!(renamed("types", "[package]\nname = \"types\"\n").is_err(), "nobody would know what it is");
    }
}
