"""A spool directory as a survey reports it, and a survey process that answers from it."""

import os
import queue
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from tests.ui.recorded import FLAT, MAIL_TOTALS, MAILDROP, SPOOL, spool_survey
from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PathStr
from tui_fs.model.survey import (
    Bin,
    Child,
    Details,
    EntryKind,
    Histograms,
    LargeDirectory,
    Listing,
    NamedGroup,
    Order,
    OwnerSum,
    SuffixSum,
    Survey,
    Totals,
)
from tui_fs.survey.findings.barriers import mount_findings
from tui_fs.survey.histogram import AGES_DAYS, SIZES_BYTES
from tui_fs.survey.process import Query, SurveyRequest, Update

NOW_S = 1_700_000_000
DAY_S = 86_400
SESSIONS = PathStr("/srv/spool/sessions")

(MOUNT,) = mount_findings([PathStr("/srv/spool/a[")])
GROUP = Finding(
    FindingKind("group"),
    Severity.INFO,
    PathStr("/srv/spool/sessions/one/cache"),
    {"directories": 2, "entries": 420, "allocated_bytes": 860_160},
    "2 directories named cache: 420 entries, 840.0 KiB in total. None has more entries than this.",
    "To delete them in one job, mark all of them with N in the browser.",
)
CACHES = (
    PathStr("/srv/spool/sessions/one/cache"),
    PathStr("/srv/spool/sessions/two/cache"),
)


def directory(
    name: str, totals: Totals, *, is_complete: bool = True, inodes: int = 0, age_days: int = 1
) -> Child:
    """A subdirectory whose newest file is a day old."""
    return Child(
        PathStr(name),
        EntryKind.DIRECTORY,
        totals,
        is_complete,
        inodes=inodes or totals.entries,
        oldest_s=NOW_S - age_days * DAY_S,
        newest_s=NOW_S - DAY_S,
    )


def spool_listing(*, is_complete: bool = True) -> Listing:
    """Names of all sorts, hostile ones among them."""
    little = Totals(1, 1, 0, 0, 10, 4096)
    return Listing(
        SPOOL,
        spool_survey().totals,
        (
            directory("maildrop", MAIL_TOTALS, is_complete=is_complete, age_days=400),
            directory("sessions", Totals(60_000, 1_002, 0, 0, 2 << 20, 3 << 20), inodes=40_002),
            directory("a[", Totals(5, 2, 0, 0, 10, 8192), age_days=4_000),
            directory("[red]", Totals(4, 1, 0, 0, 10, 4096)),
            directory("new\nline \x1b]0;x\x07", little),
            directory(os.fsdecode(b"\xff\xfe"), little),
            Child(PathStr("empty"), EntryKind.DIRECTORY, Totals(directories=1), True),
            Child(
                PathStr("lock"),
                EntryKind.SYMLINK,
                Totals(symlinks=1),
                True,
                PathStr("/run/lock"),
                oldest_s=NOW_S - 300,
                newest_s=NOW_S - 300,
            ),
            Child(PathStr("pipe"), EntryKind.OTHER, Totals(other=1), True),
        ),
        complete=is_complete,
    )


SESSIONS_LISTING = Listing(
    SESSIONS,
    Totals(60_000, 1_002, 0, 0, 2 << 20, 3 << 20),
    (
        directory("one", Totals(300, 2, 0, 0, 0, 614_400)),
        directory("two", Totals(120, 2, 0, 0, 0, 245_760)),
    ),
    not_listed=59_580,
    complete=True,
)


def found_survey(*, finished: bool = True, unreadable: int = 0) -> Survey:
    """The spool directory with findings of every severity."""
    return replace(
        spool_survey(finished=finished, unreadable=unreadable),
        findings=(MOUNT, FLAT, GROUP),
        groups=(
            NamedGroup(PathStr("cache"), 2, Totals(418, 2, 0, 0, 840 << 10, 840 << 10), CACHES),
        ),
    )


RANKING = (
    LargeDirectory(
        MAILDROP, 1_204_112, 39_845_888, 1_204_112, 5_046_586_572, NOW_S - 400 * DAY_S, NOW_S - 60
    ),
    LargeDirectory(SESSIONS, 58_998, 4096, 39_000, 3 << 20, NOW_S - 9 * DAY_S, NOW_S - 90),
    LargeDirectory(CACHES[0], 298, 4096, 298, 614_400, NOW_S - 2 * DAY_S, NOW_S - DAY_S),
    LargeDirectory(SPOOL, 9, 4096, 9, 4096, NOW_S - 300, NOW_S - 300),
)


