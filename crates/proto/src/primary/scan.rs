//! Which keys a role has: a page of them, of one namespace, from a bound on.
//!
//! A page is read as any read is, under the lease and of what is committed. It holds the worker for no longer than [`MAX_STEPS`] items
//! take, whoever's they are, and is never longer than a frame. Where it stops is said by hashes of keys alone ([`ScanBound`]).

use bytes::Bytes;
use store::{DataStore, Item, Step};
use types::op::Failure;
use types::{MAX_PAGE_KEYS, PageRange, Scan, ScanBound, ScanPage, UnixSeconds, split_key};

use crate::rules::ScanRules;

/// Most hashes of which a page looks at the items: a hundred microseconds or two, where each lies in another line of memory.
const MAX_STEPS: usize = 256;

/// What has come of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Paged {
    /// A page.
    Page(ScanPage),
    /// Nothing yet: these pages of the area are wanted first.
    Absent(PageRange),
    /// There is none.
    Failed(Failure),
}

/// Whose items are looked at, and how.
pub(super) struct Look<'a> {
    pub store: &'a DataStore,
    /// What has expired by then is not there.
    pub now: UnixSeconds,
    /// Whether items are decoded ones, which may be damaged: then what they say of their time is not believed.
    pub verifies: bool,
    pub rules: ScanRules,
}

impl Look<'_> {
    /// The page that `scan` asks for.
    pub(super) fn page(&self, scan: &Scan) -> Paged {
        let (mut page, mut next) = (ScanPage::default(), Some(scan.from));
        let mut bytes = 0;
        for _ in 0..MAX_STEPS {
            let is_full = page.keys.len() >= usize::from(scan.keys) || bytes >= scan.bytes as usize;
            let Some(from) = next.filter(|_| !is_full) else { break };
            let (hash, items, damaged) = match self.rules.step(self.store, from) {
                Step::Items(hash, items, damaged) => (hash, items, damaged),
                Step::Absent(hash, _) if self.rules.passes_over_what_is_absent() => {
                    next = ScanBound::behind(hash);
                    continue;
                }
                // What has been found is said; who asks for the rest waits for it.
                Step::Absent(..) if from != scan.from => break,
                Step::Absent(_, pages) => return Paged::Absent(pages),
                Step::End => {
                    next = None;
                    break;
                }
            };
            let wanted: Vec<&[u8]> = items.iter().filter_map(|item| self.wanted(scan, item)).collect();
            // Keys of one hash are on one page, for no bound lies between them.
            if page.keys.len() + wanted.len() > MAX_PAGE_KEYS {
                if from == scan.from {
                    return Paged::Failed(Failure::TooLarge);
                }
                break;
            }
            bytes += wanted.iter().map(|key| key.len()).sum::<usize>();
            page.keys.extend(wanted.into_iter().map(Bytes::copy_from_slice));
            // The others come all the same.
            page.damaged = page.damaged.saturating_add(damaged);
            next = self.rules.behind(from, hash);
        }
        page.next = next;
        Paged::Page(page)
    }

    /// What clients call the item, if it is one of those that are asked for.
    fn wanted<'i>(&self, scan: &Scan, item: &Item<'i>) -> Option<&'i [u8]> {
        let (namespace, client) = split_key(item.key);
        let is_one = namespace == scan.namespace && client.starts_with(&scan.prefix);
        // The bits of its key are right. Whoever reads a value that is damaged hears that.
        let is_over = || item.is_expired(self.now) && (!self.verifies || item.verify());
        (is_one && !is_over()).then_some(client)
    }
}
