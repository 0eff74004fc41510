//! Cutting a line into tokens, and numbers and times out of tokens. Spaces separate, nothing else does.

use types::UnixSeconds;

use types::op::{Expiry, FlushAt};

/// Times up to 30 days are relative, later ones are seconds since 1970.
pub(super) const MAX_RELATIVE_SECONDS: i32 = 60 * 60 * 24 * 30;

/// The first `N` tokens of a line and how many it has in all.
pub(super) struct Tokens<'a, const N: usize> {
    tokens: [&'a [u8]; N],
    /// All tokens of the line, also those beyond the `N`th.
    pub count: usize,
    last: &'a [u8],
}

impl<'a, const N: usize> Tokens<'a, N> {
    /// Cuts `line` at its spaces.
    pub fn of(line: &'a [u8]) -> Self {
        let mut this = Self { tokens: [&[]; N], count: 0, last: &[] };
        each_token(line, |token| {
            if let Some(place) = this.tokens.get_mut(this.count) {
                *place = token;
            }
            this.last = token;
            this.count += 1;
        });
        this
    }

    /// Token `index`, empty if there is none.
    pub fn get(&self, index: usize) -> &'a [u8] {
        self.tokens.get(index).copied().unwrap_or_default()
    }

    /// The last token, empty if there is none.
    pub fn last(&self) -> &'a [u8] {
        self.last
    }

    /// Tokens `first..`, as many of them as were kept.
    pub fn from(&self, first: usize) -> &[&'a [u8]] {
        self.tokens.get(first..self.count.min(N)).unwrap_or_default()
    }
}

/// All tokens of a line, eight bytes at a time.
#[inline]
pub(super) fn each_token<'a>(line: &'a [u8], mut take: impl FnMut(&'a [u8])) {
    let mut start = 0;
    let mut end = |at: usize| {
        let token = line.get(start..at).unwrap_or_default();
        if !token.is_empty() {
            take(token);
        }
        start = at + 1;
    };
    for (number, bytes) in line.chunks(8).enumerate() {
        let mut spaces = spaces_in(bytes);
        while spaces != 0 {
            end(number * 8 + spaces.trailing_zeros() as usize / 8);
            spaces &= spaces - 1;
        }
    }
    end(line.len());
}

/// The highest bit of each byte that is a space; of at most eight, the first one lowest.
#[inline]
fn spaces_in(bytes: &[u8]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let word = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        padded
    });
    // A byte that is not 0 has a bit above the lowest seven after this, or had it before.
    let others = u64::from_le_bytes(word) ^ u64::from_le_bytes([b' '; 8]);
    !(((others & LOW) + LOW) | others | LOW)
}

/// The tokens of a line, one after the other.
pub(crate) fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|&byte| byte != b' ')?;
        let token = rest.get(start..)?;
        // Tokens are short: a loop beats a vectorised search.
        let end = token.iter().position(|&byte| byte == b' ').unwrap_or(token.len());
        let (token, after) = token.split_at(end);
        rest = after;
        Some(token)
    })
}

/// Most digits of a number of 64 bits, leading zeros included.
const MAX_DIGITS: usize = 22;
/// Any number of so many digits has 64 bits.
const SAFE_DIGITS: usize = 19;
/// Most characters of a number of 32 bits, sign and leading zeros included.
const MAX_DIGITS32: usize = 11;

/// An unsigned decimal number; never wraps.
pub(super) fn number(token: &[u8]) -> Option<u64> {
    if token.is_empty() || token.len() > MAX_DIGITS {
        return None;
    }
    let mut digits = token.iter().map(|byte| byte.wrapping_sub(b'0'));
    if token.len() <= SAFE_DIGITS {
        let add = |sum, digit| (digit <= 9).then_some(sum * 10 + u64::from(digit));
        return digits.try_fold(0, add);
    }
    digits.try_fold(0_u64, |sum, digit| {
        sum.checked_mul(10)?.checked_add(u64::from(digit)).filter(|_| digit <= 9)
    })
}

