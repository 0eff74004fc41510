//! Long values that say what they are at every place: a history keeps their names, and never their bytes.
//!
//! A value is made of pieces: one for what was stored, and one for each append. Each word of a piece is its own: it tells the piece and its
//! place in it. So a value in which anything is of another one, or lies elsewhere than it should, does not have the name of any value that
//! was written, and a checker takes it for what it is. Pieces that are too short for that are letters, and their own names.

use std::fmt;
use std::io::{self, Write};

use rng::scatter;

use crate::linearizability::Bytes;

/// The bytes that go out at once.
const SLICE: usize = 64 * 1024;
const WORD: usize = 8;
/// Of every piece that is long enough: what it is, its length, its number, and a check of these.
const HEADER: usize = 4 * WORD;
const MAGIC: u64 = u64::from_le_bytes(*b"\xffGESTALT");
/// Bits of a word's place.
const PLACE_BITS: u32 = 30;
/// Bits of the number of a client's piece.
const COUNT_BITS: u32 = 22;

/// Which piece: a client's number, and how many it had written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceId {
    pub client: u64,
    pub count: u64,
}

/// A piece of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub id: PieceId,
    /// In bytes.
    pub len: u64,
}

/// What tells the values of one load from those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

impl Mark {
    pub(super) fn of(text: &str) -> Self {
        Self(text.bytes().fold(1, |hash, byte| scatter(hash ^ u64::from(byte))))
    }
}

impl PieceId {
    fn bits(self) -> u64 {
        self.client << COUNT_BITS | self.count & ((1 << COUNT_BITS) - 1)
    }

    fn of_bits(bits: u64) -> Self {
        Self { client: bits >> COUNT_BITS, count: bits & ((1 << COUNT_BITS) - 1) }
    }
}

impl fmt::Display for PieceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.client, self.count)
    }
}

impl Piece {
    /// What a history calls it.
    pub(super) fn name(self) -> Bytes {
        if self.len >= HEADER as u64 {
            return Bytes(format!("[{}:{}]", self.id, self.len).into_bytes());
        }
        let letters = (0..self.len).map(|at| b'a' + (scatter(self.id.bits() << 8 | at) % 26) as u8);
        Bytes(letters.collect())
    }

    /// The piece of such a name; none if that is its own bytes.
    fn named(name: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(name.strip_prefix(b"[")?.strip_suffix(b"]")?).ok()?;
        let (id, len) = text.split_once(':')?;
        let (client, count) = id.split_once('.')?;
        let id = PieceId { client: client.parse().ok()?, count: count.parse().ok()? };
        Some(Self { id, len: len.parse().ok()? })
    }

    fn word(self, mark: Mark, place: u64) -> u64 {
        match place {
            0 => MAGIC,
            1 => self.len,
            2 => self.id.bits(),
            3 => scatter(self.len ^ scatter(self.id.bits())),
            _ => scatter((self.id.bits() << PLACE_BITS | place) ^ mark.0),
        }
    }
}

/// How many bytes the value of this name has.
pub(super) fn len_of(name: &Bytes) -> u64 {
    Piece::named(&name.0).map_or(name.0.len() as u64, |piece| piece.len)
}

/// Writes the first `len` bytes of the piece of this name.
pub(super) fn write(name: &Bytes, mark: Mark, len: u64, mut out: impl Write) -> io::Result<()> {
    let Some(piece) = Piece::named(&name.0) else {
        return out.write_all(&name.0[..name.0.len().min(usize::try_from(len).unwrap_or(usize::MAX))]);
    };
    let (mut left, mut place) = (piece.len.min(len), 0);
    let mut slice = Vec::with_capacity(SLICE);
    while left > 0 {
        slice.clear();
        let words = (place..).take(SLICE / WORD);
        words.for_each(|place| slice.extend_from_slice(&piece.word(mark, place).to_le_bytes()));
        place += (SLICE / WORD) as u64;
        slice.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        out.write_all(&slice)?;
        left -= slice.len() as u64;
    }
    Ok(())
}

