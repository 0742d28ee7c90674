"""User input and output: command lines, sizes, ages, paths in escapes and in base64."""

import argparse
import base64
import contextlib
import io
import os
import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.common import DIGITS, fuzzed, mutated, tried
from tui_fs.cli.arguments import directory_argument, options_of, trace_of
from tui_fs.cli.parser import parse
from tui_fs.model.codec import decode, encode
from tui_fs.model.command import COMMANDS, read_command
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, from_base64, is_encodable, to_base64
from tui_fs.model.strategy import Options
from tui_fs.model.units import (
    bytes_iec,
    clock,
    count,
    duration,
    parse_age,
    parse_size,
    short_count,
)
from tui_fs.strategies.registry import STRATEGIES

# Command lines

_COMMANDS = ["survey", "estimate", "delete", "jobs", "attach", "doctor", *COMMANDS]
_OPTIONS = (
    *("--json", "--yes", "--dry-run", "--detach", "--keep-root", "--accept-races", "--gentle"),
    *("--strategy", "--name", "--min-size", "--older-than", "--trace", "--nice", "--ionice"),
    *("--threads", "--rate", "--batch-size", "--processes", "--top", "--slow-link", "--read-only"),
    *("--help", "-h", "--version", "--", "-", "---", "--=", "-=", "--y", "--n", "--k", "-yes"),
)
_VALUES = (
    *STRATEGIES,
    "engine",
    *("auto", "perf", "strace", "off", "output", "idle"),
    *("10", "0", "-1", "19", "20", "1000001", "1e3", "1_0", " 1", "\u00b2", "\u0661", DIGITS),
    *("10M", "1GiB", "9999999999p", "30d", "1.5h", "-5m", "*.log", "", ".", "/", "/srv", "a\nb"),
    *(
        "\x1b[2J",
        "\udcff",
        "\ud800",
        "\0",
        "%s",
        "%(prog)s",
        "{}",
        "--yes=1",
        "--strategy=rm",
        "@x",
    ),
)
words = st.sampled_from(_OPTIONS) | st.sampled_from(_VALUES) | st.text(max_size=6)
with_values = st.builds("{}={}".format, st.sampled_from(_OPTIONS), st.sampled_from(_VALUES))
command_lines = st.one_of(
    st.lists(words | with_values, max_size=6),
    st.builds(
        lambda command, rest: [command, *rest],
        st.sampled_from(_COMMANDS),
        st.lists(words | with_values, max_size=8),
    ),
    st.builds(
        lambda rest: ["delete", "/srv", "--strategy", "rm", *rest],
        st.lists(with_values | st.sampled_from(_OPTIONS), max_size=5),
    ),
)


@given(command_lines)
@fuzzed
def test_any_command_line_is_understood_or_refused(arguments: list[str]) -> None:
    with tried(), contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            # When parsed (and never obeyed)
            parsed = parse(arguments)
        except SystemExit as end:
            assert end.code == 0
            assert printed.getvalue()
            return
        except BadInput as refusal:
            # ... or a sentence that is safe to print on a terminal, ...
            assert refusal.sentence.isprintable()
            assert refusal.sentence.endswith(".")
            return
    # ... or values that are in range, and nothing that was not asked for
    _assert_in_range(parsed, arguments)


def _assert_in_range(parsed: argparse.Namespace, arguments: list[str]) -> None:
    if hasattr(parsed, "path"):
        assert parsed.path is None or parsed.path in arguments
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if getattr(parsed, "yes", False):
        assert {"--y", "--ye", "--yes"} & set(before)
    if getattr(parsed, "keep_root", False):
        assert any(option.startswith("--k") for option in before)
    if hasattr(parsed, "batch_size"):
        options = options_of(parsed)
        assert 1 <= options.batch_size <= 1_000_000
        assert 1 <= options.processes <= 1_000_000
        assert 0 <= options.pace.nice <= 19
        assert 0 <= options.pace.rate_per_s <= 1_000_000
        assert options.filters.name_glob is None or "\0" not in options.filters.name_glob
        assert decode(Options, encode(options)) == options
    if hasattr(parsed, "trace"):
        trace_of(parsed)
    if hasattr(parsed, "top"):
        assert 0 <= parsed.top <= 1_000_000


@given(st.text(max_size=20) | st.sampled_from(_VALUES))
@fuzzed
def test_any_path_is_a_directory_or_refused(path: str) -> None:
    with tried():
        try:
            argument = directory_argument(path)
        except BadInput as refusal:
            assert refusal.sentence.isprintable()
        else:
            assert os.path.isdir(argument)
            assert path


