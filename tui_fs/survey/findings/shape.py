"""The shape of a tree: huge directories, emptied ones, depth, long names, groups, odd names."""

from collections.abc import Sequence

from msgspec import Struct

from tui_fs.model.finding import Finding, FindingKind, Severity
from tui_fs.model.paths import PATH_MAX_BYTES, PathStr, displayable
from tui_fs.model.survey import NamedGroup, Ranking
from tui_fs.model.units import bytes_iec, count, counted
from tui_fs.survey.findings.base import PATHS_NAMED, Evidence, FindingType, flag_type
from tui_fs.survey.records import DirectoryFlag
from tui_fs.survey.table import NO_ROW, DirectoryTable

FLAT_ENTRIES = 100_000
SUBDIRECTORIES = 50_000
"""ext4 without dir_nlink allows 64,998; every rmdir needs a lookup in such a directory."""

DEEP_LEVELS = 900
"""Python's shutil.rmtree fails near this depth; tools that work by path fail at PATH_MAX."""

LONG_PATH_BYTES = 3_900
LONG_NAME_BYTES = 250
EMPTIED_FROM_BYTES = 1 << 20
EMPTIED_SHARE = 8
"""Names fill half to three quarters of an ext4 directory that has only grown."""

_NOT_READ = DirectoryFlag.UNREADABLE | DirectoryFlag.ELSEWHERE


def _detect_flat(evidence: Evidence) -> list[Finding]:
    if evidence.counted.max_entries < FLAT_ENTRIES:
        return []
    return [
        Finding(
            FindingKind("flat"),
            Severity.WARNING,
            directory.path,
            {"entries": directory.entries, "index_bytes": directory.index_bytes},
            f"{directory.entries:,} names in one directory: listing it reads all of them.",
            (
                "Shell patterns (rm *) fail here; every strategy of tui-fs can delete this "
                "directory."
            ),
        )
        for directory in evidence.counted.table.ranked(Ranking.ENTRIES, PATHS_NAMED)
        if directory.entries >= FLAT_ENTRIES
    ]


FLAT = FindingType(
    FindingKind("flat"),
    "one huge directory",
    _detect_flat,
    flag="flat",
    number_labels={"index_bytes": "size of the directory itself"},
)


def _detect_deep(evidence: Evidence) -> list[Finding]:
    levels, path_bytes = evidence.counted.max_depth, evidence.counted.max_path_bytes
    if path_bytes < PATH_MAX_BYTES and levels < DEEP_LEVELS:
        return []
    deep = counted(levels, "level", "levels")
    meaning = f"{deep} deep, with paths of up to {path_bytes:,} bytes."
    if path_bytes >= PATH_MAX_BYTES:
        meaning += " Tools that work by path stop at 4,096 bytes."
    is_by_levels = levels >= DEEP_LEVELS
    row = evidence.counted.deepest if is_by_levels else evidence.counted.longest_path
    meaning += f" The {'deepest' if is_by_levels else 'longest'} path is below this directory."
    return [
        Finding(
            FindingKind("deep"),
            Severity.WARNING,
            _top_of_chain(evidence.counted.table, row),
            {"max_depth": levels, "max_path_bytes": path_bytes},
            meaning,
            "Delete it with the strategy rm or find.",
        )
    ]


def _top_of_chain(table: DirectoryTable, row: int) -> PathStr:
    """Return the directory where the chain of directories down to a row begins.

    None of them but the last has another subdirectory. If that directory has a path that no tool
    can take, return the lowest one above it that has a shorter path. A root is never returned for
    a directory below it.
    """
    while (above := table.parent[row]) != NO_ROW and table.parent[above] != NO_ROW:
        if table.subdirectories[above] > 1 and table.path_bytes[row] < PATH_MAX_BYTES:
            break
        row = above
    return table.path(row)


DEEP = FindingType(
    FindingKind("deep"),
    "very deep",
    _detect_deep,
    number_labels={"max_depth": "levels", "max_path_bytes": "longest path"},
)


def _detect_long_names(evidence: Evidence) -> list[Finding]:
    longest, path_bytes = evidence.counted.longest_name, evidence.counted.max_path_bytes
    if longest < LONG_NAME_BYTES and not LONG_PATH_BYTES <= path_bytes < PATH_MAX_BYTES:
        return []
    named = evidence.counted.paths_with(DirectoryFlag.LONG_NAMES, 1)
    table, row = evidence.counted.table, evidence.counted.longest_path
    return [
        Finding(
            FindingKind("long-names"),
            Severity.INFO,
            named[0] if named else table.path(row),
            {"longest_name_bytes": longest, "max_path_bytes": path_bytes},
            f"Names of up to {longest:,} bytes and paths of up to {path_bytes:,}: the limits "
            "are 255 and 4,096.",
            "Copying the tree or moving it deeper may fail; deleting it does not.",
        )
    ]


LONG_NAMES = FindingType(
    FindingKind("long-names"),
    "long names",
    _detect_long_names,
    number_labels={"longest_name_bytes": "longest name", "max_path_bytes": "longest path"},
)


