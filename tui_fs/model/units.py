"""Format numbers for people, and parse the sizes and ages that they type."""

import math
import re
from collections.abc import Callable

IEC_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
# Patterns, compiled for the first size or age that is typed.
_SIZE = r"(?ia)(\d+)\s*(?:([kmgtp])i?)?b?"
_SIZE_FACTORS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_AGE = r"(?ia)(\d+)\s*([smhdw])"
_AGE_FACTORS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LARGEST_PARSED = 1 << 63
_MOST_DIGITS = 19  # enough for all valid numbers; int() rejects thousands of digits


def count(number: int) -> str:
    """Return `number` with thousands separators."""
    return f"{number:,}"


def counted(number: int, singular: str, plural: str) -> str:
    """Return a number with the noun for it: ``1 directory``, ``4,112 directories``."""
    return f"{number:,} {singular if number == 1 else plural}"


def singular(plural: str) -> str:
    """Return the singular of a label that ends in a plural noun: ``1 process``; others as is."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if plural.endswith(ending):
            return plural.removesuffix(ending) + instead
    return plural


def short_count(number: float) -> str:
    """Return `number` in at most six characters: ``9,950``, ``12.3 k``, ``1.21 M``."""
    if number < 9_999.5:
        return f"{number:,.0f}"
    for factor, suffix in ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")):
        scaled = number / factor
        for limit, digits in ((9.995, 2), (99.95, 1), (999.5, 0)):
            if scaled < limit:
                return f"{scaled:.{digits}f} {suffix}"
    return f"{number:.0e}"


def more_or_less(text_of: Callable[[int], str], difference: int) -> str:
    """Return a difference in words: ``4.0 KiB less``.

    Args:
        text_of: returns the text of an amount.
    """
    return f"{text_of(abs(difference))} {'less' if difference < 0 else 'more'}"


def bytes_iec(number: int) -> str:
    """Return a size in bytes with an IEC unit: ``812.0 MiB``. Negative sizes keep their sign."""
    scaled = float(abs(number))
    for unit in IEC_UNITS:
        if scaled < 1023.95 or unit == IEC_UNITS[-1]:
            break
        scaled /= 1024
    sign = "-" if number < 0 else ""
    return f"{sign}{abs(number)} B" if unit == "B" else f"{sign}{scaled:,.1f} {unit}"


def shown_ratio(ratio: float) -> str:
    """Return how many times as much: ``0.0041``, ``0.52``, ``3.10``, ``140``."""
    if ratio < 9.95:
        return f"{ratio:.2g}" if 0.0001 <= ratio < 0.0095 else f"{ratio:.2f}"
    return f"{ratio:.1f}" if ratio < 99.5 else f"{ratio:,.0f}"


def percent_done(fraction: float) -> str:
    """Return the done share of something that still runs: rounded down, and at most 99 %."""
    return f"{min(99, int(100 * fraction))} %"


def percent_used(share: float) -> str:
    """Return a used share as a percentage, rounded up as df does, so that 100 % is not hidden."""
    return f"{math.ceil(100 * share - 1e-9)} %"


def clock(seconds: float) -> str:
    """Return elapsed seconds as a clock: ``0:08``, ``12:31``, ``1:12:31``."""
    whole_s = int(seconds)
    hours, rest_s = divmod(whole_s, 3600)
    minutes, second = divmod(rest_s, 60)
    return f"{hours}:{minutes:02}:{second:02}" if hours else f"{minutes}:{second:02}"


def duration(seconds: float) -> str:
    """Return a length of time for estimates: ``0.4 s``, ``8 s``, ``12 min``, ``1 h 12 min``."""
    if seconds < 0.095:
        return "<0.1 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02} min"
    return f"{hours / 24:.0f} d"


def call_time(seconds: float) -> str:
    """Return the time of a system call, as in 4.1 µs, 38 µs, 12 ms."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 999.5:
            number = seconds * factor
            return f"{number:.1f} {unit}" if number < 9.95 else f"{number:.0f} {unit}"
    return f"{seconds:.1f} s"


def duration_span(low_s: float, high_s: float) -> str:
    """Return a span of time: ``8 s to 12 s``, or ``8 s`` if both ends have the same text."""
    low, high = duration(low_s), duration(high_s)
    return low if low == high else f"{low} to {high}"


def duration_range(low_s: float, high_s: float) -> str:
    """Return a span of time for columns of 14 cells: ``8 s–12 s``, ``40 min–1.2 h``."""
    low, high = (
        f"{end_s / 3600:.1f} h" if "h" in duration(end_s) else duration(end_s)
        for end_s in (low_s, high_s)
    )
    return low if low == high else f"{low}–{high}"


def parse_size(text: str) -> int:
    """Return bytes for ``512``, ``10k``, ``1M``, ``2GiB`` (powers of 1024), or ValueError."""
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write for example 512, 10k, 1M or 2GiB")
    size = _product(match[1], _SIZE_FACTORS.get((match[2] or "").lower(), 1))
    if size is None:
        raise ValueError(f"{text!r} is larger than any file can be")
    return size


def parse_age(text: str) -> int:
    """Return seconds for ``90s``, ``15m``, ``12h``, ``30d``, ``2w``; ValueError otherwise."""
    match = re.fullmatch(_AGE, text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not an age; write for example 15m, 12h, 30d or 2w")
    age = _product(match[1], _AGE_FACTORS[match[2].lower()])
    if age is None:
        raise ValueError(f"{text!r} is older than any file can be")
    return age


def _product(digits: str, factor: int) -> int | None:
    significant = digits.lstrip("0") or "0"
    if len(significant) > _MOST_DIGITS:
        return None
    product = int(significant) * factor
    return product if product < _LARGEST_PARSED else None
