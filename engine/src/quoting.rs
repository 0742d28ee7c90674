//! Names in messages, quoted as findutils quotes them in the C locale.

/// Quotes a name, and escapes everything that a terminal or a reader of lines could interpret.
pub fn quoted(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    text.push('\'');
    for &byte in name {
        match byte {
            b'\'' => text.push_str("\\'"),
            b'\\' => text.push_str("\\\\"),
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            0x0c => text.push_str("\\f"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x0b => text.push_str("\\v"),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('\'');
    text
}

/// Returns the C library's message of an error, without the number that Rust appends.
pub fn reason(error: rustix::io::Errno) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprintable_characters_are_escaped() {
        assert_eq!(quoted(b"a b-c"), "'a b-c'");
        assert_eq!(quoted(b"a'\\\n\x1b\xff"), "'a\\'\\\\\\n\\033\\377'");
    }

    #[test]
    fn reason_is_the_message_of_the_c_library() {
        assert_eq!(reason(rustix::io::Errno::ACCESS), "Permission denied");
        assert_eq!(reason(rustix::io::Errno::NOTEMPTY), "Directory not empty");
    }
}
