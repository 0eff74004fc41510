//! What comes from one connection: frames into a buffer, and values straight to where they are wanted. Without I/O: whoever reads from the
//! connection is told where the next bytes go, and says how many have come.
//!
//! The core is asked before every read whether the frame's value is still wanted where it goes. What is wanted no more is thrown away as it
//! comes: so nobody's memory is touched once a request has ended, or is asked for elsewhere, and the connection goes on.

use bytes::{BufMut, Bytes, BytesMut};
use types::Time;

use crate::core::Core;
use crate::event::{ConnId, Landed, Landing};

/// Where callers have places for the values that they read.
pub trait Rooms {
    /// The place of a landing's bytes from `at` on, `len` of them, of which it has room for all. None = there is none.
    fn place(&mut self, landing: &Landing, at: u64, len: usize) -> Option<&mut dyn BufMut>;

    /// What lies there, all of which has been received. None = nobody waits for it any more.
    fn view(&mut self, landing: &Landing) -> Option<Landed>;
}

/// See the module.
#[derive(Debug)]
pub struct Intake {
    conn: ConnId,
    input: BytesMut,
    under_way: Option<UnderWay>,
}

/// A frame whose value is received where it is wanted.
#[derive(Debug)]
struct UnderWay {
    landing: Landing,
    head: Bytes,
    filled: usize,
    is_wanted: bool,
}

/// Where the next bytes of a value go.
pub enum Next<'a> {
    /// Where they are wanted.
    Place(&'a mut dyn BufMut),
    /// Nowhere: so many are to be thrown away.
    Scrap(usize),
}

impl Intake {
    /// That of a connection from which nothing has come.
    #[must_use]
    pub fn of(conn: ConnId) -> Self {
        Self { conn, input: BytesMut::new(), under_way: None }
    }

    /// Whether the next bytes belong elsewhere than into [the buffer](Self::input): [`Self::next`] says where.
    #[must_use]
    pub fn lands(&self) -> bool {
        self.under_way.is_some()
    }

    /// What has come and is no whole frame yet.
    pub fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// The core hears what is in the buffer, but for a frame whose value has a place: that goes on there. Whether there is one.
    pub fn hear(&mut self, now: Time, core: &mut Core, rooms: &mut impl Rooms) -> bool {
        core.received(now, self.conn, &mut self.input);
        let Some(landing) = core.receiving().landing(self.conn, &self.input) else { return false };
        let Some(place) = rooms.place(&landing, landing.at, landing.len) else { return false };
        let head = self.input.split_to(landing.head).freeze();
        let here = self.input.split_to(landing.len.min(self.input.len()));
        place.put_slice(&here);
        self.under_way = Some(UnderWay { landing, head, filled: here.len(), is_wanted: true });
        true
    }

    /// Where the next bytes go, while it [lands](Self::lands). To be asked before each read.
    pub fn next<'a>(&mut self, core: &mut Core, rooms: &'a mut impl Rooms) -> Next<'a> {
        let Some(UnderWay { landing, head, filled, is_wanted }) = &mut self.under_way else {
            return Next::Scrap(0);
        };
        *is_wanted &= core.receiving().still_lands(self.conn, head, landing);
        let (at, left) = (landing.at + *filled as u64, landing.len - *filled);
        match Some(rooms).filter(|_| *is_wanted).and_then(|rooms| rooms.place(landing, at, left)) {
            Some(place) => Next::Place(place),
            None => {
                *is_wanted = false;
                Next::Scrap(left)
            }
        }
    }

    /// So many bytes have come where [`Self::next`] said.
    pub fn came(&mut self, bytes: usize) {
        if let Some(under_way) = &mut self.under_way {
            under_way.filled += bytes;
        }
    }

    /// The core hears of a frame whose value is where it belongs, if that is so by now.
    pub fn hear_landed(&mut self, now: Time, core: &mut Core, rooms: &mut impl Rooms) {
        let is_whole = |it: &mut UnderWay| it.filled >= it.landing.len;
        let Some(UnderWay { landing, head, is_wanted, .. }) = self.under_way.take_if(is_whole) else {
            return;
        };
        let value = if is_wanted { rooms.view(&landing) } else { None };
        core.receiving().landed(now, self.conn, &head, value);
    }
}
