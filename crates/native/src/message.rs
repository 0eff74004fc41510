//! All that either side says.

use bytes::Bytes;

use crate::answer::{Answer, Code};
use crate::closing::Closing;
use crate::fields::{Fields, Malformed, Put};
use crate::frame::{Frame, Header, Kind, MAX_PIECE_BYTES, put_frame};
use crate::hello::{Hello, Welcome};
use crate::map::{RouteChanges, put_map_part};
use crate::request::Request;
use crate::scan::ScanAsk;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// Its first words.
    Hello(Hello),
    /// It has the map of this version, 0 = none, and wants what has changed since, or all of it.
    MapWanted(u64),
    /// A request, under this number.
    Request(u64, Box<Request>),
    /// Keys of a data role are wanted, under this number.
    Scan(u64, Box<ScanAsk>),
    /// Bytes of the value of a write.
    Piece(Piece),
    /// More bytes of a read may be sent.
    Window(Window),
    /// What comes of this request is of no interest any more.
    Cancel(u64),
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromServer {
    /// Its first words.
    Welcome(Welcome),
    /// Its last; about this request, or 0.
    Closing(u64, Closing),
    /// A part of a map, and whether more of it follow.
    Map(Bytes, bool),
    /// What has changed of the map.
    Changes(Box<RouteChanges>),
    /// What came of this request.
    Answer(u64, Box<Answer>),
    /// Bytes of the value of a read.
    Piece(Piece),
    /// More bytes of a write may be sent.
    Window(Window),
    /// A value in pieces is at its end: whole, or why it is not.
    End(u64, Code),
}

/// Bytes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The request.
    pub id: u64,
    /// At least one, and at most [`MAX_PIECE_BYTES`].
    pub bytes: Bytes,
}

/// A grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The request.
    pub id: u64,
    /// How many bytes more.
    pub bytes: u32,
}

impl Piece {
    /// Appends the header of a piece of `len` bytes, which follow.
    pub fn put_head(id: u64, len: usize, out: &mut Vec<u8>) {
        put_frame((Kind::Piece, 0, id), len, out, |_| ());
    }

    fn take(header: &Header, body: Bytes) -> Result<Self, Malformed> {
        let is_piece = (1..=MAX_PIECE_BYTES).contains(&body.len());
        if is_piece { Ok(Self { id: header.id, bytes: body }) } else { Err(Malformed::Field("the piece")) }
    }
}

impl Window {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_frame((Kind::Window, 0, self.id), 0, out, |out| out.put_u32(self.bytes));
    }

    fn take(header: &Header, body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let bytes = fields.u32()?;
        fields.end()?;
        Ok(Self { id: header.id, bytes })
    }
}

/// Frames other than requests and answers have no flags.
fn plain(header: &Header) -> Result<(), Malformed> {
    if header.flags == 0 { Ok(()) } else { Err(Malformed::Reserved) }
}

fn empty(body: &Bytes) -> Result<(), Malformed> {
    if body.is_empty() { Ok(()) } else { Err(Malformed::Rest) }
}

impl FromClient {
    /// What a frame says.
    ///
    /// # Errors
    /// No client may say this.
    pub fn take(frame: Frame) -> Result<Self, Malformed> {
        let Frame { header, body } = frame;
        match header.kind {
            Kind::Get
            | Kind::Store
            | Kind::Delete
            | Kind::Arith
            | Kind::Touch
            | Kind::Stat
            | Kind::Locate
            | Kind::Session
            | Kind::Fetch
            | Kind::Unpin
            | Kind::Begin
            | Kind::Put
            | Kind::Commit
            | Kind::Abandon
            | Kind::Renew => {
                Request::take(&header, body).map(|request| Self::Request(header.id, Box::new(request)))
            }
            Kind::Scan => plain(&header)
                .and_then(|()| ScanAsk::take(body))
                .map(|ask| Self::Scan(header.id, Box::new(ask))),
            Kind::Hello => Hello::take(body).map(Self::Hello),
            Kind::MapWanted => plain(&header).and_then(|()| take_version(body)).map(Self::MapWanted),
            Kind::Piece => plain(&header).and_then(|()| Piece::take(&header, body)).map(Self::Piece),
            Kind::Window => plain(&header).and_then(|()| Window::take(&header, body)).map(Self::Window),
            Kind::Cancel => plain(&header).and_then(|()| empty(&body)).map(|()| Self::Cancel(header.id)),
            Kind::Welcome | Kind::Closing | Kind::Map | Kind::MapChanges | Kind::Answer | Kind::End => {
                Err(Malformed::Kind(header.kind as u8))
            }
        }
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => hello.put(out),
            Self::MapWanted(version) => {
                put_frame((Kind::MapWanted, 0, 0), 0, out, |out| out.put_u64(*version));
            }
            Self::Request(id, request) => request.put(*id, out),
            Self::Scan(id, ask) => ask.put(*id, out),
            Self::Piece(piece) => put_piece(piece, out),
            Self::Window(window) => window.put(out),
            Self::Cancel(id) => put_frame((Kind::Cancel, 0, *id), 0, out, |_| ()),
        }
    }
}

