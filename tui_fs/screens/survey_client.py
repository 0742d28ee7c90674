"""What a screen asks of a survey, one question after the other, also while counting is paused."""

from tui_fs.model.survey import Ranking
from tui_fs.survey.process import SurveyProcess, Update


class SurveyClient:
    """Asks for what is wished last.

    A question goes out when the one before it is answered: whoever walks quickly through
    directories does not wait for those that were left again. A paused survey answers nothing,
    so it is woken for the time that an answer takes.
    """

    def __init__(self, process: SurveyProcess) -> None:
        self._process = process
        self._path: str | None = None
        self._by: Ranking | None = None
        self._name: str | None = None
        self._open: tuple[str | None, Ranking | None, str | None] | None = None
        self._is_paused = False

    @property
    def is_paused(self) -> bool:
        """Whether counting stands still at the person's wish."""
        return self._is_paused

    def show(self, path: str) -> None:
        """Wish for the listing of a directory."""
        self._path = path
        self._ask()

    def rank(self, by: Ranking) -> None:
        """Wish for the directories that come first."""
        self._by = by
        self._ask()

    def name(self, name: str) -> None:
        """Wish for all directories of a name."""
        self._name = name
        self._ask()

    def toggle_pause(self) -> None:
        """Let counting stand still, or go on."""
        self._is_paused = not self._is_paused
        if self._open is None:
            self._rest()

    def heard(self, update: Update) -> None:
        """Take notice of what the survey has told."""
        match self._open:
            case None:
                return
            case (path, by, name):
                if (
                    (path is not None and (update.listing is None or update.listing.path != path))
                    or (by is not None and update.ranked_by is not by)
                    or (name is not None and update.named != name)
                ):
                    return
        self._open = None
        self._ask()
        if self._open is None:
            self._rest()

    def _ask(self) -> None:
        if self._open is not None or (self._path, self._by, self._name) == (None, None, None):
            return
        self._open = (self._path, self._by, self._name)
        if self._process.is_paused:
            self._process.resume()
        if self._path is not None:
            self._process.show(self._path)
        if self._by is not None:
            self._process.rank(self._by)
        if self._name is not None:
            self._process.name(self._name)
        self._path = self._by = self._name = None

    def _rest(self) -> None:
        """Stand still or go on, as the person wants it."""
        if self._is_paused and not self._process.is_paused:
            self._process.pause()
        elif not self._is_paused and self._process.is_paused:
            self._process.resume()
