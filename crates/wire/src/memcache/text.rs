//! The lines of the text protocol.

use bytes::Bytes;
use cluster::UnixSeconds;

use super::MAX_CREDENTIALS_BYTES;
use super::command::{Command, Keys, ReplyStyle, Stats, WithCas};
use super::lines::{self, Line};
use super::parser::{Parsed, Pending, PendingKind};
use super::tokens::{Tokens, data_len, expiry, flush_at, number, number32, seconds, split};
use crate::op::{
    Arith, Delete, Direction, FlushAt, Key, MAX_KEY_BYTES, MAX_VALUE_BYTES, Op, Request, Store, StoreMode,
};

/// One more than the longest well-formed command has (cas with noreply).
type TextTokens<'a> = Tokens<'a, 8>;

/// What `line` amounts to.
pub(super) fn parse(line: &Bytes, now: UnixSeconds) -> Parsed {
    let start = line.iter().position(|&byte| byte != b' ').unwrap_or(line.len());
    let rest = line.get(start..).unwrap_or_default();
    let name = split(rest).next().unwrap_or_default();
    let args = start + name.len();
    match name {
        b"get" => keys(line, args, WithCas::No),
        b"gets" => keys(line, args, WithCas::Yes),
        b"gat" => touch_keys(line, args, WithCas::No, now),
        b"gats" => touch_keys(line, args, WithCas::Yes, now),
        b"set" => store(line, Verb::Plain(StoreMode::Set), now),
        b"add" => store(line, Verb::Plain(StoreMode::Add), now),
        b"replace" => store(line, Verb::Plain(StoreMode::Replace), now),
        b"append" => store(line, Verb::Plain(StoreMode::Append), now),
        b"prepend" => store(line, Verb::Plain(StoreMode::Prepend), now),
        b"cas" => store(line, Verb::Cas, now),
        b"delete" => delete(line),
        b"incr" => arith(line, Direction::Increment),
        b"decr" => arith(line, Direction::Decrement),
        b"touch" => touch(line, now),
        b"quit" => Parsed::Done(Command::Quit),
        b"version" => Parsed::Done(Command::Version),
        b"stats" => stats(line),
        b"flush_all" => flush_all(line, now),
        // The limit is the operator's (`--memory`): a client's wish is heard and has no effect, like its verbosity.
        b"verbosity" | b"cache_memlimit" => verbosity(line),
        _ => unknown(name, line),
    }
}

/// What `line` amounts to before the client has authenticated itself.
pub(super) fn parse_locked(line: &[u8]) -> Parsed {
    let tokens = TextTokens::of(line);
    let is_set = tokens.get(0) == b"set" && tokens.count >= 5;
    match data_len(tokens.get(4)).filter(|_| is_set) {
        Some(len) if len <= MAX_CREDENTIALS_BYTES => {
            Parsed::Await(Pending { what: PendingKind::Credentials, len })
        }
        Some(len) => swallow(len, Parsed::Say(lines::UNAUTHENTICATED)),
        None if tokens.last().starts_with(b"HTTP/") => Parsed::Close,
        None => Parsed::Say(lines::UNAUTHENTICATED),
    }
}

/// Whether `key` may be used: not too long, and without the byte at which C clients and servers cut it off.
pub(super) fn check_key(key: &[u8]) -> Result<(), Line> {
    match key {
        _ if key.len() > MAX_KEY_BYTES => Err(lines::BAD_FORMAT),
        _ if key.contains(&0) => Err(lines::ERROR),
        _ => Ok(()),
    }
}

/// The key in `token`, a part of `line`.
fn take_key(line: &Bytes, token: &[u8]) -> Result<Key, Line> {
    check_key(token)?;
    Key::new(line.slice_ref(token)).map_err(|_| lines::ERROR)
}

/// `parsed`, then a data block of `len` bytes that is not looked at.
pub(super) fn swallow(len: usize, parsed: Parsed) -> Parsed {
    Parsed::Swallow { then: Box::new(parsed), bytes: len + 2 }
}

