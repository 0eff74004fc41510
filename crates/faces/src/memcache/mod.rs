//! The memcached text and meta protocols, to the letter of memcached 1.6.45 except where that is unsafe.
//!
//! [`Parser`] turns the bytes of one connection into [`Ask`]s; `reply` turns outcomes into bytes. Neither
//! knows a socket, a clock or a store.
//!
//! Where this face is deliberately safer than memcached:
//!
//! - A data block whose length is known is never executed as commands: after a refused storage command it is swallowed.
//! - Lengths and client flags never wrap.
//! - A key with a NUL byte is refused.
//! - The binary protocol, TLS and HTTP are closed at once, without an answer.
//! - Keys are never dumped, and nothing that tunes or stops a server is offered.
//! - Memory is never reserved by a declared length; every line and every value has a bound.
//!
//! Values that a namespace cuts into chunks are not kept here until they are whole: their command ends with its line, and whoever
//! has the connection takes the data block ([`Step::Stream`]).
//!
//! `tests/golden` has memcached's answers and every deviation from them.

mod face;
mod failure;
pub mod limits;
mod lines;
mod meta;
mod parsed;
mod parser;
pub mod reply;
mod style;
mod text;
mod tokens;
mod values;

pub use face::VERSION;
pub use failure::{Again, Effect, FailureCode};
pub use lines::Line;
pub use parsed::{Ask, Step};
pub use parser::{Access, Parser};
pub use style::{MetaStyle, MetaVerb, ReplyStyle, ReturnFlags, WithCas};

pub(crate) use tokens::split;
