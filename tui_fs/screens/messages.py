"""What workers tell the screens."""

from textual.message import Message

from tui_fs.job.planning import Forecast
from tui_fs.model.errors import TuiFsError
from tui_fs.model.outcome import JobState
from tui_fs.model.plan import Plan
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.survey import Survey


class SurveyUpdated(Message):
    """A survey has counted on."""

    def __init__(self, survey: Survey, forecast: Forecast | None = None) -> None:
        super().__init__()
        self.survey = survey
        self.forecast = forecast


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


class Failed(Message):
    """A worker could not do its work."""

    def __init__(self, error: TuiFsError) -> None:
        super().__init__()
        self.error = error
