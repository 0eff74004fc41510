//! Scrub of chunks: every cell is compared with its checksum, in the background, at the pace that the operators allow.
//!
//! A chunk is what its writer has put as long as it has the checksum that its trailer names. One that has not is got
//! anew from the others of its stripe, as after a read that has found it. Whether what was put is a code word one holder looks at for
//! each stripe (`words`), once its own chunk is right; nothing here could say which of the chunks is wrong, so that is told, and not
//! repaired.

mod words;

use types::{ChunkId, HostId, MemberId, PAGE_BYTES, ScrubProgress, ScrubSettings, Time};
use wire::object::{Ask, Asked, Cell, Harm, Missing};

use super::fill::tell_owner;
use super::holder::Holder;
use super::holders::Holders;
use super::scope::Scope;
use crate::Timing;
use crate::pace::Pace;
pub use words::WrongStripe;
pub(super) use words::is_of_scrub;
use words::{State, WordCheck};

/// What is compared in one go: some tenths of a millisecond, for which requests wait.
const STEP_BYTES: usize = 1 << 20;
/// Pause before the next go, in microseconds, where no rate is set.
const PAUSE_US: u64 = 1_000;
/// Stripes that are no code words and are named.
const MAX_NAMED: usize = 64;

/// See the module.
#[derive(Default)]
pub(super) struct ChunkScrub {
    progress: ScrubProgress,
    /// The chunk that was looked at last.
    at: Option<(MemberId, ChunkId)>,
    /// Rows of it that were compared, if some are left.
    row: Option<u32>,
    ended: bool,
    looked: Time,
    /// The stripe of that chunk, if it is compared here, and the pages of the chunk.
    word: Option<(WordCheck, u64)>,
    /// Stripes that could not be compared.
    left_out: u64,
    /// Those that were found wrong.
    wrong: Vec<WrongStripe>,
    /// Pages and chunks of all scrubs: compared, and found wrong.
    totals: (u64, u64),
    /// Questions of all scrubs.
    numbers: u64,
}

/// What a look at some rows has shown.
enum Look {
    /// They are right, up to this row, behind which more are to be compared.
    Part(u32),
    /// The last ones are right, too.
    Whole,
    Rotten,
}

