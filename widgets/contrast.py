"""Contrast between text and its background, as the WCAG define it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.color import Color

MINIMUM_CONTRAST = 4.5
"""The least contrast that the WCAG ask for in text (level AA)."""
_STEPS = 20


def contrast(first: Color, second: Color) -> float:
    """Return the contrast of two opaque colours: 1 if they are the same, 21 for black on white."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def readable(colour: Color, backgrounds: Sequence[Color]) -> Color:
    """Return a colour with enough black or white in it to be readable on all backgrounds."""
    end = backgrounds[0].get_contrast_text(1.0)
    mixed = colour
    for step in range(1, _STEPS + 1):
        if min(contrast(mixed, background) for background in backgrounds) >= MINIMUM_CONTRAST:
            break
        mixed = colour.blend(end, step / _STEPS)
    return mixed


def _luminance(colour: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
