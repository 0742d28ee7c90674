"""The predicted system calls of one strategy."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll

from tui_fs.model.calls import OTHER_CALLS_LABEL, REMOVING_CALLS, about_text
from tui_fs.model.estimate import Estimate
from tui_fs.model.units import count
from tui_fs.screens.frame import FramedScreen, Settings
from widgets.call_table import CallRow, CallTable


class CallsScreen(FramedScreen):
    """Predicted calls by name, the most frequent first."""

    KEYS: ClassVar = (("esc", "back"),)
    EXPLANATION = (
        "How often each system call is expected, all processes of the strategy together. "
        "Calls of the programs' start, of memory and closes are one line: about how many."
    )

    BINDINGS = [Binding("escape,q,c,left,h", "app.pop_screen", tooltip="Go back")]

    def __init__(self, estimate: Estimate, settings: Settings) -> None:
        super().__init__(settings)
        self._estimate = estimate

    def compose_body(self) -> ComposeResult:
        """Lay out the table."""
        with VerticalScroll(id="body"):
            yield CallTable(id="calls")

    def on_mount(self) -> None:
        """Fill the table."""
        estimate = self._estimate
        self.show_place("Calls of", estimate.strategy)
        table = self.query_one(CallTable)
        table.title = "system calls · predicted"
        ordered = sorted(estimate.syscalls.items(), key=lambda item: (-item[1], item[0]))
        rows = [
            CallRow(name, count(number), emphasised=name in REMOVING_CALLS)
            for name, number in ordered
        ]
        if estimate.other_calls is not None:
            rows.append(CallRow(OTHER_CALLS_LABEL, about_text(estimate.other_calls)))
        table.rows = tuple(rows)
        table.footer = f"predicted from {estimate.calls_rest_on}"