def bins(limits: tuple[int, ...], *sums: tuple[int, int]) -> tuple[Bin, ...]:
    """The classes between some limits, with their entries and bytes."""
    ranges = zip((0, *limits), (*limits, None), sums, strict=True)
    return tuple(Bin(least, below, *both) for least, below, both in ranges)


_NOTHING = (0, 0)
DETAILS = Details(
    Histograms(
        bins(
            AGES_DAYS,
            (1_204, 5 << 20),
            (9_000, 36 << 20),
            _NOTHING,
            (93_908, 400 << 20),
            (500_000, 2 << 30),
            (600_000, 2_500 << 20),
        ),
        bins(
            SIZES_BYTES,
            (12, 0),
            (1_204_000, 4_700 << 20),
            (90, 2 << 20),
            (8, 3 << 20),
            _NOTHING,
            (2, 300 << 20),
            _NOTHING,
        ),
        (SuffixSum("eml", 900_000, 4_000 << 20), SuffixSum("core", 2, 300 << 20)),
        (OwnerSum(89, "postfix", 1_200_000, 4_900 << 20), OwnerSum(0, "root", 4_112, 100 << 20)),
    ),
    (
        (200 << 20, PathStr("/srv/spool/maildrop/core.4123")),
        (100 << 20, PathStr("/srv/spool/maildrop/a very long directory/and a file in it.old")),
    ),
)


def _listing_of(path: PathStr) -> Listing:
    above = Listing(path, Totals(5, 3), (directory("spool", Totals(3, 2)),), complete=True)
    other = above if SPOOL.startswith(path) else Listing(path, Totals(0, 1))
    return {SPOOL: spool_listing(), SESSIONS: SESSIONS_LISTING}.get(path, other)


class TreeSurvey:
    """Stand-in for a survey process of the spool directory.

    Attributes:
        begun: all surveys that were begun.
        asked: the questions, in order.
        orders: of the listings, likewise.
    """

    begun: "list[TreeSurvey]" = []

    def __init__(self, request: SurveyRequest) -> None:
        paths = self.paths = request.paths
        self.imported, self.filters = request.imported, request.filters
        self.asked: list[str] = []
        self.orders: list[Order] = []
        self.is_paused = self.is_stopped = False
        self.survey = found_survey()
        if paths and paths[0] != SPOOL:
            self.survey = replace(self.survey, path=PathStr(paths[0]))
        self._updates: queue.Queue[Update | None] = queue.Queue()
        self._last = Update(self.survey, is_filtered=self.filters.active)
        self.begun.append(self)
        self._post_last()

    def _post_last(self) -> None:
        self._updates.put(self._last)

    def updates(self) -> Iterator[Update]:
        """Yield answers until it is stopped."""
        while (update := self._updates.get()) is not None:
            yield update

    def count_on(self, *, finished: bool) -> None:
        """Post counts, final or not."""
        self.survey = replace(self.survey, finished=finished, complete=finished)
        self._last = replace(self._last, survey=self.survey)
        self._post_last()

    def ask(self, query: Query) -> None:
        """Answer for the recorded tree, whatever is asked."""
        answers: dict[str, Any] = {"query": self._last.query.merged(query)}
        if query.listing is not None:
            path, order = query.listing.path, query.listing.order
            self.asked.append(f"show {path}")
            self.orders.append(order)
            answers["listing"] = replace(_listing_of(path), complete=True, order=order)
        if query.ranking is not None:
            self.asked.append(f"rank {query.ranking}")
            answers["ranking"] = RANKING
        if query.name is not None:
            self.asked.append(f"name {query.name}")
            answers["paths_named"] = CACHES
        if query.measured is not None:
            self.asked.append("measure")
            size = Totals(200, 10, 0, 0, 0, 1 << 20)
            answers["sizes"] = tuple((path, size, True) for path in CACHES)
        if query.described is not None:
            self.asked.append(f"describe {query.described}")
            answers["details"] = DETAILS
        if query.everything:
            self.asked.append("everything")
            answers["is_filtered"] = False
        if query.page:
            self.asked.append("page")
            answers["page"] = b"<!doctype html>the page"
        self._last = replace(self._last, **answers)
        self._post_last()
        self._last = replace(self._last, page=None, query=replace(self._last.query, page=None))

    def pause(self) -> None:
        """Do nothing."""
        self.asked.append("pause")
        self.is_paused = True

    def resume(self) -> None:
        """Go on."""
        self.asked.append("resume")
        self.is_paused = False

    def stop(self) -> None:
        """End."""
        self.is_stopped = True
        self._updates.put(None)


class SilentSurvey(TreeSurvey):
    """Stand-in for a survey process that never answers; the tests post the updates."""

    begun: "list[TreeSurvey]" = []

    def _post_last(self) -> None:
        pass

    def updates(self) -> Iterator[Update]:
        """Yield nothing."""
        return iter(())