def _detect_emptied(evidence: Evidence) -> list[Finding]:
    if not evidence.is_finished:
        return []
    table = evidence.counted.table
    rows = [
        row
        for row, size in enumerate(table.index_bytes)
        if size >= EMPTIED_FROM_BYTES
        and table.record_bytes[row] * EMPTIED_SHARE < size
        and not table.flags[row] & _NOT_READ
    ]
    rows.sort(key=table.index_bytes.__getitem__, reverse=True)
    return [
        Finding(
            FindingKind("emptied"),
            Severity.WARNING,
            table.path(row),
            {"entries": table.entries(row), "index_bytes": table.index_bytes[row]},
            f"The directory itself takes {bytes_iec(table.index_bytes[row])} for "
            f"{counted(table.entries(row), 'name', 'names')}. It was emptied and does not shrink, "
            "so listing it stays slow.",
            "tui-fs recreate replaces it by a new, small one with the same owner and mode."
            if table.entries(row) == 0
            else "Empty it, then run tui-fs recreate, which keeps the owner and mode.",
        )
        for row in rows[:PATHS_NAMED]
    ]


EMPTIED = FindingType(
    FindingKind("emptied"),
    "emptied, still huge",
    _detect_emptied,
    headline="index_bytes",
    number_labels={"index_bytes": "size of the directory itself"},
)


def _detect_many_subdirectories(evidence: Evidence) -> list[Finding]:
    if not evidence.is_finished:
        return []
    table = evidence.counted.table
    rows = [row for row, number in enumerate(table.subdirectories) if number >= SUBDIRECTORIES]
    return [
        Finding(
            FindingKind("many-subdirectories"),
            Severity.WARNING,
            table.path(row),
            {"subdirectories": table.subdirectories[row]},
            f"{table.subdirectories[row]:,} subdirectories in one directory.",
            (
                "Some file systems and tools stop at 65,000; every strategy of tui-fs can delete "
                "this directory."
            ),
        )
        for row in rows[:PATHS_NAMED]
    ]


MANY_SUBDIRECTORIES = FindingType(
    FindingKind("many-subdirectories"),
    "many subdirectories",
    _detect_many_subdirectories,
    unit="subdirs",
)

FOREIGN_OWNERS = flag_type(
    "foreign-owners",
    "other owners",
    DirectoryFlag.FOREIGN_OWNERS,
    Severity.INFO,
    "Some entries here belong to users other than the owner of the directory.",
    "Check that their owners do not need them; ls -n shows the owners.",
    names_all=False,
    when_finished=True,
)


class _OddNames(Struct, frozen=True):
    """A property of names.

    Attributes:
        key: of the number of directories.
        has: what such a name has.
    """

    flag: int
    severity: Severity
    key: str
    label: str
    has: str


_ODD_NAMES = (
    _OddNames(
        DirectoryFlag.CONTROL_NAMES,
        Severity.WARNING,
        "directories_control",
        "control characters",
        "control or invisible characters",
    ),
    _OddNames(
        DirectoryFlag.UNDECODABLE_NAMES,
        Severity.INFO,
        "directories_not_utf8",
        "names not in UTF-8",
        "bytes that are not UTF-8",
    ),
    _OddNames(
        DirectoryFlag.SPACE_NAMES,
        Severity.INFO,
        "directories_space",
        "spaces at an end",
        "a leading or trailing space",
    ),
    _OddNames(
        DirectoryFlag.DASH_NAMES,
        Severity.INFO,
        "directories_dash",
        "leading dashes",
        "a leading dash",
    ),
)


_SHOWN_ESCAPED = "tui-fs shows them with escapes and deletes them like all others."
_SHOWN_AS_IS = "tui-fs shows and deletes them like all others."


def _detect_weird_names(evidence: Evidence) -> list[Finding]:
    """Return one finding for each kind of weird name, at the first directory with such a name."""
    if not evidence.is_finished:
        return []
    findings: list[Finding] = []
    for names in _ODD_NAMES:
        number = evidence.counted.flag_counts[names.flag]
        where = f"in {count(number)} directories; this is the first" if number > 1 else "here"
        shown = _SHOWN_AS_IS if names.flag is DirectoryFlag.DASH_NAMES else _SHOWN_ESCAPED
        findings += [
            Finding(
                FindingKind("weird-names"),
                names.severity,
                path,
                {names.key: number},
                f"Names with {names.has} {where}.",
                f"{shown} In a shell, quote them and put -- before them.",
            )
            for path in evidence.counted.paths_with(names.flag, 1)
        ]
    return findings


WEIRD_NAMES = FindingType(
    FindingKind("weird-names"),
    "unusual names",
    _detect_weird_names,
    unit="dirs",
    number_labels={names.key: "directories" for names in _ODD_NAMES},
    variants={names.key: names.label for names in _ODD_NAMES},
)


def _group_findings(groups: Sequence[NamedGroup]) -> list[Finding]:
    return [
        Finding(
            FindingKind("group"),
            Severity.INFO,
            group.paths[0],
            {
                "directories": group.directories,
                "entries": group.totals.entries,
                "allocated_bytes": group.totals.allocated_bytes,
            },
            f"{counted(group.directories, 'directory', 'directories')} named "
            f"{displayable(group.name)}: {counted(group.totals.entries, 'entry', 'entries')}, "
            f"{bytes_iec(group.totals.allocated_bytes)} in total. None has more entries than this.",
            "To delete them in one job, mark all of them with N in the browser.",
        )
        for group in groups
    ]


GROUP = FindingType(
    FindingKind("group"),
    "same-name dirs",
    lambda evidence: _group_findings(evidence.groups),
    flag="",
    headline="entries",
    is_group=True,
)


def _detect_left_out(evidence: Evidence) -> list[Finding]:
    if not evidence.excluded_names:
        return []
    return [
        Finding(
            FindingKind("left-out"),
            Severity.INFO,
            evidence.root,
            {"names": evidence.excluded_names},
            "The export excluded some names; they and their contents are not counted.",
            "Export again without exclude options to count them.",
        )
    ]


LEFT_OUT = FindingType(FindingKind("left-out"), "excluded by export", _detect_left_out)
