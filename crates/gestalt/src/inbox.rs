//! What comes from one connection: frames into a buffer, and values straight to where they are wanted.
//!
//! While somebody waits for a value that has a place, no more is read at once than heads of frames take; of a frame whose value goes there
//! the rest is received there, under the lock of the core, which is asked before each read whether that is still so. What is wanted no more
//! is thrown away as it comes: so nobody's memory is touched once a request has ended, and the connection goes on.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use client_core::{ConnId, Core, Landing, RequestId};
use native::Decoder;
use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::OwnedReadHalf;
use types::Time;

use crate::shell::Sink;

/// Bytes that one read asks for, and those of one after which it is to be known where the next ones go.
const READ_BYTES: usize = 64 * 1024;
const HEAD_BYTES: usize = 512;
/// Bytes that are thrown away at once.
const SCRAP_BYTES: usize = 16 * 1024;

/// Who waits for what.
pub(crate) type Sinks = BTreeMap<RequestId, Box<dyn Sink>>;

/// See the module.
pub(crate) struct Inbox {
    conn: ConnId,
    input: BytesMut,
    under_way: Option<UnderWay>,
    /// What the next read asks for while values are awaited: more and more as long as only other frames come.
    step: usize,
}

/// A frame whose value is received where it is wanted.
struct UnderWay {
    landing: Landing,
    head: Bytes,
    filled: usize,
    is_wanted: bool,
}

impl Inbox {
    pub(crate) fn of(conn: ConnId) -> Self {
        Self { conn, input: BytesMut::new(), under_way: None, step: HEAD_BYTES }
    }

    /// Whether the next bytes belong elsewhere than into the buffer.
    pub(crate) fn lands(&self) -> bool {
        self.under_way.is_some()
    }

    /// Reads into the buffer: how many bytes; 0 = no more come. `awaits_values` is what the core says.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut OwnedReadHalf,
        awaits_values: bool,
    ) -> Poll<io::Result<usize>> {
        // What a frame lacks is read at once.
        let most = if awaits_values { self.step.max(Decoder::wanted(&self.input)) } else { READ_BYTES };
        if self.input.capacity() - self.input.len() < most {
            self.input.reserve(most.max(READ_BYTES));
        }
        let came = ready!(poll_into(cx, reader, &mut (&mut self.input).limit(most)))?;
        if most == self.step {
            let next = if came == most { 2 * most } else { most / 2 };
            self.step = next.clamp(HEAD_BYTES, READ_BYTES);
        }
        Poll::Ready(Ok(came))
    }

    /// The core hears what is in the buffer, but for a frame whose value has a place: that goes on there.
    pub(crate) fn hear(&mut self, now: Time, core: &mut Core, sinks: &mut Sinks) {
        core.received(now, self.conn, &mut self.input);
        let Some(landing) = core.receiving().landing(self.conn, &self.input) else { return };
        let sink = sinks.get_mut(&landing.id);
        let Some(place) = sink.and_then(|sink| sink.place(landing.all, landing.at, landing.len)) else {
            return;
        };
        let head = self.input.split_to(landing.head).freeze();
        let here = self.input.split_to(landing.len.min(self.input.len()));
        place.put_slice(&here);
        self.under_way = Some(UnderWay { landing, head, filled: here.len(), is_wanted: true });
        self.step = HEAD_BYTES;
    }

    /// Reads where the value goes, if it still does: how many bytes; 0 = no more come.
    pub(crate) fn poll_land(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut OwnedReadHalf,
        core: &mut Core,
        sinks: &mut Sinks,
    ) -> Poll<io::Result<usize>> {
        let Some(UnderWay { landing, head, filled, is_wanted }) = &mut self.under_way else {
            return Poll::Ready(Ok(0));
        };
        *is_wanted &= core.receiving().landing(self.conn, head) == Some(*landing);
        let (at, left) = (landing.at + *filled as u64, landing.len - *filled);
        let sink = sinks.get_mut(&landing.id).filter(|_| *is_wanted);
        let came = match sink.and_then(|sink| sink.place(landing.all, at, left)) {
            Some(mut place) => ready!(poll_into(cx, reader, &mut place))?,
            None => {
                *is_wanted = false;
                let mut scrap = [0; SCRAP_BYTES];
                ready!(poll_into(cx, reader, &mut &mut scrap[..left.min(SCRAP_BYTES)]))?
            }
        };
        *filled += came;
        Poll::Ready(Ok(came))
    }

    /// The core hears of a frame whose value is where it belongs, if that is so by now.
    pub(crate) fn hear_landed(&mut self, now: Time, core: &mut Core, sinks: &Sinks) {
        let is_whole = |it: &mut UnderWay| it.filled == it.landing.len;
        let Some(UnderWay { landing, head, is_wanted, .. }) = self.under_way.take_if(is_whole) else {
            return;
        };
        let sink = sinks.get(&landing.id).filter(|_| is_wanted);
        core.receiving().landed(now, self.conn, &head, sink.map(|sink| sink.view(landing.at, landing.len)));
    }
}

/// One read, of as much as there is room for.
fn poll_into(
    cx: &mut Context<'_>,
    reader: &mut OwnedReadHalf,
    into: &mut (impl BufMut + ?Sized),
) -> Poll<io::Result<usize>> {
    pin!(reader.read_buf(into)).poll(cx)
}
