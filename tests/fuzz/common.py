"""Count inputs, limit their time, and make them from samples."""

import copy
import enum
import json
import os
import signal
import types
import typing
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from tui_fs.model.events import JobStarted
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import StrategyName
from tui_fs.model.target import Target
from tui_fs.strategies.registry import STRATEGIES

VARIABLE = "TUI_FS_FUZZ_EXAMPLES"
EXAMPLES = int(os.environ.get(VARIABLE, "150"))
"""Inputs for each target."""

fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
fuzzed_rarely = settings(fuzzed, max_examples=max(10, EXAMPLES // 10))
"""For targets that start a process for each input."""

inputs: Counter[str] = Counter()
"""The number of tried inputs, by the test's name."""

_LONGEST_S = 60
DIGITS = "9" * 5_000
"""More than Python turns into a number."""


@contextmanager
def tried(number: int = 1) -> Iterator[None]:
    """Count the inputs that are parsed in this context; fail if that does not end."""
    name = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0].partition("tests/fuzz/")[2]
    inputs[name] += number
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(_LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _hangs(*_: object) -> NoReturn:
    raise AssertionError(f"not parsed within {_LONGEST_S} s")


# Bytes

TOKENS: tuple[bytes, ...] = (
    *(b"", b"\0", b"\xff", b"\n", b"\r", b"\x1b[2J", b" ", b":", b"'", b'"', b"$'", b"\\", b"\\'"),
    *(b"\\777", b"\\#777", b"\\04", b"\\x", b"': ", b") failed: ", b" (1)", b" - ", b"/", b"/."),
    *(b"-1", b"0", b"010", b"0x", b"0xg", b"1_0", b"1.2.3", b".", b"1e400", b"nan", b"NaN", b"inf"),
    *(DIGITS.encode(), b"18446744073709551616", "\u00b2".encode(), "\u0661".encode()),
    *(b"\xed\xa0\x80", b"\xc3", "\u202e".encode(), b"{", b"}", b"[", b"[" * 3_000, b",", b"null"),
)
"""Fragments that parsers often mishandle."""


@st.composite
def mutated(draw: st.DrawFn, samples: Sequence[bytes], most: int = 4) -> bytes:
    """Return a sample that was cut, bit-flipped, split, repeated, or had bytes inserted."""
    text = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, most))):
        start, end = sorted((_place(draw, text), _place(draw, text)))
        match draw(st.sampled_from(["cut", "flip", "put", "replace", "repeat", "tear", "bytes"])):
            case "cut":
                text = text[:start] + text[end:]
            case "flip" if start < len(text):
                flipped = text[start] ^ (1 << draw(st.integers(0, 7)))
                text = text[:start] + bytes([flipped]) + text[start + 1 :]
            case "put":
                text = text[:start] + draw(st.sampled_from(TOKENS)) + text[start:]
            case "replace":
                text = text[:start] + draw(st.sampled_from(TOKENS)) + text[end:]
            case "repeat":
                text = text[:end] + text[start:end] * draw(st.integers(1, 3)) + text[end:]
            case "tear":
                text = text[:start] + draw(st.sampled_from(samples)) + text[start:]
            case _:
                text = text[:start] + draw(st.binary(max_size=8)) + text[end:]
    return text


NUMBERS = (
    *(b"0", b"1", b"13", b"39", b"010", b"0x200", b"0xffffffff", b"-1", b"0.000009", b"99999"),
    *(b"1.5", b"1.2.3", b"", b".", b"1_0", b"+1", b"1e400", b"nan", b"inf", b"?"),
    *(DIGITS.encode(), b"0x" + b"f" * 5_000, b"0." + DIGITS.encode(), b"18446744073709551616"),
    "\u0661".encode(),
)


@st.composite
def filled(draw: st.DrawFn, *templates: bytes) -> bytes:
    """Return a template with a number of any kind at each ``@``."""
    parts = draw(st.sampled_from(templates)).split(b"@")
    numbers = [draw(st.sampled_from(NUMBERS)) for _ in parts[1:]]
    pairs = zip([b"", *numbers], parts, strict=True)
    return b"".join(number + part for number, part in pairs)


def _place(draw: st.DrawFn, text: bytes) -> int:
    return draw(st.integers(0, len(text)))


