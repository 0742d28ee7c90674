"""Read and write docs/contract-matrix.md: what every strategy was seen to do in every case."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.matrix.case import Case, Group

_VERSIONS = "Versions: "
PAGE = Path(__file__).parents[2] / "docs" / "contract-matrix.md"
WRITE_VARIABLE = "TUI_FS_WRITE_MATRIX"
HOW_TO_WRITE = "python -m tests.matrix"

Cells = dict[tuple[str, str], str]
"""What was observed, by the case's name and the strategy's."""

_CELL_END = re.compile(r"(?<!\\)\|")


def read_page(text: str) -> Cells:
    """Return the cells of the page's tables."""
    cells: Cells = {}
    strategies: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            continue
        first, second, *others = (cell.strip() for cell in _CELL_END.split(line)[1:-1])
        if first == "case":
            strategies = others
        elif set(first) != {"-"} and second:
            for strategy, cell in zip(strategies, others, strict=True):
                cells[_unescaped(first), strategy] = _unescaped(cell)
    return cells


def read_versions(text: str) -> str:
    """Return what the page was made with."""
    lines = text.splitlines()
    return next((line[len(_VERSIONS) :] for line in lines if line.startswith(_VERSIONS)), "")


def page_text(
    groups: Sequence[Group],
    cells: Mapping[tuple[str, str], str],
    versions: str,
    not_served: Mapping[str, str],
) -> str:
    """Return the whole page.

    Args:
        not_served: cases that are not repeated on a served file system, with the reason.
    """
    lines = [_HEAD.format(how=HOW_TO_WRITE), _VERSIONS + versions, "", _SERVED]
    lines += [f"- {_escaped(name)}: {reason}." for name, reason in not_served.items()]
    for group in groups:
        strategies = group.strategies
        lines += ["", f"## {group.title}", "", _row("case", "promise", *strategies)]
        lines.append(_row(*["---"] * (2 + len(strategies))))
        for case in group.cases:
            observed = [
                case.not_for.get(strategy) or cells.get((case.name, strategy), "")
                for strategy in strategies
            ]
            row = (case.name, _promises(case, strategies), *observed)
            lines.append(_row(*map(_escaped, row)))
    return "\n".join(lines) + "\n"


def _promises(case: Case, strategies: Sequence[str]) -> str:
    """Join the promises, each named for its strategies where not all promise the same."""
    by_sentence: dict[str, list[str]] = {}
    for strategy in strategies:
        if strategy not in case.not_for:
            by_sentence.setdefault(case.promise_of(strategy).sentence, []).append(strategy)
    if len(by_sentence) == 1:
        return next(iter(by_sentence))
    return " ".join(f"{', '.join(names)}: {sentence}" for sentence, names in by_sentence.items())


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


_SERVED = """\
The cells of the strategy parallel also apply to a tree behind a server that answers late. The tests
repeat them on a FUSE file system that shows a directory of ext4 and waits 0.2 ms in each request.
Where the type of an entry matters, they also repeat them with a server that does not report types.
Faults of the server have a table of their own, the last one. These cases are not repeated:
"""

_HEAD = """\
# Contract matrix

This page shows what the installed program does with every strategy in every case that can go wrong.
The command is `tui-fs delete TARGET --strategy S --yes --json`. The tests in `tests/matrix` write
the page and compare it with the program: a cell that differs from what the program does fails.
To write the page again, run `{how}` as root in the repository.

A cell contains the outcome, the exit code in brackets, and the sentence of the report or of the
refusal. Failures follow, with their reasons and numbers. After "done" the sentence "Nothing of it
is left." is omitted. TARGET is the directory to delete. N stands for a number that differs from run
to run', because the case happens while the job runs or the disk cannot be read.

Besides the promise of its row, every cell has these properties:

- Another tree is beside the target. Unless the target has a disk of its own, it contains symbolic
  and hard links to that tree. No name, byte, mode or time of that tree changes.
- The program reports exit code 0 and "done" only if the target is gone. If the target is gone, the
  program reports no other outcome, unless the supervisor itself has died.
- After a refusal (exit code 3), a usage error (2) or a missing tool (4), no entry is missing.
- If no other process changes the tree, the entries that are reported as deleted and the entries
  that are left are together the entries that were there. Every reported failure is in the target.
- No traceback is shown to the user. The log of a job that ended by itself contains none. No command
  waits forever.
"""
