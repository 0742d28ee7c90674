"""Starting, asking and reading a survey that runs in processes of its own."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import PathStr, to_base64
from tui_fs.model.survey import LargeDirectory, Listing, Ranking, Survey

_ENDS_WITHIN_S = 0.2


@dataclass(frozen=True, slots=True)
class Update:
    """What a survey tells.

    Attributes:
        listing: of the directory that was asked for last; None if none was.
        ranked_by, ranking: directories by what was asked for last; None if nothing was.
        named, paths_named: the directories of the name that was asked for last; None if none was.
    """

    survey: Survey
    listing: Listing | None = None
    ranked_by: Ranking | None = None
    ranking: tuple[LargeDirectory, ...] = ()
    named: PathStr | None = None
    paths_named: tuple[PathStr, ...] = ()


class SurveyProcess:
    """A running survey; it can be asked until it is stopped, also when all is counted.

    Args:
        paths: absolute paths of directories, none inside another.
        imported: a file that ncdu has exported, read instead of directories.
    """

    def __init__(self, paths: Sequence[str], imported: str | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui_fs.survey.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._signalling = threading.Lock()  # a SIGCONT of `updates` must not undo a pause
        self._is_paused = self._has_stood = False
        self._is_stopped = False
        self._ask(
            {
                "paths": [to_base64(path) for path in paths],
                "imported": None if imported is None else to_base64(imported),
            }
        )

    def updates(self) -> Iterator[Update]:
        """Yield what is told until the survey is stopped.

        Raises:
            TuiFsError: the directory cannot be read, or the survey ended without being asked to.
        """
        assert self._process.stdout is not None
        while True:
            try:
                message = pickle.load(self._process.stdout)
            except (EOFError, pickle.UnpicklingError):
                break
            if isinstance(message, TuiFsError):
                raise message
            with self._signalling:
                if self._has_stood and not self._is_paused:
                    self._signal(signal.SIGCONT)  # once more: a fork may keep a SIGSTOP for a child
            yield message
        self._process.wait()
        if not self._is_stopped:
            raise TuiFsError("The survey ended without a result.", "Try again.")

    def show(self, path: str) -> None:
        """Ask for the listing of a directory with every update from now on, and one at once."""
        self._ask({"show": to_base64(path)})

    def rank(self, by: Ranking) -> None:
        """Ask for the directories that come first, likewise."""
        self._ask({"rank": by.value})

    def name(self, name: str) -> None:
        """Ask for all directories of a name, likewise."""
        self._ask({"name": to_base64(name)})

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        return self._is_paused

    def pause(self) -> None:
        """Let it stand still."""
        with self._signalling:
            self._is_paused = self._has_stood = True
            self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        with self._signalling:
            self._is_paused = False
            self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End the survey; harmless if it has ended.

        A process that waits for a file system which does not answer is left to end when that does.
        """
        self._is_stopped = True
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN_S)
        with contextlib.suppress(BrokenPipeError):  # what was not sent yet is of no use now
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:  # else its number may be another one's by now
            os.killpg(self._process.pid, number)

    def _ask(self, question: dict[str, object]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `updates` tells why it has ended
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
