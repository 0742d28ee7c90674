"""Reports what works on this machine, and how to make the rest work."""

import locale
import os
import sys
from typing import NamedTuple

from msgspec import Struct

from tui_fs.job.store import jobs_directory
from tui_fs.linux.logind import ends_at_logout
from tui_fs.linux.missing_figures import missing_figures
from tui_fs.linux.permissions import Capability, missing_capabilities, user_namespace
from tui_fs.linux.tools import ENGINE, HOW_TO_GET_THE_ENGINE, PY_SPY, find_tool, why_rejected
from tui_fs.model.calls import TraceSource
from tui_fs.model.errors import BadInput, Missing
from tui_fs.model.figures import MissingFigure
from tui_fs.model.paths import displayable, harmless
from tui_fs.model.strategy import Mechanism
from tui_fs.safety.confinement import available
from tui_fs.safety.policy import read_policy
from tui_fs.strategies.registry import STRATEGIES, package_of, remedy
from tui_fs.tracing.select_source import SourceState, open_source, states

_TO_DELETE = (Capability.DAC_OVERRIDE, Capability.FOWNER)
_TRACING_TOOLS = ("strace", "bpftrace")


class ToolState(Struct, frozen=True):
    """A tool that a strategy or a source of counts uses.

    Attributes:
        path: empty if it is not installed.
        remedy: what to do if it is missing or the wrong build.
    """

    name: str
    path: str
    version: str
    needed_by: tuple[str, ...]
    remedy: str


class TracingState(Struct, frozen=True):
    """The default source of call counts, and all sources."""

    source: TraceSource
    note: str
    sources: tuple[SourceState, ...]


class Privileges(Struct, frozen=True):
    """The privileges of this process.

    Attributes:
        is_root: root in the initial user namespace, with all capabilities needed to delete.
    """

    uid: int
    is_root: bool
    note: str


class EngineState(Struct, frozen=True):
    """The native engine.

    Attributes:
        path, version: empty if it is not installed or does not answer.
    """

    is_present: bool
    note: str
    path: str = ""
    version: str = ""


class MechanismState(Struct, frozen=True):
    """Whether a mechanism can keep the tools inside the targets, and what would enable it."""

    kind: Mechanism
    usable: bool
    note: str


class Terminal(Struct, frozen=True):
    """The terminal for the screens."""

    term: str
    is_terminal: bool
    encoding: str


class Diagnosis(Struct, frozen=True):
    """Everything `doctor` reports."""

    tools: tuple[ToolState, ...]
    tracing: TracingState
    privileges: Privileges
    engine: EngineState
    terminal: Terminal
    jobs: str
    logout: str
    policy: str
    missing_figures: tuple[MissingFigure, ...]
    confinement: tuple[MechanismState, ...]


class Row(NamedTuple):
    """One line of the diagnosis.

    Attributes:
        works: None for a plain statement.
        name: of the tool or source; empty for a statement.
    """

    text: str
    name: str = ""
    works: bool | None = None


class Section(NamedTuple):
    """The rows below one heading."""

    title: str
    rows: tuple[Row, ...]


def sections(diagnosis: Diagnosis) -> tuple[Section, ...]:
    """Return the diagnosis in words, the same for the command line and the screen."""
    tracing, privileges, terminal = diagnosis.tracing, diagnosis.privileges, diagnosis.terminal
    user = f"uid {privileges.uid}{' (root)' if privileges.is_root else ''}"
    standard_output = "a terminal" if terminal.is_terminal else "not a terminal"
    missing = [Row(figure.sentence, works=False) for figure in diagnosis.missing_figures]

    def source_row(source: SourceState) -> Row:
        default = " (used by default)" if source.kind == tracing.source else ""
        return Row(f"{source.note}{default}", source.kind, source.usable)

    return (
        Section("tools", tuple(map(_tool_row, diagnosis.tools))),
        Section("system call counts", tuple(map(source_row, tracing.sources))),
        Section(
            "confinement of the tools to their targets",
            tuple(Row(state.note, state.kind, state.usable) for state in diagnosis.confinement),
        ),
        Section("privileges", (Row(privileges.note, user, privileges.is_root),)),
        Section("engine", (Row(diagnosis.engine.note, works=diagnosis.engine.is_present),)),
        Section(
            "terminal",
            (
                Row(
                    f"TERM={displayable(terminal.term) or 'not set'}, standard output is "
                    f"{standard_output}, {terminal.encoding}"
                ),
            ),
        ),
        Section("jobs", (Row(f"stored in {displayable(diagnosis.jobs)}"), Row(diagnosis.logout))),
        Section("policy", (Row(diagnosis.policy),)),
        Section("figures", tuple(missing) or (Row("all can be measured", works=True),)),
    )


