"""Paths stay exact as bytes and harmless on a terminal."""

import subprocess
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.needs import needs_tool
from tests.trees import HOSTILE_NAMES
from tui_fs.model.paths import (
    PathStr,
    displayable,
    escape_without_glyph,
    from_base64,
    harmless,
    is_typable,
    is_utf8,
    is_within,
    shell_quoted,
)
from tui_fs.widgets.cell_drawing import has_glyph

UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_text_names = st.text(min_size=1).map(lambda text: text.encode("utf-8", "surrogatepass"))
_terminal_names = st.text(
    st.sampled_from(
        "a'\"\\x0u8e$`\n\t\r\x1b\x07\x7f\x80\x9b\xad\xe9\u200b\u202e\u2028\ufeff\U000e0041"
    ),
    min_size=1,
).map(str.encode)
NAMES = st.one_of(st.binary(min_size=1), _text_names, _terminal_names)


@given(NAMES)
@example(b"\x1b]0;title\x07")
@example("\u202egnp.exe".encode())
def test_what_is_shown_holds_nothing_a_terminal_acts_on(name: bytes) -> None:
    shown = displayable(name)
    assert not {unicodedata.category(character) for character in shown} & UNSAFE


@given(NAMES, NAMES)
@example(b"\\n", b"\n")
@example(b"\\xff", b"\xff")
@example(b"\x80", b"\xc2\x80")
@example(b"\xad", b"\xc2\xad")
@example(b"\xff", "ÿ".encode())
def test_two_different_names_never_look_alike(one: bytes, other: bytes) -> None:
    assert (displayable(one) == displayable(other)) == (one == other)


@given(NAMES)
def test_bytes_and_their_decoded_path_look_the_same(name: bytes) -> None:
    assert displayable(name) == displayable(name.decode("utf-8", "surrogateescape"))


@given(st.text(max_size=12), st.text(max_size=12))
@example("trail ", "trail")
@example("a  b", "a b")
@example("caf\u00e9", "cafe\u0301")
@example("\u212b", "\u00c5")
@example("\uac00", "\u1100\u1161")
@example("a\u0323\u0302", "a\u0302\u0323")
@example("b\u0301\u0301", "b\u0301")
@settings(max_examples=300)
def test_names_that_differ_also_differ_where_accents_are_composed(one: str, other: str) -> None:
    shown = [unicodedata.normalize("NFC", displayable(name)) for name in (one, other)]
    assert (shown[0] == shown[1]) == (one == other)
    for text in shown:
        assert text.strip(" ") == text
        assert "  " not in text
        assert unicodedata.is_normalized("NFC", text)


@pytest.mark.parametrize("name", ["क्षि", "שָׁ", "กี่", "မြွှေ့", "ấ가が", "日本 語", "a b"])
def test_writing_systems_with_marks_are_shown_as_they_are(name: str) -> None:
    assert displayable(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("r\u0430dio", "r\\u0430dio"),
        ("\u0421ache", "\\u0421ache"),
        ("отчёт_v2.pdf", "отчёт_v2.pdf"),
        ("СССР", "СССР"),
        ("αβγ-x", "αβγ-x"),
        ("Δt", "Δt"),
    ],
)
def test_a_letter_that_looks_like_a_latin_one_among_these_is_an_escape(
    name: str, shown: str
) -> None:
    assert displayable(name) == shown


@pytest.mark.parametrize(
    "name", ["\u2800", "\u180b", "\U0001d159", "\U00016fe4", "\u0301", "/\u0338"]
)
def test_what_draws_nothing_of_its_own_is_an_escape(name: str) -> None:
    assert displayable(name).isascii()


