"""``tui-fs recreate`` and ``tui-fs aside``: maintenance without deletion."""

import argparse
import sys
import time

from tui_fs.cli.arguments import add_output_options, pin, require_terminal
from tui_fs.cli.command_process import Notice, notify_watcher
from tui_fs.cli.exit_codes import DONE
from tui_fs.cli.output import SCHEMA, columns, note, print_json, print_question, print_text
from tui_fs.job.aside_store import (
    Action,
    AsideRecord,
    AsideState,
    delete_command,
    find,
    records,
    state_of_record,
    undo_command,
)
from tui_fs.job.maintenance import (
    Prospect,
    look,
    put_aside,
    recreate_directory,
    refuse_occupied,
    refuse_other_host,
    undo,
)
from tui_fs.job.path_safety import keep_open
from tui_fs.job.permission import refuse_read_only
from tui_fs.linux.missing_figures import missing_figures
from tui_fs.maintenance.open_users import OpenUsers
from tui_fs.model.codec import argv_fields, path_fields
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.figures import Figure
from tui_fs.model.paths import PathStr, displayable, shell_quoted
from tui_fs.model.units import bytes_iec, counted

_LEFT_RUNNING = "To see whether anything was changed: tui-fs aside --list"

_MEANINGS = {
    AsideState.ASIDE: "set aside; can be put back",
    AsideState.INTERRUPTED: "interrupted; --undo repairs it",
    AsideState.GONE: "no longer exists: it was deleted or moved",
    AsideState.ELSEWHERE: "on host",
    None: "cannot be examined",
}


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the arguments of one of the two commands."""
    if command == "recreate":
        parser.usage = "tui-fs recreate PATH [OPTION...]"
        parser.description = (
            "Replace an emptied directory with a new one that has the same owner, mode and "
            "attributes. A directory that once had many entries has a large index and stays "
            "slow; the new one has a small index."
        )
        parser.epilog = "example:\n  tui-fs recreate /var/spool/queue"
        group = parser.add_argument_group("what is replaced")
        group.add_argument("path", metavar="PATH", help="an empty directory")
        group = parser.add_argument_group("safety")
        group.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        group.add_argument(
            "--accept-occupants",
            action="store_true",
            help="proceed even if processes have it open or as their current directory; they "
            "keep using the old, removed directory",
        )
        _add_pin(parser)
        parser.set_defaults(run=run_recreate)
    else:
        parser.usage = (
            "tui-fs aside PATH [OPTION...]\n"
            "       tui-fs aside --undo ID [OPTION...]\n"
            "       tui-fs aside --list [--json]"
        )
        parser.description = (
            "Rename a directory within its parent directory at once, to delete it later. "
            "tui-fs prints the command that deletes it and the command that puts it back."
        )
        parser.epilog = "example:\n  tui-fs aside /var/cache/app --twin"
        group = parser.add_argument_group("what is done")
        group.add_argument("path", nargs="?", metavar="PATH", help="the directory to set aside")
        group.add_argument(
            "--twin",
            action="store_true",
            help="put an empty directory with the same owner, mode and attributes in its place",
        )
        group.add_argument(
            "--undo", metavar="ID",
            help="put the directory back, or finish an interrupted aside or recreate",
        )  # fmt: skip
        group.add_argument(
            "--list", action="store_true", help="list the directories that were set aside"
        )
        group = parser.add_argument_group("safety")
        group.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        _add_pin(parser)
        parser.set_defaults(run=run_aside)
    add_output_options(parser)


def _add_pin(parser: argparse.ArgumentParser) -> None:
    """Add the pin that the screens pass with a confirmation; hidden from users."""
    parser.add_argument("--pin", type=pin, help=argparse.SUPPRESS)


def run_recreate(parsed: argparse.Namespace) -> int:
    """Replace an emptied directory by a new one with a small index."""
    refuse_read_only()
    notify_watcher(Notice.LEFT, _LEFT_RUNNING)
    prospect = look(parsed.path, to_recreate=True, pin=parsed.pin)
    refuse_occupied(prospect.occupants, are_accepted=parsed.accept_occupants)
    _warn(prospect)
    shown = displayable(prospect.target.path)
    size = bytes_iec(prospect.index_bytes)
    with keep_open((prospect.target,)):
        _confirm(parsed, f"{shown} is empty, and its index takes {size}.", "Recreate it?")
        made = recreate_directory(prospect, accept_occupants=parsed.accept_occupants)
    _note_warning(made.warning)
    done = made.done
    if parsed.json:
        print_json(
            {
                "schema": SCHEMA,
                "type": "recreate",
                **path_fields("path", prospect.target.path),
                "index_bytes_before": done.index_bytes_before,
                "index_bytes_after": done.index_bytes_after,
                **_moved_fields(done.moved, done.kept),
                **_occupant_fields(prospect.occupants),
                "logged": made.was_logged,
            }
        )
        return DONE
    print_text(
        f"{shown} is recreated: its index took {bytes_iec(done.index_bytes_before)}, "
        f"now {bytes_iec(done.index_bytes_after)}."
    )
    _print_moved(done.moved, done.kept)
    return DONE


def run_aside(parsed: argparse.Namespace) -> int:
    """Put a directory aside, put it back, or list the directories put aside."""
    modes = [parsed.path is not None, parsed.list, parsed.undo is not None]
    if sum(modes) != 1 or (parsed.twin and parsed.path is None):
        raise BadInput(
            "Use exactly one of PATH, --undo ID and --list; --twin requires PATH.",
            "See tui-fs aside --help.",
        )
    if parsed.list:
        return _list(as_json=parsed.json)
    refuse_read_only()
    notify_watcher(Notice.LEFT, _LEFT_RUNNING)
    return _put_aside(parsed) if parsed.path is not None else _undo(parsed)


def _put_aside(parsed: argparse.Namespace) -> int:
    prospect = look(parsed.path, to_recreate=False, pin=parsed.pin)
    _warn(prospect)
    place = "an empty twin takes its place" if parsed.twin else "nothing takes its place"
    shown = displayable(prospect.target.path)
    with keep_open((prospect.target,)):
        _confirm(
            parsed,
            f"{shown} will be renamed within its parent directory; {place}.",
            "Set it aside?",
        )
        done = put_aside(prospect, with_twin=parsed.twin)
    record = done.record
    if parsed.json:
        print_json(
            {
                "schema": SCHEMA,
                "type": "aside",
                **_record_fields(record, AsideState.ASIDE),
                **_occupant_fields(done.occupants),
                "logged": done.was_logged,
            }
        )
        return DONE
    instead = "an empty twin has taken its place" if parsed.twin else "nothing has taken its place"
    print_text(f"{shown} is now {displayable(record.aside)}; {instead}.")
    print_text(f"To delete it:   {shell_quoted(delete_command(record))}")
    print_text(f"To put it back: {shell_quoted(undo_command(record))}")
    return DONE


def _undo(parsed: argparse.Namespace) -> int:
    _, record = find(parsed.undo)
    shown = displayable(record.path)
    refuse_other_host(record)
    command = f"'tui-fs {record.action}' of {shown}"
    if state_of_record(record) is AsideState.ASIDE:
        _confirm(parsed, f"This undoes {command}.", "Undo it?")
    else:
        _confirm(parsed, f"This repairs what an interrupted {command} has left.", "Repair it?")
    done = undo(parsed.undo)
    _note_warning(done.warning)
    if parsed.json:
        print_json(
            {
                "schema": SCHEMA,
                "type": "undo",
                "id": record.id,
                "action": record.action.value,
                "was": done.standing_before.value,
                **path_fields("path", record.path),
                **_moved_fields(done.moved, done.kept),
                "logged": done.was_logged,
            }
        )
        return DONE
    is_back = done.standing_before is AsideState.ASIDE
    print_text(
        f"{shown} is back."
        if is_back
        else f"{shown} is repaired; nothing of the interrupted 'tui-fs {record.action}' is left."
    )
    _print_moved(done.moved, done.kept)
    return DONE


def _list(*, as_json: bool) -> int:
    listed, damaged = records()
    if as_json:
        print_json(
            [{"schema": SCHEMA, **_record_fields(*pair)} for pair in listed]
            + [
                {
                    "schema": SCHEMA,
                    "id": displayable(entry.id),
                    "state": "damaged",
                    "meaning": entry.reason,
                }
                for entry in damaged
            ]
        )
        return DONE
    for entry in damaged:
        note(f"tui-fs: record {displayable(entry.id)} is damaged: {entry.reason}")
    if not listed and not damaged:
        note("tui-fs: no directory is set aside.")
    elif listed:
        rows: list[tuple[str, ...]] = [("id", "action", "since", "directory", "now", "meaning")]
        for record, standing in listed:
            rows.append(
                (
                    record.id,
                    record.action,
                    time.strftime("%Y-%m-%d %H:%M", time.localtime(record.at)),
                    displayable(record.path),
                    displayable(record.aside),
                    _meaning(record, standing),
                )
            )
        print_text(columns(rows, frozenset()))
    return DONE


def _confirm(parsed: argparse.Namespace, statement: str, question: str) -> None:
    """Ask for confirmation, unless --yes is set; Refused without a yes."""
    if parsed.yes:
        return
    require_terminal()
    note(statement)
    print_question(f"{question} Type yes:")
    if sys.stdin.readline().rstrip("\n") != "yes":
        raise Refused("Not confirmed; nothing was changed.", rule="not-confirmed")


def _warn(prospect: Prospect) -> None:
    for process in prospect.occupants.users:
        name = displayable(process.name)
        note(f"tui-fs: process {process.pid} ({name}) {process.how} and keeps using the old one.")
    unseen = prospect.occupants.unseen
    if unseen:
        processes = counted(unseen, "process", "processes")
        note(f"tui-fs: {processes} could not be inspected and may be working in the directory.")
    for missing in missing_figures({Figure.PROCESSES}):
        note(f"tui-fs: {missing.sentence}")


def _note_warning(warning: str) -> None:
    if warning:
        note(f"tui-fs: {warning}")


def _print_moved(moved: int, kept: tuple[tuple[PathStr, PathStr], ...]) -> None:
    """Print what happened to the entries that others created during an exchange."""
    if moved:
        entries = counted(moved, "entry", "entries")
        print_text(f"Created meanwhile and moved into the directory: {entries}.")
    for name, new_name in kept:
        print_text(
            f"{displayable(name)} existed in both directories; one of the two entries is now "
            f"{displayable(new_name)}."
        )


def _moved_fields(moved: int, kept: tuple[tuple[PathStr, PathStr], ...]) -> dict[str, object]:
    pairs = [
        {**path_fields("name", name), **path_fields("kept_as", new_name)} for name, new_name in kept
    ]
    return {"moved_entries": moved, "kept": pairs}


def _occupant_fields(occupants: OpenUsers) -> dict[str, object]:
    processes = [
        {"pid": process.pid, "name": displayable(process.name), "how": process.how}
        for process in occupants.users
    ]
    return {"occupants": processes, "unseen_processes": occupants.unseen}


def _meaning(record: AsideRecord, standing: AsideState | None) -> str:
    meaning = _MEANINGS[standing]
    if standing is AsideState.ELSEWHERE:
        return f"{meaning} {displayable(record.host.name)}"
    return meaning


def _record_fields(record: AsideRecord, standing: AsideState | None) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": record.id,
        "action": record.action.value,
        "state": "unknown" if standing is None else standing.value,
        "meaning": _meaning(record, standing),
        "host": displayable(record.host.name),
        **path_fields("path", record.path),
        **path_fields("aside", record.aside),
        "twin": record.twin is not None,
        "at": record.at,
        "undo_command": list(undo_command(record)),
    }
    if record.action is Action.ASIDE:
        fields |= argv_fields("delete_command", (delete_command(record),))
    return fields
