//! Buffers of a process, which it lends to its reads: values are received there, and when a read is over its buffer is the process's again,
//! which writes to it and lends it to the next one.
//!
//! Where a request's buffer was is never forgotten, so that nothing but the core's word keeps bytes out of it that come too late.

use std::collections::BTreeMap;

use bytes::buf::Limit;
use bytes::{BufMut, Bytes};
use client_core::{Landed, Landing, RequestId, Rooms};

use crate::stage::book::Broken;

/// How many a process has.
const BUFFERS: usize = 3;
/// What a process writes to a buffer that it has back.
const ITS_OWN: u8 = 0xa5;

/// See the module.
pub(crate) struct Buffers {
    all: Vec<Buffer>,
    /// Which one a request has, or had.
    of: BTreeMap<RequestId, usize>,
    /// What is being received, and where it goes.
    gap: Limit<Vec<u8>>,
    goes: Option<(Landing, u64)>,
    /// Whether what comes next in order is kept, and not looked at.
    keeps: bool,
}

#[derive(Default)]
struct Buffer {
    memory: Vec<u8>,
    lent: Option<RequestId>,
    /// So many bytes from the start on are the value's.
    filled: usize,
    /// What was received, and where it lies.
    views: Vec<(u64, Bytes)>,
}

impl Default for Buffers {
    fn default() -> Self {
        let all = (0..BUFFERS).map(|_| Buffer::default()).collect();
        Self { all, of: BTreeMap::new(), gap: Vec::new().limit(0), goes: None, keeps: false }
    }
}

impl Buffers {
    /// Lends one of so many bytes to a request; false if all are lent. Or the rule that was broken while the process had it.
    pub(crate) fn lend(&mut self, id: RequestId, len: usize) -> Result<bool, Broken> {
        let Some(at) = self.all.iter().position(|buffer| buffer.lent.is_none()) else { return Ok(false) };
        let buffer = &mut self.all[at];
        buffer.is_its_own()?;
        *buffer = Buffer { memory: std::mem::take(&mut buffer.memory), lent: Some(id), ..Buffer::default() };
        buffer.memory.resize(len, 0);
        self.of.insert(id, at);
        Ok(true)
    }

    /// How long the buffer is that a request has.
    pub(crate) fn room(&self, id: RequestId) -> Option<u64> {
        self.buffer(id).map(|buffer| buffer.memory.len() as u64)
    }

    /// Takes a buffer back that is shorter than its request's value; whether it is.
    pub(crate) fn refuses(&mut self, id: RequestId, len: u64) -> bool {
        let buffer = self.lent_to(id).filter(|buffer| (buffer.memory.len() as u64) < len);
        buffer.map(Buffer::is_back).is_some()
    }

    fn buffer(&self, id: RequestId) -> Option<&Buffer> {
        self.of.get(&id).map(|at| &self.all[*at]).filter(|buffer| buffer.lent == Some(id))
    }

    fn lent_to(&mut self, id: RequestId) -> Option<&mut Buffer> {
        let at = *self.of.get(&id)?;
        Some(&mut self.all[at]).filter(|buffer| buffer.lent == Some(id))
    }

    /// The next bytes of a request's value.
    pub(crate) fn fill(&mut self, id: RequestId, bytes: &Bytes) {
        if let Some(buffer) = self.lent_to(id) {
            buffer.fill(bytes);
        }
    }

    /// The next bytes of a request's value are where they were received: they.
    pub(crate) fn keep(&mut self, id: RequestId, len: usize) -> Option<&[u8]> {
        let buffer = self.lent_to(id)?;
        let start = buffer.filled;
        buffer.filled += len;
        buffer.memory.get(start..start + len)
    }

    /// A request is over, which has come to this value if it has: the same as it lies in its buffer, which is the process's again. Or the
    /// rule that was broken.
    pub(crate) fn take_back(
        &mut self,
        id: RequestId,
        told: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, Broken> {
        let Some(buffer) = self.lent_to(id) else { return Ok(None) };
        let value = told.map(|_| buffer.memory[..buffer.filled].to_vec());
        let is_it = value.as_deref() == told;
        buffer.is_back();
        if is_it {
            return Ok(value);
        }
        Err(("landing", format!("the buffer of {id:?} has other bytes than its value")))
    }

    /// Bytes have been received: they lie where they were to go, so many. Or the rule that is broken by that.
    pub(crate) fn settle(&mut self) -> Result<u64, Broken> {
        let Some((landing, at)) = self.goes.take() else { return Ok(0) };
        let bytes = std::mem::take(self.gap.get_mut());
        let broken = |what| Err(("landing", format!("{} bytes of {:?} {what}", bytes.len(), landing.id)));
        let buffer = self.of.get(&landing.id).map(|at| &mut self.all[*at]);
        let Some(buffer) = buffer else { return broken("come though it has lent no buffer") };
        let place = buffer.memory.get_mut(at as usize..at as usize + bytes.len());
        let Some(place) = place else { return broken("come where its buffer has ended") };
        place.copy_from_slice(&bytes);
        Ok(bytes.len() as u64)
    }

    /// At the end nobody has written to what is the process's.
    pub(crate) fn are_its_own(&self) -> Result<(), Broken> {
        self.all.iter().filter(|buffer| buffer.lent.is_none()).try_for_each(Buffer::is_its_own)
    }
}

impl Buffer {
    fn is_its_own(&self) -> Result<(), Broken> {
        if self.memory.iter().all(|byte| *byte == ITS_OWN) {
            return Ok(());
        }
        Err(("landing", "bytes of a request that is over were written to its former buffer".to_owned()))
    }

    fn is_back(&mut self) {
        self.memory.fill(ITS_OWN);
        self.lent = None;
    }

    /// What lies where it belongs is not copied there, as in clients: if it was overwritten since, that shows.
    fn fill(&mut self, bytes: &Bytes) {
        let (start, len) = (self.filled, bytes.len());
        self.filled += len;
        let from = bytes.as_ptr() as usize;
        let lies_there = self.views.iter().any(|(at, view)| {
            let begins = view.as_ptr() as usize;
            let is_part = begins <= from && from + len <= begins + view.len();
            is_part && *at as usize + (from - begins) == start
        });
        if !lies_there && let Some(place) = self.memory.get_mut(start..start + len) {
            place.copy_from_slice(bytes);
        }
    }
}

impl Rooms for Buffers {
    fn place(&mut self, landing: &Landing, at: u64, len: usize) -> Option<&mut dyn BufMut> {
        (self.gap, self.goes) = (Vec::new().limit(len), Some((*landing, at)));
        Some(&mut self.gap)
    }

    fn view(&mut self, landing: &Landing) -> Option<Landed> {
        self.keeps = !self.keeps;
        if landing.in_order && self.keeps {
            return self.lent_to(landing.id).map(|_| Landed::Kept(landing.len));
        }
        let buffer = self.lent_to(landing.id)?;
        let at = landing.at as usize;
        let view = Bytes::copy_from_slice(buffer.memory.get(at..at + landing.len)?);
        buffer.views.push((landing.at, view.clone()));
        Some(Landed::Bytes(view))
    }
}
