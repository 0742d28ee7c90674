"""``tui-fs fleet``: the same commands on many hosts."""

import argparse
import contextlib
import getpass
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tui_fs.cli.arguments import (
    Group,
    add_confirmation_options,
    add_filter_options,
    add_output_options,
    add_pace_options,
    add_strategy_options,
    positive,
    refuse_confirmation_alone,
    require_terminal,
    strategy,
)
from tui_fs.cli.exit_codes import DONE, MISSING, SOME_FAILED
from tui_fs.cli.interrupts import Interrupts
from tui_fs.cli.output import (
    SCHEMA,
    StatusLine,
    columns,
    note,
    print_json,
    print_json_line,
    print_over_status,
    print_question,
    print_text,
)
from tui_fs.cli.start_app import add_screen_options, open_app, require_screen, screen_settings
from tui_fs.fleet.access import read_one_file
from tui_fs.fleet.answers import (
    HostEstimate,
    HostPlan,
    HostSurvey,
    ListedJob,
    different_directories,
    strategy_sums,
    total_seconds,
    understood,
)
from tui_fs.fleet.connections import Ssh
from tui_fs.fleet.deletion import (
    FleetDeletion,
    HostJob,
    Phase,
    deletion_argv,
    new_job_ids,
)
from tui_fs.fleet.fleet import Answer, Fleet
from tui_fs.fleet.hosts import STANDARD_INPUT, folded, hosts_of
from tui_fs.job.permission import PLAIN_WORD, check_command, refuse_read_only, word_to_type
from tui_fs.model.codec import encode
from tui_fs.model.command import Command
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import displayable, harmless, is_encodable
from tui_fs.model.strategy import Argv
from tui_fs.model.units import bytes_iec, count, counted, duration, duration_span
from tui_fs.screens.fleet_client import FleetClient

_PASSED_OPTIONS = {
    "name": "", "min_size": "", "size_below": "", "older_than": "s", "newer_than": "s",
    "strategy": "", "batch_size": "", "processes": "", "confine": "", "rate": "", "nice": "",
    "ionice": "", "threads": "", "top": "",
}  # fmt: skip
"""Options with a value that the hosts get as they are, and the unit that is added."""

_ZERO_IS_UNSET = ("rate", "nice", "threads")
_POLL_S = 0.2
_LIST_JOBS = ("jobs", "--json")
_PASSED_FLAGS = ("keep_root", "accept_races", "gentle", "no_measuring")