@given(
    st.builds("{} {}".format, st.sampled_from([*COMMANDS, "", "x"]), st.sampled_from(_VALUES))
    | st.text(max_size=20)
)
@fuzzed
def test_any_command_to_a_job_is_known_or_refused(line: str) -> None:
    with tried():
        try:
            command = read_command(line)
        except BadInput:
            return
        assert read_command(str(command)) == command
        assert str(command).isascii()


# Sizes, ages and figures

_FACTORS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
amounts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "0", "00"]),
    st.integers(0, 1 << 70) | st.integers(0, 2000),
    st.sampled_from(["", " ", "\t", "\u00a0"]),
    st.sampled_from(["", *"kKmMgGtTpPsShHdDwWbBeE", "kb", "KiB", "iB", "Mi", "bb", "\u212a"]),
)
anything = amounts | st.text(max_size=8) | mutated([b"10k", b"30d"]).map(os.fsdecode)


@given(anything)
@fuzzed
def test_a_size_is_what_it_says_or_refused(text: str) -> None:
    with tried():
        try:
            size = parse_size(text)
        except ValueError as refusal:
            assert "file" in str(refusal) or "size" in str(refusal)
            return
    digits = re.match(r"\s*0*(\d+)", text)
    unit = re.sub(r"[\s\d]", "", text).lower().removesuffix("b").removesuffix("i")
    assert digits is not None
    assert size == int(digits[1]) * 1024 ** _FACTORS[unit] < 1 << 63


@given(anything)
@fuzzed
def test_an_age_is_what_it_says_or_refused(text: str) -> None:
    with tried():
        try:
            age = parse_age(text)
        except ValueError as refusal:
            assert "file" in str(refusal) or "age" in str(refusal)
            return
    digits = re.match(r"\s*0*(\d+)", text)
    assert digits is not None
    assert age == int(digits[1]) * _SECONDS[text.strip()[-1].lower()] < 1 << 63


@given(st.integers(-(1 << 100), 1 << 100) | st.integers(-(1 << 20), 1 << 20))
@fuzzed
def test_any_figure_can_be_shown(number: int) -> None:
    with tried():
        texts = [count(number), bytes_iec(number), short_count(number)]
        texts += [clock(float(number)), duration(float(number))]
    assert all(text.isprintable() for text in texts)
    assert int(texts[0].replace(",", "")) == number
    shown, unit = texts[1].replace(",", "").split()
    power = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB").index(unit)
    assert abs(Fraction(shown) * 1024**power - number) <= Fraction(6, 100) * 1024**power


# Paths

any_bytes = st.binary(max_size=24) | mutated(
    ["größe \u202e\u3164\ufe0f".encode(), b"a\\x41\\n\n\xff", "\U000e0041\u0085\\u0085".encode()]
)


@given(any_bytes)
@fuzzed
def test_what_is_shown_can_be_turned_back(name: bytes) -> None:
    with tried():
        shown = displayable(name)
    assert shown.isprintable()
    assert _turned_back(shown) == name


_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "e": b"\x1b", "\\": b"\\"}


def _turned_back(shown: str) -> bytes:
    """Undo what `displayable` promises, one escape after the other."""
    exact = b""
    at = 0
    while at < len(shown):
        letter = shown[at + 1] if shown[at] == "\\" else ""
        width = {"x": 2, "u": 4, "U": 8}.get(letter, 0)
        if not letter:
            exact += shown[at].encode()
            at += 1
            continue
        code = shown[at + 2 : at + 2 + width]
        if letter == "x":
            exact += bytes([int(code, 16)])
        elif width:
            exact += chr(int(code, 16)).encode()
        else:
            exact += _ESCAPES[letter]
        at += 2 + width
    return exact


@given(any_bytes)
@fuzzed
def test_a_path_comes_back_from_base64(name: bytes) -> None:
    path = os.fsdecode(name)
    with tried():
        assert os.fsencode(from_base64(to_base64(path))) == name
        assert base64.b64decode(to_base64(path)) == name


@given(st.text(max_size=12) | mutated([b"L3Qv/w==", b"YQ=="]).map(os.fsdecode))
@fuzzed
def test_any_base64_is_a_path_or_refused(text: str) -> None:
    with tried():
        try:
            path = from_base64(text)
        except ValueError:
            return
    assert is_encodable(path)


@given(st.text(st.characters(codec=None), max_size=12))
@fuzzed
def test_any_text_can_be_shown(text: str) -> None:
    with tried():
        assert displayable(text).isprintable()
        assert is_encodable(text) == all(not _is_half(character) for character in text)


def _is_half(character: str) -> bool:
    return 0xD800 <= ord(character) < 0xDC80 or 0xDCFF < ord(character) < 0xE000
