//! Values that a client sends in pieces, one more than the other at the same time. Nothing here knows a worker.
//!
//! A client sends of a value what its window allows, and that grows as the host takes what has come: so one value holds a window here, or
//! all of it where it lies whole at one member, which is a megabyte at most. A few values are taken at a time; the others have no window
//! yet, and so nothing of them comes.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use proto::Place;
use types::Once;
use types::op::{Key, Outcome, Store};

use crate::limits::{NATIVE_UPLOAD_WINDOW_BYTES, NATIVE_UPLOADS};
use crate::workers::streams::News;

/// All of one connection. See the module.
#[derive(Default)]
pub(super) struct Uploads {
    all: BTreeMap<u64, Upload>,
    /// Those that have not begun, in their order.
    waiting: VecDeque<u64>,
    /// Those that something can be done for.
    stirred: Vec<u64>,
}

/// One value.
pub(super) struct Upload {
    pub key: Key,
    pub store: Store,
    /// Its length in bytes.
    pub len: u64,
    pub place: Place,
    /// The name under which it is written once.
    pub once: Option<Once>,
    /// Bytes that have come and gone no further.
    buffer: BytesMut,
    /// Bytes that have come in all.
    received: u64,
    /// Bytes that may come in all.
    granted: u64,
    pub stage: Stage,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its turn has not come.
    Waiting,
    /// It is put together here, and stored as a whole.
    Whole,
    /// The host of this worker takes it bit by bit.
    Stream {
        /// The worker.
        shard: u16,
        /// How many bytes the host takes now, in one go.
        wants: Option<usize>,
    },
}

/// What is to be done for an upload.
pub(super) enum Step {
    /// The client may send so many bytes more.
    Grant(u32),
    /// These bytes are for the host of this worker.
    Feed(u16, Bytes),
    /// All has come: this is to be stored.
    Store(Box<(Key, Store, Place, Option<Once>)>),
}

/// More came than was announced or granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Uploads {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes that are held.
    pub(super) fn weight(&self) -> usize {
        self.all.values().map(|upload| upload.buffer.capacity()).sum()
    }

    /// Whether the client has to send something now.
    pub(super) fn waits_for_client(&self) -> bool {
        self.all.values().any(|upload| upload.received < upload.granted)
    }

    /// One more, of which these bytes have come already.
    pub(super) fn add(
        &mut self,
        id: u64,
        (key, store, place, once): (Key, Store, Place, Option<Once>),
        len: u64,
        come: &[u8],
    ) {
        let (received, stage) = (come.len() as u64, Stage::Waiting);
        let buffer = BytesMut::from(come);
        self.all
            .insert(id, Upload { key, store, len, place, once, buffer, received, granted: received, stage });
        self.waiting.push_back(id);
    }

    /// The next one that may begin.
    pub(super) fn next_to_begin(&mut self) -> Option<(u64, &mut Upload)> {
        let begun = self.all.len() - self.waiting.len();
        if begun >= NATIVE_UPLOADS {
            return None;
        }
        let id = self.waiting.pop_front()?;
        self.stirred.push(id);
        self.all.get_mut(&id).map(|upload| (id, upload))
    }

    /// The client sends a piece; nothing happens if the value is not taken any more.
    pub(super) fn take_piece(&mut self, id: u64, piece: &Bytes) -> Result<(), TooMany> {
        let Some(upload) = self.all.get_mut(&id) else { return Ok(()) };
        let received = upload.received + piece.len() as u64;
        if received > upload.granted {
            return Err(TooMany);
        }
        upload.received = received;
        upload.buffer.extend_from_slice(piece);
        self.stirred.push(id);
        Ok(())
    }

    /// The host says something; the outcome, if it is over.
    pub(super) fn hear(&mut self, id: u64, news: News) -> Option<Outcome> {
        let upload = self.all.get_mut(&id)?;
        match (news, &mut upload.stage) {
            (News::Room(room), Stage::Stream { wants, .. }) => {
                *wants = Some(room);
                self.stirred.push(id);
                None
            }
            (News::Ended(outcome), _) => {
                self.remove(id);
                Some(outcome)
            }
            (news, stage) => {
                debug_assert!(false, "{news:?} of an upload that is {stage:?}");
                None
            }
        }
    }

    /// Forgets one; it, if it was there.
    pub(super) fn remove(&mut self, id: u64) -> Option<Upload> {
        self.waiting.retain(|waiting| *waiting != id);
        self.all.remove(&id)
    }

    /// Those of which bytes are missing that nobody will send.
    pub(super) fn incomplete(&self) -> Vec<u64> {
        let lacks = |upload: &Upload| upload.received < upload.len;
        self.all.iter().filter(|(_, upload)| lacks(upload)).map(|(id, _)| *id).collect()
    }

    /// All of them.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.all.keys().copied().collect()
    }

    /// What is to be done next, for whom.
    pub(super) fn step(&mut self) -> Option<(u64, Step)> {
        while let Some(&id) = self.stirred.last() {
            if let Some(step) = self.all.get_mut(&id).and_then(Upload::step) {
                if matches!(step, Step::Store(_)) {
                    self.remove(id);
                }
                return Some((id, step));
            }
            self.stirred.pop();
        }
        None
    }
}

