//! How long files and functions are, and how many methods a type has.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Block, ImplItem, ImplItemFn, Item, ItemFn, Signature, Type};

use super::limits::{FILE_LINES, FUNCTION_LINES, METHODS};
use super::sources::{Source, Sources};

/// Files and functions beyond their limits.
pub fn too_long(sources: &Sources) -> Vec<String> {
    sources.0.iter().flat_map(too_long_in).collect()
}

fn too_long_in(source: &Source) -> Vec<String> {
    let mut functions = Functions { path: &source.path, too_long: Vec::new() };
    source.items.iter().for_each(|item| functions.visit_item(item));
    let lines = source.text.lines().count();
    if lines > FILE_LINES {
        functions.too_long.push(format!("{} has {lines} lines, at most {FILE_LINES}", source.path));
    }
    functions.too_long
}

struct Functions<'a> {
    path: &'a str,
    too_long: Vec<String>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &Signature, body: &Block) {
        let lines = body.brace_token.span.close().start().line - signature.fn_token.span.start().line + 1;
        if lines > FUNCTION_LINES {
            let (path, name) = (self.path, &signature.ident);
            self.too_long.push(format!("{path}: {name} has {lines} lines, at most {FUNCTION_LINES}"));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }
}

/// Types beyond their limit.
pub fn too_many_methods(sources: &Sources) -> Vec<String> {
    let mut methods: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for source in &sources.0 {
        for (name, count) in source.items.iter().filter_map(methods_of) {
            *methods.entry((&source.krate, name)).or_default() += count;
        }
    }
    let too_many = methods.into_iter().filter(|(_, count)| *count > METHODS);
    too_many.map(|((krate, name), count)| format!("{krate}::{name} has {count} methods")).collect()
}

/// The type of an inherent `impl`, and how many functions it has.
fn methods_of(item: &Item) -> Option<(String, usize)> {
    let Item::Impl(block) = item else { return None };
    let Type::Path(path) = &*block.self_ty else { return None };
    let name = path.path.segments.last()?.ident.to_string();
    let functions = block.items.iter().filter(|item| matches!(item, ImplItem::Fn(_)));
    block.trait_.is_none().then(|| (name, functions.count()))
}
