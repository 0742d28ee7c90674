"""Write the survey of the browser as a page (HTML): the file name, and the file."""

import os
import re
import time
from functools import partial

from msgspec import Struct
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from tui_fs.model.errors import BadInput
from tui_fs.model.paths import displayable
from tui_fs.survey.export_file import new_file, refuse_taken
from tui_fs.widgets.daemon_thread import in_daemon_thread
from tui_fs.widgets.dialog import Dialog
from tui_fs.widgets.footer import linked_hints
from tui_fs.widgets.key_question import KeyQuestion
from tui_fs.widgets.path_input import PathInput

_MAX_PART = 60
"""Characters of host and path in a suggested name; a file name has at most 255 bytes."""


class PageFile(Struct, frozen=True):
    """A file to write.

    Attributes:
        path: absolute.
        overwrites: the user has confirmed that an existing file is replaced.
    """

    path: str
    overwrites: bool = False


class PageDialog(Dialog[PageFile | None]):
    """Asks for the name of the file; an existing one is replaced only after a question.

    Args:
        root: the surveyed directory.
        is_whole: counting has finished.
    """

    def __init__(self, root: str, *, is_whole: bool) -> None:
        super().__init__()
        self._root = root
        self._is_whole = is_whole

    def compose(self) -> ComposeResult:
        """Lay out the field between what it is for and what is wrong."""
        with Vertical(classes="box") as box:
            box.border_title = "write this survey as a page"
            box.border_subtitle = linked_hints(
                ("enter", "save", "focused.submit"),
                ("tab", "complete", "focused.complete"),
                ("esc", "back", "focused.cancel"),
            )
            text = f"A web page (HTML) of {displayable(self._root)}. It needs no network."
            if not self._is_whole:
                text += (
                    "\nCounting has not finished: the page will have only the counts until "
                    "then, and state it."
                )
            yield Static(Text(text))
            yield PathInput(id="page-path")
            here = displayable(_here())
            yield Static(Text(f"A name without a directory is saved in {here}", "dim"))
            yield Static(Text(""), id="problem")

    def on_mount(self) -> None:
        """Suggest a name."""
        field = self.query_one(PathInput)
        field.value = suggested_name(self._root, os.uname().nodename, time.time())
        field.focus()

    def on_path_input_cancelled(self) -> None:
        """Write nothing."""
        self.dismiss(None)

    def on_path_input_chosen(self, message: PathInput.Chosen) -> None:
        """Check the file."""
        self._check(os.path.normpath(os.path.join(_here(), message.path)))

    @work(exclusive=True)
    async def _check(self, path: str) -> None:
        """Ask before a file is replaced; the file system may not answer."""
        try:
            await in_daemon_thread(partial(refuse_taken, path, overwrites=True))
            is_taken = await in_daemon_thread(partial(os.path.lexists, path))
        except BadInput as error:
            self.query_one("#problem", Static).update(Text(str(error), "bold"))
            return
        if not is_taken:
            self.dismiss(PageFile(path))
            return
        lines = (f"{displayable(path)} exists already.",)
        question = KeyQuestion("Replace the file?", lines, "y", "replaces it")
        if await self.app.push_screen_wait(question):
            self.dismiss(PageFile(path, overwrites=True))


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.expanduser("~")


def suggested_name(root: str, host: str, now_s: float) -> str:
    """Return a file name with host, path and day: ``tui-fs-web1-var-spool-2026-11-27.html``."""
    parts = [re.sub(r"[^A-Za-z0-9._-]+", "_", host) or "host"]
    parts.append(re.sub(r"[^A-Za-z0-9._-]+", "_", root.strip("/").replace("/", "-")) or "root")
    day = time.strftime("%Y-%m-%d", time.localtime(now_s))
    return "-".join(["tui-fs", *(part[:_MAX_PART] for part in parts), day]) + ".html"


def write_page(file: PageFile, content: bytes, *, is_whole: bool) -> str:
    """Write a page; return a sentence on the result."""
    shown = displayable(file.path)
    try:
        with new_file(file.path, overwrites=file.overwrites) as output:
            output.write(content)
    except BadInput as error:
        return f"{error.sentence} Press e to choose another file."
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        return f"{shown} cannot be written: {reason}. Press e to choose another file."
    state = "" if is_whole else " Counting had not finished; the page states it."
    return f"The page is written: {shown}. Open it in a web browser.{state}"
