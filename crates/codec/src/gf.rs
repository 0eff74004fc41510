//! The field GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), in which 2 generates all non-zero
//! elements. Addition and subtraction are XOR. Everything is a table built at compile time.

/// The reducing polynomial.
pub const POLYNOMIAL: u16 = 0x11d;

/// Order of the multiplicative group.
const ORDER: usize = 255;

/// `EXP[i] = 2^i`, twice over, so that the sum of two logarithms needs no reduction.
const EXP: [u8; 2 * ORDER] = {
    let mut table = [0; 2 * ORDER];
    let mut power: u16 = 1;
    let mut i = 0;
    while i < ORDER {
        table[i] = power as u8;
        table[i + ORDER] = power as u8;
        power <<= 1;
        if power > 0xff {
            power ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
};

/// `LOG[2^i] = i`; `LOG[0]` is meaningless and never read.
const LOG: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER {
        table[EXP[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// `INVERSE[a] * a = 1`; `INVERSE[0]` is meaningless and never read.
static INVERSE: [u8; 256] = {
    let mut table = [0; 256];
    let mut a = 1;
    while a < 256 {
        table[a] = EXP[ORDER - LOG[a] as usize];
        a += 1;
    }
    table
};

/// `NIBBLES[c]`: `c * x` for the 16 low nibbles `x`, then `c * (x << 4)` for the 16 high ones. A product of `c` is
/// the XOR of one entry from each half; this is also the operand of a byte shuffle.
pub(crate) static NIBBLES: [[u8; 32]; 256] = {
    let mut tables = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut x = 0;
        while x < 16 {
            tables[c][x] = product(c as u8, x as u8);
            tables[c][x + 16] = product(c as u8, (x << 4) as u8);
            x += 1;
        }
        c += 1;
    }
    tables
};

/// `COEFFICIENTS[c] = c`, as wide as what kernels keep of a coefficient.
pub(crate) static COEFFICIENTS: [u64; 256] = {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        table[c] = c as u64;
        c += 1;
    }
    table
};

/// `a * b` by logarithms.
pub(crate) const fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// `a * b`.
#[must_use]
pub fn mul(a: u8, b: u8) -> u8 {
    let table = &NIBBLES[usize::from(a)];
    table[usize::from(b & 15)] ^ table[16 + usize::from(b >> 4)]
}

/// `2^exponent`.
pub(crate) fn power_of_two(exponent: usize) -> u8 {
    EXP[exponent % ORDER]
}

/// The element whose product with `a` is 1.
///
/// # Panics
/// If `a` is 0, which has none.
#[must_use]
pub fn inverse(a: u8) -> u8 {
    assert!(a != 0, "0 has no inverse");
    INVERSE[usize::from(a)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schoolbook multiplication, independent of all tables.
    fn schoolbook(a: u8, b: u8) -> u8 {
        let mut sum = 0;
        let mut shifted = u16::from(a);
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                sum ^= shifted;
            }
            shifted <<= 1;
            if shifted > 0xff {
                shifted ^= POLYNOMIAL;
            }
        }
        u8::try_from(sum).unwrap()
    }

    #[test]
    fn products_equal_schoolbook_multiplication() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), schoolbook(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn every_non_zero_element_has_an_inverse() {
        for a in 1..=255 {
            assert_eq!(mul(a, inverse(a)), 1);
        }
    }
}
