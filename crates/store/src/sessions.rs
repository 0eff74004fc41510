//! Clients' sessions at one data role, and what came of their writes: equal at the primary and at every parity that has applied the
//! same records (docs/protocol.md, "Writes that are done once").

use types::{ClientSession, IndexOp, ResultCode, WriteResult};

use crate::cohorts::{ROW_BYTES, read_row, row};

/// The kinds of rows: a session, and behind it what came of its writes, by [`ResultCode`].
const SESSION: u8 = 3;
const RESULT: u8 = 16;

/// The sessions of one data role.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Ascending.
    all: Vec<Session>,
    /// How many results they have, and have places for.
    results: usize,
    places: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Session {
    id: ClientSession,
    /// The client waits for no write below this one any more.
    floor: u32,
    /// By the write's number, ascending; none below the floor.
    results: Vec<(u32, WriteResult)>,
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
        self.all.iter().map(|session| session.id)
    }

    /// What is known of write `sequence` of `session`.
    #[must_use]
    pub fn look_up(&self, session: ClientSession, sequence: u32) -> Written {
        let Ok(at) = self.place_of(session) else { return Written::NoSession };
        let session = &self.all[at];
        if sequence < session.floor {
            return Written::Over;
        }
        let found = session.results.binary_search_by_key(&sequence, |(known, _)| *known);
        found.map_or(Written::Not, |at| Written::Done(session.results[at].1))
    }

    /// The newest write of `session` that was done.
    #[must_use]
    pub fn newest(&self, session: ClientSession) -> Option<u32> {
        let at = self.place_of(session).ok()?;
        self.all[at].results.last().map(|(sequence, _)| *sequence)
    }

    /// Applies what is about sessions.
    pub(crate) fn apply(&mut self, op: &IndexOp) {
        match *op {
            IndexOp::SessionBegins { session } => {
                if let Err(at) = self.place_of(session) {
                    self.all.insert(at, Session { id: session, floor: 1, results: Vec::new() });
                }
            }
            IndexOp::SessionEnds { session } => {
                if let Ok(at) = self.place_of(session) {
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
                let results = &mut self.all[at].results;
                if let Ok(at) = results.binary_search_by_key(&sequence, |(known, _)| *known) {
                    results[at].1.number = number;
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
        let over = session.results.partition_point(|(known, _)| *known < session.floor);
        session.results.drain(..over);
        if sequence >= session.floor
            && let Err(at) = session.results.binary_search_by_key(&sequence, |(known, _)| *known)
        {
            session.results.insert(at, (sequence, result));
        }
        (self.results, self.places) =
            (self.results + session.results.len(), self.places + session.results.capacity());
    }

    fn place_of(&self, session: ClientSession) -> Result<usize, usize> {
        self.all.binary_search_by_key(&session, |known| known.id)
    }

    /// Heap memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Session>() + self.places * size_of::<(u32, WriteResult)>()
    }

    /// As rows like those of cohorts: each session, and what came of its writes; ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = [u8; ROW_BYTES]> {
        self.all.iter().flat_map(|session| {
            let results = session.results.iter().map(|(sequence, result)| {
                row(RESULT + result.code as u8, *sequence, result.version, result.number)
            });
            std::iter::once(row(SESSION, session.floor, session.id.0, 0)).chain(results)
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
            let is_next = self.all.last().is_none_or(|last| last.id < id);
            let is_possible = is_next && floor > 0 && second == 0;
            if is_possible {
                self.all.push(Session { id, floor, results: Vec::new() });
            }
            return is_possible;
        }
        let code = kind.checked_sub(RESULT).and_then(ResultCode::from_number);
        let (Some(code), Some(session)) = (code, self.all.last_mut()) else { return false };
        let is_next = session.results.last().is_none_or(|(last, _)| *last < number);
        let is_possible = is_next && number >= session.floor;
        if is_possible {
            let before = session.results.capacity();
            session.results.push((number, WriteResult { code, version: first, number: second }));
            self.results += 1;
            self.places += session.results.capacity() - before;
        }
        is_possible
    }

    /// That they are in order, and counted.
    pub(crate) fn check_invariants(&self) {
        assert!(self.all.is_sorted_by(|a, b| a.id < b.id), "sessions are in order");
        for session in &self.all {
            assert!(session.results.is_sorted_by(|a, b| a.0 < b.0), "results are in order");
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
        self.all == other.all
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
