"""The treemap: its rectangles, and what it draws on every terminal."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from tui_fs.widgets.treemap import Part, Rectangle, Treemap, squarify

VALUES = st.lists(st.integers(1, 10**9), min_size=1, max_size=40).map(
    lambda values: sorted(values, reverse=True)
)
PARTS = (
    Part("a", "alpha/", 60, "60 B"),
    Part("b", "beta", 30, "30 B", "old"),
    Part("c", "gamma", 10, "10 B", "rest"),
    Part("d", "nothing", 0, "0 B"),
)


def overlap(one: Rectangle, other: Rectangle) -> float:
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return max(0.0, width) * max(0.0, height)


@example([10_155_849, 285_344, 285_341, 1], 109, 1)
@given(VALUES, st.integers(1, 300), st.integers(1, 300))
def test_rectangles_divide_the_whole_in_proportion(
    values: list[int], width: int, height: int
) -> None:
    places = squarify(values, width, height)
    whole, total = width * height, sum(values)
    for value, place in zip(values, places, strict=True):
        area = place.width * place.height
        assert math.isclose(area, whole * value / total, rel_tol=1e-6, abs_tol=1e-9 * whole)
        assert place.x >= -1e-6
        assert place.y >= -1e-6
        assert place.x + place.width <= width * (1 + 1e-9)
        assert place.y + place.height <= height * (1 + 1e-9)
    for index, place in enumerate(places):
        for later in places[index + 1 :]:
            assert overlap(place, later) <= 1e-6 * whole


def test_equal_values_become_squares() -> None:
    assert {(place.width, place.height) for place in squarify([1] * 4, 20, 20)} == {(10, 10)}


def test_nothing_has_no_area() -> None:
    assert squarify([], 10, 10) == []
    assert squarify([1, 1], 0, 10) == [Rectangle(0, 0, 0, 0)] * 2


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        treemap = Treemap()
        treemap.styles.height = "1fr"
        treemap.parts, treemap.highlighted = PARTS, "b"
        yield treemap


async def drawn(theme: str = "nord", size: tuple[int, int] = (40, 12)) -> list[str]:
    app = Shown(ansi_color=theme.startswith("ansi"))
    async with app.run_test(size=size) as pilot:
        app.theme = theme
        await pilot.pause()
        return str(app.query_one(Treemap).render()).split("\n")


async def test_labels_and_amounts_are_shown_where_they_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    lines = await drawn()
    assert len(lines) == 12
    assert all(len(line) == 40 for line in lines)
    text = "\n".join(lines)
    for part in PARTS[:3]:
        assert part.label in text
        assert part.amount in text
    assert "nothing" not in text


@pytest.mark.parametrize(
    ("term", "theme", "no_color", "fillings"),
    [
        ("xterm-256color", "nord", False, " ▀▄"),
        ("xterm-256color", "ansi-dark", False, "░·█"),
        ("xterm-256color", "nord", True, "░·█"),
        ("linux", "nord", False, "░·█"),
        ("vt100", "ansi-dark", True, "░·█"),
    ],
)
async def test_the_terminal_decides_about_the_characters(
    monkeypatch: pytest.MonkeyPatch, term: str, theme: str, no_color: bool, fillings: str
) -> None:
    monkeypatch.setenv("TERM", term)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    text = "\n".join(await drawn(theme))
    rest = set(re.sub(r"[\w/ \n]", "", text))
    assert rest <= set(fillings)
    assert rest >= set(fillings.strip(" ▄"))


@pytest.mark.slow
async def test_a_number_is_whole_or_not_there() -> None:
    for width in range(6, 40):
        text = "\n".join(await drawn(size=(width, 12)))
        assert set(re.findall(r"\d[^ \n▀▄]*", text)) <= {"60", "30", "10"}
        assert text.count("60") == text.count("60 B")


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (3, 40), (200, 2)])
async def test_any_size_is_drawn(size: tuple[int, int]) -> None:
    assert [len(line) for line in await drawn(size=size)] == [size[0]] * size[1]


NESTED = (
    Part(
        "mail",
        "mail/",
        90,
        "90 B",
        parts=(Part("cai", "ada/", 50, "50 B", "old"), Part("ben", "ben/", 20, "20 B")),
    ),
    Part("cai", "cai/", 30, "30 B"),
)


class Nested(App[None]):
    """A treemap with parts inside another one."""

    def __init__(self) -> None:
        super().__init__()
        self.clicked: list[str] = []

    def compose(self) -> ComposeResult:
        treemap = Treemap()
        treemap.styles.height = "1fr"
        treemap.parts = NESTED
        yield treemap

    def on_treemap_clicked(self, message: Treemap.Clicked) -> None:
        self.clicked.append(message.key)


@pytest.mark.parametrize("theme", ["nord", "ansi-dark"])
@pytest.mark.parametrize(("size", "has_room"), [((60, 16), True), ((60, 4), False)])
async def test_parts_are_drawn_inside_where_there_is_room(
    theme: str, size: tuple[int, int], has_room: bool
) -> None:
    async with Nested().run_test(size=size) as pilot:
        pilot.app.theme = theme
        await pilot.pause()
        text = str(pilot.app.query_one(Treemap).render())
        assert [len(line) for line in text.split("\n")] == [size[0]] * size[1]
        assert "mail/" in text and "cai/" in text
        assert ("ada/" in text, "ben/" in text) == (has_room, has_room)
        assert ("mail/ 90 B" in text) == has_room  # the label of a frame has one line


async def test_a_click_inside_is_one_on_the_outermost_part() -> None:
    app = Nested()
    async with app.run_test(size=(60, 16)) as pilot:
        lines = str(app.query_one(Treemap).render()).split("\n")
        for label in ("ben/", "cai/", "mail/"):
            row = next(number for number, line in enumerate(lines) if label in line)
            await pilot.click(Treemap, offset=(lines[row].index(label), row))
        assert app.clicked == ["mail", "cai", "mail"]
