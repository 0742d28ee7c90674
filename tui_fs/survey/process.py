"""Starting and reading a survey that runs in a process of its own."""

import pickle
import subprocess
import sys
from collections.abc import Iterator

from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import to_base64
from tui_fs.model.survey import Survey


class SurveyProcess:
    """A running survey; `stop` ends it at once."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui_fs.survey.worker", to_base64(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def results(self) -> Iterator[Survey]:
        """Yield the counts so far until they are complete or the survey is stopped.

        Raises:
            TuiFsError: the directory cannot be read, or the survey ended without a result.
        """
        assert self._process.stdout is not None
        survey: Survey | None = None
        while survey is None or not survey.finished:
            try:
                message = pickle.load(self._process.stdout)
            except (EOFError, pickle.UnpicklingError):
                break
            if isinstance(message, TuiFsError):
                raise message
            survey = message
            yield survey
        if self._process.wait() > 0 or (survey is None and self._process.returncode == 0):
            raise TuiFsError("The survey ended without a result.", "Try again.")

    def stop(self) -> None:
        """End the survey; harmless if it has ended."""
        self._process.kill()
        self._process.wait()
