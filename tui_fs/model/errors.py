"""Every way tui-fs says no, each with one sentence a person can act on."""

import errno
from dataclasses import dataclass


@dataclass
class TuiFsError(Exception):
    """The base of all errors that are shown to a person.

    Attributes:
        sentence: what is wrong, in one sentence.
        advice: what to do instead; empty where the sentence says it all.
    """

    sentence: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.advice}".rstrip()


class BadInput(TuiFsError):
    """An argument, a file or a message that cannot be understood."""


@dataclass
class Refused(TuiFsError):
    """A safety rule forbids deleting this target.

    Attributes:
        rule: the rule's short name, stable for programs.
    """

    rule: str = ""


class Missing(TuiFsError):
    """A tool or a privilege that is needed is not there."""


class JobFailed(TuiFsError):
    """The supervisor of a job could not be started or is gone."""


_MEANINGS = {
    errno.EPERM: "not permitted: the entry or its directory is immutable, append-only or sticky",
    errno.EACCES: "no write or search permission on the directory that holds it",
    errno.EBUSY: "in use by the system: a mount point or swap file",
    errno.EROFS: "the file system is mounted read-only",
    errno.EIO: "the disk reported an error; check the kernel log",
    errno.ENOTEMPTY: "the directory was not empty: something in it stayed, or somebody refilled it",
    errno.ENAMETOOLONG: "the path is longer than this tool can use (4,096 bytes)",
    errno.ENOSPC: "no space left, even to record the deletion",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENOENT: "already gone: somebody else removed it",
    errno.EXDEV: "on another file system",
    errno.ESTALE: "it was moved away meanwhile, or the network file system lost track of it",
    errno.ELOOP: "a symbolic link stands where a directory was",
    errno.ENOTDIR: "something that is not a directory stands where a directory was",
    0: "the tool gave no reason that can be recognised",
}


def meaning(error_number: int) -> str:
    """Return what an errno means for a deletion, in plain words (0: not known)."""
    known = _MEANINGS.get(error_number)
    if known is not None:
        return known
    name = errno.errorcode.get(error_number, f"error {error_number}")
    return f"the kernel said {name}"
