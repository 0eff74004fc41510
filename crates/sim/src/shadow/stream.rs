//! The shadow of one data role: its stream of records as it was seen on the wire, and what its area must hold.
//!
//! `area(s)` is the XOR of all deltas of records up to `s`. The shadow keeps it for `base`, and the records after
//! `base`. A takeover at `T` drops the records beyond `T`, here as everywhere. Records that never crossed the network
//! (all parities gone, or the only one on the primary's own node) leave a gap; the shadow is `dark` from there on,
//! until it is taught again from the area of the primary itself.

use std::collections::{BTreeMap, VecDeque};

use types::{HostId, PAGE_BYTES, PageRange, Seq, Term};
use wire::message::{Lesson, Record};

/// A page.
pub(crate) type Page = [u8; PAGE_BYTES];

/// Records that are kept at most before the base moves up.
const TAIL_RECORDS: usize = 512;

/// What one process has confirmed of the stream as a parity, under the newest term that it has seen.
#[derive(Clone, Copy, Debug)]
struct Confirmed {
    term: Term,
    received: Seq,
}

/// A part of a lesson.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    pub lesson: Lesson,
    pub number: u32,
}

/// The shadow of one data role.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Terms that the coordinator has opened, with the last record of the terms before.
    terms: Vec<(Term, Seq)>,
    /// Which process has sent frames under which term.
    owners: Vec<(Term, HostId)>,
    /// By parity, `0..m`, or `m` for the role's mirror, and process: one that was removed may not know yet.
    confirmed: Vec<BTreeMap<HostId, Confirmed>>,
    /// By parity: parts of lessons on their way to a learner, with their tags.
    lessons: Vec<BTreeMap<Part, Seq>>,
    /// Newest commit index that a primary of the newest term has named.
    pub committed: Seq,
    base: Seq,
    pages: BTreeMap<u32, Box<Page>>,
    tail: VecDeque<(Term, Record)>,
    dark: bool,
    /// The number before the first record of the role's present life.
    first: Seq,
}

/// A rule of the protocol that was broken, in words.
pub(crate) type Broken = String;

impl Stream {
    pub(crate) fn new(m: usize) -> Self {
        Self {
            terms: vec![(Term(1), Seq(0))],
            owners: Vec::new(),
            confirmed: vec![BTreeMap::new(); m + 1],
            lessons: vec![BTreeMap::new(); m + 1],
            committed: Seq(0),
            base: Seq(0),
            pages: BTreeMap::new(),
            tail: VecDeque::new(),
            dark: false,
            first: Seq(0),
        }
    }

    /// The role begins anew with `term`, empty: what it was is no more.
    pub(crate) fn begin_life(&mut self, term: Term, first: Seq) {
        let old = std::mem::replace(self, Self::new(self.confirmed.len() - 1));
        self.terms = old.terms;
        self.terms.push((term, first));
        (self.owners, self.confirmed) = (old.owners, old.confirmed);
        (self.committed, self.base, self.first) = (first, first, first);
    }

    /// The number before the first record of the role's present life.
    pub(crate) fn first(&self) -> Seq {
        self.first
    }

    /// Newest record that was seen.
    pub(crate) fn last(&self) -> Seq {
        self.tail.back().map_or(self.base, |(_, record)| record.seq)
    }

    /// Whether records are missing, so that nothing can be said of the area.
    pub(crate) fn is_dark(&self) -> bool {
        self.dark
    }

    /// A member has applied or committed up to `seq`: if that was never seen, records are missing here.
    pub(crate) fn has_reached(&mut self, seq: Seq) {
        self.dark |= seq > self.last();
    }

    /// The newest term, and the last record before it.
    pub(crate) fn term(&self) -> (Term, Seq) {
        self.terms[self.terms.len() - 1]
    }

    /// The coordinator has ended the stream of the terms before `term` at `start`.
    pub(crate) fn begin_term(&mut self, term: Term, start: Seq) -> Result<(), Broken> {
        let (newest, _) = self.term();
        if term <= newest {
            return Ok(());
        }
        self.terms.push((term, start));
        if start < self.committed {
            return Err(format!(
                "{term} starts after record {start}, but {} was committed before it",
                self.committed
            ));
        }
        // What one parity lacks was never acknowledged: all drop it, and the numbers are used again.
        while self.last() > start && !self.tail.is_empty() {
            self.tail.pop_back();
        }
        // The parities have settled at a record that was never seen here.
        if start > self.last() {
            self.dark = true;
        }
        // All parities apply up to there: by that it is committed, also what was not before.
        self.committed = start;
        Ok(())
    }

