//! A value that a client sends bit by bit: its bytes go from the socket into pieces of just the length that the host takes, so what is a
//! whole cell there is never copied.
//!
//! The host commits a value when it has all of it. So the last piece stays here until what must follow the value has been seen: else a
//! client that is out of step with its own lengths would have stored something. If the upload ends early, the rest of the data block is
//! thrown away before its outcome is said, as memcached does. No command is carried out meanwhile.

use bytes::{Buf, Bytes, BytesMut};
use faces::{Face, Line};
use types::op::Outcome;

use crate::clients::{Protocol, Style};
use crate::workers::streams::News;

const END_LEN: usize = Protocol::VALUE_END.len();
/// What an upload of which nothing has come is given: who only says that a value will come holds no more.
const FIRST_BYTES: usize = 4096;

/// See the module.
pub(crate) struct Upload {
    /// Of its reply.
    pub(super) slot: u64,
    /// The worker that has its group.
    pub(super) shard: u16,
    pub(super) style: Style,
    /// Bytes of the value that neither the host nor `piece` has.
    pub(super) left: u64,
    piece: BytesMut,
    stage: Stage,
    /// Whether a whole piece has come.
    moves: bool,
}

#[derive(Debug)]
enum Stage {
    /// The host takes nothing now.
    Full,
    /// The piece is coming: so many bytes.
    Takes(usize),
    /// The last piece is here; what must follow it is coming.
    Ends,
    /// The host has everything.
    Commits,
    /// It is over: so much of the data block is still to come, then this is said.
    Over(u64, Outcome),
}

/// What an upload needs to go on.
pub(super) enum Next {
    /// More of the client's bytes.
    Bytes,
    /// The host.
    Host,
    /// This is for the host.
    Feed(Bytes),
    /// The value does not end where its length says.
    Refuse(Line),
    /// All is over.
    Say(Outcome),
}

impl Upload {
    pub(super) fn new(slot: u64, shard: u16, style: Style, len: u64) -> Self {
        Self { slot, shard, style, left: len, piece: BytesMut::new(), stage: Stage::Full, moves: false }
    }

    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    /// Whether the host has no part in it any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(..))
    }

    /// Bytes that it holds.
    pub(crate) fn weight(&self) -> usize {
        self.piece.capacity()
    }

    /// The host says something.
    pub(crate) fn hear(&mut self, news: News) {
        match (news, &self.stage) {
            (News::Room(wanted), Stage::Full) => self.stage = Stage::Takes(wanted),
            (News::Ended(outcome), Stage::Commits) => self.stage = Stage::Over(0, outcome),
            (News::Ended(outcome), Stage::Full | Stage::Takes(_) | Stage::Ends) => {
                self.piece = BytesMut::new();
                self.stage = Stage::Over(self.left + END_LEN as u64, outcome);
            }
            (news, stage) => debug_assert!(false, "{news:?} of an upload that is {stage:?}"),
        }
    }

    /// Where the socket's next bytes go, unless it is the connection's input.
    pub(crate) fn room(&mut self) -> Option<&mut BytesMut> {
        let Stage::Takes(wanted) = self.stage else { return None };
        if self.piece.capacity() == 0 {
            let most = if self.moves { wanted } else { FIRST_BYTES };
            self.piece = BytesMut::with_capacity(wanted.min(most));
        } else if self.piece.len() == self.piece.capacity() && self.piece.len() < wanted {
            self.piece.reserve(wanted - self.piece.len());
        }
        Some(&mut self.piece)
    }

    /// So many bytes have come into [`Self::room`]; `input` gets what is too much.
    pub(crate) fn note_read(&mut self, len: usize, input: &mut BytesMut) {
        let Stage::Takes(wanted) = self.stage else { return };
        // Memory may be a little longer than what was asked for.
        let extra = self.piece.len().saturating_sub(wanted);
        if extra > 0 {
            input.extend_from_slice(&self.piece.split_off(wanted));
        }
        self.left -= (len - extra) as u64;
    }

    /// Goes on with what has come.
    pub(super) fn next(&mut self, input: &mut BytesMut) -> Next {
        match self.stage {
            Stage::Full | Stage::Commits => Next::Host,
            Stage::Takes(wanted) => self.fill(wanted, input),
            Stage::Ends if input.len() < END_LEN => Next::Bytes,
            Stage::Ends => match Protocol::check_value_end(&self.style, &input.split_to(END_LEN)) {
                Ok(()) => {
                    self.stage = Stage::Commits;
                    Next::Feed(self.take_piece())
                }
                Err(line) => Next::Refuse(line),
            },
            Stage::Over(..) => self.swallow(input),
        }
    }

    fn fill(&mut self, wanted: usize, input: &mut BytesMut) -> Next {
        let here = input.len().min(wanted - self.piece.len());
        if here > 0
            && let Some(room) = self.room()
        {
            room.extend_from_slice(&input.split_to(here));
            self.left -= here as u64;
        }
        if self.piece.len() < wanted {
            return Next::Bytes;
        }
        if self.left == 0 {
            self.stage = Stage::Ends;
            return self.next(input);
        }
        self.stage = Stage::Full;
        Next::Feed(self.take_piece())
    }

    fn take_piece(&mut self) -> Bytes {
        self.moves = true;
        std::mem::take(&mut self.piece).freeze()
    }

    fn swallow(&mut self, input: &mut BytesMut) -> Next {
        let Stage::Over(left, outcome) = &mut self.stage else { return Next::Host };
        let gone = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
        input.advance(gone);
        *left -= gone as u64;
        if *left > 0 {
            return Next::Bytes;
        }
        Next::Say(std::mem::replace(outcome, Outcome::Noted))
    }
}