fn put_piece(piece: &Piece, out: &mut Vec<u8>) {
    Piece::put_head(piece.id, piece.bytes.len(), out);
    out.extend_from_slice(&piece.bytes);
}

fn take_version(body: Bytes) -> Result<u64, Malformed> {
    let mut fields = Fields::of(body);
    let version = fields.u64()?;
    fields.end()?;
    Ok(version)
}

/// More parts of a map follow.
pub(crate) const MORE: u8 = 1;

impl FromServer {
    /// What a frame says.
    ///
    /// # Errors
    /// No server may say this.
    pub fn take(frame: Frame) -> Result<Self, Malformed> {
        let Frame { header, body } = frame;
        match header.kind {
            Kind::Answer => {
                Answer::take(&header, body).map(|answer| Self::Answer(header.id, Box::new(answer)))
            }
            Kind::Map if header.flags & !MORE == 0 => Ok(Self::Map(body, header.flags & MORE != 0)),
            Kind::Map => Err(Malformed::Reserved),
            Kind::Piece => plain(&header).and_then(|()| Piece::take(&header, body)).map(Self::Piece),
            Kind::Window => plain(&header).and_then(|()| Window::take(&header, body)).map(Self::Window),
            Kind::End => plain(&header).and_then(|()| take_end(body)).map(|code| Self::End(header.id, code)),
            Kind::Welcome => Welcome::take(body).map(Self::Welcome),
            Kind::Closing => plain(&header)
                .and_then(|()| Closing::take(body))
                .map(|closing| Self::Closing(header.id, closing)),
            Kind::MapChanges => plain(&header)
                .and_then(|()| RouteChanges::take(body))
                .map(|changes| Self::Changes(Box::new(changes))),
            Kind::Hello
            | Kind::MapWanted
            | Kind::Get
            | Kind::Store
            | Kind::Delete
            | Kind::Arith
            | Kind::Touch
            | Kind::Stat
            | Kind::Locate
            | Kind::Session
            | Kind::Fetch
            | Kind::Unpin
            | Kind::Begin
            | Kind::Put
            | Kind::Commit
            | Kind::Abandon
            | Kind::Renew
            | Kind::Scan
            | Kind::Cancel => Err(Malformed::Kind(header.kind as u8)),
        }
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Welcome(welcome) => welcome.put(out),
            Self::Closing(id, closing) => closing.put(*id, out),
            Self::Map(part, more) => put_map_part(part, *more, out),
            Self::Changes(changes) => changes.put(out),
            Self::Answer(id, answer) => answer.put(*id, out),
            Self::Piece(piece) => put_piece(piece, out),
            Self::Window(window) => window.put(out),
            Self::End(id, code) => {
                put_frame((Kind::End, 0, *id), 0, out, |out| out.put_u8(*code as u8));
            }
        }
    }
}

fn take_end(body: Bytes) -> Result<Code, Malformed> {
    let mut fields = Fields::of(body);
    let code = Code::of(fields.u8()?).ok_or(Malformed::Field("the code"))?;
    fields.end()?;
    Ok(code)
}
