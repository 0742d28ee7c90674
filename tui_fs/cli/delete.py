"""``tui-fs delete``: check, survey, ask, start, follow."""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from tui_fs.cli.arguments import (
    add_confirmation_options,
    add_detach_option,
    add_filter_options,
    add_output_options,
    add_pace_options,
    add_strategy_options,
    directory_id,
    job_id,
    options_of,
    refuse_confirmation_alone,
    require_terminal,
    share,
    strategy,
    trace_of,
    trace_source,
)
from tui_fs.cli.command_process import Notice, notify_watcher
from tui_fs.cli.counting import count_targets
from tui_fs.cli.exit_codes import DONE, OUTPUT_LOST
from tui_fs.cli.interrupts import Interrupts
from tui_fs.cli.output import (
    SCHEMA,
    is_reader_gone,
    note,
    print_json,
    print_question,
    print_text,
)
from tui_fs.job.conflicts import check_conflicts
from tui_fs.job.path_safety import keep_open, shown_directories
from tui_fs.job.permission import (
    PLAIN_WORD,
    check_plan,
    check_strategy_here,
    check_targets,
    why_type_name,
    word_to_type,
)
from tui_fs.job.planning import (
    forecast,
    guarantees_of,
    make_plan,
    refuse_uncounted_rate,
    remainder_of,
)
from tui_fs.job.start import start
from tui_fs.job.store import JobFolder, check_new_id
from tui_fs.linux.filesystem import directory_id as id_of_directory
from tui_fs.linux.logind import ends_at_logout
from tui_fs.model.calls import TraceSource
from tui_fs.model.codec import argv_fields, encode
from tui_fs.model.errors import BadInput, JobFailed, Missing, Refused
from tui_fs.model.filter_text import in_words as filter_words
from tui_fs.model.paths import displayable
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import Options, StrategyName, confined_words
from tui_fs.model.survey import Survey
from tui_fs.model.target import Target, command_lines, in_words, is_file, target_fields
from tui_fs.model.units import bytes_iec, counted, duration_span
from tui_fs.strategies.base import Strategy
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.survey.findings.registry import activity_in
from tui_fs.survey.single_file import remarks_on
from tui_fs.tracing.select_source import open_source

_OPTIONS_OF_SOME: Mapping[str, Callable[[Strategy], bool]] = {
    "batch_size": lambda strategy: strategy.has_batches,
    "processes": lambda strategy: strategy.has_batches,
    "threads": lambda strategy: strategy.guarantees.speaks,
    "shard": lambda strategy: strategy.guarantees.takes_shares,
}
"""The options that only some strategies have, and which ones."""

_Users = Mapping[str, Sequence[StrategyName]]
"""The strategies that have an option, by its name."""

