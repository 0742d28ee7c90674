"""A screen that goes through a surveyed tree: which survey, which directory, in what order."""

import os
import time
from dataclasses import replace

from textual import work
from textual.worker import get_current_worker

from tui_fs.model.paths import PathStr, is_within
from tui_fs.model.survey import Listing, Survey
from tui_fs.screens.browser_rows import Arranged, View, arrange
from tui_fs.screens.browser_text import Progress
from tui_fs.screens.counting import CountingScreen
from tui_fs.screens.frame import Settings
from tui_fs.screens.messages import RowsArranged, SurveyUpdated
from tui_fs.survey.findings.registry import FINDING_TYPES
from tui_fs.survey.process import Update

_LISTINGS_KEPT = 20


class BrowsingScreen(CountingScreen):
    """Shows one directory of one survey; nothing outside the survey is shown without a new one.

    Args:
        path: the directory to begin with; ignored for an imported survey, which has its own.
        imported: a file that is read instead of directories.

    Attributes:
        path: the directory shown.
        root: the surveyed directory; empty until an imported survey has told it.
        survey: the last counts; None before the first.
    """

    def __init__(self, path: str, settings: Settings, imported: str | None = None) -> None:
        super().__init__(settings)
        self.path = path if imported is None else ""
        self.root = ""
        self.survey: Survey | None = None
        self.imported = imported
        self.view = View()
        self.arranged: Arranged | None = None
        self.came_from: str | None = None
        self._listings: dict[str, Listing] = {}
        self._finished_at_s = 0.0

    def show_arranged(self) -> None:
        """Show `arranged`; overridden."""

    def show_emptiness(self) -> None:
        """Show that nothing is known of `path` yet; overridden."""

    def heard(self, update: Update) -> None:
        """Do what else is to be done with an update; overridden."""

    def open_directory(self, path: str, came_from: str | None = None) -> None:
        """Show another directory, the cursor on the one that was left if it is named."""
        self.path, self.came_from = path, came_from
        self.view = replace(self.view, search="")
        self.arranged = None
        if not self._is_surveyed(path):
            self._survey(path)
            return
        if self.questions is not None:
            self.questions.show(path)
        self.show_emptiness()
        self.put_in_order()

    def count_again(self, came_from: str | None) -> None:
        """Survey the same tree anew, and show the same directory."""
        self.came_from = came_from
        self._survey(self.root)

    def _survey(self, root: str) -> None:
        self.root, self.survey, self._finished_at_s = root, None, 0.0
        self._listings.clear()
        self.arranged = None
        self.show_emptiness()
        self.count(() if self.imported is not None else (root,), self.imported)
        if self.questions is not None and self.path:
            self.questions.show(self.path)

    def _is_surveyed(self, path: str) -> bool:
        if self.imported is not None:
            return self.root != ""
        if not self.root or not is_within(path, self.root):
            return False
        findings = self.survey.findings if self.survey is not None else ()
        # Inside the surveyed directory itself nothing is left out that lies above it.
        return not any(
            not FINDING_TYPES[finding.kind].is_counted
            and is_within(path, finding.path)
            and not is_within(self.root, finding.path)
            for finding in findings
        )

    def progress(self) -> Progress:
        """Return how far the survey is."""
        passed_s = time.monotonic() - self._finished_at_s if self._finished_at_s else 0.0
        is_paused = self.questions is not None and self.questions.is_paused
        words = "counting" if self.imported is None else "reading"
        return Progress(is_paused, passed_s, words)

    def answered(self, update: Update) -> SurveyUpdated:
        """Put the listing in order before it is posted."""
        arranged = None
        if update.listing is not None and update.listing.path == self.path:
            arranged = self._arranged(update.listing, update.survey, self.view)
        return SurveyUpdated(update.survey, update=update, arranged=arranged)

    def on_survey_updated(self, message: SurveyUpdated) -> None:
        """Take over counts and answers."""
        update = message.update
        if message.number != self.survey_number or update is None:
            return
        if self.questions is not None:
            self.questions.heard(update)
        self.survey = update.survey
        if update.survey.finished and not self._finished_at_s:
            self._finished_at_s = time.monotonic()
        if not self.root and update.survey.path:
            self.root = update.survey.path
            self.open_directory(self.root)
        if update.listing is not None:
            self._keep(update.listing)
            if update.listing.path == self.path:
                self._take(message.arranged)
        self.heard(update)

    def _keep(self, listing: Listing) -> None:
        self._listings.pop(listing.path, None)
        self._listings[listing.path] = listing
        if len(self._listings) > _LISTINGS_KEPT:
            del self._listings[next(iter(self._listings))]

    def _take(self, arranged: Arranged | None) -> None:
        if arranged is None or arranged.view != self.view:
            self.put_in_order()  # the person has meanwhile asked for another order
            return
        self.arranged = arranged
        self.show_arranged()

    def put_in_order(self) -> None:
        """Put what is known of the directory in the order wanted now."""
        listing, survey = self._listings.get(self.path), self.survey
        if listing is not None and survey is not None:
            self._put_in_order(listing, survey, self.view)

    @work(thread=True, exclusive=True, group="rows")
    def _put_in_order(self, listing: Listing, survey: Survey, view: View) -> None:
        worker = get_current_worker()
        arranged = self._arranged(listing, survey, view)
        if not worker.is_cancelled:
            self.post_message(RowsArranged(arranged))

    def on_rows_arranged(self, message: RowsArranged) -> None:
        """Show the new order, unless another one is wanted by now."""
        arranged = message.arranged
        if arranged.view == self.view and arranged.listing is self._listings.get(self.path):
            self.arranged = arranged
            self.show_arranged()

    def _arranged(self, listing: Listing, survey: Survey, view: View) -> Arranged:
        return arrange(
            listing,
            survey.findings,
            view,
            is_growing=not survey.finished,
            now_s=time.time(),
            kept=self.came_from,
        )


def child_path(directory: str, name: str) -> PathStr:
    """Return the path of a name in a directory."""
    return PathStr(os.path.join(directory, name))
