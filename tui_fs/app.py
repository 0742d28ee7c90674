"""The Textual application: composes the screens and routes between them."""

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.color import Color
from textual.command import CommandList, CommandPalette
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES

from tui_fs.screens.base import BaseScreen, Settings
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.start import StartScreen
from tui_fs.survey.process import SurveyProcess
from tui_fs.widgets.changed_lines_driver import ChangedLinesDriver
from tui_fs.widgets.contrast import readable
from tui_fs.widgets.one_shot_timers import OneShotTimers

# Each screen that the first one does not show is loaded when it is opened.
if TYPE_CHECKING:
    from tui_fs.screens.fleet_client import FleetClient
    from tui_fs.screens.report import ResumeRequested

TRUECOLOR_THEME, FEW_COLOURS_THEME = "nord", "ansi-dark"
"""With fewer colours than 16 million, nord's dark blue becomes teal, and its greys the same."""

_COLOURED_TEXT = ("text-primary", "text-warning", "text-error", "text-success", "text-accent")
_SOON = ("job.planning", "screens.run", "screens.preview", "screens.jobs", "screens.maintenance")
"""Loaded one by one soon after the first picture, so that the first key for them need not wait."""
_QUIET_S, _BETWEEN_S = 1.0, 0.1

_SLOW_LINK_INTERVAL_S = 1.0
_THREADS = 256