@pytest.mark.parametrize(
    ("terminal", "names"),
    [
        ("linux", {"größe": "größe", "中文": "\\u4e2d\\u6587", "Ł": "\\u0141", "Γ": "\\u0393"}),
        ("vt100", {"größe": "gr\\u00f6\\u00dfe", "a b": "a b"}),
        ("xterm-256color", {"größe": "größe", "中文": "中文"}),
    ],
)
def test_what_the_font_of_a_terminal_lacks_is_an_escape(
    terminal: str, names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setattr("tui_fs.model.paths._has_glyph", None)
    escape_without_glyph(has_glyph)
    assert {name: displayable(name) for name in names} == names
    for name, shown in names.items():
        assert is_typable(name) == (name == shown)
        assert bool(shell_quoted((name,)).startswith("$'")) == (name != shown)


@given(NAMES)
def test_harmless_text_acts_on_no_terminal_and_is_not_changed_again(name: bytes) -> None:
    text = harmless(name.decode("utf-8", "surrogateescape"))
    assert not {unicodedata.category(character) for character in text} & UNSAFE
    assert harmless(text) == text
    assert harmless("a  sentence \\ ") == "a  sentence \\ "


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"plain name.txt", "plain name.txt"),
        (b"/trail /two  words/ ", "/trail\\x20/two \\x20words/\\x20"),
        ("cafe\u0301".encode(), "cafe\\u0301"),
        ("größe".encode(), "größe"),
        (b"a\nb", "a\\nb"),
        (b"a\tb\rc", "a\\tb\\rc"),
        (b"\x1b[2J", "\\e[2J"),
        (b"back\\slash", "back\\\\slash"),
        (b"\xff\xfe", "\\xff\\xfe"),
        ("\u202egnp".encode(), "\\u202egnp"),
        ("\U000e0041".encode(), "\\U000e0041"),
        (b"\x7f", "\\x7f"),
        (b"", ""),
    ],
)
def test_literal_names_are_shown_literally(name: bytes, shown: str) -> None:
    assert displayable(name) == shown


def _after_bash(argv: tuple[str, ...], locale: str = "C.UTF-8") -> list[bytes]:
    """Paste a command line into a bash that prints the words it sees."""
    bash = needs_tool("bash", package="bash")
    finished = subprocess.run(
        [bash, "--norc", "-c", "printf '%s\\0' " + shell_quoted(argv)],
        env={"LC_ALL": locale},
        capture_output=True,
        check=True,
    )
    assert finished.stderr == b""
    return finished.stdout.split(b"\0")[:-1]


WITHOUT_NUL = NAMES.map(lambda name: name.replace(b"\0", b"\1"))


@given(st.lists(WITHOUT_NUL, min_size=1, max_size=20))
@example(list(HOSTILE_NAMES))
@example([b"\xc2\x80", b"\xc2\xad", b"\x80"])
@example([b"a", b"", b"b"])
@settings(max_examples=150)
@pytest.mark.slow
def test_bash_reads_the_quoted_command_line_back_byte_for_byte(words: list[bytes]) -> None:
    argv = tuple(word.decode("utf-8", "surrogateescape") for word in words)
    assert _after_bash(argv) == words


def test_bash_without_utf8_reads_the_same_bytes() -> None:
    # A name with a character that is not shown
    name = "\u202egnp.exe"
    assert _after_bash((name,), locale="C") == [name.encode()]


@given(st.lists(WITHOUT_NUL, min_size=1, max_size=5))
@pytest.mark.slow
def test_a_quoted_command_line_is_safe_to_show(words: list[bytes]) -> None:
    argv = tuple(word.decode("utf-8", "surrogateescape") for word in words)
    assert not {unicodedata.category(quoted) for quoted in shell_quoted(argv)} & UNSAFE


@pytest.mark.parametrize("text", ["!", "YQ", "YQ==\n", "ä", "Y Q=="])
def test_what_is_not_base64_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        from_base64(text)


@pytest.mark.parametrize(
    ("name", "valid"),
    [(b"a", True), ("é\u202e".encode(), True), (b"\xe9", False), (b"a\xff", False)],
)
def test_only_valid_utf8_counts_as_utf8(name: bytes, valid: bool) -> None:
    assert is_utf8(name.decode("utf-8", "surrogateescape")) is valid


@pytest.mark.parametrize(
    ("path", "directory", "within"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b/c", "/a/b", True),
        ("/a/bc", "/a/b", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("/", "/", True),
        ("/", "/a", False),
        ("/a/b\nc", "/a", True),
        ("/a/b", "/a/", True),
    ],
)
def test_within_means_below_and_not_only_a_longer_name(
    path: str, directory: str, within: bool
) -> None:
    assert is_within(PathStr(path), directory) is within
