"""What a run shows, as values that a terminal, a screen or a page can draw."""

from dataclasses import dataclass

from tui_fs.lab.experiment import Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: formatted cells; `note` says why there are none."""

    cells: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below titles; the first column is text, the others are figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A median with the least and the most, and the published figure if there is one.

    Attributes:
        shown: the median as a person reads it, with its unit.
    """

    label: str
    median: float
    least: float
    most: float
    shown: str
    published: float | None = None
    published_shown: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one measure; `is_log` where the longest is over 50 times the shortest."""

    title: str
    unit: str
    bars: tuple[Bar, ...]
    is_log: bool
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A median over x, with the least and the most."""

    x: float
    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Line:
    """The points of a series, by x."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines over an axis."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    has_log_x: bool
    has_log_y: bool


@dataclass(frozen=True, slots=True)
class CallsOf:
    """The system calls of one step, the most frequent first.

    Attributes:
        rows: call, calls, errors, share of the time, published calls, published errors.
        remark: who counted, and whether the text's figures are of another number of files.
    """

    key: str
    title: str
    rows: tuple[Row, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Calls:
    """Tables of system calls to be read side by side."""

    title: str
    columns: tuple[str, ...]
    tables: tuple[CallsOf, ...]


@dataclass(frozen=True, slots=True)
class Flame:
    """A function by the time in it: itself, and with what it calls; in per cent."""

    function: str
    own_percent: float
    total_percent: float
    depth: int


@dataclass(frozen=True, slots=True)
class Flames:
    """Where the time went, as a tree, the largest first."""

    title: str
    rows: tuple[Flame, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its verdict."""

    text: str
    published: str
    verdict: Verdict
    here: str
    why: str


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims of an experiment."""

    claims: tuple[Judged, ...]


Exhibit = Claims | Table | Bars | Curves | Calls | Flames
