//! What a name gives away: bytes that are no text, characters that are not shown, dashes, spaces.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::records::flag;

/// NAME_MAX is 255 (limits.h).
const LONG_NAME_BYTES: usize = 250;

/// Tells what is special about a name.
pub fn flags_of(name: &[u8]) -> u32 {
    let mut flags = 0;
    if name.first() == Some(&b'-') {
        flags |= flag::DASH_NAMES;
    }
    if name.first() == Some(&b' ') || name.last() == Some(&b' ') {
        flags |= flag::SPACE_NAMES;
    }
    if name.len() >= LONG_NAME_BYTES {
        flags |= flag::LONG_NAMES;
    }
    if !name.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        flags |= flags_of_letters(name);
    }
    flags
}

fn flags_of_letters(name: &[u8]) -> u32 {
    let mut flags = 0;
    for chunk in chunks(name) {
        match chunk {
            Some(text) if text.chars().all(is_shown) => (),
            Some(_) => flags |= flag::CONTROL_NAMES,
            None => flags |= flag::UNDECODABLE_NAMES,
        }
    }
    flags
}

/// What is UTF-8 in a name; `None` for what is not.
fn chunks(name: &[u8]) -> Vec<Option<&str>> {
    let mut found = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (valid, invalid) = match std::str::from_utf8(rest) {
            Ok(_) => (rest.len(), 0),
            Err(why) => {
                let valid = why.valid_up_to();
                (valid, why.error_len().unwrap_or(rest.len() - valid))
            }
        };
        found.push(std::str::from_utf8(&rest[..valid]).ok());
        if invalid > 0 {
            found.push(None);
        }
        rest = &rest[valid + invalid..];
    }
    found
}

/// Neither a separator, the space aside, nor of the categories Other. Unassigned is not one of
/// them: which letters are depends on the version of Unicode.
fn is_shown(letter: char) -> bool {
    letter == ' '
        || letter.general_category() == GeneralCategory::Unassigned
        || !matches!(
            letter.general_category_group(),
            GeneralCategoryGroup::Separator | GeneralCategoryGroup::Other
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_flagged() {
        // The same names as in tests/unit/test_survey_tally.py.
        let known: [(&[u8], u32); 20] = [
            (b"plain", 0),
            ("caf\u{e9}".as_bytes(), 0),
            ("\u{65e5}\u{672c}".as_bytes(), 0),
            (b"in-side dash", 0),
            (b"-rf", flag::DASH_NAMES),
            (b" x", flag::SPACE_NAMES),
            (b"x ", flag::SPACE_NAMES),
            (b"new\nline", flag::CONTROL_NAMES),
            (b"\x7f", flag::CONTROL_NAMES),
            ("\u{202e}gnp.exe".as_bytes(), flag::CONTROL_NAMES),
            ("\u{200b}".as_bytes(), flag::CONTROL_NAMES),
            ("\u{85}".as_bytes(), flag::CONTROL_NAMES),
            ("\u{a0}".as_bytes(), flag::CONTROL_NAMES),
            ("\u{e000}".as_bytes(), flag::CONTROL_NAMES),
            ("\u{378}\u{3d000}".as_bytes(), 0), // unassigned in some versions of Unicode
            (b"caf\xe9", flag::UNDECODABLE_NAMES),
            (b"\xff\x01", flag::UNDECODABLE_NAMES | flag::CONTROL_NAMES),
            (b"- \xff", flag::DASH_NAMES | flag::UNDECODABLE_NAMES),
            (&[b'n'; LONG_NAME_BYTES - 1], 0),
            (&[b'n'; LONG_NAME_BYTES], flag::LONG_NAMES),
        ];
        for (name, flags) in known {
            assert_eq!(flags_of(name), flags, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn what_is_text_between_wrong_bytes_is_looked_at() {
        assert_eq!(flags_of(b"\xe2(\xa1"), flag::UNDECODABLE_NAMES);
        let both = flag::UNDECODABLE_NAMES | flag::CONTROL_NAMES;
        assert_eq!(flags_of(b"\xf0\x9f\x01\xff"), both);
        assert_eq!(flags_of(b"a\xc3"), flag::UNDECODABLE_NAMES);
    }
}