#[cfg(test)]
mod tests {
    use faces::memcache::ReplyStyle;

    use super::*;

    fn upload(len: u64) -> Upload {
        Upload::new(0, 0, ReplyStyle::Text, len)
    }

    fn fed(next: Next) -> Option<Bytes> {
        if let Next::Feed(bytes) = next { Some(bytes) } else { None }
    }

    #[test]
    fn pieces_are_as_long_as_there_is_room_and_the_last_waits_for_the_end() {
        let (mut upload, mut input) = (upload(10), BytesMut::from(&b"0123456789\r\nmn\r\n"[..]));
        assert!(matches!(upload.next(&mut input), Next::Host));
        upload.hear(News::Room(6));
        assert_eq!(fed(upload.next(&mut input)).as_deref(), Some(&b"012345"[..]));
        assert!(matches!(upload.next(&mut input), Next::Host));
        upload.hear(News::Room(4));
        let rest = input.split_off(5);
        assert!(matches!(upload.next(&mut input), Next::Bytes), "the end is not whole");
        input.unsplit(rest);
        assert_eq!(fed(upload.next(&mut input)).as_deref(), Some(&b"6789"[..]));
        upload.hear(News::Ended(Outcome::NotStored));
        assert!(matches!(upload.next(&mut input), Next::Say(Outcome::NotStored)));
        assert_eq!(&input[..], b"mn\r\n");
    }

    #[test]
    fn bytes_are_read_into_the_piece_and_what_is_too_much_is_kept() {
        let (mut upload, mut input) = (upload(7), BytesMut::new());
        upload.hear(News::Room(6));
        let room = upload.room().unwrap();
        assert!(room.capacity() >= 6);
        room.extend_from_slice(b"0123456\r\n");
        upload.note_read(9, &mut input);
        assert_eq!((&input[..], upload.left), (&b"6\r\n"[..], 1));
        assert_eq!(fed(upload.next(&mut input)).as_deref(), Some(&b"012345"[..]));
    }

    #[test]
    fn who_has_sent_little_holds_little() {
        let (mut upload, mut input) = (upload(200_000), BytesMut::new());
        upload.hear(News::Room(65_536));
        upload.room().unwrap().extend_from_slice(&[b'x'; FIRST_BYTES]);
        upload.note_read(FIRST_BYTES, &mut input);
        assert!(matches!(upload.next(&mut input), Next::Bytes));
        assert!(upload.weight() < 2 * FIRST_BYTES, "{}", upload.weight());
        let room = upload.room().unwrap();
        assert!(room.capacity() >= 65_536, "then it is one of those who send");
        room.extend_from_slice(&[b'x'; 65_536 - FIRST_BYTES]);
        upload.note_read(65_536 - FIRST_BYTES, &mut input);
        assert_eq!(fed(upload.next(&mut input)).map(|piece| piece.len()), Some(65_536));
        upload.hear(News::Room(65_536));
        assert!(upload.room().unwrap().capacity() >= 65_536, "nothing has to be moved any more");
    }

    #[test]
    fn a_value_with_a_wrong_end_is_never_whole() {
        let (mut upload, mut input) = (upload(3), BytesMut::from(&b"abcd\r\n"[..]));
        upload.hear(News::Room(3));
        assert!(matches!(upload.next(&mut input), Next::Refuse(b"CLIENT_ERROR bad data chunk\r\n")));
        assert_eq!(
            &input[..],
            b"\n",
            "as memcached has it: the block is gone, and what follows is a command"
        );
    }

    #[test]
    fn what_ends_early_swallows_the_rest_of_its_block() {
        for (before, in_piece) in [(&b""[..], 0), (b"0123", 4), (b"0123456789", 10)] {
            let (mut upload, mut input) = (upload(10), BytesMut::from(before));
            upload.hear(News::Room(10));
            assert!(matches!(upload.next(&mut input), Next::Bytes));
            upload.hear(News::Ended(Outcome::NotStored));
            assert_eq!(upload.weight(), 0);
            input.extend_from_slice(&b"0123456789\r\nmn\r\n"[in_piece..]);
            assert!(matches!(upload.next(&mut input), Next::Say(Outcome::NotStored)));
            assert_eq!(&input[..], b"mn\r\n");
        }
    }
}
