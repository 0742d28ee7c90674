"""A survey in the background of a screen: its process, its queries, and its last answers."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from textual.message import Message
from textual.screen import Screen
from textual.worker import get_current_worker

from tui_fs.model.errors import TuiFsError
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Filters
from tui_fs.model.survey import Details, Listing, Order, Survey
from tui_fs.screens.base import Failed
from tui_fs.survey.process import ListingQuery, Query, SurveyProcess, SurveyRequest, Update

_MAX_LISTINGS, _MAX_DETAILS = 20, 200


class SurveyUpdated(Message):
    """A survey has new counts or an answer.

    Attributes:
        survey_number: set by the client; the surveys of one screen have different numbers.
    """

    def __init__(self, update: Update) -> None:
        super().__init__()
        self.update = update
        self.survey_number = 0


class SurveyClient:
    """Runs one survey at a time for a screen and stores its last answers.

    The client sends a query only after the answer to the previous one, so it never queries a
    directory that the user has left meanwhile. A paused survey answers no query; the client
    resumes it until the answer arrives.

    Args:
        screen: receives `SurveyUpdated` for every update, and `Failed` when the survey fails.
        interval_s: time between two messages, unless an answer arrives.
        make_message: called in the thread that reads the survey, where work delays no key.
        running: a survey for the first `start`, of the same paths; a new one by default.

    Attributes:
        last_update: None before the first one.
        number: number of the running survey, counted from the first one of this client.
        is_filtered: the answers count only entries that match the filters of the survey.
        has_filters: the survey was started with filters, and counts ages and sizes only of matches.
    """

    def __init__(
        self,
        screen: Screen[None],
        interval_s: float,
        make_message: Callable[[Update], SurveyUpdated],
        running: SurveyProcess | None = None,
    ) -> None:
        self._screen = screen
        self._interval_s = interval_s
        self._make_message = make_message
        self._process: SurveyProcess | None = None
        self._running = running
        self.number = 0
        self.is_filtered = self.has_filters = False
        self._forget()

    def _forget(self) -> None:
        self.last_update: Update | None = None
        self._finished_at_s: float | None = None
        self._listings: dict[str, Listing] = {}
        self._next = Query()
        self._unanswered: Query | None = None
        self._sought_name: str | None = None
        self._details: dict[str, Details] = {}
        self._described = ""
        self._is_paused = False

    @property
    def survey(self) -> Survey | None:
        """The latest counts."""
        return None if self.last_update is None else self.last_update.survey

    @property
    def is_counting(self) -> bool:
        """Whether the counts still grow."""
        survey = self.survey
        return self._process is not None and (survey is None or not survey.finished)

    @property
    def is_stopped(self) -> bool:
        """Whether no survey runs or answers, for example after it has failed."""
        return self._process is None

    @property
    def is_paused(self) -> bool:
        """Whether the user has paused the survey."""
        return self._is_paused

    @property
    def since_finished_s(self) -> float:
        """Seconds since the survey finished; 0 before that."""
        return 0.0 if self._finished_at_s is None else time.monotonic() - self._finished_at_s

    def start(
        self,
        paths: Sequence[str],
        imported: PathStr | None = None,
        filters: Filters | None = None,
    ) -> None:
        """Start a survey; stop the previous one.

        Args:
            imported: a file to read instead of the directories.
            filters: entries to count separately; the answers count only these.
        """
        self.stop()
        self._forget()
        self.is_filtered = self.has_filters = filters is not None and filters.active
        # In this thread, not in the worker: the kernel may kill a process when the thread that
        # forked it exits.
        roots = tuple(map(PathStr, paths))
        request = SurveyRequest(roots, imported, filters or Filters())
        self._process = self._running or SurveyProcess(request)
        self._running = None
        self.number += 1
        follow = partial(self._follow, self._process, self.number)
        self._screen.run_worker(follow, thread=True, exclusive=True, group="survey")

    def stop(self) -> None:
        """Stop the survey, if one is running."""
        self._screen.workers.cancel_group(self._screen, "survey")
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _follow(self, process: SurveyProcess, number: int) -> None:
        """Read a survey process until it exits; `stop` ends that process."""
        worker = get_current_worker()
        posted_at_s = 0.0
        posted: tuple[object, ...] = ()
        try:
            for update in process.updates():
                if worker.is_cancelled:
                    return
                answers = update.query, update.listing and update.listing.examined
                is_due = time.monotonic() - posted_at_s >= self._interval_s * 0.9
                if is_due or update.survey.finished or answers != posted:
                    message = self._make_message(update)
                    message.survey_number = number
                    self._screen.post_message(message)
                    posted, posted_at_s = answers, time.monotonic()
        except TuiFsError as error:
            if not worker.is_cancelled:
                self._screen.post_message(Failed(error))
        finally:
            process.stop()

    def accept(self, message: SurveyUpdated) -> bool:
        """Store an update; return False if it belongs to an earlier survey or to no filters."""
        update = message.update
        if message.survey_number != self.number or update.is_filtered != self.is_filtered:
            return False
        self.last_update = update
        if update.survey.finished and self._finished_at_s is None:
            self._finished_at_s = time.monotonic()
        if update.listing is not None:
            self._listings.pop(update.listing.path, None)
            self._listings[update.listing.path] = update.listing
            if len(self._listings) > _MAX_LISTINGS:
                del self._listings[next(iter(self._listings))]
        described = update.query.described
        if described is not None and update.details is not None:
            self._details.pop(described, None)
            self._details[described] = update.details
            if len(self._details) > _MAX_DETAILS:
                del self._details[next(iter(self._details))]
        self._on_reply(update)
        return True

    def listing(self, path: str) -> Listing | None:
        """Return the last listing of a directory, if it is stored."""
        return self._listings.get(path)

    def show(self, path: str, order: Order, required: str | None = None) -> None:
        """Ask for the listing of a directory.

        Args:
            required: the name of an entry that is listed in any case.
        """
        self.ask(Query(listing=ListingQuery(PathStr(path), order, required or "")))

    def ask(self, query: Query) -> None:
        """Ask questions when those before are answered; newer ones replace those that wait."""
        self._next = self._next.merged(query)
        self._send_questions()

    def count_everything(self) -> None:
        """Let the answers count all entries from now on; the survey has counted these as well."""
        if self._process is not None:
            self._process.ask(Query(everything=True))
        self.is_filtered = False
        self._listings.clear()
        self._details.clear()
        self._described = ""
        self._unanswered = None  # its answer would be ignored

    def find_named(self, name: str) -> None:
        """Ask for all directories of a name; `take_named` returns the answer."""
        self._sought_name = name
        self.ask(Query(name=PathStr(name)))

    def describe(self, path: str) -> None:
        """Ask for the details of a directory, unless it was asked for last."""
        if path != self._described:
            self._described = path
            self.ask(Query(described=PathStr(path)))

    def details(self, path: str) -> Details | None:
        """Return the last details of a directory, if they are stored."""
        return self._details.get(path)

    def take_named(self) -> Update | None:
        """Return the answer to `find_named`, once."""
        update = self.last_update
        if update is None or self._sought_name is None or update.query.name != self._sought_name:
            return None
        self._sought_name = None
        return update

    def toggle_pause(self) -> None:
        """Pause counting, or resume it."""
        self._is_paused = not self._is_paused
        if self._unanswered is None:
            self._pause_or_resume()

    def _on_reply(self, update: Update) -> None:
        if self._unanswered is None or not update.answers(self._unanswered):
            return
        self._unanswered = None
        self._send_questions()
        if self._unanswered is None:
            self._pause_or_resume()

    def _send_questions(self) -> None:
        process, questions = self._process, self._next
        if process is None or self._unanswered is not None or questions == Query():
            return
        self._unanswered = questions
        if process.is_paused:
            process.resume()
        process.ask(questions)
        self._next = Query()

    def _pause_or_resume(self) -> None:
        process = self._process
        if process is not None and process.is_paused is not self._is_paused:
            if self._is_paused:
                process.pause()
            else:
                process.resume()
