//! The lines of the text protocol.

use bytes::Bytes;
use types::UnixSeconds;

use super::limits::MAX_CREDENTIALS_BYTES;

use super::lines::{self, Line};
use super::parsed::{Ask, Parsed, Pending, PendingKind, Step};
use super::reply;
use super::style::{ReplyStyle, WithCas};
use super::tokens::{
    Tokens, client_flags, data_len, each_token, expiry, flush_at, number, number32, seconds, split,
    stored_seconds,
};
use super::values;
use crate::face::{Keys, Stats, ValueLimits};
use types::op::{Arith, Delete, Direction, FlushAt, Key, MAX_KEY_BYTES, Op, Request, Store, StoreMode};

/// As many as any command reads; whatever else a line has is not looked at, but for a `noreply` at its end.
type TextTokens<'a> = Tokens<'a, 6>;

/// What `line` amounts to.
pub(super) fn parse(line: &Bytes, now: UnixSeconds, limits: &ValueLimits) -> Parsed {
    let end = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    let name = line.get(..end).unwrap_or_default();
    match name {
        b"get" => keys(line, end, WithCas::No),
        b"gets" => keys(line, end, WithCas::Yes),
        b"gat" => touch_keys(line, end, WithCas::No, now),
        b"gats" => touch_keys(line, end, WithCas::Yes, now),
        b"set" => store(line, Verb::Plain(StoreMode::Set), now, limits),
        b"add" => store(line, Verb::Plain(StoreMode::Add), now, limits),
        b"replace" => store(line, Verb::Plain(StoreMode::Replace), now, limits),
        b"append" => store(line, Verb::Plain(StoreMode::Append), now, limits),
        b"prepend" => store(line, Verb::Plain(StoreMode::Prepend), now, limits),
        b"cas" => store(line, Verb::Cas, now, limits),
        b"delete" => delete(line),
        b"incr" => arith(line, Direction::Increment),
        b"decr" => arith(line, Direction::Decrement),
        b"touch" => touch(line, now),
        b"quit" => Parsed::Quit,
        b"version" => Parsed::Answer(lines::VERSION_LINE),
        b"stats" => stats(line),
        b"watch" => Parsed::Say(lines::NO_WATCH),
        _ => rare(line, now),
    }
}

/// Commands that memcached looks up behind those above: with these, spaces may stand in front of the name.
fn rare(line: &[u8], now: UnixSeconds) -> Parsed {
    let tokens = TextTokens::of(line);
    let reply = reply_style(&tokens);
    let refusal = match (tokens.get(0), tokens.get(1)) {
        (b"flush_all", _) => return flush_all(&tokens, reply, now),
        (b"verbosity", _) => return verbosity(&tokens, reply),
        (b"cache_memlimit", limit) => cache_memlimit(limit),
        (b"shutdown", _) => lines::NO_SHUTDOWN,
        (b"slabs", b"automove") if number32(tokens.get(2)).is_none() => lines::BAD_FORMAT,
        (b"lru_crawler", b"metadump") => lines::NO_METADUMP,
        (b"lru_crawler", b"mgdump") => lines::NO_MGDUMP,
        // A browser that was sent here by a web page: the lines that follow are not its user's.
        _ if tokens.count > 1 && tokens.last().starts_with(b"HTTP/") => return Parsed::Close,
        _ => lines::ERROR,
    };
    say(refusal, &reply)
}

/// What `line` amounts to before the client has authenticated itself.
pub(super) fn parse_locked(line: &[u8]) -> Parsed {
    let tokens = TextTokens::of(line);
    let is_set = tokens.get(0).starts_with(b"set") && tokens.count >= 5;
    match number32(tokens.get(4)).and_then(|len| usize::try_from(len).ok()).filter(|_| is_set) {
        Some(len) if len <= MAX_CREDENTIALS_BYTES => {
            Parsed::Await(Pending { what: PendingKind::Credentials, len })
        }
        Some(_) => Parsed::Say(lines::AUTH_TOO_LONG),
        None => Parsed::Say(lines::UNAUTHENTICATED),
    }
}

/// Whether `key` may be used: not too long, and without the byte at which C clients and servers cut it off.
pub(super) fn check_key(key: &[u8]) -> Result<(), Line> {
    match key {
        _ if key.len() > MAX_KEY_BYTES => Err(lines::BAD_FORMAT),
        _ if memchr::memchr(0, key).is_some() => Err(lines::ERROR),
        _ => Ok(()),
    }
}

/// The key in `token`, a part of `line`.
fn take_key(line: &Bytes, token: &[u8]) -> Result<Key, Line> {
    check_key(token)?;
    Key::new(line.slice_ref(token)).map_err(|_| lines::ERROR)
}