/// A number of 32 bits.
pub(super) fn number32(token: &[u8]) -> Option<u32> {
    u32::try_from(number(token)?).ok().filter(|_| token.len() <= MAX_DIGITS32)
}

/// A signed number of 32 bits; a sign alone is 0, as memcached has it.
fn signed32(token: &[u8]) -> Option<i32> {
    let value = match token.strip_prefix(b"-") {
        Some(b"") => 0,
        Some(digits) => -i64::try_from(number(digits)?).ok()?,
        None => i64::try_from(number(token)?).ok()?,
    };
    i32::try_from(value).ok().filter(|_| token.len() <= MAX_DIGITS32)
}

/// memcached's longest data block: it adds the two bytes of the line's end, in an `int`.
pub(super) const LONGEST_BLOCK: usize = i32::MAX as usize - 2;

/// The length of a data block: not more than `longest` says, unless memcached takes it.
#[inline]
pub(super) fn data_len(token: &[u8], longest: impl FnOnce() -> usize) -> Option<usize> {
    let len = match signed32(token) {
        Some(len) => usize::try_from(len).ok()?,
        // Whatever memcached takes is read as it does; this it does not.
        None => usize::try_from(number(token)?).ok().filter(|&len| len > LONGEST_BLOCK)?,
    };
    (len <= LONGEST_BLOCK || len <= longest()).then_some(len)
}

/// The client flags of a storage command. memcached reads them with `strtoul`, but ours never wrap.
pub(super) fn client_flags(token: &[u8]) -> Option<u32> {
    u32::try_from(c_long(token)?).ok()
}

/// A time, as all commands but storage commands have it: seconds from now, seconds since 1970, or any negative number
/// for the past.
pub(super) fn seconds(token: &[u8]) -> Option<i32> {
    signed32(token)
}

/// The time of a storage command. memcached reads it with `strtol` and keeps the lower 32 bits with their sign; clients
/// rely on it: libmemcached writes "expired already" as 4294967295.
pub(super) fn stored_seconds(token: &[u8]) -> Option<i32> {
    let [a, b, c, d, ..] = c_long(token)?.to_le_bytes();
    Some(i32::from_le_bytes([a, b, c, d]))
}

/// What C's `strtol` makes of a token, whose end must be the number's or white space.
fn c_long(token: &[u8]) -> Option<i64> {
    if let Some(plain) = number(token).and_then(|value| i64::try_from(value).ok()) {
        return Some(plain);
    }
    let (sign, digits) = match token.trim_ascii_start() {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    // With its sign from the first digit on: the least number has no positive counterpart.
    let mut value = 0_i64;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value.checked_mul(10)?.checked_add(sign * i64::from(byte - b'0'))?,
            _ if at > 0 && byte.is_ascii_whitespace() => return Some(value),
            _ => return None,
        }
    }
    (!digits.is_empty()).then_some(value)
}

/// When something that is stored with this time expires.
pub(super) fn expiry(seconds: i32, now: UnixSeconds) -> Expiry {
    match seconds {
        0 => Expiry::Never,
        // Long ago on every clock of the cluster, also on one that is behind ours.
        ..0 => Expiry::At(UnixSeconds(1)),
        _ => Expiry::At(instant(seconds, now)),
    }
}

/// When a flush with this delay takes place.
pub(super) fn flush_at(seconds: i32, now: UnixSeconds) -> FlushAt {
    if seconds <= 0 { FlushAt::Now } else { FlushAt::At(instant(seconds, now)) }
}

/// Seconds from now until this time, 0 if it is past.
pub(super) fn seconds_ahead(seconds: i32, now: UnixSeconds) -> u32 {
    if seconds <= 0 { 0 } else { instant(seconds, now).0.saturating_sub(now.0) }
}

