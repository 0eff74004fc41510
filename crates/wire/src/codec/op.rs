//! Requests and outcomes.

use bytes::Bytes;
use types::{ClientSession, MAX_ITEM_KEY_BYTES, MAX_PAGE_KEYS, Once, Scan, ScanBound, ScanPage, UnixSeconds};

use super::{BadBody, Entry, Reader, Wire, Writer, wire_choice, wire_enum, wire_newtypes, wire_struct};
use types::op::{
    Arith, Begin, Bump, Claim, Commit, Condition, Delete, Departure, Direction, Expect, Expiry, Failure,
    Flush, FlushAt, Get, ItemView, Key, Object, ObjectOp, Op, Outcome, Request, Store, StoreMode, Transfer,
    Unpin, Via, Want,
};

wire_newtypes!(UnixSeconds, ClientSession);

/// What is for a whole role has no key, which is written as one of no bytes; everything else has one. What is done once has its name behind a number
/// in the place of an operation's, and so has the way that is not the usual one, so that what has neither is written as if there were none.
impl Wire for Request {
    fn put(&self, out: &mut Writer<'_>) {
        out.count(self.key_bytes().len(), MAX_KEY_LEN);
        out.bytes(self.key_bytes());
        if let Some(via) = &self.via {
            VIA.put(out);
            via.put(out);
        }
        if let Some(once) = &self.once {
            NAMED.put(out);
            once.put(out);
        }
        self.op.put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let bytes = Bytes::take(from)?;
        let via = if from.skip_if(VIA) { Some(<Box<Via> as Wire>::take(from)?) } else { None };
        let once = if from.skip_if(NAMED) { Some(<Box<Once> as Wire>::take(from)?) } else { None };
        let op = Op::take(from)?;
        match op {
            Op::Flush(_) | Op::Scan(_) | Op::Expect(_) if bytes.is_empty() && once.is_none() => {
                Ok(Self { key: None, op, once, via })
            }
            Op::Flush(_) | Op::Scan(_) | Op::Expect(_) => Err(BadBody::Key),
            _ if once.is_some() && !op.can_be_done_once() => Err(BadBody::Range),
            op => Ok(Self { key: Some(Key::received(bytes).map_err(|_| BadBody::Key)?), op, once, via }),
        }
    }
}

/// In the place of an operation's number.
const NAMED: u8 = 0xff;
/// The same, before that.
const VIA: u8 = 0xfe;

const MAX_KEY_LEN: u32 = MAX_ITEM_KEY_BYTES as u32;

wire_enum!(Op {
    0 => Get { 0: get },
    1 => Store { 0: store },
    2 => Delete { 0: delete },
    3 => Arith { 0: arith },
    4 => Touch { 0: expiry },
    5 => Debug {},
    6 => Flush { 0: flush },
    7 => Object { 0: object },
    8 => Session {},
    9 => Scan { 0: scan },
    10 => Expect { 0: expect },
});
wire_enum!(Via { 0 => Departed { 0: departure }, 1 => Transfer { 0: transfer } });
wire_struct!(Transfer { expected, departure, stale, win_sent });
wire_struct!(Departure { number, wall });
wire_struct!(Expect { from, term, number });
wire_struct!(Once { session, sequence, behind, again } if Once::is_possible);
wire_enum!(ObjectOp {
    0 => Begin { 0: begin },
    1 => Renew { 0: object },
    2 => Commit { 0: commit },
    3 => Abandon { 0: descriptor },
    4 => Unpin { 0: unpin },
});
wire_struct!(Begin { condition, conversions });
wire_struct!(Condition { mode, compare, invalidate });
wire_struct!(Commit { descriptor, store } if |commit: &Self| commit.store.value.is_empty());
wire_struct!(Unpin { object, pin, done });
wire_struct!(Object { descriptor, pin });

/// What is rarely there is behind a pointer.
impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Writer<'_>) {
        self.as_ref().put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        T::take(from).map(Box::new)
    }
}

wire_enum!(Expiry { 0 => Never {}, 1 => At { 0: at } });
wire_struct!(Flush { namespace, at });
wire_struct!(Scan { namespace, slot, from, prefix, keys, bytes } if Scan::is_possible);
wire_struct!(ScanPage { keys, next, damaged } if ScanPage::is_possible);

/// Keys of a page.
impl Entry for Bytes {
    const MAX_COUNT: u32 = MAX_PAGE_KEYS as u32;
}

impl Wire for ScanBound {
    fn put(&self, out: &mut Writer<'_>) {
        self.number().put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Self::new(u64::take(from)?).ok_or(BadBody::Range)
    }
}
wire_enum!(FlushAt { 0 => Now {}, 1 => At { 0: at } });
wire_struct!(Get { touch, vivify, recache_below_seconds, value, claim, version, bump });
wire_enum!(Claim { 0 => Never {}, 1 => IfDue {} });
wire_enum!(Want { 0 => Value {}, 1 => NoValue {} });
wire_enum!(Bump { 0 => Count {}, 1 => Silent {} });
wire_struct!(Store { mode, value, flags, expiry, compare, version, invalidate, vivify });
wire_enum!(StoreMode { 0 => Set {}, 1 => Add {}, 2 => Replace {}, 3 => Append {}, 4 => Prepend {} });
wire_struct!(Delete { compare, version, invalidate, touch, drop_value });
wire_struct!(Arith { direction, delta, vivify, initial, touch, compare, version });
wire_enum!(Direction { 0 => Increment {}, 1 => Decrement {} });

wire_enum!(Outcome {
    0 => Hit { 0: item },
    1 => Miss {},
    2 => Stored { 0: item },
    3 => NotStored {},
    4 => Exists {},
    5 => NotFound {},
    6 => Deleted {},
    7 => Touched { 0: item },
    8 => Number { 0: number, 1: item },
    9 => Flushed {},
    10 => Failed { 0: failure },
    11 => Begun { 0: object },
    12 => Noted {},
    13 => Session { 0: session },
    14 => Keys { 0: page },
});
wire_enum!(Failure {
    0 => NotANumber {},
    1 => TooLarge {},
    2 => OutOfMemory {},
    3 => Busy {},
    4 => Unavailable {},
    5 => Lost {},
    6 => Unknown {},
    7 => Corrupt {},
    8 => WrongPrimary {},
    9 => NoNamespace {},
    10 => NotOpen {},
    11 => Replaced {},
    12 => NoSession {},
    13 => Expired {},
    14 => Departed { 0: departure },
});
wire_struct!(ItemView {
    value,
    value_len,
    flags,
    version,
    ttl_seconds,
    fetched,
    idle_seconds,
    size_bytes,
    win,
    stale,
    win_sent,
    object,
} if ItemView::is_possible);