ACTIONS = (
    "open", "survey", "estimate", "delete", "jobs", "attach", "pause", "resume", "cancel", "doctor",
)  # fmt: skip
"""The words after ``fleet``. Without one of them, the arguments are those of ``open``."""


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the actions and their arguments."""
    parser.usage = "tui-fs fleet HOSTS [PATH] | tui-fs fleet ACTION HOSTS ..."
    parser.description = (
        "Survey and delete on many hosts over your own ssh. Without an action, tui-fs opens the "
        "screen of these hosts. HOSTS is a node set (web[1-8],db3), a group (@web), an inventory "
        "file of Ansible, or - for standard input."
    )
    parser.epilog = (
        "'tui-fs fleet ACTION --help' describes an action.\n\nexample:\n"
        "  tui-fs fleet survey web[1-8] /var/cache/app"
    )
    actions = parser.add_subparsers(
        title="actions", metavar="ACTION", required=True, prog=parser.prog
    )
    parser.add_argument_group("output").add_argument(
        "-h", "--help", action="help", help="show this help"
    )

    def add(
        name: str, run: Callable[[argparse.Namespace], int], words: str, paths: str = ""
    ) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=words, description=f"{words.capitalize()}.")
        action.usage = f"tui-fs fleet {name} HOSTS {paths}[OPTION...]"
        action.set_defaults(run=run, action=name)
        group = action.add_argument_group("where")
        group.add_argument("hosts", metavar="HOSTS", help="web[1-8],db3, @group, FILE or -")
        if paths:
            number = {"PATH ": None, "PATH... ": "+", "[PATH] ": "?"}[paths]
            group.add_argument(
                "paths", metavar="PATH", nargs=number, type=_absolute,
                help="an absolute path on the hosts",
            )  # fmt: skip
        _add_host_options(group)
        return action

    opening = add("open", run_open, "open the screen of these hosts", "[PATH] ")
    opening.epilog = "example:\n  tui-fs fleet web[1-8] /var/cache/app"
    _add_order_options(opening.add_argument_group("order of the hosts"))
    add_screen_options(opening.add_argument_group("screens"))
    add_output_options(opening, has_json=False)

    survey = add("survey", run_survey, "count the entries of a directory on each host", "PATH ")
    survey.epilog = "example:\n  tui-fs fleet survey web[1-8] /var/cache/app"
    add_output_options(survey)

    estimate = add("estimate", run_estimate, "predict the cost of each strategy", "PATH... ")
    estimate.epilog = "example:\n  tui-fs fleet estimate @web /var/cache/app"
    add_filter_options(estimate.add_argument_group("what is estimated"))
    add_strategy_options(estimate.add_argument_group("strategy"))
    add_output_options(estimate)

    delete = add("delete", run_delete, "delete directories on each host", "PATH... ")
    delete.epilog = (
        "example:\n  tui-fs fleet delete web[1-8] /var/cache/app --canary --max-failures 1"
    )
    group = delete.add_argument_group("what is deleted")
    group.add_argument(
        "--shard", action="store_true",
        help="the hosts share one file system: each deletes a share of one directory",
    )  # fmt: skip
    group = delete.add_argument_group("order of the hosts")
    _add_order_options(group)
    group.add_argument(
        "--canary", action="store_true",
        help="delete on the first host, and ask again before the others",
    )  # fmt: skip
    group = delete.add_argument_group("safety")
    group.add_argument("--dry-run", action="store_true", help="show what would run; delete nothing")
    add_confirmation_options(group)
    add_output_options(delete)
    delete.description = (
        "Delete directories on each host. It accepts the filters, and the options of strategy and "
        "pace, of tui-fs delete."
    )
    group = delete.add_argument_group("options of tui-fs delete")
    group.add_argument("--strategy", type=strategy)
    add_filter_options(group)
    add_strategy_options(group)
    add_pace_options(group)
    for option in group._group_actions:
        option.help = argparse.SUPPRESS  # tui-fs delete --help describes them

    for name, run, words in (
        ("jobs", run_jobs, "list the jobs of each host"),
        ("attach", run_attach, "follow the running jobs of each host to their ends"),
        ("pause", run_control, "pause the running jobs"),
        ("resume", run_control, "continue the paused jobs"),
        ("cancel", run_control, "cancel the running jobs"),
        ("doctor", run_doctor, "report what works on each host"),
    ):
        action = add(name, run, words, "" if name == "doctor" else "[PATH] ")
        if name != "doctor":
            action.add_argument_group("which jobs").add_argument(
                "--job", action="append", metavar="ID", help="only this job (repeatable)"
            )
        action.epilog = f"example:\n  tui-fs fleet {name} web[1-8]"
        add_output_options(action)


def _add_host_options(group: Group) -> None:
    group.add_argument(
        "--inventory", metavar="FILE",
        help="an inventory file of Ansible, whose groups @NAME means",
    )  # fmt: skip
    group.add_argument(
        "--ssh", default="ssh", metavar="COMMAND",
        help="how to reach a host, for example 'ssh -J gateway' (default: ssh)",
    )  # fmt: skip
    group.add_argument(
        "--connect-timeout", type=positive, default=10, metavar="SECONDS",
        help="how long a host may take to answer (default: 10)",
    )  # fmt: skip
    group.add_argument(
        "--at-once", type=positive, default=64, metavar="N",
        help="hosts at the same time (default: 64)",
    )  # fmt: skip
    group.add_argument(
        "--bring", metavar="FILE",
        help="the one-file build, brought into the memory of hosts without this version and "
        "removed at the end",
    )  # fmt: skip
    group.add_argument("--become", action="store_true", help="run as root, through sudo")


def _add_order_options(group: Group) -> None:
    group.add_argument(
        "--serial", type=positive, metavar="N",
        help="hosts on which a job runs at the same time (default: --at-once)",
    )  # fmt: skip
    group.add_argument(
        "--max-failures", type=positive, default=0, metavar="N",
        help="start no further job after N have failed (default: no limit)",
    )  # fmt: skip


def _absolute(path: str) -> str:
    if not os.path.isabs(path) or "\0" in path or not is_encodable(path):
        raise argparse.ArgumentTypeError(
            f"{displayable(path)} is not an absolute path, which the hosts need"
        )
    return path


def _take_hosts(parsed: argparse.Namespace) -> None:
    """Read the hosts from standard input, if asked, and then the answers from the terminal."""
    if parsed.hosts == STANDARD_INPUT:
        parsed.hosts = folded(hosts_of(parsed.hosts, parsed.inventory))
        with contextlib.suppress(OSError):  # without a terminal, it stays at its end
            terminal = os.open("/dev/tty", os.O_RDWR)
            os.dup2(terminal, sys.stdin.fileno())
            os.close(terminal)


def _fleet_of(parsed: argparse.Namespace) -> Fleet:
    _take_hosts(parsed)
    return Fleet(
        hosts_of(parsed.hosts, parsed.inventory),
        Ssh(parsed.ssh, parsed.connect_timeout, parsed.at_once),
        None if parsed.bring is None else read_one_file(parsed.bring),
        becomes_root=parsed.become,
        ask_password=_ask_password,
        options=_host_options(parsed),
    )


@contextlib.contextmanager
def reached(parsed: argparse.Namespace) -> Iterator[Fleet]:
    """Yield the fleet with its reached hosts; report the others."""
    fleet = _fleet_of(parsed)
    line = StatusLine()
    try:
        line.show(f"reaching {counted(len(fleet.hosts), 'host', 'hosts')}")
        try:
            fleet.reach()
        finally:
            line.clear()
        for host, problem in fleet.problems.items():
            note(f"tui-fs: {host}: {problem}")
        if fleet.brought_to:
            note(f"tui-fs: brought into memory of {folded(fleet.brought_to)}, removed at the end.")
        yield fleet
    finally:
        fleet.close()


def _ask_password(problem: str) -> str | None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    print_over_status(f"tui-fs: {problem or 'sudo asks for a password.'}")
    return getpass.getpass("Password for sudo on the hosts: ", sys.stderr)


def _ask(fleet: Fleet, arguments: Mapping[str, Argv]) -> dict[str, Answer]:
    """Run a command on the reached hosts, and show which ones have not answered yet."""
    line, waiting = StatusLine(), set(arguments)

    def show(answer: Answer | None) -> None:
        if answer is not None:
            waiting.discard(answer.host)
        names = folded(sorted(waiting)) if waiting else ""
        line.show(f"{len(arguments) - len(waiting)} of {len(arguments)} answered; {names}")

    try:
        show(None)
        return fleet.ask(arguments, show)
    finally:
        line.clear()


def _options_of(parsed: argparse.Namespace) -> Argv:
    """Return the options that the hosts get."""
    words: list[str] = []
    for name, unit in _PASSED_OPTIONS.items():
        value = getattr(parsed, name, None)
        if value or (value is not None and name not in _ZERO_IS_UNSET):
            words.append(f"--{name.replace('_', '-')}={value}{unit}")
    words += [f"--{name.replace('_', '-')}" for name in _PASSED_FLAGS if getattr(parsed, name, 0)]
    return tuple(words)


def _paths_of(parsed: argparse.Namespace) -> list[str]:
    paths = getattr(parsed, "paths", None)
    return [] if paths is None else [paths] if isinstance(paths, str) else paths


def _answers(parsed: argparse.Namespace, argv: Argv) -> list[Answer]:
    """Return the answer of each host, those that were not reached included."""
    with reached(parsed) as fleet:
        return list(_ask(fleet, dict.fromkeys(fleet.hosts, argv)).values())


def _argv(parsed: argparse.Namespace, *words: str) -> Argv:
    """Return a command with the options and paths that the hosts get."""
    paths = _paths_of(parsed)
    return (*words, "--json", *_options_of(parsed), *(("--", *paths) if paths else ()))


def _exit_code(codes: Iterable[int | None]) -> int:
    """Return the code that all hosts have in common; 1 if they differ."""
    common = set(codes)
    if len(common) > 1:
        return SOME_FAILED
    code = common.pop()
    return MISSING if code is None or code > 141 else code


def _codes(answers: Sequence[Answer], values: Mapping[str, object]) -> list[int | None]:
    """Return the exit codes; an answer that is not understood is no success."""
    return [
        answer.exit_code or None if isinstance(values[answer.host], str) else answer.exit_code
        for answer in answers
    ]


def _print_answers(name: str, answers: Sequence[Answer], total: dict[str, Any]) -> None:
    print_json(
        {
            "schema": SCHEMA,
            "hosts": [
                {
                    "host": answer.host,
                    "exit_code": answer.exit_code,
                    "problem": answer.problem,
                    name: answer.value,
                }
                for answer in answers
            ],
            "total": {
                "hosts": len(answers),
                "answered": sum(answer.value is not None for answer in answers),
                **total,
            },
        }
    )


def _table(rows: list[tuple[str, ...]], right: set[int]) -> str:
    return columns([tuple(harmless(cell) for cell in row) for row in rows], frozenset(right))


def _print_table(rows: list[tuple[str, ...]], right: set[int]) -> None:
    print_text(_table(rows, right))


def run_survey(parsed: argparse.Namespace) -> int:
    """Count a directory on each host."""
    answers = _answers(parsed, _argv(parsed, "survey"))
    surveys = {answer.host: understood(HostSurvey, answer) for answer in answers}
    codes = _codes(answers, surveys)
    surveyed = [survey for survey in surveys.values() if isinstance(survey, HostSurvey)]
    entries = sum(survey.entries for survey in surveyed)
    allocated = sum(survey.allocated_bytes for survey in surveyed)
    if parsed.json:
        total = {"entries": entries, "allocated_bytes": allocated}
        _print_answers("survey", answers, total)
    else:
        rows: list[tuple[str, ...]] = [("host", "entries", "allocated", "worst finding")]
        for answer in answers:
            survey = surveys[answer.host]
            if isinstance(survey, str):
                rows.append((answer.host, "", "", survey))
                continue
            worst = survey.worst
            finding = "" if worst is None else f"{worst.severity}: {worst.kind} in {worst.path}"
            row = (count(survey.entries), bytes_iec(survey.allocated_bytes), finding)
            rows.append((answer.host, *row))
        of_hosts = f"{len(surveyed)} of {counted(len(answers), 'host', 'hosts')}"
        rows.append((of_hosts, count(entries), bytes_iec(allocated), ""))
        _print_table(rows, {1, 2})
    return _exit_code(codes)


def run_estimate(parsed: argparse.Namespace) -> int:
    """Predict the cost of each strategy on all hosts."""
    answers = _answers(parsed, _argv(parsed, "estimate"))
    read = {answer.host: understood(HostEstimate, answer) for answer in answers}
    estimates = {h: e for h, e in read.items() if isinstance(e, HostEstimate)}
    sums = strategy_sums(estimates, parsed.at_once)
    entries = sum(estimate.entries for estimate in estimates.values())
    if parsed.json:
        _print_answers("estimate", answers, {"entries": entries, "strategies": encode(sums)})
        return _exit_code(_codes(answers, read))
    rows: list[tuple[str, ...]] = [("host", "entries", "frees", "recommended", "")]
    for host, estimate in read.items():
        if isinstance(estimate, str):
            rows.append((host, "", "", "", estimate))
            continue
        frees, refused = bytes_iec(estimate.freed_bytes_max), estimate.refused or ""
        rows.append((host, count(estimate.entries), frees, estimate.recommended or "", refused))
    _print_table(rows, {1, 2})
    if not estimates:
        return _exit_code(_codes(answers, read))
    rows = [("strategy", "hosts", "time in all", "on one host", "system calls", "processes")]
    for each in sums:
        if each.hosts:
            rows.append(
                (
                    each.strategy,
                    count(each.hosts),
                    duration_span(each.seconds_low, each.seconds_high),
                    duration_span(each.quickest_seconds_low, each.slowest_seconds_high),
                    each.at_least + count(each.calls),
                    count(each.processes),
                )
            )
    print_text("")
    _print_table(rows, {1, 2, 3, 4, 5})
    return _exit_code(_codes(answers, read))


def run_doctor(parsed: argparse.Namespace) -> int:
    """Report what works on each host."""
    answers = _answers(parsed, _argv(parsed, "doctor"))
    if parsed.json:
        _print_answers("doctor", answers, {})
    else:
        rows: list[tuple[str, ...]] = [("host", "engine", "counter", "")]
        for answer in answers:
            value = answer.value
            if not isinstance(value, dict):
                rows.append((answer.host, "", "", answer.problem))
                continue
            rows.append((answer.host, _name_of(value, "engine"), _name_of(value, "tracing"), ""))
        _print_table(rows, set())
    return _exit_code(answer.exit_code for answer in answers)


def run_jobs(parsed: argparse.Namespace) -> int:
    """List the jobs of each host."""
    answers = _answers(parsed, _LIST_JOBS)
    listed = {answer.host: understood(list[ListedJob], answer) for answer in answers}
    if parsed.json:
        _print_answers("jobs", answers, {})
    else:
        rows: list[tuple[str, ...]] = [
            ("host", "job", "state", "strategy", "deleted", "of", "target")
        ]
        for host, jobs in listed.items():
            if isinstance(jobs, str):
                rows.append((host, "", jobs, "", "", "", ""))
                continue
            for job in _chosen(jobs, parsed):
                deleted = "?" if job.deleted_entries is None else count(job.deleted_entries)
                numbers = (deleted, count(job.expected_entries))
                state = (job.id, str(job.state), job.strategy)
                rows.append((host, *state, *numbers, ", ".join(job.paths)))
        _print_table(rows, {4, 5})
    return _exit_code(_codes(answers, listed))


def _chosen(jobs: Sequence[ListedJob], parsed: argparse.Namespace) -> list[ListedJob]:
    # Hosts list canonical paths, as they are shown.
    paths = [displayable(os.path.normpath(path)) for path in _paths_of(parsed)]
    chosen = [job for job in jobs if not paths or job.paths == paths]
    return [job for job in chosen if not parsed.job or job.id in parsed.job]


def run_control(parsed: argparse.Namespace) -> int:
    """Send a command to the live jobs of each host."""
    check_command(Command(parsed.action))
    with reached(parsed) as fleet:
        jobs, unlisted = _live_jobs(fleet, parsed)
        results: list[tuple[str, str, Answer]] = []
        for number in range(max(map(len, jobs.values()), default=0)):
            ids = {host: listed[number].id for host, listed in jobs.items() if number < len(listed)}
            commands = {host: (parsed.action, job_id) for host, job_id in ids.items()}
            answers = fleet.ask(commands, wants_value=False)
            results += [(host, ids[host], answer) for host, answer in answers.items()]
        codes = [answer.exit_code for _, _, answer in results]
        codes += [None] * (len(fleet.problems) + len(unlisted))
    if parsed.json:
        fields = [
            {"host": host, "job": job, "exit_code": answer.exit_code, "problem": answer.problem}
            for host, job, answer in results
        ]
        print_json({"schema": SCHEMA, "jobs": fields})
    for host, job_id, answer in results:
        words = answer.problem or f"job {job_id} {_DONE_WORDS[parsed.action]}"
        note(f"tui-fs: {host}: {words if job_id in words else f'job {job_id}: {words}'}")
    if not results:
        note("tui-fs: no job runs there.")
    return _exit_code(codes or [DONE])


_DONE_WORDS = {"pause": "is paused.", "resume": "continues.", "cancel": "is cancelled."}


def _live_jobs(
    fleet: Fleet, parsed: argparse.Namespace
) -> tuple[dict[str, list[ListedJob]], list[str]]:
    """Return the live jobs of each host, and the hosts that list none; report these."""
    live: dict[str, list[ListedJob]] = {}
    unlisted: list[str] = []
    for host, answer in _ask(fleet, dict.fromkeys(fleet.programs, _LIST_JOBS)).items():
        jobs = understood(list[ListedJob], answer)
        if isinstance(jobs, str):
            note(f"tui-fs: {host}: {jobs}")
            unlisted.append(host)
            continue
        live[host] = [job for job in _chosen(jobs, parsed) if job.is_live]
        for job in jobs:
            if job.is_live and job not in live[host]:
                paths = harmless(", ".join(job.paths))
                note(f"tui-fs: {host}: not chosen: job {job.id} on {paths}.")
    if parsed.job and not (any(live.values()) or unlisted or fleet.problems):
        raise BadInput(
            f"No job {', '.join(parsed.job)} runs on these hosts.",
            f"{fleet.command('jobs', folded(fleet.hosts))} lists all jobs.",
        )
    return live, unlisted


def run_attach(parsed: argparse.Namespace) -> int:
    """Follow the live jobs of all hosts to their ends."""
    interrupts = Interrupts()
    with reached(parsed) as fleet:
        jobs, unlisted = _live_jobs(fleet, parsed)
        job_ids = {host: [job.id for job in listed] for host, listed in jobs.items()}
        deletion = FleetDeletion.following(fleet, job_ids)
        if not deletion.jobs:
            note("tui-fs: no job runs there.")
            if parsed.json:
                _print_report(_unreached(fleet))
            return _exit_code([DONE, *(None for _ in (*fleet.problems, *unlisted))])
        _watch(deletion, interrupts, as_json=parsed.json, cancels=False, asks=False)
        code = _end(fleet, deletion, _unreached(fleet), interrupts, as_json=parsed.json)
        return SOME_FAILED if fleet.problems or unlisted else code


def run_delete(parsed: argparse.Namespace) -> int:
    """Delete directories on each host."""
    if not parsed.dry_run:
        refuse_read_only()
    asks = not (parsed.yes or parsed.dry_run)
    refuse_confirmation_alone(parsed)
    _take_hosts(parsed)
    if asks:
        require_terminal()
    if parsed.shard and len(parsed.paths) > 1:
        raise BadInput("--shard works only with one directory.")
    with reached(parsed) as fleet:
        asked = _argv(parsed, "delete", "--dry-run")
        answers = _ask(fleet, dict.fromkeys(fleet.programs, asked))
        read = {host: understood(HostPlan, answer) for host, answer in answers.items()}
        plans = {host: plan for host, plan in read.items() if isinstance(plan, HostPlan)}
        at_once = parsed.serial or parsed.at_once
        if parsed.dry_run and parsed.json:
            missed = [Answer(host, None, problem=text) for host, text in fleet.problems.items()]
            _print_answers("dry_run", [*answers.values(), *missed], {})
        else:
            show = print_text if parsed.dry_run else note
            total = max if parsed.shard else sum
            _print_plans(read, at_once, show, total, canary=parsed.canary)
        codes = [
            *_codes(list(answers.values()), read),
            *(None for _ in fleet.problems),
        ]
        left_out = [
            HostJob(host, Phase.SKIPPED, exit_code=answers[host].exit_code or None, problem=problem)
            for host, problem in read.items()
            if isinstance(problem, str)
        ]
        left_out += _unreached(fleet)
        if parsed.dry_run:
            return _exit_code(codes)
        if not plans:
            if parsed.json:
                _print_report(left_out)
            return _exit_code(codes)
        if parsed.shard and (problem := different_directories(plans)):
            raise Refused(problem, "Nothing was deleted.", rule="changed")
        word = _confirm(plans, parsed.paths) if asks else parsed.confirm
        interrupts, job_ids = Interrupts(), new_job_ids(plans)
        deletion = FleetDeletion(
            fleet,
            _arguments(plans, job_ids, word, parsed),
            job_ids,
            at_once=at_once,
            max_failures=parsed.max_failures,
            canary=parsed.canary,
        )
        _watch(deletion, interrupts, as_json=parsed.json, cancels=True, asks=asks)
        code = _end(fleet, deletion, left_out, interrupts, as_json=parsed.json)
        if parsed.shard and code == DONE and _is_left(deletion, parsed):
            note("tui-fs: All shares are deleted, but the directory still exists.")
            code = SOME_FAILED
        return code if len(deletion.jobs) == len(fleet.hosts) else SOME_FAILED


def _print_plans(
    plans: Mapping[str, HostPlan | str],
    at_once: int,
    show: Callable[[str], None],
    total: Callable[[Iterable[int]], int],
    *,
    canary: bool,
) -> None:
    """Show what each host would delete, and the total: of shares, each counts the whole."""
    rows: list[tuple[str, ...]] = [("host", "entries", "frees", "strategy", "time")]
    accepted = [plan for plan in plans.values() if isinstance(plan, HostPlan)]
    for host, plan in plans.items():
        if isinstance(plan, str):
            rows.append((host, "", "", "", plan))
            continue
        low, high = plan.predicted.seconds_low, plan.predicted.seconds_high
        entries, frees = plan.expected.totals.entries, plan.expected.freed_bytes_max
        row = (count(entries), bytes_iec(frees), plan.strategy, duration_span(low, high))
        rows.append((host, *row))
    if accepted:
        lows = [plan.predicted.seconds_low for plan in accepted]
        highs = [plan.predicted.seconds_high for plan in accepted]
        low, high = (total_seconds(ends, at_once, canary=canary) for ends in (lows, highs))
        entries = total(plan.expected.totals.entries for plan in accepted)
        frees = total(plan.expected.freed_bytes_max for plan in accepted)
        row = (count(entries), bytes_iec(frees), "", duration_span(low, high))
        rows.append((counted(len(accepted), "host", "hosts"), *row))
    if plans:
        show(_table(rows, {1, 2}))


def _confirm(plans: Mapping[str, HostPlan], paths: Sequence[str]) -> str:
    """Ask for the number of hosts and the word that one host asks for; return the word.

    Raises:
        Refused: the answer is another one.
    """
    for path in paths:
        note(f"  {displayable(path)}")
    word = word_to_type([os.path.normpath(path) for path in paths])
    meaning = f"the word {PLAIN_WORD}" if word == PLAIN_WORD else "the name"
    print_question(
        f"To delete on {counted(len(plans), 'host', 'hosts')}, type the number of hosts and "
        f"{meaning}, as in '{len(plans)} {word}':"
    )
    if sys.stdin.readline().rstrip("\n") != f"{len(plans)} {word}":
        raise Refused("Not confirmed; nothing was deleted.", rule="not-confirmed")
    return word


def _arguments(
    plans: Mapping[str, HostPlan],
    job_ids: Mapping[str, str],
    word: str | None,
    parsed: argparse.Namespace,
) -> dict[str, Argv]:
    """Return the arguments of each host, which refuse other directories than the previewed."""
    arguments: dict[str, Argv] = {}
    for number, (host, plan) in enumerate(plans.items(), 1):
        shard = (f"--shard={number}/{len(plans)}",) if parsed.shard else ()
        options = (*_options_of(parsed), *shard)
        arguments[host] = deletion_argv(plan, job_ids[host], parsed.paths, word, options)
    return arguments


def _watch(
    deletion: FleetDeletion, interrupts: Interrupts, *, as_json: bool, cancels: bool, asks: bool
) -> None:
    """Show the jobs until all are over.

    Args:
        cancels: the first signal cancels the jobs; a second one, or any without this, stops
            watching them.
        asks: before the other hosts follow the first one; otherwise they do if it succeeded.
    """
    line, shown = StatusLine(), set[str]()
    while not deletion.is_over:
        received = deletion.step()
        if received is not None and received[1] is not None and as_json:
            job, event = received[0], received[1]
            print_json_line({"host": job.host, "job": job.given_id, **event})
        for job in deletion.jobs.values():
            if job.is_over and job.key not in shown:
                shown.add(job.key)
                line.clear()
                note(_end_of(job))
        line.show(*_status(deletion))
        if (canary := deletion.canary) is not None:
            line.clear()
            if _goes_on(canary, deletion, interrupts, asks=asks):
                deletion.go_on()
            else:
                deletion.skip_waiting("Not started after the first host.")
        if interrupts.received is not None and not deletion.is_cancelled:
            if not cancels:
                break
            interrupts.came_again = False
            deletion.cancel()
        if interrupts.came_again:
            break
    line.clear()


def _goes_on(
    canary: HostJob, deletion: FleetDeletion, interrupts: Interrupts, *, asks: bool
) -> bool:
    others = counted(len(deletion.jobs) - 1, "other host", "other hosts")
    if not asks:
        return canary.exit_code == 0
    print_question(f"Continue on the {others}? Type yes:")
    while not select.select([sys.stdin], [], [], _POLL_S)[0]:
        if interrupts.received is not None:
            return False
    return sys.stdin.readline().rstrip("\n") == "yes"


def _status(deletion: FleetDeletion) -> tuple[str, float | None]:
    """Return the state of all jobs in one line, and the done part."""
    jobs = list(deletion.jobs.values())
    removed = sum(job.deleted_entries for job in jobs)
    expected = sum(job.snapshot.expected_entries for job in jobs)
    rate = sum(job.snapshot.rate_per_s or 0 for job in jobs if not job.is_over)
    words = [deletion.progress, f"{count(removed)} entries deleted"]
    if rate:
        words.append(f"{count(round(rate))} /s")
    everywhere = all(job.snapshot.started or job.is_over for job in jobs)
    return "  ".join(words), removed / expected if expected and everywhere else None


def _end_of(job: HostJob) -> str:
    if (summary := job.summary) is None:
        return f"tui-fs: {job.host}: {job.problem}"
    deleted = counted(summary.deleted_entries, "entry", "entries")
    words = [f"{summary.outcome}, {deleted} deleted in {duration(summary.elapsed_s or 0)}"]
    if job.problem:
        words.append(job.problem)
    return f"tui-fs: {job.host}: {'. '.join(words)}"


def _is_left(deletion: FleetDeletion, parsed: argparse.Namespace) -> bool:
    """Return whether no job has seen that the shared directory is gone, though it should be."""
    filters = (
        parsed.name,
        parsed.min_size,
        parsed.size_below,
        parsed.older_than,
        parsed.newer_than,
    )
    if parsed.keep_root or any(value is not None for value in filters):
        return False
    summaries = [job.summary for job in deletion.jobs.values() if job.summary is not None]
    return not any(target.gone for summary in summaries for target in summary.targets)


def _unreached(fleet: Fleet) -> list[HostJob]:
    return [HostJob(h, Phase.SKIPPED, problem=problem) for h, problem in fleet.problems.items()]


def _end(
    fleet: Fleet,
    deletion: FleetDeletion,
    left_out: Sequence[HostJob],
    interrupts: Interrupts,
    *,
    as_json: bool,
) -> int:
    """Print what became of each host; return the exit code.

    Args:
        left_out: hosts that were not reached or refused.
    """
    jobs = list(deletion.jobs.values())
    for job in jobs:
        if not job.is_over:
            where = fleet.command("attach" if job.job_id else "jobs", job.host)
            note(f"tui-fs: {job.host}: not over; to follow it: {where}")
    if as_json:
        _print_report([*jobs, *left_out])
    else:
        _print_ends([*jobs, *left_out])
    if any(job.phase is not Phase.OVER for job in jobs):
        return SOME_FAILED if interrupts.received is None else interrupts.exit_code
    return _exit_code(job.exit_code for job in jobs)


def _print_report(jobs: Sequence[HostJob]) -> None:
    print_json_line(
        {
            "type": "fleet-report",
            "hosts": [
                {
                    "host": job.host,
                    "phase": str(job.phase),
                    "job": job.job_id,
                    "exit_code": job.exit_code,
                    "problem": job.problem,
                    "report": job.report,
                }
                for job in jobs
            ],
        }
    )


def _print_ends(jobs: Sequence[HostJob]) -> None:
    rows: list[tuple[str, ...]] = [
        ("host", "job", "outcome", "deleted", "failed", "freed", "time", "")
    ]
    for job in jobs:
        if (summary := job.summary) is None:
            outcome = "no report" if job.phase is Phase.OVER else str(job.phase)
            rows.append((job.host, job.job_id, outcome, "", "", "", "", job.problem))
            continue
        freed = "?" if summary.freed_bytes is None else bytes_iec(summary.freed_bytes)
        failed, elapsed = count(summary.failed), duration(summary.elapsed_s or 0)
        row = (count(summary.deleted_entries), failed, freed, elapsed)
        rows.append((job.host, job.job_id, str(summary.outcome), *row, ""))
    summaries = [job.summary for job in jobs if job.summary is not None]
    deleted = sum(summary.deleted_entries for summary in summaries)
    failures = sum(summary.failed for summary in summaries)
    hosts = {job.host for job in jobs}
    silent = {job.host for job in jobs if job.summary is None}
    of_hosts = f"{len(hosts) - len(silent)} of {counted(len(hosts), 'host', 'hosts')}"
    rows.append((of_hosts, "", "", count(deleted), count(failures), "", "", ""))
    _print_table(rows, {3, 4, 5, 6})


def _name_of(doctor: Mapping[str, Any], part: str) -> str:
    """Return the headline of one part of what doctor says."""
    value = doctor.get(part)
    if not isinstance(value, dict):
        return "?"
    return str(value.get("version") or value.get("source") or value.get("path") or "none")


def _host_options(parsed: argparse.Namespace) -> Argv:
    """Return the options that say how the hosts are reached, where they are not the usual ones."""
    usual = {"ssh": "ssh", "connect_timeout": 10, "at_once": 64, "bring": None}
    chosen = {name: getattr(parsed, name) for name in usual if getattr(parsed, name) != usual[name]}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items()]
    return (*words, *(("--become",) if parsed.become else ()))


def run_open(parsed: argparse.Namespace) -> int:
    """Open the screen of the hosts."""
    _take_hosts(parsed)
    require_screen("tui-fs fleet survey, estimate or delete")
    fleet, settings = _fleet_of(parsed), screen_settings(parsed)
    if parsed.become:
        fleet.reach()  # asks for the password of sudo before the screen opens
    client = FleetClient(fleet, parsed.serial or parsed.at_once, parsed.max_failures)
    try:
        return open_app(parsed.paths or "/", fleet=client, **settings)
    finally:
        client.close()
        if left := client.jobs_in(Phase.RUNNING, Phase.LOST):
            hosts = folded(left)
            command = fleet.command("attach", hosts)
            note(f"tui-fs: jobs continue on {hosts}; to follow them: {command}")
        if left := client.jobs_in(Phase.STARTING):
            hosts = folded(left)
            note(f"tui-fs: a job may have begun on {hosts}: {fleet.command('jobs', hosts)}")
        if left := client.jobs_in(Phase.WAITING):
            note(f"tui-fs: nothing was started on {folded(left)}.")
