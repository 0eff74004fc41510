//! The lines of the meta protocol: mg ms md ma mn me.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use types::UnixSeconds;

use super::limits::{MAX_META_TOKENS, MAX_OPAQUE_BYTES};
use super::lines::{self, Line};
use super::parsed::{Ask, Parsed, Step};
use super::reply;
use super::style::{MetaStyle, MetaVerb, ReplyStyle, ReturnFlags};
use super::text::{check_key, swallow};
use super::tokens::{Tokens, data_len, expiry, number, number32, seconds, seconds_ahead};
use super::values;
use crate::face::ValueLimits;
use types::op::{
    Arith, Bump, Claim, Delete, Direction, Expiry, Get, Key, Op, Request, Store, StoreMode, Want,
};

type MetaTokens<'a> = Tokens<'a, MAX_META_TOKENS>;

/// What `line` amounts to; it begins with a token of two letters, the first of them `m`.
pub(super) fn parse(line: &Bytes, now: UnixSeconds, limits: &ValueLimits) -> Parsed {
    let tokens = MetaTokens::of(line);
    let parsed = match tokens.get(0) {
        b"mg" => get(line, &tokens, now),
        b"ms" => return set(line, &tokens, now, limits),
        b"md" => delete(line, &tokens, now),
        b"ma" => arith(line, &tokens, now),
        b"me" => debug(line, &tokens),
        b"mn" => return Parsed::Answer(reply::META_NOOP),
        _ => return Parsed::Say(lines::ERROR),
    };
    match parsed {
        Ok((request, style)) => {
            Parsed::Done(Ask::One { request: Box::new(request), style: ReplyStyle::Meta(style) })
        }
        Err(error) => Parsed::Say(error),
    }
}

type Checked = Result<(Request, MetaStyle), Line>;

/// mg key flags*.
fn get(line: &Bytes, tokens: &MetaTokens<'_>, now: UnixSeconds) -> Checked {
    check_shape(tokens, 2)?;
    let flags = Flags::parse(line, tokens.from(2), now)?;
    let key = flags.key(line, tokens.get(1))?;
    let op = Op::Get(Get {
        touch: flags.touch,
        vivify: flags.vivify,
        recache_below_seconds: flags.recache,
        value: if flags.value { Want::Value } else { Want::NoValue },
        claim: Claim::IfDue,
        version: flags.version,
        bump: if flags.silent { Bump::Silent } else { Bump::Count },
    });
    Ok((Request::on(key, op), flags.style(MetaVerb::Get)?))
}

/// ms key length flags*, and a data block.
fn set(line: &Bytes, tokens: &MetaTokens<'_>, now: UnixSeconds, limits: &ValueLimits) -> Parsed {
    let Some(len) = data_len(tokens.get(2), || limits.longest_block()) else {
        // Nobody knows where the data block ends, if there is one: as in memcached, what follows is the next command.
        return Parsed::Say(lines::BAD_FORMAT);
    };
    match checked_set(line, tokens, now, len) {
        Err(error) => swallow(len, Some(Step::Refuse(error))),
        Ok((key, store, style)) => values::expect(limits, (key, store, ReplyStyle::Meta(style)), len, true),
    }
}

/// ms without its value.
fn checked_set(
    line: &Bytes,
    tokens: &MetaTokens<'_>,
    now: UnixSeconds,
    len: usize,
) -> Result<(Key, Store, MetaStyle), Line> {
    check_shape(tokens, 3)?;
    let flags = Flags::parse(line, tokens.from(3), now)?;
    let key = flags.key(line, tokens.get(1))?;
    let mode = match flags.mode {
        None | Some(b'S') => StoreMode::Set,
        Some(b'E') => StoreMode::Add,
        Some(b'A') => StoreMode::Append,
        Some(b'P') => StoreMode::Prepend,
        Some(b'R') => StoreMode::Replace,
        Some(_) => return Err(lines::META_MODE_SET),
    };
    // As in memcached: with a version to compare, set and replace are cas, and add does not look at it.
    let (mode, compare) = match (mode, flags.compare) {
        (StoreMode::Set | StoreMode::Replace, Some(version)) => (StoreMode::Set, Some(version)),
        (StoreMode::Add, _) => (StoreMode::Add, None),
        other => other,
    };
    let appends = matches!(mode, StoreMode::Append | StoreMode::Prepend);
    let store = Store {
        mode,
        value: Bytes::new(),
        flags: flags.client_flags,
        expiry: flags.touch.unwrap_or_default(),
        compare,
        version: flags.version,
        // Only a cas can be too late: `I` then stores its value as a stale one. To other modes it means nothing.
        invalidate: flags.invalidate && mode == StoreMode::Set && compare.is_some(),
        // Set and add make an item in any case, and replace never may.
        vivify: flags.vivify.filter(|_| appends),
    };
    let mut style = flags.style(MetaVerb::Set)?;
    style.sent_len = len as u64;
    Ok((key, store, style))
}

