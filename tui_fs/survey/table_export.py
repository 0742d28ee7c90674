"""Write all directories of a finished survey as CSV or JSON, one after the other."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from tui_fs.model.codec import path_fields
from tui_fs.model.paths import displayable, to_base64
from tui_fs.survey.aggregator import Aggregator
from tui_fs.survey.records import DIRECTORY_FLAGS, DirectoryFlag
from tui_fs.survey.table import DirectoryTable

_NUMBERS = (
    "depth",
    "own_entries",
    "own_inodes",
    "own_apparent_bytes",
    "own_allocated_bytes",
    "index_bytes",
    "subtree_entries",
    "subtree_inodes",
    "subtree_apparent_bytes",
    "subtree_allocated_bytes",
)
_DATES = ("oldest_s", "newest_s")
COLUMNS = ("path", "path_b64", *_NUMBERS, *_DATES, "flags")
"""Own columns count the direct entries, without the size of the directory (index_bytes). Subtree
columns count the directory and everything below it; the dates are those of the subtree as well."""

FLAG_WORDS = {
    flag: word.lower().replace("_", "-")
    for word, flag in vars(DirectoryFlag).items()
    if flag in DIRECTORY_FLAGS
}

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Prefixes that make spreadsheets parse a cell as a formula."""


def write_csv(collector: Aggregator, output: BinaryIO) -> None:
    """Write one line for each directory, in the format of RFC 4180.

    `path` is escaped for display; if that changes it, `path_b64` has the exact bytes. A cell that
    a spreadsheet would parse as a formula gets a leading apostrophe.
    """
    text = io.TextIOWrapper(output, encoding="utf-8", newline="", write_through=True)
    lines = csv.writer(text, lineterminator="\r\n")
    lines.writerow(COLUMNS)
    table = collector.table
    for row in _rows(table):
        path = table.path(row)
        shown = displayable(path)
        numbers = _numbers_of(table, row)
        lines.writerow(
            [
                guarded(shown),
                to_base64(path) if shown != path else "",
                *(numbers[name] for name in _NUMBERS),
                *("" if numbers[name] is None else numbers[name] for name in _DATES),
                " ".join(_words_of(table.flags[row])),
            ]
        )
    text.detach()


def write_json(head: Mapping[str, object], collector: Aggregator, output: BinaryIO) -> None:
    """Write one JSON object: the fields of `head`, then all directories under ``tree``."""
    table = collector.table
    output.write(json.dumps(head, indent=2).removesuffix("\n}").encode())
    output.write(b',\n  "tree": [')
    separator = b"\n    "
    for row in _rows(table):
        fields = {
            **path_fields("path", table.path(row)),
            **_numbers_of(table, row),
            "flags": _words_of(table.flags[row]),
        }
        output.write(separator + json.dumps(fields).encode())
        separator = b",\n    "
    output.write(b"\n  ]\n}\n")


def guarded(cell: str) -> str:
    """Return a cell that no spreadsheet parses as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell


def _rows(table: DirectoryTable) -> Iterator[int]:
    """Yield the rows in depth-first order, siblings sorted by name."""
    waiting = sorted(table.roots(), key=table.name, reverse=True)
    while waiting:
        row = waiting.pop()
        yield row
        waiting += sorted(table.children(row), key=table.name, reverse=True)


def _numbers_of(table: DirectoryTable, row: int) -> dict[str, int | None]:
    subtree = table.subtree(row)
    totals, entries = subtree.totals, table.entries(row)
    has_dates = subtree.newest_s != 0
    return {
        "depth": table.depth[row],
        "own_entries": entries,
        "own_inodes": entries - table.repeats[row],
        "own_apparent_bytes": int(table.apparent[row]),
        "own_allocated_bytes": table.allocated[row],
        "index_bytes": table.index_bytes[row],
        "subtree_entries": totals.entries,
        "subtree_inodes": totals.entries - subtree.repeats,
        "subtree_apparent_bytes": totals.apparent_bytes,
        "subtree_allocated_bytes": totals.allocated_bytes,
        "oldest_s": subtree.oldest_s if has_dates else None,
        "newest_s": subtree.newest_s if has_dates else None,
    }


def _words_of(flags: int) -> list[str]:
    return [word for flag, word in FLAG_WORDS.items() if flags & flag]
