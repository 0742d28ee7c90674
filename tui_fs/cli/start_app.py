"""``tui-fs [PATH]``: the interactive screens; the only module that imports them."""

import argparse
import asyncio
import contextlib
import os
import sys
from typing import Any

from tui_fs import __version__
from tui_fs.cli.arguments import Group, directory_argument
from tui_fs.cli.command_process import Notice, notify_watcher
from tui_fs.cli.exit_codes import DONE
from tui_fs.cli.output import moves_cursor, note
from tui_fs.model.errors import BadInput, Refused, TuiFsError, did_you_mean
from tui_fs.model.paths import PathStr, displayable, escape_without_glyph, is_within
from tui_fs.safety.policy import READ_ONLY_VARIABLE
from tui_fs.survey.process import SurveyProcess, SurveyRequest

_AUTO = "auto"
_THEME_FILE = "theme.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("screens")
    group.add_argument(
        "path", nargs="?", metavar="PATH",
        help="the directory to open (default: choose from the file systems)",
    )  # fmt: skip
    group.add_argument(
        "--import", dest="imported", metavar="FILE",
        help="browse an export of ncdu or tui-fs survey; nothing can be deleted",
    )  # fmt: skip
    add_screen_options(group)
    group.add_argument(
        "--version", action="version", version=f"tui-fs {__version__}", help="print the version"
    )
    group.add_argument("-h", "--help", action="help", help="show this help")
    parser.set_defaults(run=run)


def add_screen_options(group: Group) -> None:
    """Add the options of all screens, also of those of many hosts."""
    group.add_argument("--read-only", action="store_true", help="do not allow any change")
    group.add_argument(
        "--slow-link", action="store_true",
        help="redraw at most once per second, for slow connections",
    )  # fmt: skip
    group.add_argument(
        "--theme", metavar="NAME",
        help="colours, from now on: auto (by the colours of the terminal), nord, ansi-dark, "
        "ansi-light or another theme of Textual",
    )  # fmt: skip


def screen_settings(parsed: argparse.Namespace, *, read_only: bool = False) -> dict[str, Any]:
    """Return what `open_app` needs of these options.

    Args:
        read_only: also without the option.

    Raises:
        BadInput: there is no theme of the requested name.
    """
    if is_read_only := parsed.read_only or read_only:
        os.environ[READ_ONLY_VARIABLE] = "1"  # child processes inherit it
    return {
        "slow_link": parsed.slow_link,
        "read_only": is_read_only,
        "theme": theme_of(parsed.theme),
    }


def run(parsed: argparse.Namespace) -> int:
    """Open the screens on a directory."""
    imported = None if parsed.imported is None else os.path.abspath(parsed.imported)
    path = _directory_of(parsed.path, imported)
    require_screen()
    if parsed.path is None and imported is None:
        return open_app(path, shows_start=True, **screen_settings(parsed))
    # It loads its modules, and begins to count, while this process loads the screens.
    survey = SurveyProcess(
        SurveyRequest((PathStr(path),))
        if imported is None
        else SurveyRequest((), PathStr(imported))
    )
    try:
        settings = screen_settings(parsed, read_only=imported is not None)
        return open_app(path, imported=imported, survey=survey, **settings)
    finally:
        survey.stop()


def require_screen(commands: str = "tui-fs survey, estimate or delete") -> None:
    """Raise BadInput, which names the commands for scripts, without a terminal for the screens."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(
            "The full-screen interface needs a terminal.",
            f"Use {commands} in scripts.",
        )
    if not moves_cursor(sys.stdout):
        raise BadInput(
            "The full-screen interface needs a terminal that can move its cursor.", "Set TERM."
        )


def open_app(path: str, **settings: Any) -> int:
    """Open the screens.

    Args:
        settings: of `TuiFsApp`.
    """
    from tui_fs.app import TuiFsApp  # importing textual is slow, and no other command needs it
    from tui_fs.widgets.cell_drawing import has_few_characters, has_glyph

    escape_without_glyph(has_glyph if has_few_characters() else None)
    settings.setdefault("theme", theme_of(None))
    app = TuiFsApp(path, **settings)
    notify_watcher(Notice.SCREEN)
    # A separate loop: asyncio.run would wait for threads that are blocked in the kernel.
    app.run(loop=asyncio.new_event_loop())
    note_running_jobs()
    return app.return_code or DONE


def note_running_jobs() -> None:
    """Report the jobs that continue without the screens, and how to follow each."""
    from tui_fs.job.view import JobList  # not for --help and --version
    from tui_fs.model.target import in_words

    with contextlib.suppress(TuiFsError):  # the jobs cannot be read; tui-fs jobs reports why
        for job in JobList().read()[0]:
            if job.state.is_live:
                place = in_words(job.targets)
                note(f"tui-fs: A job continues in {place}. Follow it: tui-fs attach {job.job_id}")


def theme_of(requested: str | None) -> str:
    """Return the name of the theme: the requested one, which is stored, or the stored one.

    Without either, and with `auto`, the colours of the terminal decide.

    Raises:
        BadInput: there is no theme of the requested name.
    """
    from rich.console import Console
    from textual.theme import BUILTIN_THEMES

    from tui_fs.app import FEW_COLOURS_THEME, TRUECOLOR_THEME

    if requested is None:
        requested = _stored_theme()
    elif requested != _AUTO and requested not in BUILTIN_THEMES:
        names = ", ".join((_AUTO, *sorted(BUILTIN_THEMES)))
        hint = did_you_mean(requested, BUILTIN_THEMES, f"Use one of {names}.")
        raise BadInput(f"There is no theme {displayable(requested)}.", hint)
    else:
        _store_theme(requested)
    if requested in BUILTIN_THEMES:
        return requested
    if "NO_COLOR" in os.environ or Console(force_terminal=True).color_system != "truecolor":
        return FEW_COLOURS_THEME
    return TRUECOLOR_THEME


def _stored_theme() -> str:
    """Return the stored name; `auto` without one that only this user can have written."""
    from tui_fs.job.store import is_private, read_json  # not for --help and --version

    place = _screens_directory()
    path = os.path.join(place, _THEME_FILE)
    if not is_private(place) or not os.path.lexists(path):
        return _AUTO
    try:
        return str(read_json(path).get("theme"))
    except BadInput as error:
        note(f"tui-fs: {error}")
        return _AUTO


def _store_theme(theme: str) -> None:
    from tui_fs.job.store import require_private, write_json

    place = _screens_directory()
    try:
        require_private(place)
        write_json(os.path.join(place, _THEME_FILE), {"theme": theme})
    except OSError as error:
        note(f"tui-fs: The theme cannot be stored: {os.strerror(error.errno or 0)}.")
    except Refused as error:
        note(f"tui-fs: The theme is not stored. {error}")


def _screens_directory() -> str:
    from tui_fs.job.store import state_directory

    return os.path.join(state_directory(), "screens")


def _directory_of(path: str | None, imported: str | None) -> str:
    """Return the directory to open: one of this machine, or one of the imported file."""
    if imported is None:
        return directory_argument("." if path is None else path)
    from tui_fs.survey.imported import root_of

    top = root_of(imported)
    if path is None:
        return top
    directory = os.path.normpath(os.path.join(top, path))
    if not is_within(directory, top):
        raise BadInput(
            f"{displayable(path)} is not inside {displayable(top)}, the exported directory."
        )
    return directory
