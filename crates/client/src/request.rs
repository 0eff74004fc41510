//! Writes memcached text requests into a buffer.

/// Longest key.
pub const MAX_KEY_BYTES: usize = 250;

/// Whether memcached's text protocol can carry `key`: 1 to 250 bytes, no blanks, no control characters.
#[must_use]
pub fn is_valid_key(key: &[u8]) -> bool {
    !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.iter().all(|&b| b > b' ' && b != 0x7f)
}

/// `get <key>`.
pub fn get(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"get ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// `set <key> <flags> <exptime> <bytes>` and the value.
pub fn set(out: &mut Vec<u8>, key: &[u8], value: &[u8], flags: u32, exptime: i64) {
    set_header(out, key, value.len() as u64, flags, exptime);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The line of a set whose value of `len` bytes follows.
pub fn set_header(out: &mut Vec<u8>, key: &[u8], len: u64, flags: u32, exptime: i64) {
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key);
    field(out, itoa::Buffer::new().format(flags));
    field(out, itoa::Buffer::new().format(exptime));
    field(out, itoa::Buffer::new().format(len));
    out.extend_from_slice(b"\r\n");
}

/// `delete <key>`.
pub fn delete(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"delete ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

fn field(out: &mut Vec<u8>, text: &str) {
    out.push(b' ');
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_as_the_protocol_document_says() {
        let mut out = Vec::new();
        get(&mut out, b"k");
        set(&mut out, b"k", b"abc", 7, -1);
        delete(&mut out, b"k");
        assert_eq!(out, b"get k\r\nset k 7 -1 3\r\nabc\r\ndelete k\r\n");
    }

    #[test]
    fn keys_with_blanks_or_beyond_250_bytes_are_not_valid() {
        assert!(is_valid_key(b"k"));
        assert!(is_valid_key(&[b'k'; 250]));
        assert!(is_valid_key("ключ".as_bytes()));
        for bad in [&b""[..], b"a b", b"a\r", b"\x7f", &[b'k'; 251]] {
            assert!(!is_valid_key(bad));
        }
    }
}