/// A positive time as an instant.
fn instant(seconds: i32, now: UnixSeconds) -> UnixSeconds {
    let at = u32::try_from(seconds).unwrap_or(0);
    UnixSeconds(if seconds <= MAX_RELATIVE_SECONDS { now.0.saturating_add(at) } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_separate() {
        let tokens = Tokens::<3>::of(b"  set a\tb   0 1 ");
        assert_eq!((tokens.get(0), tokens.get(1), tokens.get(2)), (&b"set"[..], &b"a\tb"[..], &b"0"[..]));
        assert_eq!((tokens.count, tokens.last(), tokens.get(3)), (4, &b"1"[..], &b""[..]));
        assert_eq!(Tokens::<3>::of(b"   ").count, 0);
    }

    #[test]
    fn all_tokens_of_a_line_are_those_one_after_the_other() {
        let texts =
            [&b""[..], b" ", b"a", b"  a \xa0b\x21\x1f  ccccccc dddddddd eeeeeeeee ", b"get 12345678 90 "];
        for line in texts.iter().flat_map(|text| (0..=text.len()).map(|len| &text[..len])) {
            let mut tokens = Vec::new();
            each_token(line, |token| tokens.push(token));
            assert_eq!(tokens, split(line).collect::<Vec<_>>(), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn numbers_never_wrap() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(
            (number(b"01"), number32(b"00000000001"), number32(b"000000000001")),
            (Some(1), Some(1), None)
        );
        for bad in [
            &b""[..],
            b"+",
            b"+1",
            b"-1",
            b"1x",
            b"0x1",
            b"1e1",
            b" 1",
            b"18446744073709551616",
            b"00000000000000000000001",
        ] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
        assert_eq!(data_len(b"2147483645", || LONGEST_BLOCK), Some(2_147_483_645));
        for bad in [&b"2147483646"[..], b"4294967296", b"-1", b"99999999999999999999999"] {
            assert_eq!(data_len(bad, || LONGEST_BLOCK), None, "{bad:?}");
        }
        assert_eq!(data_len(b"4294967296", || 1 << 32), Some(1 << 32));
        for bad in [&b"4294967297"[..], b"-1", b"000000000001", b"x"] {
            assert_eq!(data_len(bad, || 1 << 32), None, "{bad:?}");
        }
        assert_eq!((client_flags(b"4294967295"), client_flags(b"4294967296")), (Some(u32::MAX), None));
    }

    #[test]
    fn times_of_storage_commands_are_the_lower_32_bits_with_their_sign() {
        for (text, seconds) in [
            (&b"4294967295"[..], Some(-1)),
            (b"4294967296", Some(0)),
            (b"2147483648", Some(i32::MIN)),
            (b"9223372036854775807", Some(-1)),
            (b"-9223372036854775808", Some(0)),
            (b"-2147483649", Some(i32::MAX)),
            (b"+5", Some(5)),
            (b"\t5\t", Some(5)),
            (b"9223372036854775808", None),
            (b"-", None),
            (b"5x", None),
            (b"", None),
        ] {
            assert_eq!(stored_seconds(text), seconds, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn times_are_relative_up_to_thirty_days() {
        let now = UnixSeconds(1_000_000_000);
        let at = |text: &[u8]| expiry(seconds(text).unwrap(), now);
        assert_eq!(at(b"0"), Expiry::Never);
        assert_eq!(at(b"-"), Expiry::Never);
        assert_eq!(at(b"60"), Expiry::At(UnixSeconds(1_000_000_060)));
        assert_eq!(at(b"2592000"), Expiry::At(UnixSeconds(1_002_592_000)));
        assert_eq!(at(b"2592001"), Expiry::At(UnixSeconds(2_592_001)));
        assert_eq!(at(b"2147483647"), Expiry::At(UnixSeconds(2_147_483_647)));
        for past in [&b"-1"[..], b"-2147483648"] {
            assert_eq!(at(past), Expiry::At(UnixSeconds(1)));
        }
        for bad in [&b""[..], b"-+1", b"--1", b"abc", b"2147483648", b"4294967295", b"-2147483649", b"+5"] {
            assert_eq!(seconds(bad), None, "{bad:?}");
        }
        assert_eq!(expiry(60, UnixSeconds(u32::MAX)), Expiry::At(UnixSeconds(u32::MAX)));
    }
}
