"""A survey in a process of its own, so that counting never delays a key press.

Run as ``python -m tui_fs.survey.worker``: reads questions as JSON from standard input, a line
each, the first one naming what to survey (see `tui_fs.survey.process`), and writes pickled
`Update` values (or one `TuiFsError`) to standard output. The other end is always the parent
process of the same installation.
"""

import json
import os
import pickle
import sys

from tui_fs.model.errors import BadInput, TuiFsError
from tui_fs.model.paths import PathStr, displayable, from_base64
from tui_fs.model.survey import Ranking, Survey
from tui_fs.survey.listing import Names, listing_of, paths_named, read_names
from tui_fs.survey.process import Update
from tui_fs.survey.scandir import ScandirSurvey

RANKED = 1_000
NAMED = 1_000
"""As many as one job takes (see job/permission)."""


class Server:
    """A survey that answers questions while it counts and afterwards."""

    def __init__(self, survey: ScandirSurvey) -> None:
        self._survey = survey
        self._last: Survey | None = None
        self._shown: str | None = None
        self._names = Names()
        self._ranked_by: Ranking | None = None
        self._named: str | None = None

    def run(self) -> None:
        """Count, and answer until nobody asks any more."""
        for survey in self._survey.run(questions=(0, self._hear)):
            self._last = survey
            self._tell()
        while True:
            self._hear()
            self._tell()

    def _hear(self) -> None:
        """Take one question; ends the process if there will be none."""
        line = _read_line()
        if not line:
            os._exit(0)
        question = json.loads(line)
        if "show" in question:
            self._shown = from_base64(question["show"])
            self._names = read_names(self._shown)
        if "rank" in question:
            self._ranked_by = Ranking(question["rank"])
        if "name" in question:
            self._named = from_base64(question["name"])
        self._survey.tell_at_once()

    def _tell(self) -> None:
        assert self._last is not None
        counted = self._survey.collector
        update = Update(self._last)
        if self._shown is not None:
            counted.table.add_up()
            big = counted.big_files_in(counted.table.find(self._shown))
            listing = listing_of(counted.table, self._shown, self._names, big)
            update = Update(self._last, listing)
        if self._ranked_by is not None:
            ranking = counted.ranked(self._ranked_by, RANKED)
            update = Update(self._last, update.listing, self._ranked_by, ranking)
        if self._named is not None:
            paths = tuple(paths_named(counted.table, os.fsencode(self._named), NAMED))
            update = Update(
                self._last,
                update.listing,
                update.ranked_by,
                update.ranking,
                PathStr(self._named),
                paths,
            )
        pickle.dump(update, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _read_line() -> bytes:
    """Return a line of standard input read without a buffer, which select would not see."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return bytes(line)


def main() -> None:
    """Survey what the first question names."""
    asked = json.loads(_read_line())
    paths = [from_base64(path) for path in asked["paths"]]
    try:
        Server(ScandirSurvey(paths)).run()
    except BrokenPipeError:
        os._exit(0)  # the reader has closed: nobody wants the rest
    except TuiFsError as why:
        pickle.dump(why, sys.stdout.buffer)
    except OSError as why:
        named = displayable(why.filename or paths[0])
        reason = os.strerror(why.errno or 0)
        pickle.dump(BadInput(f"{named} cannot be read: {reason}."), sys.stdout.buffer)


if __name__ == "__main__":
    main()
