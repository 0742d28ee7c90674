//! Writes values for CPython's `marshal.loads` (Python/marshal.c), which is fast because it is C.
//!
//! A value is a tag of one byte and its data, all numbers little-endian: `N` None,
//! `T` and `F` True and False, `i` a number of 32 bits, `l` a longer one (how many digits of 15
//! bits, negative for a negative number, and the digits, 16 bits each), `s` bytes (length of 32
//! bits), `)` a tuple of at most 255 values (length of 8 bits), `[` a list (length of 32 bits).

const DIGIT_BITS: u32 = 15;
const DIGIT: u128 = (1 << DIGIT_BITS) - 1;

pub fn none(out: &mut Vec<u8>) {
    out.push(b'N');
}

pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.push(if value { b'T' } else { b'F' });
}

pub fn integer(out: &mut Vec<u8>, value: i128) {
    if let Ok(short) = i32::try_from(value) {
        out.push(b'i');
        out.extend_from_slice(&short.to_le_bytes());
        return;
    }
    let mut rest = value.unsigned_abs();
    let digits = (u128::BITS - rest.leading_zeros()).div_ceil(DIGIT_BITS) as i32;
    out.push(b'l');
    out.extend_from_slice(&(digits * value.signum() as i32).to_le_bytes());
    while rest > 0 {
        out.extend_from_slice(&((rest & DIGIT) as u16).to_le_bytes());
        rest >>= DIGIT_BITS;
    }
}

pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b's');
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
}

/// Starts a tuple; its values follow.
pub fn tuple(out: &mut Vec<u8>, length: u8) {
    out.extend_from_slice(&[b')', length]);
}

/// Starts a list; its values follow.
pub fn list(out: &mut Vec<u8>, length: u32) {
    out.push(b'[');
    out.extend_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn numbers_are_those_of_cpython() {
        // As marshal.dumps(number) of CPython 3.11 writes them, its flag for references (0x80 in
        // the tag) aside.
        let known: [(i128, &[u8]); 8] = [
            (0, b"i\0\0\0\0"),
            (-1, b"i\xff\xff\xff\xff"),
            ((1 << 31) - 1, b"i\xff\xff\xff\x7f"),
            (-(1 << 31), b"i\0\0\0\x80"),
            (1 << 31, b"l\x03\0\0\0\0\0\0\0\x02\0"),
            (-(1 << 31) - 1, b"l\xfd\xff\xff\xff\x01\0\0\0\x02\0"),
            (
                (1 << 64) - 1,
                b"l\x05\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\x0f\0",
            ),
            (7 << 64 | 3, b"l\x05\0\0\0\x03\0\0\0\0\0\0\0\x70\0"),
        ];
        for (number, expected) in known {
            assert_eq!(written(|out| integer(out, number)), expected, "{number}");
        }
    }

    #[test]
    fn other_values_are_those_of_cpython() {
        let bytes = written(|out| {
            tuple(out, 4);
            list(out, 1);
            bytes(out, b"a\xff\0");
            boolean(out, true);
            boolean(out, false);
            none(out);
        });
        assert_eq!(bytes, b")\x04[\x01\0\0\0s\x03\0\0\0a\xff\0TFN");
    }
}
