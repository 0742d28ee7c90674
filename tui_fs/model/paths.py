"""Paths as the kernel knows them (any bytes) and as a person may safely see them."""

import base64
import os
import shlex
import unicodedata
from collections.abc import Iterator
from typing import NewType

PATH_MAX_BYTES = 4_096
"""The longest path that the kernel takes, with its closing NUL (linux/limits.h)."""

PathStr = NewType("PathStr", str)
"""A path decoded with ``surrogateescape``: `os.fsencode` gives back the exact bytes."""

_NAMED_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e", "\\": "\\\\"}

# Categories that move the cursor, hide themselves, reorder text or cannot be drawn:
# control, format (U+202E and friends), surrogate, private use, unassigned, separators.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})

# Drawn as nothing or as a space although their category is that of a letter or a mark.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}


def displayable(path: str | bytes) -> str:
    """Return `path` with everything a terminal could act on written as an escape.

    A backslash is doubled, so two different names never look the same. Bytes that are
    not UTF-8 appear as ``\\xNN``.
    """
    text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(_escaped(character) for character in text)


def shell_quoted(argv: tuple[str, ...]) -> str:
    """Return a command line that can be pasted into bash and is safe to show."""
    return " ".join(_shell_word(argument) for argument in argv)


def is_encodable(text: str) -> bool:
    """Tell whether any bytes stand for `text`: not for half a character (U+D800 and so on)."""
    if text.isascii():
        return True
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def upwards(path: str) -> Iterator[str]:
    """Yield an absolute path and those of all directories above it, ``/`` last."""
    while path.strip("/"):  # dirname leaves "//x" at "//"
        yield path
        path = os.path.dirname(path)
    yield "/"


def is_typable(name: str) -> bool:
    """Return whether a person can type a name as it is shown.

    Keyboards produce composed characters (NFC); macOS and some archives store decomposed ones,
    which look the same.
    """
    return (
        displayable(name) == name
        and unicodedata.is_normalized("NFC", name)
        and name == name.strip(" ")
    )


def is_utf8(path: str) -> bool:
    """Tell whether the bytes of `path` are valid UTF-8."""
    try:
        os.fsencode(path).decode("utf-8")
    except UnicodeError:
        return False
    return True


def to_base64(path: str) -> str:
    """Return the exact bytes of `path` in base64."""
    return base64.b64encode(os.fsencode(path)).decode("ascii")


def from_base64(text: str) -> PathStr:
    """Return the path whose exact bytes are given in base64; ValueError if they are not."""
    return PathStr(os.fsdecode(base64.b64decode(text, validate=True)))


def is_within(path: str, directory: str) -> bool:
    """Tell whether `path` is `directory` or lies below it (both absolute and normalised)."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _shell_word(argument: str) -> str:
    shown = displayable(argument)
    if shown == argument or shown == argument.replace("\\", "\\\\"):
        return shlex.quote(argument)
    return "$'" + "".join(_in_dollar_quotes(character) for character in argument) + "'"


def _in_dollar_quotes(character: str) -> str:
    """Write what is not plain as its bytes: bash reads those alike in every locale."""
    if character in "'\\":
        return f"\\{character}"
    if character == _escaped(character):
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def _escaped(character: str) -> str:
    if character in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    is_safe = unicodedata.category(character) not in _UNSAFE_CATEGORIES
    if character == " " or (is_safe and character not in _INVISIBLE):
        return character
    if code < 0x80:  # from here on \\x would mean the byte, not the character
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
