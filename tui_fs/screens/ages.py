"""How long ago something was, in a few characters."""

_MINUTE_S, _HOUR_S, _DAY_S, _YEAR_S = 60, 3_600, 86_400, 31_557_600


def age(at_s: int | None, now_s: float) -> str:
    """Return how long ago something was: ``45 s``, ``5 min``, ``12 h``, ``12 d``, ``3 y``."""
    if at_s is None:
        return "–"
    passed_s = now_s - at_s
    if passed_s < 0:
        return "future"
    for unit_s, unit, until_s in (
        (1, "s", 2 * _MINUTE_S),
        (_MINUTE_S, "min", 2 * _HOUR_S),
        (_HOUR_S, "h", 2 * _DAY_S),
        (_DAY_S, "d", 2 * _YEAR_S),
    ):
        if passed_s < until_s:
            return f"{passed_s // unit_s:,.0f} {unit}"
    return f"{passed_s // _YEAR_S:,.0f} y"