impl ChunkScrub {
    /// Compares some more, if the operators want it and the pace allows it.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, holders: &mut Holders) {
        let settings = scope.around.pace().scrub();
        self.follow(settings);
        self.looked = scope.now.time;
        if !settings.running || self.ended || !self.go_on_with_word(scope, holders) {
            return;
        }
        if !scope.around.pace_mut().allows_scrub(scope.now.time) {
            return;
        }
        let mut bytes = 0;
        while bytes < STEP_BYTES && self.word.is_none() {
            let Some((member, chunk, row)) = self.next(holders) else {
                self.end();
                break;
            };
            let Some(holder) = holders.get_mut(member) else { break };
            let (look, looked_at) = look_at(holder, chunk, row, STEP_BYTES - bytes);
            bytes += looked_at;
            self.at = Some((member, chunk));
            self.judge(scope, holder, chunk, look);
        }
        scope.around.pace_mut().spend_scrub(bytes);
        self.go_on_with_word(scope, holders);
    }

    /// Whether no stripe is being compared any more.
    fn go_on_with_word(&mut self, scope: &mut Scope<'_>, holders: &Holders) -> bool {
        let Some((word, pages)) = &mut self.word else { return true };
        let pages = *pages;
        let state = match holders.get(word.member()) {
            Some(holder) => word.go_on(scope, holder, &mut self.numbers),
            None => State::LeftOut,
        };
        match state {
            State::Waiting => return false,
            State::Right => {}
            State::LeftOut => self.left_out += 1,
            State::Wrong(stripe) => self.note_wrong(scope, stripe),
        }
        self.word = None;
        self.count(pages);
        true
    }

    /// Nothing says which of its chunks is wrong, so nothing can be done about it here.
    fn note_wrong(&mut self, scope: &mut Scope<'_>, stripe: WrongStripe) {
        let WrongStripe { member, chunk, key_hash, row, parity } = stripe;
        tracing::error!(group = %member.group, %chunk, row, %parity, "the chunks of a stripe are no code word");
        self.progress.mismatches += 1;
        self.totals.1 += 1;
        if self.wrong.len() < MAX_NAMED {
            self.wrong.push(stripe);
        }
        // The owner can name its key.
        let (owner, objects) = (chunk.object.owner, vec![Asked { object: chunk.object, key_hash }]);
        tell_owner(scope, Ask { owner, member, objects, found: Harm::Wrong });
    }

    /// So many pages are done with.
    fn count(&mut self, pages: u64) {
        self.progress.checked_pages += pages;
        self.totals.0 += pages;
    }

    /// A cell that was asked for.
    pub(super) fn hear_cell(&mut self, from: HostId, cell: Cell) {
        if let Some((word, _)) = &mut self.word {
            word.take(from, cell);
        }
    }

    /// Somebody has not got what was asked for.
    pub(super) fn hear_missing(&mut self, from: HostId, missing: &Missing) {
        if let Some((word, _)) = &mut self.word {
            word.miss(from, missing);
        }
    }

    /// Begins anew if the operators have asked for another scrub than the one that is under way.
    fn follow(&mut self, settings: ScrubSettings) {
        if settings.generation != self.progress.generation {
            let progress = ScrubProgress { generation: settings.generation, ..ScrubProgress::default() };
            *self = Self { progress, totals: self.totals, numbers: self.numbers, ..Self::default() };
        }
    }

    /// The chunk to look at, and the first row of it.
    fn next(&self, holders: &Holders) -> Option<(MemberId, ChunkId, u32)> {
        let Some((member, chunk)) = self.at else {
            return holders.iter().find_map(|(member, holder)| first_behind(member, holder, None));
        };
        let same = holders.get(member);
        let is_there = |holder: &&Holder| holder.chunks().get(chunk).is_some();
        if let Some(row) = self.row.filter(|_| same.filter(is_there).is_some()) {
            return Some((member, chunk, row));
        }
        let of_same = same.and_then(|holder| first_behind(member, holder, Some(chunk)));
        let mut later = holders.behind(member);
        of_same.or_else(|| later.find_map(|(member, holder)| first_behind(member, holder, None)))
    }

    fn judge(&mut self, scope: &mut Scope<'_>, holder: &mut Holder, chunk: ChunkId, look: Look) {
        let entry = holder.chunks().get(chunk);
        let pages = entry.map_or(0, |entry| entry.chunk().allocated_bytes().div_ceil(PAGE_BYTES) as u64);
        self.row = None;
        match look {
            Look::Part(row) => return self.row = Some(row),
            Look::Whole if scope.rules().objects().scrubs_compare_words() => {
                let word = entry.and_then(|entry| WordCheck::of(scope, holder.member(), chunk, entry));
                self.word = word.map(|word| (word, pages));
            }
            Look::Whole => {}
            Look::Rotten => {
                holder.give_up(scope, chunk);
                self.progress.mismatches += 1;
                self.progress.corrected += 1;
                self.totals.1 += 1;
            }
        }
        if self.word.is_none() {
            self.count(pages);
        }
    }

    fn end(&mut self) {
        self.ended = true;
        let ScrubProgress { generation, checked_pages, mismatches, .. } = self.progress;
        if checked_pages > 0 {
            let left_out = self.left_out;
            tracing::info!(generation, checked_pages, mismatches, left_out, "scrub of chunks has ended here");
        }
    }

    /// How far it has come, where chunks have so many bytes of pages.
    pub(super) fn progress(&self, settings: ScrubSettings, bytes: u64) -> ScrubProgress {
        let is_current = self.progress.generation == settings.generation;
        let fresh = ScrubProgress { generation: settings.generation, ..ScrubProgress::default() };
        let mut progress = if is_current { self.progress } else { fresh };
        if settings.generation > 0 && !(is_current && self.ended) {
            progress.left_pages = (bytes / PAGE_BYTES as u64).saturating_sub(progress.checked_pages);
        }
        progress
    }

    /// Pages compared and chunks found wrong by all scrubs.
    pub(super) fn totals(&self) -> (u64, u64) {
        self.totals
    }

    /// Stripes that the newest scrub has found to be no code words.
    pub(super) fn wrong(&self) -> &[WrongStripe] {
        &self.wrong
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.word.as_ref().map_or(0, |(word, _)| word.memory_bytes())
    }

    /// When [`Self::go_on`] has something to do.
    pub(super) fn due(&self, pace: &Pace, timing: &Timing, now: Time) -> Time {
        let settings = pace.scrub();
        let has_ended = self.ended && self.progress.generation == settings.generation;
        if !settings.running || has_ended {
            return Time::NEVER;
        }
        if let Some(at) = self.word.as_ref().and_then(|(word, _)| word.due(timing)) {
            return at;
        }
        pace.scrub_resumes_at(now).max(self.looked + PAUSE_US)
    }
}