/// get, gets: keys from byte `from` of the line on.
fn keys(line: &Bytes, from: usize, with_cas: WithCas) -> Parsed {
    match checked_keys(line.slice(from..)) {
        Err(error) => Parsed::Say(error),
        Ok(keys) if keys.count() == 0 => Parsed::Say(lines::ERROR),
        Ok(keys) => Parsed::Done(Command::Get { keys, with_cas, touch: None }),
    }
}

/// gat, gats: a time, then keys.
fn touch_keys(line: &Bytes, from: usize, with_cas: WithCas, now: UnixSeconds) -> Parsed {
    let args = line.slice(from..);
    let Some(time) = split(&args).next() else { return Parsed::Say(lines::ERROR) };
    let Some(seconds) = seconds(time) else { return Parsed::Say(lines::BAD_EXPTIME) };
    let after = args.len() - after_token(&args, time).len();
    match checked_keys(args.slice(after..)) {
        Err(error) => Parsed::Say(error),
        Ok(keys) if keys.count() == 0 => Parsed::Say(super::reply::END),
        Ok(keys) => Parsed::Done(Command::Get { keys, with_cas, touch: Some(expiry(seconds, now)) }),
    }
}

/// What follows the first token of `args`, which is `token`.
fn after_token<'a>(args: &'a [u8], token: &[u8]) -> &'a [u8] {
    let spaces = args.iter().take_while(|&&byte| byte == b' ').count();
    args.get(spaces + token.len()..).unwrap_or_default()
}

/// A list of keys, all of which may be used.
fn checked_keys(list: Bytes) -> Result<Keys, Line> {
    if memchr::memchr(0, &list).is_some() {
        return Err(lines::ERROR);
    }
    let mut count = 0;
    for key in split(&list) {
        if key.len() > MAX_KEY_BYTES {
            return Err(lines::BAD_FORMAT);
        }
        count += 1;
    }
    Ok(Keys::new(list, count))
}

/// Which storage command.
#[derive(Clone, Copy)]
enum Verb {
    Plain(StoreMode),
    Cas,
}

impl Verb {
    /// Tokens of the command without `noreply`.
    fn tokens(self) -> usize {
        match self {
            Self::Plain(_) => 5,
            Self::Cas => 6,
        }
    }

    fn mode(self) -> StoreMode {
        match self {
            Self::Plain(mode) => mode,
            Self::Cas => StoreMode::Set,
        }
    }
}

/// set add replace append prepend cas.
fn store(line: &Bytes, verb: Verb, now: UnixSeconds) -> Parsed {
    let tokens = TextTokens::of(line);
    let well_formed = tokens.count == verb.tokens() || tokens.count == verb.tokens() + 1;
    let Some(len) = data_len(tokens.get(4)) else {
        // Nobody knows where the data block ends: to go on would mean to execute it.
        return Parsed::SayAndClose(if well_formed { lines::BAD_FORMAT } else { lines::ERROR });
    };
    if !well_formed {
        return swallow(len, Parsed::Say(lines::ERROR));
    }
    let Ok(reply) = reply_style(&tokens, verb.tokens()) else {
        return swallow(len, Parsed::Say(lines::BAD_FORMAT));
    };
    let (key, store) = match checked_store(line, &tokens, verb, now) {
        Ok(checked) => checked,
        Err(error) => return swallow(len, say(error, &reply)),
    };
    if len > MAX_VALUE_BYTES {
        return too_large(key, &store, len, reply);
    }
    let request = Request::on(key, Op::Store(store));
    Parsed::Await(Pending { what: PendingKind::Store(request, reply), len })
}

/// A storage command without its value.
fn checked_store(
    line: &Bytes,
    tokens: &TextTokens<'_>,
    verb: Verb,
    now: UnixSeconds,
) -> Result<(Key, Store), Line> {
    let key = take_key(line, tokens.get(1))?;
    let compare = match verb {
        Verb::Plain(_) => None,
        Verb::Cas => Some(number(tokens.get(5)).ok_or(lines::BAD_FORMAT)?),
    };
    let store = Store {
        mode: verb.mode(),
        value: Bytes::new(),
        flags: number32(tokens.get(2)).ok_or(lines::BAD_FORMAT)?,
        expiry: expiry(seconds(tokens.get(3)).ok_or(lines::BAD_FORMAT)?, now),
        compare,
        version: None,
        invalidate: false,
        vivify: None,
    };
    Ok((key, store))
}

