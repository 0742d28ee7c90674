"""Convert structs to JSON values and back, with validation of the input.

A text becomes a readable string. If its bytes are not UTF-8, a second field ``NAME_b64`` contains
the exact bytes.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import ValidationError, convert, to_builtins

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import (
    displayable,
    from_base64,
    harmless,
    is_encodable,
    is_utf8,
    to_base64,
)

T = TypeVar("T")
LARGEST_NUMBER = 1 << 100
"""More than any sum of 64-bit counts; a larger or non-finite number means damaged input."""
Argvs = tuple[tuple[str, ...], ...]
Json = Any  # JSON has no closed type in Python; values are checked by `decode`
_EXACT = "_b64"
_NUMBER = int | float


def path_fields(name: str, path: str) -> dict[str, Json]:
    """Return the one or two JSON fields that carry `path` under `name`."""
    return _text_fields(name, path)


def argv_fields(name: str, argvs: Argvs) -> dict[str, Json]:
    """Return the JSON fields for argv lists; ``NAME_b64`` if an argument is not UTF-8."""
    return _text_fields(name, [list(argv) for argv in argvs])


def encode(value: Any) -> Json:
    """Return the JSON value of a struct, enum, mapping, sequence or scalar."""
    return _shown(to_builtins(value, str_keys=True))


def _shown(value: Json) -> Json:
    if isinstance(value, dict):
        shown: dict[str, Json] = {}
        for name, item in value.items():
            shown |= _text_fields(name, _shown(item))
        return shown
    return [_shown(item) for item in value] if isinstance(value, list | tuple) else value


def decode(kind: type[T], value: Json) -> T:
    """Return `value` as a `kind`; BadInput names the invalid field."""
    name = kind.__name__
    try:
        return convert(_exact(value, name), kind)
    except (ValidationError, UnicodeEncodeError) as error:  # a choice that is not UTF-8
        problem = harmless(str(error).replace("`$", f"`{name}"))
        raise BadInput(f"{name} is invalid: {problem}.") from error
    except RecursionError as error:
        raise BadInput(f"{name} is nested too deeply.") from error


def _exact(value: Json, *where: str) -> Json:
    """Return a JSON value with the exact texts in place of the readable ones.

    Args:
        where: the names that lead to the value, for errors.
    """
    if isinstance(value, str):
        if not is_encodable(value):
            raise BadInput(f"{_place(where)} contains an unpaired surrogate.")
    elif isinstance(value, dict):
        result: dict[str, Json] = {}
        for name, item in value.items():
            if not (name.endswith(_EXACT) and name.removesuffix(_EXACT) in value):
                if not is_encodable(name):
                    raise BadInput(f"a key of {_place(where)} contains an unpaired surrogate.")
                exact = _exact_texts(value, name)
                result[name] = _exact(item, *where, name) if exact is None else exact
        return result
    elif isinstance(value, list):
        return [_exact(item, *where) for item in value]
    elif isinstance(value, _NUMBER) and not -LARGEST_NUMBER < value < LARGEST_NUMBER:  # or NaN
        raise BadInput(f"{_place(where)} is not a valid number.")
    return value


def _place(names: Iterable[str]) -> str:
    return ".".join(map(displayable, names))


def why_no_json(error: Exception) -> str:
    """Return a clause why reading a JSON value from a file or a line failed."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return "it is not JSON"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def _text_fields(name: str, value: Json) -> dict[str, Json]:
    """Return a field, and ``NAME_b64`` if a text, or one in a list of texts, is not UTF-8."""
    if all(map(is_utf8, _texts(value))):
        return {name: value}
    is_argvs = isinstance(value, list) and isinstance(value[0], list)
    return {
        name: _map(_shown_argument if is_argvs else displayable, value),
        f"{name}{_EXACT}": _map(to_base64, value),
    }


def _shown_argument(argument: str) -> str:
    return argument if is_utf8(argument) else displayable(argument)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _map(function: Callable[[str], str], value: Json) -> Json:
    if isinstance(value, list):
        return [_map(function, item) for item in value]
    return function(value) if isinstance(value, str) else value


def _exact_texts(record: Mapping[str, Json], name: str) -> Json:
    """Return the texts under ``NAME_b64``; None if there is no such field."""
    exact = record.get(f"{name}{_EXACT}")
    try:
        return None if exact is None else _decoded(exact)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{displayable(name)}{_EXACT} is not base64.") from error


def _decoded(value: Json) -> Json:
    return [_decoded(item) for item in value] if isinstance(value, list) else from_base64(value)
