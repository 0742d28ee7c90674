"""``tui-fs lab``: run experiments; show and compare the stored runs."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from tui_fs.cli.arguments import add_output_options, directory_argument
from tui_fs.cli.exit_codes import CANCELLED_BY_INT, CANCELLED_BY_TERM, DONE, SOME_FAILED
from tui_fs.cli.interrupts import Interrupts
from tui_fs.cli.output import (
    SCHEMA,
    StatusLine,
    columns,
    moves_cursor,
    note,
    print_json,
    print_text,
)
from tui_fs.lab.diff import StepPair, compared, comparison_exhibits
from tui_fs.lab.exhibits import (
    Calls,
    Claims,
    Exhibit,
    Flames,
    Table,
    exhibits_of,
)
from tui_fs.lab.experiment import Experiment, Judged, Scale, Verdict
from tui_fs.lab.experiments import experiment, experiments
from tui_fs.lab.page import page
from tui_fs.lab.process import LabRun
from tui_fs.lab.results import Ending, Measured, Progressed, Results, fold_one
from tui_fs.lab.runs import find_run, load, stored_runs
from tui_fs.model.codec import Json, encode
from tui_fs.model.compat import assert_never
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, harmless, shell_quoted
from tui_fs.model.units import bytes_iec, clock, counted, duration
from tui_fs.screens.lab.drawing import (
    flame_lines,
    pair_lines,
    pair_remarks,
    table_lines,
)
from tui_fs.survey.export_file import new_file, refuse_taken
from tui_fs.widgets.figure_layout import Line

_WIDTH_WITHOUT_TERMINAL = 100
_MIN_DONE = 0.02
"""The time left is extrapolated from this part of the work on."""
_SIGNS = {Verdict.HOLDS: "✓", Verdict.DOES_NOT: "✗", Verdict.UNTESTED: "–"}


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the commands of the lab and their arguments."""
    parser.usage = "tui-fs lab ACTION ..."
    parser.description = (
        "Repeat published deletion experiments on this machine, and compare the results with "
        "the published ones."
    )
    parser.epilog = (
        "'tui-fs lab ACTION --help' describes an action.\n\nexample:\n  tui-fs lab run rsync-vs-rm"
    )
    actions = parser.add_subparsers(
        title="actions", metavar="ACTION", required=True, prog=parser.prog
    )
    parser.add_argument_group("output").add_argument(
        "-h", "--help", action="help", help="show this help"
    )

    def add(
        name: str, run: Callable[[argparse.Namespace], int], words: str, arguments: str = ""
    ) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=words, description=f"{words.capitalize()}.")
        action.usage = f"tui-fs lab {name} {arguments}[OPTION...]"
        action.set_defaults(run=run)
        return action

    listing = add("list", run_list, "list the experiments")
    listing.epilog = "example:\n  tui-fs lab list"
    add_output_options(listing)

    run_parser = add("run", run_run, "run an experiment and report its result", "NAME ")
    run_parser.epilog = "example:\n  tui-fs lab run rsync-vs-rm --report result.html"
    group = run_parser.add_argument_group("what is run")
    group.add_argument("name", metavar="NAME", help="an experiment; tui-fs lab list shows all")
    group.add_argument(
        "--scale", choices=("small", "published"), default="small", metavar="SCALE",
        help="small (default; under a minute) or published (as large as in the publication)",
    )  # fmt: skip
    group.add_argument(
        "--dir", metavar="DIRECTORY",
        help="create the trees in a scratch directory below this one (default: the user's cache)",
    )  # fmt: skip
    group.add_argument(
        "--target", default="", metavar="PATH",
        help="a directory whose shape is copied; it is only read",
    )  # fmt: skip
    run_parser.add_argument("--max-rounds", type=int, choices=range(1, 12), help=argparse.SUPPRESS)
    _add_report_options(run_parser)

    runs = add("runs", run_runs, "list the stored runs, the newest first")
    runs.epilog = "example:\n  tui-fs lab runs"
    add_output_options(runs)

    show = add("show", run_show, "show a stored run", "RUN ")
    show.epilog = "example:\n  tui-fs lab show rsync-vs-rm-20260730"
    show.add_argument_group("which run").add_argument(
        "kept",
        metavar="RUN",
        help=("the name of a run, or the start of the name; tui-fs lab runs lists all"),
    )
    _add_report_options(show)

    compare = add("compare", run_compare, "compare two runs of one experiment", "RUN RUN ")
    compare.epilog = "example:\n  tui-fs lab compare rsync-vs-rm-20260730 rsync-vs-rm-20260801"
    compare.add_argument_group("which runs").add_argument(
        "kept",
        metavar="RUN",
        nargs=2,
        help="the name of a run, or the start of the name; tui-fs lab runs lists all",
    )
    add_output_options(compare)


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    group = add_output_options(parser)
    group.add_argument(
        "--report", metavar="FILE", help="also write a self-contained HTML page to a new file"
    )
    group.add_argument("--force", action="store_true", help="let --report replace an existing file")