/// `then`, if anything, and a data block of `len` bytes that is not looked at.
pub(super) fn swallow(len: usize, then: Option<Step>) -> Parsed {
    Parsed::Swallow { then: then.map(Box::new), bytes: len + 2 }
}

/// get, gets: keys from byte `from` of the line on.
fn keys(line: &Bytes, from: usize, with_cas: WithCas) -> Parsed {
    match checked_keys(line.slice(from..)) {
        Err(error) => Parsed::Say(error),
        Ok(keys) if keys.count() == 0 => Parsed::Say(lines::BAD_FORMAT),
        Ok(keys) => Parsed::Done(Ask::Read { keys, touch: None, style: with_cas }),
    }
}

/// gat, gats: a time, then keys.
fn touch_keys(line: &Bytes, from: usize, with_cas: WithCas, now: UnixSeconds) -> Parsed {
    let args = line.slice(from..);
    let time = split(&args).next().unwrap_or_default();
    let after = args.len() - after_token(&args, time).len();
    // In memcached's order: first that there are no keys, then the time, then what is wrong with a key.
    match (checked_keys(args.slice(after..)), seconds(time)) {
        (Ok(keys), _) if keys.count() == 0 => Parsed::Say(lines::BAD_FORMAT),
        (_, None) => Parsed::Say(lines::BAD_EXPTIME),
        (Err(error), _) => Parsed::Say(error),
        (Ok(keys), Some(seconds)) => {
            Parsed::Done(Ask::Read { keys, touch: Some(expiry(seconds, now)), style: with_cas })
        }
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
    // They are counted, and not kept: a line of a mebibyte may have half a million.
    let (mut count, mut longest) = (0, 0);
    each_token(&list, |key| {
        count += 1;
        longest = longest.max(key.len());
    });
    if longest > MAX_KEY_BYTES { Err(lines::BAD_FORMAT) } else { Ok(Keys::new(list, count)) }
}

/// Which storage command.
#[derive(Clone, Copy)]
enum Verb {
    Plain(StoreMode),
    Cas,
}

impl Verb {
    fn mode(self) -> StoreMode {
        match self {
            Self::Plain(mode) => mode,
            Self::Cas => StoreMode::Set,
        }
    }
}

/// set add replace append prepend cas.
fn store(line: &Bytes, verb: Verb, now: UnixSeconds, limits: &ValueLimits) -> Parsed {
    let tokens = TextTokens::of(line);
    let Some(len) = data_len(tokens.get(4), || limits.longest_block()) else {
        // Nobody knows where the data block ends, if there is one: as in memcached, what follows is the next command.
        return Parsed::Say(lines::BAD_FORMAT);
    };
    let reply = reply_style(&tokens);
    let (key, store) = match checked_store(line, &tokens, verb, now) {
        Ok(checked) => checked,
        Err(error) => return swallow(len, heard(error, &reply).map(Step::Refuse)),
    };
    let removes = store.mode == StoreMode::Set && store.compare.is_none();
    values::expect(limits, (key, store, reply), len, removes)
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
        flags: client_flags(tokens.get(2)).ok_or(lines::BAD_FORMAT)?,
        expiry: expiry(stored_seconds(tokens.get(3)).ok_or(lines::BAD_FORMAT)?, now),
        compare,
        version: None,
        invalidate: false,
        vivify: None,
    };
    Ok((key, store))
}

/// The refusal of a value that is too large. As in memcached, a plain `set` and any `ms` leave no old value behind that
/// their client believes overwritten; any other command leaves the item alone.
#[cold]
pub(super) fn too_large(key: Key, removes: bool, len: usize, reply: ReplyStyle) -> Parsed {
    let reply = if reply == ReplyStyle::Silent { ReplyStyle::TooLargeSilent } else { ReplyStyle::TooLarge };
    let then = match (removes, &reply) {
        (true, _) => {
            let request = Box::new(Request::on(key, Op::Delete(Delete::default())));
            Some(Step::Ask(Ask::One { request, style: reply }))
        }
        (false, ReplyStyle::TooLarge) => Some(Step::Refuse(lines::TOO_LARGE)),
        (false, _) => None,
    };
    swallow(len, then)
}

/// delete. An old protocol had a time behind the key, which is not looked at.
fn delete(line: &Bytes) -> Parsed {
    let tokens = TextTokens::of(line);
    if tokens.count < 2 {
        return Parsed::Say(lines::BAD_FORMAT);
    }
    one(line, tokens.get(1), Op::Delete(Delete::default()), reply_style(&tokens))
}

