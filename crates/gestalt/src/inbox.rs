//! What comes from one connection (`client_core::Intake`), read from its socket.
//!
//! While somebody waits for a value that has a place, no more is read at once than heads of frames take; of a frame whose value goes there
//! the rest is received there, under the lock of the core.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use client_core::{ConnId, Core, Intake, Landed, Landing, Next, RequestId, Rooms};
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
#[derive(Default)]
pub(crate) struct Sinks(pub BTreeMap<RequestId, Box<dyn Sink>>);

impl Rooms for Sinks {
    fn place(&mut self, landing: &Landing, at: u64, len: usize) -> Option<&mut dyn BufMut> {
        self.0.get_mut(&landing.id)?.place(landing.all, at, len)
    }

    fn view(&mut self, landing: &Landing) -> Option<Landed> {
        Some(self.0.get(&landing.id)?.view(landing.at, landing.len))
    }
}

/// See the module.
pub(crate) struct Inbox {
    intake: Intake,
    /// What the next read asks for while values are awaited: more and more as long as only other frames come.
    step: usize,
}

impl Inbox {
    pub(crate) fn of(conn: ConnId) -> Self {
        Self { intake: Intake::of(conn), step: HEAD_BYTES }
    }

    /// Whether the next bytes belong elsewhere than into the buffer.
    pub(crate) fn lands(&self) -> bool {
        self.intake.lands()
    }

    /// Reads into the buffer: how many bytes; 0 = no more come. `awaits_values` is what the core says.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut OwnedReadHalf,
        awaits_values: bool,
    ) -> Poll<io::Result<usize>> {
        let input = self.intake.input();
        // What a frame lacks is read at once.
        let most = if awaits_values { self.step.max(Decoder::wanted(input)) } else { READ_BYTES };
        if input.capacity() - input.len() < most {
            input.reserve(most.max(READ_BYTES));
        }
        let came = ready!(poll_into(cx, reader, &mut input.limit(most)))?;
        if most == self.step {
            let next = if came == most { 2 * most } else { most / 2 };
            self.step = next.clamp(HEAD_BYTES, READ_BYTES);
        }
        Poll::Ready(Ok(came))
    }

    /// The core hears what is in the buffer, or what has been received elsewhere.
    pub(crate) fn hear(&mut self, now: Time, core: &mut Core, sinks: &mut Sinks) {
        if self.intake.lands() {
            self.intake.hear_landed(now, core, sinks);
        } else if self.intake.hear(now, core, sinks) {
            self.step = HEAD_BYTES;
        }
    }

    /// Reads where the value goes, if it still does: how many bytes; 0 = no more come.
    pub(crate) fn poll_land(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut OwnedReadHalf,
        core: &mut Core,
        sinks: &mut Sinks,
    ) -> Poll<io::Result<usize>> {
        let came = match self.intake.next(core, sinks) {
            Next::Place(mut place) => ready!(poll_into(cx, reader, &mut place))?,
            Next::Scrap(left) => {
                let mut scrap = [0; SCRAP_BYTES];
                ready!(poll_into(cx, reader, &mut &mut scrap[..left.min(SCRAP_BYTES)]))?
            }
        };
        self.intake.came(came);
        Poll::Ready(Ok(came))
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
