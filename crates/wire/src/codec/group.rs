//! Messages between members of a group.

use types::{
    Addr, Cohort, GroupId, IndexHash, IndexOp, MAX_AREA_BYTES, PAGE_BYTES, PageRange, Profile, RUN_BYTES,
    ResultCode, RoleIndex, RunClass, Seq, Term, Time, ViewVersion,
};

use super::{
    BadBody, Entry, Reader, Wire, Writer, wire_bounded, wire_choice, wire_enum, wire_newtypes, wire_struct,
};
use crate::message::{
    Abort, Ack, Answer, FetchIndex, Forward, Frame, GroupBody, Hello, IndexPart, Learn, LearnHello,
    LearnPart, Learned, Lesson, MAX_WRONG_ITEMS, Open, Opened, Page, Read, Record, Reject, Reserve, Reserved,
    Residual, SessionId, Welcome, Write,
};

wire_newtypes!(GroupId, Time, Addr, IndexHash, RunClass);
wire_bounded!(Seq, Term, ViewVersion);

/// Roles of the largest group.
const MAX_ROLE: u8 = Profile::MAX_K + Profile::MAX_M - 1;

impl Wire for RoleIndex {
    fn put(&self, out: &mut Writer<'_>) {
        debug_assert!(self.0 <= MAX_ROLE);
        self.0.put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let role = u8::take(from)?;
        if role > MAX_ROLE { Err(BadBody::Range) } else { Ok(Self(role)) }
    }
}

/// Most records of one Frame.
const MAX_RECORDS: u32 = 4096;
/// Most slots that one record writes.
const MAX_WRITES: u32 = 1024;
/// Most index operations of one record: a full run of the smallest items may go at once.
const MAX_INDEX_OPS: u32 = 8192;

impl Entry for RoleIndex {
    const MAX_COUNT: u32 = Profile::MAX_K as u32 + Profile::MAX_M as u32;
}

impl Entry for Addr {
    const MAX_COUNT: u32 = MAX_WRONG_ITEMS as u32;
}

impl Entry for Record {
    const MAX_COUNT: u32 = MAX_RECORDS;
}

impl Entry for Write {
    const MAX_COUNT: u32 = MAX_WRITES;
}

impl Entry for IndexOp {
    const MAX_COUNT: u32 = MAX_INDEX_OPS;
}

wire_struct!(Forward { id, group, role, request });
wire_struct!(Answer { id, outcome });

wire_choice!(GroupBody {
    0 => Hello { 0: body },
    1 => Welcome { 0: body },
    2 => Frame { 0: body },
    3 => Ack { 0: body },
    4 => Reject { 0: body },
    5 => Reserve { 0: body },
    6 => Reserved { 0: body },
    7 => FetchIndex { 0: body },
    8 => IndexPart { 0: body },
    9 => Open { 0: body },
    10 => Opened { 0: body },
    11 => Read { 0: body },
    12 => Page { 0: body },
    13 => Residual { 0: body },
    14 => Abort { 0: body },
    15 => LearnHello { 0: body },
    16 => Learn { 0: body },
    17 => Learned { 0: body },
});
wire_struct!(Lesson { since, attempt });
wire_struct!(LearnHello { lesson, applied });
wire_struct!(Learn { lesson, term, number, tag, part });
wire_struct!(Learned { lesson, term, number });
wire_enum!(LearnPart {
    0 => Begin { rows: rows, classes: classes },
    1 => Run { run: run, pages: pages, bytes: bytes },
    2 => Segment { segment: segment, entries: entries },
    3 => End { runs: runs },
    4 => Resume {},
    5 => Gone {},
});
wire_struct!(Hello { term, committed });
wire_struct!(Welcome { term, received, wall });

// What is sent most is written by hand, so that its numbers are appended together.
impl Wire for Frame {
    fn put(&self, out: &mut Writer<'_>) {
        let Self { term, sent_at, wall, committed, records } = self;
        let count = out.counted(records.len(), MAX_RECORDS);
        out.numbers([term.0.into(), sent_at.0.into(), wall.0.into(), committed.0.into(), count.into()]);
        records.iter().for_each(|record| record.put(out));
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let (term, sent_at, wall) = (Wire::take(from)?, Wire::take(from)?, Wire::take(from)?);
        let (committed, records) = (Wire::take(from)?, Vec::<Record>::take(from)?);
        let consecutive = records.is_sorted_by(|before, after| before.seq.next() == after.seq);
        if consecutive { Ok(Self { term, sent_at, wall, committed, records }) } else { Err(BadBody::Order) }
    }
}

impl Wire for Record {
    fn put(&self, out: &mut Writer<'_>) {
        let Self { seq, writes, ops } = self;
        let count = out.counted(writes.len(), MAX_WRITES);
        out.numbers([seq.0.into(), count.into()]);
        writes.iter().for_each(|write| write.put(out));
        ops.put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(Self { seq: Wire::take(from)?, writes: Wire::take(from)?, ops: Wire::take(from)? })
    }
}

/// Two numbers that were read together, the first one first.
fn halves(both: u64) -> (u32, u32) {
    (both as u32, (both >> 32) as u32)
}

