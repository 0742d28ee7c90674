"""A screen beside which a survey runs in a process of its own."""

import time
from collections.abc import Sequence

from textual import work
from textual.worker import get_current_worker

from tui_fs.model.errors import TuiFsError
from tui_fs.model.survey import Survey
from tui_fs.screens.frame import FramedScreen, Settings
from tui_fs.screens.messages import Failed, SurveyUpdated
from tui_fs.screens.survey_client import SurveyClient
from tui_fs.survey.process import SurveyProcess, Update


class CountingScreen(FramedScreen):
    """Posts `SurveyUpdated` to itself while a survey counts and answers, `Failed` if it cannot.

    Attributes:
        questions: to the survey; None while there is none.
        survey_number: the messages of earlier surveys have another one.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.questions: SurveyClient | None = None
        self.survey_number = 0
        self._process: SurveyProcess | None = None

    def on_unmount(self) -> None:
        """Let no survey run on unseen."""
        self.stop_counting()

    def told(self, survey: Survey) -> SurveyUpdated:
        """Return the message for a survey; made in the worker, where work delays no key."""
        return SurveyUpdated(survey)

    def answered(self, update: Update) -> SurveyUpdated:
        """Return the message for a survey and what it was asked; likewise."""
        return self.told(update.survey)

    def count(self, paths: Sequence[str], imported: str | None = None) -> None:
        """Begin a survey; the one before it ends.

        Args:
            imported: a file that is read instead of the directories.
        """
        self.stop_counting()
        # In this thread, not in the worker: the kernel may end a process with the thread that
        # made it.
        self._process = SurveyProcess(paths, imported)
        self.questions = SurveyClient(self._process)
        self.survey_number += 1
        self._follow(self._process, self.survey_number)

    @work(thread=True, exclusive=True, group="survey")
    def _follow(self, process: SurveyProcess, number: int) -> None:
        """Read a survey process; stopped from outside by ending that process."""
        worker = get_current_worker()
        shown_at_s = 0.0
        shown: tuple[object, ...] = ()
        try:
            for update in process.updates():
                if worker.is_cancelled:
                    return
                asked = _asked(update)
                is_due = time.monotonic() - shown_at_s >= self.settings.interval_s * 0.9
                if is_due or update.survey.finished or asked != shown:
                    message = self.answered(update)
                    message.number = number
                    self.post_message(message)
                    shown, shown_at_s = asked, time.monotonic()
        except TuiFsError as why:
            if not worker.is_cancelled:
                self.post_message(Failed(why))
        finally:
            process.stop()

    def stop_counting(self) -> None:
        """End the survey; harmless if none runs."""
        self.workers.cancel_group(self, "survey")
        self.questions = None
        if self._process is not None:
            self._process.stop()
            self._process = None


def _asked(update: Update) -> tuple[object, ...]:
    path = update.listing.path if update.listing is not None else None
    return path, update.ranked_by, update.named
