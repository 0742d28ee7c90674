"""``tui-fs [PATH]``: the interactive screens; the only import of the user interface."""

import argparse
import os
import sys

from tui_fs.cli.arguments import directory_argument
from tui_fs.cli.exit_codes import DONE
from tui_fs.model.errors import BadInput
from tui_fs.safety.policy import READ_ONLY_VARIABLE


def run(parsed: argparse.Namespace) -> int:
    """Open the screens on a directory."""
    path = directory_argument(parsed.path)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(
            "The screens need a terminal.", "Use tui-fs survey, estimate or delete in scripts."
        )
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        raise BadInput("The screens need a terminal that can move its cursor.", "Set TERM.")
    if parsed.read_only:
        os.environ[READ_ONLY_VARIABLE] = "1"  # every process that is started from here obeys
    from tui_fs.app import TuiFsApp  # importing textual takes time that no other command needs

    app = TuiFsApp(path, slow_link=parsed.slow_link, read_only=parsed.read_only)
    app.run()
    return app.return_code or DONE