def _tool_row(tool: ToolState) -> Row:
    words = [displayable(tool.path)] if tool.path else []
    if not tool.path and tool.remedy == remedy(tool.name):
        words = ["not installed"]
    if tool.version:
        words.append(harmless(tool.version))
    text = "; ".join(filter(None, (", ".join(words), tool.remedy)))
    return Row(text, tool.name, bool(tool.path) and not tool.remedy)


def diagnose() -> Diagnosis:
    """Return the diagnosis of this machine."""
    picked = open_source(None)
    # Python writes UTF-8 where the locale is C, or is not installed
    encoding = "UTF-8" if sys.flags.utf8_mode else locale.nl_langinfo(locale.CODESET)
    return Diagnosis(
        tools=_tools(),
        tracing=TracingState(picked.kind, picked.note, states()),
        privileges=_privileges(),
        engine=_engine(),
        terminal=Terminal(os.environ.get("TERM", ""), os.isatty(1), encoding),
        jobs=jobs_directory(),
        logout=ends_at_logout() or "a job continues after logout",
        policy=_policy(),
        missing_figures=missing_figures(),
        confinement=_confinement(),
    )


def _confinement() -> tuple[MechanismState, ...]:
    notes = {
        Mechanism.NAMESPACE: "other file systems are read-only for the tools",
        Mechanism.LANDLOCK: "the tools may only remove, and only beneath the targets",
    }
    problems = {mechanism: available().reason(mechanism) for mechanism in Mechanism}
    return tuple(
        MechanismState(mechanism, not problem, problem or notes[mechanism])
        for mechanism, problem in problems.items()
    )


def _privileges() -> Privileges:
    uid = os.geteuid()
    if uid != 0:
        note = "kernel counters need root"
        return Privileges(uid, False, note)
    mapping = user_namespace()
    if mapping is not None:
        note = (
            f"root only inside a user namespace (uid_map: {mapping}): kernel counters need root "
            "outside it"
        )
        return Privileges(uid, False, note)
    lacking = missing_capabilities(*_TO_DELETE)
    if lacking:
        names = ", ".join(f"CAP_{capability.name}" for capability in lacking)
        return Privileges(uid, False, f"root without {names}: some deletions may be refused")
    if missing_capabilities(Capability.PERFMON) and missing_capabilities(Capability.SYS_ADMIN):
        note = "may delete everything; kernel counters need CAP_PERFMON, which is missing"
        return Privileges(uid, True, note)
    note = "may delete everything and use kernel counters"
    return Privileges(uid, True, note)


def _engine() -> EngineState:
    try:
        tool = find_tool(ENGINE)
    except Missing as error:
        return EngineState(False, str(error))
    if tool is None:
        how = why_rejected(ENGINE) or f"not installed; {HOW_TO_GET_THE_ENGINE}"
        return EngineState(False, f"{how}; everything except the strategy parallel works")
    if not tool.version:
        return EngineState(
            False, f"{displayable(tool.path)} does not answer; reinstall tui-fs", tool.path
        )
    note = f"{harmless(tool.version)}, {displayable(tool.path)}"
    return EngineState(True, note, tool.path, tool.version)


def _policy() -> str:
    """Return a summary of the policy files, or the sentence about a damaged one."""
    try:
        policy = read_policy(known_strategies=STRATEGIES)
    except BadInput as error:
        return str(error)
    words = ", ".join(map(displayable, policy.sources)) or "no policy file"
    if policy.read_only is not None:
        words += f"; deleting is switched off by {policy.read_only}"
    return words


def _tools() -> tuple[ToolState, ...]:
    users: dict[str, list[str]] = {}
    for strategy in STRATEGIES.values():
        for tool in strategy.tools:
            users.setdefault(tool, []).append(f"strategy {strategy.name}")
    for tool in _TRACING_TOOLS:
        users[tool] = [f"--trace {tool.removesuffix('trace') if tool == 'bpftrace' else tool}"]
    users[PY_SPY] = ["lab run profile"]
    gnu = {tool for strategy in STRATEGIES.values() for tool in strategy.gnu_tools}
    states_of_tools: list[ToolState] = []
    for name, needed_by in users.items():
        try:
            tool_info = find_tool(name)
            advice = "" if tool_info else remedy(name)
        except Missing as error:
            tool_info, advice = None, str(error)
        if tool_info and name in gnu and not tool_info.is_gnu:
            advice = f"not the GNU build; install the package {package_of(name)}"
        states_of_tools.append(
            ToolState(
                name,
                tool_info.path if tool_info else "",
                tool_info.version if tool_info else "",
                tuple(needed_by),
                advice,
            )
        )
    return tuple(states_of_tools)
