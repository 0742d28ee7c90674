"""What the screens beside the browser share: they show its survey and its marks."""

from textual.binding import Binding
from textual.widgets import Static

from tui_fs.screens.browser_access import BrowserAccess
from tui_fs.screens.frame import FramedScreen, Settings
from tui_fs.screens.selection import marks_line
from tui_fs.survey.process import Update


class SideScreen(FramedScreen):
    """A screen over the browser that goes on counting."""

    BINDINGS = [
        Binding("escape,q,left,h,backspace", "app.pop_screen", tooltip="Go back"),
        Binding("u", "unmark_all", tooltip="Remove all marks"),
    ]

    def __init__(self, browser: BrowserAccess, update: Update, settings: Settings) -> None:
        super().__init__(settings)
        self.browser = browser
        self.update_shown = update

    def take(self, update: Update) -> None:
        """Show a new update of the survey, and what is marked."""
        self.update_shown = update
        # Before it is mounted it will show the update itself; once closed it has no widgets left.
        if self.is_mounted and self in self.app.screen_stack:
            self.show_update()

    def show_update(self) -> None:
        """Show `update_shown`; extended by every screen."""
        line = marks_line(self.browser.marks, hint="u unmarks")
        self.query_one("#marks", Static).update(line)

    def action_unmark_all(self) -> None:
        """Remove all marks."""
        self.browser.marks.clear()
        self.show_update()
