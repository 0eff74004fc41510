//! The namespaces of a run, and where clients reach them: listeners that are bound to them at every node.

use types::Profile;

use crate::options::Options;

/// A namespace beside the default one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What it is called, and its pool, if it has one of its own.
    pub name: &'static str,
    /// Where each node listens for its clients.
    pub port: u16,
}

/// In a pool of its own, of mirrors, with a quota. It does not evict: a node whose share does not suffice for a moment refuses a write.
pub const COPIES: Space = Space { name: "copies", port: 11311 };
/// In the default pool. Its items may be evicted, but nothing makes it necessary: what was flushed is gone, and nothing else.
pub const CACHE: Space = Space { name: "cache", port: 11411 };
/// Comes and goes, and so does a pool of this name.
pub const PASSING: Space = Space { name: "passing", port: 11511 };
/// In the default pool, of long values; items of up to 64 KiB lie whole. It is there only if there are to be such values.
pub const LONG: Space = Space { name: "long", port: 11611 };
/// The same where every value lies in chunks, however short it is, and chunks are as short as can be.
pub const CELLS: Space = Space { name: "cells", port: 11711 };
/// The same as [`LONG`], of values whose bytes lie in ranges as long as a chunk.
pub const RANGES: Space = Space { name: "ranges", port: 11811 };
/// The same, of values of which one node has a whole copy.
pub const WHOLES: Space = Space { name: "wholes", port: 11911 };
/// All of them.
pub const SPACES: [Space; 7] = [COPIES, CACHE, PASSING, LONG, CELLS, RANGES, WHOLES];

/// Groups of each pool beside the default one.
const GROUPS: u32 = 4;
/// Bytes of all items of [`COPIES`], by far more than there are.
const QUOTA: &str = "64MiB";

/// The code of the pool of [`COPIES`]: it bears as many losses as that of the default pool, so that the same may be hurt.
pub fn code_of_copies(options: &Options, losses: usize) -> String {
    let mirrors = u32::try_from(losses + 1).ok().and_then(|copies| Profile::rep(copies.max(2)).ok());
    let fits = mirrors.filter(|profile| profile.n() <= usize::from(options.nodes));
    fits.map_or_else(|| options.profile.clone(), |profile| profile.to_string())
}

/// What `gestalt` is told before the first client comes.
pub fn founding(options: &Options, losses: usize) -> Vec<Vec<String>> {
    let (copies, cache) = (COPIES.name, CACHE.name);
    let mut all = vec![
        create_pool(copies, &code_of_copies(options, losses)),
        words(&["namespace", "create", copies, "--pool", copies, "--evict", "no", "--quota", QUOTA]),
        words(&["namespace", "create", cache, "--evict", "yes"]),
    ];
    if options.long.is_some() {
        let create =
            |space: Space, above| words(&["namespace", "create", space.name, "--striped-above", above]);
        all.push(create(LONG, "64KiB"));
        all.push([create(CELLS, "always"), words(&["--chunk", "64KiB"])].concat());
        all.push([create(RANGES, "64KiB"), words(&["--layout", "wide"])].concat());
        all.push([create(WHOLES, "64KiB"), words(&["--layout", "copy"])].concat());
    }
    all
}

/// The namespace that moves to another pool and back, and its two pools: the first one is its own.
pub fn mover(options: &Options) -> (Space, [&'static str; 2]) {
    let default = "default";
    if options.long.is_some() { (LONG, [default, COPIES.name]) } else { (COPIES, [COPIES.name, default]) }
}

/// What `gestalt` is told to have a namespace move to another pool. One that is on its way turns back.
pub fn convert(name: &str, to: &str) -> Vec<String> {
    words(&["namespace", "convert", name, "--to", to])
}

/// What `gestalt` is told to make a pool.
pub fn create_pool(name: &str, profile: &str) -> Vec<String> {
    words(&["pool", "create", name, "--profile", profile, "--groups", &GROUPS.to_string()])
}

/// What it is told to make a namespace, in the default pool if none is named.
pub fn create_namespace(name: &str, pool: Option<&str>) -> Vec<String> {
    words(&["namespace", "create", name, "--pool", pool.unwrap_or("default")])
}

/// What it is told to remove a pool or a namespace.
pub fn remove(kind: &str, name: &str) -> Vec<String> {
    words(&[kind, "remove", name, "--yes"])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_code_bears_as_many_losses_and_fits_the_nodes() {
        let code = |nodes, losses| code_of_copies(&Options { nodes, ..Options::default() }, losses);
        assert_eq!((code(7, 2), code(7, 1), code(7, 0)), ("rep(3)".into(), "rep(2)".into(), "rep(2)".into()));
        assert_eq!(code(2, 2), Options::default().profile, "nothing else fits");
    }
}
