"""Convert between paths as the kernel stores them (any bytes) and safe text for display."""

import base64
import os
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator
from typing import NewType

PATH_MAX_BYTES = 4_096
"""The longest path of a system call, including the NUL (linux/limits.h)."""

PathStr = NewType("PathStr", str)
"""A path decoded with ``surrogateescape``: `os.fsencode` returns the exact bytes."""

_NAMED_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e", "\\": "\\\\"}

# Categories that move the cursor, are invisible, reorder text or cannot be drawn:
# control, format (U+202E and friends), surrogate, private use, unassigned, separators.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})

# Rendered as nothing or as a space although they are letters, marks or symbols.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2800\U00016fe4\U0001d159") | {
    chr(code) for code in (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}

_ODD = re.compile(r"\\|(?:\A|(?<=[/ ])) | (?=/|\Z)")
"""A backslash, or an inconspicuous space: at an end of a name, or after a space."""

_WORD = re.compile(r"[^\W\d_]+")
_LIKE_LATIN = frozenset("аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅԚԜοανρυιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
"""Letters of other alphabets that look like a Latin one."""

_MOST_MARKS = 6
"""Combining marks allowed on one letter; Burmese needs this many."""


_has_glyph: Callable[[str], bool] | None = None
"""None if the terminal can draw all characters, as far as is known."""


def escape_without_glyph(has_glyph: Callable[[str], bool] | None) -> None:
    """Let `displayable` escape characters for which the terminal has no glyph, from now on.

    Names that differ in such characters would look the same.
    """
    global _has_glyph
    _has_glyph = has_glyph


def displayable(path: str | bytes) -> str:
    """Return `path` with every character that could control a terminal escaped.

    Different names have different results: a backslash is doubled, and a space or accent that is
    inconspicuous or resembles another character is escaped. Bytes that are not UTF-8 become
    ``\\xNN``. For text that is not a path see `harmless`.
    """
    text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
    is_plain = text.isascii() and text.isprintable() and not _ODD.search(text)
    return text if is_plain else "".join(shown_characters(text))


def shown_characters(text: str) -> Iterator[str]:
    """Yield each character of a path as `displayable` shows it."""
    is_composed = unicodedata.is_normalized("NFC", text)
    odd = {match.start() for match in _ODD.finditer(text)}
    odd |= set(_disguised(text))
    letter = ""  # the base of the next character when it combines or composes; all shown unescaped
    for at, character in enumerate(text):
        piece, together = _escaped(character), letter + character
        is_mark = unicodedata.category(character) in ("Mn", "Mc", "Me")
        is_lost = is_mark and not _can_carry(letter, character)
        is_unseen = is_lost or (character != "\\" and at in odd)
        is_unseen = is_unseen or (_has_glyph is not None and not _has_glyph(character))
        if is_unseen or not (is_composed or unicodedata.is_normalized("NFC", together)):
            piece = _code_of(character)
        yield piece
        if piece != character or character in " /":
            letter = ""
        else:
            letter = together if is_mark else character


def harmless(text: str) -> str:
    """Return a sentence or the output of a tool with terminal control characters escaped.

    Unlike `displayable`, this keeps spaces and backslashes, so it is idempotent.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if character == "\\" else _escaped(character) for character in text)


def shell_quoted(argv: tuple[str, ...]) -> str:
    """Return a command line that is safe to show and can be pasted into bash."""
    return " ".join(_shell_word(argument) for argument in argv)


def is_encodable(text: str) -> bool:
    """Return whether `text` can be encoded to bytes; an unpaired surrogate (U+D800) cannot."""
    if text.isascii():
        return True
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def upwards(path: str) -> Iterator[str]:
    """Yield an absolute path and all its ancestors, ``/`` last."""
    while path.strip("/"):  # dirname returns "//" for "//x"
        yield path
        path = os.path.dirname(path)
    yield "/"


def is_typable(name: str) -> bool:
    """Return whether a name can be typed on a keyboard as it is shown.

    Keyboards produce composed characters (NFC). macOS and some archives store decomposed ones.
    """
    single_spaced = re.sub(" +", " ", name)  # visible repeated spaces can be typed
    return displayable(single_spaced) == single_spaced


def is_shown_as_it_is(path: str) -> bool:
    """Return whether `displayable` only doubles backslashes in a path."""
    return displayable(path) == path.replace("\\", "\\\\")


def is_utf8(path: str) -> bool:
    """Return whether the bytes of `path` are valid UTF-8."""
    try:
        os.fsencode(path).decode("utf-8")
    except UnicodeError:
        return False
    return True


def to_base64(path: str) -> str:
    """Return the exact bytes of `path` in base64."""
    return base64.b64encode(os.fsencode(path)).decode("ascii")


def from_base64(text: str) -> PathStr:
    """Return the path with these exact bytes in base64; ValueError if it is not base64."""
    return PathStr(os.fsdecode(base64.b64decode(text, validate=True)))


def is_within(path: str, directory: str) -> bool:
    """Return whether `path` is `directory` or below it (both absolute and normalized)."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _shell_word(argument: str) -> str:
    pieces = list(shown_characters(argument))
    if all(
        character == piece or character in " \\"
        for character, piece in zip(argument, pieces, strict=True)
    ):
        return shlex.quote(argument)
    return "$'" + "".join(map(_in_dollar_quotes, argument, pieces)) + "'"


def _in_dollar_quotes(character: str, piece: str) -> str:
    """Escape non-plain characters as bytes, which bash reads alike in every locale."""
    if character in "'\\":
        return f"\\{character}"
    if character in (piece, " "):
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def _disguised(text: str) -> Iterator[int]:
    """Yield where a letter of another alphabet looks like one of the Latin letters around it."""
    for word in _WORD.finditer(text):
        letters = word.group()
        if not letters.isascii() and re.search("[A-Za-z]", letters):
            yield from (word.start() + at for at, c in enumerate(letters) if c in _LIKE_LATIN)


def _can_carry(letter: str, mark: str) -> bool:
    """Return whether a combining mark is visible on a letter with its marks (not on none)."""
    return letter != "" and len(letter) <= _MOST_MARKS and letter[-1] != mark


def _escaped(character: str) -> str:
    if character in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    is_safe = unicodedata.category(character) not in _UNSAFE_CATEGORIES
    if character == " " or (is_safe and character not in _INVISIBLE):
        return character
    return _code_of(character)


def _code_of(character: str) -> str:
    code = ord(character)
    if code < 0x80:  # above this, \\x would mean the byte, not the character
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
