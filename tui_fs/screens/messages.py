"""Messages from workers to the screens."""

from textual.message import Message

from tui_fs.job.planning import Forecast
from tui_fs.model.errors import TuiFsError
from tui_fs.model.outcome import JobState
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.survey import Survey
from tui_fs.screens.browser_rows import Arranged
from tui_fs.screens.options import Choices
from tui_fs.survey.process import Update


class SurveyUpdated(Message):
    """A survey has counted on, or has answered.

    Attributes:
        update: the answers to what was asked, besides the survey.
        arranged: what a browser shows of it.
        choices: the options that the forecast is for.
        number: which of a screen's surveys it was.
    """

    def __init__(
        self,
        survey: Survey,
        forecast: Forecast | None = None,
        update: Update | None = None,
        arranged: Arranged | None = None,
        choices: Choices | None = None,
    ) -> None:
        super().__init__()
        self.survey = survey
        self.choices = choices
        self.forecast = forecast
        self.update = update
        self.arranged = arranged
        self.number = 0


class RowsArranged(Message):
    """A browser's rows are in the order that the person wants now."""

    def __init__(self, arranged: Arranged) -> None:
        super().__init__()
        self.arranged = arranged


class SnapshotChanged(Message):
    """A job has written on."""

    def __init__(self, snapshot: Snapshot, state: JobState, is_over: bool) -> None:
        super().__init__()
        self.snapshot = snapshot
        self.state = state
        self.is_over = is_over


class GoOnAsked(Message):
    """A person wants to go on with what a dead job has left."""

    def __init__(self, died: Plan) -> None:
        super().__init__()
        self.died = died


class DeleteAsked(Message):
    """A person wants to see what deleting directories gently would cost."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__()
        self.paths = paths


class Failed(Message):
    """A worker could not do its work."""

    def __init__(self, error: TuiFsError) -> None:
        super().__init__()
        self.error = error
