//! Clients' sessions at one data role, and what came of their writes: equal at the primary and at every parity that has applied the
//! same records (docs/protocol.md, "Writes that are done once").

use std::collections::VecDeque;

use types::{ClientSession, IndexOp, ResultCode, WriteResult};

use crate::cohorts::{ROW_BYTES, read_row, row};

/// The kinds of rows: a session, and behind it what came of its writes, by [`ResultCode`].
const SESSION: u8 = 3;
const RESULT: u8 = 16;

/// The sessions of one data role.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Ascending, by themselves: of many sessions one is found in a line or two of memory.
    ids: Vec<ClientSession>,
    /// In the same order.
    all: Vec<Session>,
    /// How many results they have, and have places for.
    results: usize,
    places: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Session {
    /// The client waits for no write below this one any more.
    floor: u32,
    /// By the write's number, ascending; none below the floor. They come at the back and go at the front, and what lies between is not touched.
    results: VecDeque<(u32, WriteResult)>,
}

impl Session {
    fn place_of(&self, sequence: u32) -> Result<usize, usize> {
        // Nearly all are newer than all before.
        if self.results.back().is_none_or(|(newest, _)| *newest < sequence) {
            return Err(self.results.len());
        }
        self.results.binary_search_by_key(&sequence, |(known, _)| *known)
    }
}

/// What is known of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// There is no such session.
    NoSession,
    /// The client does not wait for it any more.
    Over,
    /// It was not done.
    Not,
    /// It was done, with this result.
    Done(WriteResult),
}

impl Sessions {
    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there is this one.
    #[must_use]
    pub fn has(&self, session: ClientSession) -> bool {
        self.place_of(session).is_ok()
    }

    /// How many results are kept.
    #[must_use]
    pub fn result_count(&self) -> usize {
        self.results
    }

    /// All of them, ascending.
    pub fn ids(&self) -> impl Iterator<Item = ClientSession> {
        self.ids.iter().copied()
    }

    /// What is known of write `sequence` of `session`.
    #[must_use]
    pub fn look_up(&self, session: ClientSession, sequence: u32) -> Written {
        let Ok(at) = self.place_of(session) else { return Written::NoSession };
        let session = &self.all[at];
        if sequence < session.floor {
            return Written::Over;
        }
        session.place_of(sequence).map_or(Written::Not, |at| Written::Done(session.results[at].1))
    }

    /// The newest write of `session` that was done.
    #[must_use]
    pub fn newest(&self, session: ClientSession) -> Option<u32> {
        let at = self.place_of(session).ok()?;
        self.all[at].results.back().map(|(sequence, _)| *sequence)
    }