/// incr, decr.
fn arith(line: &Bytes, direction: Direction) -> Parsed {
    with_argument(line, |argument| {
        let delta = number(argument).ok_or(lines::BAD_DELTA)?;
        Ok(Op::Arith(Arith { direction, delta, ..Arith::default() }))
    })
}

/// touch.
fn touch(line: &Bytes, now: UnixSeconds) -> Parsed {
    with_argument(line, |argument| {
        let seconds = seconds(argument).ok_or(lines::BAD_EXPTIME)?;
        Ok(Op::Touch(expiry(seconds, now)))
    })
}

/// `name key argument`, of which `op` reads the argument.
fn with_argument(line: &Bytes, op: impl FnOnce(&[u8]) -> Result<Op, Line>) -> Parsed {
    let tokens = TextTokens::of(line);
    if tokens.count < 3 {
        return Parsed::Say(lines::BAD_FORMAT);
    }
    let reply = reply_style(&tokens);
    match check_key(tokens.get(1)).and_then(|()| op(tokens.get(2))) {
        Err(error) => say(error, &reply),
        Ok(op) => one(line, tokens.get(1), op, reply),
    }
}

/// A command on one key.
fn one(line: &Bytes, key: &[u8], op: Op, reply: ReplyStyle) -> Parsed {
    match take_key(line, key) {
        Err(error) => say(error, &reply),
        Ok(key) => Parsed::Done(Ask::One { request: Box::new(Request::on(key, op)), style: reply }),
    }
}

/// flush_all [time] [noreply].
fn flush_all(tokens: &TextTokens<'_>, reply: ReplyStyle, now: UnixSeconds) -> Parsed {
    // The last token may be `noreply`, which is no time.
    let has_time = tokens.count > if reply == ReplyStyle::Silent { 2 } else { 1 };
    if !has_time {
        return Parsed::Done(Ask::Flush { at: FlushAt::Now, style: reply });
    }
    match seconds(tokens.get(1)) {
        None => say(lines::BAD_EXPTIME, &reply),
        Some(seconds) => Parsed::Done(Ask::Flush { at: flush_at(seconds, now), style: reply }),
    }
}

/// verbosity level [noreply].
fn verbosity(tokens: &TextTokens<'_>, reply: ReplyStyle) -> Parsed {
    match number32(tokens.get(1)) {
        None => say(lines::BAD_FORMAT, &reply),
        Some(_) if reply == ReplyStyle::Silent => Parsed::Answer(b""),
        Some(_) => Parsed::Answer(reply::OK),
    }
}

/// cache_memlimit megabytes. The limit is the operator's (`--memory`): it cannot be moved while a node runs, for its peers
/// reckon with it.
fn cache_memlimit(limit: &[u8]) -> Line {
    const LEAST_MEGABYTES: u32 = 8;
    const NO_MEGABYTES: u32 = 1_000_000_000;
    match number32(limit) {
        None => lines::ERROR,
        Some(..LEAST_MEGABYTES) => lines::MEMLIMIT_TOO_SMALL,
        Some(megabytes) if megabytes > NO_MEGABYTES => lines::MEMLIMIT_NOT_MEGABYTES,
        Some(_) => lines::NO_MEMLIMIT,
    }
}

/// stats [what].
fn stats(line: &[u8]) -> Parsed {
    let tokens = TextTokens::of(line);
    Parsed::Done(Ask::Stats(match tokens.get(1) {
        b"" => Stats::General,
        b"settings" => Stats::Settings,
        b"items" => Stats::Items,
        b"slabs" => Stats::Slabs,
        b"sizes" => Stats::Sizes,
        b"conns" => Stats::Conns,
        b"cluster" => Stats::Cluster,
        b"reset" => Stats::Reset,
        b"cachedump" => return Parsed::Say(lines::NO_CACHEDUMP),
        b"detail" => return Parsed::Say(lines::NO_DETAIL),
        _ => return Parsed::Say(lines::ERROR),
    }))
}

/// Whether the last token says `noreply`.
fn reply_style(tokens: &TextTokens<'_>) -> ReplyStyle {
    if tokens.last() == b"noreply" { ReplyStyle::Silent } else { ReplyStyle::Text }
}

/// An error, unless the client asked not to hear of it.
fn say(error: Line, reply: &ReplyStyle) -> Parsed {
    heard(error, reply).map_or(Parsed::Hush, Parsed::Say)
}

/// An error, if the client wants to hear of it.
fn heard(error: Line, reply: &ReplyStyle) -> Option<Line> {
    (*reply != ReplyStyle::Silent).then_some(error)
}