fn first_behind(
    member: MemberId,
    holder: &Holder,
    chunk: Option<ChunkId>,
) -> Option<(MemberId, ChunkId, u32)> {
    let (chunk, _) = holder.chunks().list_after(chunk, 1).next()?;
    Some((member, chunk, 0))
}

/// Compares rows from `row` on, up to some `most` bytes; how many bytes that were.
fn look_at(holder: &Holder, chunk: ChunkId, row: u32, most: usize) -> (Look, usize) {
    let Some(entry) = holder.chunks().get(chunk) else { return (Look::Whole, 0) };
    let chunk = entry.chunk();
    let cell_len = chunk.cell_len() as usize;
    let count = (most.div_ceil(cell_len.max(1)).max(1) as u32).min(chunk.rows().saturating_sub(row));
    let end = row + count;
    let look = match (row..end).all(|row| chunk.verify(row)) {
        false => Look::Rotten,
        true if end < chunk.rows() => Look::Part(end),
        true => Look::Whole,
    };
    (look, count as usize * cell_len)
}

#[cfg(test)]
mod tests {
    use store::{Budget, ChunkBuilder, ChunkHeader, ChunkPages, Eviction, Quotas, StoreConfig};
    use types::{
        ClusterId, Geometry, GroupId, HostId, Incarnation, KeyHash, Layout, NamespaceId, NodeId, ObjectId,
        ObjectLayout, RoleIndex, Term, UnixSeconds,
    };

    use super::*;
    use crate::host::{Surroundings, Views};
    use crate::{HostConfig, Limits, Now, Rules, Timing};

    const CELL: u32 = 4096;
    const ROWS: u32 = 3;
    const PAGES_OF_CHUNK: u64 = 3;

    fn member(role: u8) -> MemberId {
        MemberId { group: GroupId(0), role: RoleIndex(role) }
    }

    fn id(number: u64) -> ChunkId {
        let (owner, term, namespace) = (member(0), Term(1), NamespaceId::default());
        ChunkId { object: ObjectId { owner, term, number, salt: 1, namespace }, stripe: 0 }
    }

    /// Two roles, with three chunks each.
    fn holders() -> Holders {
        let pages = ChunkPages::new(Budget::new(64 << 20)).unwrap();
        let holder = |role: u8| {
            let mut holder = Holder::new(member(role), &pages);
            (1..=3).for_each(|number| insert(&mut holder, &pages, id(number)));
            (member(role), holder)
        };
        let mut holders = Holders::default();
        [holder(1), holder(4)].into_iter().for_each(|(member, holder)| holders.insert(member, holder));
        holders
    }

    fn insert(holder: &mut Holder, pages: &ChunkPages, id: ChunkId) {
        let mut builder = ChunkBuilder::new(pages, CELL, ROWS);
        (0..ROWS).for_each(|row| builder.push(&[row as u8; CELL as usize]).unwrap());
        let chunk = builder.finish().unwrap();
        let header = ChunkHeader {
            key_hash: KeyHash(1),
            geometry: Geometry { len: 40_000, chunk_len: 65_536, k: 3, layout: ObjectLayout::Spread },
            trailer: [chunk.checksum(); 5].into_iter().collect(),
            received_at: Time(0),
            last_access: UnixSeconds(0),
        };
        holder.chunks_mut().insert(id, header, chunk);
    }

    fn surroundings() -> Surroundings {
        let (node, incarnation) = (NodeId(0), Incarnation(1));
        Surroundings::new(HostConfig {
            host: HostId { node, incarnation },
            shard: 0,
            secret: crate::Secret::known_to_all(),
            timing: Timing::default(),
            limits: Limits::default(),
            graphs: crate::GraphSettings::default(),
            coder: codec::Coder::default(),
            rules: Rules::all(),
            store: StoreConfig { cluster: ClusterId(1), area_limit_bytes: 1 << 20, eviction: Eviction::None },
            budget: Budget::new(1 << 20),
            quotas: Quotas::new(1),
        })
    }

