"""The kernel keeps the tools inside the targets: a private mount namespace, and Landlock.

Each stops what the other does not. In the private namespace other file systems are read-only, and
what is mounted inside a target later is not visible; without Landlock everything but the targets is
read-only. Landlock lets a tool only remove, and only inside the targets, even in a directory that
another process moves out while the tool has it open. Neither lets a tool remove the target itself,
so rmdir removes it afterwards, outside the confinement.
"""

import contextlib
import errno
import functools
import os
import threading

from msgspec import Struct

from tui_fs.linux.landlock import abi_version, removal_ruleset, restrict_self
from tui_fs.linux.mount_namespaces import (
    attach_directory,
    clone_directory,
    make_read_only,
    make_writable,
    own_mounts,
)
from tui_fs.linux.mounts import MountTable, mount_of
from tui_fs.linux.permissions import Capability, missing_capabilities
from tui_fs.linux.processes import gain_no_privileges, keep_capabilities
from tui_fs.model.errors import Missing
from tui_fs.model.strategy import Confine, Mechanism

MOST_LEVELS = 500
"""Landlock walks from each entry up to the target, so its cost grows with the square of the depth:
at 2,000 levels a deletion takes 15 times as long, in the namespace alone nearly twice as long."""

_TOOL_CAPABILITIES = (
    Capability.DAC_OVERRIDE,
    Capability.DAC_READ_SEARCH,
    Capability.FOWNER,
    Capability.SYS_RESOURCE,
    Capability.LEASE,
)
"""What root needs to delete: without CAP_SYS_ADMIN a tool cannot mount anything writable again."""

_WATCH_CAPABILITIES = (
    *_TOOL_CAPABILITIES,
    Capability.KILL,
    Capability.SYS_PTRACE,
    Capability.SYS_NICE,
    Capability.CHECKPOINT_RESTORE,
)
"""What the supervisor and the launcher need while tools run: they also signal, rank and examine."""

_COUNT_CAPABILITIES = Capability.PERFMON, Capability.BPF
"""What counting the calls of a tool needs, since Linux 5.8."""

_PARANOID = "/proc/sys/kernel/perf_event_paranoid"

_JOB_CAPABILITIES = (
    *_WATCH_CAPABILITIES,
    *_COUNT_CAPABILITIES,
    Capability.SETPCAP,
    Capability.SYS_ADMIN,
)
"""What they need before: they also confine the tools, and give up capabilities."""

REFUSALS = (errno.EACCES, errno.EROFS, errno.EBUSY)
"""How the kernel refuses what a confined tool must not remove; EBUSY: the root of a mount."""


def give_up_privileges() -> None:
    """Give up, in a supervisor, all privileges that no part of a job uses.

    Raises:
        OSError: the kernel refuses it.
        Missing: a seccomp filter refuses prctl(2).
    """
    gain_no_privileges()
    keep_capabilities(_JOB_CAPABILITIES)


def capabilities_without_confining(paranoid: str = _PARANOID) -> tuple[Capability, ...]:
    """Return what a job needs once no step is left that is confined.

    The calls of a later rmdir are counted, too. Without CAP_PERFMON, and on kernels of Debian and
    Ubuntu with a perf_event_paranoid above 2, only CAP_SYS_ADMIN permits that.

    Raises:
        OSError: /proc/self/status cannot be read.
    """
    needs_admin = bool(missing_capabilities(Capability.PERFMON))
    try:
        with open(paranoid, encoding="ascii") as file:
            needs_admin |= int(file.read()) > 2
    except (OSError, ValueError):  # hidden: it may be so
        needs_admin = True
    counting = (Capability.SYS_ADMIN,) if needs_admin else _COUNT_CAPABILITIES
    return (*_WATCH_CAPABILITIES, *counting)


def give_up_confining(kept: tuple[Capability, ...]) -> str:
    """Give up what only the confinement of tools needs; return why not, empty if done.

    The tools run already, so this must not fail.
    """
    try:
        keep_capabilities(kept)
    except (OSError, MemoryError) as error:
        return f"capabilities could not be given up: {error}"
    return ""


class Availability(Struct, frozen=True):
    """Why a mechanism cannot be used here, with what would enable it; empty if it can."""

    namespace: str
    landlock: str

    def reason(self, mechanism: Mechanism) -> str:
        """Return why a mechanism cannot be used; empty if it can."""
        return self.namespace if mechanism is Mechanism.NAMESPACE else self.landlock


@functools.cache
def available() -> Availability:
    """Try both mechanisms; the result is cached."""
    return Availability(_namespace_problem(), _landlock_problem())


def mechanisms_for(
    wanted: Confine, levels: int, *, is_exposed: bool = False
) -> tuple[Mechanism, ...]:
    """Return the mechanisms for a tree.

    A deep tree gets only the namespace, and only if it is exposed or confinement is required.

    Args:
        levels: the depth of the tree.
        is_exposed: others may write in the tree, or the strategy works by path.
    """
    if wanted is Confine.OFF:
        return ()
    usable = tuple(mechanism for mechanism in Mechanism if not available().reason(mechanism))
    if levels <= MOST_LEVELS:
        return usable
    if not is_exposed and wanted is Confine.AUTO:
        return ()
    return tuple(mechanism for mechanism in usable if mechanism is Mechanism.NAMESPACE)


