"""``tui-fs jobs`` and ``attach``, and the commands to a running job."""

import argparse
import time

from tui_fs.cli.arguments import (
    add_confirmation_options,
    add_detach_option,
    add_output_options,
)
from tui_fs.cli.exit_codes import DONE, SOME_FAILED
from tui_fs.cli.follow import follow
from tui_fs.cli.interrupts import Interrupts
from tui_fs.cli.output import SCHEMA, columns, note, print_json, print_text
from tui_fs.job.comparison import (
    ComparedJob,
    call_remark,
    call_rows,
    comparison_json,
    figure_rows,
    refuse_same,
    remarks,
)
from tui_fs.job.control import send
from tui_fs.job.permission import check_command
from tui_fs.job.retention import prune
from tui_fs.job.store import find
from tui_fs.job.view import JobSummary, JobView, summaries
from tui_fs.model.codec import encode
from tui_fs.model.command import COMMANDS, read_command
from tui_fs.model.errors import BadInput, JobFailed
from tui_fs.model.outcome import JobState
from tui_fs.model.paths import displayable
from tui_fs.model.target import target_fields
from tui_fs.model.units import bytes_iec, count, counted, duration_span, percent_done

_DESCRIPTIONS = {
    "pause": "Pause a job: its tools stop until tui-fs resume continues them.",
    "resume": "Continue a paused job. If the job died, start a new job with the same strategy "
    "and options to delete the rest.",
    "cancel": "Cancel a job: its tools end, and the remaining entries are kept. Deleted "
    "entries are not restored.",
    "gentle": "Turn gentle mode of a job on or off. A gentle job suspends its tools while other "
    "processes wait for the disk or the processors.",
    "rate": "Limit the number of entries that a job deletes per second.",
    "nice": "Set the niceness of the tools of a job.",
    "ionice": "Set the I/O priority of the tools of a job, if the I/O scheduler supports it.",
    "threads": "Set the number of threads of a job with the strategy parallel.",
}
_EXAMPLES = {"gentle": "on", "rate": "500", "nice": "10", "ionice": "idle", "threads": "4"}
_DONE_WORDS = {
    "pause": "is paused",
    "resume": "is resumed",
    "cancel": "is cancelled",
    "gentle": "has gentle mode {}",
    "rate": "is limited to {}/s",
    "rate off": "has no rate limit",
    "nice": "has niceness {}",
    "ionice": "has the I/O priority {}",
    "threads": "uses {} threads",
    "threads auto": "chooses its number of threads",
}


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the arguments of one of the commands about jobs."""
    parser.usage = f"tui-fs {command} JOB [OPTION...]"
    if command == "jobs":
        parser.usage = "tui-fs jobs [OPTION...]"
        parser.description = "List running and ended jobs, the newest first."
        parser.epilog = "example:\n  tui-fs jobs --compare 2bf88d 5be501"
        parser.add_argument_group("what is compared").add_argument(
            "--compare",
            nargs=2,
            metavar="JOB",
            help="print two jobs side by side, running or ended: entries, time, rate, costs and "
            "system calls, and the second divided by the first",
        )
        parser.add_argument_group("what is removed").add_argument(
            "--prune",
            action="store_true",
            help="remove and list the records of ended jobs older than 90 days, not among the "
            "newest 500, or beyond 256 MiB in total; every job also does this when it ends",
        )
        add_output_options(parser)
        parser.set_defaults(run=run_list, needs_proc=False)
        return
    parser.add_argument_group("which job").add_argument(
        "job",
        metavar="JOB",
        help="the id of the job, or its first characters; tui-fs jobs lists all",
    )  # fmt: skip
    parser.epilog = f"example:\n  tui-fs {command} 5be501"
    if command == "attach":
        parser.description = (
            "Follow a job to its end and print its report. Ctrl-C stops following; the job "
            "continues."
        )
        add_output_options(parser)
        parser.set_defaults(run=run_attach)
        return
    parser.description = _DESCRIPTIONS[command]
    if COMMANDS[command]:
        parser.usage = f"tui-fs {command} JOB VALUE"
        parser.epilog += f" {_EXAMPLES[command]}"
        group = parser.add_argument_group("new value")
        group.add_argument("value", metavar="VALUE", help=COMMANDS[command])
    if command == "resume":
        add_confirmation_options(parser.add_argument_group("confirmation, for a dead job"))
        add_detach_option(add_output_options(parser))
    else:
        add_output_options(parser, has_json=False)
    parser.set_defaults(run=run_control, command=command)


def run_list(parsed: argparse.Namespace) -> int:
    """Print all jobs, or remove old ones."""
    if parsed.compare and parsed.prune:
        raise BadInput("--compare and --prune are mutually exclusive. Use one of them.")
    if parsed.compare:
        return _compare(*parsed.compare, as_json=parsed.json)
    if parsed.prune:
        return _prune(as_json=parsed.json)
    jobs, damaged = summaries()
    for sentence in damaged:
        note(f"tui-fs: {sentence}")
    if parsed.json:
        print_json([_as_json(job) for job in jobs])
    elif not jobs:
        note("tui-fs: there are no jobs yet.")
    else:
        print_text(_as_text(jobs))
    return DONE


def _compare(*ids: str, as_json: bool) -> int:
    """Print two jobs side by side."""
    folders = [find(job_id) for job_id in ids]
    refuse_same(*(folder.job_id for folder in folders))
    first, second = (ComparedJob(folder).poll() for folder in folders)
    if as_json:
        print_json({"schema": SCHEMA, **comparison_json(first, second)})
        return DONE
    for job in (first, second):
        print_text(f"{job.job_id}  {job.place}")
    for sentence in (*remarks(first, second), call_remark(first, second)):
        if sentence:
            note(f"tui-fs: {sentence}")
    rows = [("", first.job_id, second.job_id, "2nd/1st")]
    rows += [row.cells for row in (*figure_rows(first, second), *call_rows(first, second))]
    print_text("\n" + columns(rows, frozenset({1, 2, 3})))
    return DONE


def _prune(*, as_json: bool) -> int:
    """Remove the jobs that exceed the retention rule; exit 1 if one could not be removed."""
    pruned = prune()
    if as_json:
        print_json({"schema": SCHEMA, "type": "prune", **encode(pruned)})
    else:
        for job_id in pruned.removed:
            print_text(f"removed job {job_id}")
        note(
            f"tui-fs: {counted(len(pruned.removed), 'job', 'jobs')} removed, "
            f"{bytes_iec(pruned.freed_bytes)} freed."
        )
        for kept in pruned.kept:
            note(f"tui-fs: {displayable(kept.path)} is kept: {kept.reason}")
    return SOME_FAILED if pruned.kept else DONE


def run_attach(parsed: argparse.Namespace) -> int:
    """Follow a job."""
    return follow(find(parsed.job), Interrupts(), as_json=parsed.json, interrupting_cancels=False)


def run_control(parsed: argparse.Namespace) -> int:
    """Send a command to a job."""
    command = read_command(f"{parsed.command} {getattr(parsed, 'value', '')}")
    check_command(command)
    folder = find(parsed.job)
    view = JobView(folder)
    view.poll()
    view.refuse_elsewhere()
    if view.state is JobState.DIED and command.name == "resume":
        from tui_fs.cli.delete import resume_dead_job  # no other command needs the planner

        return resume_dead_job(view.plan, parsed)
    if view.state is JobState.DIED:
        raise JobFailed(
            f"Job {parsed.job} has died.", f"To delete the rest: tui-fs resume {parsed.job}"
        )
    if not view.state.is_live:
        raise BadInput(f"Job {parsed.job} has ended already: {view.state}.")
    send(folder, command)
    words = _DONE_WORDS.get(str(command)) or _DONE_WORDS[command.name].format(command.value)
    note(f"tui-fs: job {parsed.job} {words}.")
    return DONE


def _as_json(job: JobSummary) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "id": job.job_id,
        **target_fields(job.targets),
        "strategy": job.strategy,
        "state": job.state.value,
        "host": displayable(job.host.name),
        "is_other_host": job.is_other_host,
        "created_at": job.created_at,
        "deleted_entries": job.deleted_entries,
        "expected_entries": job.expected_entries,
        "failed": job.failed,
    }


def _as_text(jobs: list[JobSummary]) -> str:
    rows: list[tuple[str, ...]] = [
        ("job", "state", "strategy", "deleted", "of", "started", "target")
    ]
    for job in jobs:
        rows.append(
            (
                job.job_id,
                _state_as_text(job),
                job.strategy,
                "?" if job.deleted_entries is None else count(job.deleted_entries),
                count(job.expected_entries),
                time.strftime("%Y-%m-%d %H:%M", time.localtime(job.created_at)),
                job.place,
            )
        )
    return columns(rows, frozenset({3, 4}))


def _state_as_text(job: JobSummary) -> str:
    host = f"on host {displayable(job.host.name)}" if job.is_other_host else ""
    if job.state is JobState.ELSEWHERE:
        return host
    words = [str(job.state)]
    if job.fraction is not None:
        words[0] += f" {percent_done(job.fraction)}"
    if job.left_s is not None:
        words.append(f"left {duration_span(*job.left_s)}")
    if job.failed:
        words.append(f"{count(job.failed)} failed")
    if host:
        words.append(host)
    return ", ".join(words)