impl Upload {
    fn step(&mut self) -> Option<Step> {
        if let Some(more) = self.grant() {
            return Some(Step::Grant(more));
        }
        match self.stage {
            Stage::Waiting => None,
            Stage::Whole if self.received < self.len => None,
            Stage::Whole => {
                self.store.value = std::mem::take(&mut self.buffer).freeze();
                Some(Step::Store(Box::new((self.key.clone(), self.store.clone(), self.place, self.once))))
            }
            Stage::Stream { shard, wants: Some(wanted) } if self.buffer.len() >= wanted => {
                self.stage = Stage::Stream { shard, wants: None };
                Some(Step::Feed(shard, self.buffer.split_to(wanted).freeze()))
            }
            Stage::Stream { .. } => None,
        }
    }

    /// How much more the client may send.
    fn grant(&mut self) -> Option<u32> {
        let room = match self.stage {
            Stage::Waiting => return None,
            Stage::Whole => self.len,
            Stage::Stream { .. } => NATIVE_UPLOAD_WINDOW_BYTES.saturating_sub(self.buffer.len() as u64),
        };
        let allowed = (self.received + room).min(self.len);
        let more = allowed.saturating_sub(self.granted);
        // Not for every few bytes: a grant is a frame. At the end there is nothing else to wait for.
        let is_worth_it = more >= NATIVE_UPLOAD_WINDOW_BYTES / 4 || (more > 0 && allowed == self.len);
        let more = u32::try_from(more).ok().filter(|_| is_worth_it)?;
        self.granted += u64::from(more);
        Some(more)
    }
}

#[cfg(test)]
mod tests {
    use types::KeyHash;
    use types::op::StoreMode;

    use super::*;

    fn store() -> (Key, Store, Place, Option<Once>) {
        let store = Store {
            mode: StoreMode::Set,
            value: Bytes::new(),
            flags: 0,
            expiry: types::op::Expiry::Never,
            compare: None,
            version: None,
            invalidate: false,
            vivify: None,
        };
        let place = Place { hash: KeyHash(1), member: None, refusal: None };
        (Key::new(Bytes::from_static(b"k")).unwrap(), store, place, None)
    }

    fn begin(uploads: &mut Uploads, id: u64, len: u64, stage: Stage) {
        uploads.add(id, store(), len, b"");
        uploads.next_to_begin().unwrap().1.stage = stage;
    }

    fn granted(uploads: &mut Uploads) -> Option<u32> {
        match uploads.step() {
            Some((_, Step::Grant(more))) => Some(more),
            _ => None,
        }
    }

    #[test]
    fn a_stream_has_a_window_and_the_host_gets_what_it_wants() {
        let (mut uploads, len) = (Uploads::default(), 3 * NATIVE_UPLOAD_WINDOW_BYTES);
        begin(&mut uploads, 1, len, Stage::Stream { shard: 0, wants: None });
        assert_eq!(granted(&mut uploads).map(u64::from), Some(NATIVE_UPLOAD_WINDOW_BYTES));
        assert!(uploads.step().is_none());
        let piece = Bytes::from(vec![7; 60_000]);
        uploads.take_piece(1, &piece).unwrap();
        uploads.take_piece(1, &piece).unwrap();
        assert!(uploads.step().is_none(), "nobody wants it yet");
        assert!(uploads.hear(1, News::Room(65_536)).is_none());
        let Some((1, Step::Feed(0, bytes))) = uploads.step() else { panic!("no bytes for the host") };
        assert_eq!(bytes.len(), 65_536);
        assert_eq!(granted(&mut uploads), Some(65_536));
        assert!(uploads.step().is_none());
        assert_eq!(uploads.hear(1, News::Ended(Outcome::Exists)), Some(Outcome::Exists));
        assert!(
            uploads.is_empty() && uploads.take_piece(1, &piece).is_ok(),
            "what is on its way is forgotten"
        );
    }

    #[test]
    fn more_than_the_window_or_the_length_is_too_many() {
        let mut uploads = Uploads::default();
        begin(&mut uploads, 1, 100_000, Stage::Whole);
        assert_eq!(
            uploads.take_piece(1, &Bytes::from_static(b"x")),
            Err(TooMany),
            "before there is a window"
        );
        assert_eq!(granted(&mut uploads), Some(100_000));
        uploads.take_piece(1, &Bytes::from(vec![7; 60_000])).unwrap();
        assert_eq!(uploads.take_piece(1, &Bytes::from(vec![7; 40_001])), Err(TooMany));
        assert!(uploads.waits_for_client());
        uploads.take_piece(1, &Bytes::from(vec![7; 40_000])).unwrap();
        let Some((1, Step::Store(whole))) = uploads.step() else { panic!("it is whole") };
        assert_eq!(whole.1.value.len(), 100_000);
        assert!(uploads.is_empty());
    }

    #[test]
    fn a_few_begin_and_the_others_wait_for_their_turn() {
        let mut uploads = Uploads::default();
        for id in 1..=NATIVE_UPLOADS as u64 + 2 {
            uploads.add(id, store(), 100_000, b"");
        }
        let mut begun = Vec::new();
        while let Some((id, upload)) = uploads.next_to_begin() {
            upload.stage = Stage::Whole;
            begun.push(id);
        }
        assert_eq!(begun, (1..=NATIVE_UPLOADS as u64).collect::<Vec<_>>());
        uploads.remove(3);
        assert_eq!(uploads.next_to_begin().map(|(id, _)| id), Some(NATIVE_UPLOADS as u64 + 1));
    }
}