def why_not(levels: int) -> str:
    """Return why neither mechanism can be used for a tree, as a sentence without its full stop."""
    support = available()
    landlock = support.landlock
    if not landlock and levels > MOST_LEVELS:
        landlock = f"more than {MOST_LEVELS} levels take too long"
    return f"a private mount namespace: {support.namespace}; Landlock: {landlock}"


class ConfinedTarget(Struct, frozen=True):
    """A target that a confined tool may empty.

    Attributes:
        descriptor: open on the confirmed directory.
        mount_point: of the mount that the target is on.
    """

    descriptor: int
    path: str
    mount_point: str

    @classmethod
    def of(cls, descriptor: int, path: str, mounts: MountTable) -> "ConfinedTarget":
        """Return the target at a path, with its mount from the mount table."""
        mount = mount_of(path, mounts)
        return cls(descriptor, path, "/" if mount is None else mount.mount_point)


class Enclosure(Struct, frozen=True):
    """How a tool is confined.

    Attributes:
        is_inside: the tool runs in its only target, which is its working directory.
    """

    mechanisms: tuple[Mechanism, ...]
    targets: tuple[ConfinedTarget, ...]
    is_inside: bool

    def enter(self) -> None:
        """Confine this process for ever; call it before execve(2), in the tool's directory.

        Raises:
            OSError: the kernel refuses a call, or a target's path leads to another directory.
            Missing: a seccomp filter refuses prctl(2).
        """
        gain_no_privileges()
        ruleset = -1
        if Mechanism.LANDLOCK in self.mechanisms:
            ruleset = removal_ruleset([target.descriptor for target in self.targets])
        if Mechanism.NAMESPACE in self.mechanisms:
            own_mounts()
            if ruleset >= 0:
                self._write_in_their_mounts()
            else:
                self._write_in_targets()
        keep_capabilities(_TOOL_CAPABILITIES)
        if ruleset >= 0:
            restrict_self(ruleset)  # last, because it also forbids mount(2)
            os.close(ruleset)

    def _write_in_their_mounts(self) -> None:
        """Leave the mounts of the targets writable; Landlock keeps the tool inside the targets.

        A mount of the target alone would not do: Landlock allows in a directory that has left its
        mount what it allows in the root of the mount, so it would not stop what is moved out.
        """
        make_read_only()
        for mount_point in {target.mount_point for target in self.targets}:
            make_writable(mount_point)

    def _write_in_targets(self) -> None:
        """Leave only the targets writable, by mounts of their own."""
        trees = [self._clone(target) for target in self.targets]
        make_read_only()
        for tree, target in zip(trees, self.targets, strict=True):
            if not self.is_inside:
                attach_directory(tree, target.path)
                continue
            # The path is only for getcwd(3), and another user may have replaced it: the tool works
            # in the directory that the descriptor leads to.
            with contextlib.suppress(OSError):
                attach_directory(tree, target.path)
            os.fchdir(tree)
        for tree in trees:
            os.close(tree)

    def _clone(self, target: ConfinedTarget) -> int:
        tree = clone_directory("." if self.is_inside else target.path)
        if not os.path.samestat(os.fstat(tree), os.fstat(target.descriptor)):
            raise OSError(errno.ESTALE, "the path leads to another directory", target.path)
        return tree


def _landlock_problem() -> str:
    try:
        abi_version()
    except OSError as error:
        match error.errno:
            case errno.ENOSYS:
                return "the kernel has no Landlock; it needs Linux 5.13 or later"
            case errno.EOPNOTSUPP:
                return "Landlock is not enabled; add landlock to the kernel parameter lsm="
            case _:
                return f"a seccomp filter refuses Landlock ({error.strerror})"
    return _problem(Mechanism.LANDLOCK)


def _namespace_problem() -> str:
    if missing_capabilities(Capability.SYS_ADMIN):
        return "it needs root (CAP_SYS_ADMIN)"
    return _problem(Mechanism.NAMESPACE)


def _problem(mechanism: Mechanism) -> str:
    """Return why this process cannot use a mechanism, empty if it can.

    A thread tries it: namespaces, Landlock and no_new_privs bind only the thread that asks.
    """
    problems: list[str] = []

    def attempt() -> None:
        try:
            Enclosure((mechanism,), (), is_inside=True).enter()
        except (OSError, Missing) as error:
            problems.append(_refusal(error))

    thread = threading.Thread(target=attempt)
    try:
        thread.start()
    except RuntimeError:
        return "no thread can be started to try it"
    thread.join()
    return problems[0] if problems else ""


def _refusal(error: OSError | Missing) -> str:
    if isinstance(error, Missing):
        return str(error)
    if error.errno == errno.ENOSYS:
        return "it needs Linux 5.12 or later"
    return f"the kernel, a container or a seccomp filter refuses it ({error.strerror})"
