//! What a connection is to send: replies are printed one behind the other, and long values that are here already are sent from where they lie.

use std::io::{self, ErrorKind};

use bytes::Bytes;
use wire::segments::{SHARED_FROM, Segments};

use crate::transport::Writer;
use crate::workers::buffers::Pool;
use crate::workers::counters::Counters;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Output(Segments);

impl Output {
    /// What is printed so far, and where more is printed.
    #[inline]
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        self.0.copied_mut()
    }

    /// Where the text ends. What was shared before is sent before.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.0.end()
    }

    /// `bytes` follow what is printed so far.
    pub(crate) fn share(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_FROM {
            self.text().extend_from_slice(&bytes);
        } else {
            self.0.share(self.end(), bytes);
        }
    }

    /// Bytes that have not been sent.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The same without the text from `end` on.
    #[inline]
    pub(crate) fn len_until(&self, end: usize) -> usize {
        self.0.len_until(end)
    }

    /// Memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() + self.0.shared_bytes()
    }

    /// Gives `socket` what comes before `end` of the text, as far as it takes it: how many bytes that were, and whether all went well.
    #[inline]
    pub(crate) fn write(
        &mut self,
        socket: &Writer,
        end: usize,
        counters: &Counters,
    ) -> (usize, io::Result<()>) {
        let mut sent = 0;
        while self.0.len_until(end) > 0 {
            counters.client_writes.inc();
            let written = match self.0.text_until(end) {
                Some(text) => socket.try_write(text),
                None => socket.try_write_vectored(&self.0.slices_until(end)),
            };
            match written {
                Ok(len) => {
                    self.0.advance(len);
                    sent += len;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return (sent, Err(error)),
            }
        }
        (sent, Ok(()))
    }

    /// Moves what comes before `end` of the text, of which nothing is shared, into `into`.
    #[cfg(feature = "bare")]
    pub(crate) fn move_text(&mut self, end: usize, into: &mut Vec<u8>) {
        let text = self.0.text_until(end).unwrap_or_default();
        into.extend_from_slice(text);
        let len = text.len();
        self.0.advance(len);
    }

    /// Forgets what has been sent, if that is enough to be worth it: by how much what is printed begins earlier.
    #[inline]
    pub(crate) fn tidy(&mut self) -> usize {
        self.0.tidy(usize::MAX)
    }

    /// Has a buffer from `pool` if it has none.
    #[inline]
    pub(crate) fn borrow(&mut self, pool: &Pool) {
        pool.lend_output(self.text());
    }

    /// Gives its buffer back if it is empty.
    #[inline]
    pub(crate) fn give_back(&mut self, pool: &Pool) {
        if self.0.is_empty() {
            pool.return_output(self.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use bytes::BytesMut;

    use super::*;
    use crate::transport;

    /// Sends what is due, until `end`, to a peer that takes a few bytes at a time: what it has read.
    async fn sent(output: &mut Output, end: usize) -> Vec<u8> {
        let [(_, writer), (mut reader, _)] = transport::in_memory(1000);
        let (counters, mut read) = (Counters::default(), BytesMut::new());
        let due = output.len_until(end);
        while read.len() < due {
            output.write(&writer, end, &counters).1.unwrap();
            tokio::select! {
                biased;
                result = reader.read(&mut read) => assert!(result.unwrap() > 0),
                result = poll_fn(|cx| writer.poll_ready(cx)) => result.unwrap(),
            }
        }
        read.to_vec()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn long_values_are_sent_in_their_places_and_what_is_held_back_stays() {
        let (first, second) = (Bytes::from(vec![1; SHARED_FROM]), Bytes::from(vec![2; 10 * SHARED_FROM]));
        let mut output = Output::default();
        output.text().extend_from_slice(b"head");
        output.share(first.clone());
        output.share(second.clone());
        output.text().extend_from_slice(b"end");
        output.share(Bytes::from_static(b"short ones are copied"));
        let end = output.end();
        output.text().extend_from_slice(b"held back");
        assert_eq!(output.memory_bytes(), output.0.capacity() + first.len() + second.len());
        let due = [b"head", &first[..], &second[..], b"end", b"short ones are copied"].concat();
        assert_eq!((output.len_until(end), output.len()), (due.len(), due.len() + 9));
        assert!(sent(&mut output, end).await == due);
        assert_eq!((output.tidy(), output.end()), (end, 9));
        assert_eq!(sent(&mut output, 9).await, b"held back");
        assert_eq!((output.tidy(), output.len(), output.end()), (9, 0, 0));
    }
}
