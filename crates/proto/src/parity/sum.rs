//! What a parity keeps: the weighted sum of the data areas, and the stream of each data role.
//!
//! What no role has is zero: a sum of nothing but zeros. Its memory goes back when the last role gives an extent up.

use store::{Area, Budget, Category, OutOfMemory, PageSet};
use types::{
    DataRole, GroupView, IndexOp, PAGE_BYTES, PageRange, RUN_BYTES, RUNS_PER_EXTENT, Reach, RoleIndex,
    RunClass, Seq,
};
use wire::message::Record;

use super::session::Sessions;
use super::stream::Stream;
use crate::Rules;
use crate::outbox::Means;

const RUN_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

/// See the module.
pub(super) struct Sum {
    area: Area,
    streams: Vec<Stream>,
    budget: Budget,
    rules: Rules,
}

/// Whose records are to be applied, and what they weigh.
#[derive(Clone, Copy)]
pub(super) struct Weighted {
    pub role: RoleIndex,
    pub coefficient: u8,
}

impl Sum {
    /// Of data roles of which nothing is here.
    pub(super) fn new(view: &GroupView, means: Means<'_>) -> Result<Self, store::AreaError> {
        let Means { config, budget, rules, .. } = means;
        let area = Area::reserve(config.area_limit_bytes, budget.clone(), Category::Parity)?;
        let mut sum = Self { area, streams: Vec::new(), budget: budget.clone(), rules };
        sum.clear(view);
        Ok(sum)
    }

    /// Nothing is here any more.
    pub(super) fn clear(&mut self, view: &GroupView) {
        self.streams = view.data.iter().map(|role| Stream::new(role, self.budget.clone())).collect();
        self.area.decommit_all();
    }

    pub(super) fn area(&self) -> &Area {
        &self.area
    }

    pub(super) fn area_mut(&mut self) -> &mut Area {
        &mut self.area
    }

    pub(super) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The stream of a role of this group.
    pub(super) fn stream(&self, role: RoleIndex) -> Option<&Stream> {
        self.streams.get(usize::from(role.0))
    }

    pub(super) fn stream_mut(&mut self, role: RoleIndex) -> Option<&mut Stream> {
        self.streams.get_mut(usize::from(role.0))
    }

    /// The next record of `role` comes into its log, unless it names a place that was never reserved.
    pub(super) fn keep(&mut self, role: RoleIndex, record: Record) -> Result<(), super::stream::NoPlace> {
        self.streams[usize::from(role.0)].keep(record, &self.area)
    }

    /// Applies what is kept of a stream up to `upto`, to the area, the replica and the open sessions. Extents that become
    /// unused give their memory back if `gives_back`.
    pub(super) fn apply(
        &mut self,
        Weighted { role, coefficient }: Weighted,
        upto: Seq,
        sessions: &mut Sessions,
        gives_back: bool,
    ) {
        let at = usize::from(role.0);
        self.streams[at].prefetch(upto, &self.area);
        while let Some(record) = self.streams[at].pop_applicable(upto) {
            for write in &record.writes {
                let delta = self.streams[at].known_part(self.rules, write);
                self.add(coefficient, write.addr.byte(), delta);
                sessions.apply(self.rules, role, coefficient, write);
            }
            self.streams[at].finish(&record);
            // After `finish`: only then does the replica know these pages as untouched again.
            self.note_wiped(role, &record, gives_back);
        }
    }

    /// `bytes` from `byte` on, so many times.
    pub(super) fn add(&mut self, coefficient: u8, byte: usize, bytes: &[u8]) {
        let area = self.area.bytes_mut(byte, bytes.len());
        codec::mul_add(area, coefficient, bytes).expect("slices of one length");
    }

    /// A record of `role` has been applied. If it has made the last run of an extent zero, the role does not have it any more.
    fn note_wiped(&mut self, role: RoleIndex, record: &Record, gives_back: bool) {
        for op in &record.ops {
            let IndexOp::Assign { run, class: RunClass::FREE } = *op else { continue };
            let extent = run / RUNS_PER_EXTENT;
            // The grant goes in any case: the primary asks again before it writes there.
            if self.streams[usize::from(role.0)].give_up_wiped(extent) && gives_back {
                self.return_if_unused(extent);
            }
        }
    }

    /// Gives back the memory of all extents that no role has.
    pub(super) fn return_unused_extents(&mut self) {
        let extents: Vec<u32> = self.area.extents().collect();
        extents.into_iter().for_each(|extent| self.return_if_unused(extent));
    }

    fn return_if_unused(&mut self, extent: u32) {
        if !self.streams.iter().any(|stream| stream.uses(extent)) {
            self.area.decommit(extent);
        }
    }

    /// Whether `role` may use an extent so far for what clients write: members that are to come here have the first claim on what memory
    /// is left.
    pub(super) fn grant_growth(&mut self, role: RoleIndex, reach: Reach) -> bool {
        // No area is so large.
        if reach.0 as usize >= self.area.limit_bytes() / RUN_BYTES {
            return false;
        }
        let missing = reach.runs().len().saturating_sub(self.area.runs_of(reach.extent()).count as usize);
        // Where nothing is kept for members the area itself says what it needs: some of it may be paid for.
        let may_grow =
            missing == 0 || self.budget.kept() == 0 || self.budget.has_room_to_grow(missing * RUN_BYTES);
        may_grow && self.grant(role, reach).is_ok()
    }