def run_list(parsed: argparse.Namespace) -> int:
    """Print all experiments."""
    listed = experiments()
    if parsed.json:
        scales = [scale.value for scale in Scale]
        print_json(
            [
                {
                    "name": entry.name,
                    "title": entry.title,
                    "scales": scales,
                    "needs": list(entry.needs),
                }
                for entry in listed
            ]
        )
        return DONE
    rows: list[tuple[str, ...]] = [("experiment", "what it is", "needs")]
    rows += [(entry.name, entry.title, "; ".join(entry.needs)) for entry in listed]
    print_text(columns(rows, frozenset()))
    return DONE


def run_run(parsed: argparse.Namespace) -> int:
    """Run an experiment to its end and print the result."""
    chosen = experiment(parsed.name)
    if parsed.target and not chosen.takes_target:
        raise BadInput(f"{chosen.name} makes its own trees.", "Omit --target.")
    target = directory_argument(parsed.target) if parsed.target else ""
    directory = None if parsed.dir is None else directory_argument(parsed.dir)
    _check_report(parsed)
    lab = LabRun(chosen.name, Scale(parsed.scale), directory, target, parsed.max_rounds)
    interrupts = _CancellingInterrupts()  # nothing to clean up until here
    with lab:
        interrupts.cancel_with(lab.cancel)
        results = _followed(lab)
    ended = results.ended
    assert ended is not None  # otherwise `_followed` has raised
    _print_run(chosen, results, lab.folder, parsed)
    if ended.ending is Ending.DONE:
        _write_report(chosen, results, lab.folder, parsed)
        if any(step.runs for step in results.measured.values()):
            return DONE
        note("tui-fs: no step could be measured.")
        return SOME_FAILED
    if parsed.report is not None:
        name = os.path.basename(lab.folder)
        again = shell_quoted(("tui-fs", "lab", "show", name, "--report", parsed.report))
        note(f"tui-fs: no page was written; to write it: {again}")
    if ended.ending is Ending.FAILED:
        note(f"tui-fs: the run failed: {harmless(ended.reason)}")
        return SOME_FAILED
    note("tui-fs: the run was cancelled, and its files were removed.")
    return interrupts.exit_code


def run_runs(parsed: argparse.Namespace) -> int:
    """Print the stored runs."""
    runs = stored_runs()
    if parsed.json:
        print_json(
            [
                {
                    "schema": SCHEMA,
                    "run": run.run_id,
                    "experiment": run.experiment,
                    "scale": run.scale.value,
                    "started_at": run.started_at,
                    "ending": None if run.ending is None else run.ending.value,
                    "folder": displayable(run.folder),
                }
                for run in runs
            ]
        )
    elif not runs:
        note("tui-fs: there are no runs yet.")
    else:
        rows: list[tuple[str, ...]] = [("run", "experiment", "scale", "begun", "ending")]
        for run in runs:
            begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
            ending = "none yet" if run.ending is None else run.ending.value
            rows.append(
                (displayable(run.run_id), harmless(run.experiment), run.scale.value, begun, ending)
            )
        print_text(columns(rows, frozenset()))
    return DONE


