//! Flags of names: undecodable bytes, unprintable characters, dashes, spaces, length.

use std::borrow::Cow;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::records::flag;

/// NAME_MAX is 255 (limits.h).
const MIN_LONG_NAME_BYTES: usize = 250;

pub fn name_flags(name: &[u8]) -> u32 {
    let mut flags = 0;
    if name.first() == Some(&b'-') {
        flags |= flag::DASH_NAMES;
    }
    if name.first() == Some(&b' ') || name.last() == Some(&b' ') {
        flags |= flag::SPACE_NAMES;
    }
    if name.len() >= MIN_LONG_NAME_BYTES {
        flags |= flag::LONG_NAMES;
    }
    if !name.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        flags |= non_ascii_flags(name);
    }
    flags
}

fn non_ascii_flags(name: &[u8]) -> u32 {
    let mut flags = 0;
    let text = String::from_utf8_lossy(name); // U+FFFD for undecodable bytes, which is printable
    if matches!(text, Cow::Owned(_)) {
        flags |= flag::UNDECODABLE_NAMES;
    }
    if !text.chars().all(is_printable) {
        flags |= flag::CONTROL_NAMES;
    }
    flags
}

/// Returns whether a character is neither a separator other than the space nor in a category Other.
///
/// Unassigned characters count as printable, because they depend on the version of Unicode.
fn is_printable(character: char) -> bool {
    character == ' '
        || character.general_category() == GeneralCategory::Unassigned
        || !matches!(
            character.general_category_group(),
            GeneralCategoryGroup::Separator | GeneralCategoryGroup::Other
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_flags_of_the_python_walker() {
        // The same names as in tests/unit/test_survey_tally.py.
        let cases: [(&[u8], u32); 20] = [
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
            (&[b'n'; MIN_LONG_NAME_BYTES - 1], 0),
            (&[b'n'; MIN_LONG_NAME_BYTES], flag::LONG_NAMES),
        ];
        for (name, flags) in cases {
            assert_eq!(name_flags(name), flags, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn text_between_undecodable_bytes_is_checked() {
        assert_eq!(name_flags(b"\xe2(\xa1"), flag::UNDECODABLE_NAMES);
        let both = flag::UNDECODABLE_NAMES | flag::CONTROL_NAMES;
        assert_eq!(name_flags(b"\xf0\x9f\x01\xff"), both);
        assert_eq!(name_flags(b"a\xc3"), flag::UNDECODABLE_NAMES);
    }
}
