"""Convert frozen structs to JSON values and back, with validation of the input.

A path (`PathStr`) becomes a readable string. If its bytes are not UTF-8, a second field
``NAME_b64`` contains the exact bytes.
"""

import enum
import json
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import (
    PathStr,
    displayable,
    from_base64,
    is_encodable,
    is_utf8,
    to_base64,
)

T = TypeVar("T")
LARGEST_NUMBER = 1 << 100
"""More than any sum of 64-bit counts; a larger or non-finite number means damaged input."""
Argvs = tuple[tuple[str, ...], ...]
_PATHS = tuple[PathStr, ...]
Json = Any  # JSON has no closed type in Python; values are checked by `decode`


def path_fields(name: str, path: str) -> dict[str, Json]:
    """Return the one or two JSON fields that carry `path` under `name`."""
    if is_utf8(path):
        return {name: path}
    return {name: displayable(path), f"{name}_b64": to_base64(path)}


def shown_path(record: Mapping[str, Json], name: str) -> str:
    """Return the displayable path under `name`; with a _b64 field it is already escaped."""
    text = str(record[name])
    return text if f"{name}_b64" in record else displayable(text)


def shown_failure(record: Mapping[str, Json]) -> str:
    """Return the displayable path of an error in a report, with the cause if known."""
    cause = record.get("cause")
    return f"{shown_path(record, 'path')}: {cause}" if cause else shown_path(record, "path")


def argv_fields(name: str, argvs: tuple[tuple[str, ...], ...]) -> dict[str, Json]:
    """Return the JSON fields for argv lists; ``NAME_b64`` if an argument is not UTF-8."""
    fields: dict[str, Json] = {
        name: [[arg if is_utf8(arg) else displayable(arg) for arg in argv] for argv in argvs]
    }
    if not all(is_utf8(arg) for argv in argvs for arg in argv):
        fields[f"{name}_b64"] = [[to_base64(arg) for arg in argv] for argv in argvs]
    return fields


def argvs_of(record: Mapping[str, Json], name: str) -> Argvs:
    """Return the exact argv lists from the fields of `argv_fields`."""
    exact = record.get(f"{name}_b64")
    if exact is None:
        return tuple(tuple(argv) for argv in record.get(name, ()))
    return tuple(tuple(from_base64(argument) for argument in argv) for argv in exact)


def paths_fields(name: str, paths: tuple[PathStr, ...]) -> dict[str, Json]:
    """Return the JSON fields for a list of paths; ``NAME_b64`` if a path is not UTF-8."""
    if all(is_utf8(path) for path in paths):
        return {name: list(paths)}
    return {
        name: [displayable(path) for path in paths],
        f"{name}_b64": [to_base64(path) for path in paths],
    }


def encode(value: Any) -> Json:
    """Return the JSON value of a struct, enum, mapping, sequence or scalar."""
    if isinstance(value, Struct):
        encoded: dict[str, Json] = {}
        for field in _fields(type(value)):
            item = getattr(value, field.name)
            if field.type is PathStr:
                encoded.update(path_fields(field.name, item))
            elif field.type == _PATHS:
                encoded.update(paths_fields(field.name, item))
            elif field.type == Argvs:
                encoded.update(argv_fields(field.name, item))
            else:
                encoded[field.name] = encode(item)
        return encoded
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], value: Json) -> T:
    """Return `value` as a `kind`; BadInput names the invalid field."""
    decoded = _decode(kind, value, kind.__name__)
    assert isinstance(decoded, kind)
    return decoded


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


@lru_cache(maxsize=128)
def _fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    return fields(kind)


def _decode(hint: Any, value: Json, where: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _decode_struct(hint, value, where)
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        options = typing.get_args(hint)
        if value is None and type(None) in options:
            return None
        (inner,) = [option for option in options if option is not type(None)]
        return _decode(inner, value, where)
    if origin is tuple:
        item_hint, *rest = typing.get_args(hint)
        items = _expect(list, value, where)
        if rest != [...] and len(items) != 1 + len(rest):
            raise BadInput(f"{where} has {len(items)} items, expected {1 + len(rest)}.")
        hints = [item_hint] * len(items) if rest == [...] else [item_hint, *rest]
        return tuple(_decode(each, item, where) for each, item in zip(hints, items, strict=True))
    if origin is dict:
        _, item_hint = typing.get_args(hint)
        mapping = _expect(dict, value, where)
        return {
            _text(key, f"a key of {where}"): _decode(item_hint, item, f"{where}.{displayable(key)}")
            for key, item in mapping.items()
        }
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        for member in hint:
            if isinstance(value, str) and member.value == value:
                return member
        raise BadInput(f"{where} is not one of {[member.value for member in hint]}.")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(_number(value, where))
    if hint is str or getattr(hint, "__supertype__", None) is str:
        return _text(_expect(str, value, where), where)
    expected = _expect(hint, value, where)
    return expected if hint is bool else _number(expected, where)


def _decode_struct(kind: type[Struct], value: Json, where: str) -> Any:
    mapping = _expect(dict, value, where)
    arguments: dict[str, Any] = {}
    for field in _fields(kind):
        name, hint = field.name, field.type
        if name not in mapping:
            if not field.required:
                continue
            raise BadInput(f"{where} lacks the field {name}.")
        if hint is PathStr and f"{name}_b64" in mapping:
            arguments[name] = _exact(mapping[f"{name}_b64"], f"{where}.{name}_b64")
        elif hint == _PATHS and f"{name}_b64" in mapping:
            exact = _expect(list, mapping[f"{name}_b64"], f"{where}.{name}_b64")
            arguments[name] = tuple(_exact(path, f"{where}.{name}_b64") for path in exact)
        else:
            arguments[name] = _decode(hint, mapping[name], f"{where}.{name}")
            if hint == Argvs and f"{name}_b64" in mapping:
                exact = _decode(hint, mapping[f"{name}_b64"], f"{where}.{name}_b64")
                arguments[name] = tuple(
                    tuple(_exact(argument, where) for argument in argv) for argv in exact
                )
    return kind(**arguments)


def _number(value: float, where: str) -> float:
    if not -LARGEST_NUMBER < value < LARGEST_NUMBER:  # also rejects NaN
        raise BadInput(f"{where} is not a valid number.")
    return value


def _text(value: str, where: str) -> str:
    if not is_encodable(value):
        raise BadInput(f"{where} contains an unpaired surrogate.")
    return value


def _exact(value: Json, where: str) -> PathStr:
    try:
        return from_base64(_expect(str, value, where))
    except ValueError as error:
        raise BadInput(f"{where} is not base64.") from error


def _expect(kind: Any, value: Json, where: str) -> Any:
    wrong_bool = isinstance(value, bool) and kind is not bool
    if wrong_bool or not isinstance(value, kind):
        raise BadInput(f"{where} is {type(value).__name__}, expected {kind.__name__}.")
    return value