    fn settings(generation: u64, bytes_per_second: u64) -> ScrubSettings {
        ScrubSettings { generation, running: true, repair: false, bytes_per_second }
    }

    /// Lets it go on whenever it is due, until it has ended: how long that took, in microseconds.
    fn run(scrub: &mut ChunkScrub, holders: &mut Holders, settings: ScrubSettings, start: u64) -> u64 {
        let (mut around, views) = (surroundings(), Views::default());
        around.pace_mut().set(&Layout { scrub: settings, ..Layout::default() }, 1);
        let mut time = Time(start);
        loop {
            let due = scrub.due(around.pace(), &around.config().timing, time);
            if due == Time::NEVER {
                return time.since(Time(start));
            }
            time = time.max(due);
            let now = Now { time, unix: UnixSeconds(0) };
            scrub.go_on(&mut Scope { now, around: &mut around, views: &views }, holders);
            assert!(time.since(Time(start)) < 60_000_000, "it does not end");
        }
    }

    fn bytes(holders: &Holders) -> u64 {
        holders.values().map(|holder| holder.chunks().bytes()).sum()
    }

    #[test]
    fn a_chunk_that_went_bad_is_found_and_got_anew_and_all_others_stay() {
        let (mut scrub, mut holders) = (ChunkScrub::default(), holders());
        let holder = holders.get_mut(member(4)).unwrap();
        assert!(holder.chunks_mut().damage(id(2), 2 * CELL as usize + 7, 0x10));
        assert_eq!(scrub.progress(settings(1, 0), bytes(&holders)).left_pages, 6 * PAGES_OF_CHUNK);
        run(&mut scrub, &mut holders, settings(1, 0), 1);
        let progress = scrub.progress(settings(1, 0), bytes(&holders));
        assert_eq!((progress.checked_pages, progress.left_pages), (6 * PAGES_OF_CHUNK, 0));
        assert_eq!((progress.mismatches, progress.corrected), (1, 1));
        assert_eq!(
            (holders.get(member(1)).unwrap().chunks().count(), holders.get(member(1)).unwrap().fill().left()),
            (3, 0)
        );
        assert_eq!(
            (holders.get(member(4)).unwrap().chunks().count(), holders.get(member(4)).unwrap().fill().left()),
            (2, 1)
        );
        assert!(holders.get(member(4)).unwrap().chunks().get(id(2)).is_none());
    }

    #[test]
    fn another_start_compares_everything_once_more() {
        let (mut scrub, mut holders) = (ChunkScrub::default(), holders());
        run(&mut scrub, &mut holders, settings(1, 0), 1);
        assert_eq!(scrub.progress(settings(2, 0), bytes(&holders)).left_pages, 6 * PAGES_OF_CHUNK);
        assert!(holders.get_mut(member(1)).unwrap().chunks_mut().damage(id(3), 0, 1));
        run(&mut scrub, &mut holders, settings(2, 0), 1_000_000);
        assert_eq!(scrub.progress(settings(2, 0), bytes(&holders)).mismatches, 1);
        assert_eq!(scrub.totals(), (12 * PAGES_OF_CHUNK, 1));
    }

    #[test]
    fn a_rate_is_kept() {
        let (mut scrub, mut holders) = (ChunkScrub::default(), holders());
        let pages = holders.get(member(1)).unwrap().chunks().pages().clone();
        let holder = holders.get_mut(member(1)).unwrap();
        (10..1_000).for_each(|number| insert(holder, &pages, id(number)));
        let all = bytes(&holders);
        let us = run(&mut scrub, &mut holders, settings(1, all / 4), 1);
        assert!((3_000_000..4_200_000).contains(&us), "{us} us for four seconds' worth");
    }

    #[test]
    fn a_chunk_that_goes_in_the_middle_holds_nothing_up() {
        let (mut scrub, mut holders) = (ChunkScrub::default(), holders());
        (scrub.at, scrub.row) = (Some((member(1), id(2))), Some(1));
        holders.get_mut(member(1)).unwrap().chunks_mut().remove(id(2));
        assert_eq!(scrub.next(&holders), Some((member(1), id(3), 0)));
        holders.retain(|of, _| of != member(1));
        assert_eq!(scrub.next(&holders), Some((member(4), id(1), 0)));
    }
}
