//! A value that is written bit by bit.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use client_core::Error;
use tokio::io::AsyncWrite;

use crate::upload::Upload;
use crate::value::{Stored, to_io};

/// Bytes that are gathered before they go on their way.
const PIECE_BYTES: usize = 64 * 1024;

/// A value of a known length that is written as a stream. It is stored by `shutdown`, or [`Self::finish`], and not before: dropped without, or
/// shut down when bytes are missing, nothing is stored. As with other writers, to flush it does not store it.
///
/// What fails with [`io::Error`] has an [`Error`] inside (`get_ref`, `downcast_ref`) if it was the cluster, or the way there, that failed: after
/// [`Error::Interrupted`] all of the value may be written to another writer.
pub struct Writer {
    /// None when nothing more can come of it.
    upload: Option<Upload>,
    /// How long the value is to be, and how many of its bytes have been written here.
    len: u64,
    written: u64,
    /// The last of those. They are held back until there are more, or all are there: with its last byte a value is stored.
    piece: BytesMut,
    stored: Option<Stored>,
}

impl Writer {
    /// Writes what `upload` is to be given.
    pub(crate) fn over(upload: Upload) -> Self {
        let (len, upload) = (upload.len(), Some(upload));
        Self { upload, len, written: 0, piece: BytesMut::new(), stored: None }
    }

    /// How many bytes have been written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What became of the value, once it has been shut down without an error: its version, or which condition did not hold.
    #[must_use]
    pub fn stored(&self) -> Option<Stored> {
        self.stored
    }

    /// Shuts it down: what became of the value.
    ///
    /// # Errors
    /// It was not stored, for another reason than its condition, or nobody knows; of the kind `UnexpectedEof` if bytes are missing.
    pub async fn finish(mut self) -> io::Result<Stored> {
        poll_fn(|cx| self.poll_finish(cx)).await
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Stored>> {
        if let Some(stored) = self.stored {
            return Poll::Ready(Ok(stored));
        }
        if self.written < self.len {
            self.upload = None;
            let text = format!("{} of {} bytes were written: nothing is stored", self.written, self.len);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, text)));
        }
        let stored = ready!(self.poll_commit(cx));
        self.upload = None;
        self.stored = stored.ok();
        Poll::Ready(stored.map_err(to_io))
    }

    fn poll_commit(&mut self, cx: &mut Context<'_>) -> Poll<Result<Stored, Error>> {
        ready!(self.poll_hand_on(cx))?;
        let Some(upload) = &mut self.upload else { return Poll::Ready(Err(Error::Closed)) };
        upload.end();
        upload.poll_outcome(cx)
    }

    /// What has been gathered goes on its way, when there is room.
    fn poll_hand_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(upload) = &mut self.upload else { return Poll::Ready(Err(Error::Closed)) };
        if !self.piece.is_empty() {
            ready!(upload.poll_room(cx))?;
            upload.give(self.piece.split().freeze());
        }
        Poll::Ready(Ok(()))
    }

    /// Gathers what fits of `bytes`, of which there are not more than the value lacks.
    fn gather(&mut self, bytes: &[u8]) -> usize {
        if self.piece.capacity() == 0 {
            let lacks = usize::try_from(self.len - self.written).unwrap_or(PIECE_BYTES);
            self.piece.reserve(lacks.min(PIECE_BYTES));
        }
        let len = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..len]);
        self.written += len as u64;
        len
    }
}

impl AsyncWrite for Writer {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.len() as u64 > self.len - self.written {
            self.upload = None;
            let text = format!("a value of {} bytes was announced: nothing is stored", self.len);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        if self.piece.len() == PIECE_BYTES || self.upload.is_none() {
            let handed_on = ready!(self.poll_hand_on(cx));
            if let Err(error) = handed_on {
                self.upload = None;
                return Poll::Ready(Err(to_io(error)));
            }
        }
        Poll::Ready(Ok(self.gather(bytes)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nobody sees a value before its end, and what is held back has to be.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_finish(cx).map_ok(drop)
    }
}