/// The refusal of a value that is too large. As in memcached, a plain `set` leaves no old value behind that its
/// client believes overwritten; any other mode leaves the item alone.
pub(super) fn too_large(key: Key, store: &Store, len: usize, reply: ReplyStyle) -> Parsed {
    let removes = store.mode == StoreMode::Set && store.compare.is_none();
    let reply = if reply == ReplyStyle::Silent { ReplyStyle::TooLargeSilent } else { ReplyStyle::TooLarge };
    let refusal = match (removes, &reply) {
        (true, _) => {
            let request = Request::on(key, Op::Delete(Delete::default()));
            Parsed::Done(Command::One { request, reply })
        }
        (false, ReplyStyle::TooLarge) => Parsed::Say(lines::TOO_LARGE),
        (false, _) => Parsed::Hush,
    };
    swallow(len, refusal)
}

/// delete: an old protocol had a time there, so `0` is accepted and nothing else.
fn delete(line: &Bytes) -> Parsed {
    let tokens = TextTokens::of(line);
    let reply = match (tokens.count, tokens.get(2), tokens.get(3)) {
        (0 | 1, ..) | (5.., ..) => return Parsed::Say(lines::ERROR),
        (2, ..) | (3, b"0", _) => ReplyStyle::Text,
        (3, b"noreply", _) | (4, b"0", b"noreply") => ReplyStyle::Silent,
        (4, _, b"noreply") => return Parsed::Hush,
        _ => return Parsed::Say(lines::DELETE_USAGE),
    };
    one(line, tokens.get(1), Op::Delete(Delete::default()), reply)
}

/// incr, decr.
fn arith(line: &Bytes, direction: Direction) -> Parsed {
    let tokens = TextTokens::of(line);
    let reply = match key_and_argument(&tokens) {
        Ok(reply) => reply,
        Err(Refusal(error)) => return error.map_or(Parsed::Hush, Parsed::Say),
    };
    match number(tokens.get(2)) {
        None => say(lines::BAD_DELTA, &reply),
        Some(delta) => {
            let arith = Arith { direction, delta, ..Arith::default() };
            one(line, tokens.get(1), Op::Arith(arith), reply)
        }
    }
}

/// touch.
fn touch(line: &Bytes, now: UnixSeconds) -> Parsed {
    let tokens = TextTokens::of(line);
    let reply = match key_and_argument(&tokens) {
        Ok(reply) => reply,
        Err(Refusal(error)) => return error.map_or(Parsed::Hush, Parsed::Say),
    };
    match seconds(tokens.get(2)) {
        None => say(lines::BAD_EXPTIME, &reply),
        Some(seconds) => one(line, tokens.get(1), Op::Touch(expiry(seconds, now)), reply),
    }
}

/// Why a line is refused; none if the client asked not to hear of it.
struct Refusal(Option<Line>);

/// The reply style of `name key argument [noreply]`, once its key is checked.
fn key_and_argument(tokens: &TextTokens<'_>) -> Result<ReplyStyle, Refusal> {
    if tokens.count != 3 && tokens.count != 4 {
        return Err(Refusal(Some(lines::ERROR)));
    }
    let reply = reply_style(tokens, 3).map_err(|Misspelt| Refusal(Some(lines::BAD_FORMAT)))?;
    match check_key(tokens.get(1)) {
        Err(error) => Err(Refusal((reply != ReplyStyle::Silent).then_some(error))),
        Ok(()) => Ok(reply),
    }
}

/// A command on one key.
fn one(line: &Bytes, key: &[u8], op: Op, reply: ReplyStyle) -> Parsed {
    match take_key(line, key) {
        Err(error) => say(error, &reply),
        Ok(key) => Parsed::Done(Command::One { request: Request::on(key, op), reply }),
    }
}

