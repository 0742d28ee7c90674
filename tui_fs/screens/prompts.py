"""The two fields below the browser's list: a part of a name, and a path."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from tui_fs.model.paths import is_shown_as_it_is, upwards
from widgets.path_input import PathInput


class Prompts(Widget):
    """Hidden until it asks."""

    BINDINGS = [Binding("escape", "end_search", tooltip="End the search")]

    class Searched(Message):
        """The person types a part of a name."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class PathTyped(Message):
        """The person has typed a path, absolute or from the directory shown; any text may come."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    class Closed(Message):
        """The person is done with typing."""

    def compose(self) -> ComposeResult:
        """Lay out both fields."""
        path = PathInput(id="path-input", classes="hidden")
        path.border_title = "path"
        yield path
        search = Input(id="search-input", placeholder="part of a name", classes="hidden")
        search.border_title = "search"
        yield search

    def ask_for_search(self, text: str) -> None:
        """Let the person go on with a search."""
        self._ask("#search-input", text)

    def ask_for_path(self, path: str) -> None:
        """Let the person type a path, beginning with as much of this one as can be typed."""
        typable = next(part for part in upwards(path) if is_shown_as_it_is(part))
        self._ask("#path-input", typable.rstrip("/") + "/")

    def close(self) -> None:
        """Hide the fields."""
        for field in self.query(Input):
            field.add_class("hidden")
        self.post_message(self.Closed())

    def _ask(self, selector: str, value: str) -> None:
        field = self.query_one(selector, Input)
        field.remove_class("hidden")
        field.value = value
        field.cursor_position = len(value)
        # At once: what is typed next must not be taken for keys of the list.
        self.screen.set_focus(field)

    def on_input_changed(self, message: Input.Changed) -> None:
        """Tell the search while it is typed."""
        message.stop()
        if message.input.id == "search-input" and not message.input.has_class("hidden"):
            self.post_message(self.Searched(message.value))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Keep the search."""
        message.stop()
        if message.input.id == "search-input":
            self.post_message(self.Searched(message.value))
            self.close()

    def action_end_search(self) -> None:
        """Search no longer."""
        self.post_message(self.Searched(""))
        self.close()

    def on_path_input_chosen(self, message: PathInput.Chosen) -> None:
        """Tell the path; the field stays until somebody finds it good."""
        message.stop()
        self.post_message(self.PathTyped(message.path))

    def on_path_input_cancelled(self, message: PathInput.Cancelled) -> None:
        """Hide the field."""
        message.stop()
        self.close()
