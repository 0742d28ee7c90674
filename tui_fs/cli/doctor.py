"""``tui-fs doctor``."""

import argparse

from tui_fs.cli.arguments import add_output_options
from tui_fs.cli.exit_codes import DONE
from tui_fs.cli.output import SCHEMA, columns, print_json, print_text
from tui_fs.job.doctor import Diagnosis, ToolState, diagnose
from tui_fs.model.codec import encode
from tui_fs.model.paths import displayable, harmless
from tui_fs.strategies.registry import remedy


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the arguments of the command."""
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


def _place(tool: ToolState) -> str:
    if tool.path:
        return displayable(tool.path)
    return "not installed" if tool.remedy == remedy(tool.name) else "not checked"


def _as_text(examination: Diagnosis) -> str:
    rows: list[tuple[str, ...]] = [
        (
            tool.name,
            _place(tool),
            harmless(tool.version) or tool.remedy,
        )
        for tool in examination.tools
    ]
    tracing, privileges = examination.tracing, examination.privileges
    lines = ["tools", columns(rows, frozenset()), "", "tracing"]
    lines.append(f"used by default: {tracing.source} ({tracing.note})")
    lines.append(
        columns(
            [
                (source.kind, "yes" if source.usable else "no", source.note)
                for source in tracing.sources
            ],
            frozenset(),
        )
    )
    terminal = examination.terminal
    lines += [
        "",
        "privileges",
        f"user {privileges.uid}{' (root)' if privileges.is_root else ''}: {privileges.note}",
        "",
        "engine",
        examination.engine.note,
        "",
        "terminal",
        f"TERM={displayable(terminal.term) or 'not set'}, standard output is "
        f"{'a terminal' if terminal.is_terminal else 'not a terminal'}, {terminal.encoding}",
        "",
        f"jobs are stored in {displayable(examination.jobs)}",
        examination.logout,
        f"policy: {examination.policy}",
        "",
        "figures",
        *(figure.sentence for figure in examination.missing_figures),
    ]
    if not examination.missing_figures:
        lines.append("all can be measured")
    return "\n".join(lines)
