//! Scans: which keys a data role has, a page at a time.

use bytes::Bytes;
use types::{NamespaceId, Scan, ScanBound, ScanPage, Slot};

use crate::fields::{Fields, Malformed, Put};
use crate::frame::{Kind, MAX_BODY_BYTES, MAX_DEADLINE_MS, put_frame};

/// The longest page fits into a frame.
const _: () = assert!(1 + 8 + 2 + 2 + types::MAX_PAGE_KEYS * (1 + types::MAX_KEY_BYTES) <= MAX_BODY_BYTES);

/// The next keys of a data role are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanAsk {
    /// The server does not begin it when it has had it for so many milliseconds; 0 = whenever it can.
    pub deadline_ms: u32,
    /// Which ones.
    pub scan: Scan,
}

impl ScanAsk {
    /// Whether it came too late to be begun, where it has waited for so long.
    #[must_use]
    pub fn is_late(&self, waited_us: u64) -> bool {
        self.deadline_ms > 0 && waited_us > u64::from(self.deadline_ms) * 1000
    }

    /// Appends the frame.
    pub fn put(&self, id: u64, out: &mut Vec<u8>) {
        let Scan { namespace, slot, from, prefix, keys, bytes } = &self.scan;
        put_frame((Kind::Scan, 0, id), 0, out, |out| {
            out.put_u32(namespace.0);
            out.put_u32(self.deadline_ms);
            out.put_u32(slot.0);
            out.put_u64(from.number());
            out.put_u16(*keys);
            out.put_u32(*bytes);
            // It is no longer than a key.
            out.put_u8(prefix.len() as u8);
            out.extend_from_slice(prefix);
        });
    }

    pub(crate) fn take(body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let (namespace, deadline_ms) = (NamespaceId(fields.u32()?), fields.u32()?);
        let (slot, from) = (Slot(fields.u32()?), fields.u64()?);
        let from = ScanBound::new(from).ok_or(Malformed::Field("the bound"))?;
        let (keys, bytes, len) = (fields.u16()?, fields.u32()?, usize::from(fields.u8()?));
        let prefix = fields.bytes(len)?;
        fields.end()?;
        let scan = Scan { namespace, slot, from, prefix, keys, bytes };
        if deadline_ms > MAX_DEADLINE_MS || !scan.is_possible() {
            return Err(Malformed::Field("what is to be scanned"));
        }
        Ok(Self { deadline_ms, scan })
    }
}

pub(crate) fn put_page(page: &ScanPage, out: &mut Vec<u8>) {
    out.put_u64(page.next.map_or(ScanBound::END, ScanBound::number));
    out.put_u16(page.damaged);
    // There are at most `MAX_PAGE_KEYS`, of at most 250 bytes.
    out.put_u16(page.keys.len() as u16);
    for key in &page.keys {
        out.put_u8(key.len() as u8);
        out.extend_from_slice(key);
    }
}

pub(crate) fn take_page(fields: &mut Fields) -> Result<ScanPage, Malformed> {
    let next = match fields.u64()? {
        ScanBound::END => None,
        number => Some(ScanBound::new(number).ok_or(Malformed::Field("the bound"))?),
    };
    let damaged = fields.u16()?;
    let count = usize::from(fields.u16()?);
    let keys = fields.list(count, |fields| {
        let len = usize::from(fields.u8()?);
        fields.bytes(len)
    })?;
    let page = ScanPage { keys, next, damaged };
    if page.is_possible() { Ok(page) } else { Err(Malformed::Field("a page of keys")) }
}