    /// Memory for an extent so far, which `role` may use then.
    pub(super) fn grant(&mut self, role: RoleIndex, reach: Reach) -> Result<(), OutOfMemory> {
        self.area.commit(reach)?;
        if let Some(stream) = self.stream_mut(role) {
            stream.grant(reach.extent());
        }
        Ok(())
    }

    /// Memory for these bytes.
    pub(super) fn commit(&mut self, start: usize, len: usize) -> Result<(), OutOfMemory> {
        let end = start + len;
        for run in start / RUN_BYTES..end.div_ceil(RUN_BYTES) {
            self.area.commit(Reach::of_run(run as u32))?;
        }
        Ok(())
    }

    /// Memory for what `record` writes.
    pub(super) fn commit_for(&mut self, record: &Record) -> Result<(), OutOfMemory> {
        record.writes.iter().try_for_each(|write| self.commit(write.addr.byte(), write.delta.len()))
    }

    /// The touched pages of a run, bit by bit, and their bytes, which must be as many.
    pub(super) fn add_run(
        &mut self,
        Weighted { role, coefficient }: Weighted,
        run: u32,
        pages: u16,
        bytes: &[u8],
    ) -> Result<(), OutOfMemory> {
        let start = run as usize * RUN_BYTES;
        self.commit(start, RUN_BYTES)?;
        let touched = move || (0..RUN_PAGES).filter(move |page| pages >> page & 1 == 1);
        for (page, bytes) in touched().zip(bytes.chunks_exact(PAGE_BYTES)) {
            let byte = start + page as usize * PAGE_BYTES;
            self.add(coefficient, byte, bytes);
        }
        self.streams[usize::from(role.0)].run_is_in(run, touched().map(|page| run * RUN_PAGES + page));
        Ok(())
    }

    /// The runs of an encoded set, if they fit into the area.
    pub(super) fn decode_runs(&self, mut encoded: &[u8]) -> Option<PageSet> {
        let limit = (self.area.limit_bytes() / RUN_BYTES) as u32;
        PageSet::decode(&mut encoded, limit).ok()
    }

    /// Whether these pages are in the area, with memory or without.
    pub(super) fn has_place_for(&self, pages: PageRange) -> bool {
        pages.start_byte() + pages.len_bytes() <= self.area.limit_bytes()
    }

    /// The pages' bytes; zero where nothing was ever reserved.
    pub(super) fn copy_pages(&self, pages: PageRange) -> Vec<u8> {
        if self.area.covers(pages.start_byte(), pages.len_bytes()) {
            self.area.bytes(pages.start_byte(), pages.len_bytes()).to_vec()
        } else {
            vec![0; pages.len_bytes()]
        }
    }

    /// Whether nobody has ever written to `pages`, and they are zero as they should be.
    pub(super) fn is_untouched(&self, pages: PageRange) -> bool {
        self.streams.iter().all(|stream| !stream.replica().touched().contains_any(pages))
            // Else damage would be passed over where nobody has ever written.
            && self.area.bytes(pages.start_byte(), pages.len_bytes()).iter().all(|byte| *byte == 0)
    }

    /// Whether everything that is in it is still somebody's, going by `view`: else nobody can take it out.
    pub(super) fn has_nothing_lost(&self, view: &GroupView) -> bool {
        let mut streams = self.streams.iter().zip(&view.data);
        let is_well = |(stream, role): (&Stream, &DataRole)| {
            // Without a byte of the role in the sum there is nothing that anybody would have to take out.
            stream.is_blank() || stream.is_of_life(role) && !role.status.is_lost()
        };
        self.rules.return_needs_sum_without_loss(streams.all(is_well))
    }

    /// Roles that were lost begin anew: so do their streams here. A parity that has taken in anything of a role leaves its view
    /// with that role's data; one that was built since knows the role as lost, and takes the new stream from its first record.
    pub(super) fn begin_new_lives(&mut self, view: &GroupView) {
        for (stream, role) in self.streams.iter_mut().zip(&view.data) {
            if !stream.is_of_life(role) {
                if !stream.is_blank() {
                    tracing::error!(group = %view.group, "a parity has the former life of a role in its sum");
                }
                *stream = Stream::new(role, self.budget.clone());
            }
        }
    }

    /// Nobody counts on what was only received.
    pub(super) fn rest(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.rest(self.rules));
    }

    /// The area, and the stream of `role`.
    pub(super) fn into_parts(mut self, role: RoleIndex) -> (Area, Stream) {
        (self.area, self.streams.swap_remove(usize::from(role.0)))
    }

    /// What holds after every event: I1.
    pub(super) fn check_invariants(&self) {
        for stream in &self.streams {
            let held = stream.received().0 - stream.applied().0;
            assert_eq!(held, stream.kept().len() as u64, "the log of a stream is contiguous");
            assert!(stream.settled() <= Some(stream.fence()), "no stream is ended that is not fenced");
        }
    }
}