class _Palette(CommandPalette):
    """The list of actions; Textual fails on a key that turns a page before it is drawn."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).size:
            super()._action_command_list(action)


class TuiFsApp(OneShotTimers, App[None]):
    """The interactive program.

    Args:
        path: canonical absolute path of the directory to open, or with `shows_start` of the present
            directory.
        shows_start: begin with the file systems instead of a directory.
        fleet: hosts whose screen opens first, instead of a directory.
        imported: a file that ncdu has exported, shown read-only instead of `path`.
        survey: one of `path` or `imported` that runs already; a new one by default.
        slow_link: redraw once a second instead of four times.
        read_only: deleting is switched off.
        theme: the name of one of Textual's themes.
    """

    TITLE = "tui-fs"
    CSS_PATH = "app.tcss"
    BINDINGS = [
        Binding(
            "ctrl+p",
            "command_palette",
            "actions",
            priority=True,
            tooltip="Search all actions of this screen by name",
        ),
        Binding("ctrl+q", "quit", priority=True, tooltip="Quit; running jobs continue"),
        Binding("ctrl+z", "suspend_process", "suspend", tooltip="Suspend; fg in the shell resumes"),
        Binding("F", "start", "file systems", tooltip="Show which file systems are full"),
        Binding("J", "jobs", "jobs", tooltip="List all jobs"),
        Binding("L", "lab", "lab", tooltip="Repeat published experiments on this machine"),
        Binding("I", "doctor", "this machine", tooltip="What works on this machine"),
    ]

    def __init__(
        self,
        path: str,
        *,
        shows_start: bool = False,
        imported: str | None = None,
        survey: SurveyProcess | None = None,
        fleet: "FleetClient | None" = None,
        slow_link: bool = False,
        read_only: bool = False,
        theme: str = TRUECOLOR_THEME,
    ) -> None:
        # Both before the style sheet is read: a change of the theme reads it twice more, and
        # NO_COLOR keeps the terminal's own two colours.
        self.set_reactive(App.theme, theme)
        super().__init__(ChangedLinesDriver, ansi_color=BUILTIN_THEMES[theme].ansi)
        self._path = path
        self._shows_start = shows_start
        self._imported = imported
        self._survey = survey
        self._fleet = fleet
        self._settings = Settings(read_only=read_only)
        if slow_link:
            self._settings = Settings(_SLOW_LINK_INTERVAL_S, read_only)
        self.animation_level = "none"

    def get_css_variables(self) -> dict[str, str]:
        """Return the colours of the theme, with coloured text that is readable."""
        variables = super().get_css_variables()
        if not self.current_theme.ansi:
            backgrounds = [Color.parse(variables[name]) for name in ("background", "surface")]
            for name in _COLOURED_TEXT:
                variables[name] = readable(Color.parse(variables[name]), backgrounds).hex
        return variables

    def on_mount(self) -> None:
        """Open the first screen."""
        # A thread that waits for a file system which does not answer never returns.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
        self.push_screen(self.first_screen())
        self._load_later(_SOON, _QUIET_S)

    def _load_later(self, modules: Sequence[str], delay_s: float) -> None:
        # Not in a thread: a survey that is forked meanwhile would wait for its locks for ever.
        def load() -> None:
            import_module(f"tui_fs.{modules[0]}")
            self._load_later(modules[1:], _BETWEEN_S)

        if modules:
            self.set_timer(delay_s, load)

    def on_resize(self) -> None:
        """Draw everything again: the terminal has moved or cut what it showed."""
        if isinstance(self._driver, ChangedLinesDriver):
            self._driver.forget()

    def first_screen(self) -> Screen[None]:
        """Return the first screen."""
        if self._fleet is not None:
            from tui_fs.screens.fleet import FleetScreen

            return FleetScreen(self._fleet, self._path, self._settings)
        if self._shows_start:
            return StartScreen(self._path, self._settings)
        return BrowserScreen(self._path, self._settings, self._imported, self._survey)

    def on_resume_requested(self, message: "ResumeRequested") -> None:
        """Preview the rest of a dead job."""
        from tui_fs.screens.preview import PreviewScreen

        self.push_screen(PreviewScreen(message.died.paths, self._settings, message.died))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a sentence on the uppermost screen that is no dialog."""
        notify = super().notify  # without a screen of this program
        for screen in self.screen_stack:
            if isinstance(screen, BaseScreen):
                notify = screen.notify
        notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Return all that the keys of the screen do, and what has no key."""
        if isinstance(screen, BaseScreen):
            for action in screen.actions():
                if action.action != "command_palette":
                    run = partial(self.run_action, action.action, action.node)
                    yield SystemCommand(f"{action.text} ({', '.join(action.keys)})", "", run)
        theme = "Theme: change the colours until you quit"
        yield SystemCommand(theme, "", self.action_change_theme)

    async def action_command_palette(self) -> None:  # type: ignore[override]  # awaited
        """List the actions of the screen; a question has none but its answers."""
        if isinstance(self.screen, BaseScreen):
            palette = _Palette(placeholder="a part of what you want to do")
            await self.push_screen(palette)
            palette.query_one(CommandList).border_subtitle = "↑↓ choose  enter do it  esc close"

    def action_start(self) -> None:
        """Return to the file systems if they are open; otherwise open them."""
        if self._imported is not None:
            return
        if any(isinstance(screen, StartScreen) for screen in self.screen_stack):
            while not isinstance(self.screen, StartScreen):
                self.pop_screen()
        else:
            self.push_screen(StartScreen(self._path, self._settings))

    def action_jobs(self) -> None:
        """Show the jobs, once."""
        from tui_fs.screens.jobs import JobsScreen

        if not isinstance(self.screen, JobsScreen):
            self.push_screen(JobsScreen(self._settings))

    def action_doctor(self) -> None:
        """Show the diagnosis of this machine, once."""
        from tui_fs.screens.doctor import DoctorScreen

        if not isinstance(self.screen, DoctorScreen):
            self.push_screen(DoctorScreen(self._settings))

    def action_lab(self) -> None:
        """Return to the lab or its running experiment if open; otherwise open the lab."""
        from tui_fs.screens.lab.experiments import LabScreen
        from tui_fs.screens.lab.run import LabRunScreen

        for screen in reversed(self.screen_stack):
            if isinstance(screen, LabScreen | LabRunScreen):
                while self.screen is not screen:
                    self.pop_screen()
                return
        browsers = [screen for screen in self.screen_stack if isinstance(screen, BrowserScreen)]
        target = browsers[-1].path if browsers and self._imported is None else ""
        self.push_screen(LabScreen(target, self._settings))
