"""A screen beside which a survey runs in a process of its own."""

from textual import work
from textual.worker import get_current_worker

from tui_fs.model.errors import TuiFsError
from tui_fs.model.survey import Survey
from tui_fs.screens.frame import FramedScreen, Settings
from tui_fs.screens.messages import Failed, SurveyUpdated
from tui_fs.survey.process import SurveyProcess


class CountingScreen(FramedScreen):
    """Posts `SurveyUpdated` to itself while a survey counts, `Failed` if it cannot."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._process: SurveyProcess | None = None

    def on_unmount(self) -> None:
        """Let no survey run on unseen."""
        self.stop_counting()

    def told(self, survey: Survey) -> SurveyUpdated:
        """Return the message for a survey; made in the worker, where work delays no key."""
        return SurveyUpdated(survey)

    @work(thread=True, exclusive=True, group="survey")
    def count(self, path: str) -> None:
        """Read a survey process; stopped from outside by ending that process."""
        worker = get_current_worker()
        process = SurveyProcess(path)
        self._process = process
        try:
            for survey in process.results():
                if worker.is_cancelled:
                    return
                self.post_message(self.told(survey))
        except TuiFsError as why:
            if not worker.is_cancelled:
                self.post_message(Failed(why))
        finally:
            process.stop()

    def stop_counting(self) -> None:
        """End the survey; harmless if none runs."""
        self.workers.cancel_group(self, "survey")
        if self._process is not None:
            self._process.stop()
            self._process = None
