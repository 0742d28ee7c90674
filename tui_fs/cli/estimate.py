"""``tui-fs estimate``."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence

from tui_fs.cli.arguments import (
    add_filter_options,
    add_output_options,
    add_rate_option,
    add_strategy_options,
    directory_argument,
    options_of,
)
from tui_fs.cli.command_process import Notice, notify_watcher
from tui_fs.cli.counting import count_file, count_tree
from tui_fs.cli.exit_codes import DONE
from tui_fs.cli.output import SCHEMA, StatusLine, columns, print_json, print_text
from tui_fs.estimate.recommendation import recommended_as
from tui_fs.job.calibration.store import measure, needs_measuring
from tui_fs.job.conflicts import check_nested
from tui_fs.job.permission import check_targets
from tui_fs.job.planning import Forecast, forecast, forecast_by_estimate
from tui_fs.linux.mounts import has_lower_layers, mounts_below, read_mounts
from tui_fs.linux.pins import take_pin
from tui_fs.model.codec import argv_fields, encode
from tui_fs.model.errors import BadInput, Refused, cannot_examine
from tui_fs.model.estimate import Estimate, TimeAxis
from tui_fs.model.filter_text import in_words as in_words_of_filters
from tui_fs.model.paths import PathStr
from tui_fs.model.quick_estimate import QuickEstimate, rounded
from tui_fs.model.space import LOWER_LAYER_WORDS
from tui_fs.model.target import Target, command_lines, common_directory, in_words, target_fields
from tui_fs.model.units import bytes_iec, clock, count, counted, duration_span
from tui_fs.survey.findings.barriers import find_external_uses, mount_findings, use_findings
from tui_fs.survey.single_file import remarks_on

_MIN_BAR, _MAX_BAR = 24, 60
"""Cells of the axis of the times on a terminal."""


def estimate_as_json(estimate: Estimate) -> dict[str, object]:
    """Return one strategy's estimate with the fields of the CLI contract."""
    return {
        "strategy": estimate.strategy,
        "seconds_low": round(estimate.seconds_low, 3),
        "seconds": round(estimate.seconds, 3),
        "seconds_high": round(estimate.seconds_high, 3),
        "syscalls": estimate.syscalls,
        "other_calls": estimate.other_calls,
        "uncounted_calls": estimate.uncounted_calls,
        "processes": estimate.processes,
        "peak_memory_bytes": estimate.peak_memory_bytes,
        "memory_reason": estimate.memory_reason,
        "feasible": estimate.feasible,
        "race_safe": estimate.race_safe,
        "confined_by": list(estimate.confined_by),
        "mount_safe": estimate.mount_safe,
        "reasons": list(estimate.reasons),
        **argv_fields("command", estimate.command),
        "rests_on": estimate.rests_on,
        "calls_rest_on": estimate.calls_rest_on,
        "advice": estimate.advice,
    }


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    parser.usage = "tui-fs estimate PATH... [OPTION...]"
    parser.description = (
        "Count the entries of directories and predict what each strategy would cost to "
        "delete them: time, system calls, memory and processes. A single file is examined in the "
        "same way. Nothing is changed."
    )
    parser.epilog = "example:\n  tui-fs estimate --quick /var/cache/app"
    group = parser.add_argument_group("what is estimated")
    group.add_argument("paths", metavar="PATH", nargs="+", help="a directory, or a single file")
    add_filter_options(group)
    group.add_argument(
        "--quick",
        action="store_true",
        help="sample for one second instead of counting, and report 90 %% ranges",
    )
    group.add_argument(
        "--no-measuring",
        action="store_true",
        help="do not create and delete small trees beside PATH to measure the file system; use "
        "the figures of earlier measurements",
    )
    strategy = parser.add_argument_group("strategy")
    add_strategy_options(strategy)
    add_rate_option(strategy)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Survey the trees and print the estimates of all strategies."""
    if parsed.quick:
        notify_watcher(Notice.GIVE_UP, "Nothing is known about the size of the tree.")
    file = _single_file(parsed.paths)
    paths = [directory_argument(path) for path in parsed.paths] if file is None else [file]
    if file is None:
        _refuse_nested(paths)
    options = options_of(parsed)
    if parsed.quick and file is None:
        if options.filters.active:
            raise BadInput("--quick cannot be used with filters, such as --name.")
        return _quick(paths, parsed)
    refused = _why_refused(paths) if file is None else ""
    survey = count_tree(paths, options.filters) if file is None else count_file(file)
    entries = survey.totals.entries
    is_measured = not parsed.no_measuring and needs_measuring(paths[0], entries)
    note = _measure(paths[0]) if is_measured else ""
    predicted = forecast(paths, survey, options, note=note)
    is_filtered, matching = options.filters.active, predicted.expected.totals.entries
    if parsed.json:
        print_json(
            {
                "schema": SCHEMA,
                **target_fields(paths),
                "entries": matching if is_filtered else entries,
                "complete": survey.complete,
                "freed_bytes_min": predicted.expected.freed_bytes_min,
                "freed_bytes_max": predicted.expected.freed_bytes_most,
                "freed_inodes_min": 0 if is_filtered else survey.freed_inodes_min,
                "freed_inodes_max": matching if is_filtered else survey.inodes,
                **_forecast_fields(predicted, refused),
            }
        )
    else:
        contents = counted(entries, "entry", "entries")
        if is_filtered:
            words = in_words_of_filters(options.filters, time.time())
            contents = f"{count(matching)} of {contents} match the filters ({words})"
        print_text(f"{in_words(paths)}: {contents}, frees {predicted.expected.freed_words}")
        for remark in remarks_on(survey) if file is not None else ():
            print_text(remark)
        print_text(estimates_as_text(predicted, refused, _bars(predicted)))
    return DONE


def _single_file(paths: Sequence[str]) -> PathStr | None:
    """Return the canonical path if a single file or symbolic link is named; else None.

    Raises:
        Refused: a rule or a policy forbids its deletion.
    """
    if (
        len(paths) > 1
        or paths[0].endswith("/")
        or not os.path.lexists(paths[0])
        or (os.path.isdir(paths[0]) and not os.path.islink(paths[0]))
    ):
        return None
    (target,) = check_targets(paths, to_look=True, allows_file=True)
    return target.path


def _measure(path: str) -> str:
    """Measure beside a path, with a line on the terminal; return why that failed, if it did."""
    line, began_s = StatusLine(), time.monotonic()

    def show_elapsed() -> bool:
        elapsed = clock(time.monotonic() - began_s)
        line.show(f"measuring the file system with small trees  elapsed {elapsed}")
        return True

    try:
        return measure(path, show_elapsed)
    finally:
        line.clear()


def _quick(paths: Sequence[str], parsed: argparse.Namespace) -> int:
    """Sample the trees for a second, and print the estimates with their ranges."""
    from tui_fs.survey.quick_estimate import quick_estimate  # not loaded for a full survey

    try:
        estimate = quick_estimate(paths)
        table = read_mounts()
        inside = sorted(
            {mount.mount_point for path in paths for mount in mounts_below(path, table)}
        )
        uses = find_external_uses(paths, table).uses
        findings = (*mount_findings(inside), *use_findings(uses))
    except OSError as error:
        raise cannot_examine(common_directory(paths), error) from error
    predicted = forecast_by_estimate(paths, estimate, options_of(parsed), findings=findings)
    refused = _why_refused(paths)
    entries, allocated = estimate.entries, estimate.allocated_bytes
    if parsed.json:
        print_json(
            {
                "schema": SCHEMA,
                **target_fields(paths),
                "entries": entries.expected,
                "entries_low": entries.low,
                "entries_high": entries.high,
                "directories": estimate.directories.expected,
                "directories_low": estimate.directories.low,
                "directories_high": estimate.directories.high,
                "allocated_bytes": allocated.expected,
                "allocated_bytes_low": allocated.low,
                "allocated_bytes_high": allocated.high,
                "complete": False,
                "elapsed_s": round(estimate.elapsed_s, 3),
                "rests_on": estimate.basis,
                **_forecast_fields(predicted, refused),
            }
        )
    else:
        is_on_overlay = any(has_lower_layers(path, table) for path in paths)
        words = quick_words(estimate, is_on_overlay=is_on_overlay)
        print_text(f"{in_words(paths)}: {words}")
        print_text(estimates_as_text(predicted, refused, _bars(predicted)))
    return DONE


def _forecast_fields(predicted: Forecast, refused: str) -> dict[str, object]:
    return {
        "strategies": [estimate_as_json(estimate) for estimate in predicted.estimates],
        "recommended": None if refused else predicted.recommended,
        "refused": refused or None,
        "missing_figures": encode(predicted.missing_figures),
    }


def quick_words(estimate: QuickEstimate, *, is_on_overlay: bool = False) -> str:
    """Return the number of entries and the space they free, both with their ranges."""
    entries, allocated = estimate.entries, estimate.allocated_bytes
    if entries.is_exact:
        names = f"{counted(entries.low, 'entry', 'entries')} (all counted)"
    else:
        names = (
            f"about {counted(rounded(entries.expected), 'entry', 'entries')} "
            f"(estimate; 90 % range {entries.in_words(count)})"
        )
    if is_on_overlay:
        return f"{names}, frees 0 B to {bytes_iec(rounded(allocated.high))} ({LOWER_LAYER_WORDS})"
    size = bytes_iec(rounded(allocated.expected))
    span = "" if allocated.is_exact else f" (90 % range {allocated.in_words(bytes_iec)})"
    return f"{names}, frees about {size}{span}"


def _why_refused(paths: Sequence[str]) -> str:
    """Return why a rule or a policy forbids the deletion; empty if none does."""
    try:
        check_targets(paths, to_look=True)
    except Refused as error:
        return str(error)
    return ""


def _refuse_nested(paths: Sequence[str]) -> None:
    try:
        check_nested([Target(PathStr(path), take_pin(path)) for path in paths])
    except OSError as error:
        raise cannot_examine(common_directory(paths), error) from error


def _bars(predicted: Forecast) -> list[str]:
    """Return bars for standard output; none if it is not a terminal."""
    if not sys.stdout.isatty():
        return []
    return range_bars(predicted, shutil.get_terminal_size().columns)


def range_bars(predicted: Forecast, width: int) -> list[str]:
    """Return an axis and for each strategy the range of its time; nothing if there is no room."""
    from tui_fs.widgets.cell_drawing import (
        for_terminal,
        range_bar,
    )  # loads rich, for a terminal only

    axis = TimeAxis.of(predicted.estimates)
    names = max(len(estimate.strategy) for estimate in predicted.estimates)
    cells = min(_MAX_BAR, width - names - 3)
    if cells < _MIN_BAR:
        return []
    lines = [f"{'':{names}}  {axis.title(cells)}"]
    for estimate in predicted.estimates:
        span = axis.span(estimate)
        if span is None:
            bar = f"cannot run: {estimate.reasons[0]}"[:cells]
        else:
            is_recommended = estimate.strategy == predicted.recommended
            bar = for_terminal(range_bar(*span, cells, strong=is_recommended))
        lines.append(f"{estimate.strategy:{names}}  {bar}".rstrip())
    return [*lines, ""]


def estimates_as_text(predicted: Forecast, refused: str, bars: Sequence[str] = ()) -> str:
    """Return a table of the estimates, then the notes on each strategy.

    Args:
        bars: lines below the table.
        refused: why no strategy may be used on the targets; empty if they may.
    """
    is_safest = recommended_as(predicted.estimates) == "safest"
    recommendation = "" if refused else "recommended: safest" if is_safest else "recommended"
    rows: list[tuple[str, ...]] = [("strategy", "time", "calls", "memory", "processes", "")]
    for estimate in predicted.estimates:
        if not estimate.feasible:
            rows.append((estimate.strategy, "-", "-", "-", "-", "cannot run here"))
            continue
        rows.append(
            (
                estimate.strategy,
                duration_span(estimate.seconds_low, estimate.seconds_high),
                estimate.at_least + count(estimate.total_calls),
                estimate.memory_words,
                count(estimate.processes),
                recommendation if estimate.strategy == predicted.recommended else "",
            )
        )
    lines = [f"tui-fs would refuse this deletion. {refused}"] if refused else []
    lines += [columns(rows, frozenset({1, 2, 3, 4})), "", *bars]
    feasible = [estimate for estimate in predicted.estimates if estimate.feasible]
    common = [
        reason
        for reason in (feasible[0].reasons if feasible else ())
        if all(reason in estimate.reasons for estimate in feasible)
    ]
    for estimate in predicted.estimates:
        lines.append(f"{estimate.strategy}: {estimate.advice}")
        lines += [
            f"    {reason}"
            for reason in estimate.reasons
            if estimate.feasible and reason not in common
        ]
        if estimate.feasible and estimate.memory_reason:
            lines.append(f"    memory: {estimate.memory_reason}")
    lines += [f"all strategies: {reason}" for reason in common]
    lines.append("")
    for estimate in predicted.estimates:
        lines += [f"$ {line}" for line in command_lines(estimate.command)]
    lines += ["", f"The times are based on {predicted.estimates[0].rests_on}."]
    lines += [figure.sentence for figure in predicted.missing_figures]
    return "\n".join(lines)