/// md key flags*.
fn delete(line: &Bytes, tokens: &MetaTokens<'_>, now: UnixSeconds) -> Checked {
    check_shape(tokens, 2)?;
    let flags = Flags::parse(line, tokens.from(2), now)?;
    let key = flags.key(line, tokens.get(1))?;
    let op = Op::Delete(Delete {
        compare: flags.compare,
        version: flags.version,
        invalidate: flags.invalidate,
        touch: flags.touch,
        drop_value: flags.drop_value.then_some(flags.client_flags),
    });
    Ok((Request::on(key, op), flags.style(MetaVerb::Delete)?))
}

/// ma key flags*.
fn arith(line: &Bytes, tokens: &MetaTokens<'_>, now: UnixSeconds) -> Checked {
    check_shape(tokens, 2)?;
    // memcached has one line here for all that can be wrong with a flag.
    let flags = Flags::parse(line, tokens.from(2), now).map_err(|_| lines::META_INVALID_OR_DUPLICATE)?;
    let key = flags.key(line, tokens.get(1))?;
    let direction = match flags.mode {
        None | Some(b'I' | b'+') => Direction::Increment,
        Some(b'D' | b'-') => Direction::Decrement,
        Some(_) => return Err(lines::META_MODE_ARITH),
    };
    let op = Op::Arith(Arith {
        direction,
        delta: flags.delta.unwrap_or(1),
        vivify: flags.vivify,
        initial: flags.initial,
        touch: flags.touch,
        // As in memcached, a 0 is no version to compare with here.
        compare: flags.compare.filter(|&version| version != 0),
        version: flags.version,
    });
    Ok((Request::on(key, op), flags.style(MetaVerb::Arith)?))
}

/// me key [b].
fn debug(line: &Bytes, tokens: &MetaTokens<'_>) -> Checked {
    check_shape(tokens, 2)?;
    let flags = Flags { base64: tokens.get(2) == b"b", ..Flags::default() };
    let key = flags.key(line, tokens.get(1)).map_err(|_| lines::BAD_FORMAT)?;
    Ok((Request::on(key, Op::Debug), flags.style(MetaVerb::Debug)?))
}

/// What all meta commands with flags have in common: a key of a lawful length, and flags from token `first` on that begin
/// like flags and are not too many.
fn check_shape(tokens: &MetaTokens<'_>, first: usize) -> Result<(), Line> {
    let begins_like_one = |flag: &&[u8]| matches!(flag.first(), Some(b'A'..=b'z' | b'0'..=b'9'));
    if tokens.count < first || !tokens.from(first).iter().all(begins_like_one) {
        return Err(lines::BAD_FORMAT);
    }
    check_key(tokens.get(1))?;
    if tokens.count > MAX_META_TOKENS { Err(lines::META_TOO_MANY_FLAGS) } else { Ok(()) }
}

/// All flags of all commands: each command uses its own and ignores the rest, as memcached does.
#[derive(Default)]
struct Flags {
    base64: bool,
    quiet: bool,
    value: bool,
    silent: bool,
    invalidate: bool,
    drop_value: bool,
    touch: Option<Expiry>,
    vivify: Option<Expiry>,
    recache: Option<u32>,
    compare: Option<u64>,
    version: Option<u64>,
    client_flags: u32,
    mode: Option<u8>,
    delta: Option<u64>,
    initial: u64,
    returns: ReturnFlags,
    opaque: Bytes,
    opaque_is_too_long: bool,
}

