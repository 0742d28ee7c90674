"""An explanation of one system call of a job."""

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui_fs.model.calls import HARMLESS_ERRORS, NORMAL, REMOVING_CALLS, CallCount, CallLine
from tui_fs.model.snapshot import Snapshot
from tui_fs.model.strategy import StrategyName
from tui_fs.model.units import call_time, count
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.widgets.dialog import Dialog
from tui_fs.widgets.footer import linked_hints


def explanation(
    line: CallLine, lines: Sequence[CallLine], strategy: StrategyName, snapshot: Snapshot
) -> list[str]:
    """Return what the kernel does, why there are this many calls, and what they cost here.

    Args:
        line: the call.
        lines: all calls of the job.
    """
    guide = line.guide
    reason = STRATEGIES[strategy].call_reasons.get(line.name, guide.reason)
    sentences = [guide.action, f"{strategy}: {reason}", _cost(line, lines, snapshot)]
    if line.counted.errors:
        is_normal = ", which is normal" if line.note.startswith(NORMAL) else ""
        errors = f"{count(line.counted.errors)} of its calls returned an error{is_normal}. "
        word = line.note.removeprefix(NORMAL)
        failed = "The tools reported failures; x lists them."
        sentences.append(errors + HARMLESS_ERRORS.get(word, failed))
    manual = f"Manual page: {guide.man}. To see it in an experiment: tui-fs lab run"
    sentences.append(f"{manual} {guide.experiment}")
    return sentences


def _cost(line: CallLine, lines: Sequence[CallLine], snapshot: Snapshot) -> str:
    """Return the share of a call in all calls and in their time, as far as measured."""
    counted, total = line.counted, sum(other.counted.calls for other in lines)
    if not counted.calls:
        times = "once" if line.predicted == 1 else f"{count(line.predicted)} times"
        if snapshot.started is None:
            return f"It is predicted {times}."
        return f"It was predicted {times} and has not been made so far."
    words = f"It makes up {count(counted.calls)} of {count(total)} calls here"
    total_s = sum(other.counted.seconds or 0.0 for other in lines)
    if counted.seconds is not None and total_s > 0:
        each_us = 1e6 * counted.seconds / counted.calls
        share = f"{100 * counted.seconds / total_s:.0f} %"
        words = f"{words} and {share} of their time, {each_us:,.1f} µs each"
        if counted.quantiles_s is None:
            return f"{words}."
        words = f"{words}. {_times(counted)}"
        return f"{words} {counted.waits_text}" if line.name in REMOVING_CALLS else words
    usage = snapshot.usage
    if usage is not None and usage.system_s and snapshot.usage_entries:
        each_us = 1e6 * usage.system_s / snapshot.usage_entries
        return (
            f"{words}. This counter measures no times; all calls together take {each_us:.1f} µs of "
            "kernel time for each entry."
        )
    return f"{words}. This counter measures no times."


def _times(counted: CallCount) -> str:
    assert counted.quantiles_s is not None
    p50, p99 = map(call_time, counted.quantiles_s)
    sample = "Half of them"
    if counted.timed_calls:
        sample = f"{count(counted.timed_calls)} of them were timed alone: half"
    return f"{sample} took at most {p50} (p50), and 99 of 100 at most {p99} (p99)."


class CallDialog(Dialog[None]):
    """A box that explains a call; the arrows lead to the others."""

    BINDINGS = [
        Binding("escape,q,enter,left,h", "dismiss", "close"),
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,space", "scroll(5)", show=False),
        Binding("pageup", "scroll(-5)", show=False),
    ]

    def __init__(
        self,
        lines: Sequence[CallLine],
        strategy: StrategyName,
        snapshot: Snapshot,
        name: str = "",
    ) -> None:
        """Create a dialog.

        Args:
            lines: the calls of the job, at least one.
            snapshot: the job.
            name: the call to begin with; the first one by default.
        """
        super().__init__()
        self._lines, self._strategy, self._snapshot = list(lines), strategy, snapshot
        names = [line.name for line in lines]
        self._index = names.index(name) if name in names else 0

    def compose(self) -> ComposeResult:
        """Lay out the explanation."""
        with VerticalScroll(classes="box", can_focus=False) as box:
            box.border_subtitle = linked_hints(
                ("↑↓", "other calls", "screen.move(1)"), ("esc", "close", "screen.dismiss")
            )
            yield Static(Text(""), id="call")

    def on_mount(self) -> None:
        """Show the first call."""
        self._show()

    def action_move(self, calls: int) -> None:
        """Explain another call."""
        self._index = (self._index + calls) % len(self._lines)
        self._show()

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def _show(self) -> None:
        line = self._lines[self._index]
        self.query_one(VerticalScroll).border_title = f"{line.name} · {line.guide.group}"
        sentences = explanation(line, self._lines, self._strategy, self._snapshot)
        text = "\n\n".join(sentences)
        self.query_one("#call", Static).update(Text(text))
