//! Which files of a crate import which, and the circles that they make.
//!
//! A file imports the one that defines what it names: a name that a module re-exports counts for the file that it comes from.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, ItemUse, Path, UseTree, Visibility};

use super::limits::CIRCLE_FILES;
use super::sources::{Source, Sources};

type Module = Vec<String>;

/// Circles of more files than there may be, with what they are made of.
pub fn large_circles(sources: &Sources) -> Vec<String> {
    sources.by_crate().flat_map(large_circles_of).collect()
}

fn large_circles_of(files: &[Source]) -> Vec<String> {
    let edges = Modules::of(files).edges();
    let circles = circles(&edges).into_iter().filter(|circle| circle.len() > CIRCLE_FILES);
    circles.map(|circle| describe(&files[0].krate, &circle, &edges)).collect()
}

fn describe(krate: &str, circle: &BTreeSet<&Module>, edges: &Edges) -> String {
    let mut lines = vec![format!("{krate}: {} files import each other", circle.len())];
    for from in circle {
        let to = edges.get(*from).into_iter().flatten().filter(|to| circle.contains(to));
        let names: Vec<String> = to.map(|to| to.join("::")).collect();
        lines.push(format!("    {} -> {}", from.join("::"), names.join(", ")));
    }
    lines.join("\n")
}

/// Who imports whom.
type Edges = BTreeMap<Module, BTreeSet<Module>>;

/// The modules of one crate.
struct Modules<'a> {
    files: BTreeMap<&'a [String], &'a Source>,
    /// What `use` binds in each: a name, and the path that it stands for.
    bound: BTreeMap<&'a [String], Vec<Bound>>,
}

struct Bound {
    name: String,
    path: Vec<String>,
    /// Whether others see it there.
    is_exported: bool,
}

impl<'a> Modules<'a> {
    fn of(files: &'a [Source]) -> Self {
        let bound = files.iter().map(|file| (&file.module[..], bound_in(file))).collect();
        Self { files: files.iter().map(|file| (&file.module[..], file)).collect(), bound }
    }

    fn edges(&self) -> Edges {
        self.files.values().map(|file| (file.module.clone(), self.imports_of(file))).collect()
    }

    fn imports_of(&self, file: &Source) -> BTreeSet<Module> {
        let mut paths = Paths::default();
        file.items.iter().for_each(|item| paths.visit_item(item));
        let bound = self.bound[&file.module[..]].iter().map(|bound| bound.path.clone());
        let named = bound.chain(paths.0).filter_map(|path| self.home(&file.module, &path, 0));
        named.filter(|home| *home != file.module).collect()
    }

    /// The file that defines what `path` names, seen from `module`; none if it is not of this crate.
    fn home(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        // A glob of a glob of itself would never end.
        if depth > 8 {
            return None;
        }
        let mut at = self.start(module, path)?;
        let skipped = path.iter().take_while(|part| is_keyword(part)).count();
        for (index, part) in path.iter().enumerate().skip(skipped) {
            let child = [&at[..], std::slice::from_ref(part)].concat();
            if self.files.contains_key(&child[..]) {
                at = child;
                continue;
            }
            let is_own = at == module;
            let exported = self.bound[&at[..]].iter().filter(|bound| bound.is_exported && !is_own);
            let Some(bound) = exported.into_iter().find(|bound| bound.name == *part) else { break };
            let rest = [&bound.path[..], &path[index + 1..]].concat();
            return self.home(&at, &rest, depth + 1);
        }
        Some(at)
    }

    /// Where the path begins: a keyword, a module beside the code, or another crate.
    fn start(&self, module: &[String], path: &[String]) -> Option<Module> {
        let first = path.first()?;
        let child = [module, std::slice::from_ref(first)].concat();
        match first.as_str() {
            "crate" => Some(Vec::new()),
            "self" => Some(module.to_vec()),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                Some(module[..module.len().checked_sub(up)?].to_vec())
            }
            _ => self.files.contains_key(&child[..]).then(|| module.to_vec()),
        }
    }
}

fn is_keyword(part: &str) -> bool {
    matches!(part, "crate" | "self" | "super")
}

/// What a file's `use` items bind.
fn bound_in(file: &Source) -> Vec<Bound> {
    let uses = file.items.iter().filter_map(|item| match item {
        Item::Use(item) => Some(item),
        _ => None,
    });
    uses.flat_map(bound_by).collect()
}

fn bound_by(item: &ItemUse) -> Vec<Bound> {
    let is_exported = !matches!(item.vis, Visibility::Inherited);
    let mut leaves = Vec::new();
    flatten(&item.tree, &mut Vec::new(), &mut leaves);
    leaves.into_iter().map(|(name, path)| Bound { name, path, is_exported }).collect()
}

fn flatten(tree: &UseTree, before: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, leaves)),
        UseTree::Glob(_) => leaves.push(("*".to_owned(), before.clone())),
        UseTree::Name(name) if name.ident == "self" => {
            leaves.push((before.last().cloned().unwrap_or_default(), before.clone()));
        }
        UseTree::Name(name) => {
            let path = [&before[..], &[name.ident.to_string()]].concat();
            leaves.push((name.ident.to_string(), path));
        }
        UseTree::Rename(rename) => {
            let path = [&before[..], &[rename.ident.to_string()]].concat();
            leaves.push((rename.rename.to_string(), path));
        }
    }
}

/// Paths within code, as they stand there.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    /// Who may see something is no import.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast Path) {
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

/// Groups of modules of which each reaches each other.
fn circles(edges: &Edges) -> Vec<BTreeSet<&Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        edges.keys().map(|from| (from, reachable(edges, from))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (from, there) in &reached {
        let circle: BTreeSet<&Module> =
            there.iter().filter(|to| reached[*to].contains(from)).copied().collect();
        if !circle.is_empty() && seen.insert(circle.clone()) {
            circles.push(circle);
        }
    }
    circles
}

fn reachable<'a>(edges: &'a Edges, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = edges[from].iter().filter(|to| edges.contains_key(*to)).collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(edges[module].iter().filter(|to| edges.contains_key(*to)));
        }
    }
    reached
}
