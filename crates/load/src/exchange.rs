//! One connection's requests and answers, in the protocol that it speaks.

use crate::frames::Frames;
use crate::protocol::{Answer, Broken, Material, Pending, Protocol};
use crate::socket::Socket;
use crate::text::Lines;
use crate::values::{Checking, Values};

/// See the module.
pub(crate) enum Exchange {
    Lines(Lines),
    Frames(Box<Frames>),
}

impl Exchange {
    pub(crate) fn new(protocol: Protocol, checking: Checking) -> Self {
        match protocol {
            Protocol::Text(text) => Self::Lines(Lines::new(text)),
            Protocol::Native(naming) => Self::Frames(Box::new(Frames::new(naming, checking))),
        }
    }

    /// The connection begins.
    pub(crate) fn greet(&mut self, out: &mut Vec<u8>) {
        if let Self::Frames(frames) = self {
            frames.greet(out);
        }
    }

    /// How many requests are waited for.
    pub(crate) fn waiting(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.waiting(),
            Self::Frames(frames) => frames.waiting(),
        }
    }

    /// Whether the server takes one more.
    pub(crate) fn has_credit(&self) -> bool {
        match self {
            Self::Lines(_) => true,
            Self::Frames(frames) => frames.has_credit(),
        }
    }

    /// When the oldest of them was sent.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        match self {
            Self::Lines(lines) => lines.oldest_ns(),
            Self::Frames(frames) => frames.oldest_ns(),
        }
    }

    /// Asks for what `pending` says, of `key`.
    pub(crate) fn ask(&mut self, out: &mut Vec<u8>, key: &[u8], pending: Pending, of: &Material<'_>) {
        match self {
            Self::Lines(lines) => lines.ask(out, key, pending, of),
            Self::Frames(frames) => frames.ask(out, key, pending, of),
        }
    }

    /// Hears all whole answers that have come.
    pub(crate) fn receive(
        &mut self,
        socket: &mut Socket,
        values: &Values,
        heard: &mut dyn FnMut(&Pending, Answer<'_>),
    ) -> Result<(), Broken> {
        match self {
            Self::Lines(lines) => lines.receive(socket, heard),
            Self::Frames(frames) => frames.receive(socket, values, heard),
        }
    }

    /// The connection is lost: what it waited for.
    pub(crate) fn abandon(&mut self) -> Vec<Pending> {
        match self {
            Self::Lines(lines) => lines.abandon(),
            Self::Frames(frames) => frames.abandon(),
        }
    }

    /// Writes that should have had names, and had none.
    pub(crate) fn nameless(&self) -> u64 {
        match self {
            Self::Lines(_) => 0,
            Self::Frames(frames) => frames.nameless(),
        }
    }
}
