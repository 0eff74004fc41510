//! What a card can do at all: copies.
#![allow(unsafe_code)] // Copies between buffers of this function.

use crate::driver::{Mark, Memory, Pinned, Stream};
use crate::{CudaError, Device};

/// How often each copy is made; the best counts.
const TRIES: usize = 5;

/// Bytes a second, each byte counted once, by the card's own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyRates {
    /// From page-locked memory of the host to the card.
    pub host_to_device: f64,
    /// From the card to page-locked memory of the host.
    pub device_to_host: f64,
    /// Each way, while copies go both ways.
    pub both_ways: f64,
    /// From the card's memory to the card's memory: each byte is read and written.
    pub device_to_device: f64,
}

impl Device {
    /// Copies `len` bytes each way.
    ///
    /// # Errors
    /// `OutOfMemory`; the driver's.
    pub fn copy_rates(&self, len: usize) -> Result<CopyRates, CudaError> {
        let context = self.context();
        let stream = context.new_stream()?;
        let mut host = context.allocate_pinned(len)?;
        let (from, to) = (context.allocate(len)?, context.allocate(len)?);
        let mut best = [f64::INFINITY; 3];
        for _ in 0..TRIES {
            let (marks, copied) = copies(&stream, &mut host, &from, &to);
            stream.wait().and(copied)?;
            for (best, pair) in best.iter_mut().zip(marks.windows(2)) {
                *best = best.min(pair[0].seconds_to(&pair[1])?);
            }
        }
        let both = self.exchange_seconds(len, len)?;
        let rate = |seconds: f64| len as f64 / seconds;
        let [host_to_device, device_to_device, device_to_host] = best.map(rate);
        Ok(CopyRates { host_to_device, device_to_host, both_ways: rate(both), device_to_device })
    }

    /// The seconds that copying `inwards` bytes to the card takes while `outwards` bytes are copied from it, until both are done.
    ///
    /// # Errors
    /// `OutOfMemory`; the driver's.
    pub fn exchange_seconds(&self, inwards: usize, outwards: usize) -> Result<f64, CudaError> {
        let context = self.context();
        let (there, back) = (context.new_stream()?, context.new_stream()?);
        let (host, mut other) = (context.allocate_pinned(inwards)?, context.allocate_pinned(outwards)?);
        let (to, from) = (context.allocate(inwards)?, context.allocate(outwards)?);
        let mut best = f64::INFINITY;
        for _ in 0..TRIES {
            let copied = opposite(&there, &back, &host, &mut other, &to, &from);
            let (waited, waited_back) = (there.wait(), back.wait());
            let (begin, ends) = copied?;
            waited.and(waited_back)?;
            best = best.min(begin.seconds_to(&ends[0])?.max(begin.seconds_to(&ends[1])?));
        }
        Ok(best)
    }
}

/// Copies in on one stream and out on another, and marks where both begin and where each ends.
fn opposite(
    there: &Stream,
    back: &Stream,
    host: &Pinned,
    other: &mut Pinned,
    to: &Memory,
    from: &Memory,
) -> Result<(Mark, [Mark; 2]), CudaError> {
    let begin = there.mark()?;
    // SAFETY: `host` and `to` are of one length, and stay until the caller has waited for both streams.
    unsafe { there.copy_in(to.address(), host.bytes()) }?;
    // SAFETY: so are `other` and `from`.
    unsafe { back.copy_out(other.bytes_mut(), from.address()) }?;
    Ok((begin, [there.mark()?, back.mark()?]))
}

/// Copies in, within and out, and marks before, between and after.
fn copies(
    stream: &Stream,
    host: &mut Pinned,
    from: &Memory,
    to: &Memory,
) -> (Vec<Mark>, Result<(), CudaError>) {
    let mut marks = Vec::new();
    let mut copy = || {
        marks.push(stream.mark()?);
        // SAFETY: all are of one length, and stay until the caller has waited for the stream.
        unsafe { stream.copy_in(from.address(), host.bytes()) }?;
        marks.push(stream.mark()?);
        // SAFETY: as above.
        unsafe { stream.copy_within(to.address(), from.address(), from.len()) }?;
        marks.push(stream.mark()?);
        // SAFETY: as above.
        unsafe { stream.copy_out(host.bytes_mut(), to.address()) }?;
        marks.push(stream.mark()?);
        Ok(())
    };
    let copied = copy();
    (marks, copied)
}
