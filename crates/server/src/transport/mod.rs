//! How bytes travel between processes: listening, connecting, reading, writing. Today that is TCP, and nobody outside this room knows.
//!
//! | name | what it is |
//! | --- | --- |
//! | [`Listener`] | where connections come from |
//! | [`Stream`] | a connection, in both directions; hyper takes it as it is |
//! | [`Reader`], [`Writer`] | its halves, each with what the hot paths call |
//! | [`DetachedListener`], [`DetachedStream`] | the same without a runtime, on their way between two threads |
//! | [`Tuning`] | how the system is to treat a connection |
//!
//! The types are no traits: which transport a connection has is decided when it is made, and each call is a match with one arm a
//! transport. With TCP alone that is no instruction.
//!
//! What users may rely on is what an encrypted transport and one of registered buffers can keep, too:
//!
//! - A reader puts bytes behind what a buffer holds. It may have read more from the system than it has given.
//! - A writer takes as many bytes as it can now, and copies them if it needs them for longer. What it has taken and the system has not
//!   is *held*, a record of it or so: whoever writes asks for that, and goes on until nothing is. TCP holds nothing.
//! - A writer that is ready holds nothing and takes more. Its task is woken when that may have changed, be it by readiness or by
//!   completion.
//! - A writer that is dropped ends its direction. Who has more to say than that says it before.
//!
//! A second transport is a second variant in `stream`, `reader` and `writer`, as `memory` shows, and a choice at [`listen`] and
//! [`Stream::connect`].

mod listener;
#[cfg(test)]
mod memory;
mod reader;
mod stream;
#[cfg(test)]
mod tests;
mod tuning;
mod writer;

#[cfg(test)]
pub(crate) use listener::tests::on_loopback;
pub(crate) use listener::{DetachedListener, Listener, listen};
#[cfg(test)]
pub(crate) use memory::in_memory;
pub(crate) use reader::Reader;
pub(crate) use stream::{DetachedStream, Stream};
pub(crate) use tuning::Tuning;
pub(crate) use writer::Writer;
