"""The errors of tui-fs, each with one sentence and advice for the user."""

import errno
import os
from collections.abc import Iterable

from tui_fs.model.paths import displayable


class TuiFsError(Exception):
    """The base class of all errors that are shown to the user.

    Attributes:
        sentence: the problem, in one sentence.
        advice: what to do; empty if the sentence already explains it.
    """

    def __init__(self, sentence: str, advice: str = "") -> None:
        super().__init__(sentence, advice)
        self.sentence, self.advice = sentence, advice

    def __str__(self) -> str:
        return f"{self.sentence} {self.advice}".rstrip()


class BadInput(TuiFsError):
    """An argument, a file or a message is invalid."""


class Refused(TuiFsError):
    """A safety rule forbids deleting this target.

    Attributes:
        rule: the rule's short name, stable for programs.
    """

    def __init__(self, sentence: str, advice: str = "", rule: str = "") -> None:
        super().__init__(sentence, advice)
        self.rule = rule


class Missing(TuiFsError):
    """A required tool, resource or privilege is missing."""


class JobFailed(TuiFsError):
    """The supervisor of a job could not be started or has exited."""


_ALIKE = 0.7
"""From 0 to 1: "rate" resembles "strategy" by 0.67, "strace" resembles "ptrace" by 0.83."""


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word that resembles a misspelled one most; empty if none does."""
    import difflib  # takes as long as the command line's parser, and is rarely needed

    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=_ALIKE)), "")


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a question for the nearest known word, or another advice if none is near."""
    nearest = nearest_word(word, known)
    return f"Did you mean {nearest}?" if nearest else otherwise


def cannot_examine(path: str, error: OSError) -> "BadInput | Missing":
    """Return the error for a directory that cannot be opened or examined.

    Only ENOENT means that it does not exist. A limit of this process yields `Missing`.
    """
    number = error.errno or 0
    shown = displayable(path)
    if number == errno.ENOENT:
        return BadInput(f"{shown} does not exist.")
    if number == errno.ENOTDIR:
        return BadInput(f"{shown} is not a directory, or a component of its path is not.")
    reason, advice = _REASONS.get(number, (os.strerror(number), ""))
    kind = Missing if number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM) else BadInput
    return kind(f"{shown} cannot be examined: {reason}.", advice)


_KERNEL_LOG = "Check the kernel log: dmesg."
_REASONS = {
    errno.EACCES: (
        "permission denied",
        (
            "Run tui-fs as root, or as a user with search permission for all directories on that "
            "path."
        ),
    ),
    errno.EIO: ("input/output error (the disk or its file system is failing)", _KERNEL_LOG),
    errno.EUCLEAN: (
        "the file system is damaged",
        f"{_KERNEL_LOG} Unmount the file system and run fsck.",
    ),
    errno.ENOTCONN: (
        "the program that serves this FUSE file system has ended",
        "Unmount it with umount -l, and mount it again.",
    ),
    errno.ESTALE: (
        "stale file handle (the server has removed or replaced it)",
        "Mount the file system again.",
    ),
    errno.ELOOP: (
        "too many symbolic links, or a symbolic link where a directory is expected",
        "Use the path of the directory itself.",
    ),
    errno.ENAMETOOLONG: (
        "its path has more than 4,095 bytes, or a name in it more than the file system allows",
        "Change to a directory on its path and use a relative path.",
    ),
    errno.ENOKEY: ("it is encrypted and the key is not loaded", "Unlock it first."),
    errno.ETIMEDOUT: ("the server does not answer", "Check the connection to the server."),
    errno.EHOSTDOWN: ("the server does not answer", "Check the connection to the server."),
    errno.ENOMEM: ("out of memory", "Stop other programs, or raise the memory limit."),
    errno.EMFILE: ("too many open files", "Raise the limit: ulimit -n."),
    errno.ENFILE: ("too many open files on this system", "Raise fs.file-max with sysctl."),
}
"""Causes and advice by errno for a directory that cannot be examined."""

_MEANINGS = {
    errno.EPERM: "not permitted: an attribute (immutable, append-only; see lsattr), a sticky "
    "directory, an active swap file, or a security policy",
    errno.EACCES: "no permission to change its parent directory or to read the directory itself, "
    "or a security policy forbids it",
    errno.EBUSY: "in use: something is mounted on it, or a process has it open (NFS)",
    errno.ETXTBSY: "in use: a running program or an active swap file",
    errno.EROFS: "the file system or snapshot is read-only; if an error has made it read-only, "
    "the kernel log (dmesg) has the error",
    errno.EUCLEAN: "the file system is damaged: check the kernel log (dmesg), unmount it and run "
    "fsck",
    errno.ENOKEY: "the directory is encrypted and its key is not loaded: unlock it first",
    errno.ENOTCONN: "the program that serves this FUSE file system has ended: unmount it with "
    "umount -l, and mount it again",
    errno.EIO: "the disk or its file system failed: check the kernel log (dmesg)",
    errno.ENOTEMPTY: "the directory is not empty: an entry in it remains, or another process "
    "added one",
    errno.ENAMETOOLONG: "the path is longer than this tool can use (4,096 bytes)",
    errno.ENOSPC: "no space left, not even for the metadata of the deletion: delete or truncate "
    "a large file first",
    errno.EDQUOT: "the disk quota is exceeded, and a deletion needs some blocks on this file "
    "system: have the quota raised, or truncate a large file first",
    errno.ENOENT: "already gone: another process removed it",
    errno.EXDEV: "on another file system or in another subvolume, which is not entered",
    errno.ESTALE: "it was moved or deleted meanwhile, or its server no longer knows it",
    errno.ETIMEDOUT: "the server does not answer: check the connection to it",
    errno.EHOSTDOWN: "the server does not answer: check the connection to it",
    errno.ELOOP: "a symbolic link replaced the directory",
    errno.ENOTDIR: "something that is not a directory replaced the directory",
    0: "the tool gave no recognizable reason",
}


def meaning(error_number: int) -> str:
    """Return the meaning of an errno for a deletion, in words (0: unknown)."""
    text = _MEANINGS.get(error_number)
    if text is not None:
        return text
    name = errno.errorcode.get(error_number)
    if name is None:  # from a damaged journal or a later kernel
        return f"the kernel reports error {error_number}"
    return f"the kernel reports: {os.strerror(error_number)} ({name})"