def run_show(parsed: argparse.Namespace) -> int:
    """Show a stored run."""
    folder = find_run(parsed.kept)
    results = load(folder)
    chosen = experiment(results.began.experiment)
    _check_report(parsed)
    _print_run(chosen, results, folder, parsed)
    _write_report(chosen, results, folder, parsed)
    return DONE


def run_compare(parsed: argparse.Namespace) -> int:
    """Compare two runs of one experiment."""
    folders = [find_run(name) for name in parsed.kept]
    first, second = (load(name) for name in folders)
    names = os.path.basename(folders[0]), os.path.basename(folders[1])
    if parsed.json:
        print_json(comparison_as_json(first, names, compared(first, second)))
    else:
        print_text(exhibits_as_text(comparison_exhibits(first, second, names), _width()))
    return DONE


class _CancellingInterrupts(Interrupts):
    """Cancels the run on the first SIGINT or SIGTERM; the command then waits for its end."""

    def __init__(self) -> None:
        self._cancel: Callable[[], None] | None = None
        super().__init__()

    def cancel_with(self, cancel: Callable[[], None]) -> None:
        """Set the function that cancels the run; call it at once if a signal has arrived."""
        self._cancel = cancel
        if self.received is not None:
            cancel()

    @property
    def exit_code(self) -> int:
        """The exit code of a cancelled run."""
        is_terminated = self.received is not None and self.received.name == "SIGTERM"
        return CANCELLED_BY_TERM if is_terminated else CANCELLED_BY_INT

    def _note(self, number: int, frame: object) -> None:
        is_first = self.received is None
        super()._note(number, frame)
        if is_first and self._cancel is not None:
            self._cancel()


def _followed(lab: LabRun) -> Results:
    results: Results | None = None
    line, words, began_s = StatusLine(), "", time.monotonic()
    try:
        for event in lab.events():
            results = fold_one(results, event)
            if isinstance(event, Progressed):
                line.show(_progress(event, time.monotonic() - began_s), event.done)
                if event.words != words and not moves_cursor(sys.stderr):
                    note(harmless(event.words))
                words = event.words
    finally:
        line.clear()
    assert results is not None  # `events` raises if the end is missing
    return results


def _progress(progress: Progressed, elapsed_s: float) -> str:
    text = f"{100 * progress.done:3.0f} %"
    if elapsed_s >= 1 and _MIN_DONE <= progress.done < 1:
        text += f"  left about {duration(elapsed_s * (1 - progress.done) / progress.done)}"
    return f"{text}  elapsed {clock(elapsed_s)}  {harmless(progress.words)}"


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
    """Raise BadInput for an unusable report path before the run, not after it."""
    if parsed.report is None:
        if parsed.force:
            raise BadInput("--force is only allowed with --report FILE.")
        return
    refuse_taken(parsed.report, overwrites=parsed.force)


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


def run_as_text(
    experiment: Experiment,
    results: Results,
    exhibits: Iterable[Exhibit],
    run_id: str,
    width: int,
) -> str:
    """Return a run, with figures that are at most `width` characters wide."""
    began, ended = results.began, results.ended
    machine = began.machine
    begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(began.started_at))
    facts = [f"{began.scale} scale", begun, machine.kernel, machine.processor]
    facts.append(
        f"{counted(machine.processors, 'processor', 'processors')}, "
        f"{bytes_iec(machine.memory_bytes)}"
    )
    head = [experiment.title, experiment.question]
    if experiment.source:
        head.append(f"Source: {experiment.source}")
    head.append("; ".join(facts))
    parts = ["\n".join(map(harmless, head)), exhibits_as_text(exhibits, width)]
    if results.notes:
        notes = (f"- {harmless(remark)}" for remark in results.notes)
        parts.append("\n".join(["Notes", *notes]))
    took = "" if ended is None else f" after {duration(ended.elapsed_s)}"
    ending = "still running, or killed" if ended is None else f"{ended.ending}{took}"
    if ended is not None and ended.ending is not Ending.DONE and ended.reason:
        ending += f": {harmless(ended.reason)}"
    parts.append(f"Run {harmless(run_id)}: {ending}")
    return "\n\n".join(part for part in parts if part)