impl Flags {
    /// Of the tokens after the key (and the length). A duplicate or unknown flag is reported at once, otherwise the
    /// last bad argument is.
    fn parse(line: &Bytes, tokens: &[&[u8]], now: UnixSeconds) -> Result<Self, Line> {
        let mut flags = Self::default();
        let mut seen = 0u128;
        let mut bad = None;
        for token in tokens {
            let Some((&letter, argument)) = token.split_first() else { continue };
            let bit = 1u128.checked_shl(u32::from(letter)).unwrap_or(0);
            if letter >= 127 || seen & bit != 0 {
                return Err(lines::META_DUPLICATE);
            }
            seen |= bit;
            match flags.set(line, letter, argument, now) {
                Ok(()) => flags.returns.push(letter),
                Err(lines::META_INVALID) => return Err(lines::META_INVALID),
                // As in memcached, bad client flags do not hide what was wrong before them.
                Err(error) if letter == b'F' => bad = bad.or(Some(error)),
                Err(error) => bad = Some(error),
            }
        }
        bad.map_or(Ok(flags), Err)
    }

    /// One flag.
    fn set(&mut self, line: &Bytes, letter: u8, argument: &[u8], now: UnixSeconds) -> Result<(), Line> {
        let time = || seconds(argument).ok_or(lines::META_BAD_TOKEN);
        let number = || number(argument).ok_or(lines::META_BAD_TOKEN);
        match letter {
            b'b' => self.base64 = true,
            b'q' => self.quiet = true,
            b'v' => self.value = true,
            b'u' => self.silent = true,
            b'I' => self.invalidate = true,
            b'x' => self.drop_value = true,
            b'T' => self.touch = Some(expiry(time()?, now)),
            b'N' => self.vivify = Some(expiry(time()?, now)),
            b'R' => self.recache = Some(seconds_ahead(time()?, now)),
            b'C' => self.compare = Some(number()?),
            b'E' => self.version = Some(number()?),
            b'F' => self.client_flags = number32(argument).ok_or(lines::BAD_FORMAT)?,
            b'J' => self.initial = number().map_err(|_| lines::META_BAD_INITIAL)?,
            b'D' => self.delta = Some(number().map_err(|_| lines::META_BAD_DELTA)?),
            // memcached looks at one letter, whatever follows it.
            b'M' => self.mode = Some(argument.first().copied().unwrap_or(b' ')),
            b'O' if argument.len() > MAX_OPAQUE_BYTES => self.opaque_is_too_long = true,
            b'O' => self.opaque = line.slice_ref(argument),
            // Printed if asked for, or (P, L) meant for a proxy on the way.
            b'c' | b'f' | b'h' | b'k' | b'l' | b's' | b't' | b'P' | b'L' => (),
            _ => return Err(lines::META_INVALID),
        }
        Ok(())
    }

    /// The key, decoded.
    fn key(&self, line: &Bytes, token: &[u8]) -> Result<Key, Line> {
        if !self.base64 {
            return Key::new(line.slice_ref(token)).map_err(|_| lines::BAD_FORMAT);
        }
        // It may have spaces and zero bytes: it is never printed but in base64.
        let decoded = STANDARD.decode(token).map_err(|_| lines::META_BAD_KEY)?;
        Key::new(decoded.into()).map_err(|_| lines::META_BAD_KEY)
    }

    /// How the outcome is printed.
    fn style(self, verb: MetaVerb) -> Result<MetaStyle, Line> {
        // Last of all: memcached sees this only when it writes the flags of its answer.
        if self.opaque_is_too_long {
            return Err(lines::META_OPAQUE);
        }
        Ok(MetaStyle {
            verb,
            quiet: self.quiet,
            base64: self.base64,
            value: self.value,
            known_version: self.compare.filter(|_| verb == MetaVerb::Get),
            flags: self.returns,
            opaque: self.opaque,
            sent_len: 0,
        })
    }
}
