"""Starting an experiment in a process of its own, and following it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from types import TracebackType

from tui_fs.job.permission import refuse_read_only
from tui_fs.lab.experiment import Scale
from tui_fs.lab.experiments import experiment
from tui_fs.lab.preparing import prepare
from tui_fs.lab.results import LabEvent, RunEnded, event_from_json
from tui_fs.lab.runs import LOG, new_folder
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import displayable, to_base64


class LabRun:
    """A run: entering its context starts it; leaving cancels it and waits until all is cleared.

    If this process dies, the run ends and clears away by itself.

    Args:
        name: of the experiment.
        directory: where it may work; None for the one below the cache.
        target: a directory of the person's own whose shape it copies.

    Attributes:
        folder: where the record of the run lies; empty before it is started.

    Raises:
        BadInput, Missing, Refused: see `tui_fs.lab.preparing.prepare`; also Refused in read-only
            mode, because a run deletes the trees that it makes.
        OSError: the record cannot be begun (on entering).
    """

    def __init__(
        self, name: str, scale: Scale, directory: str | None = None, target: str = ""
    ) -> None:
        refuse_read_only()
        prepare(experiment(name), scale, directory, target)  # says at once what is in the way
        self.folder = ""
        self._name = name
        self._asked = {
            "name": name,
            "scale": scale.value,
            "directory": None if directory is None else to_base64(os.path.abspath(directory)),
            "target": to_base64(os.path.abspath(target) if target else ""),
        }
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> "LabRun":
        self.folder = new_folder(self._name)
        asked = json.dumps(self._asked | {"folder": to_base64(self.folder)})
        with open(os.path.join(self.folder, LOG), "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tui_fs.lab.process", asked],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()
        assert self._process.stdout is not None
        with self._process.stdout as rest:
            for _ in rest:  # what nobody wants to know any more
                pass
        self._process.wait()

    def events(self) -> Iterator[LabEvent]:
        """Yield what happens, as it happens, until the end.

        Raises:
            TuiFsError: the process has died before the end.
        """
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break  # it was killed while it wrote
            event = event_from_json(json.loads(line))
            yield event
            if isinstance(event, RunEnded):
                return
        log = displayable(os.path.join(self.folder, LOG))
        raise TuiFsError("The process of the experiment has died.", f"{log} says more.")

    def cancel(self) -> None:
        """Have the run end and clear away; its last event comes when that is done."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
