"""``tui-fs doctor``."""

import argparse

from tui_fs.cli.arguments import add_output_options
from tui_fs.cli.exit_codes import DONE
from tui_fs.cli.output import SCHEMA, columns, print_json, print_text
from tui_fs.job.doctor import Diagnosis, diagnose, sections
from tui_fs.model.codec import encode

_MARKS = {True: "yes", False: "no", None: ""}


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    parser.usage = "tui-fs doctor [--json]"
    parser.description = (
        "Report which tools, privileges and sources of system call counts work on this "
        "machine, and how to enable the rest."
    )
    parser.epilog = "example:\n  tui-fs doctor"
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Print the diagnosis of this machine."""
    examination = diagnose()
    if parsed.json:
        print_json({"schema": SCHEMA, **encode(examination)})
    else:
        print_text(_as_text(examination))
    return DONE


def _as_text(diagnosis: Diagnosis) -> str:
    lines: list[str] = []
    for section in sections(diagnosis):
        rows: list[tuple[str, ...]] = [
            (_MARKS[row.works], *filter(None, (row.name,)), row.text) for row in section.rows
        ]
        lines += ["", section.title, columns(rows, frozenset())]
    return "\n".join(lines[1:])