/// Finds the name of a value from its bytes as they come.
pub(super) struct Reader {
    mark: Mark,
    name: Vec<u8>,
    /// Bytes of a word that is not whole.
    rest: Vec<u8>,
    at: At,
}

enum At {
    /// Between pieces.
    Edge,
    /// Words of a header: so many are right.
    Header(Piece, u64),
    /// Within the piece, at this word.
    Body(Piece, u64),
    /// Behind what was wrong.
    Torn,
}

impl Reader {
    pub(super) fn new(mark: Mark) -> Self {
        Self { mark, name: Vec::new(), rest: Vec::new(), at: At::Edge }
    }

    /// More of the value.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match self.at {
                At::Torn => return,
                At::Edge if self.rest.is_empty() && bytes[0].is_ascii_lowercase() => {
                    self.name.push(bytes[0]);
                    &bytes[1..]
                }
                At::Body(piece, place) if self.rest.is_empty() && bytes.len() >= WORD => {
                    self.take_words(piece, place, bytes)
                }
                _ => self.take_part(bytes),
            };
        }
    }

    /// Whole words of a piece, as many as there are.
    fn take_words<'a>(&mut self, piece: Piece, mut place: u64, bytes: &'a [u8]) -> &'a [u8] {
        let whole = (piece.len / WORD as u64).saturating_sub(place);
        let here = bytes.len().min(usize::try_from(whole).unwrap_or(usize::MAX).saturating_mul(WORD));
        let (words, others) = bytes.split_at(here / WORD * WORD);
        if words.is_empty() {
            return self.take_part(bytes);
        }
        for word in words.chunks_exact(WORD) {
            let found = u64::from_le_bytes(word.try_into().expect("a word"));
            if found != piece.word(self.mark, place) {
                self.tear(piece, place, found);
                return &[];
            }
            place += 1;
        }
        self.reach(piece, place);
        others
    }

    /// What is missing of a word.
    fn take_part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let wanted = match self.at {
            At::Body(piece, place) => (piece.len - place * WORD as u64).min(WORD as u64) as usize,
            _ => WORD,
        };
        let (part, others) = bytes.split_at((wanted - self.rest.len()).min(bytes.len()));
        self.rest.extend_from_slice(part);
        if self.rest.len() == wanted {
            let mut word = [0; WORD];
            word[..wanted].copy_from_slice(&self.rest);
            self.rest.clear();
            self.take_word(u64::from_le_bytes(word), wanted);
        }
        others
    }

    /// A word of so many bytes; the others are 0.
    fn take_word(&mut self, found: u64, len: usize) {
        let id = PieceId { client: 0, count: 0 };
        match self.at {
            At::Edge if found == MAGIC => self.at = At::Header(Piece { id, len: 0 }, 1),
            At::Header(piece, 1) => self.at = At::Header(Piece { len: found, ..piece }, 2),
            At::Header(piece, 2) => self.at = At::Header(Piece { id: PieceId::of_bits(found), ..piece }, 3),
            At::Header(piece, 3) if found == piece.word(self.mark, 3) && piece.len >= HEADER as u64 => {
                self.reach(piece, 4);
            }
            At::Body(piece, place) => {
                let expected = piece.word(self.mark, place) & (u64::MAX >> (8 * (WORD - len)));
                if found == expected {
                    let place = if len < WORD { piece.len.div_ceil(WORD as u64) } else { place + 1 };
                    self.reach(piece, place);
                } else {
                    self.tear(piece, place, found);
                }
            }
            At::Edge | At::Header(..) => {
                self.name.extend_from_slice(b"!no header!");
                self.at = At::Torn;
            }
            At::Torn => (),
        }
    }

    /// All before this word is right.
    fn reach(&mut self, piece: Piece, place: u64) {
        self.at = At::Body(piece, place);
        if place * WORD as u64 >= piece.len {
            self.name.extend_from_slice(&piece.name().0);
            self.at = At::Edge;
        }
    }

    fn tear(&mut self, piece: Piece, place: u64, found: u64) {
        let bits = gather(found) ^ self.mark.0;
        let (id, there) = (PieceId::of_bits(bits >> PLACE_BITS), bits & ((1 << PLACE_BITS) - 1));
        let (at, of) = (place * WORD as u64, there * WORD as u64);
        let text = format!("!at {at} of {}:{} lies {of} of {id}!", piece.id, piece.len);
        self.name.extend_from_slice(text.as_bytes());
        self.at = At::Torn;
    }

    /// The name of the value, all of which has come.
    pub(super) fn finish(mut self) -> Bytes {
        match self.at {
            At::Edge if self.rest.is_empty() => (),
            At::Torn => (),
            At::Body(piece, place) => {
                let len = place * WORD as u64 + self.rest.len() as u64;
                self.name.extend_from_slice(format!("!{len} of {}:{}!", piece.id, piece.len).as_bytes());
            }
            At::Edge | At::Header(..) => self.name.extend_from_slice(b"!half a header!"),
        }
        Bytes(self.name)
    }
}

