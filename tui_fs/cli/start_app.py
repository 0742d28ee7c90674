"""``tui-fs [PATH]``: the interactive screens; the only module that imports them."""

import argparse
import asyncio
import os
import sys

from tui_fs import __version__
from tui_fs.cli.arguments import directory_argument
from tui_fs.cli.command_process import use_screen
from tui_fs.cli.exit_codes import DONE
from tui_fs.cli.output import moves_cursor
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable, is_within
from tui_fs.safety.policy import READ_ONLY_VARIABLE
from tui_fs.survey.imported import root_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the screens."""
    group = parser.add_argument_group("screens")
    group.add_argument(
        "path", nargs="?", metavar="PATH",
        help="the directory to open (default: choose from the file systems)",
    )  # fmt: skip
    group.add_argument(
        "--import", dest="imported", metavar="FILE",
        help="browse an export of ncdu or tui-fs survey; nothing can be deleted",
    )  # fmt: skip
    group.add_argument("--read-only", action="store_true", help="do not allow any change")
    group.add_argument(
        "--slow-link", action="store_true",
        help="redraw once per second instead of up to 4 times, for slow connections",
    )  # fmt: skip
    group.add_argument(
        "--version", action="version", version=f"tui-fs {__version__}", help="print the version"
    )
    group.add_argument("-h", "--help", action="help", help="show this help")
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace) -> int:
    """Open the screens on a directory."""
    imported = None if parsed.imported is None else os.path.abspath(parsed.imported)
    path = _directory_of(parsed.path, imported)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(
            "The full-screen interface needs a terminal.",
            "Use tui-fs survey, estimate or delete in scripts.",
        )
    if not moves_cursor(sys.stdout):
        raise BadInput(
            "The full-screen interface needs a terminal that can move its cursor.", "Set TERM."
        )
    if parsed.read_only or imported is not None:
        os.environ[READ_ONLY_VARIABLE] = "1"  # child processes inherit it
    from tui_fs.app import TuiFsApp  # importing textual is slow, and no other command needs it

    app = TuiFsApp(
        path,
        shows_start=parsed.path is None and imported is None,
        slow_link=parsed.slow_link,
        read_only=parsed.read_only or imported is not None,
        imported=imported,
    )
    use_screen()
    # A separate loop: asyncio.run would wait for threads that are blocked in the kernel.
    app.run(loop=asyncio.new_event_loop())
    return app.return_code or DONE


def _directory_of(path: str | None, imported: str | None) -> str:
    """Return the directory to open: one of this machine, or one of the imported file."""
    if imported is None:
        return directory_argument("." if path is None else path)
    top = root_of(imported)
    if path is None:
        return top
    directory = os.path.normpath(os.path.join(top, path))
    if not is_within(directory, top):
        raise BadInput(
            f"{displayable(path)} is not inside {displayable(top)}, the exported directory."
        )
    return directory