/// A long delta stays where it is.
impl Wire for Write {
    fn put(&self, out: &mut Writer<'_>) {
        let count = out.counted(self.delta.len(), u32::MAX);
        out.numbers([self.addr.0.into(), count.into()]);
        match self.checksum() {
            Some(checksum) => out.known(&self.delta, checksum),
            None => out.bytes(&self.delta),
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let (addr, len) = halves(u64::take(from)?);
        let len = usize::try_from(len).map_err(|_| BadBody::Truncated)?;
        Ok(Self::received(Addr(addr), from.bytes(len)?))
    }
}

wire_struct!(Ack { term, received, echo });
wire_struct!(Reject { fence });
wire_struct!(Reserve { term, run });
wire_struct!(Reserved { term, run, granted });
wire_struct!(FetchIndex { term, part });
wire_struct!(IndexPart { term, part, last, bytes });
wire_struct!(SessionId { role, term, number });
wire_struct!(PageRange { first, count } if are_of_one_session);
wire_struct!(Open { session, pages, committed });
wire_struct!(Opened { session });
wire_struct!(Read { session, pages, parities });
wire_struct!(Page { session, term, committed, bytes, wrong });
wire_struct!(Residual { session, lost, bytes });
wire_struct!(Abort { session });

/// Pages of the longest area.
const MAX_PAGES: u32 = (MAX_AREA_BYTES / PAGE_BYTES) as u32;
/// Most pages of a session.
const MAX_SESSION_PAGES: u32 = (RUN_BYTES / PAGE_BYTES) as u32;

/// Whether a session may be about these pages: some, not more than fill a run, and all in an area.
fn are_of_one_session(pages: &PageRange) -> bool {
    let end = pages.first.checked_add(pages.count);
    (1..=MAX_SESSION_PAGES).contains(&pages.count) && end.is_some_and(|end| end <= MAX_PAGES)
}

// A type of another crate cannot have the macro's inherent functions.
impl Wire for IndexOp {
    fn put(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Assign { run, class } => {
                0u8.put(out);
                run.put(out);
                class.put(out);
            }
            Self::Insert { hash, addr, cohort } => {
                put_kind(1, cohort, out);
                out.numbers([hash.0.into(), addr.0.into()]);
            }
            Self::Replace { hash, old, new, cohort } => {
                put_kind(2, cohort, out);
                out.numbers([hash.0.into(), old.0.into(), new.0.into()]);
            }
            Self::Remove { hash, addr, cohort } => {
                put_kind(3, cohort, out);
                out.numbers([hash.0.into(), addr.0.into()]);
            }
            Self::Flush { namespace } => {
                4u8.put(out);
                namespace.put(out);
            }
            Self::FlushAt { namespace, at } => {
                5u8.put(out);
                namespace.put(out);
                at.put(out);
            }
            Self::SessionBegins { session } => {
                6u8.put(out);
                session.put(out);
            }
            Self::SessionEnds { session } => {
                7u8.put(out);
                session.put(out);
            }
            Self::WriteDone { session, sequence, behind, code, version } => {
                8u8.put(out);
                session.put(out);
                sequence.put(out);
                behind.put(out);
                code.put(out);
                version.put(out);
            }
            Self::WriteCounted { session, sequence, number } => {
                9u8.put(out);
                session.put(out);
                sequence.put(out);
                number.put(out);
            }
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let (kind, cohort) = take_kind(from)?;
        Ok(match kind {
            0 => Self::Assign { run: Wire::take(from)?, class: Wire::take(from)? },
            1 => Self::Insert { hash: Wire::take(from)?, addr: Wire::take(from)?, cohort },
            2 => {
                let all = u128::take(from)?;
                let (old, new) = halves((all >> 64) as u64);
                Self::Replace { hash: IndexHash(all as u64), old: Addr(old), new: Addr(new), cohort }
            }
            3 => Self::Remove { hash: Wire::take(from)?, addr: Wire::take(from)?, cohort },
            4 => Self::Flush { namespace: Wire::take(from)? },
            5 => Self::FlushAt { namespace: Wire::take(from)?, at: Wire::take(from)? },
            6 => Self::SessionBegins { session: Wire::take(from)? },
            7 => Self::SessionEnds { session: Wire::take(from)? },
            8 => {
                let (session, sequence) = (Wire::take(from)?, Wire::take(from)?);
                let (behind, code) = (Wire::take(from)?, Wire::take(from)?);
                Self::WriteDone { session, sequence, behind, code, version: Wire::take(from)? }
            }
            9 => {
                let (session, sequence) = (Wire::take(from)?, Wire::take(from)?);
                Self::WriteCounted { session, sequence, number: Wire::take(from)? }
            }
            tag => return Err(BadBody::Tag(tag)),
        })
    }
}

wire_enum!(ResultCode {
    0 => Stored {},
    1 => Deleted {},
    2 => Touched {},
    3 => Number {},
    4 => NotStored {},
    5 => Exists {},
    6 => NotFound {},
    7 => NotANumber {},
    8 => TooLarge {},
});

/// Set in the kind of an operation that names a cohort. That of the default namespace before any flush, which is most clusters' only
/// one, is not named.
const NAMES_COHORT: u8 = 0x80;

#[inline]
fn put_kind(kind: u8, cohort: Cohort, out: &mut Writer<'_>) {
    if cohort == Cohort::default() {
        return kind.put(out);
    }
    (kind | NAMES_COHORT).put(out);
    cohort.0.put(out);
}

fn take_kind(from: &mut Reader) -> Result<(u8, Cohort), BadBody> {
    let kind = u8::take(from)?;
    if kind & NAMES_COHORT == 0 {
        return Ok((kind, Cohort::default()));
    }
    let (plain, cohort) = (kind & !NAMES_COHORT, Cohort(u32::take(from)?));
    // A second encoding of the same, or of what has none.
    let is_named = (1..=3).contains(&plain) && cohort != Cohort::default() && cohort <= Cohort::MAX;
    if is_named { Ok((plain, cohort)) } else { Err(BadBody::Tag(kind)) }
}
