//! Outcomes as bytes. Everything here appends to a buffer of the connection and allocates nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::failure::FailureCode;
use super::lines::{self, Line};
use super::style::{MetaStyle, MetaVerb, ReplyStyle, WithCas};
use types::op::{Failure, ItemView, Outcome};
use types::{Descriptor, Geometry};

/// Ends the answer to get, gets, gat, gats and stats.
pub const END: Line = b"END\r\n";
/// The answer to mn.
pub const META_NOOP: Line = b"MN\r\n";
/// The answer to verbosity, and to flush_all.
pub const OK: Line = b"OK\r\n";
/// The answer to `stats reset`.
pub const RESET: Line = b"RESET\r\n";
/// The answer to a successful authentication.
pub const STORED: Line = b"STORED\r\n";
/// The answer to a failed authentication.
pub const AUTH_FAILED: Line = lines::AUTH_FAILED;
/// The answer to flush_all where it is switched off.
pub const NO_FLUSH: Line = lines::NO_FLUSH;

/// Writes the answer to a command on one key. `key` is the request's.
pub fn write(style: &ReplyStyle, key: &[u8], outcome: &Outcome, out: &mut Vec<u8>) {
    match style {
        ReplyStyle::Text => write_text(key, outcome, out),
        ReplyStyle::Meta(meta) => write_meta(meta, key, outcome, out),
        ReplyStyle::TooLarge => out.extend_from_slice(lines::TOO_LARGE),
        ReplyStyle::Silent | ReplyStyle::TooLargeSilent => (),
    }
}

/// The same of a read that has found `item`, whose bytes are `value`: its own are not looked at.
pub fn write_found(style: &ReplyStyle, key: &[u8], item: &ItemView, value: &[u8], out: &mut Vec<u8>) {
    match style {
        ReplyStyle::Text => {
            write_value(key, item.flags, None, value, out);
            out.extend_from_slice(END);
        }
        ReplyStyle::Meta(meta) => write_meta_item(meta, key, item, value, out),
        ReplyStyle::TooLarge | ReplyStyle::Silent | ReplyStyle::TooLargeSilent => (),
    }
}

/// Writes the whole answer to get, gets, gat or gats: the values found and `END`; if one of the keys could not be
/// read, only the reason for the first of those, for a missing line would look like a miss.
pub fn write_get<'a>(
    items: impl IntoIterator<Item = (&'a [u8], &'a Outcome)>,
    with_cas: WithCas,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    for (key, outcome) in items {
        match outcome {
            Outcome::Hit(item) => write_item(key, item, with_cas, out),
            Outcome::Failed(failure) => {
                out.truncate(start);
                out.extend_from_slice(failure_line(*failure));
                return;
            }
            _ => (),
        }
    }
    out.extend_from_slice(END);
}