@st.composite
def pieces(draw: st.DrawFn, text: bytes) -> list[bytes]:
    """Return a text in pieces that end at any byte."""
    cuts = draw(st.lists(st.integers(0, len(text)), max_size=8))
    ends = sorted({*cuts, len(text)})
    return [text[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


# JSON

_HUGE, _EXPONENT, _DEEP = "<huge>", "<exponent>", "<deep>"
_NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1 << 31, 1 << 63, 1 << 64, -(1 << 64), 1 << 100, 10**400),
    *(0.0, -0.0, 0.5, 5e-324, 1e300, float("nan"), float("inf"), float("-inf")),
    *("", "\0", "\x1b[2J", "\u202e", "\ud800", "\udcff", "\udfff\ud800", "\u00b2", DIGITS, "nan"),
    *("YQ==", "YQ=", "====", "/9g=", "AA==", "\u00e9", "rm", "done", "perf", "Paused"),
    *([], {}, [[]], [None], {"": None}, {"\ud800": 1}, [{}], _HUGE, _EXPONENT, _DEEP),
)
nasty = st.sampled_from(_NASTY).map(copy.deepcopy)  # what is drawn may be changed


class _Doubled(dict[str, Any]):
    """An object that names one of its keys twice."""

    def __init__(self, first: dict[str, Any], key: str, again: Any) -> None:
        super().__init__(first)
        self._more = (key, again)

    def items(self) -> Any:
        """Return the pairs, one key twice."""
        return [*super().items(), self._more]


@st.composite
def damaged(draw: st.DrawFn, value: Any, most: int = 3) -> bytes:
    """Return the JSON text of a value with some parts replaced, removed, added or doubled."""
    whole = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(0, most))):
        whole = _damaged(draw, whole)
    text = json.dumps(whole, separators=(",", ":"))
    text = text.replace(f'"{_HUGE}"', DIGITS).replace(f'"{_EXPONENT}"', "-1e4000")
    return text.replace(f'"{_DEEP}"', "[" * 5_000 + "]" * 5_000).encode("ascii")


def _damaged(draw: st.DrawFn, value: Any) -> Any:
    """Descend some levels and change one part there."""
    if not isinstance(value, dict | list) or not value:
        return draw(nasty)
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    match draw(st.sampled_from(["down", "down", "down", "replace", "lose", "add", "double"])):
        case "down":
            value[key] = _damaged(draw, value[key])
        case "replace":
            value[key] = draw(nasty)
        case "lose":
            del value[key]
        case "double" if isinstance(value, dict):
            return _Doubled(value, key, draw(nasty | st.sampled_from(list(value.values()))))
        case _ if isinstance(value, dict):
            value[f"{key}_b64"] = draw(nasty)
        case _:
            value.append(draw(nasty))
    return value


# Values of any type that the journal and the plan are made of

_bytes = st.binary(max_size=12) | st.sampled_from([b"/srv/spool", b"\xff\n", b"a b", b"\xc3\xa9"])
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    types.NoneType: st.none(),
    bool: st.booleans(),
    int: st.integers(0, 1 << 64) | st.integers(-(1 << 70), 1 << 70),
    float: st.floats(-1e20, 1e20),  # sums of a few stay below the largest
    str: st.text(max_size=8) | _bytes.map(os.fsdecode),
    PathStr: _bytes.map(os.fsdecode),
    StrategyName: st.sampled_from(list(STRATEGIES)) | st.text(max_size=8).map(StrategyName),
}
_absolute_paths = _bytes.map(lambda path: PathStr(os.fsdecode(b"/" + path)))


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a type, recursively."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if isinstance(hint, type) and issubclass(hint, Struct):
        values = {field.name: values_of(field.type) for field in fields(hint)}
        if hint is Target:
            values["path"] = _absolute_paths
        if "targets" in values:
            target = _absolute_paths if hint is JobStarted else values_of(Target)
            values["targets"] = st.lists(target, min_size=1, max_size=3).map(tuple)
        return st.builds(hint, **values)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(
            [
                st.none() if argument is types.NoneType else values_of(argument)
                for argument in arguments
            ]
        )
    if origin is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    assert origin is tuple, hint
    if arguments[1:] == (...,):
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    return st.tuples(*map(values_of, arguments))