def exhibits_as_text(exhibits: Iterable[Exhibit], width: int) -> str:
    """Return exhibits, an empty line between them."""
    return "\n\n".join(_exhibit(exhibit, width) for exhibit in exhibits)


def _exhibit(exhibit: Exhibit, width: int) -> str:  # noqa: RET503
    match exhibit:
        case Claims():
            return _claims(exhibit)
        case Table():
            lines = table_lines(exhibit, width)
            return _titled(exhibit.title, _plain(lines), exhibit.remark)
        case Calls():
            pairs = [exhibit.tables[at : at + 2] for at in range(0, len(exhibit.tables), 2)]
            texts = [f"{_plain(pair_lines(pair, width))}\n{pair_remarks(pair)}" for pair in pairs]
            return _titled(exhibit.title, "\n\n".join(texts))
        case Flames():
            lines = flame_lines(exhibit, width)
            return _titled(exhibit.title, _plain(lines), exhibit.remark)
        case _:
            assert_never(exhibit)


def _plain(lines: Sequence[Line]) -> str:
    return "\n".join(harmless("".join(text for _, text in line)).rstrip() for line in lines)


def _titled(title: str, body: str, remark: str = "") -> str:
    parts = [harmless(title), body, harmless(remark)]
    return "\n".join(part for part in parts if part)


def _claims(claims: Claims) -> str:
    verdicts = [claim.verdict for claim in claims.claims]
    counts = (f"{sign} {verdicts.count(verdict)}" for verdict, sign in _SIGNS.items())
    return "\n".join(["   ".join(["Claims", *counts]), *map(_claim, claims.claims)])


def _claim(claim: Judged) -> str:
    lines = [f"{_SIGNS[claim.verdict]} {claim.verdict}: {claim.text}"]
    for name, value in (
        ("published", claim.published),
        ("here", claim.here),
        ("why", claim.reason),
    ):
        if value:
            lines.append(f"    {name + ':':<12}{value}")
    return "\n".join(map(harmless, lines))


def run_as_json(experiment: Experiment, results: Results, run_id: str) -> dict[str, Json]:
    """Return a run as one JSON object; `ending` is null while it has none."""
    began, ended = results.began, results.ended
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "scale": began.scale,
        "run": run_id,
        "started_at": began.started_at,
        "directory": began.directory,
        "target": began.target,
        "machine": encode(began.machine),
        "claims": [encode(claim.judged(results)) for claim in experiment.claims],
        "steps": [_step_as_json(step) for step in results.measured.values()],
        "notes": list(results.notes),
        "ending": None if ended is None else ended.ending.value,
        "reason": "" if ended is None else ended.reason,
        "elapsed_s": None if ended is None else ended.elapsed_s,
    }


def comparison_as_json(
    first: Results, names: tuple[str, str], steps: tuple[StepPair, ...]
) -> dict[str, Json]:
    """Return a comparison of two runs; of the calls only those that differ."""
    return {
        "schema": SCHEMA,
        "experiment": first.began.experiment,
        "runs": list(names),
        "steps": encode(steps),
    }


def _step_as_json(measured: Measured) -> dict[str, Json]:
    """Return the plan of a step and its figures as the fields of one object."""
    figures = encode(measured)
    plan, _ = figures.pop("plan"), figures.pop("failed")
    for run in figures["runs"]:
        run["peak_memory_bytes"] = run["peak_memory_bytes"] or None  # not sampled
    return {**plan, **figures, "why_not": measured.why_not}