/// Writes one item of the answer to get or gets, straight from where its bytes lie.
pub fn write_value(key: &[u8], flags: u32, version: Option<u64>, value: &[u8], out: &mut Vec<u8>) {
    // Of the flags, the length and the version, so that the buffer grows at most once.
    const MOST_DIGITS: usize = 10 + 10 + 20;
    out.reserve(b"VALUE    \r\n\r\n".len() + MOST_DIGITS + key.len() + value.len());
    write_head(key, flags, version, value.len() as u64, out);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes what stands before the bytes of such an item.
#[inline(always)]
pub(super) fn write_head(key: &[u8], flags: u32, version: Option<u64>, len: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    write_number(u64::from(flags), out);
    out.push(b' ');
    write_number(len, out);
    if let Some(version) = version {
        out.push(b' ');
        write_number(version, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes one line of the answer to stats.
pub fn write_stat(name: &str, value: &str, out: &mut Vec<u8>) {
    for part in ["STAT ", name, " ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Writes the answer to version.
pub fn write_version(version: &str, out: &mut Vec<u8>) {
    for part in ["VERSION ", version, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// The answer that is a failure.
#[must_use]
pub fn failure_line(failure: Failure) -> Line {
    FailureCode::from(failure).line()
}

/// Writes a failure that is no outcome of a single request.
pub fn write_failure(style: &ReplyStyle, code: FailureCode, out: &mut Vec<u8>) {
    if !matches!(style, ReplyStyle::Silent | ReplyStyle::TooLargeSilent) {
        out.extend_from_slice(code.line());
    }
}

fn write_item(key: &[u8], item: &ItemView, with_cas: WithCas, out: &mut Vec<u8>) {
    let version = (with_cas == WithCas::Yes).then_some(item.version);
    write_value(key, item.flags, version, &item.value, out);
}

fn write_text(key: &[u8], outcome: &Outcome, out: &mut Vec<u8>) {
    let line: Line = match outcome {
        Outcome::Hit(item) => {
            write_item(key, item, WithCas::No, out);
            END
        }
        Outcome::Number(number, _) => {
            write_number(*number, out);
            b"\r\n"
        }
        Outcome::Miss => END,
        Outcome::Stored(_) => STORED,
        Outcome::NotStored => b"NOT_STORED\r\n",
        Outcome::Exists => b"EXISTS\r\n",
        Outcome::NotFound => b"NOT_FOUND\r\n",
        Outcome::Deleted => b"DELETED\r\n",
        Outcome::Touched(_) => b"TOUCHED\r\n",
        Outcome::Flushed => OK,
        // What a node asks of another one for a client, who hears of the whole.
        Outcome::Begun(_) | Outcome::Noted | Outcome::Session(_) | Outcome::Keys(_) => OK,
        Outcome::Failed(failure) => failure_line(*failure),
    };
    out.extend_from_slice(line);
}

fn write_meta(style: &MetaStyle, key: &[u8], outcome: &Outcome, out: &mut Vec<u8>) {
    match outcome {
        // Even a quiet client hears of errors.
        Outcome::Failed(failure) => out.extend_from_slice(failure_line(*failure)),
        _ if style.quiet && is_nominal(style.verb, outcome) => (),
        Outcome::Hit(item) if style.verb == MetaVerb::Debug => write_debug(style, key, item, out),
        Outcome::Hit(item) => write_meta_item(style, key, item, &item.value, out),
        Outcome::Number(number, item) => {
            let mut digits = itoa::Buffer::new();
            write_meta_item(style, key, item, digits.format(*number).as_bytes(), out);
        }
        Outcome::Stored(item) | Outcome::Touched(item) => {
            out.extend_from_slice(b"HD");
            write_flags(style, key, Some(item), out);
        }
        Outcome::Miss if style.verb == MetaVerb::Debug => out.extend_from_slice(b"EN\r\n"),
        Outcome::Deleted
        | Outcome::Flushed
        | Outcome::Begun(_)
        | Outcome::Noted
        | Outcome::Session(_)
        | Outcome::Keys(_) => {
            write_code(b"HD", style, key, out);
        }
        Outcome::Miss => write_code(b"EN", style, key, out),
        Outcome::NotStored => write_code(b"NS", style, key, out),
        Outcome::Exists => write_code(b"EX", style, key, out),
        Outcome::NotFound => write_code(b"NF", style, key, out),
    }
}

/// Whether a quiet client takes this outcome for granted: a miss for mg, success for the others.
fn is_nominal(verb: MetaVerb, outcome: &Outcome) -> bool {
    match verb {
        MetaVerb::Get => matches!(outcome, Outcome::Miss),
        MetaVerb::Set | MetaVerb::Delete | MetaVerb::Arith => {
            matches!(outcome, Outcome::Stored(_) | Outcome::Deleted | Outcome::Number(..))
        }
        MetaVerb::Debug => false,
    }
}

/// A code about no item.
fn write_code(code: &[u8; 2], style: &MetaStyle, key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(code);
    write_flags(style, key, None, out);
}

/// VA with the value, or HD.
fn write_meta_item(style: &MetaStyle, key: &[u8], item: &ItemView, value: &[u8], out: &mut Vec<u8>) {
    if !meta_prints_value(style, item) {
        out.extend_from_slice(b"HD");
        return write_flags(style, key, Some(item), out);
    }
    out.extend_from_slice(b"VA ");
    if item.object.is_some() {
        write_number(item.value_len, out);
        return write_flags(style, key, Some(item), out);
    }
    write_number(value.len() as u64, out);
    write_flags(style, key, Some(item), out);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether the bytes of `item`, which was read, are printed.
pub(super) fn prints_value(style: &ReplyStyle, item: &ItemView) -> bool {
    match style {
        ReplyStyle::Text => true,
        ReplyStyle::Meta(meta) => meta.verb == MetaVerb::Get && meta_prints_value(meta, item),
        ReplyStyle::Silent | ReplyStyle::TooLarge | ReplyStyle::TooLargeSilent => false,
    }
}

fn meta_prints_value(style: &MetaStyle, item: &ItemView) -> bool {
    // The `C` of an mg names what the client has already; that of other commands is a condition.
    let known = style.verb == MetaVerb::Get && style.known_version == Some(item.version);
    style.value && !known
}

/// The flags that were asked for, in the order of the request, and the end of the line.
fn write_flags(style: &MetaStyle, key: &[u8], item: Option<&ItemView>, out: &mut Vec<u8>) {
    for &letter in style.flags.letters() {
        match (letter, item) {
            (b'O', _) => write_token(b'O', &style.opaque, out),
            (b'k', _) => write_key(style, key, out),
            (_, Some(item)) => write_item_flag(letter, style, item, out),
            (_, None) => write_missing_flag(letter, style, out),
        }
    }
    if let (MetaVerb::Get, Some(item)) = (style.verb, item) {
        write_recache_flags(item, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// A flag that says something of an item, if the command has it.
fn write_item_flag(letter: u8, style: &MetaStyle, item: &ItemView, out: &mut Vec<u8>) {
    let number = match (style.verb, letter) {
        (MetaVerb::Get | MetaVerb::Set | MetaVerb::Arith, b'c') => item.version,
        (MetaVerb::Get | MetaVerb::Set, b's') => item.value_len,
        (MetaVerb::Get | MetaVerb::Arith, b't') => match item.ttl_seconds {
            None => return write_token(b't', b"-1", out),
            Some(seconds) => u64::from(seconds),
        },
        (MetaVerb::Get, b'f') => u64::from(item.flags),
        (MetaVerb::Get, b'h') => u64::from(item.fetched),
        (MetaVerb::Get, b'l') => u64::from(item.idle_seconds),
        _ => return,
    };
    write_number_flag(letter, number, out);
}

/// ms prints its flags even if nothing was stored: no version, and the size of what was sent.
fn write_missing_flag(letter: u8, style: &MetaStyle, out: &mut Vec<u8>) {
    match (style.verb, letter) {
        (MetaVerb::Set, b'c') => write_number_flag(letter, 0, out),
        (MetaVerb::Set, b's') => write_number_flag(letter, style.sent_len, out),
        _ => (),
    }
}

/// Who is to recompute the value: Z somebody else, X it is stale, W this client.
fn write_recache_flags(item: &ItemView, out: &mut Vec<u8>) {
    for (set, text) in [(item.win_sent, b" Z"), (item.stale, b" X"), (item.win, b" W")] {
        if set {
            out.extend_from_slice(text);
        }
    }
}

fn write_key(style: &MetaStyle, key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b" k");
    write_bare_key(style, key, out);
    if style.base64 {
        out.extend_from_slice(b" b");
    }
}

fn write_bare_key(style: &MetaStyle, key: &[u8], out: &mut Vec<u8>) {
    if !style.base64 {
        return out.extend_from_slice(key);
    }
    let start = out.len();
    out.resize(start + key.len().div_ceil(3) * 4, 0);
    let room = out.get_mut(start..).unwrap_or_default();
    STANDARD.encode_slice(key, room).expect("room for four characters per three bytes");
}

/// me: one line of what is known, in memcached's words.
fn write_debug(style: &MetaStyle, key: &[u8], item: &ItemView, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ME ");
    write_bare_key(style, key, out);
    out.extend_from_slice(b" exp=");
    match item.ttl_seconds {
        None => out.extend_from_slice(b"-1"),
        Some(seconds) => write_number(u64::from(seconds), out),
    }
    out.extend_from_slice(b" la=");
    write_number(u64::from(item.idle_seconds), out);
    out.extend_from_slice(b" cas=");
    write_number(item.version, out);
    out.extend_from_slice(if item.fetched { b" fetch=yes" } else { b" fetch=no" });
    out.extend_from_slice(b" cls=");
    write_number(u64::from(types::class_of(item.size_bytes as usize).0), out);
    out.extend_from_slice(b" size=");
    write_number(u64::from(item.size_bytes), out);
    if let Some(object) = &item.object {
        write_descriptor(&object.descriptor, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// What memcached has no words for: how a value in chunks lies. Stripe `s` is in the group at `s` modulo their count.
fn write_descriptor(descriptor: &Descriptor, out: &mut Vec<u8>) {
    let Geometry { len, chunk_len, k, layout } = descriptor.geometry;
    out.extend_from_slice(b" layout=");
    out.extend_from_slice(layout.name().as_bytes());
    let stripes = u64::from(descriptor.geometry.stripe_count());
    let known: [(&[u8], u64); 4] =
        [(b" len=", len), (b" stripes=", stripes), (b" chunk=", chunk_len.into()), (b" k=", k.into())];
    for (name, number) in known {
        out.extend_from_slice(name);
        write_number(number, out);
    }
    out.extend_from_slice(b" groups=");
    for (index, group) in descriptor.groups.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_number(group.0.into(), out);
    }
}

fn write_number_flag(letter: u8, number: u64, out: &mut Vec<u8>) {
    write_token(letter, itoa::Buffer::new().format(number).as_bytes(), out);
}

fn write_token(letter: u8, argument: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[b' ', letter]);
    out.extend_from_slice(argument);
}

fn write_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