    /// Applies what is about sessions.
    pub(crate) fn apply(&mut self, op: &IndexOp) {
        match *op {
            IndexOp::SessionBegins { session } => {
                if let Err(at) = self.place_of(session) {
                    self.ids.insert(at, session);
                    self.all.insert(at, Session { floor: 1, results: VecDeque::new() });
                }
            }
            IndexOp::SessionEnds { session } => {
                if let Ok(at) = self.place_of(session) {
                    self.ids.remove(at);
                    let ended = self.all.remove(at).results;
                    (self.results, self.places) =
                        (self.results - ended.len(), self.places - ended.capacity());
                }
            }
            IndexOp::WriteDone { session, sequence, behind, code, version } => {
                let result = WriteResult { code, version, number: 0 };
                self.note(session, sequence, sequence - u32::from(behind), result);
            }
            IndexOp::WriteCounted { session, sequence, number } => {
                let Ok(at) = self.place_of(session) else { return };
                let session = &mut self.all[at];
                if let Ok(at) = session.place_of(sequence) {
                    session.results[at].1.number = number;
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, session: ClientSession, sequence: u32, floor: u32, result: WriteResult) {
        let Ok(at) = self.place_of(session) else { return };
        let session = &mut self.all[at];
        (self.results, self.places) =
            (self.results - session.results.len(), self.places - session.results.capacity());
        session.floor = session.floor.max(floor);
        while session.results.pop_front_if(|(known, _)| *known < session.floor).is_some() {}
        if sequence >= session.floor
            && let Err(at) = session.place_of(sequence)
        {
            session.results.insert(at, (sequence, result));
        }
        (self.results, self.places) =
            (self.results + session.results.len(), self.places + session.results.capacity());
    }

    /// Ids are as good as random: how large one is says about where it is. From there it is looked for in steps that double, so ids of any
    /// other kind take longer, but never more than about twice as long as by halves.
    fn place_of(&self, session: ClientSession) -> Result<usize, usize> {
        let ids = &self.ids[..];
        let guess = ((u128::from(session.0) * ids.len() as u128) >> 64) as usize;
        let (mut from, mut to, mut step) = (guess, guess, 1);
        while to < ids.len() && ids[to] <= session {
            (from, to) = (to, ids.len().min(to + step));
            step *= 2;
        }
        while from > 0 && ids[from] > session {
            (from, to) = (from.saturating_sub(step), from);
            step *= 2;
        }
        ids[from..to].binary_search(&session).map(|at| from + at).map_err(|at| from + at)
    }

    /// Heap memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<ClientSession>()
            + self.all.capacity() * size_of::<Session>()
            + self.places * size_of::<(u32, WriteResult)>()
    }

    /// As rows like those of cohorts: each session, and what came of its writes; ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = [u8; ROW_BYTES]> {
        self.ids.iter().zip(&self.all).flat_map(|(id, session)| {
            let results = session.results.iter().map(|(sequence, result)| {
                row(RESULT + result.code as u8, *sequence, result.version, result.number)
            });
            std::iter::once(row(SESSION, session.floor, id.0, 0)).chain(results)
        })
    }

    /// How many rows there are.
    pub(crate) fn row_count(&self) -> usize {
        self.all.len() + self.results
    }

    /// Whether a row is of sessions.
    pub(crate) fn is_row(bytes: &[u8; ROW_BYTES]) -> bool {
        bytes[0] >= SESSION
    }

    /// Takes in the next row; false if there can be no such row here.
    pub(crate) fn push_row(&mut self, bytes: &[u8; ROW_BYTES]) -> bool {
        let (kind, number, first, second) = read_row(bytes);
        if kind == SESSION {
            let (id, floor) = (ClientSession(first), number);
            let is_next = self.ids.last().is_none_or(|last| *last < id);
            let is_possible = is_next && floor > 0 && second == 0;
            if is_possible {
                self.ids.push(id);
                self.all.push(Session { floor, results: VecDeque::new() });
            }
            return is_possible;
        }
        let code = kind.checked_sub(RESULT).and_then(ResultCode::from_number);
        let (Some(code), Some(session)) = (code, self.all.last_mut()) else { return false };
        let is_next = session.results.back().is_none_or(|(last, _)| *last < number);
        let is_possible = is_next && number >= session.floor;
        if is_possible {
            let before = session.results.capacity();
            session.results.push_back((number, WriteResult { code, version: first, number: second }));
            self.results += 1;
            self.places += session.results.capacity() - before;
        }
        is_possible
    }

    /// That they are in order, and counted.
    pub(crate) fn check_invariants(&self) {
        assert!(self.ids.is_sorted_by(|a, b| a < b), "sessions are in order");
        assert_eq!(self.ids.len(), self.all.len(), "each has its id");
        for session in &self.all {
            assert!(session.results.iter().is_sorted_by(|a, b| a.0 < b.0), "results are in order");
            let is_waited_for = |(sequence, _): &(u32, WriteResult)| *sequence >= session.floor;
            assert!(session.results.iter().all(is_waited_for), "what is over is not kept");
        }
        let results: usize = self.all.iter().map(|session| session.results.len()).sum();
        let places: usize = self.all.iter().map(|session| session.results.capacity()).sum();
        assert_eq!((results, places), (self.results, self.places), "results are counted");
    }
}

impl PartialEq for Sessions {
    fn eq(&self, other: &Self) -> bool {
        (&self.ids, &self.all) == (&other.ids, &other.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClientSession = ClientSession(7);
    const B: ClientSession = ClientSession(9);

    fn stored(version: u64) -> WriteResult {
        WriteResult { code: ResultCode::Stored, version, number: 0 }
    }

    fn done(session: ClientSession, sequence: u32, behind: u16) -> IndexOp {
        let (code, version) = (ResultCode::Stored, u64::from(sequence) * 10);
        IndexOp::WriteDone { session, sequence, behind, code, version }
    }

    fn both() -> Sessions {
        let mut sessions = Sessions::default();
        for op in
            [IndexOp::SessionBegins { session: B }, IndexOp::SessionBegins { session: A }, done(A, 1, 0)]
        {
            sessions.apply(&op);
        }
        sessions
    }

    #[test]
    fn a_result_is_kept_until_the_client_waits_for_it_no_more() {
        let mut sessions = both();
        sessions.apply(&done(A, 3, 2));
        assert_eq!(sessions.look_up(A, 1), Written::Done(stored(10)), "it is still waited for");
        assert_eq!((sessions.look_up(A, 2), sessions.look_up(B, 1)), (Written::Not, Written::Not));
        sessions.apply(&done(A, 2, 0));
        let known = [1, 2, 3].map(|sequence| sessions.look_up(A, sequence));
        assert_eq!(known, [Written::Over, Written::Done(stored(20)), Written::Done(stored(30))]);
        sessions.apply(&done(A, 9, 0));
        assert_eq!(sessions.look_up(A, 3), Written::Over);
        sessions.apply(&done(A, 4, 3));
        assert_eq!(sessions.look_up(A, 4), Written::Over, "a floor does not sink");
        assert_eq!(sessions.result_count(), 1);
        sessions.check_invariants();
    }

    #[test]
    fn the_first_result_of_a_write_stays_and_numbers_come_behind_it() {
        let mut sessions = both();
        sessions.apply(&IndexOp::WriteCounted { session: A, sequence: 1, number: 5 });
        let (code, version) = (ResultCode::Deleted, 0);
        sessions.apply(&IndexOp::WriteDone { session: A, sequence: 1, behind: 0, code, version });
        let first = WriteResult { number: 5, ..stored(10) };
        assert_eq!(sessions.look_up(A, 1), Written::Done(first));
    }

    #[test]
    fn sessions_are_found_whatever_their_ids_are() {
        let spread = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let kinds: [fn(u64) -> u64; 4] =
            [|at| at, |at| u64::MAX - at, |at| at << 58, |at| if at < 50 { at } else { u64::MAX - at }];
        let of = |kind: &dyn Fn(u64) -> u64, count| {
            let mut ids: Vec<ClientSession> = (0..count).map(|at| ClientSession(kind(at))).collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let lists = [0, 1, 2, 3, 17, 100, 1000]
            .into_iter()
            .flat_map(|count| kinds.iter().map(move |kind| of(kind, count)).chain([of(&spread, count)]));
        for ids in lists {
            let mut sessions = Sessions::default();
            ids.iter().for_each(|&session| sessions.apply(&IndexOp::SessionBegins { session }));
            sessions.check_invariants();
            assert_eq!(sessions.ids, ids);
            let near = ids.iter().flat_map(|id| [id.0.wrapping_sub(1), id.0, id.0.wrapping_add(1)]);
            for wanted in near.chain([0, 1, 1 << 63, u64::MAX]).map(ClientSession) {
                assert_eq!(sessions.place_of(wanted), ids.binary_search(&wanted), "{wanted:?} of {ids:?}");
            }
        }
    }

    #[test]
    fn what_is_of_a_session_goes_with_it() {
        let mut sessions = both();
        sessions.apply(&IndexOp::SessionEnds { session: A });
        assert_eq!((sessions.look_up(A, 1), sessions.result_count()), (Written::NoSession, 0));
        sessions.apply(&done(A, 2, 0));
        assert_eq!((sessions.look_up(A, 2), sessions.len()), (Written::NoSession, 1));
    }

    #[test]
    fn rows_make_the_same_again_and_no_others_do() {
        let mut sessions = both();
        sessions.apply(&done(A, 3, 1));
        sessions.apply(&done(B, 1, 0));
        let rows: Vec<_> = sessions.rows().collect();
        assert_eq!(rows.len(), sessions.row_count());
        let mut again = Sessions::default();
        assert!(rows.iter().all(|row| Sessions::is_row(row) && again.push_row(row)));
        assert_eq!(again, sessions);
        assert!(!again.push_row(&rows[0]), "out of order");
        let alone = [row(RESULT, 1, 0, 0), row(SESSION, 0, 7, 0), row(SESSION, 1, 7, 1), row(4, 1, 0, 0)];
        assert!(alone.iter().all(|row| !Sessions::default().push_row(row)));
        let mut late = Sessions::default();
        assert!(late.push_row(&row(SESSION, 5, 7, 0)) && !late.push_row(&row(RESULT, 4, 0, 0)), "it is over");
        assert!(!late.push_row(&row(RESULT + 9, 6, 0, 0)), "no such result");
    }
}