/// flush_all [time] [noreply].
fn flush_all(line: &[u8], now: UnixSeconds) -> Parsed {
    let tokens = TextTokens::of(line);
    let (time, reply) = match (tokens.count, tokens.get(1), tokens.get(2)) {
        (1, ..) => (None, ReplyStyle::Text),
        (2, b"noreply", _) => (None, ReplyStyle::Silent),
        (2, time, _) => (Some(time), ReplyStyle::Text),
        (3, time, b"noreply") => (Some(time), ReplyStyle::Silent),
        (3, ..) => return Parsed::Say(lines::BAD_FORMAT),
        _ => return Parsed::Say(lines::ERROR),
    };
    match time.map(seconds) {
        None => Parsed::Done(Command::FlushAll { at: FlushAt::Now, reply }),
        Some(None) => say(lines::BAD_EXPTIME, &reply),
        Some(Some(seconds)) => Parsed::Done(Command::FlushAll { at: flush_at(seconds, now), reply }),
    }
}

/// verbosity level [noreply].
fn verbosity(line: &[u8]) -> Parsed {
    let tokens = TextTokens::of(line);
    if tokens.count != 2 && tokens.count != 3 {
        return Parsed::Say(lines::ERROR);
    }
    if tokens.count == 2 && tokens.get(1) == b"noreply" {
        // Not in the document, but libmemcached sends it and memcached is silent.
        return Parsed::Done(Command::Verbosity { reply: ReplyStyle::Silent });
    }
    let Ok(reply) = reply_style(&tokens, 2) else { return Parsed::Say(lines::BAD_FORMAT) };
    match number32(tokens.get(1)) {
        None => say(lines::BAD_FORMAT, &reply),
        Some(_) => Parsed::Done(Command::Verbosity { reply }),
    }
}

/// stats [what].
fn stats(line: &[u8]) -> Parsed {
    let tokens = TextTokens::of(line);
    Parsed::Done(Command::Stats(match tokens.get(1) {
        b"" => Stats::General,
        b"settings" => Stats::Settings,
        b"items" => Stats::Items,
        b"slabs" => Stats::Slabs,
        b"sizes" => Stats::Sizes,
        b"conns" => Stats::Conns,
        b"reset" => Stats::Reset,
        b"cachedump" => return Parsed::Say(lines::NO_CACHEDUMP),
        b"detail" => return Parsed::Say(lines::NO_DETAIL),
        _ => return Parsed::Say(lines::ERROR),
    }))
}

/// Commands that are refused with memcached's own words, and everything else.
fn unknown(name: &[u8], line: &[u8]) -> Parsed {
    let tokens = TextTokens::of(line);
    match (name, tokens.get(1)) {
        // A browser that was sent here by a web page: the lines that follow are not its user's.
        _ if tokens.last().starts_with(b"HTTP/") => Parsed::Close,
        (b"shutdown", _) => Parsed::Say(lines::NO_SHUTDOWN),
        (b"watch", _) => Parsed::Say(lines::NO_WATCH),
        (b"lru_crawler", b"metadump" | b"mgdump") => Parsed::Say(lines::NO_METADUMP),
        _ => Parsed::Say(lines::ERROR),
    }
}

/// The word in the place of `noreply` is another one.
struct Misspelt;

/// Whether the token after the first `tokens_before` says `noreply`.
fn reply_style(tokens: &TextTokens<'_>, tokens_before: usize) -> Result<ReplyStyle, Misspelt> {
    match tokens.get(tokens_before) {
        b"" => Ok(ReplyStyle::Text),
        b"noreply" => Ok(ReplyStyle::Silent),
        _ => Err(Misspelt),
    }
}

/// An error, unless the client asked not to hear of it.
fn say(error: Line, reply: &ReplyStyle) -> Parsed {
    if *reply == ReplyStyle::Silent { Parsed::Hush } else { Parsed::Say(error) }
}
