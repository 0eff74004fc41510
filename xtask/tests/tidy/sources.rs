//! The source files, parsed, without their tests.

use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item};

/// A file of a crate.
pub struct Source {
    /// Name of the crate.
    pub krate: String,
    /// From the repository's root.
    pub path: String,
    /// Modules from the crate's root: empty for `lib.rs` and for `main.rs`.
    pub module: Vec<String>,
    pub text: String,
    /// Without items that only tests have.
    pub items: Vec<Item>,
}

pub struct Sources(pub Vec<Source>);

impl Sources {
    /// All crates and `xtask`; no file that is only built for tests.
    pub fn product_and_tools() -> Self {
        let mut crates: Vec<PathBuf> = children(&root().join("crates"));
        crates.push(root().join("xtask"));
        let files = crates.iter().flat_map(|krate| {
            let name = krate.file_name().expect("a folder has a name").to_string_lossy().into_owned();
            files_under(&krate.join("src")).into_iter().map(move |file| (name.clone(), file))
        });
        let sources = files.filter(|(_, file)| is_product(file));
        Self(sources.map(|(krate, file)| Source::read(krate, &file)).collect())
    }

    /// By crates, in order.
    pub fn by_crate(&self) -> impl Iterator<Item = &[Source]> {
        self.0.chunk_by(|one, other| one.krate == other.krate)
    }
}

impl Source {
    fn read(krate: String, file: &Path) -> Self {
        let text = fs::read_to_string(file).expect("a source file can be read");
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let items = parsed.items.into_iter().filter(|item| !is_for_tests(attributes(item))).collect();
        let path = relative(file);
        let within = path.split_once("/src/").map_or("", |(_, within)| within).trim_end_matches(".rs");
        let mut module: Vec<String> = within.split('/').map(str::to_owned).collect();
        if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            module.pop();
        }
        Self { krate, path, module, text, items }
    }
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_owned()
}

/// As it is named from the repository's root.
pub fn relative(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).to_string_lossy().into_owned()
}

/// Files below `folder`, sorted, `target` and hidden ones left out.
pub fn files_under(folder: &Path) -> Vec<PathBuf> {
    let visible = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && name != "target"
    };
    children(folder)
        .into_iter()
        .filter(visible)
        .flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] })
        .collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths
}

/// Whether the file is built without tests.
fn is_product(file: &Path) -> bool {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let is_rust = file.extension().is_some_and(|extension| extension == "rs");
    is_rust && !name.ends_with("tests") && !file.iter().any(|part| part == "tests" || part == "benches")
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        _ => &[],
    }
}
