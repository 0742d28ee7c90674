"""The process that runs an experiment; it prints events and ends when its standard input does."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType

from tui_fs.job.permission import refuse_read_only
from tui_fs.lab.experiment import Scale
from tui_fs.lab.experiments import experiment
from tui_fs.lab.feedback import teach
from tui_fs.lab.preparing import Prepared, prepare
from tui_fs.lab.results import (
    Ending,
    LabEvent,
    Noted,
    Results,
    RunBegan,
    RunEnded,
    event_from_json,
    event_to_json,
    fold_one,
)
from tui_fs.lab.runner import ExperimentRunner
from tui_fs.lab.runs import LOG, Recorder, new_folder
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import displayable, from_base64, to_base64


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


_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Cancelled(Exception):
    """Nobody wants the run any more."""


class _Teller:
    """Writes events down and, as long as somebody reads them, prints them."""

    def __init__(self, folder: str) -> None:
        self._recorder = Recorder(folder)
        self.results: Results | None = None
        self.is_cancelled = False
        self._is_read = True

    def __call__(self, event: LabEvent) -> None:
        self.results = fold_one(self.results, event)
        self._recorder.write(event)
        line = json.dumps(event_to_json(event)).encode() + b"\n"
        while line and self._is_read:
            try:
                line = line[os.write(1, line) :]
            except BrokenPipeError:
                self._is_read, self.is_cancelled = False, True

    def goes_on(self) -> None:
        """Raise _Cancelled if a signal came, or whoever started this has closed its end."""
        if self.is_cancelled or is_readable(0, 0):
            self.is_cancelled = True
            raise _Cancelled

    def close(self) -> None:
        """Have the record on the disk."""
        self._recorder.sync()


def run(prepared: Prepared, folder: str) -> Ending:
    """Do an experiment from its beginning to its end."""
    teller = _Teller(folder)

    def end(_number: int, _frame: FrameType | None) -> None:
        teller.is_cancelled = True

    for number in _ENDING:
        signal.signal(number, end)
    began_s = time.monotonic()
    machine, steps, target = prepared.machine, prepared.plans, prepared.target
    teller(
        RunBegan(
            prepared.experiment.name,
            prepared.scale.value,
            time.time(),
            machine,
            prepared.directory,
            steps,
            target,
        )
    )
    conductor = ExperimentRunner(prepared, folder, teller, teller.goes_on)
    ending, why = Ending.DONE, ""
    try:
        conductor.run()
        _note_failures(teller)
        if prepared.experiment.teaches and teller.results is not None:
            for note in teach(prepared.directory, conductor.predicted, teller.results):
                teller(Noted(note))
    except _Cancelled:
        ending = Ending.CANCELLED
    except (OSError, TuiFsError) as error:
        traceback.print_exc()
        ending, why = Ending.FAILED, str(error)
    except Exception as error:  # noqa: BLE001  a defect ends as a failed run, and is in the log
        traceback.print_exc()
        ending, why = Ending.FAILED, f"tui-fs has a defect here: {error!r}. The log has more."
    teller(RunEnded(ending, time.monotonic() - began_s, why, conductor.files()))
    teller.close()
    return ending


def _note_failures(teller: _Teller) -> None:
    steps = [] if teller.results is None else list(teller.results.measured.values())
    failed = [one.plan.title for one in steps if one.failed]
    if failed:
        teller(Noted(f"{len(failed)} of {len(steps)} steps failed: {'; '.join(failed)}."))


def main() -> None:
    """Run the experiment that the one argument describes (`tui_fs.lab.process` writes it)."""
    asked = json.loads(sys.argv[1])
    directory = asked["directory"]
    prepared = prepare(
        experiment(asked["name"]),
        Scale(asked["scale"]),
        None if directory is None else from_base64(directory),
        from_base64(asked["target"]),
    )
    with contextlib.suppress(KeyboardInterrupt):
        run(prepared, from_base64(asked["folder"]))


if __name__ == "__main__":
    main()