    /// A primary sends a frame. `required` are the parities whose acks a commit needs, as the coordinator sees it.
    pub(crate) fn sent(
        &mut self,
        from: HostId,
        term: Term,
        committed: Seq,
        records: &[Record],
        required: impl Iterator<Item = (usize, HostId)>,
    ) -> Result<(), Broken> {
        match self.owners.iter().find(|(known, _)| *known == term) {
            Some((_, owner)) if *owner != from => {
                return Err(format!("{term} has two primaries, {owner} and {from}"));
            }
            Some(_) => {}
            None => self.owners.push((term, from)),
        }
        let (newest, start) = self.term();
        if term > newest {
            return Err(format!("{from} sends under {term}, which the coordinator has not given out"));
        }
        // A former primary may go on talking, as long as it has committed nothing of what was dropped.
        if term < newest {
            let (_, end) = *self.terms.iter().find(|(later, _)| *later > term).unwrap_or(&(newest, start));
            return if committed > end {
                Err(format!("{from} of {term} has committed {committed}, but its stream was ended at {end}"))
            } else {
                Ok(())
            };
        }
        for record in records {
            self.add(term, record)?;
        }
        if committed > self.committed {
            self.committed = committed;
            // A parity on the primary's own node confirms inside of the process, where nobody sees it.
            for (parity, host) in required.filter(|(_, host)| host.node != from.node) {
                // Whoever is in sync has all up to the start, without an Ack of this term: by step F3.
                let received = self.received_by(parity, host, term).max(start);
                if received < committed {
                    return Err(format!(
                        "{from} of {term} has committed {committed}, but parity {parity} at {host}, which is in sync, \
                         has confirmed no more than {received}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// A parity confirms what it has (Ack or Welcome).
    pub(crate) fn confirmed(
        &mut self,
        parity: usize,
        host: HostId,
        term: Term,
        received: Seq,
    ) -> Result<(), Broken> {
        let known = self.confirmed[parity].entry(host).or_insert(Confirmed { term, received });
        if known.term > term {
            return Err(format!(
                "parity {parity} at {host} answers {term} after it has answered {}",
                known.term
            ));
        }
        let received_before = if known.term == term { known.received } else { Seq(0) };
        *known = Confirmed { term, received: received.max(received_before) };
        let (newest, _) = self.term();
        if term == newest && received > self.last() && !self.dark {
            return Err(format!(
                "parity {parity} at {host} confirms record {received}, the newest ever sent is {}",
                self.last()
            ));
        }
        Ok(())
    }

    /// A part of a lesson is sent: the learner that understands it has everything up to `tag`.
    pub(crate) fn taught(&mut self, parity: usize, part: Part, tag: Seq) {
        self.has_reached(tag);
        self.lessons[parity].insert(part, tag);
    }

    /// A learner has understood a part: what it has by that.
    pub(crate) fn understood(&mut self, parity: usize, part: Part) -> Option<Seq> {
        self.lessons[parity].remove(&part)
    }

    /// A learner starts from nothing.
    pub(crate) fn forgotten(&mut self, parity: usize, host: HostId) {
        self.confirmed[parity].remove(&host);
        self.lessons[parity].clear();
    }

    fn received_by(&self, parity: usize, host: HostId, term: Term) -> Seq {
        match self.confirmed[parity].get(&host) {
            Some(known) if known.term == term => known.received,
            _ => Seq(0),
        }
    }

    fn add(&mut self, term: Term, record: &Record) -> Result<(), Broken> {
        let last = self.last();
        if record.seq == last.next() {
            self.tail.push_back((term, record.clone()));
        } else if record.seq > last.next() {
            // Those in between never crossed the network, which is no mistake: the module's comment says when.
            self.dark = true;
        } else if let Some((known_term, known)) = self.record(record.seq)
            && (*known_term == term && !same(known, record))
        {
            return Err(format!("record {} of {term} was sent with two contents", record.seq));
        }
        Ok(())
    }

    fn record(&self, seq: Seq) -> Option<&(Term, Record)> {
        let first = self.tail.front()?.1.seq;
        self.tail.get(usize::try_from(seq.0.checked_sub(first.0)?).ok()?)
    }

    /// Nobody will ask for states before `seq` any more.
    pub(crate) fn forget_before(&mut self, seq: Seq) {
        if self.tail.len() < TAIL_RECORDS {
            return;
        }
        while let Some((_, record)) = self.tail.front()
            && record.seq <= seq
        {
            for write in &record.writes {
                xor_into(&mut self.pages, write.addr.byte(), &write.delta);
            }
            self.base = record.seq;
            self.tail.pop_front();
        }
    }

    /// The first state that is still known.
    pub(crate) fn base(&self) -> Seq {
        self.base
    }

    /// Writes the page as of record `seq` into `out`.
    pub(crate) fn page_at(&self, page: u32, seq: Seq, out: &mut Page) {
        match self.pages.get(&page) {
            Some(bytes) => out.copy_from_slice(&bytes[..]),
            None => out.fill(0),
        }
        for (_, record) in self.tail.iter().take_while(|(_, record)| record.seq <= seq) {
            for write in &record.writes {
                xor_page(out, page, write.addr.byte(), &write.delta);
            }
        }
    }

    /// Pages that any record has touched.
    pub(crate) fn touched(&self) -> Vec<u32> {
        let mut pages: Vec<u32> = self.pages.keys().copied().collect();
        for write in self.tail.iter().flat_map(|(_, record)| &record.writes) {
            pages.extend(PageRange::covering(write.addr.byte(), write.delta.len()).iter());
        }
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Takes what the primary has, as of record `committed`, for the truth: after a gap. What is not among `pages` is zero, also
    /// if it was not before.
    pub(crate) fn relearn(&mut self, committed: Seq, pages: impl Iterator<Item = (u32, Box<Page>)>) {
        self.tail.clear();
        self.base = committed;
        self.dark = false;
        self.pages = pages.collect();
    }
}

/// XORs a delta at byte `start` into the part of it that `page` covers.
pub(crate) fn xor_page(out: &mut Page, page: u32, start: usize, delta: &[u8]) {
    let page_start = page as usize * PAGE_BYTES;
    let from = start.max(page_start);
    let to = (start + delta.len()).min(page_start + PAGE_BYTES);
    if from < to {
        codec::xor(&mut out[from - page_start..to - page_start], &delta[from - start..to - start])
            .expect("slices of one length");
    }
}

fn xor_into(pages: &mut BTreeMap<u32, Box<Page>>, start: usize, delta: &[u8]) {
    for page in PageRange::covering(start, delta.len()).iter() {
        xor_page(pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BYTES])), page, start, delta);
    }
}

/// Whether two records are equal; quick where they share their bytes.
fn same(a: &Record, b: &Record) -> bool {
    let same_bytes = |a: &wire::message::Write, b: &wire::message::Write| {
        a.addr == b.addr
            && a.delta.len() == b.delta.len()
            && (a.delta.as_ptr() == b.delta.as_ptr() || a.delta == b.delta)
    };
    a.writes.len() == b.writes.len()
        && a.writes.iter().zip(&b.writes).all(|(a, b)| same_bytes(a, b))
        && a.ops == b.ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use smallvec::smallvec;
    use types::{Addr, Incarnation, NodeId};

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn record(seq: u64, byte: usize, fill: u8) -> Record {
        let write = wire::message::Write::new(Addr::from_byte(byte), Bytes::from(vec![fill; 8]));
        Record { seq: Seq(seq), writes: smallvec![write], ops: smallvec![] }
    }

    fn byte_at(stream: &Stream, seq: u64, byte: usize) -> u8 {
        let mut page = [0; PAGE_BYTES];
        stream.page_at((byte / PAGE_BYTES) as u32, Seq(seq), &mut page);
        page[byte % PAGE_BYTES]
    }

    #[test]
    fn the_area_is_known_as_of_every_record() {
        let mut stream = Stream::new(1);
        let records = [record(1, 4088, 1), record(2, 4088, 2), record(3, 4096, 4)];
        stream.sent(host(0), Term(1), Seq(0), &records, std::iter::empty()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|seq| byte_at(&stream, seq, 4090)), [0, 1, 3, 3]);
        assert_eq!([2, 3].map(|seq| byte_at(&stream, seq, 4096)), [0, 4]);
        assert_eq!(stream.touched(), [0, 1]);
    }

    #[test]
    fn a_takeover_drops_the_tail_and_ends_the_old_term() {
        let mut stream = Stream::new(1);
        stream
            .sent(host(0), Term(1), Seq(0), &[record(1, 0, 1), record(2, 0, 2)], std::iter::empty())
            .unwrap();
        stream.begin_term(Term(2), Seq(1)).unwrap();
        assert_eq!(byte_at(&stream, 9, 0), 1);
        assert!(stream.sent(host(0), Term(1), Seq(2), &[], std::iter::empty()).is_err());
        stream.sent(host(1), Term(2), Seq(1), &[record(2, 0, 8)], std::iter::empty()).unwrap();
        assert_eq!(byte_at(&stream, 2, 0), 9);
    }

    #[test]
    fn a_commit_needs_every_parity_in_sync() {
        let mut stream = Stream::new(2);
        let required = || [(0, host(1)), (1, host(2))].into_iter();
        stream.sent(host(0), Term(1), Seq(0), &[record(1, 0, 1)], required()).unwrap();
        stream.confirmed(0, host(1), Term(1), Seq(1)).unwrap();
        assert!(stream.sent(host(0), Term(1), Seq(1), &[], required()).unwrap_err().contains("parity 1"));
    }

    #[test]
    fn nobody_confirms_what_was_not_sent_and_no_record_changes() {
        let mut stream = Stream::new(1);
        stream.sent(host(0), Term(1), Seq(0), &[record(1, 0, 1)], std::iter::empty()).unwrap();
        assert!(stream.confirmed(0, host(1), Term(1), Seq(2)).is_err());
        assert!(stream.sent(host(0), Term(1), Seq(0), &[record(1, 0, 2)], std::iter::empty()).is_err());
        assert!(stream.sent(host(3), Term(1), Seq(0), &[], std::iter::empty()).is_err());
    }
}
