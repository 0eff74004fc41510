//! `stats items` and `stats slabs`: the classes of slots of the primaries of this node, in memcached's words.
//!
//! A class is a size of slots, as there, but the sizes are ours, and so are the numbers of the classes. Large items, which have
//! runs to themselves, are the last class; its chunks are these items. What memcached counts per LRU list is left out.

use std::collections::BTreeMap;

use store::{Category, ClassUse};
use types::{RUN_BYTES, RunClass};

use super::Page;
use crate::node::shared::Shared;

type Classes = BTreeMap<RunClass, ClassUse>;

/// The answer to `stats items`, without its end.
pub(super) fn items(page: &mut Page, classes: &Classes) {
    for one in classes.values().filter(|one| one.items > 0) {
        let class = one.class.0;
        page.add(&format!("items:{class}:number"), one.items);
        page.add(&format!("items:{class}:mem_requested"), one.item_bytes);
    }
}

/// The answer to `stats slabs`, without its end.
pub(super) fn slabs(page: &mut Page, shared: &Shared, classes: &Classes) {
    for one in classes.values() {
        class(page, one);
    }
    page.add("active_slabs", classes.len());
    page.add("total_malloced", shared.budget.used(Category::Area));
}

fn class(page: &mut Page, one: &ClassUse) {
    let class = one.class.0;
    // Large items have no size in common: the average of what they take.
    let bytes_of_runs = one.runs * RUN_BYTES as u64;
    let chunk_size = match types::slot_bytes(one.class) {
        0 => bytes_of_runs / one.slots.max(1),
        size => size as u64,
    };
    for (name, value) in [
        ("chunk_size", chunk_size),
        ("chunks_per_page", one.slots / one.runs.max(1)),
        ("total_pages", one.runs),
        ("total_chunks", one.slots),
        ("used_chunks", one.items),
        ("free_chunks", one.slots.saturating_sub(one.items)),
        ("free_chunks_end", 0),
        ("mem_requested", one.item_bytes),
    ] {
        page.add(&format!("{class}:{name}"), value);
    }
}