_Started = tuple[Plan, JobFolder | None, Interrupts]
"""A plan, its job folder (None if a signal came before the start), and the signal handler."""


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    parser.usage = "tui-fs delete PATH... [--strategy NAME] [OPTION...]"
    parser.description = (
        "Delete directories, or one file, in one job and follow it to its end. Ctrl-C cancels it; "
        "a lost connection does not."
    )
    parser.epilog = "example:\n  tui-fs delete /var/cache/app --strategy parallel --gentle"
    group = parser.add_argument_group("what is deleted")
    group.add_argument(
        "paths", metavar="PATH", nargs="+",
        help="a directory to delete with everything in it (filters keep directories), or a "
        "single file or symbolic link",
    )  # fmt: skip
    add_filter_options(group)
    group.add_argument(
        "--shard", type=share, metavar="K/N",
        help="parallel: only the K-th of N shares, for N machines",
    )  # fmt: skip
    group.add_argument(
        "--directory-id", type=directory_id, action="append", metavar="ID",
        help="refuse unless PATH has this id, which --shard prints",
    )  # fmt: skip
    group = parser.add_argument_group("strategy")
    group.add_argument(
        "--strategy", type=strategy, metavar="NAME",
        help=f"{', '.join(STRATEGIES)} (default: recommended)",
    )  # fmt: skip
    add_strategy_options(group)
    add_pace_options(parser.add_argument_group("pace (can be changed while the job runs)"))
    group = parser.add_argument_group("safety")
    group.add_argument("--dry-run", action="store_true", help="show what would run; delete nothing")
    add_confirmation_options(group)
    group = add_output_options(parser)
    add_detach_option(group)
    group.add_argument("--job-id", type=job_id, help=argparse.SUPPRESS)  # for tui-fs fleet
    group.add_argument(
        "--trace", type=trace_source, default="auto", metavar="SOURCE",
        help="counter of system calls: auto (default), perf, engine (only 'parallel'), bpf, "
             "strace (5 to 7 times slower), off",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Delete the directories, or the file, in one job."""
    targets = check_targets(parsed.paths, allows_file=True)
    with keep_open(targets):
        started = _plan_and_start(targets, parsed)
    return DONE if started is None else _follow(*started, parsed)


def _plan_and_start(targets: Sequence[Target], parsed: argparse.Namespace) -> _Started | None:
    """Survey, ask and start; None after a dry run."""
    asks = _asks(parsed)
    options, trace = options_of(parsed), trace_of(parsed)
    _check_directory_ids(targets, parsed.directory_id)
    if parsed.job_id is not None:
        check_new_id(parsed.job_id)
    if asks:
        check_conflicts(targets)  # not only after the answer
    given = _given_for_some(parsed)
    if parsed.strategy is not None:
        _check_options(parsed.strategy, given, options, trace)
    has_reader = asks or parsed.dry_run
    survey = count_targets(targets, options.filters, finds_users=has_reader)
    strategy = parsed.strategy
    if strategy is None:
        strategy = _recommended(targets, survey, given, options, trace)
        _check_options(strategy, given, options, trace)
        if not is_file(targets):
            note(f"tui-fs: {strategy} is the recommended strategy here.")
    plan = make_plan(
        targets, survey, strategy, options, trace, compares=parsed.dry_run, job_id=parsed.job_id
    )
    remarks = _remarks(targets, survey) if has_reader or is_file(targets) else ()
    if parsed.dry_run:
        _print_plan(plan, remarks, as_json=parsed.json)
        return None
    return _confirm_and_start(plan, parsed, asks=asks, remarks=remarks)


def _check_options(
    strategy: StrategyName, given: _Users, options: Options, trace: TraceSource | None
) -> None:
    """Raise an error before the job starts if the strategy cannot run with these options."""
    check_strategy_here(strategy)
    for option, users in given.items():
        if strategy not in users:
            raise BadInput(
                f"{option} works only with the strategy {' or '.join(users)}, not with {strategy}."
            )
    refuse_uncounted_rate(strategy, options, trace)
    open_source(trace, speaks=guarantees_of(strategy).speaks)  # it may not be available


def _given_for_some(parsed: argparse.Namespace) -> _Users:
    """Return the given options that some strategies lack, and which strategies have them.

    Raises:
        BadInput: no strategy has all of them.
    """
    given = {
        f"--{name.replace('_', '-')}": [key for key, each in STRATEGIES.items() if has(each)]
        for name, has in _OPTIONS_OF_SOME.items()
        if getattr(parsed, name)
    }
    if not any(_has_all(strategy, given) for strategy in STRATEGIES):
        raise BadInput(f"No strategy has all of these options: {', '.join(given)}.")
    return given


def _has_all(strategy: StrategyName, given: _Users) -> bool:
    return all(strategy in users for users in given.values())


def _recommended(
    targets: Sequence[Target],
    survey: Survey,
    given: _Users,
    options: Options,
    trace: TraceSource | None,
) -> StrategyName:
    """Return the recommended strategy among those that a policy allows.

    Raises:
        Missing: none can run here with these options.
    """
    if is_file(targets):
        return next(name for name in STRATEGIES if guarantees_of(name).takes_files)
    allowed: list[StrategyName] = []
    for name in STRATEGIES:
        with contextlib.suppress(Refused):
            check_strategy_here(name)
            allowed.append(name)
    paths, pins = [target.path for target in targets], [target.pin for target in targets]
    allowed = [name for name in allowed if _has_all(name, given)]
    predicted = forecast(paths, survey, options, trace, pins=pins, strategies=allowed)
    if predicted.recommended is None:
        raise Missing(
            "No strategy can delete this with these options.", "'tui-fs estimate' says why."
        )
    return predicted.recommended


def _check_directory_ids(targets: Sequence[Target], expected: Sequence[str] | None) -> None:
    """Raise Refused unless the targets have the ids that the user gave, if any."""
    if expected is None:
        return
    if len(expected) != len(targets):
        raise BadInput("--directory-id needs one id for each PATH, in the same order.")
    for target, wanted in zip(targets, expected, strict=True):
        path, pin = target.path, target.pin
        if (actual := id_of_directory(path, pin)) != wanted:
            raise Refused(
                f"{displayable(path)} is another directory on this machine: its id is {actual}, "
                f"not {wanted}.",
                "Check with 'findmnt --target' that the shared file system is mounted here.",
                rule="changed",
            )


def resume_dead_job(died: Plan, parsed: argparse.Namespace) -> int:
    """Delete the rest of a dead job with its strategy and options."""
    rest = remainder_of(died)
    if rest.gone:
        note(f"tui-fs: {rest.gone}")
    with keep_open(rest.targets):
        asks = _asks(parsed)
        if asks:
            check_conflicts(rest.targets)
        open_source(died.trace, speaks=guarantees_of(died.strategy).speaks)
        survey = count_targets(rest.targets, died.options.filters, finds_users=asks)
        plan = make_plan(
            rest.targets, survey, died.strategy, died.options, died.trace, compares=False
        )
        plan = replace(plan, continues=died.job_id)
        remarks = _remarks(rest.targets, survey) if asks else ()
        started = _confirm_and_start(plan, parsed, asks=asks, remarks=remarks)
    return _follow(*started, parsed)


def _remarks(targets: Sequence[Target], survey: Survey) -> Sequence[str]:
    """Return what to know before the answer, each in a paragraph."""
    if is_file(targets):
        return remarks_on(survey)
    return [finding.meaning for finding in activity_in(survey)]


def _asks(parsed: argparse.Namespace) -> bool:
    asks = not (parsed.yes or getattr(parsed, "dry_run", False))
    refuse_confirmation_alone(parsed)
    if asks:
        require_terminal()
    return asks


def _confirm_and_start(
    plan: Plan, parsed: argparse.Namespace, *, asks: bool, remarks: Sequence[str] = ()
) -> _Started:
    for remark in remarks:
        note(f"tui-fs: {remark}")
    if asks:
        plan = _asked(plan)
    elif parsed.confirm is not None:
        plan = _typed(plan, parsed.confirm)
    elif plan.options.filters.active or plan.options.filters.share is not None:
        _note_plan(plan)
    check_plan(plan)  # reports a refusal before the job starts
    interrupts = Interrupts()
    left_running = f"Job {plan.job_id} may be running. See: tui-fs jobs"
    notify_watcher(Notice.LEFT, left_running)

    def is_wanted() -> bool:
        # A fleet that has left can neither cancel the job nor see its end.
        return interrupts.received is None and not (parsed.json and is_reader_gone())

    def watch(session: int) -> None:
        notify_watcher(Notice.SESSION, str(session))

    folder = start(plan, is_wanted, watch, parsed.supervisor)
    return plan, folder, interrupts


def _follow(
    plan: Plan, folder: JobFolder | None, interrupts: Interrupts, parsed: argparse.Namespace
) -> int:
    if folder is None and interrupts.received is None:
        note("tui-fs: Standard output was closed before the job began; nothing was deleted.")
        return OUTPUT_LOST
    if folder is None:
        note("tui-fs: Interrupted before the job began; nothing was deleted.")
        return interrupts.exit_code
    if parsed.detach and interrupts.received is None:
        _raise_if_refused(folder)
        if parsed.json:
            print_json({"schema": SCHEMA, "id": plan.job_id, **target_fields(plan.paths)})
        else:
            print_text(plan.job_id)
            note(
                f"tui-fs: the job runs in the background; to follow it: tui-fs attach {plan.job_id}"
            )
        if (warning := ends_at_logout()) is not None:
            note(f"tui-fs: {warning}")
        return DONE
    from tui_fs.cli.follow import follow  # loaded while the supervisor works

    return follow(folder, interrupts, as_json=parsed.json, interrupting_cancels=True)


def _print_plan(plan: Plan, remarks: Sequence[str], *, as_json: bool) -> None:
    predicted = plan.predicted
    assert predicted is not None  # make_plan always predicts
    if as_json:
        from tui_fs.cli.estimate import estimate_as_json  # no other deletion needs it

        print_json(
            {
                "schema": SCHEMA,
                "type": "dry-run",
                **target_fields(plan.paths),
                "strategy": plan.strategy,
                **argv_fields("command", predicted.command),
                "expected": encode(plan.expected),
                "directory_ids": [id_of_directory(t.path, t.pin) for t in plan.targets],
                "predicted": estimate_as_json(predicted),
            }
        )
        return
    print_text(_summary(plan))
    for remark in remarks:
        print_text(remark)
    if plan.options.filters.share is not None:
        print_text(_about_directory_id(plan))
    if plan.expected.about_directories:
        print_text(plan.expected.about_directories)
    for line in command_lines(predicted.command, shown_directories(plan.targets)):
        print_text(f"$ {line}")
    print_text(f"confined by: {confined_words(plan.confined_by)}")
    note("tui-fs: dry run, nothing was deleted.")


def _summary(plan: Plan) -> str:
    expected, totals, predicted = plan.expected, plan.expected.totals, plan.predicted
    assert predicted is not None
    files = counted(totals.non_directories, "file", "files")
    directories = counted(totals.directories, "directory", "directories")
    seconds = duration_span(predicted.seconds_low, predicted.seconds_high)
    if is_file(plan.targets):
        return (
            f"{displayable(plan.paths[0])}: {bytes_iec(totals.allocated_bytes)} allocated "
            f"({bytes_iec(totals.apparent_bytes)} apparent), frees {expected.freed_words}, with "
            f"{plan.strategy} in {seconds}"
        )
    place = in_words(plan.paths, plan.options.filters.share)
    if plan.options.filters.active:
        matches = counted(totals.entries, "entry matches", "entries match")
        return (
            f"{place}: {matches} the filters ({filter_words(plan.options.filters, time.time())}), "
            f"{bytes_iec(expected.freed_bytes_max)}, with {plan.strategy} in {seconds}"
        )
    return (
        f"{place}: {files} and {directories}, "
        f"{bytes_iec(expected.freed_bytes_max)}, with {plan.strategy} in {seconds}"
    )


def _note_plan(plan: Plan) -> None:
    note(_summary(plan))
    if plan.options.filters.share is not None:
        note(_about_directory_id(plan))
    if plan.expected.about_directories:
        note(plan.expected.about_directories)


def _about_directory_id(plan: Plan) -> str:
    ids = [id_of_directory(target.path, target.pin) for target in plan.targets]
    if len(ids) > 1:
        return f"ids of the directories: {', '.join(ids)}"
    return f"id of the directory: {ids[0]} (on the other machines: --directory-id {ids[0]})"


def _raise_if_refused(folder: JobFolder) -> None:
    """Raise the refusal of a supervisor; a detached job has no follower to report it."""
    from tui_fs.job.view import JobView  # loaded while the supervisor prepares

    view = JobView(folder)
    view.poll()
    refused = view.snapshot.refused
    if refused is not None and refused.rule == "jobfailed":
        raise JobFailed(refused.sentence, refused.advice)
    if refused is not None:
        raise Refused(refused.sentence, refused.advice, rule=refused.rule)


def _asked(plan: Plan) -> Plan:
    """Return the plan as the user confirms it; Refused without confirmation."""
    _note_plan(plan)
    if len(plan.targets) > 1:
        for path in plan.paths:
            note(f"  {displayable(path)}")
    reason = why_type_name(plan.paths, plan.expected.totals.entries)
    word = word_to_type(plan.paths)
    label = f"the word {word}" if word == PLAIN_WORD else "its name (without the path)"
    pronoun = "it" if len(plan.targets) == 1 else "them"
    question = f"Because {reason}, type {label} to delete {pronoun}:"
    plain = "Delete it? Type yes:" if len(plan.targets) == 1 else "Delete them all? Type yes:"
    print_question(question if reason else plain)
    answer = sys.stdin.readline().rstrip("\n")
    if reason is not None:
        return _typed(plan, answer)
    if answer != "yes":
        raise Refused("Not confirmed; nothing was deleted.", rule="not-confirmed")
    return plan


def _typed(plan: Plan, name: str) -> Plan:
    """Return the plan confirmed by the word for its targets; Refused if the word differs."""
    if name != word_to_type(plan.paths):
        raise Refused("Not confirmed; nothing was deleted.", rule="not-confirmed")
    return replace(plan, name_typed=True)