/// What [`scatter`] has scattered.
fn gather(mut z: u64) -> u64 {
    z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    z ^ (z >> 30) ^ (z >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [u64; 12] = [0, 1, 7, 31, 32, 33, 39, 40, 41, 65_535, 65_536, 200_003];

    fn piece(client: u64, count: u64, len: u64) -> Piece {
        Piece { id: PieceId { client, count }, len }
    }

    fn bytes_of(piece: Piece, mark: Mark) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&piece.name(), mark, u64::MAX, &mut bytes).unwrap();
        bytes
    }

    fn name_of(bytes: &[u8], step: usize) -> String {
        let mut reader = Reader::new(Mark::of("m"));
        bytes.chunks(step.max(1)).for_each(|part| reader.take(part));
        String::from_utf8(reader.finish().0).unwrap()
    }

    #[test]
    fn a_value_is_read_as_what_was_written_however_it_comes() {
        let mark = Mark::of("m");
        let (mut all, mut names) = (Vec::new(), String::new());
        for (count, len) in (0..).zip(LENGTHS) {
            let one = piece(3, count, len);
            let bytes = bytes_of(one, mark);
            assert_eq!((bytes.len() as u64, len_of(&one.name())), (len, len));
            all.extend(bytes);
            names.push_str(&String::from_utf8(one.name().0).unwrap());
        }
        for step in [1, 3, 8, 13, 4096, 70_001, all.len()] {
            assert_eq!(name_of(&all, step), names, "{step} bytes at a time");
        }
        let mut part = Vec::new();
        write(&piece(1, 1, 200_003).name(), mark, 70_001, &mut part).unwrap();
        assert_eq!(part.len(), 70_001);
    }

    #[test]
    fn a_value_with_anything_of_another_one_has_no_name_that_was_written() {
        let mark = Mark::of("m");
        let (one, other) = (bytes_of(piece(1, 1, 9000), mark), bytes_of(piece(2, 7, 9000), mark));
        let mut mixed = one.clone();
        mixed[4096..8192].copy_from_slice(&other[4096..8192]);
        assert_eq!(name_of(&mixed, 100), "!at 4096 of 1.1:9000 lies 4096 of 2.7!");
        let mut moved = one.clone();
        moved[64..128].copy_from_slice(&one[128..192]);
        assert_eq!(name_of(&moved, 7), "!at 64 of 1.1:9000 lies 128 of 1.1!");
        assert_eq!(name_of(&one[..8990], 11), "!8990 of 1.1:9000!");
        for place in [0, 9, 17, 25, 33, 8999] {
            let mut flipped = bytes_of(piece(1, 1, 9001), mark);
            flipped[place] ^= 1;
            assert!(name_of(&flipped, 8).contains('!'), "byte {place}");
        }
        let foreign = bytes_of(piece(1, 1, 9000), Mark::of("n"));
        assert!(name_of(&foreign, 512).contains('!'));
    }

    #[test]
    fn what_was_scattered_can_be_gathered() {
        for number in [0, 1, 7, u64::MAX, 0x1234_5678_9abc_def0] {
            assert_eq!(gather(scatter(number)), number);
        }
    }
}
