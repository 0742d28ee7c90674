"""``tui-fs lab``: run experiments, and show and compare the runs that are kept."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable

from tui_fs.cli.arguments import directory_argument
from tui_fs.cli.exit_codes import CANCELLED_BY_INT, CANCELLED_BY_TERM, DONE, SOME_FAILED
from tui_fs.cli.follow import Interrupts
from tui_fs.cli.lab_json import comparison_as_json, run_as_json
from tui_fs.cli.lab_text import exhibits_as_text, run_as_text
from tui_fs.cli.output import (
    SCHEMA,
    StatusLine,
    columns,
    moves_cursor,
    note,
    print_json,
    print_text,
)
from tui_fs.lab.diff import compared, comparison_exhibits
from tui_fs.lab.experiment import Experiment, Scale
from tui_fs.lab.figures import safe
from tui_fs.lab.page import page
from tui_fs.lab.registry import experiment, experiments
from tui_fs.lab.results import Ending, Progressed, Results, fold_one
from tui_fs.lab.runs import find_run, load, stored_runs
from tui_fs.lab.start import LabRun
from tui_fs.lab.view_model import exhibits_of
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, shell_quoted
from tui_fs.survey.export_file import new_file, refuse_taken

_WIDTH_WITHOUT_TERMINAL = 100


def run_list(parsed: argparse.Namespace) -> int:
    """Print all experiments."""
    found = experiments()
    if parsed.json:
        scales = [scale.value for scale in Scale]
        print_json(
            [
                {"name": one.name, "title": one.title, "scales": scales, "needs": list(one.needs)}
                for one in found
            ]
        )
        return DONE
    rows: list[tuple[str, ...]] = [("experiment", "what it is", "needs")]
    rows += [(one.name, one.title, "; ".join(one.needs)) for one in found]
    print_text(columns(rows, frozenset()))
    return DONE


def run_run(parsed: argparse.Namespace) -> int:
    """Run an experiment to its end, and show what it says."""
    chosen = experiment(parsed.name)
    if parsed.target and not chosen.takes_target:
        raise BadInput(f"{chosen.name} makes its own trees.", "Leave --target away.")
    target = directory_argument(parsed.target) if parsed.target else ""
    directory = None if parsed.dir is None else directory_argument(parsed.dir)
    _check_report(parsed)
    lab = LabRun(chosen.name, Scale(parsed.scale), directory, target)
    interrupts = _CancellingInterrupts()  # until now nothing was made that would stay
    with lab:
        interrupts.cancel_with(lab.cancel)
        results = _followed(lab)
    ended = results.ended
    assert ended is not None  # else the following has raised
    _print_run(chosen, results, lab.folder, parsed)
    if ended.ending is Ending.DONE:
        _write_report(chosen, results, lab.folder, parsed)
        if any(one.runs for one in results.measured.values()):
            return DONE
        note("tui-fs: no step could be measured.")
        return SOME_FAILED
    if parsed.report is not None:
        name = os.path.basename(lab.folder)
        again = shell_quoted(("tui-fs", "lab", "show", name, "--report", parsed.report))
        note(f"tui-fs: no page was written; {again} does it.")
    if ended.ending is Ending.FAILED:
        note(f"tui-fs: the run failed: {safe(ended.why)}")
        return SOME_FAILED
    note("tui-fs: the run was cancelled and cleared away.")
    return interrupts.exit_code


def run_runs(parsed: argparse.Namespace) -> int:
    """Print the runs that are kept."""
    found = stored_runs()
    if parsed.json:
        print_json(
            [
                {
                    "schema": SCHEMA,
                    "run": one.run_id,
                    "experiment": one.experiment,
                    "scale": one.scale.value,
                    "started_at": one.started_at,
                    "ending": None if one.ending is None else one.ending.value,
                    "folder": displayable(one.folder),
                }
                for one in found
            ]
        )
    elif not found:
        note("tui-fs: there are no runs yet.")
    else:
        rows: list[tuple[str, ...]] = [("run", "experiment", "scale", "begun", "ending")]
        for one in found:
            begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started_at))
            ending = "none yet" if one.ending is None else one.ending.value
            rows.append(
                (displayable(one.run_id), safe(one.experiment), one.scale.value, begun, ending)
            )
        print_text(columns(rows, frozenset()))
    return DONE


def run_show(parsed: argparse.Namespace) -> int:
    """Show a run that is kept."""
    folder = find_run(parsed.kept)
    results = load(folder)
    chosen = experiment(results.began.experiment)
    _check_report(parsed)
    _print_run(chosen, results, folder, parsed)
    _write_report(chosen, results, folder, parsed)
    return DONE


def run_compare(parsed: argparse.Namespace) -> int:
    """Compare two runs of one experiment."""
    folders = [find_run(one) for one in parsed.kept]
    first, second = (load(one) for one in folders)
    names = os.path.basename(folders[0]), os.path.basename(folders[1])
    if parsed.json:
        print_json(comparison_as_json(first, names, compared(first, second)))
    else:
        print_text(exhibits_as_text(comparison_exhibits(first, second, names), _width()))
    return DONE


class _CancellingInterrupts(Interrupts):
    """Cancels the run at the first SIGINT or SIGTERM; whoever follows it waits for its end."""

    def __init__(self) -> None:
        self._cancel: Callable[[], None] | None = None
        super().__init__()

    def cancel_with(self, cancel: Callable[[], None]) -> None:
        """Say how, as soon as there is a run; at once, if a signal has come already."""
        self._cancel = cancel
        if self.received is not None:
            cancel()

    @property
    def exit_code(self) -> int:
        """Of a run that was cancelled."""
        is_terminated = self.received is not None and self.received.name == "SIGTERM"
        return CANCELLED_BY_TERM if is_terminated else CANCELLED_BY_INT

    def _note(self, number: int, frame: object) -> None:
        is_first = self.received is None
        super()._note(number, frame)
        if is_first and self._cancel is not None:
            self._cancel()


def _followed(lab: LabRun) -> Results:
    results: Results | None = None
    line, words = StatusLine(), ""
    try:
        for event in lab.events():
            results = fold_one(results, event)
            if isinstance(event, Progressed):
                line.show(_progress(event))
                if event.words != words and not moves_cursor(sys.stderr):
                    note(safe(event.words))
                words = event.words
    finally:
        line.clear()
    assert results is not None  # `events` raises if the end is missing
    return results


def _progress(progress: Progressed) -> str:
    return f"{100 * progress.done:3.0f} %  {safe(progress.words)}"


def _print_run(
    chosen: Experiment, results: Results, folder: str, parsed: argparse.Namespace
) -> None:
    run_id = os.path.basename(folder)
    if parsed.json:
        print_json(run_as_json(chosen, results, run_id))
    else:
        print_text(
            run_as_text(chosen, results, exhibits_of(chosen, results, folder), run_id, _width())
        )


def _check_report(parsed: argparse.Namespace) -> None:
    """Refuse a place for the page now rather than after the run."""
    if parsed.report is None:
        if parsed.force:
            raise BadInput("--force belongs to --report.", "Name a file to write.")
        return
    refuse_taken(parsed.report, overwrites=parsed.force)
    directory = os.path.dirname(parsed.report) or "."
    shown = displayable(parsed.report)
    if not os.path.basename(parsed.report) or not os.path.isdir(directory):
        raise BadInput(f"{shown} cannot be written: there is no such directory.")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise BadInput(f"{shown} cannot be written: no permission for its directory.")


def _write_report(
    chosen: Experiment, results: Results, folder: str, parsed: argparse.Namespace
) -> None:
    if parsed.report is None:
        return
    content = page(chosen, results, exhibits_of(chosen, results, folder), os.path.basename(folder))
    with new_file(parsed.report, overwrites=parsed.force) as file:
        file.write(content.encode())
    note(f"tui-fs: page written to {displayable(parsed.report)}.")


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
