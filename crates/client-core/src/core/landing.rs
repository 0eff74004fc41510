//! Values that are received where their caller wants them.
//!
//! Whoever reads from a connection ([`Intake`](crate::Intake)) asks of a frame of which the beginning has come where the value in it goes, and receives the rest there.
//! The question is asked again before each read: as long as its answer is the same, and no longer, that memory may be written to. A cell of
//! a value in chunks lies where it belongs before it is known to be good, or whether it will be given out: only the end of its request says that
//! what lies there is the value.

use native::{Answer, HEADER_BYTES, Header, Kind, Malformed, VALUE_HEAD_BYTES, Value};
use types::Time;

use super::Core;
use crate::event::{ConnId, Landed, Landing, RequestId};
use crate::request::{Found, Place, Room};

/// Shorter ones are copied: that costs less than to read them by themselves.
const LEAST_BYTES: u32 = 4096;

/// A core, for whoever reads from its connections. See the module.
#[derive(Debug)]
pub struct Receiving<'a> {
    core: &'a mut Core,
}

impl Core {
    /// What it says about values that are on their way.
    #[must_use]
    pub fn receiving(&mut self) -> Receiving<'_> {
        Receiving { core: self }
    }
}

impl Receiving<'_> {
    /// A read whose caller has room for this many bytes, in which they may be received. Said at once when it was submitted.
    pub fn has_room(&mut self, id: RequestId, room: u64) {
        let Some(request) = self.core.requests.get_mut(id).filter(|_| room >= u64::from(LEAST_BYTES)) else {
            return;
        };
        request.room = Room::Any(room);
        if let Some(Place { conn, sent: Some((wire, _)) }) = request.place
            && let Some(connection) = self.core.links.get_mut(conn)
        {
            connection.landing.insert(wire);
        }
    }

    /// A read whose caller has room for this many bytes of a value that comes in pieces, in their order. Said at once when it was submitted.
    pub fn takes_pieces(&mut self, id: RequestId, room: u64) {
        if let Some(request) = self.core.requests.get_mut(id).filter(|_| room > 0) {
            request.room = Room::Pieces(room);
        }
    }

    /// Whether bytes may come from a connection that [land](Self::landing): then it is better not to read far beyond the heads of frames.
    #[must_use]
    pub fn awaits_values(&self, conn: ConnId) -> bool {
        self.core.links.get(conn).is_some_and(|connection| !connection.landing.is_empty())
    }

    /// Where the value goes that is in the frame of which `input` is the beginning. None if that is not known yet, or if its bytes are to be
    /// kept with the rest of the frame.
    #[must_use]
    pub fn landing(&self, conn: ConnId, input: &[u8]) -> Option<Landing> {
        let header = Header::take(input).ok().flatten().filter(|header| header.len >= LEAST_BYTES)?;
        if !self.core.links.get(conn)?.landing.contains(&header.id) {
            return None;
        }
        let id = self.core.in_flight(conn, header.id)?;
        match header.kind {
            Kind::Piece if header.flags == 0 && id.is_part() => self.core.direct.landing(id, header.len),
            Kind::Piece if header.flags == 0 => self.landing_of_piece(id, header.len),
            Kind::Answer if !id.is_part() => self.landing_of_answer(id, &header, &input[HEADER_BYTES..]),
            _ => None,
        }
    }

    /// Whether that is still so of a frame which begins with `head`, and of which more comes.
    #[must_use]
    pub fn still_lands(&self, conn: ConnId, head: &[u8], landing: &Landing) -> bool {
        let is_waited_for = self.core.requests.get(landing.id).is_some();
        let is_same = self.landing(conn, head) == Some(*landing);
        self.core.config.rules.still_lands(is_same, is_waited_for)
    }

    fn landing_of_piece(&self, id: RequestId, len: u32) -> Option<Landing> {
        let request = self.core.requests.get(id)?;
        let reading = request.reading?;
        let fits = reading.len() <= request.room.of_pieces() && u64::from(len) <= reading.rest().len;
        let at = self.core.config.rules.lands_behind(reading.come);
        let (all, len) = (reading.len(), len as usize);
        fits.then_some(Landing { id, all, at, len, head: HEADER_BYTES, in_order: true })
    }

    fn landing_of_answer(&self, id: RequestId, header: &Header, body: &[u8]) -> Option<Landing> {
        let request = self.core.requests.get(id)?;
        let value = Value::announced(header, body).ok().flatten()?;
        let (all, at) = match request.finds(self.core.config.rules, &value.meta, value.start, value.len) {
            Found::First => (value.len, 0),
            Found::Same => request.reading.map(|reading| (reading.len(), reading.come))?,
            Found::Other => return None,
        };
        let (len, head) = (usize::try_from(value.len).ok()?, HEADER_BYTES + VALUE_HEAD_BYTES);
        (all <= request.room.of_any()).then_some(Landing { id, all, at, len, head, in_order: false })
    }

    /// The rest of a frame that begins with `head` has come: the bytes that were received where [`Self::landing`] has said. None if it says
    /// so no more: they were thrown away.
    pub fn landed(&mut self, now: Time, conn: ConnId, head: &[u8], value: Option<Landed>) {
        self.core.seen = now;
        if let Err(malformed) = self.hear_landed(now, conn, head, value) {
            self.core.distrust(now, conn, malformed);
        }
    }

    fn hear_landed(
        &mut self,
        now: Time,
        conn: ConnId,
        head: &[u8],
        value: Option<Landed>,
    ) -> Result<(), Malformed> {
        let header = Header::take(head)?.ok_or(Malformed::Short)?;
        self.core.direct.note_landed(value.as_ref().map_or(0, Landed::len) as u64);
        if header.kind == Kind::Piece {
            self.core.hear_piece(now, conn, header.id, value);
            return Ok(());
        }
        let announced = Value::announced(&header, &head[HEADER_BYTES..])?.ok_or(Malformed::Short)?;
        // What nobody waits for any more still gives its credit back.
        let bytes = match value {
            Some(landed) => landed.bytes().ok_or(Malformed::Field("a value that nobody can look at"))?,
            None => bytes::Bytes::new(),
        };
        let bytes = Some(bytes);
        self.core.hear_answer(now, conn, header.id, Answer::Value(Value { bytes, ..announced }));
        Ok(())
    }
}
