"""The process that runs an experiment; it prints events, and exits when its stdin closes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from types import FrameType

from tui_fs.job.permission import refuse_read_only
from tui_fs.lab.experiment import Scale
from tui_fs.lab.experiments import experiment
from tui_fs.lab.feedback import refine_estimates
from tui_fs.lab.preparing import Prepared, prepare
from tui_fs.lab.results import (
    Ending,
    LabEvent,
    Noted,
    Results,
    RunBegan,
    RunEnded,
    event_from_json,
    fold_one,
)
from tui_fs.lab.runner import ExperimentRunner
from tui_fs.lab.runs import LOG, Recorder, new_folder
from tui_fs.linux.interpreter import module_command
from tui_fs.linux.timeouts import is_readable
from tui_fs.model.codec import encode
from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import displayable, from_base64, to_base64


class LabRun:
    """A run: entering the context starts it; leaving cancels it and waits for its cleanup.

    If this process dies, the run ends and cleans up by itself.

    Args:
        name: of the experiment.
        directory: where it may work; None for the one below the cache.
        target: a directory of the user whose shape it copies.
        max_rounds: see `prepare`.

    Attributes:
        folder: holds the record of the run; empty before the start.

    Raises:
        BadInput, Missing, Refused: see `tui_fs.lab.preparing.prepare`; also Refused in read-only
            mode, because a run deletes the trees that it makes.
        OSError: the record cannot be begun (on entering).
    """

    def __init__(
        self,
        name: str,
        scale: Scale,
        directory: str | None = None,
        target: str = "",
        max_rounds: int | None = None,
    ) -> None:
        refuse_read_only()
        # Report obstacles at once
        prepare(experiment(name), scale, directory, target, max_rounds)
        self.folder = ""
        self._name = name
        self._request = {
            "name": name,
            "scale": scale.value,
            "directory": None if directory is None else to_base64(os.path.abspath(directory)),
            "target": to_base64(os.path.abspath(target) if target else ""),
            "max_rounds": max_rounds,
        }
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> "LabRun":
        self.folder = new_folder(self._name)
        request = json.dumps(self._request | {"folder": to_base64(self.folder)})
        with open(os.path.join(self.folder, LOG), "wb") as log:
            self._process = subprocess.Popen(
                module_command("tui_fs.lab.process", request),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_error: object) -> None:
        self.cancel()
        assert self._process.stdout is not None
        with self._process.stdout as rest:
            for _ in rest:
                pass
        self._process.wait()

    def events(self) -> Iterator[LabEvent]:
        """Yield the events as they happen, until the end.

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
        raise TuiFsError("The experiment's process ended unexpectedly.", f"See {log}.")

    def cancel(self) -> None:
        """Cancel the run; its last event comes when everything it made is removed."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Cancelled(Exception):
    """The run is no longer wanted."""


class _EventWriter:
    """Stores events, and prints them as long as the pipe has a reader."""

    def __init__(self, folder: str) -> None:
        self._recorder = Recorder(folder)
        self.results: Results | None = None
        self.is_cancelled = False
        self._is_read = True

    def __call__(self, event: LabEvent) -> None:
        self.results = fold_one(self.results, event)
        self._recorder.write(event)
        line = json.dumps(encode(event)).encode() + b"\n"
        while line and self._is_read:
            try:
                line = line[os.write(1, line) :]
            except BrokenPipeError:
                self._is_read, self.is_cancelled = False, True

    def check_cancelled(self) -> None:
        """Raise _Cancelled after a signal, or if the starter has closed its end."""
        if self.is_cancelled or is_readable(0, 0):
            self.is_cancelled = True
            raise _Cancelled

    def close(self) -> None:
        """Sync the record to the disk."""
        self._recorder.sync()


def run(prepared: Prepared, folder: str) -> Ending:
    """Run an experiment from its beginning to its end."""
    emit = _EventWriter(folder)

    def cancel(_number: int, _frame: FrameType | None) -> None:
        emit.is_cancelled = True

    for number in _SIGNALS:
        signal.signal(number, cancel)
    began_s = time.monotonic()
    emit(
        RunBegan(
            prepared.experiment.name,
            prepared.scale.value,
            time.time(),
            prepared.machine,
            prepared.directory,
            prepared.plans,
            prepared.target,
        )
    )
    runner = ExperimentRunner(prepared, folder, emit, emit.check_cancelled)
    ending, reason = Ending.DONE, ""
    try:
        runner.run()
        assert emit.results is not None
        _note_failures(emit, emit.results)
        if prepared.experiment.refines_estimates:
            for note in refine_estimates(prepared.directory, runner.predicted, emit.results):
                emit(Noted(note))
    except _Cancelled:
        ending = Ending.CANCELLED
    except (OSError, TuiFsError) as error:
        traceback.print_exc()
        ending, reason = Ending.FAILED, str(error)
    except Exception as error:  # noqa: BLE001  a defect ends as a failed run, and is in the log
        traceback.print_exc()
        ending, reason = (
            Ending.FAILED,
            f"tui-fs itself failed: {error!r}. See {LOG} in the directory of the run.",
        )
    emit(RunEnded(ending, time.monotonic() - began_s, reason, runner.files()))
    emit.close()
    return ending


def _note_failures(emit: _EventWriter, results: Results) -> None:
    failed = [step.plan.title for step in results.measured.values() if step.failed]
    if failed:
        steps = len(results.measured)
        emit(Noted(f"{len(failed)} of {steps} steps failed: {'; '.join(failed)}."))


def main() -> None:
    """Run the experiment that the only argument describes (see `LabRun`)."""
    request = json.loads(sys.argv[1])
    directory = request["directory"]
    prepared = prepare(
        experiment(request["name"]),
        Scale(request["scale"]),
        None if directory is None else from_base64(directory),
        from_base64(request["target"]),
        request["max_rounds"],
    )
    with contextlib.suppress(KeyboardInterrupt):
        run(prepared, from_base64(request["folder"]))


if __name__ == "__main__":
    main()
