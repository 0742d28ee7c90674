"""Messages from the workers of the lab's screens."""

from textual.message import Message

from tui_fs.lab.exhibits import Exhibit
from tui_fs.lab.experiment import Scale
from tui_fs.lab.preparing import Prepared
from tui_fs.lab.results import Results
from tui_fs.screens.lab_text import Judgements


class RunsJudged(Message):
    """The runs that are kept, the newest first."""

    def __init__(self, runs: list[Judgements]) -> None:
        super().__init__()
        self.runs = runs


class RunPrepared(Message):
    """What a run would do, or why there can be none."""

    def __init__(self, name: str, scale: Scale, prepared: Prepared | None, why_not: str) -> None:
        super().__init__()
        self.name = name
        self.scale = scale
        self.prepared = prepared
        self.why_not = why_not


class RunOver(Message):
    """A run has ended and is cleared away.

    Attributes:
        folder: empty if it never began.
    """

    def __init__(self, folder: str, results: Results | None, why: str = "") -> None:
        super().__init__()
        self.folder = folder
        self.results = results
        self.why = why


class ResultRead(Message):
    """What a run shows."""

    def __init__(self, results: Results, exhibits: tuple[Exhibit, ...]) -> None:
        super().__init__()
        self.results = results
        self.exhibits = exhibits
