"""Filters as a person types them, for example ``*.log >100M >30d``, and in words."""

import re
import shlex
import time

from tui_fs.model.paths import displayable, is_encodable
from tui_fs.model.strategy import Filters
from tui_fs.model.units import IEC_UNITS, counted, parse_age, parse_size

SYNTAX = (
    "*.log      files with such names, as in find -name; quote spaces: '* copy*'",
    ">100M <1k  files of that size or larger, files smaller than that (k M G T)",
    ">30d <2h   not modified for 30 days, modified within 2 hours (min h d w)",
)

_LIMIT = re.compile(r"([<>])(\d+)([A-Za-z]*)", re.ASCII)
_AGE_UNITS = {"s": "s", "min": "m", "h": "h", "d": "d", "w": "w"}
_AGES = ((86_400, "day", "days"), (3_600, "hour", "hours"), (60, "minute", "minutes"))
_FIND_OPTIONS = ("-name", "-size", "-mtime", "-mmin", "-newermt")


def parse_filters(text: str, now_s: float) -> Filters:
    """Return the filters of a typed line; no filters for an empty one.

    Args:
        now_s: the reference time of ages, in seconds since the epoch.

    Raises:
        ValueError: the reason, as a sentence.
    """
    chosen: dict[str, int | str] = {}
    for word, is_quoted in _words(text):
        try:
            name, value = ("name_glob", word) if is_quoted else _condition(word, now_s)
            if name == "name_glob":
                check_glob(word)
        except ValueError as error:
            sentence = str(error).rstrip(".")
            raise ValueError(f"{sentence[0].upper()}{sentence[1:]}.") from error
        if name in chosen:
            repeated = "name" if name == "name_glob" else "limit of this kind"
            raise ValueError(f"'{displayable(word)}' is a second {repeated}; only one is possible.")
        chosen[name] = value
    filters = Filters(**chosen)  # type: ignore[arg-type]
    check_limits(filters)
    return filters


def check_limits(filters: Filters) -> None:
    """Raise ValueError, with a sentence, if no size or no age is within the limits."""
    least, limit = filters.min_size_bytes or 0, filters.size_below_bytes
    before, after = filters.modified_before_s, filters.modified_after_s
    is_empty = limit is not None and least >= limit
    if is_empty or (before is not None and after is not None and before <= after):
        raise ValueError("These limits exclude each other: no file can match.")


def check_glob(text: str) -> None:
    """Raise ValueError, with a sentence without its end, unless a name can match a pattern."""
    if not text:
        raise ValueError("an empty pattern matches no name")
    if "\0" in text or not is_encodable(text):
        raise ValueError(f"{text!r} cannot match any name")
    if "/" in text:
        raise ValueError(
            f"{text!r} contains a slash, but the pattern is compared with names, not with paths"
        )


def typed_glob(glob: str) -> str:
    """Return a name pattern as it is typed in a line of filters."""
    is_plain = glob.split() == [glob] and glob[0] not in "<>'\"" and glob not in _FIND_OPTIONS
    quote = '"' if "'" in glob else "'"
    return glob if is_plain else f"{quote}{glob}{quote}"


def in_words(filters: Filters, now_s: float | None = None) -> str:
    """Return what the filters select; empty without filters.

    Args:
        now_s: the present, to add how long ago a time was; None to omit that.
    """
    words = [] if filters.name_glob is None else [displayable(filters.name_glob)]
    if filters.min_size_bytes is not None:
        words.append(f"{_exact_size(filters.min_size_bytes)} or larger")
    if filters.size_below_bytes is not None:
        words.append(f"smaller than {_exact_size(filters.size_below_bytes)}")
    if filters.modified_before_s is not None:
        words.append(f"not modified since {_moment(filters.modified_before_s, now_s)}")
    if filters.modified_after_s is not None:
        words.append(f"modified after {_moment(filters.modified_after_s, now_s)}")
    return ", ".join(words)


def _words(text: str) -> list[tuple[str, bool]]:
    """Return the words of a line, and whether each begins with a quote."""
    lexer = shlex.shlex(re.sub(r"(?<!\S)([<>])\s+", r"\1", text), posix=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise ValueError("A quote is not closed.") from error
    return [(word[1:-1], True) if word[0] in "'\"" else (word, False) for word in words]


def _condition(word: str, now_s: float) -> tuple[str, int | str]:
    """Return the field of `Filters` that an unquoted word sets, and its value."""
    if word in _FIND_OPTIONS:
        raise ValueError(f"Leave out {word}; write only the value, for example *.log >100M >30d.")
    if word[0] not in "<>":
        return "name_glob", word
    match = _LIMIT.fullmatch(word)
    if match is None:
        raise ValueError(
            f"'{displayable(word)}' is not a size or an age; write a number and a unit, as in "
            ">100M or >30d."
        )
    sign, digits, unit = match.groups()
    if not unit:
        raise ValueError(f"'{word}' needs a unit, for example {sign}{digits}M or {sign}{digits}d.")
    if unit == "m":
        raise ValueError(
            f"'{word}' can mean minutes or MiB; write {sign}{digits}min or {sign}{digits}M."
        )
    if (age_unit := _AGE_UNITS.get(unit.lower())) is not None:
        moment_s = int(now_s) - parse_age(digits + age_unit)
        if moment_s < 0:
            raise ValueError(f"'{word}' is older than any file can be")
        return ("modified_before_s" if sign == ">" else "modified_after_s"), moment_s
    return ("min_size_bytes" if sign == ">" else "size_below_bytes"), parse_size(digits + unit)


def _exact_size(number: int) -> str:
    power = 0
    while number and number % 1024 == 0 and IEC_UNITS[power] != "PiB":
        number, power = number // 1024, power + 1
    return f"{number:,} {IEC_UNITS[power]}"


def _moment(at_s: int, now_s: float | None) -> str:
    """Return a local time to the second, and how long ago it was."""
    try:
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
    except (OverflowError, OSError, ValueError):
        return f"{at_s:,} s after 1970"
    if now_s is None or now_s < at_s:
        return text
    passed_s = int(now_s - at_s)
    for unit_s, singular, plural in _AGES:
        if passed_s >= unit_s:
            return f"{text} ({counted(passed_s // unit_s, singular, plural)} ago)"
    return f"{text} ({counted(passed_s, 'second', 'seconds')} ago)"
